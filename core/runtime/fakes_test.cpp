#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"
#include "core/runtime/test_fakes.hpp"

namespace tenon::fakes {
namespace {

constexpr tn_str text(const char* s) { return {s, __builtin_strlen(s)}; }

uint64_t count_of(const tn_type& type) {
  uint64_t n = 1;
  for (int32_t d = 0; d < type.rank; ++d) n *= static_cast<uint64_t>(type.dims[d]);
  return n;
}
uint64_t count_of(const tn_tensor& tensor) { return tensor.bytes / (TN_DTYPE_BITS(tensor.dtype) / 8); }

// --- inference

tn_status like_first(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type* type = api->input_type(infer, 0);
  return type == nullptr || type->kind == TN_KIND_NONE ? TN_OK : api->set_output(infer, 0, type);
}

tn_status reshape_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type* type = api->input_type(infer, 0);
  const tn_dim* dims = nullptr;
  uint32_t count = 0;
  tn_type result{TN_KIND_TENSOR, type->dtype, -1, 0, nullptr};
  if (api->input_elements(infer, 1, &dims, &count)) {
    result.rank = static_cast<int32_t>(count);
    result.dims = dims;
  }
  return api->set_output(infer, 0, &result);
}

tn_status shape_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type* type = api->input_type(infer, 0);
  tn_dim rank = type->rank;
  const tn_type result{TN_KIND_TENSOR, TN_INT64, 1, 0, &rank};
  if (type->rank < 0) return TN_OK;
  const std::vector<tn_dim> dims(type->dims, type->dims + type->rank);
  const tn_status status = api->set_output(infer, 0, &result);
  return status != TN_OK
             ? status
             : api->set_output_elements(infer, 0, dims.data(), static_cast<uint32_t>(dims.size()));
}

tn_status positive_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  tn_dim dim = api->data_dependent(infer, 0, 0, 0, TN_DIM_MAX);
  const tn_type result{TN_KIND_TENSOR, TN_FLOAT32, 1, 0, &dim};
  return api->set_output(infer, 0, &result);
}

tn_status count_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  tn_dim one = 1;
  const tn_type result{TN_KIND_TENSOR, TN_INT64, 1, 0, &one};
  return api->set_output(infer, 0, &result);
}

tn_status fill_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_dim* elements = nullptr;
  uint32_t count = 0;
  tn_type result{TN_KIND_TENSOR, TN_FLOAT32, 1, 0, nullptr};
  tn_dim dim = api->input_elements(infer, 0, &elements, &count)
                   ? elements[0]
                   : api->data_dependent(infer, 0, 0, 0, TN_DIM_MAX);
  result.dims = &dim;
  return api->set_output(infer, 0, &result);
}

tn_status if_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type* outputs = nullptr;
  uint32_t count = 0;
  const tn_status status = api->infer_region(infer, 0, nullptr, 0, &outputs, &count);
  if (status != TN_OK) return status;
  std::vector<tn_dim> dims(outputs[0].dims, outputs[0].dims + std::max(outputs[0].rank, 0));
  tn_type first = outputs[0];
  first.dims = dims.data();
  const tn_status second = api->infer_region(infer, 1, nullptr, 0, &outputs, &count);
  if (second != TN_OK) return second;
  const bool same = first.rank == outputs[0].rank && std::equal(dims.begin(), dims.end(), outputs[0].dims);
  if (!same) first.rank = -1;
  return api->set_output(infer, 0, &first);
}

tn_status loop_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type* carried = api->input_type(infer, 1);
  const tn_type types[] = {{TN_KIND_TENSOR, TN_INT64, 0, 0, nullptr}, *carried};
  const tn_type* outputs = nullptr;
  uint32_t count = 0;
  const tn_status status = api->infer_region(infer, 0, types, 2, &outputs, &count);
  return status != TN_OK ? status : api->set_output(infer, 0, &outputs[0]);
}

template <int64_t D0, int64_t D1>
tn_status big_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_dim dims[] = {D0, D1};
  const tn_type result{TN_KIND_TENSOR, TN_FLOAT32, 2, 0, dims};
  return api->set_output(infer, 0, &result);
}

