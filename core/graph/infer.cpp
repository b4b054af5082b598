// One node's inference: checks against the definition, then the definition's own function through
// tn_infer_api.
#include "core/graph/infer.hpp"

#include <algorithm>
#include <cstring>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/interner.hpp"

using namespace tenon;

// The state of one inference. The definition's function sees it as an opaque handle.
struct tn_infer {
  struct Output {
    tn_type type{};
    std::vector<tn_dim> dims;
    std::vector<tn_dim> elements;
    bool typed = false, has_elements = false;
  };

  tn_infer(Graph& g, const OpRegistry& r, tn_node n, TypeStore& s, Diagnostics& d)
      : graph(g), registry(r), store(s), diagnostics(d), id(n) {
    graph_api()->node(&graph, id, (info.size = sizeof info, &info));
  }

  Graph& graph;
  const OpRegistry& registry;
  TypeStore& store;
  Diagnostics& diagnostics;
  tn_node id;
  tn_node_info info{};
  std::vector<tn_type> inputs;
  std::vector<Output> outputs;
  std::vector<tn_type> region_outputs;
  bool failed = false;
  bool reported = false;  // a node inside failed, and said so itself

  void error(std::string text) {
    if (!failed) diagnostics.error("G310", node_place(graph, id), text);
    failed = reported = true;
  }
  std::string operand_text(uint32_t i, const tn_op_def* def) const;
  bool check_counts(const tn_op_def& def);
  bool check_types(const tn_op_def& def);
  bool check_attributes(const tn_op_def& def);
  void finish(const tn_op_def* def);
  tn_status infer_region(uint32_t r, const tn_type* types, uint32_t count);

  struct Binding {
    std::string_view variable;
    tn_type type;
    uint32_t input;
  };
  std::vector<Binding> bindings;
  const Binding* bound(std::string_view variable) const {
    for (const Binding& binding : bindings)
      if (binding.variable == variable) return &binding;
    return nullptr;
  }
};

namespace {
tn_infer_api make_api();
const tn_infer_api& infer_api() {
  static const tn_infer_api table = make_api();
  return table;
}

const tn_param_def* param_at(const tn_param_def* params, uint32_t count, uint32_t i) {
  if (count == 0) return nullptr;
  if (i < count) return &params[i];
  return (params[count - 1].flags & TN_PARAM_VARIADIC) ? &params[count - 1] : nullptr;
}
const tn_type_var* variable_of(const tn_op_def& def, std::string_view name) {
  for (uint32_t i = 0; i < def.type_var_count; ++i)
    if (view(def.type_vars[i].name) == name) return &def.type_vars[i];
  return nullptr;
}
std::string allowed_text(const tn_type_var& variable) {
  std::string text;
  for (uint32_t i = 0; i < variable.dtype_count; ++i)
    text += (i ? ", " : "") + dtype_name(variable.dtypes[i]);
  return text;
}
std::string short_type(const Graph& graph, const tn_type& type) { return type_text(graph, type); }
}  // namespace

std::string tn_infer::operand_text(uint32_t i, const tn_op_def* def) const {
  const tn_param_def* const param = def ? param_at(def->inputs, def->input_count, i) : nullptr;
  std::string text = fmt::format("operand {}", i);
  if (param && param->name.size != 0) text += fmt::format(" '{}'", view(param->name));
  const tn_value value = i < info.input_count ? info.inputs[i] : TN_NONE;
  if (value != TN_NONE) text += fmt::format(" (value {})", value_place(graph, value));
  return text;
}

bool tn_infer::check_counts(const tn_op_def& def) {
  const bool variadic = def.input_count != 0 && (def.inputs[def.input_count - 1].flags & TN_PARAM_VARIADIC);
  if (!variadic && info.input_count > def.input_count) {
    error(fmt::format("has {} operands; {} takes at most {}", info.input_count, view(def.name),
                      def.input_count));
    return false;
  }
  for (uint32_t i = 0; i < def.min_inputs; ++i) {
    const tn_param_def* const param = param_at(def.inputs, def.input_count, i);
    if (param && (param->flags & TN_PARAM_OPTIONAL)) continue;
    if (i < info.input_count && info.inputs[i] != TN_NONE) continue;
    error(fmt::format("{} is missing; {} needs at least {} operands, {} are given", operand_text(i, &def),
                      view(def.name), def.min_inputs, info.input_count));
    return false;
  }
  const bool variadic_out =
      def.output_count != 0 && (def.outputs[def.output_count - 1].flags & TN_PARAM_VARIADIC);
  if (!variadic_out && info.output_count > def.output_count) {
    error(fmt::format("has {} results; {} gives at most {}", info.output_count, view(def.name),
                      def.output_count));
    return false;
  }
  return true;
}

