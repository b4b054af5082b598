// com.acme::SquaredRelu, which the rule of this plugin makes: Y = scale * max(X, 0)^2, element by element.
// NaN stays NaN, large values overflow to infinity. (So and others, "Primer", 2021.)
#include <memory>

#include "tenon/sdk/plugin.hpp"
#include "tenon_plugin_rules.hpp"  // made by tenon_add_plugin from rules/*.json

namespace {

using namespace tenon::sdk;

// Without a kernel for this device or element type, the host runs these nodes instead. A node that a rule
// made keeps the nodes it stands for and needs no decomposition; a model may name the operator itself.
void decompose(Editor& edit, const Node& node) {
  const auto apply = [&](const char* op, std::vector<tn_value> inputs) {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = std::move(inputs);
    spec.region = node.region();
    spec.before = node.id();
    spec.origins = {node.id()};
    return edit.create(spec).output(0);
  };
  const auto scale = static_cast<float>(node.attrs().get_float("scale", 1));
  const tn_dtype dtype = edit.graph().value(node.input(0)).type.dtype;
  if (dtype == TN_DTYPE_NONE) decline("the operand's type is not known");
  // A constant of the operand's own element type: ONNX converts nothing by itself.
  const tn_value factor = dtype == TN_FLOAT16   ? edit.scalar(Float16(scale))
                          : dtype == TN_FLOAT64 ? edit.scalar(static_cast<double>(scale))
                                                : edit.scalar(scale);
  const tn_value positive = apply("Relu", {node.input(0)});
  edit.replace_uses(node.output(0), apply("Mul", {apply("Mul", {positive, positive}), factor}));
}

void infer(Infer& node) { node.set(0, node.type(0)); }

struct State {
  int64_t count;
  uint32_t tiles;
  float scale;
};

// One tile of one node in one run, on any of the host's threads: no allocation, no call back into the host.
int run(const tn_kernel_args* args, uint32_t tile, uint32_t) {
  const State& s = state<State>(args);
  const Range range = tile_range(s.count, s.tiles, tile, 16);
  const float* x = in<float>(args, 0);
  float* y = out<float>(args);
  for (int64_t i = range.begin; i < range.end; ++i) {
    const float positive = x[i] <= 0 ? 0 : x[i];  // a NaN is neither
    y[i] = s.scale * (positive * positive);
  }
  return 0;
}

void plan(const PlanView& view, Planned& planned) {
  auto s = std::make_unique<State>();
  s->count = view.input(0).count();
  s->scale = static_cast<float>(view.attrs().get_float("scale", 1));
  s->tiles = tiles_for(s->count, 16384, view.threads());
  const uint32_t tiles = s->tiles;
  planned.set(run, std::move(s), tiles);
}

void provide(Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("Acme")
      .license("Apache-2.0")
      .summary("SquaredRelu: fusion rules, and the operator and kernel they make");
  plugin.op("com.acme", "SquaredRelu", 1, 1)
      .doc("scale * max(X, 0)^2, element by element.")
      .flags(TN_OP_ELEMENTWISE)
      .type_var("T", {TN_FLOAT16, TN_FLOAT32, TN_FLOAT64})
      .input("X", "T")
      .output("Y", "T")
      .attr_float("scale", 1)
      .infer<infer>()
      .decompose<decompose>();
  plugin.kernel("com.acme.squared_relu/1", "com.acme::SquaredRelu")
      .input({TN_FLOAT32})
      .output({TN_FLOAT32})
      .in_place(0, 0)
      .flags(TN_KERNEL_DETERMINISTIC)
      .plan<plan>();
  static constexpr tn_rule_list rules = {
      sizeof(tn_rule_list), sizeof tenon_plugin_rules / sizeof *tenon_plugin_rules, tenon_plugin_rules};
  plugin.provide(TN_RULES_ID, &rules);
}

}  // namespace

TENON_PLUGIN(provide)
