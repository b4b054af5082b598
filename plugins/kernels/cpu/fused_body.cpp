#include "fused_body.hpp"

#include <algorithm>
#include <unordered_map>

namespace tenon::cpu {

using namespace sdk;

bool Body::in_place() const {
  // An operand of wider elements has as many bytes only when it is repeated.
  return !tail && std::all_of(operand_width.begin(), operand_width.end(),
                              [this](uint32_t width) { return width <= result_width; });
}

namespace {

class Compiler {
 public:
  explicit Compiler(const PlanView& v) : graph_(v.graph()), region_(the_body(v)) {}

  Body compile() {
    const tn_region_info info = graph_.region(region_);
    if (info.output_count != 1)
      decline(format("its body has %u results, this kernel gives 1", info.output_count));
    for (uint32_t i = 0; i < info.input_count; ++i) {
      known_[info.inputs[i]] = {Source::outside, i};
      body_.operand_width.push_back(dtype_bytes(dtype(info.inputs[i])));
    }
    std::vector<tn_node> nodes = graph_.nodes(region_).copy();
    if (nodes.empty() || graph_.node(nodes.back()).output(0) != info.outputs[0])
      decline("the last node of its body does not give its result");
    tn_value last = info.outputs[0];
    if (const auto op = reduction_of(graph_.node(nodes.back()).op_name())) {
      last = add_tail(graph_.node(nodes.back()), *op);
      nodes.pop_back();
    }
    const tn_type whole = graph_.value(last).type;
    shape_ = dims_of(whole).copy();
    body_.rank = static_cast<uint32_t>(shape_.size());
    body_.result_width = dtype_bytes(whole.dtype);
    if (whole.rank < 0 || nodes.empty() || graph_.node(nodes.back()).output(0) != last)
      decline("the nodes of its body do not lead to one value");
    for (uint32_t i = 0; i < nodes.size(); ++i)
      for (const tn_value v : graph_.node(nodes[i]).inputs())
        if (v != TN_NONE) last_read_[v] = i;
    for (uint32_t i = 0; i < nodes.size(); ++i) add(graph_.node(nodes[i]), i, i + 1 == nodes.size());
    return std::move(body_);
  }

 private:
  static tn_region the_body(const PlanView& v) {
    if (v.regions().size() != 1) decline("it keeps no body");
    return v.regions()[0];
  }

  tn_dtype dtype(tn_value v) const { return v == TN_NONE ? TN_DTYPE_NONE : graph_.value(v).type.dtype; }

  /// The value that is reduced.
  tn_value add_tail(const Node& node, Reduction op) {
    const tn_value x = node.input(0);
    const int64_t rank = graph_.value(x).type.rank;
    std::vector<bool> reduced(rank < 0 ? 0 : static_cast<size_t>(rank), false);
    bool any = false;
    if (node.input(1) != TN_NONE) {
      const auto axes = graph_.constant(node.input(1));
      if (!axes) decline("the axes of " + node.label() + " are no constant");
      for (int64_t i = 0; i < axes->count(); ++i) {
        const int64_t axis = axes->int_at(i) + (axes->int_at(i) < 0 ? rank : 0);
        if (axis < 0 || axis >= rank)
          decline("an axis of " + node.label() + " is outside its operand's rank");
        reduced[static_cast<size_t>(axis)] = any = true;
      }
    }
    if (!any && node.attrs().get_int("noop_with_empty_axes", 0) != 0)
      decline(node.label() + " reduces no axis");
    if (!any) reduced.assign(reduced.size(), true);
    const auto axes = static_cast<uint32_t>(std::count(reduced.begin(), reduced.end(), true));
    if (!std::all_of(reduced.end() - axes, reduced.end(), [](bool r) { return r; }))
      decline("the axes that " + node.label() + " reduces are not the last ones");
    const RowReduction* const rows = row_reduction(dtype(x), op);
    if (!rows || dtype(node.output(0)) != dtype(x))
      decline(format("no row function reduces %s (node %s of its body)", dtype_name(dtype(x)),
                     node.label().c_str()));
    body_.tail = Tail{op, rows, axes};
    return x;
  }

