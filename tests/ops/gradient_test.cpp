// Gradient against differences of what the graph itself gives, and what it refuses.
#include <catch2/catch.hpp>
#include <cmath>

#include "core/graph/text_form.hpp"
#include "core/pipeline/model_loader.hpp"
#include "core/runtime/session.hpp"
#include "one_node.hpp"

namespace tenon::test {
namespace {

struct Variable {
  std::string name;
  std::vector<int64_t> dims;
  std::vector<double> values;

  size_t count() const {
    size_t n = 1;
    for (const int64_t d : dims) n *= static_cast<size_t>(d);
    return n;
  }
};
Variable variable(const std::string& name, std::vector<int64_t> dims) {
  Variable v{name, std::move(dims), {}};
  for (size_t i = 0; i < v.count(); ++i)
    v.values.push_back(0.37 + std::fmod(0.173 * static_cast<double>(i + 3 * name[0]), 1.3));
  return v;
}
using Variables = std::vector<Variable>;

std::string joined(const Variables& all, const std::string& before, const std::string& after) {
  std::string text;
  for (const Variable& v : all) text += (text.empty() ? "" : ", ") + before + v.name + after;
  return text;
}
// The graph of `body`, which makes %y of the variables, ending in z = y * y. `open`: no dim is a number.
std::string graph_text(const Variables& variables, const std::string& body, bool open,
                       const std::string& end) {
  std::string text = "graph \"g\" {\n  opset \"\" 28\n";
  for (const Variable& v : variables) {
    text += "  input %" + v.name + ": float64[";
    for (size_t i = 0; i < v.dims.size(); ++i)
      text += (i ? "," : "") + (open ? v.name + "d" + std::to_string(i) : std::to_string(v.dims[i]));
    text += "]\n";
  }
  return text + body + "\n  %z: ? = Mul(%y, %y)\n" + end + "}\n";
}
std::string with_gradient(const Variables& variables, const std::string& body, bool open) {
  return graph_text(
      variables, body, open,
      "  " + joined(variables, "%grad_", ": ?") + " = ai.onnx.preview.training::Gradient(" +
          joined(variables, "%", "") + ", " + joined(variables, "%", "") + ", %z) {xs = [" +
          joined(variables, "\"", "\"") + "], y = \"z\"} version 1\n" + [&] {
            std::string outputs;
            for (const Variable& v : variables)
              outputs += "  output %grad_" + v.name + " as \"grad_" + v.name + "\"\n";
            return outputs;
          }());
}

Session session_of(const std::string& text) {
  Diagnostics diagnostics;
  auto graph = parse(text, &ops_registry(), diagnostics);
  diagnostics.throw_if_errors(2);
  if (!graph) throw Error(2, "text form", "not read: " + text);
  upgrade_and_infer(*graph, ops_registry(), diagnostics);
  return Session(std::move(graph), ops_registry(), {});
}
struct Result {
  std::vector<int64_t> dims;
  std::vector<double> values;
};
std::vector<Result> run(const Session& session, Variables& variables) {
  std::vector<NamedTensor> inputs;
  for (Variable& v : variables)
    inputs.push_back({v.name,
                      {TN_FLOAT64, static_cast<int32_t>(v.dims.size()), v.dims.data(), v.values.data(),
                       v.values.size() * sizeof(double)}});
  std::vector<Result> results;
  const auto outputs = session.run(inputs);
  for (const auto& output : outputs) {
    const tn_tensor t = output.tensor();
    REQUIRE(t.dtype == TN_FLOAT64);
    const auto* data = static_cast<const double*>(t.data);
    results.push_back({{t.dims, t.dims + t.rank}, {data, data + t.bytes / sizeof(double)}});
  }
  return results;
}
double total(const Session& session, Variables& variables) {
  double sum = 0;
  const auto results = run(session, variables);
  for (const double v : results.front().values) sum += v;
  return sum;
}

void check_gradients(Variables variables, const std::string& body) {
  const Session plain = session_of(graph_text(variables, body, false, "  output %z as \"z\"\n"));
  std::vector<std::vector<double>> expected;
  for (Variable& v : variables) {
    expected.emplace_back();
    for (double& x : v.values) {
      constexpr double step = 1e-5;
      const double at = x;
      x = at + step;
      const double above = total(plain, variables);
      x = at - step;
      const double below = total(plain, variables);
      x = at;
      expected.back().push_back((above - below) / (2 * step));
    }
  }
  for (const bool open : {false, true}) {
    INFO((open ? "dims are names" : "dims are numbers"));
    const auto gradients = run(session_of(with_gradient(variables, body, open)), variables);
    REQUIRE(gradients.size() == variables.size());
    for (size_t k = 0; k < gradients.size(); ++k) {
      INFO("by " << variables[k].name);
      CHECK(gradients[k].dims == variables[k].dims);
      REQUIRE(gradients[k].values.size() == expected[k].size());
      for (size_t i = 0; i < expected[k].size(); ++i)
        CHECK(gradients[k].values[i] == Approx(expected[k][i]).epsilon(1e-6).margin(1e-7));
    }
  }
}

struct Case {
  const char* body;
  Variables variables;
};
void check_all(std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    INFO(c.body);
    try {
      check_gradients(c.variables, c.body);
    } catch (const Error& error) {
      FAIL_CHECK(error.diagnostics.front().text);
    }
  }
}
std::string refusal(const std::string& text) {
  try {
    session_of(text);
    return "";
  } catch (const Error& error) {
    return error.diagnostics.front().text;
  }
}

const Variable x = variable("x", {2, 3}), w = variable("w", {2, 3});

}  // namespace