bool tn_infer::check_attributes(const tn_op_def& def) {
  static constexpr const char* kinds[] = {"nothing", "an int",  "a float",  "a string", "ints",
                                          "floats",  "strings", "a tensor", "a type"};
  std::vector<std::string_view> names(info.attr_count);
  for (uint32_t a = 0; a < info.attr_count; ++a) names[a] = symbol_text(info.attrs[a].name);
  for (uint32_t i = 0; i < def.attr_count; ++i) {
    const tn_attr_def& wanted = def.attrs[i];
    const tn_attr* found = nullptr;
    for (uint32_t a = 0; a < info.attr_count && !found; ++a)
      if (names[a] == view(wanted.name)) found = &info.attrs[a];
    if (!found) {
      if (!wanted.required) continue;
      error(fmt::format("attribute '{}' is missing; {} requires it", view(wanted.name), view(def.name)));
      return false;
    }
    if (found->kind == wanted.kind || wanted.kind == 0 || wanted.kind > TN_ATTR_TYPE ||
        found->kind > TN_ATTR_TYPE)
      continue;
    // An empty list has no kind of its own in some formats.
    if (found->kind >= TN_ATTR_INTS && found->kind <= TN_ATTR_STRINGS && found->count == 0) continue;
    error(fmt::format("attribute '{}' is {}; {} expects {}", view(wanted.name), kinds[found->kind],
                      view(def.name), kinds[wanted.kind]));
    return false;
  }
  return true;
}

bool tn_infer::check_types(const tn_op_def& def) {
  for (uint32_t i = 0; i < info.input_count; ++i) {
    const tn_type& type = inputs[i];
    const tn_param_def* const param = param_at(def.inputs, def.input_count, i);
    if (info.inputs[i] == TN_NONE || !param || type.kind == TN_KIND_NONE) continue;
    const std::string_view wanted = view(param->type);
    const tn_type_var* const variable = variable_of(def, wanted);
    if (!variable) {
      const auto dtype = dtype_from_name(wanted);
      if (!dtype) continue;
      if (type.kind != TN_KIND_TENSOR || (type.dtype != TN_DTYPE_NONE && type.dtype != *dtype)) {
        error(fmt::format("{} is {}; {} expects {}", operand_text(i, &def), short_type(graph, type),
                          view(def.name), wanted));
        return false;
      }
      continue;
    }
    const uint32_t kinds = variable->kinds ? variable->kinds : 1u << TN_KIND_TENSOR;
    if (!(kinds & (1u << type.kind))) {
      error(fmt::format("{} is {}; {} does not take values of that kind there", operand_text(i, &def),
                        short_type(graph, type), view(def.name)));
      return false;
    }
    if (type.dtype == TN_DTYPE_NONE) continue;
    if (variable->dtypes && std::find(variable->dtypes, variable->dtypes + variable->dtype_count,
                                      type.dtype) == variable->dtypes + variable->dtype_count) {
      error(fmt::format("{} is {}; {} expects one of {}", operand_text(i, &def), short_type(graph, type),
                        view(def.name), allowed_text(*variable)));
      return false;
    }
    if ((param->flags & TN_PARAM_VARIADIC) && (param->flags & TN_PARAM_HETEROGENEOUS)) continue;
    const Binding* const binding = bound(wanted);
    if (!binding) {
      bindings.push_back({wanted, type, i});
    } else if (binding->type.dtype != type.dtype || binding->type.kind != type.kind) {
      error(fmt::format("{} is {}, but {} is {}; {} expects both of one type {}", operand_text(i, &def),
                        short_type(graph, type), operand_text(binding->input, &def),
                        short_type(graph, binding->type), view(def.name), wanted));
      return false;
    }
  }
  return true;
}

