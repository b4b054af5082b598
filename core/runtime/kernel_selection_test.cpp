#include "core/runtime/kernel_selection.hpp"

#include <catch2/catch.hpp>

#include "core/base/text.hpp"
#include "core/graph/interner.hpp"
#include "core/runtime/test_fakes.hpp"

using namespace tenon;

namespace {

constexpr tn_str text(const char* s) { return {s, __builtin_strlen(s)}; }
const tn_dtype float_only[] = {TN_FLOAT32};
const tn_operand_rule vector_rule[] = {{float_only, 1, 0, 1, 2, 0, 0},
                                       {nullptr, 0, TN_OPERAND_CONSTANT, 0, -1, 1, 0}};

tn_status never(void*, const tn_plan_view*, tn_planned*, const tn_diag*) { return TN_DECLINED; }

struct View {
  tn_node_info node{};
  std::vector<tn_operand> inputs, outputs;
  tn_plan_view view{};
  tn_dim dims[4] = {2, 3, 4, 5};
  View(tn_dtype dtype, int32_t rank, bool constant) {
    node.size = sizeof node;
    node.op = intern("t::Add");
    node.op_version = 7;
    node.name = text("sum");
    inputs.push_back({{TN_KIND_TENSOR, dtype, rank, 0, dims}, nullptr, 1, 0});
    inputs.push_back({{TN_KIND_TENSOR, dtype, 0, 0, dims}, nullptr, 1, constant ? 1u : 0u});
    outputs.push_back({{TN_KIND_TENSOR, dtype, rank, 0, dims}, nullptr, 1, 0});
    view.size = sizeof view;
    view.input_count = 2;
    view.output_count = 1;
    view.node = &node;
    view.inputs = inputs.data();
    view.outputs = outputs.data();
    view.cpu_features = TN_CPU_SSE42;
  }
};

tn_kernel_record record() {
  tn_kernel_record r{};
  r.size = sizeof r;
  r.id = text("acme.add/1");
  r.op = text("t::Add");
  r.device = text("cpu");
  r.input_rules = vector_rule;
  r.input_rule_count = 2;
  r.plan = never;
  return r;
}

std::string refusal(const tn_kernel_record& r, const View& view, const KernelPolicy& policy = {}) {
  static const auto all = fakes::registries();
  const KernelEntry entry{&r, nullptr, view.node.op, "acme"};
  return refusal_of(entry, *all, view.view, policy, true);
}

}  // namespace

TEST_CASE("a record refuses with the predicate that failed") {
  const View good(TN_FLOAT32, 2, true);
  tn_kernel_record r = record();
  CHECK(refusal(r, good).empty());
  CHECK(refusal(r, View(TN_FLOAT64, 2, true)) == "input 0: dtype float64, takes float32");
  CHECK(refusal(r, View(TN_FLOAT32, 3, true)) == "input 0: rank 3, takes up to 2");
  CHECK(refusal(r, View(TN_FLOAT32, 0, true)) == "input 0: rank 0, takes 1 and more");
  CHECK(refusal(r, View(TN_FLOAT32, 2, false)) == "input 1: is no constant");
  r.cpu_features = TN_CPU_AVX512;
  CHECK(refusal(r, good).find("lacks avx512") != std::string::npos);
  r = record();
  r.min_version = 8;
  CHECK(refusal(r, good).find("version 7") != std::string::npos);
  r.min_version = 0;
  r.max_version = 6;
  CHECK_FALSE(refusal(r, good).empty());
  r = record();
  r.device = text("npu");
  CHECK(refusal(r, good).find("npu") != std::string::npos);
  KernelPolicy policy;
  policy.deny = {"acme.*"};
  CHECK(refusal(record(), good, policy).find("denied") != std::string::npos);
  View mixed(TN_FLOAT32, 1, true);
  mixed.inputs[1].type.dtype = TN_INT32;
  CHECK(refusal(record(), mixed).find("differs from input 0") != std::string::npos);
  View unknown(TN_FLOAT32, 1, true);
  unknown.outputs[0].type.dims = nullptr;
  unknown.outputs[0].type.rank = -1;
  CHECK(refusal(record(), unknown).find("dynamic_output") != std::string::npos);
}

TEST_CASE("real kernels come before references unless the manifest says otherwise") {
  const auto all = fakes::registries();
  const View view(TN_FLOAT32, 1, false);
  KernelPolicy policy;
  const auto chosen = [&] {
    return string(select_kernel(*all, policy, view.view, true).kernel()->record->id);
  };
  CHECK(chosen() == "t.add/1");
  policy.prefer_reference = true;
  CHECK(chosen() == "t.reference.add/1");
  policy.prefer_reference = false;
  policy.pin = {{"sum", "t.reference.*"}};
  CHECK(chosen() == "t.reference.add/1");
  policy.pin = {{"other", "t.reference.*"}};
  CHECK(chosen() == "t.add/1");
  policy.deny = {"t.add/*"};
  CHECK(chosen() == "t.reference.add/1");
  const std::string text_form = selection_text(select_kernel(*all, policy, view.view, true));
  CHECK(text_form.find("* t.reference.add/1") != std::string::npos);
  CHECK(text_form.find("t.add/1  refused: denied") != std::string::npos);
}
