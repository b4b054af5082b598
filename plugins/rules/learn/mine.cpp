#include "learn/mine.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace tenon::rules {
namespace {

constexpr size_t most_groups = 128;          // that are grown further, of one size
constexpr size_t most_occurrences = 200000;  // of one size
constexpr size_t most_candidates = 300;      // that the choice looks at

/// Nodes of one place, the last one first.
struct Occurrence {
  std::vector<tn_node> nodes;
  uint64_t saved = 0;
};
struct Group {
  std::string signature;
  std::vector<Occurrence> occurrences;
  uint64_t saved = 0;
};

class Miner {
 public:
  Miner(const TestServices& services, const OpCatalog& ops, const GraphAccess& graph,
        const LearnOptions& options)
      : ops_(ops), graph_(graph), options_(options), writer_(services, ops, graph) {}
  std::vector<Learned> run();

 private:
  void find_nodes();
  bool memory_bound(tn_node n) const;
  std::vector<Group> singles();
  std::vector<Group> grow(const std::vector<Group>& groups);
  std::vector<tn_node> addable(const Occurrence& o) const;
  std::string signature(const Occurrence& o) const;
  void keep_best(std::vector<Group>* groups) const;
  std::vector<Learned> choose(std::vector<Group> candidates);

  const OpCatalog& ops_;
  const GraphAccess& graph_;
  const LearnOptions& options_;
  DraftWriter writer_;
  std::vector<uint32_t> place_;  // per node: in topological order, from 1; 0: not eligible
  std::vector<tn_node> nodes_;   // eligible ones
};

bool Miner::memory_bound(tn_node n) const {
  const tn_node_info info = graph_.node(n);
  const tn_op_def* def = ops_.find(info.op);
  if (!def || !(def->flags & (TN_OP_ELEMENTWISE | TN_OP_REDUCTION | TN_OP_MOVES | TN_OP_VIEW)) ||
      (def->flags & (TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT | TN_OP_CONTROL_FLOW | TN_OP_SHAPE_ONLY)))
    return false;
  bool computes = false;  // of constants alone is folded, not fused
  for (uint32_t i = 0; i < info.input_count; ++i) {
    if (info.inputs[i] == TN_NONE) continue;
    const tn_value_info v = graph_.value(info.inputs[i]);
    if (v.type.kind != TN_KIND_TENSOR || v.type.rank < 0 || v.type.dtype == TN_DTYPE_NONE) return false;
    computes = computes || v.kind != TN_VALUE_CONSTANT;
  }
  return computes && writer_.refusal(n).empty();
}

void Miner::find_nodes() {
  place_.assign(graph_.api()->node_bound(graph_.raw()), 0);
  uint32_t place = 0;
  for (const tn_node n : running_nodes(graph_, ops_)) {
    ++place;
    if (!memory_bound(n)) continue;
    place_[n] = place;
    nodes_.push_back(n);
  }
}

/// Nodes that yield an operand of the occurrence and are read by nothing else.
std::vector<tn_node> Miner::addable(const Occurrence& o) const {
  std::vector<tn_node> found;
  const auto inside = [&](tn_node n) {
    return std::find(o.nodes.begin(), o.nodes.end(), n) != o.nodes.end();
  };
  for (const tn_node n : o.nodes) {
    const tn_node_info info = graph_.node(n);
    for (uint32_t i = 0; i < info.input_count; ++i) {
      if (info.inputs[i] == TN_NONE) continue;
      const tn_value_info v = graph_.value(info.inputs[i]);
      if (v.kind != TN_VALUE_RESULT || place_[v.producer] == 0 || inside(v.producer) ||
          std::find(found.begin(), found.end(), v.producer) != found.end())
        continue;
      const tn_node_info producer = graph_.node(v.producer);
      if (producer.region != info.region) continue;
      bool closed = true;
      for (uint32_t k = 0; k < producer.output_count && closed; ++k) {
        if (producer.outputs[k] == TN_NONE) continue;
        for (const auto& u : graph_.users(producer.outputs[k]))
          closed = closed && u.node != TN_NONE && inside(u.node);
      }
      if (closed) found.push_back(v.producer);
    }
  }
  return found;
}

/// Equal for occurrences that one pattern matches: operators, attributes, small constants and how they hang
/// together, read from the last node upwards.
std::string Miner::signature(const Occurrence& o) const {
  std::vector<tn_node> order{o.nodes[0]};
  std::vector<tn_value> outer;
  std::string text;
  const auto inside = [&](tn_node n) {
    return std::find(o.nodes.begin(), o.nodes.end(), n) != o.nodes.end();
  };
  for (size_t k = 0; k < order.size(); ++k) {
    const tn_node_info info = graph_.node(order[k]);
    text += graph_.op_name(info.op);
    std::vector<std::string> attrs;
    for (uint32_t i = 0; i < info.attr_count; ++i) {
      const tn_attr& a = *reinterpret_cast<const tn_attr*>(reinterpret_cast<const uint8_t*>(info.attrs) +
                                                           static_cast<size_t>(i) * info.attr_stride);
      std::string s(graph_.op_name(a.name));
      if (a.kind == TN_ATTR_INT) s += "=" + std::to_string(a.u.i);
      if (a.kind == TN_ATTR_FLOAT) s += sdk::format("=%.17g", a.u.f);
      if (a.kind == TN_ATTR_STRING) s += "=" + sdk::text(a.u.s);
      for (uint64_t x = 0; a.kind == TN_ATTR_INTS && x < a.count; ++x) s += "," + std::to_string(a.u.ints[x]);
      for (uint64_t x = 0; a.kind == TN_ATTR_FLOATS && x < a.count; ++x)
        s += sdk::format(",%.17g", a.u.floats[x]);
      attrs.push_back(std::move(s));
    }
    std::sort(attrs.begin(), attrs.end());
    for (const auto& s : attrs) text += "|" + s;
    text += "(";
    for (uint32_t i = 0; i < info.input_count; ++i) {
      const tn_value v = info.inputs[i];
      text += i ? "," : "";
      if (v == TN_NONE) continue;
      const tn_value_info value = graph_.value(v);
      if (value.kind == TN_VALUE_RESULT && inside(value.producer)) {
        size_t at =
            static_cast<size_t>(std::find(order.begin(), order.end(), value.producer) - order.begin());
        if (at == order.size()) order.push_back(value.producer);
        text += "#" + std::to_string(at) + "." + std::to_string(value.index);
        continue;
      }
      tn_tensor tensor{};
      if (writer_.is_small(v, &tensor)) {
        text += literal_text(tensor);
        continue;
      }
      size_t at = static_cast<size_t>(std::find(outer.begin(), outer.end(), v) - outer.begin());
      if (at == outer.size()) outer.push_back(v);
      text += "$" + std::to_string(at) + sdk::dtype_name(value.type.dtype);
    }
    text += ")";
  }
  return text;
}

std::vector<Group> Miner::singles() {
  std::map<std::string, Group> groups;
  for (const tn_node n : nodes_) {
    Occurrence o{{n}, 0};
    Group& g = groups[signature(o)];
    g.occurrences.push_back(std::move(o));
  }
  std::vector<Group> all;
  for (auto& [s, g] : groups) {
    if (g.occurrences.size() < options_.min_occurrences) continue;
    g.signature = s;
    all.push_back(std::move(g));
  }
  return all;
}

/// Those that save most, in a fixed order.
void Miner::keep_best(std::vector<Group>* groups) const {
  std::stable_sort(groups->begin(), groups->end(), [](const Group& a, const Group& b) {
    return a.saved != b.saved ? a.saved > b.saved : a.signature < b.signature;
  });
  size_t count = 0, keep = 0;
  while (keep < groups->size() && keep < most_groups && count < most_occurrences)
    count += (*groups)[keep++].occurrences.size();
  groups->resize(keep);
}

std::vector<Group> Miner::grow(const std::vector<Group>& groups) {
  std::map<std::string, Group> larger;
  std::unordered_set<std::string> seen;
  for (const Group& g : groups)
    for (const Occurrence& o : g.occurrences)
      for (const tn_node n : addable(o)) {
        Occurrence next = o;
        next.nodes.push_back(n);
        std::vector<tn_node> sorted(next.nodes.begin() + 1, next.nodes.end());
        std::sort(sorted.begin(), sorted.end());
        std::string key = std::to_string(o.nodes[0]);
        for (const tn_node x : sorted) key += "," + std::to_string(x);
        if (!seen.insert(std::move(key)).second) continue;  // reached by another way
        const tn_node_info info = graph_.node(n);
        const tn_op_def* def = ops_.find(info.op);
        if (!(def->flags & TN_OP_VIEW))  // a view's bytes are its operand's
          for (uint32_t k = 0; k < info.output_count; ++k)
            if (info.outputs[k] != TN_NONE) next.saved += 2 * writer_.bytes(info.outputs[k]);
        Group& into = larger[signature(next)];
        into.saved += next.saved;
        into.occurrences.push_back(std::move(next));
      }
  std::vector<Group> all;
  for (auto& [s, g] : larger) {
    if (g.occurrences.size() < options_.min_occurrences) continue;
    g.signature = s;
    all.push_back(std::move(g));
  }
  keep_best(&all);
  return all;
}

std::vector<Learned> Miner::choose(std::vector<Group> candidates) {
  std::stable_sort(candidates.begin(), candidates.end(), [](const Group& a, const Group& b) {
    if (a.saved != b.saved) return a.saved > b.saved;
    return a.occurrences[0].nodes.size() != b.occurrences[0].nodes.size()
               ? a.occurrences[0].nodes.size() > b.occurrences[0].nodes.size()
               : a.signature < b.signature;
  });
  if (candidates.size() > most_candidates) candidates.resize(most_candidates);
  std::vector<uint8_t> taken(place_.size(), 0);
  std::vector<Learned> all;
  std::map<std::string, int> names;
  std::vector<bool> gone(candidates.size());
  while (all.size() < options_.max_rules) {
    size_t best = candidates.size();
    uint64_t best_saved = 0;
    std::vector<const Occurrence*> best_places;
    for (size_t i = 0; i < candidates.size(); ++i) {
      // The bound of what is left cannot beat the best any more: they are sorted.
      if (gone[i] || candidates[i].saved <= best_saved) continue;
      std::unordered_set<tn_node> own;
      std::vector<const Occurrence*> places;
      uint64_t saved = 0;
      for (const Occurrence& o : candidates[i].occurrences) {
        if (std::any_of(o.nodes.begin(), o.nodes.end(), [&](tn_node n) { return taken[n] || own.count(n); }))
          continue;
        own.insert(o.nodes.begin(), o.nodes.end());
        places.push_back(&o);
        saved += o.saved;
      }
      if (places.size() < options_.min_occurrences || saved <= best_saved) continue;
      best = i, best_saved = saved, best_places = std::move(places);
    }
    if (best == candidates.size()) break;
    gone[best] = true;
    // The smallest place proves fastest.
    const Occurrence* smallest = best_places[0];
    for (const Occurrence* o : best_places)
      if (o->saved < smallest->saved) smallest = o;
    std::string name = "Learned";
    std::vector<tn_node> sorted = smallest->nodes;
    std::sort(sorted.begin(), sorted.end(), [&](tn_node a, tn_node b) { return place_[a] < place_[b]; });
    for (size_t i = 0; i < sorted.size() && i < 4; ++i) {
      std::string op(graph_.op_name(graph_.node(sorted[i]).op));
      if (const auto colon = op.rfind("::"); colon != std::string::npos) op = op.substr(colon + 2);
      name += op;
    }
    if (sorted.size() > 4) name += std::to_string(sorted.size());
    if (const int n = ++names[name]; n > 1) name += "_" + std::to_string(n);
    Learned l;
    try {
      l.draft =
          writer_.write(smallest->nodes, name,
                        "Proposed: " + std::to_string(best_places.size()) + " places, " +
                            std::to_string(best_saved) + " bytes of inner values neither written nor read.");
    } catch (const sdk::Failure&) {
      --names[name];
      continue;  // what cannot be proved is not proposed
    }
    for (const Occurrence* o : best_places) {
      for (const tn_node n : o->nodes) taken[n] = 1;
      l.roots.push_back(o->nodes[0]);
    }
    l.occurrences = best_places.size();
    l.bytes_saved = best_saved;
    all.push_back(std::move(l));
  }
  return all;
}

std::vector<Learned> Miner::run() {
  find_nodes();
  std::vector<Group> candidates, level = singles();
  for (uint32_t size = 2; size <= options_.max_nodes && !level.empty(); ++size) {
    level = grow(level);
    for (const Group& g : level)
      if (g.saved > 0) candidates.push_back(g);
  }
  return choose(std::move(candidates));
}

}  // namespace

std::vector<Learned> learn(const TestServices& services, const OpCatalog& ops, const GraphAccess& graph,
                           const LearnOptions& options) {
  return Miner(services, ops, graph, options).run();
}

}  // namespace tenon::rules
