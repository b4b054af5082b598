#include "expansions.hpp"

#include "onnx_fields.hpp"
#include "tensor_writer.hpp"
#include "wire_writer.hpp"

namespace tenon::onnx {
namespace {

bool is_expandable_type(tn_dtype d) {
  return d == TN_FLOAT32 || d == TN_FLOAT64 || d == TN_FLOAT16 || d == TN_BFLOAT16;
}

/// Writes the steps of one expansion.
class Steps {
 public:
  Steps(tn_dtype dtype, const std::function<std::string()>& fresh) : dtype_(dtype), fresh_(fresh) {}
  std::string number(double value) {
    sdk::OwnedTensor t(dtype_, {});
    sdk::visit_number(dtype_,
                      [&](auto x) { *t.data<decltype(x)>() = decltype(x)(static_cast<float>(value)); });
    if (dtype_ == TN_FLOAT64) *t.data<double>() = value;
    const std::string name = fresh_();
    nodes.push_back(constant_node(name, t.raw()));
    return name;
  }
  std::string apply(std::string_view op, const std::vector<std::string>& inputs,
                    const std::string& output = {}) {
    const std::string name = output.empty() ? fresh_() : output;
    nodes.push_back(plain_node(op, inputs, name));
    return name;
  }
  std::vector<std::string> nodes;

 private:
  tn_dtype dtype_;
  const std::function<std::string()>& fresh_;
};

}  // namespace

std::string plain_node(std::string_view op, const std::vector<std::string>& inputs,
                       const std::string& output) {
  std::string n;
  for (const auto& i : inputs) put_bytes(n, node_field::input, i);
  put_bytes(n, node_field::output, output);
  put_bytes(n, node_field::op_type, op);
  return n;
}

std::string constant_node(const std::string& name, const tn_tensor& tensor) {
  std::string attribute, n;
  put_bytes(attribute, attribute_field::name, "value");
  put_bytes(attribute, attribute_field::t, tensor_message({}, tensor));
  put_int(attribute, attribute_field::type, attribute_type::tensor);
  put_bytes(n, node_field::output, name);
  put_bytes(n, node_field::op_type, "Constant");
  put_bytes(n, node_field::attribute, attribute);
  return n;
}

bool can_expand(const sdk::GraphView& graph, const sdk::Node& node) {
  const std::string_view op = node.op_name();
  if ((op != "Swish" && op != "Gelu" && op != "Mish") || node.input(0) == TN_NONE ||
      node.output(0) == TN_NONE)
    return false;
  return is_expandable_type(graph.value(node.input(0)).type.dtype);
}

std::vector<std::string> expand(const sdk::GraphView& graph, const sdk::Node& node, const std::string& x,
                                const std::string& y, const std::function<std::string()>& fresh) {
  Steps s(graph.value(node.input(0)).type.dtype, fresh);
  const std::string_view op = node.op_name();
  if (op == "Swish") {
    const double alpha = node.attrs().get_float("alpha", 1.0);
    const std::string scaled = alpha == 1.0 ? x : s.apply("Mul", {x, s.number(alpha)});
    s.apply("Mul", {x, s.apply("Sigmoid", {scaled})}, y);
  } else if (op == "Mish") {
    s.apply("Mul", {x, s.apply("Tanh", {s.apply("Softplus", {x})})}, y);
  } else {
    // Both forms are x/2 * (1 + f(x)), as the ONNX specification of Gelu has them.
    std::string f;
    if (node.attrs().get_string("approximate", "none") == "tanh") {
      const std::string cube = s.apply("Mul", {s.apply("Mul", {x, x}), x});
      const std::string sum = s.apply("Add", {x, s.apply("Mul", {cube, s.number(0.044715)})});
      f = s.apply("Tanh", {s.apply("Mul", {sum, s.number(0.79788456080286535588)})});  // sqrt(2 / pi)
    } else {
      f = s.apply("Erf", {s.apply("Mul", {x, s.number(0.70710678118654752440)})});  // 1 / sqrt(2)
    }
    s.apply("Mul", {s.apply("Mul", {x, s.number(0.5)}), s.apply("Add", {f, s.number(1)})}, y);
  }
  return std::move(s.nodes);
}

}  // namespace tenon::onnx
