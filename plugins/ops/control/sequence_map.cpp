// SequenceMap: a body for each item of one or more sequences of one length; other operands are given to each.
#include "support/handle.hpp"
#include "support/owned_type.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::reference;

/// Numbers that data_dependent takes as axes for dims inside the body, beside the axes of the results.
constexpr uint32_t inside = 1024;

void infer_sequence_map(Infer& c) {
  require(c.node().region_count == 1, format("the node has %u bodies; expected 1", c.node().region_count));
  std::vector<OwnedType> items;
  for (uint32_t i = 0; i < c.input_count(); ++i) {
    OwnedType t(c.type(i));
    if (t.known() && t.kind() == TN_KIND_SEQUENCE) {
      t.set_kind(TN_KIND_TENSOR);
      // A dim in which the items differ is another one in each.
      for (size_t k = 0; k < t.dims().size(); ++k)
        if (t.dims()[k] < 0) t.dims()[k] = c.data_dependent(0, inside * (i + 1) + static_cast<uint32_t>(k));
    } else {
      require(i > 0 || !t.known(), "operand input_sequence is no sequence");
    }
    items.push_back(std::move(t));
  }
  std::vector<tn_type> types;
  for (const auto& t : items) types.push_back(t.view());
  const auto results = c.region(0, types);
  require(results.size() == c.output_count(),
          format("the body yields %zu values; the node has %u results", results.size(), c.output_count()));
  std::vector<OwnedType> owned(results.begin(), results.end());
  for (uint32_t i = 0; i < c.output_count(); ++i) {
    OwnedType& t = owned[i];
    if (!t.known()) continue;
    require(t.kind() == TN_KIND_TENSOR,
            "result " + text_of(i) + " of the body is no tensor; sequences hold tensors");
    for (size_t k = 0; k < t.dims().size(); ++k)
      if (t.dims()[k] < 0) t.dims()[k] = c.data_dependent(i, static_cast<uint32_t>(k));
    t.set_kind(TN_KIND_SEQUENCE);
    c.set(i, t.view());
  }
}

struct MapState {
  std::vector<tn_dtype> dtypes;  // of the results' items, for sequences that stay empty
  std::vector<bool> wanted;
};
void run_sequence_map(Run& run, const tn_kernel_args* a) {
  const auto& s = state<MapState>(a);
  const auto outputs = static_cast<uint32_t>(s.wanted.size());
  std::vector<tn_any*> operands;
  for (uint32_t i = 0; i < a->input_count; ++i) {
    operands.push_back(run.api->input(run.run, i));
    if (!operands.back()) fail(format("operand %u is missing", i));
  }
  const auto is_sequence = [&](tn_any* any) { return run.api->kind(any) == TN_KIND_SEQUENCE; };
  if (operands.empty() || !is_sequence(operands[0])) fail("operand input_sequence is no sequence");
  const uint32_t count = run.api->sequence_size(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i)
    if (is_sequence(operands[i]) && run.api->sequence_size(operands[i]) != count)
      fail(format("operand %zu has %u items and input_sequence has %u; expected as many", i,
                  run.api->sequence_size(operands[i]), count));
  std::vector<std::vector<Any>> results(outputs);
  for (uint32_t at = 0; at < count; ++at) {
    std::vector<tn_any*> inputs;
    for (tn_any* any : operands) inputs.push_back(is_sequence(any) ? run.api->sequence_item(any, at) : any);
    auto items = run_region(run, 0, inputs, outputs);
    for (uint32_t i = 0; i < outputs; ++i) results[i].push_back(std::move(items[i]));
  }
  for (uint32_t i = 0; i < outputs; ++i) {
    if (!s.wanted[i]) continue;
    std::vector<tn_any*> items;
    for (const Any& any : results[i]) items.push_back(any.get());
    tn_any* sequence = nullptr;
    check(run.api->new_sequence(run.run, items.data(), count, s.dtypes[i], &sequence), "making a sequence");
    const Any owned(run.api, sequence);
    check(run.api->set_output(run.run, i, sequence), "handing over a sequence");
  }
}
void plan_sequence_map(const PlanView& v, Planned& p) {
  auto s = std::make_unique<MapState>();
  for (uint32_t i = 0; i < v.output_count(); ++i) {
    s->dtypes.push_back(v.raw().outputs[i].type.dtype);
    s->wanted.push_back(v.has_output(i));
  }
  p.set(dynamic_kernel<run_sequence_map>, std::move(s));
}

}  // namespace

void add_sequence_map(Plugin& p) {
  define(p, "SequenceMap").flags(TN_OP_CONTROL_FLOW).infer<infer_sequence_map>();
  constexpr uint32_t any = 1u << TN_KIND_TENSOR | 1u << TN_KIND_SEQUENCE;
  reference_kernel(p, "SequenceMap")
      .flags(TN_KERNEL_CONTROL_FLOW | TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT)
      .input({}, 0, 0, -1, 0, any)
      .plan<plan_sequence_map>();
}

}  // namespace tenon::ops