tn_status seq_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type result{TN_KIND_SEQUENCE, TN_FLOAT32, -1, 0, nullptr};
  return api->set_output(infer, 0, &result);
}
tn_status at_infer(void*, const tn_infer_api* api, tn_infer* infer) {
  const tn_type result{TN_KIND_TENSOR, TN_FLOAT32, -1, 0, nullptr};
  return api->set_output(infer, 0, &result);
}

// --- kernels: the state is the element count

struct State {
  uint64_t count;
  const float* packed;
};

template <tn_kernel_fn F, uint32_t Tiles = 1>
tn_status plan(void*, const tn_plan_view* view, tn_planned* out, const tn_diag*) {
  ++counters().plans;
  const tn_type& type = view->outputs[0].type;
  out->fn = F;
  out->tiles = Tiles;
  out->state = new State{type.kind == TN_KIND_TENSOR && type.rank >= 0 ? count_of(type) : 0, nullptr};
  out->free_state = [](void* s) { delete static_cast<State*>(s); };
  return TN_OK;
}
uint64_t count_in(const tn_kernel_args* a) { return static_cast<const State*>(a->state)->count; }
const float* in(const tn_kernel_args* a, int i) { return static_cast<const float*>(a->inputs[i]); }
float* out(const tn_kernel_args* a, int i = 0) { return static_cast<float*>(a->outputs[i]); }

