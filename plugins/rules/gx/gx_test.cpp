#include <catch2/catch.hpp>
#include <map>

#include "gx/gx_eval.hpp"

using namespace tenon::rules::gx;
namespace sdk = tenon::sdk;

namespace {

/// Names with fixed meanings: values W (2x3 constant), X (unknown batch), B (absent), S (scalar); node n; let
/// L.
class World : public Scope, public Names {
 public:
  std::vector<std::string> values{"W", "X", "B", "S", "U"};
  std::vector<float> w{1, 2, 3, 4, 5, 6};
  std::vector<float> s{2.5f};
  std::vector<int64_t> w_dims{2, 3};
  std::vector<tn_dim> x_dims{-7, 8};
  bool node_present = true;

  Ref find(std::string_view name) const override {
    for (uint32_t i = 0; i < values.size(); ++i)
      if (values[i] == name) return {Ref::Value, i};
    if (name == "n") return {Ref::Node, 0};
    if (name == "L") return {Ref::Let, 0};
    return {};
  }
  std::vector<std::string_view> all() const override { return {"W", "X", "B", "S", "U", "n", "L"}; }
  Value value(uint32_t i) override { return i == 2 ? Value{} : Value::of_graph(i, values[i]); }
  Value let(uint32_t) override { return Value::integer(42); }
  bool present(uint32_t) override { return node_present; }
  Value attribute(uint32_t, const std::string& name) override {
    if (name == "axis") return Value::integer(-1);
    if (name == "perm") return Value::ints(std::vector<int64_t>{0, 2, 1});
    return {};
  }
  std::string op(uint32_t) override { return "Conv"; }
  Value axes(uint32_t) override { return Value::ints(std::vector<int64_t>{1, 2}); }
  int64_t copies(uint32_t) override { return node_present ? 2 : 0; }
  tn_type type(tn_value v) override {
    if (v == 0) return {TN_KIND_TENSOR, TN_FLOAT32, 2, 0, w_dims.data()};
    if (v == 1) return {TN_KIND_TENSOR, TN_FLOAT16, 2, 0, x_dims.data()};
    if (v == 3) return {TN_KIND_TENSOR, TN_FLOAT32, 0, 0, nullptr};
    return {TN_KIND_TENSOR, TN_FLOAT32, -1, 0, nullptr};
  }
  bool constant(tn_value v, tn_tensor* t) override {
    if (v == 0)
      *t = {TN_FLOAT32, 2, w_dims.data(), w.data(), 24};
    else if (v == 3)
      *t = {TN_FLOAT32, 0, nullptr, s.data(), 4};
    else
      return false;
    return true;
  }
  bool is_constant(tn_value v) override { return v == 0 || v == 3; }
  bool elements(tn_value, std::vector<tn_dim>*) override { return false; }
  tn_truth compare(tn_dim_relation, tn_dim, tn_dim) override { return TN_UNKNOWN; }
  tn_dim combine(tn_dim_op, tn_dim, tn_dim) override { return -9; }
  int64_t least(tn_dim) override { return 4; }
};

std::string eval(const std::string& text, bool estimate = false, bool node_present = true) {
  World world;
  world.node_present = node_present;
  Program p;
  std::vector<Error> errors;
  if (parse(text, &p, &errors)) resolve(&p, world, &errors);
  if (!errors.empty())
    return errors[0].code + "@" + std::to_string(errors[0].column) + " " + errors[0].message;
  Evaluator e(world);
  e.set_estimate(estimate);
  return e.run(p).show();
}

}  // namespace

TEST_CASE("Lists of operands, copies in a row, and whether two names are one value") {
  CHECK(eval("bytes([W, S])") == "28");
  CHECK(eval("numel([W, S])") == "7");
  CHECK(eval("const([W, S])") == "true");
  CHECK(eval("const([W, X])") == "false");
  CHECK(eval("len([W, X])") == "2");
  CHECK(eval("present([])") == "E304@8 'present' wants the name of a pattern node");
  CHECK(eval("copies(n)") == "2");
  CHECK(eval("copies(n)", false, false) == "0");
  CHECK(eval("copies(W)") == "E304@7 'copies' wants the name of a pattern node");
  CHECK(eval("same(W, W)") == "true");
  CHECK(eval("same(W, X)") == "false");
  CHECK(eval("same(B, B)") == "true");
}

