// A few operators for tests of the graph: enough to infer, to widen, to fail and to own regions.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"

namespace tenon::test {

inline tn_str str(std::string_view text) { return {text.data(), text.size()}; }

// Same type as operand 0.
inline tn_status infer_same(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type* type = api->input_type(infer, 0);
  return type ? api->set_output(infer, 0, type) : TN_OK;
}
// Equal dims of both operands required.
inline tn_status infer_add(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type *a = api->input_type(infer, 0), *b = api->input_type(infer, 1);
  if (a->rank >= 0 && b->rank >= 0) {
    if (a->rank != b->rank) {
      api->fail(infer, str("ranks differ"));
      return TN_ERR_INVALID;
    }
    for (int i = 0; i < a->rank; ++i)
      if (api->symbols->compare(api->graph(infer), TN_DIM_EQ, a->dims[i], b->dims[i]) == TN_NO) {
        api->fail(infer, str("shapes differ"));
        return TN_ERR_INVALID;
      }
  }
  return api->set_output(infer, 0, a);
}
// Rank doubled in place: [a, b] -> [2a, b].
inline tn_status infer_double(void*, const tn_infer_api* api, tn_infer* infer) {
  tn_type type = *api->input_type(infer, 0);
  if (type.rank < 1) return api->set_output(infer, 0, &type);
  std::vector<tn_dim> dims(type.dims, type.dims + type.rank);
  dims[0] = api->symbols->combine(api->graph(infer), TN_DIM_MUL, dims[0], 2);
  type.dims = dims.data();
  return api->set_output(infer, 0, &type);
}
inline tn_status infer_shape(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type* in = api->input_type(infer, 0);
  const tn_dim rank = in->rank;
  const tn_type type{TN_KIND_TENSOR, TN_INT64, in->rank < 0 ? -1 : 1, 0, &rank};
  api->set_output(infer, 0, &type);
  return in->rank < 0 ? TN_OK : api->set_output_elements(infer, 0, in->dims, static_cast<uint32_t>(in->rank));
}
inline tn_status infer_reshape(void*, const tn_infer_api* api, tn_infer* infer) {
  tn_type type = *api->input_type(infer, 0);
  const tn_dim* elements = nullptr;
  uint32_t count = 0;
  type.rank = -1;
  if (api->input_elements(infer, 1, &elements, &count)) {
    type.rank = static_cast<int32_t>(count);
    type.dims = elements;
  }
  return api->set_output(infer, 0, &type);
}
inline tn_status infer_nonzero(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_dim dim = api->data_dependent(infer, 0, 0, 0, 100);
  const tn_type type{TN_KIND_TENSOR, TN_INT64, 1, 0, &dim};
  return api->set_output(infer, 0, &type);
}
inline tn_status infer_if(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type* outputs = nullptr;
  uint32_t count = 0;
  if (tn_status status = api->infer_region(infer, 0, nullptr, 0, &outputs, &count); status != TN_OK)
    return status;
  for (uint32_t i = 0; i < count; ++i) api->set_output(infer, i, &outputs[i]);
  return TN_OK;
}

class FakeOps final : public OpRegistry {
 public:
  FakeOps() {
    static const tn_dtype floats[] = {TN_FLOAT32, TN_FLOAT64};
    static const tn_type_var any[] = {{str("T"), nullptr, 0, 0}};
    static const tn_type_var float_only[] = {{str("T"), floats, 2, 0}};
    static const tn_param_def one_in[] = {{str("X"), str("T"), 0, 0}};
    static const tn_param_def two_in[] = {{str("A"), str("T"), 0, 0}, {str("B"), str("T"), 0, 0}};
    static const tn_param_def out[] = {{str("Y"), str("T"), 0, 0}};
    static const tn_param_def int_out[] = {{str("Y"), str("int64"), 0, 0}};
    static const tn_param_def reshape_in[] = {{str("X"), str("T"), 0, 0}, {str("shape"), str("int64"), 0, 0}};
    static const tn_param_def many_out[] = {
        {str("Y"), str("V"), TN_PARAM_VARIADIC | TN_PARAM_HETEROGENEOUS, 0}};
    static const tn_param_def bool_in[] = {{str("cond"), str("bool"), 0, 0}};
    static const tn_attr_def alpha[] = {{str("alpha"), TN_ATTR_FLOAT, 1, 0, 0, 0, 0, {nullptr, 0}, nullptr}};
    add("Relu", one_in, 1, out, 1, float_only, infer_same);
    add("Neg", one_in, 1, out, 1, any, infer_same);
    add("Vague", one_in, 1, out, 1, any, nullptr);
    add("Add", two_in, 2, out, 1, any, infer_add);
    add("Double", one_in, 1, out, 1, any, infer_double);
    add("Shape", one_in, 1, int_out, 1, any, infer_shape);
    add("Reshape", reshape_in, 2, out, 1, any, infer_reshape);
    add("NonZero", one_in, 1, int_out, 1, any, infer_nonzero);
    add("If", bool_in, 1, many_out, 1, any, infer_if);
    add("Leaky", one_in, 1, out, 1, any, infer_same);
    defs_.back()->attrs = alpha;
    defs_.back()->attr_count = 1;
  }
  const OpEntry* find(tn_sym op) const override {
    const auto at = entries_.find(op);
    return at == entries_.end() ? nullptr : &at->second;
  }
  int32_t domain_version(std::string_view domain) const override { return domain.empty() ? 28 : 0; }