int add(const tn_kernel_args* a, uint32_t, uint32_t) {
  ++counters().runs;
  for (uint64_t i = 0; i < count_in(a); ++i) out(a)[i] = in(a, 0)[i] + in(a, 1)[i];
  return 0;
}
int neg(const tn_kernel_args* a, uint32_t, uint32_t) {
  if (a->inputs[0] == a->outputs[0]) ++counters().in_place;
  for (uint64_t i = 0; i < count_in(a); ++i) out(a)[i] = -in(a, 0)[i];
  return 0;
}
int twice(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  auto* mine =
      reinterpret_cast<uint64_t*>(static_cast<uint8_t*>(a->workspace) + worker * a->workspace_stride);
  mine[0] = tile;
  const uint64_t n = count_in(a), from = n * tile / 8, to = n * (tile + 1) / 8;
  for (uint64_t i = from; i < to; ++i) out(a)[i] = 2 * in(a, 0)[i];
  return mine[0] == tile ? 0 : 1;
}
tn_status plan_twice(void* instance, const tn_plan_view* view, tn_planned* out, const tn_diag* diag) {
  const tn_status status = plan<twice, 8>(instance, view, out, diag);
  out->workspace_bytes = 8;
  return status;
}
int scale(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto* state = static_cast<const State*>(a->state);
  for (uint64_t i = 0; i < state->count; ++i) out(a)[i] = in(a, 0)[i] * state->packed[0];
  return 0;
}
tn_status plan_scale(void* instance, const tn_plan_view* view, tn_planned* planned, const tn_diag* diag) {
  plan<scale>(instance, view, planned, diag);
  const void* blob = nullptr;
  const tn_status status = view->packed(
      view->context, 1, text("t.scale"), 64,
      [](void*, const tn_tensor* source, void* dst) -> tn_status {
        ++counters().packs;
        std::memcpy(dst, source->data, sizeof(float));
        return TN_OK;
      },
      nullptr, &blob);
  static_cast<State*>(planned->state)->packed = static_cast<const float*>(blob);
  return status;
}
int positive(const tn_kernel_args* a, uint32_t, uint32_t) {
  tn_tensor x{};
  a->api->input_tensor(a->run, 0, &x);
  std::vector<float> kept;
  for (uint64_t i = 0; i < count_of(x); ++i) {
    if (static_cast<const float*>(x.data)[i] > 0) kept.push_back(static_cast<const float*>(x.data)[i]);
  }
  const int64_t dim = static_cast<int64_t>(kept.size());
  void* data = nullptr;
  if (a->api->output_tensor(a->run, 0, TN_FLOAT32, 1, &dim, &data) != TN_OK) return 1;
  std::copy(kept.begin(), kept.end(), static_cast<float*>(data));
  return 0;
}
int count_positives(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto* state = static_cast<const State*>(a->state);
  int64_t n = 0;
  for (uint64_t i = 0; i < state->count; ++i) n += in(a, 0)[i] > 0 ? 1 : 0;
  static_cast<int64_t*>(a->outputs[0])[0] = n;
  return 0;
}
tn_status plan_count(void*, const tn_plan_view* view, tn_planned* out, const tn_diag*) {
  out->fn = count_positives;
  out->state = new State{count_of(view->inputs[0].type), nullptr};
  out->free_state = [](void* s) { delete static_cast<State*>(s); };
  return TN_OK;
}
int fill(const tn_kernel_args* a, uint32_t, uint32_t) {
  for (uint64_t i = 0; i < count_in(a); ++i) out(a)[i] = 1;
  return 0;
}
int overrun(const tn_kernel_args* a, uint32_t, uint32_t) {
  for (uint64_t i = 0; i <= count_in(a); ++i) out(a)[i] = in(a, 0)[std::min(i, count_in(a) - 1)];
  return 0;
}
int fails(const tn_kernel_args* a, uint32_t, uint32_t) {
  a->api->fail(a->run, text("index 7 is out of range 0..3"));
  return 1;
}
int run_if(const tn_kernel_args* a, uint32_t, uint32_t) {
  tn_tensor cond{};
  a->api->input_tensor(a->run, 0, &cond);
  tn_any* result = nullptr;
  if (a->api->run_region(a->run, *static_cast<const uint8_t*>(cond.data) != 0 ? 0 : 1, nullptr, 0, &result,
                         1) != TN_OK)
    return 1;
  const tn_status status = a->api->set_output(a->run, 0, result);
  a->api->release(result);
  return status;
}
int run_loop(const tn_kernel_args* a, uint32_t, uint32_t) {
  tn_tensor n{};
  a->api->input_tensor(a->run, 0, &n);
  tn_any* carried = a->api->input(a->run, 1);
  a->api->retain(carried);
  for (int64_t i = 0; i < static_cast<const int64_t*>(n.data)[0]; ++i) {
    tn_any* number = nullptr;
    void* data = nullptr;
    a->api->new_tensor(a->run, TN_INT64, 0, nullptr, &number, &data);
    static_cast<int64_t*>(data)[0] = i;
    tn_any* inputs[] = {number, carried};
    tn_any* result = nullptr;
    const tn_status status = a->api->run_region(a->run, 0, inputs, 2, &result, 1);
    a->api->release(number);
    a->api->release(carried);
    if (status != TN_OK) return 1;
    carried = result;
  }
  const tn_status status = a->api->set_output(a->run, 0, carried);
  a->api->release(carried);
  return status;
}
int sequence(const tn_kernel_args* a, uint32_t, uint32_t) {
  tn_any* items[] = {a->api->input(a->run, 0), a->api->input(a->run, 1)};
  tn_any* made = nullptr;
  a->api->new_sequence(a->run, items, 2, TN_FLOAT32, &made);
  const tn_status status = a->api->set_output(a->run, 0, made);
  a->api->release(made);
  return status;
}
int at(const tn_kernel_args* a, uint32_t, uint32_t) {
  tn_tensor index{};
  a->api->input_tensor(a->run, 1, &index);
  tn_any* item = a->api->sequence_item(a->api->input(a->run, 0),
                                       static_cast<uint32_t>(static_cast<const int64_t*>(index.data)[0]));
  return a->api->set_output(a->run, 0, item);
}
tn_status picky_match(void*, const tn_plan_view* view, const tn_diag* why) {
  if (count_of(view->outputs[0].type) % 2 == 0) return TN_OK;
  why->report(why->context, TN_SEVERITY_INFO, {}, {}, text("takes an even number of elements"));
  return TN_DECLINED;
}