TEST_CASE("Expressions and what they mean") {
  const std::map<std::string, std::string> table = {{"1 + 2 * 3", "7"},
                                                    {"(1 + 2) * 3", "9"},
                                                    {"7 // 2", "3"},
                                                    {"-7 // 2", "-4"},
                                                    {"-7 % 3", "2"},
                                                    {"2 ** 3 ** 2", "512"},
                                                    {"-2 ** 2", "-4"},
                                                    {"1 / 4", "0.25"},
                                                    {"1.5e1", "15"},
                                                    {"1 < 2 < 3", "true"},
                                                    {"3 > 2 > 2", "false"},
                                                    {"1 == 1.0", "true"},
                                                    {"'a' == 'a'", "true"},
                                                    {"'a' == 1", "false"},
                                                    {"2 in [1, 2]", "true"},
                                                    {"3 not in [1, 2]", "true"},
                                                    {"not 1 == 2", "true"},
                                                    {"true and not false", "true"},
                                                    {"1 if 2 > 1 else 3", "1"},
                                                    {"[1, 2] + [3] * 2", "[1,2,3,3]"},
                                                    {"[1, 2, 3][-1]", "3"},
                                                    {"[1, 2, 3][1:]", "[2,3]"},
                                                    {"[1, 2, 3][:-1]", "[1,2]"},
                                                    {"'a' + 'b'", "'ab'"},
                                                    {"shape(W)", "[2,3]"},
                                                    {"rank(W) - 1", "1"},
                                                    {"numel(W)", "6"},
                                                    {"bytes(W)", "24"},
                                                    {"dtype(X)", "'float16'"},
                                                    {"const(W)", "true"},
                                                    {"const(X)", "false"},
                                                    {"item(S)", "2.5"},
                                                    {"sum(W)", "21"},
                                                    {"max(W) - min(W)", "5"},
                                                    {"all(W > 0)", "true"},
                                                    {"any(W > 5)", "true"},
                                                    {"all(W > 1)", "false"},
                                                    {"sum(W * 2 + 1)", "48"},
                                                    {"sum(W * reshape([1, 10], [-1, 1]))", "156"},
                                                    {"shape(transpose(W))", "[3,2]"},
                                                    {"item(transpose(W)[2][1:])", "6"},
                                                    {"sum(W[1])", "15"},
                                                    {"shape(concat([W, W], 1))", "[2,6]"},
                                                    {"len(split(W, 3, 1))", "3"},
                                                    {"sum(split(W, [1, 2], 1)[0])", "5"},
                                                    {"sum(slice(W, 1, 0, 2))", "12"},
                                                    {"shape(pad(W, [0, 1, 0, 1]))", "[2,5]"},
                                                    {"dtype(cast(W, 'int8'))", "'int8'"},
                                                    {"sum(full([2, 2], 3))", "12"},
                                                    {"sum(matmul(W, transpose(W)))", "155"},
                                                    {"sqrt(16)", "4"},
                                                    {"default(B, 3)", "3"},
                                                    {"present(B)", "false"},
                                                    {"B == none", "true"},
                                                    {"n.axis", "-1"},
                                                    {"n.op", "'Conv'"},
                                                    {"attr(n, 'axis')", "-1"},
                                                    {"attr(n, 'gone', 5)", "5"},
                                                    {"opname(n)", "'Conv'"},
                                                    {"axes(n)", "[1,2]"},
                                                    {"suffix_axes(axes(n), 3)", "true"},
                                                    {"suffix_axes([0, 2], 3)", "false"},
                                                    {"suffix_axes([-1], 3)", "true"},
                                                    {"first([2, 1], 3)", "1"},
                                                    {"swaps_last2(n.perm, 3)", "true"},
                                                    {"swaps_last2([1, 0, 2], 3)", "false"},
                                                    {"broadcastable(S, W)", "true"},
                                                    {"broadcastable(W, S)", "false"},
                                                    {"L + 1", "43"},
                                                    {"isfinite(1 / 3)", "true"}};
  for (const auto& [text, wanted] : table) {
    INFO(text);
    CHECK(eval(text) == wanted);
  }
}

TEST_CASE("Unknown is neither true nor false, and decides only where it must") {
  CHECK(eval("shape(X)[0] == 4").find("unknown") == 0);
  CHECK(eval("shape(X)[1] == 8") == "true");
  CHECK(eval("shape(X) == [4, 9]") == "false");  // the known dimension differs already
  CHECK(eval("shape(X)[0] == 4 and 1 == 2") == "false");
  CHECK(eval("shape(X)[0] == 4 or 1 == 1") == "true");
  CHECK(eval("not shape(X)[0] == 4").find("unknown") == 0);
  CHECK(eval("rank(U) == 2").find("unknown (rank of U)") == 0);
  CHECK(eval("X + 1").find("'X' is not constant") != std::string::npos);
  CHECK(eval("numel(B)") == "0");
  CHECK(eval("item(B)").find("'B' is absent") != std::string::npos);
  CHECK(eval("1 // 0").find("division by zero") != std::string::npos);
  CHECK(eval("W + 1 == 2 and true").find("use all() or any()") != std::string::npos);
}

TEST_CASE("Costs are never unknown") {
  CHECK(eval("bytes(X)", true) == "64");  // at least 4 rows of 8 halves
  CHECK(eval("bytes(U)", true) == "4");
}

TEST_CASE("An absent node has no attributes") {
  CHECK(eval("n.axis", false, false) == "absent");
  CHECK(eval("n.op == 'Div'", false, false) == "false");
  CHECK(eval("1 / item(S) if present(n) else 1.0", false, false) == "1");
}

TEST_CASE("Faults have a code and a column") {
  CHECK(eval("rnk(W)") == "E301@0 unknown function 'rnk'");
  CHECK(eval("1 + Q") == "E302@4 unknown name 'Q'");
  CHECK(eval("W = 1").find("E300@2 expected the end of the expression, found '='") == 0);
  CHECK(eval("1 +").find("E300@3") == 0);
  CHECK(eval("(1").find("E300@2") == 0);
  CHECK(eval("'abc").find("E300@0") == 0);
  CHECK(eval("1 $ 2").find("E300@2") == 0);
  CHECK(eval("rank(W, 1)") == "E305@0 'rank' takes 1 argument(s), found 2");
  CHECK(eval("n + 1").find("E304@0") == 0);
  CHECK(eval("W.axis").find("E304@0") == 0);
  CHECK(eval("axes(W)").find("E304@5") == 0);
  CHECK(eval(std::string(3000, '1')).find("E303") == 0);
  CHECK(eval(std::string(500, '(') + "1" + std::string(500, ')')).find("nested too deeply") !=
        std::string::npos);
}

TEST_CASE("Work is bounded") {
  CHECK(eval("full([100000, 100000], 1)").find("too large") != std::string::npos);
  CHECK(eval("[1] * 100000").find("more than 4096") != std::string::npos);
  CHECK(eval("sum(full([1000], 1))") == "1000");
}
