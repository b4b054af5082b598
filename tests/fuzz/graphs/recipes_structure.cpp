// Control flow with captures, sequences, optionals, and any operator at all.
#include "draw.hpp"

#include <tenon/sdk/dtype.hpp>

#include <algorithm>

#include "core/base/text.hpp"
#include "core/graph/interner.hpp"

namespace tenon::fuzz {

namespace {

// A few nodes in a region that keep type and shape; reads values of the main region as captures.
tn_value chain(Drawer& d, tn_region region, const Drawn& like, tn_value from) {
  tn_value x = from;
  for (int64_t i = d.random.between(1, 3); i > 0; --i) {
    tn_node node = TN_NONE;
    switch (d.random.below(4)) {
      case 0:
        node = d.create(region, d.random.of({"Relu", "Neg", "Abs", "Identity", "Identity"}), {x});
        break;
      case 1:
        node = d.create(region, d.random.of({"Add", "Mul", "Sub"}), {x, d.operand(like.dtype, like.dims).id});
        break;
      case 2:
        node = d.create(region, d.random.of({"Max", "Min"}), {x, d.weight(like.dtype, {}).id});
        break;
      default:
        node = d.create(region, "Mul",
                        {x, d.constant(float_tensor(like.dtype, {}, d.random.of({0.5, 1.0, -1.0}))).id});
    }
    if (node == TN_NONE) return TN_NONE;
    x = d.result(node);
  }
  return x;
}

tn_value region_input(Drawer& d, tn_region region, const char* name, tn_dtype dtype, const Dims& dims) {
  const tn_type type{TN_KIND_TENSOR, dtype, static_cast<int32_t>(dims.size()), 0, dims.data()};
  tn_value value = TN_NONE;
  const std::string unique = std::string(name) + std::to_string(d.graph().value_bound());
  edit_api()->region_input(d.open(), region, to_abi(unique), &type, &value);
  return value;
}

tn_region region_of(Drawer& d, tn_node node, const char* name) {
  tn_region region = 0;
  edit_api()->create_region(d.open(), node, to_abi(std::string_view(name)), &region);
  return region;
}

void outputs_of(Drawer& d, tn_region region, std::initializer_list<tn_value> values) {
  edit_api()->region_outputs(d.open(), region, values.begin(), static_cast<uint32_t>(values.size()));
}

bool add_if(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32, TN_FLOAT32, TN_INT64}, 0, 3);
  Tensor known(TN_BOOL, {});
  known.as<uint8_t>()[0] = d.random.chance(0.5);
  const Drawn condition = d.random.chance(0.3) ? d.constant(known) : d.operand(TN_BOOL, {});
  const tn_node node = d.create(Graph::main_region, "If", {condition.id});
  if (node == TN_NONE) return false;
  for (const char* name : {"then_branch", "else_branch"}) {
    const tn_region region = region_of(d, node, name);
    const tn_value y = chain(d, region, x, x.id);
    if (y == TN_NONE) return false;
    outputs_of(d, region, {y});
  }
  return !d.close(node).empty();
}

bool add_loop(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32, TN_FLOAT32, TN_INT64}, 0, 2);
  const Drawn trips = d.constant(int64_scalar(d.random.between(0, 3)));
  const tn_node node = d.create(Graph::main_region, "Loop", {trips.id, TN_NONE, x.id}, {}, 2);
  if (node == TN_NONE) return false;
  const tn_region body = region_of(d, node, "body");
  const tn_value iteration = region_input(d, body, "iteration", TN_INT64, {});
  const tn_value condition = region_input(d, body, "condition", TN_BOOL, {});
  const tn_value state = region_input(d, body, "state", x.dtype, x.dims);
  const tn_node go_on = d.create(body, "Identity", {condition});
  tn_value next = chain(d, body, x, state);
  if (d.random.chance(0.5) && x.dtype == TN_INT64 && next != TN_NONE)
    next = d.result(d.create(body, "Add", {next, iteration}));
  const tn_value scanned = next == TN_NONE ? next : chain(d, body, x, next);
  if (go_on == TN_NONE || scanned == TN_NONE) return false;
  outputs_of(d, body, {d.result(go_on), next, scanned});
  return !d.close(node).empty();
}

bool add_scan(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32}, 1, 3);
  if (x.dims[0] == 0) return false;
  const Dims slice(x.dims.begin() + 1, x.dims.end());
  const Drawn like{TN_NONE, TN_KIND_TENSOR, x.dtype, true, slice};
  const Drawn first = d.operand(x.dtype, slice);
  const tn_node node = d.create(Graph::main_region, "Scan", {first.id, x.id}, {{"num_scan_inputs", 1}}, 2);
  if (node == TN_NONE) return false;
  const tn_region body = region_of(d, node, "body");
  const tn_value state = region_input(d, body, "state", x.dtype, slice),
                 in = region_input(d, body, "in", x.dtype, slice);
  const tn_node sum = d.create(body, "Add", {state, in});
  if (sum == TN_NONE) return false;
  const tn_value out = chain(d, body, like, d.result(sum));
  if (out == TN_NONE) return false;
  outputs_of(d, body, {d.result(sum), out});
  return !d.close(node).empty();
}

