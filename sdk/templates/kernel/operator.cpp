// The operator: its schema, what type the result has, and what it means in plain ONNX operators.
#include "parts.hpp"

namespace @NAMESPACE@ {

using namespace tenon::sdk;

namespace {

void infer(Infer& node) { node.set(0, node.type(0)); }

// Without a kernel for this device or element type, the host runs these nodes instead.
void decompose(Editor& edit, const Node& node) {
  NodeSpec spec;
  spec.op = "LeakyRelu";
  spec.inputs = {node.input(0)};
  spec.attrs = {AttrValue::of("alpha", node.attrs().get_float("slope", 0.01))};
  spec.region = node.region();
  spec.before = node.id();
  spec.origins = {node.id()};
  edit.replace_uses(node.output(0), edit.create(spec).output(0));
}

}  // namespace

void add_operator(Plugin& plugin) {
  plugin.op("@DOMAIN@", "@TYPE@", 1, 1)
      .doc("X where it is above 0, slope * X elsewhere.")
      .flags(TN_OP_ELEMENTWISE)
      .type_var("T", {TN_FLOAT16, TN_FLOAT32, TN_FLOAT64})
      .input("X", "T")
      .output("Y", "T")
      .attr("slope", TN_ATTR_FLOAT, /*required=*/false)
      .infer<infer>()
      .decompose<decompose>();
}

}  // namespace @NAMESPACE@
