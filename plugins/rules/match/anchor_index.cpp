#include "match/anchor_index.hpp"

namespace tenon::rules {

uint16_t AnchorIndex::number(tn_sym op) {
  if (op >= numbers_.size()) numbers_.resize(op + 1, unknown);
  if (numbers_[op] == unknown) {
    numbers_[op] = static_cast<uint16_t>(anchored_.size());
    anchored_.emplace_back();
  }
  return numbers_[op];
}

OpSet AnchorIndex::set_of(const std::vector<tn_sym>& ops) {
  OpSet set;
  for (const tn_sym op : ops) set.add(OpSet::bit_of(number(op)));
  return set;
}

/// For each operand of a pattern's node that must be there: where it has to come from.
std::vector<OpSet> AnchorIndex::wanted_above(const Variant& variant, uint32_t n) {
  const VariantNode& node = variant.nodes[n];
  std::vector<OpSet> wanted;
  const auto want = [&](uint32_t value) {
    if (value == none || variant.producer[value] == none) return;
    wanted.push_back(set_of(variant.nodes[variant.producer[value]].what->ops));
  };
  if (node.what->any_operands) {
    want(node.chain);
    return wanted;
  }
  bool constants = false;
  for (size_t i = 0; i < node.what->in.size(); ++i) {
    const Slot& slot = node.what->in[i];
    if (slot.kind != Slot::Value || slot.optional) continue;
    constants = constants || slot.constant;
    want(node.in[i]);
  }
  if (constants) {
    OpSet set;
    set.add(OpSet::constant);
    wanted.push_back(set);
  }
  return wanted;
}

void AnchorIndex::add(uint32_t entry, uint32_t number_of_variant, const Variant& variant) {
  const VariantNode& anchor = variant.nodes[variant.anchor];
  Probe probe{{entry, number_of_variant}, anchor.from->assoc, {}};
  std::vector<uint32_t> values = anchor.in;
  if (anchor.what->any_operands) values.assign(1, anchor.chain);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!anchor.what->any_operands) {
      const Slot& slot = anchor.what->in[i];
      if (slot.kind != Slot::Value || slot.optional) continue;
      if (slot.constant) {
        Need need;
        need.producers.add(OpSet::constant);
        probe.needs.push_back(std::move(need));
        continue;
      }
    }
    const uint32_t producer = values[i] == none ? none : variant.producer[values[i]];
    if (producer == none) continue;
    const VariantNode& above = variant.nodes[producer];
    Need need{set_of(above.what->ops), {}};
    // Of a tree only the root is known to be there.
    if (!above.from->assoc) need.above = wanted_above(variant, producer);
    probe.needs.push_back(std::move(need));
  }
  for (const tn_sym op : anchor.what->ops) {
    auto& list = anchored_[number(op)];
    const bool listed =
        !list.empty() && list.back().place.entry == entry && list.back().place.variant == number_of_variant;
    if (!listed) list.push_back(probe);
  }
}

const OpSet& AnchorIndex::above(tn_node node, const tn_node_info& info) {
  if (node >= seen_.size()) seen_.resize(std::max<size_t>(node + 1, seen_.size() + seen_.size() / 2));
  Seen& seen = seen_[node];
  if (seen.epoch == epoch_) return seen.above;
  seen.epoch = epoch_;
  seen.above = {};
  for (uint32_t i = 0; i < info.input_count; ++i) {
    if (info.inputs[i] == TN_NONE) continue;
    const auto value = graph_.value(info.inputs[i]);
    if (value.kind == TN_VALUE_CONSTANT) {
      seen.above.add(OpSet::constant);
    } else if (value.kind == TN_VALUE_RESULT) {
      const uint16_t n = number_of(graph_.node(value.producer).op);
      if (n != unknown) seen.above.add(OpSet::bit_of(n));
    }
  }
  return seen.above;
}

bool AnchorIndex::may(const Probe& probe) const {
  if (probe.tree && near_.has(own_bit_)) return true;
  for (const Need& need : probe.needs)
    if (!need.producers.meets(near_)) return false;
  for (const Need& need : probe.needs) {
    if (need.above.empty()) continue;
    bool found = false;
    for (size_t i = 0; i < operands_.size() && !found; ++i) {
      found = need.producers.meets(operands_[i].producers);
      for (size_t k = 0; k < need.above.size() && found; ++k) found = need.above[k].meets(operands_[i].above);
    }
    if (!found) return false;
  }
  return true;
}

void AnchorIndex::at(tn_node node, bool all, std::vector<Place>* out) {
  out->clear();
  const tn_node_info info = graph_.node(node);
  const uint16_t own = info.alive ? number_of(info.op) : unknown;
  if (own == unknown || anchored_[own].empty()) return;
  if (all) {
    for (const Probe& probe : anchored_[own]) out->push_back(probe.place);
    return;
  }
  own_bit_ = OpSet::bit_of(own);
  near_ = {};
  operands_.clear();
  for (uint32_t i = 0; i < info.input_count; ++i) {
    if (info.inputs[i] == TN_NONE) continue;
    Operand operand;
    const auto value = graph_.value(info.inputs[i]);
    if (value.kind == TN_VALUE_CONSTANT) {
      operand.producers.add(OpSet::constant);
    } else if (value.kind == TN_VALUE_RESULT) {
      const tn_node_info producer = graph_.node(value.producer);
      const uint16_t n = number_of(producer.op);
      if (n == unknown) continue;
      operand.producers.add(OpSet::bit_of(n));
      operand.above = above(value.producer, producer);
    }
    near_.add(operand.producers);
    if (operands_.size() < most_apart) {
      operands_.push_back(operand);
    } else {
      operands_.back().producers.add(operand.producers);
      operands_.back().above.add(operand.above);
    }
  }
  for (const Probe& probe : anchored_[own])
    if (may(probe)) out->push_back(probe.place);
}

}  // namespace tenon::rules