// Neg(Neg(x)): the same, made of simpler nodes.
tn_status decompose(void*, const tn_graph_api* g, const tn_edit_api* e, tn_graph* graph, tn_edit* edit,
                    tn_node node, const tn_diag*) {
  tn_node_info info{};
  info.size = sizeof info;
  g->node(graph, node, &info);
  tn_value value = info.inputs[0];
  const tn_value result = info.outputs[0];
  for (int i = 0; i < 2; ++i) {
    tn_node_desc desc{};
    desc.size = sizeof desc;
    desc.op = g->symbol(text("t::Neg"));
    desc.region = info.region;
    desc.before = node;
    desc.inputs = &value;
    desc.input_count = 1;
    desc.output_count = 1;
    tn_node made = TN_NONE;
    if (e->create_node(edit, &desc, &made) != TN_OK) return TN_ERR_INTERNAL;
    tn_node_info made_info{};
    made_info.size = sizeof made_info;
    g->node(graph, made, &made_info);
    value = made_info.outputs[0];
  }
  return e->replace_uses(edit, result, value);
}

// --- tables

struct Tables {
  std::deque<tn_op_def> ops;
  std::deque<tn_kernel_record> kernels;
  std::deque<std::string> texts;
  std::deque<std::vector<tn_param_def>> params;
  std::vector<const tn_op_def*> op_list;
  std::vector<const tn_kernel_record*> kernel_list;
  tn_op_list op_table{};
  tn_kernel_list kernel_table{};
  tn_plugin plugin{};

  tn_str keep(const std::string& s) { return to_abi(texts.emplace_back(s)); }

  tn_op_def& op(const char* name, uint32_t inputs, uint32_t flags, decltype(tn_op_def::infer) infer) {
    tn_op_def& def = ops.emplace_back();
    def.size = sizeof def;
    def.since_version = def.first_version = 1;
    def.flags = flags;
    def.domain = text("t");
    def.name = keep(name);
    std::vector<tn_param_def>& p = params.emplace_back();
    for (uint32_t i = 0; i <= inputs; ++i)
      p.push_back({keep("p" + std::to_string(i)), keep("V" + std::to_string(i)), 0, 0});
    def.inputs = p.data();
    def.input_count = def.min_inputs = inputs;
    def.outputs = p.data() + inputs;
    def.output_count = def.min_outputs = 1;
    std::vector<tn_type_var>& v = vars.emplace_back();
    constexpr uint32_t all_kinds = 0x1e;
    for (uint32_t i = 0; i <= inputs; ++i) v.push_back({p[i].type, nullptr, 0, all_kinds});
    def.type_vars = v.data();
    def.type_var_count = static_cast<uint32_t>(v.size());
    def.infer = infer;
    op_list.push_back(&def);
    return def;
  }
  std::deque<std::vector<tn_type_var>> vars;

  tn_kernel_record& kernel(const char* id, const char* op_name, uint32_t flags,
                           decltype(tn_kernel_record::plan) plan_function) {
    tn_kernel_record& record = kernels.emplace_back();
    record.size = sizeof record;
    record.flags = flags;
    record.id = keep(id);
    record.op = keep(std::string("t::") + op_name);
    record.device = text("cpu");
    record.plan = plan_function;
    kernel_list.push_back(&record);
    return record;
  }
};
Tables* current = nullptr;  // what the table's functions answer from

const tn_alias in_place_alias[] = {{0, 0, TN_ALIAS_IN_PLACE, 0}};

