#include "support/test_harness.hpp"

#include <catch2/catch.hpp>

extern "C" const tn_plugin* tenon_plugin_entry(uint32_t host_major);

namespace tenon::reference::test {
namespace {

// Symbols: their texts, interned for the process.
std::vector<std::unique_ptr<std::string>>& symbol_texts() {
  static std::vector<std::unique_ptr<std::string>> texts;
  return texts;
}
tn_sym intern(tn_str s) {
  auto& texts = symbol_texts();
  for (size_t i = 0; i < texts.size(); ++i)
    if (*texts[i] == view(s)) return static_cast<tn_sym>(i);
  texts.push_back(std::make_unique<std::string>(view(s)));
  return static_cast<tn_sym>(texts.size() - 1);
}
tn_str text_of(tn_sym s) { return str(*symbol_texts()[s]); }

const tn_kernel_list* kernels() {
  return static_cast<const tn_kernel_list*>(tenon_plugin_entry(TN_ABI_MAJOR)->get_interface(TN_KERNELS_ID));
}

constexpr size_t guard_bytes = 64;
constexpr uint8_t guard = 0xa5;

struct Guarded {
  std::vector<uint8_t> memory;
  size_t bytes = 0;
  explicit Guarded(size_t n) : memory(n + 3 * guard_bytes, guard), bytes(n) {}
  uint8_t* data() {  // 64-byte aligned, guards on both sides
    const auto at = reinterpret_cast<uintptr_t>(memory.data()) + guard_bytes;
    return reinterpret_cast<uint8_t*>((at + 63) / 64 * 64);
  }
  bool intact() {
    const uint8_t *from = memory.data(), *first = data(), *last = first + bytes, *end = from + memory.size();
    return std::all_of(from, first, [](uint8_t b) { return b == guard; }) &&
           std::all_of(last, static_cast<const uint8_t*>(end), [](uint8_t b) { return b == guard; });
  }
};

}  // namespace
}  // namespace tenon::reference::test

// What the host hands out as a counted value.
struct tn_any {
  tenon::reference::test::Value value;
  std::vector<tn_any*> items;
  std::vector<std::string> texts;
  std::unique_ptr<tenon::reference::test::Guarded> memory;
  tn_tensor tensor{};
  int count = 1;
};
/// What plans laid out of constant operands, for as long as the run.
struct tn_plan_ctx {
  const std::vector<tn_operand>* inputs = nullptr;
  std::vector<std::vector<uint64_t>> blobs;
};

struct tn_run {
  tenon::reference::test::Call* call = nullptr;
  std::vector<tn_any*> inputs, outputs, all;
  std::vector<std::unique_ptr<std::string>> kept;
  std::string failure;
  uint64_t seed = 7;
};