bool add_sequence(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32, TN_INT64, TN_FLOAT16}, 1, 3);
  const Drawn y = d.operand(x.dtype, x.dims);
  Drawn sequence = d.random.chance(0.3)
                       ? d.node1("SplitToSequence", {x}, {{"axis", 0}, {"keepdims", d.random.between(0, 1)}})
                       : d.node1("SequenceConstruct", {x, y, x});
  if (sequence.id == TN_NONE) return false;
  if (d.random.chance(0.3)) sequence = d.node1("SequenceInsert", {sequence, y, d.constant(int64_scalar(0))});
  if (sequence.id != TN_NONE && d.random.chance(0.3))
    sequence = d.node1("SequenceErase", {sequence, d.constant(int64_scalar(-1))});
  if (sequence.id == TN_NONE) return false;
  switch (d.random.below(4)) {
    case 0:
      return d.node1("SequenceLength", {sequence}).id != TN_NONE;
    case 1:
      return d.node1("ConcatFromSequence", {sequence}, {{"axis", 0}, {"new_axis", d.random.between(0, 1)}})
                 .id != TN_NONE;
    case 2: {
      const Drawn optional = d.node1("Optional", {sequence});
      return optional.id != TN_NONE &&
             d.node1(d.random.of({"OptionalHasElement", "OptionalGetElement"}), {optional}).id != TN_NONE;
    }
    default:
      return d.node1("SequenceAt", {sequence, d.constant(int64_scalar(d.random.of({0, -1})))}).id != TN_NONE;
  }
}

}  // namespace

std::span<const Recipe> structure_recipes() {
  static constexpr Recipe recipes[] = {
      {"if", 4, add_if}, {"loop", 3, add_loop}, {"scan", 2, add_scan}, {"sequence", 3, add_sequence}};
  return recipes;
}

bool any_operator(Drawer& d) {
  const tn_op_def* const def = d.any_definition();
  if (def == nullptr) return false;
  // Types first: inputs of one type variable agree.
  std::vector<std::pair<std::string_view, Drawn>> bound;
  std::vector<Drawn> inputs;
  const uint32_t wanted =
      def->min_inputs + static_cast<uint32_t>(d.random.below(
                            def->input_count - std::min(def->input_count, def->min_inputs) + 1));
  for (uint32_t i = 0; i < std::min(wanted, 8u); ++i) {
    const tn_param_def& parameter = def->inputs[std::min(i, def->input_count - 1)];
    const auto same = std::find_if(bound.begin(), bound.end(),
                                   [&](const auto& b) { return b.first == view(parameter.type); });
    if (same != bound.end()) {
      inputs.push_back(d.operand(same->second.dtype, d.random.chance(0.6)   ? same->second.dims
                                                     : d.random.chance(0.5) ? Dims{}
                                                                            : d.random_dims(0, 3)));
      continue;
    }
    const Dtypes dtypes = d.allowed(*def, i);
    if (dtypes.empty()) return false;
    const tn_dtype dtype = d.pick_dtype(dtypes);
    const Drawn x = i == 0 ? d.any({dtype}, 0, 4)
                           : d.operand(dtype, d.random.chance(0.5) ? d.random_dims(0, 2) : inputs[0].dims);
    if (x.id == TN_NONE) return false;
    bound.emplace_back(view(parameter.type), x);
    inputs.push_back(x);
  }
  Attributes attributes;
  for (uint32_t i = 0; i < def->attr_count; ++i) {
    const tn_attr_def& attribute = def->attrs[i];
    if (attribute.required == 0 && !d.random.chance(0.15)) continue;
    const std::string_view name = view(attribute.name);
    if (attribute.kind == TN_ATTR_INT) attributes.push_back({name, d.random.between(-1, 3)});
    if (attribute.kind == TN_ATTR_FLOAT) attributes.push_back({name, d.random.of({0.5, 1.0, 2.0})});
    if (attribute.kind == TN_ATTR_INTS)
      attributes.push_back({name, std::vector<int64_t>(1 + d.random.below(3), d.random.between(0, 2))});
  }
  return !d.node(d.symbol_of(*def), inputs, attributes, std::max(def->min_outputs, 1u)).empty();
}

}  // namespace tenon::fuzz
