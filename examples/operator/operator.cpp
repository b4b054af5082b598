// The operator: its schema, what type the result has, and what it means in plain ONNX operators.
#include "soft_clamp.hpp"

namespace acme {

using namespace tenon::sdk;

namespace {

void infer(Infer& node) {
  const double limit = node.attrs().get_float("limit", 0);
  if (!(limit > 0)) fail(format("limit is %g; expected a number above 0", limit));
  node.set(0, node.type(0));
}

// Without a kernel for this device or element type, the host runs these nodes instead.
void decompose(Editor& edit, const Node& node) {
  const double limit = node.attrs().get_float("limit", 0);
  const tn_value x = node.input(0);
  const tn_type type = edit.graph().value(x).type;
  if (type.kind != TN_KIND_TENSOR) decline("the operand's type is not known");
  // A constant of the operand's own element type: ONNX converts nothing by itself.
  tn_value bound = TN_NONE;
  switch (type.dtype) {
    case TN_FLOAT32:
      bound = edit.scalar(static_cast<float>(limit));
      break;
    case TN_FLOAT64:
      bound = edit.scalar(limit);
      break;
    case TN_FLOAT16:
      bound = edit.scalar(Float16(static_cast<float>(limit)));
      break;
    default:
      decline(std::string("there is no constant of type ") + dtype_name(type.dtype));
  }
  const auto apply = [&](const char* op, std::vector<tn_value> inputs) {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = std::move(inputs);
    spec.region = node.region();
    spec.before = node.id();
    spec.origins = {node.id()};
    return edit.create(spec).output(0);
  };
  const tn_value scaled = apply("Div", {x, bound});
  const tn_value squashed = apply("Tanh", {scaled});
  edit.replace_uses(node.output(0), apply("Mul", {squashed, bound}));
}

}  // namespace

void add_operator(Plugin& plugin) {
  plugin.op("com.acme", "SoftClamp", 1, 1)
      .doc("limit * tanh(X / limit), element by element: small values stay, none leaves [-limit, limit].")
      .flags(TN_OP_ELEMENTWISE)
      .type_var("T", {TN_FLOAT16, TN_FLOAT32, TN_FLOAT64})
      .input("X", "T")
      .output("Y", "T")
      .attr("limit", TN_ATTR_FLOAT, /*required=*/true)
      .infer<infer>()
      .decompose<decompose>();
}

}  // namespace acme