namespace tenon::reference::test {
namespace {

tn_any* make(tn_run* run, const Value& v) {
  auto* any = new tn_any;
  run->all.push_back(any);
  any->value = v;
  for (const auto& i : v.items) any->items.push_back(make(run, i));
  if (v.kind == TN_KIND_TENSOR) {
    auto& t = any->value.tensor;
    t.raw();
    any->memory = std::make_unique<Guarded>(t.bytes.size());
    if (!t.bytes.empty()) std::memcpy(any->memory->data(), t.bytes.data(), t.bytes.size());
    any->tensor = {t.dtype, static_cast<int32_t>(t.dims.size()), t.dims.data(), any->memory->data(),
                   t.bytes.size()};
    if (t.dtype == TN_STRING)
      for (size_t i = 0; i < t.texts.size(); ++i) static_cast<tn_str*>(any->tensor.data)[i] = str(t.texts[i]);
  }
  return any;
}
Value value_of(tn_any* any) {
  Value v;
  v.kind = any->value.kind;
  if (v.kind == TN_KIND_TENSOR) {
    const auto& t = any->tensor;
    v.tensor.dtype = t.dtype;
    v.tensor.dims.assign(t.dims, t.dims + t.rank);
    const auto* data = static_cast<const uint8_t*>(t.data);
    if (t.dtype == TN_STRING)
      for (uint64_t i = 0; i < t.bytes / sizeof(tn_str); ++i)
        v.tensor.texts.push_back(text(static_cast<const tn_str*>(t.data)[i]));
    else
      v.tensor.bytes.assign(data, data + t.bytes);
  }
  for (auto* i : any->items) v.items.push_back(value_of(i));
  return v;
}

tn_status new_tensor_any(tn_run* run, tn_dtype dtype, int32_t rank, const int64_t* dims, tn_any** any,
                         void** data) {
  Value v;
  v.tensor.dtype = dtype;
  v.tensor.dims.assign(dims, dims + rank);
  const auto n = element_count(v.tensor.dims);
  v.tensor.bytes.resize(packed_bytes(dtype, n));
  if (dtype == TN_STRING) v.tensor.texts.resize(static_cast<size_t>(n));
  *any = make(run, v);
  *data = (*any)->tensor.data;
  return TN_OK;
}

const tn_run_api api = {
    sizeof(tn_run_api),
    0,
    [](tn_run* run, tn_str text) { run->failure = view(text); },
    [](tn_run* run, uint32_t i, tn_tensor* out) -> tn_status {
      if (i >= run->inputs.size() || !run->inputs[i]) return TN_ERR_NOT_FOUND;
      if (run->inputs[i]->value.kind == TN_KIND_OPTIONAL) {
        if (run->inputs[i]->items.empty()) return TN_ERR_NOT_FOUND;
        *out = run->inputs[i]->items[0]->tensor;
        return TN_OK;
      }
      *out = run->inputs[i]->tensor;
      return TN_OK;
    },
    [](tn_run* run, uint32_t i, tn_dtype dtype, int32_t rank, const int64_t* dims, void** data) -> tn_status {
      return new_tensor_any(run, dtype, rank, dims, &run->outputs.at(i), data);
    },
    [](tn_run* run, uint32_t i) -> tn_any* { return i < run->inputs.size() ? run->inputs[i] : nullptr; },
    [](tn_run* run, uint32_t i, tn_any* any) -> tn_status {
      ++any->count;
      run->outputs.at(i) = any;
      return TN_OK;
    },
    [](tn_run* run, uint32_t r, tn_any* const* inputs, uint32_t input_count, tn_any** outputs,
       uint32_t output_count) -> tn_status {
      std::vector<Value> in;
      for (uint32_t i = 0; i < input_count; ++i) in.push_back(value_of(inputs[i]));
      const auto out = run->call->regions.at(r)(in);
      if (out.size() != output_count) return TN_ERR_INVALID;
      for (uint32_t i = 0; i < output_count; ++i) outputs[i] = make(run, out[i]);
      return TN_OK;
    },
    new_tensor_any,
    [](tn_run* run, tn_any* const* items, uint32_t count, tn_dtype, tn_any** any) -> tn_status {
      Value v;
      v.kind = TN_KIND_SEQUENCE;
      *any = make(run, v);
      for (uint32_t i = 0; i < count; ++i) {
        ++items[i]->count;
        (*any)->items.push_back(items[i]);
      }
      return TN_OK;
    },
    [](tn_run* run, tn_any* item, tn_any** any) -> tn_status {
      Value v;
      v.kind = TN_KIND_OPTIONAL;
      *any = make(run, v);
      if (item) {
        ++item->count;
        (*any)->items.push_back(item);
      }
      return TN_OK;
    },
    [](tn_any* any, tn_tensor* out) -> tn_status {
      if (any->value.kind != TN_KIND_TENSOR) return TN_ERR_INVALID;
      *out = any->tensor;
      return TN_OK;
    },
    [](tn_any* any) -> uint32_t { return any->value.kind; },
    [](tn_any* any) -> uint32_t { return static_cast<uint32_t>(any->items.size()); },
    [](tn_any* any, uint32_t i) -> tn_any* { return i < any->items.size() ? any->items[i] : nullptr; },
    [](tn_any* any) { ++any->count; },
    [](tn_any* any) { --any->count; },
    [](tn_run* run, tn_str text) -> tn_str {
      run->kept.push_back(std::make_unique<std::string>(view(text)));
      return str(*run->kept.back());
    },
    [](tn_run* run) -> uint64_t { return run->seed++; }};

tn_type type_of(const Value& v) {
  if (v.kind == TN_KIND_TENSOR)
    return {TN_KIND_TENSOR, v.tensor.dtype, static_cast<int32_t>(v.tensor.dims.size()), 0,
            v.tensor.dims.data()};
  const tn_dtype dtype = v.items.empty() ? v.tensor.dtype : v.items[0].tensor.dtype;
  return {v.kind, dtype, -1, 0, nullptr};
}
bool rules_allow(const tn_operand_rule* rules, uint32_t count, const std::vector<tn_operand>& operands) {
  for (size_t i = 0; i < operands.size() && i < count; ++i) {
    const auto& r = rules[i];
    if (!operands[i].present) continue;
    if (r.flags & TN_OPERAND_ABSENT) return false;
    if (!((r.kinds ? r.kinds : 1u << TN_KIND_TENSOR) >> operands[i].type.kind & 1)) return false;
    if (r.dtype_count &&
        std::find(r.dtypes, r.dtypes + r.dtype_count, operands[i].type.dtype) == r.dtypes + r.dtype_count)
      return false;
  }
  return true;
}

}  // namespace

Tensor tensor(tn_dtype dtype, Dims dims, const std::vector<double>& values) {
  Tensor t;
  t.dtype = dtype;
  t.dims = std::move(dims);
  t.bytes.resize(packed_bytes(dtype, static_cast<int64_t>(values.size())));
  storer<double>(dtype)(values.data(), static_cast<int64_t>(values.size()), t.bytes.data(), 0);
  return t;
}
Tensor text_tensor(Dims dims, std::vector<std::string> values) {
  Tensor t;
  t.dtype = TN_STRING;
  t.dims = std::move(dims);
  t.texts = std::move(values);
  return t;
}
std::vector<double> numbers(const Tensor& t) {
  std::vector<double> r(static_cast<size_t>(element_count(t.dims)));
  loader<double>(t.dtype)(t.bytes.data(), 0, 1, static_cast<int64_t>(r.size()), r.data());
  return r;
}

namespace {
tn_status pack_constant(tn_plan_ctx* context, uint32_t input, tn_str, uint64_t bytes,
                        tn_status (*fill)(void*, const tn_tensor*, void*), void* fill_context,
                        const void** blob) {
  const tn_operand& o = (*context->inputs)[input];
  if (!o.constant) return TN_ERR_INVALID;
  auto& to = context->blobs.emplace_back((bytes + 7) / 8);
  const tn_tensor source = OperandView(o).tensor().raw();
  *blob = to.data();
  return fill(fill_context, &source, to.data());
}
}  // namespace

Outcome run_with(Call& call, uint32_t threads) {
  Outcome o;
  tn_graph_api graph{};
  graph.size = sizeof graph;
  graph.symbol = intern;
  graph.symbol_text = text_of;

  std::vector<tn_attr> attrs;
  std::vector<std::vector<tn_str>> strings(call.attrs.size());
  std::vector<tn_tensor> tensors(call.attrs.size());
  for (size_t k = 0; k < call.attrs.size(); ++k) {
    auto& from = call.attrs[k];
    tn_attr a{};
    a.name = intern(str(from.name));
    a.kind = from.kind;
    switch (from.kind) {
      case TN_ATTR_INT:
        a.u.i = from.i;
        break;
      case TN_ATTR_FLOAT:
        a.u.f = from.f;
        break;
      case TN_ATTR_STRING:
        a.u.s = str(from.s);
        break;
      case TN_ATTR_INTS:
        a.u.ints = from.ints.data();
        a.count = from.ints.size();
        break;
      case TN_ATTR_FLOATS:
        a.u.floats = from.floats.data();
        a.count = from.floats.size();
        break;
      case TN_ATTR_STRINGS:
        for (const auto& s : from.strings) strings[k].push_back(str(s));
        a.u.strings = strings[k].data();
        a.count = strings[k].size();
        break;
      default:
        tensors[k] = from.tensor.raw();
        a.u.tensor = &tensors[k];
        break;
    }
    attrs.push_back(a);
  }
  std::vector<tn_region> regions(call.regions.size());
  std::vector<tn_value> input_ids(call.inputs.size(), 0), output_ids(call.outputs.size(), 0);
  tn_node_info node{};
  node.size = sizeof node;
  node.op = intern(str(call.op));
  node.attrs = attrs.data();
  node.attr_count = static_cast<uint32_t>(attrs.size());
  node.attr_stride = sizeof(tn_attr);
  node.inputs = input_ids.data();
  node.outputs = output_ids.data();
  node.input_count = static_cast<uint32_t>(call.inputs.size());
  node.output_count = static_cast<uint32_t>(call.outputs.size());
  node.regions = regions.data();
  node.region_count = static_cast<uint32_t>(regions.size());
  node.alive = 1;

  tn_run run;
  run.call = &call;
  std::vector<tn_operand> inputs, outputs;
  std::vector<void*> input_data, output_data;
  for (auto& v : call.inputs) {
    tn_operand operand{};
    operand.present = v.present;
    operand.type = type_of(v);
    run.inputs.push_back(v.present ? make(&run, v) : nullptr);
    input_data.push_back(v.present && v.kind == TN_KIND_TENSOR ? run.inputs.back()->tensor.data : nullptr);
    operand.data = input_data.back();
    operand.constant = call.constants && operand.data;
    inputs.push_back(operand);
  }
  for (auto& v : call.outputs) {
    tn_operand operand{};
    operand.present = v.present;
    operand.type = type_of(v);
    outputs.push_back(operand);
  }
  run.outputs.assign(call.outputs.size(), nullptr);
  std::vector<tn_str> names;
  for (const auto& n : call.region_names) names.push_back(str(n));

  tn_plan_view view{};
  view.size = sizeof view;
  view.input_count = node.input_count;
  view.output_count = node.output_count;
  view.thread_count = threads;
  view.node = &node;
  view.inputs = inputs.data();
  view.outputs = outputs.data();
  view.precision_mode = str("faithful");
  view.device = str("cpu");
  view.graph_api = &graph;
  view.region_names = names.empty() ? nullptr : names.data();
  tn_plan_ctx context;
  context.inputs = &inputs;
  view.context = &context;
  view.packed = pack_constant;

  DiagBuffer said;
  tn_planned planned{};
  planned.size = sizeof planned;
  const tn_kernel_record* chosen = nullptr;
  o.planned = TN_ERR_NOT_FOUND;
  for (uint32_t k = 0; k < kernels()->count && !chosen; ++k) {
    const auto* r = kernels()->kernels[k];
    if (sdk::view(r->op) != call.op || !rules_allow(r->input_rules, r->input_rule_count, inputs) ||
        !rules_allow(r->output_rules, r->output_rule_count, outputs))
      continue;
    o.planned = r->plan(nullptr, &view, &planned, said.raw());
    if (o.planned == TN_OK) chosen = r;
  }
  o.said = said.text();
  // What the run made goes with it, whichever way out.
  const std::unique_ptr<tn_run, void (*)(tn_run*)> owner(&run, [](tn_run* r) {
    for (auto* any : r->all) delete any;
  });
  if (!chosen) return o;

  const bool dynamic = chosen->flags & TN_KERNEL_DYNAMIC_OUTPUT;
  std::vector<std::unique_ptr<Guarded>> memory;
  for (auto& v : call.outputs) {
    void* data = nullptr;
    if (v.present && !dynamic) {
      memory.push_back(std::make_unique<Guarded>(packed_bytes(v.tensor.dtype, element_count(v.tensor.dims))));
      data = memory.back()->data();
    } else {
      memory.push_back(nullptr);
    }
    output_data.push_back(data);
  }
  const uint64_t stride = (planned.workspace_bytes + 63) / 64 * 64 + 64;
  Guarded scratch(stride * threads);
  tn_kernel_args args{};
  args.state = planned.state;
  args.inputs = input_data.data();
  args.outputs = output_data.data();
  args.workspace = scratch.data();
  args.workspace_stride = stride;
  args.run = &run;
  args.api = &api;
  args.input_count = node.input_count;
  args.output_count = node.output_count;
  for (uint32_t k = 0; k < planned.tiles && o.code == 0; ++k) {
    const uint32_t tile = planned.tiles - 1 - k;  // the last first
    o.code = planned.fn(&args, tile, tile % threads);
  }
  if (!run.failure.empty()) o.said = run.failure;
  CHECK(scratch.intact());
  for (uint32_t w = 0; w < threads; ++w)  // the bytes between the workspaces
    for (uint64_t b = w * stride + planned.workspace_bytes; b < (w + 1) * stride; ++b)
      if (scratch.data()[b] != guard) {
        FAIL("workspace of worker " << w << " overrun");
      }
  for (size_t i = 0; i < call.outputs.size() && o.code == 0; ++i) {
    Value v;
    if (!call.outputs[i].present) {
      v.present = false;
    } else if (dynamic) {
      if (run.outputs[i])
        v = value_of(run.outputs[i]);
      else
        v.present = false;
    } else {
      CHECK(memory[i]->intact());
      v.tensor.dtype = call.outputs[i].tensor.dtype;
      v.tensor.dims = call.outputs[i].tensor.dims;
      if (v.tensor.dtype == TN_STRING)
        for (int64_t k = 0; k < element_count(v.tensor.dims); ++k)
          v.tensor.texts.push_back(text(reinterpret_cast<const tn_str*>(memory[i]->data())[k]));
      else
        v.tensor.bytes.assign(memory[i]->data(), memory[i]->data() + memory[i]->bytes);
    }
    o.outputs.push_back(std::move(v));
  }
  if (planned.free_state) planned.free_state(planned.state);
  for (auto* any : run.all)
    if (any->memory) CHECK(any->memory->intact());
  return o;
}

namespace {
void same_bits(const Value& a, const Value& b) {
  CHECK(a.tensor.dims == b.tensor.dims);
  CHECK(a.tensor.bytes == b.tensor.bytes);
  CHECK(a.tensor.texts == b.tensor.texts);
  REQUIRE(a.items.size() == b.items.size());
}
}  // namespace

Outcome run(Call call) {
  auto one = run_with(call, 1);
  const auto three = run_with(call, 3);
  CHECK(one.code == three.code);
  REQUIRE(one.outputs.size() == three.outputs.size());
  for (size_t i = 0; i < one.outputs.size(); ++i) same_bits(one.outputs[i], three.outputs[i]);
  return one;
}
Outcome run(const std::string& op, std::vector<Value> inputs, Tensor like, std::vector<Attr> attrs) {
  Call c;
  c.op = op;
  c.attrs = std::move(attrs);
  c.inputs = std::move(inputs);
  Value v;
  v.tensor = std::move(like);
  c.outputs.push_back(std::move(v));
  return run(std::move(c));
}

}  // namespace tenon::reference::test