 private:
  void add(const char* name, const tn_param_def* inputs, uint32_t input_count, const tn_param_def* outputs,
           uint32_t output_count, const tn_type_var* variables,
           tn_status (*infer)(void*, const tn_infer_api*, tn_infer*)) {
    auto def = std::make_unique<tn_op_def>();
    *def = {};
    def->size = sizeof(tn_op_def);
    def->since_version = 1;
    def->name = str(name);
    def->inputs = inputs;
    def->outputs = outputs;
    def->input_count = def->min_inputs = input_count;
    def->output_count = output_count;
    def->type_vars = variables;
    def->type_var_count = 1;
    def->infer = infer;
    entries_[intern(name)] = {def.get(), nullptr};
    defs_.push_back(std::move(def));
  }
  std::vector<std::unique_ptr<tn_op_def>> defs_;
  std::map<tn_sym, OpEntry> entries_;
};

inline const FakeOps& fake_ops() {
  static const FakeOps ops;
  return ops;
}

// Short ways to say edits; each checks nothing: tests look at what comes back.
struct Editor {
  explicit Editor(tn_edit* e) : edit(e) {}
  tn_value input(std::string_view name, tn_dtype dtype, std::vector<tn_dim> dims, tn_region region = 0) {
    const tn_type type{TN_KIND_TENSOR, dtype, static_cast<int32_t>(dims.size()), 0, dims.data()};
    tn_value value = TN_NONE;
    status = edit_api()->region_input(edit, region, str(name), &type, &value);
    return value;
  }
  tn_node node(std::string_view op, std::vector<tn_value> inputs, std::vector<std::string> outputs = {},
               std::string_view name = {}, tn_region region = 0, tn_node before = TN_NONE,
               std::vector<tn_node> origins = {}, std::vector<tn_attr> attrs = {}) {
    std::vector<tn_str> names;
    for (const auto& text : outputs) names.push_back(str(text));
    tn_node_desc desc{};
    desc.size = sizeof desc;
    desc.op = intern(op);
    desc.region = region;
    desc.before = before;
    desc.name = str(name);
    desc.inputs = inputs.data();
    desc.input_count = static_cast<uint32_t>(inputs.size());
    desc.attrs = attrs.data();
    desc.attr_count = static_cast<uint32_t>(attrs.size());
    desc.output_names = outputs.empty() ? nullptr : names.data();
    desc.output_count = outputs.empty() ? 1 : static_cast<uint32_t>(outputs.size());
    desc.origins = origins.data();
    desc.origin_count = static_cast<uint32_t>(origins.size());
    tn_node id = TN_NONE;
    status = edit_api()->create_node(edit, &desc, &id);
    return id;
  }
  tn_value ints(std::string_view name, std::vector<int64_t> numbers) {
    const int64_t count = static_cast<int64_t>(numbers.size());
    const tn_tensor tensor{TN_INT64, 1, &count, numbers.data(), numbers.size() * 8};
    tn_value value = TN_NONE;
    status = edit_api()->constant_copy(edit, str(name), &tensor, &value);
    return value;
  }
  tn_status outputs(std::vector<tn_value> values, tn_region region = 0) {
    return status =
               edit_api()->region_outputs(edit, region, values.data(), static_cast<uint32_t>(values.size()));
  }
  tn_edit* edit;
  tn_status status = TN_OK;
};

// x -> Relu -> Neg -> y, all float32[N, 4].
inline std::unique_ptr<Graph> small_chain() {
  auto graph = std::make_unique<Graph>();
  graph->set_registry(&fake_ops());
  Transaction build(*graph, "test", TN_EDIT_BUILD);
  Editor e(build.get());
  const tn_value x = e.input("x", TN_FLOAT32, {graph->symbols().named("N"), 4});
  const tn_node relu = e.node("Relu", {x}, {"a"}, "relu");
  const tn_node neg = e.node("Neg", {graph->node(relu).output(0)}, {"y"}, "neg");
  e.outputs({graph->node(neg).output(0)});
  Diagnostics found;
  build.commit(found);
  found.throw_if_errors(2);
  infer_graph(*graph, found);
  found.throw_if_errors(2);
  return graph;
}

}  // namespace tenon::test