void fill_tables(Tables& t) {
  t.op("Add", 2, TN_OP_ELEMENTWISE, like_first);
  t.op("Neg", 1, TN_OP_ELEMENTWISE, like_first);
  t.op("Twice", 1, 0, like_first);
  t.op("Scale", 2, 0, like_first);
  t.op("Reshape", 2, TN_OP_VIEW, reshape_infer);
  t.op("Shape", 1, TN_OP_SHAPE_ONLY, shape_infer);
  t.op("Positive", 1, 0, positive_infer);
  t.op("Count", 1, 0, count_infer);
  t.op("Fill", 1, 0, fill_infer);
  t.op("If", 1, TN_OP_CONTROL_FLOW, if_infer);
  t.op("Loop", 2, TN_OP_CONTROL_FLOW, loop_infer);
  t.op("Fused", 1, 0, like_first);
  t.op("Halve", 1, 0, like_first).decompose = decompose;
  t.op("Picky", 1, 0, like_first).decompose = decompose;
  t.op("Unknown", 1, 0, like_first);
  t.op("Overrun", 1, 0, like_first);
  t.op("Fails", 1, 0, like_first);
  t.op("Big", 1, 0, big_infer<1 << 20, 1 << 22>);
  t.op("Huge", 1, 0, big_infer<int64_t{1} << 40, int64_t{1} << 40>);
  t.op("Seq", 2, 0, seq_infer);
  t.op("At", 2, 0, at_infer);
  t.kernel("t.add/1", "Add", 0, plan<add>);
  tn_kernel_record& n = t.kernel("t.neg/1", "Neg", 0, plan<neg>);
  n.aliases = in_place_alias;
  n.alias_count = 1;
  t.kernel("t.twice/1", "Twice", 0, plan_twice);
  t.kernel("t.scale/1", "Scale", 0, plan_scale);
  t.kernel("t.positive/1", "Positive", TN_KERNEL_DYNAMIC_OUTPUT, plan<positive>);
  t.kernel("t.count/1", "Count", 0, plan_count);
  t.kernel("t.fill/1", "Fill", 0, plan<fill>);
  t.kernel("t.if/1", "If", TN_KERNEL_CONTROL_FLOW, plan<run_if>);
  t.kernel("t.loop/1", "Loop", TN_KERNEL_CONTROL_FLOW, plan<run_loop>);
  t.kernel("t.picky/1", "Picky", 0, plan<neg>).match = picky_match;
  t.kernel("t.overrun/1", "Overrun", 0, plan<overrun>);
  t.kernel("t.fails/1", "Fails", 0, plan<fails>);
  t.kernel("t.big/1", "Big", 0, plan<fill>);
  t.kernel("t.huge/1", "Huge", 0, plan<fill>);
  t.kernel("t.seq/1", "Seq", TN_KERNEL_DYNAMIC_OUTPUT, plan<sequence>);
  t.kernel("t.at/1", "At", TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT, plan<at>);
  // A second kernel of Add, for selection.
  t.kernel("t.reference.add/1", "Add", TN_KERNEL_REFERENCE, plan<add>);
}

}  // namespace

Counters& counters() {
  static Counters all;
  return all;
}

std::unique_ptr<Registries> registries(const std::vector<std::string>& without) {
  auto* tables = new Tables;  // plugin tables live until exit
  static std::deque<std::unique_ptr<Tables>> kept;
  kept.emplace_back(tables);
  fill_tables(*tables);
  std::erase_if(tables->kernel_list, [&](const tn_kernel_record* record) {
    return std::find(without.begin(), without.end(), string(record->id)) != without.end();
  });
  tables->op_table = {sizeof(tn_op_list), static_cast<uint32_t>(tables->op_list.size()),
                      tables->op_list.data()};
  tables->kernel_table = {sizeof(tn_kernel_list), static_cast<uint32_t>(tables->kernel_list.size()),
                          tables->kernel_list.data()};
  tables->plugin.size = sizeof(tn_plugin);
  tables->plugin.abi_major = TN_ABI_MAJOR;
  tables->plugin.id = text("test.fakes");
  tables->plugin.name = text("fakes");
  tables->plugin.version = text("1.0.0");
  tables->plugin.get_interface = [](const char* id) -> const void* {
    if (std::strcmp(id, TN_OPS_ID) == 0) return &current->op_table;
    if (std::strcmp(id, TN_KERNELS_ID) == 0) return &current->kernel_table;
    return nullptr;
  };
  current = tables;
  auto made = std::make_unique<Registries>();
  Diagnostics said;
  made->add_plugin(tables->plugin, nullptr, said);
  said.throw_if_errors(1);
  return made;
}

Builder::Builder(const Registries& registries) : graph_(std::make_unique<Graph>()) {
  graph_->set_registry(&registries);
  transaction_ = std::make_unique<Transaction>(*graph_, "test", TN_EDIT_BUILD);
}
Builder::~Builder() = default;