TEST_CASE("Gradient: functions of one tensor") {
  check_all({
      {"%y: ? = Identity(%x)", {x}},
      {"%y: ? = Neg(%x)", {x}},
      {"%y: ? = Exp(%x)", {x}},
      {"%y: ? = Log(%x)", {x}},
      {"%y: ? = Sqrt(%x)", {x}},
      {"%y: ? = Reciprocal(%x)", {x}},
      {"%y: ? = Tanh(%x)", {x}},
      {"%y: ? = Sigmoid(%x)", {x}},
      {"%y: ? = Sin(%x)", {x}},
      {"%y: ? = Cos(%x)", {x}},
      {"%y: ? = Softplus(%x)", {x}},
      {"%y: ? = Erf(%x)", {x}},
      {"const %one: float64[] = [1.0]\n%h: ? = Sub(%x, %one)\n%y: ? = Relu(%h)", {x}},
      {"const %one: float64[] = [1.0]\n%h: ? = Sub(%x, %one)\n%y: ? = LeakyRelu(%h) {alpha = 0.25}", {x}},
      {"const %one: float64[] = [1.0]\n%h: ? = Sub(%x, %one)\n%y: ? = Abs(%h)", {x}},
      {"const %two: int64[] = [2]\n%y: ? = Pow(%x, %two)", {x}},
      {"const %half: float64[] = [-0.5]\n%y: ? = Pow(%x, %half)", {x}},
      {"%y: ? = Softmax(%x) {axis = 0}", {x}},
      {"%y: ? = LogSoftmax(%x)", {x}},
      {"%h: ? = Floor(%x)\n%y: ? = Sub(%x, %h)", {x}},
      {"%y: ? = Cast(%x) {to = 11}", {x}},
      {"%y: ? = CastLike(%x, %x)", {x}},
  });
}

TEST_CASE("Gradient: functions of several tensors, broadcast or not") {
  const Variable row = variable("r", {3}), column = variable("c", {2, 1}), scalar = variable("s", {}),
                 big = variable("b", {4, 1, 3});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Sum"}) {
    const std::string start = "%y: ? = " + std::string(op);
    for (const Variable& other : {w, row, column, scalar, big}) {
      const std::string body = start + "(%x, %" + other.name + ")",
                        turned = start + "(%" + other.name + ", %x)";
      check_all({{body.c_str(), {x, other}}, {turned.c_str(), {x, other}}});
    }
  }
  check_all({
      {"const %one: float64[] = [1.0]\n%k: ? = Greater(%x, %one)\n%y: ? = Where(%k, %r, %c)",
       {x, row, column}},
      {"%y: ? = Sum(%x, %r, %c, %x)", {x, row, column}},
      {"%y: ? = Mul(%x, %x)", {x}},
      {"const %to: int64[3] = [4,2,3]\n%y: ? = Expand(%c, %to)", {column}},
  });
}