  void add(const Node& node, uint32_t position, bool is_last) {
    const tn_type type = graph_.value(node.output(0)).type;
    if (type.rank < 0 || dims_of(type).copy() != shape_)
      decline("node " + node.label() + " of its body is not of the result's shape");
    const uint32_t width = dtype_bytes(type.dtype);
    const bool to_result = is_last && !body_.tail;
    std::vector<Step> steps = steps_of(node, type.dtype);
    // What is read here for the last time gives its slot: to the result, when that may be written over it.
    std::vector<uint32_t> freed;
    for (const tn_value v : node.inputs()) {
      if (v == TN_NONE || last_read_.at(v) != position) continue;
      const auto at = known_.find(v);
      if (at == known_.end() || at->second.kind == Source::outside) continue;
      const bool same_width = dtype_bytes(dtype(v)) == width;
      (same_width && steps.size() == 1 ? free_ : freed).push_back(at->second.index);
      known_.erase(at);
    }
    const uint32_t slot = to_result && steps.size() == 1 ? result_slot : take_slot(width);
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].slot = to_result && i + 1 == steps.size() ? result_slot : slot;
      if (i > 0) steps[i].from[0] = {Source::slot, slot};
      body_.steps.push_back(steps[i]);
    }
    if (to_result) return;
    known_[node.output(0)] = {Source::slot, slot};
    body_.tail_slot = slot;
    free_.insert(free_.end(), freed.begin(), freed.end());
  }

  uint32_t take_slot(uint32_t width) {
    body_.slot_width = std::max(body_.slot_width, width);
    if (free_.empty()) return body_.slots++;
    const uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }

  /// One step, or several that each go on from the one before.
  std::vector<Step> steps_of(const Node& node, tn_dtype result) {
    const std::string_view op = node.op_name();
    const size_t count = node.inputs().size();
    bool floats = result == TN_FLOAT32;
    for (const tn_value v : node.inputs()) floats = floats && (v == TN_NONE || dtype(v) == TN_FLOAT32);
    Step step;
    for (uint32_t i = 0; i < std::min<size_t>(count, 3); ++i)
      if (node.input(i) != TN_NONE) step.from[i] = source(node, i);
    if (op == "Clip") {
      check_bound(node, 1);
      check_bound(node, 2);
      if (floats) {
        step.kind = Step::clip;
        return {step};
      }
      return {typed(node, step, 3)};
    }
    if (const auto act = floats && count == 1 ? activation_of(op, node.attrs()) : std::nullopt) {
      step.act = *act;
      return {step};
    }
    const bool joins = op == "Max" || op == "Min" || (op == "Sum" && is_integer(result));
    if (count > 2 && joins) {
      std::vector<Step> steps{pair(node, step, floats)};
      for (uint32_t i = 2; i < count; ++i) {
        steps.push_back(steps[0]);
        steps.back().from[1] = source(node, i);
      }
      for (Step& s : steps) s.from[2] = {};
      return steps;
    }
    return {count == 2 ? pair(node, step, floats) : typed(node, step, count)};
  }

  Step pair(const Node& node, Step step, bool floats) {
    if (const auto binary = floats ? binary_of(node.op_name()) : std::nullopt) {
      step.kind = Step::two;
      step.binary = *binary;
      return step;
    }
    return typed(node, step, 2);
  }

  Step typed(const Node& node, Step step, size_t count) {
    std::vector<tn_dtype> types(count, TN_DTYPE_NONE);
    for (uint32_t i = 0; i < count; ++i) types[i] = dtype(node.input(i));
    const tn_dtype result = dtype(node.output(0));
    step.kind = Step::typed;
    step.row = count <= step.from.size()
                   ? typed_row(node.op_name(), node.attrs(), Span<const tn_dtype>(types), result)
                   : nullptr;
    if (!step.row)
      decline(format("no row function computes %s from %s to %s (node %s of its body)",
                     std::string(node.op_name()).c_str(), count ? dtype_name(types[0]) : "nothing",
                     dtype_name(result), node.label().c_str()));
    return step;
  }

  Source source(const Node& node, uint32_t i) {
    const auto at = known_.find(node.input(i));
    if (at == known_.end()) decline("node " + node.label() + " of its body reads what is no operand");
    return at->second;
  }

  void check_bound(const Node& node, uint32_t i) {
    if (node.input(i) == TN_NONE) return;
    const tn_type type = graph_.value(node.input(i)).type;
    if (type.rank < 0) decline("the bounds of " + node.label() + " are not one number each");
    for (const tn_dim d : dims_of(type))
      if (d != 1) decline("the bounds of " + node.label() + " are not one number each");
    if (source(node, i).kind != Source::outside)
      decline("the bounds of " + node.label() + " are computed in its body");
  }

  GraphView graph_;
  tn_region region_;
  std::vector<tn_dim> shape_;
  std::unordered_map<tn_value, Source> known_;
  std::unordered_map<tn_value, uint32_t> last_read_;
  std::vector<uint32_t> free_;
  Body body_;
};

}  // namespace

Body fused_body(const PlanView& v) { return Compiler(v).compile(); }

}  // namespace tenon::cpu