// Writes the results to the store; what was not set is filled from the type variables.
void tn_infer::finish(const tn_op_def* def) {
  for (uint32_t i = 0; i < info.output_count; ++i) {
    const tn_value value = info.outputs[i];
    if (value == TN_NONE) continue;
    Output& output = outputs[i];
    const tn_param_def* const param = def ? param_at(def->outputs, def->output_count, i) : nullptr;
    if (param && (!output.typed || output.type.dtype == TN_DTYPE_NONE)) {
      const std::string_view name = view(param->type);
      const Binding* const binding = bound(name);
      const auto concrete = binding ? std::optional<tn_dtype>(binding->type.dtype) : dtype_from_name(name);
      if (concrete && !output.typed)
        output.type = {binding ? binding->type.kind : uint32_t(TN_KIND_TENSOR), *concrete, -1, 0, nullptr};
      else if (concrete)
        output.type.dtype = *concrete;
    }
    output.type.dims = output.dims.data();
    if (!output.typed && output.type.kind == TN_KIND_NONE) output.type.rank = -1;
    store.set_type(value, output.type);
    if (output.has_elements)
      store.set_elements(value, output.elements.data(), static_cast<uint32_t>(output.elements.size()));
    else
      store.clear_elements(value);
  }
  store.inferred(id);
}

tn_status tn_infer::infer_region(uint32_t r, const tn_type* types, uint32_t count) {
  if (r >= info.region_count) {
    error(fmt::format("has {} regions; region {} was asked for", info.region_count, r));
    return TN_ERR_INVALID;
  }
  const tn_region region = info.regions[r];
  const std::vector<tn_value> region_inputs = graph.region(region).inputs;
  if (count > region_inputs.size()) {
    error(fmt::format("gives {} values to region '{}', which has {} inputs", count, graph.region_name(region),
                      region_inputs.size()));
    return TN_ERR_INVALID;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (types[i].kind != TN_KIND_NONE) store.set_type(region_inputs[i], types[i]);
    store.clear_elements(region_inputs[i]);
  }
  for (const tn_node node : std::vector<tn_node>(graph.nodes(region).begin(), graph.nodes(region).end())) {
    const tn_status status = infer_node(graph, registry, node, store, diagnostics);
    if (status != TN_OK) {
      failed = reported = true;
      return status;
    }
  }
  region_outputs.clear();
  for (const tn_value output : graph.region(region).outputs) region_outputs.push_back(store.type(output));
  return TN_OK;
}

namespace {
template <class R, class F>
R guarded(tn_infer* infer, R otherwise, F&& body) noexcept {
  try {
    return body();
  } catch (const std::exception& error) {
    try {
      infer->error(error.what());
    } catch (...) {
      infer->failed = true;
    }
    return otherwise;
  }
}

const tn_node_info* api_node(tn_infer* infer) { return &infer->info; }
tn_graph* api_graph(tn_infer* infer) { return &infer->graph; }
const tn_type* api_input_type(tn_infer* infer, uint32_t i) {
  return i < infer->info.input_count && infer->info.inputs[i] != TN_NONE ? &infer->inputs[i] : nullptr;
}
int api_input_elements(tn_infer* infer, uint32_t i, const tn_dim** elements, uint32_t* count) {
  return guarded<int>(infer, 0, [&] {
    return api_input_type(infer, i) && infer->store.elements(infer->info.inputs[i], elements, count) &&
           *count <= max_known_elements;
  });
}
int api_input_data(tn_infer* infer, uint32_t i, tn_tensor* out) {
  return guarded<int>(
      infer, 0, [&] { return api_input_type(infer, i) && infer->store.data(infer->info.inputs[i], out); });
}
tn_status api_set_output(tn_infer* infer, uint32_t i, const tn_type* type) {
  return guarded<tn_status>(infer, TN_ERR_INTERNAL, [&]() -> tn_status {
    if (i >= infer->info.output_count) return TN_OK;  // an optional result that the node does not have
    if (type->kind > TN_KIND_OPTIONAL_SEQUENCE || (type->rank > 0 && !type->dims)) {
      infer->error(fmt::format("its operator's inference gave result {} a malformed type", i));
      return TN_ERR_INVALID;
    }
    const SymbolTable& symbols = infer->graph.symbols();
    for (int32_t d = 0; d < type->rank; ++d) {
      int64_t lo = 0, hi = 0;
      if (!symbols.is_known_handle(type->dims[d])) {
        infer->error(
            fmt::format("its operator's inference gave dimension {} of result {} an unknown handle {}", d, i,
                        type->dims[d]));
        return TN_ERR_INVALID;
      }
      symbols.range(type->dims[d], &lo, &hi);
      if (hi < 0) {
        infer->error(fmt::format("dimension {} of result {} would be {}; dimensions are not negative", d, i,
                                 symbols.text(type->dims[d])));
        return TN_ERR_INVALID;
      }
    }
    tn_infer::Output& output = infer->outputs[i];
    output.dims.assign(type->dims, type->dims + std::max(type->rank, 0));
    output.type = *type;
    output.type.rank = std::max(type->rank, -1);
    output.typed = type->kind != TN_KIND_NONE;
    return TN_OK;
  });
}
tn_status api_set_output_elements(tn_infer* infer, uint32_t i, const tn_dim* elements, uint32_t count) {
  return guarded<tn_status>(infer, TN_ERR_INTERNAL, [&]() -> tn_status {
    if (i >= infer->info.output_count || count > max_known_elements) return TN_OK;
    infer->outputs[i].elements.assign(elements, elements + count);
    infer->outputs[i].has_elements = true;
    return TN_OK;
  });
}
tn_dim api_data_dependent(tn_infer* infer, uint32_t output, uint32_t axis, int64_t lo, int64_t hi) {
  return guarded<tn_dim>(infer, 0,
                         [&] { return infer->store.data_dependent(infer->id, output, axis, lo, hi); });
}
tn_status api_infer_region(tn_infer* infer, uint32_t r, const tn_type* inputs, uint32_t count,
                           const tn_type** outputs, uint32_t* output_count) {
  return guarded<tn_status>(infer, TN_ERR_INTERNAL, [&]() -> tn_status {
    const tn_status status = infer->infer_region(r, inputs, count);
    if (outputs) *outputs = infer->region_outputs.data();
    if (output_count)
      *output_count = status == TN_OK ? static_cast<uint32_t>(infer->region_outputs.size()) : 0;
    return status;
  });
}
int api_region_elements(tn_infer* infer, uint32_t r, uint32_t i, const tn_dim** elements, uint32_t* count) {
  return guarded<int>(infer, 0, [&] {
    if (r >= infer->info.region_count) return false;
    const auto& outputs = infer->graph.region(infer->info.regions[r]).outputs;
    return i < outputs.size() && infer->store.elements(outputs[i], elements, count);
  });
}
void api_fail(tn_infer* infer, tn_str text) {
  guarded<int>(infer, 0, [&] {
    infer->error(string(text));
    return 0;
  });
}

tn_infer_api make_api() {
  return {sizeof(tn_infer_api),
          0,
          api_node,
          api_graph,
          api_input_type,
          api_input_elements,
          api_input_data,
          api_set_output,
          api_set_output_elements,
          api_data_dependent,
          api_infer_region,
          api_region_elements,
          api_fail,
          symbols_api(),
          graph_api()};
}
}  // namespace