tn_value Builder::input(const std::string& name, tn_dtype dtype, const std::vector<std::string>& dims,
                        tn_region region) {
  std::vector<tn_dim> numbers;
  for (const std::string& dim : dims) {
    numbers.push_back(std::isdigit(dim[0]) != 0 ? std::stoll(dim) : graph_->symbols().named(dim));
  }
  const tn_type type{TN_KIND_TENSOR, dtype, static_cast<int32_t>(numbers.size()), 0, numbers.data()};
  tn_value value = TN_NONE;
  if (edit_api()->region_input(transaction_->get(), region, to_abi(name), &type, &value) != TN_OK)
    throw Error(1, "test", "input");
  return value;
}

tn_value Builder::node(const std::string& op, const std::vector<tn_value>& inputs, const std::string& name,
                       tn_region region) {
  tn_node_desc desc{};
  desc.size = sizeof desc;
  desc.op = intern(op.front() == '=' ? op.substr(1) : "t::" + op);
  desc.region = region;
  desc.before = TN_NONE;
  desc.name = to_abi(name);
  desc.inputs = inputs.data();
  desc.input_count = static_cast<uint32_t>(inputs.size());
  desc.output_count = 1;
  tn_node node = TN_NONE;
  if (edit_api()->create_node(transaction_->get(), &desc, &node) != TN_OK)
    throw Error(1, "test", "node " + op);
  return graph_->node(node).output(0);
}

namespace {
tn_value constant(Transaction& transaction, const tn_tensor& tensor) {
  tn_value value = TN_NONE;
  if (edit_api()->constant_copy(transaction.get(), {}, &tensor, &value) != TN_OK)
    throw Error(1, "test", "constant");
  return value;
}
}  // namespace

tn_value Builder::floats(const std::vector<float>& values, std::vector<int64_t> dims) {
  return constant(*transaction_, {TN_FLOAT32, static_cast<int32_t>(dims.size()), dims.data(),
                                  const_cast<float*>(values.data()), values.size() * 4});
}
tn_value Builder::ints(const std::vector<int64_t>& values) {
  const int64_t dim = static_cast<int64_t>(values.size());
  return constant(*transaction_, {TN_INT64, 1, &dim, const_cast<int64_t*>(values.data()), values.size() * 8});
}
tn_value Builder::scalar(int64_t value) { return constant(*transaction_, {TN_INT64, 0, nullptr, &value, 8}); }
tn_value Builder::boolean(bool value) { return constant(*transaction_, {TN_BOOL, 0, nullptr, &value, 1}); }

tn_region Builder::region(tn_value result_of, const std::string& name) {
  tn_region region = TN_NONE;
  const tn_node node = graph_->value(result_of).producer;
  if (edit_api()->create_region(transaction_->get(), node, to_abi(name), &region) != TN_OK)
    throw Error(1, "test", "region");
  return region;
}

void Builder::outputs(const std::vector<tn_value>& values, tn_region region) {
  if (edit_api()->region_outputs(transaction_->get(), region, values.data(),
                                 static_cast<uint32_t>(values.size())) != TN_OK)
    throw Error(1, "test", "outputs");
}
void Builder::output_default(tn_value input, tn_value constant_value) {
  if (edit_api()->input_default(transaction_->get(), input, constant_value) != TN_OK)
    throw Error(1, "test", "default");
}

std::unique_ptr<Graph> Builder::finish() {
  Diagnostics said;
  if (!transaction_->commit(said)) said.throw_if_errors(1);
  transaction_.reset();
  infer_graph(*graph_, said);
  said.throw_if_errors(1);
  return std::move(graph_);
}

std::vector<float> floats_of(const NamedOutput& output) {
  const tn_tensor tensor = output.tensor();
  const auto* data = static_cast<const float*>(tensor.data);
  return {data, data + tensor.bytes / sizeof(float)};
}
std::vector<int64_t> dims_of(const NamedOutput& output) { return output.value->dims; }

}  // namespace tenon::fakes