TEST_CASE("Gradient: products of matrices") {
  const Variable v3 = variable("v", {3}), u3 = variable("u", {3}), m34 = variable("m", {3, 4}),
                 batch = variable("b", {2, 2, 3}), batch1 = variable("d", {1, 3, 2});
  check_all({
      {"%y: ? = MatMul(%x, %m)", {x, m34}},
      {"%y: ? = MatMul(%x, %v)", {x, v3}},
      {"%y: ? = MatMul(%v, %m)", {v3, m34}},
      {"%y: ? = MatMul(%v, %u)", {v3, u3}},
      {"%y: ? = MatMul(%b, %v)", {batch, v3}},
      {"%y: ? = MatMul(%v, %d)", {v3, batch1}},
      {"%y: ? = MatMul(%b, %m)", {batch, m34}},
      {"%y: ? = MatMul(%b, %d)", {batch, batch1}},
  });
  const Variable a = variable("a", {2, 3}), at = variable("a", {3, 2}), b = variable("b", {3, 4}),
                 bt = variable("b", {4, 3}), c = variable("c", {4}), c1 = variable("c", {2, 1});
  const std::string gemm = "%y: ? = Gemm(%a, %b, %c) {alpha = 0.5, beta = 1.5, ";
  check_gradients({a, b, c}, gemm + "transA = 0}");
  check_gradients({at, b, c1}, gemm + "transA = 1}");
  check_gradients({a, bt, c}, gemm + "transB = 1}");
  check_gradients({at, bt, c1}, gemm + "transA = 1, transB = 1}");
  check_gradients({a, b}, "%y: ? = Gemm(%a, %b)");
}

TEST_CASE("Gradient: shapes and reductions") {
  const Variable cube = variable("q", {2, 3, 4}), narrow = variable("n", {2, 1, 3});
  check_all({
      {"%h: ? = Transpose(%q) {perm = [1,2,0]}\n%y: ? = Softmax(%h)", {cube}},
      {"%y: ? = Transpose(%q)", {cube}},
      {"const %to: int64[2] = [4,-1]\n%y: ? = Reshape(%q, %to)", {cube}},
      {"%to: ? = Shape(%n)\n%y: ? = Reshape(%x, %to)", {x, narrow}},
      {"%y: ? = Flatten(%q)", {cube}},
      {"const %axis: int64[1] = [1]\n%y: ? = Squeeze(%n, %axis)", {narrow}},
      {"const %axis: int64[1] = [1]\n%y: ? = Unsqueeze(%x, %axis)", {x}},
      {"%y: ? = Concat(%x, %w, %x) {axis = -1}", {x, w}},
      {"%y: ? = ReduceSum(%q)", {cube}},
      {"%y: ? = ReduceSum(%q) {keepdims = 0}", {cube}},
      {"%y: ? = ReduceSum(%q) {keepdims = 0, noop_with_empty_axes = 1}", {cube}},
      {"const %axes: int64[2] = [0,-1]\n%y: ? = ReduceSum(%q, %axes)", {cube}},
      {"const %axes: int64[2] = [0,-1]\n%y: ? = ReduceSum(%q, %axes) {keepdims = 0}", {cube}},
      {"%y: ? = ReduceMean(%q) {keepdims = 0}", {cube}},
      {"const %axes: int64[1] = [1]\n%y: ? = ReduceMean(%q, %axes) {keepdims = 0}", {cube}},
  });
}

TEST_CASE("Gradient: graphs of several nodes") {
  const Variable m = variable("m", {3, 4}), v = variable("v", {4});
  check_all({
      // h has two users, and x one more.
      {"%h: ? = Tanh(%x)\n%a: ? = Exp(%h)\n%b: ? = Mul(%h, %x)\n%y: ? = Add(%a, %b)", {x}},
      // A layer, older forms of operators in it.
      {"%h: ? = MatMul(%x, %m)\n%a: ? = Add(%h, %v)\n%r: ? = Relu(%a)\n%y: ? = ReduceSum(%r) "
       "{axes = [1], keepdims = 0} version 11",
       {x, m, v}},
      // w reaches y through nothing, then through integers only.
      {"%y: ? = Exp(%x)", {x, w}},
      {"%s: ? = Shape(%w)\n%y: ? = Reshape(%x, %s)", {x, w}},
  });
}