namespace tenon {

tn_status infer_node(Graph& graph, const OpRegistry& registry, tn_node node, TypeStore& store,
                     Diagnostics& diagnostics) {
  tn_infer infer(graph, registry, node, store, diagnostics);
  infer.outputs.resize(infer.info.output_count);
  for (auto& output : infer.outputs) output.type.rank = -1;
  infer.inputs.reserve(infer.info.input_count);
  const tn_type nothing{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr};
  for (uint32_t i = 0; i < infer.info.input_count; ++i)
    infer.inputs.push_back(infer.info.inputs[i] == TN_NONE ? nothing : store.type(infer.info.inputs[i]));

  const OpEntry* const entry = registry.find(infer.info.op);
  const tn_op_def* const def = entry ? entry->def : nullptr;
  const bool older =
      def && def->upgrade && infer.info.op_version != 0 && infer.info.op_version < def->since_version;
  if (!def || older) {
    // An operator nobody defines, with one body over its operands, has the types of that body.
    if (!def && infer.info.region_count == 1 &&
        graph.region(infer.info.regions[0]).inputs.size() == infer.info.input_count) {
      if (const tn_status status = infer.infer_region(0, infer.inputs.data(), infer.info.input_count);
          status != TN_OK)
        return status;
      for (uint32_t i = 0; i < infer.info.output_count && i < infer.region_outputs.size(); ++i) {
        const tn_type type = infer.region_outputs[i];
        api_set_output(&infer, i, &type);
      }
    }
    infer.finish(nullptr);
    return TN_OK;
  }
  if (!infer.check_counts(*def) || !infer.check_attributes(*def) || !infer.check_types(*def))
    return TN_ERR_INVALID;
  if (TN_HAS(def, infer) && def->infer) {
    const tn_status status = def->infer(entry->instance, &infer_api(), &infer);
    if (status != TN_OK || infer.failed) {
      if (!infer.reported)
        infer.error("its types cannot be inferred, and the operator's definition does not say why");
      return status == TN_OK || status == TN_DECLINED ? TN_ERR_INVALID : status;
    }
  }
  infer.finish(def);
  return TN_OK;
}

}  // namespace tenon