TEST_CASE("Gradient: at other values, by values between, and twice") {
  Variables variables{x, w};
  const std::string gradient = " = ai.onnx.preview.training::Gradient";
  const auto ends = [&](const std::string& end) {
    return run(session_of(graph_text(variables, "%h: ? = Exp(%x)\n%y: ? = Mul(%h, %w)", false, end)),
               variables);
  };
  const auto same = [&](const Result& got, auto&& expected) {
    REQUIRE(got.values.size() == x.values.size());
    for (size_t i = 0; i < got.values.size(); ++i)
      CHECK(got.values[i] == Approx(expected(x.values[i], w.values[i])));
  };
  // z = exp(x)^2 w^2: at x = w and w = x.
  const auto swapped = ends("%gx: ?, %gw: ?" + gradient +
                            "(%w, %x, %x, %w, %z) {xs = [\"x\", \"w\"], y = \"z\"} version 1\n"
                            "  output %gx as \"gx\"\n  output %gw as \"gw\"\n");
  same(swapped[0], [](double a, double b) { return 2 * std::exp(2 * b) * a * a; });
  same(swapped[1], [](double a, double b) { return 2 * std::exp(2 * b) * a; });
  // By h, with w held: z = h^2 w^2.
  const auto inner = ends("%gh: ?" + gradient +
                          "(%h, %w, %h, %w, %z) {xs = [\"h\"], zs = [\"w\"], y = \"z\"} version 1\n"
                          "  output %gh as \"gh\"\n");
  same(inner[0], [](double a, double b) { return 2 * std::exp(a) * b * b; });
  // By h at a value that also stands elsewhere in the function.
  const auto shared = ends("%p: ? = Add(%z, %x)\n  %gh: ?" + gradient +
                           "(%x, %h, %p) {xs = [\"h\"], y = \"p\"} version 1\n  output %gh as \"gh\"\n");
  same(shared[0], [](double a, double b) { return 2 * a * b * b; });
  // The second derivative by x and w, in either way of giving the values.
  for (const char* values : {"%x, %w, %x, %w", "%i, %w, %x, %w"}) {
    const auto second =
        ends("%i: ? = Identity(%x)\n  %gx: ?" + gradient +
             "(%x, %x, %z) {xs = [\"x\"], y = \"z\"} version 1\n  %gxx: ?, %gxw: ?" + gradient + "(" +
             values + ", %gx) {xs = [\"x\", \"w\"], y = \"gx\"} version 1\n" +
             "  output %gxx as \"gxx\"\n  output %gxw as \"gxw\"\n");
    same(second[0], [](double a, double b) { return 4 * std::exp(2 * a) * b * b; });
    same(second[1], [](double a, double b) { return 4 * std::exp(2 * a) * b; });
  }
}

TEST_CASE("Gradient: what cannot be differentiated is refused by name") {
  const auto refused = [](const std::string& body) { return refusal(with_gradient({x}, body, false)); };
  CHECK_THAT(
      refused("%y: ? = Gelu(%x) name \"bent\""),
      Catch::Contains("between its variables and y stands Gelu 'bent', which cannot be differentiated; "
                      "what can: Abs, Add,"));
  CHECK(
      refused("%h: ? = Gelu(%x)\n%i: ? = Cast(%h) {to = 7}\n%j: ? = Cast(%i) {to = 11}\n%y: ? = Mul(%x, %j)")
          .empty());
  const std::string start = "  %g: ? = ai.onnx.preview.training::Gradient",
                    end = " version 1\n  output %g as \"g\"\n";
  const auto node = [&](const std::string& text) {
    return refusal(graph_text({x}, "%y: ? = Exp(%x)", false, start + text + end));
  };
  std::string again, of = "z";  // each order is a few times the one before
  for (int order = 0; order < 40; ++order) {
    const std::string next = "g" + std::to_string(order);
    again += "  %" + next + ": ? = ai.onnx.preview.training::Gradient(%x, %x, %" + of +
             ") {xs = [\"x\"], y = \"" + of + "\"} version 1\n";
    of = next;
  }
  CHECK_THAT(refusal(graph_text({x}, "%h: ? = Exp(%x)\n%y: ? = Mul(%h, %x)", false,
                                again + "  output %" + of + " as \"g\"\n")),
             Catch::Contains("more than 200000 nodes; differentiate fewer times"));
  CHECK_THAT(node("(%x, %z) {xs = [\"x\"], y = \"z\"}"),
             Catch::Contains("0 values to differentiate at; expected 1,"));
  CHECK_THAT(node("(%x, %x) {xs = [\"x\"]}"), Catch::Contains("'y', the value to differentiate, is missing"));
  CHECK_THAT(node("(%x, %x, %z) {xs = strings[], y = \"z\"}"), Catch::Contains("'xs' names no value"));
  CHECK_THAT(refusal(graph_text({x}, "%y: ? = Exp(%x)\n%s: ? = Shape(%x)", false,
                                start + "(%x, %x, %s) {xs = [\"x\"], y = \"s\"}" + end)),
             Catch::Contains("'s', is no tensor of floats"));
}

}  // namespace tenon::test
