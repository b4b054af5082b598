// If, Loop, Scan with bodies given by the test; sequences; what fails in a run, and how.
#include <catch2/catch.hpp>

#include "support/test_harness.hpp"

namespace tenon::reference::test {
namespace {

Value truth(bool x) { return value(tensor(TN_BOOL, {}, {x ? 1.0 : 0.0})); }
Value typed(tn_dtype dtype) {
  Value v;
  v.tensor.dtype = dtype;
  return v;
}

}  // namespace

TEST_CASE("If runs the branch of that name, in whatever order the regions lie", "[control]") {
  const Body yes = [](const std::vector<Value>&) { return std::vector<Value>{f32({1}, {1})}; };
  const Body no = [](const std::vector<Value>&) { return std::vector<Value>{f32({2}, {2, 2})}; };
  for (const bool swapped : {false, true})
    for (const bool condition : {false, true}) {
      Call c;
      c.op = "If";
      c.inputs = {truth(condition)};
      c.outputs = {typed(TN_FLOAT32)};
      c.regions = swapped ? std::vector<Body>{no, yes} : std::vector<Body>{yes, no};
      c.region_names = swapped ? std::vector<std::string>{"else_branch", "then_branch"}
                               : std::vector<std::string>{"then_branch", "else_branch"};
      const auto o = run(c);
      REQUIRE(o.code == 0);
      CHECK(o.outputs[0].tensor.dims == Dims{condition ? 1 : 2});
    }
}

TEST_CASE("Loop carries values, stacks scan outputs and stops when its condition fails", "[control]") {
  Call c;
  c.op = "Loop";
  c.inputs = {i64({}, {10}), truth(true), f32({}, {1})};
  c.outputs = {typed(TN_FLOAT32), typed(TN_FLOAT32)};
  c.regions = {[](const std::vector<Value>& in) {
    const double n = numbers(in[0].tensor)[0], x = numbers(in[2].tensor)[0];
    return std::vector<Value>{truth(n < 6), f32({}, {x * 2}), f32({2}, {n, x})};
  }};
  const auto o = run(c);
  REQUIRE(o.code == 0);
  CHECK(numbers(o.outputs[0].tensor) == std::vector<double>{128});
  CHECK(o.outputs[1].tensor.dims == Dims{7, 2});
  CHECK(numbers(o.outputs[1].tensor) == std::vector<double>{0, 1, 1, 2, 2, 4, 3, 8, 4, 16, 5, 32, 6, 64});
}

TEST_CASE("a Loop that never runs hands its carried values on and an empty stack", "[control]") {
  Call c;
  c.op = "Loop";
  c.inputs = {i64({}, {0}), absent(), f32({2}, {5, 6})};
  c.outputs = {typed(TN_FLOAT32), typed(TN_FLOAT32)};
  c.outputs[1].tensor.dims = {-1, 3};
  c.regions = {[](const std::vector<Value>&) -> std::vector<Value> {
    FAIL("the body ran");
    return {};
  }};
  const auto o = run(c);
  REQUIRE(o.code == 0);
  CHECK(numbers(o.outputs[0].tensor) == std::vector<double>{5, 6});
  CHECK(o.outputs[1].tensor.dims == Dims{0, 3});
}

TEST_CASE("Loop refuses scan outputs whose shape changes", "[control]") {
  Call c;
  c.op = "Loop";
  c.inputs = {i64({}, {2}), absent()};
  c.outputs = {typed(TN_FLOAT32)};
  c.regions = {[](const std::vector<Value>& in) {
    return std::vector<Value>{truth(true), numbers(in[0].tensor)[0] == 0 ? f32({1}, {0}) : f32({2}, {0, 0})};
  }};
  const auto o = run(c);
  CHECK(o.code != 0);
  CHECK(o.said.find("[1] in one iteration and [2] in another") != std::string::npos);
}

TEST_CASE("Scan walks an axis backwards and stacks on another", "[control]") {
  Call c;
  c.op = "Scan";
  c.attrs = {attr("num_scan_inputs", 1), attr("scan_input_axes", std::vector<int64_t>{1}),
             attr("scan_input_directions", std::vector<int64_t>{1}),
             attr("scan_output_axes", std::vector<int64_t>{-1})};
  c.inputs = {f32({2}, {0, 0}), f32({2, 3}, {1, 2, 3, 4, 5, 6})};
  c.outputs = {typed(TN_FLOAT32), typed(TN_FLOAT32)};
  c.regions = {[](const std::vector<Value>& in) {
    auto sum = numbers(in[0].tensor);
    const auto x = numbers(in[1].tensor);
    for (size_t i = 0; i < 2; ++i) sum[i] += x[i];
    return std::vector<Value>{f32({2}, sum), f32({2}, sum)};
  }};
  const auto o = run(c);
  REQUIRE(o.code == 0);
  CHECK(numbers(o.outputs[0].tensor) == std::vector<double>{6, 15});
  CHECK(o.outputs[1].tensor.dims == Dims{2, 3});
  CHECK(numbers(o.outputs[1].tensor) == std::vector<double>{3, 5, 6, 6, 11, 15});
}

TEST_CASE("sequences are built, changed and joined", "[control]") {
  const auto a = f32({2}, {1, 2}), b = f32({1}, {3});
  Value sequence;
  sequence.kind = TN_KIND_SEQUENCE;
  sequence.items = {a, b};
  const auto call = [&](const char* op, std::vector<Value> in, std::vector<Attr> attrs = {}) {
    Call c;
    c.op = op;
    c.attrs = std::move(attrs);
    c.inputs = std::move(in);
    c.outputs = {typed(TN_FLOAT32)};
    return run(c);
  };
  CHECK(call("SequenceConstruct", {a, b}).outputs.at(0).items.size() == 2);
  CHECK(call("SequenceEmpty", {}).outputs.at(0).items.empty());
  CHECK(call("SequenceInsert", {sequence, b, i64({}, {-2})}).outputs.at(0).items.at(0).tensor.dims ==
        Dims{1});
  CHECK(call("SequenceErase", {sequence}).outputs.at(0).items.size() == 1);
  CHECK(numbers(call("SequenceAt", {sequence, i64({}, {-1})}).outputs.at(0).tensor) ==
        std::vector<double>{3});
  CHECK(numbers(call("SequenceLength", {sequence}).outputs.at(0).tensor) == std::vector<double>{2});
  CHECK(numbers(call("ConcatFromSequence", {sequence}, {attr("axis", 0)}).outputs.at(0).tensor) ==
        std::vector<double>{1, 2, 3});
  CHECK(call("Identity", {sequence}).outputs.at(0).items.size() == 2);
  const auto split = call("SplitToSequence", {a}, {attr("keepdims", 0)});
  CHECK(split.outputs.at(0).items.at(1).tensor.dims.empty());
  const auto outside = call("SequenceAt", {sequence, i64({}, {2})});
  CHECK(outside.code != 0);
  CHECK(outside.said.find("position 2 is outside [-2, 1]") != std::string::npos);
}

TEST_CASE("an index out of range fails the run and says which", "[errors]") {
  const auto o = run("Gather", {f32({3}, {1, 2, 3}), i64({2}, {0, 3})}, tensor(TN_FLOAT32, {2}, {0, 0}));
  CHECK(o.code == run_index_out_of_range);
  CHECK(o.said.find("index 3 is outside [-3, 3)") != std::string::npos);
  CHECK(
      run("ScatterND", {f32({2}, {1, 2}), i64({1, 1}, {-3}), f32({1}, {0})}, tensor(TN_FLOAT32, {2}, {0, 0}))
          .code == run_index_out_of_range);
  CHECK(run("GatherElements", {f32({2}, {1, 2}), i64({1}, {2})}, tensor(TN_FLOAT32, {1}, {0})).code ==
        run_index_out_of_range);
}

TEST_CASE("operands that contradict the plan fail the run", "[errors]") {
  // Planned for three elements, asked for one that would begin outside.
  CHECK(
      run("Slice", {f32({4}, {1, 2, 3, 4}), i64({1}, {2}), i64({1}, {4})}, tensor(TN_FLOAT32, {3}, {0, 0, 0}))
          .code == run_bad_operand);
  CHECK(run("Pad", {f32({2}, {1, 2}), i64({2}, {1, 1})}, tensor(TN_FLOAT32, {3}, {0, 0, 0})).code ==
        run_bad_operand);
  CHECK(run("ReduceSum", {f32({2, 3}, {1, 2, 3, 4, 5, 6}), i64({1}, {0})}, tensor(TN_FLOAT32, {2}, {0, 0}))
            .code == run_bad_operand);
}

TEST_CASE("impossible attributes fail the plan with both sides named", "[errors]") {
  const auto o = run(
      "Conv", {f32({1, 3, 4, 4}, std::vector<double>(48, 1)), f32({2, 2, 3, 3}, std::vector<double>(36, 1))},
      tensor(TN_FLOAT32, {1, 2, 2, 2}, std::vector<double>(8, 0)));
  CHECK(o.planned == TN_ERR_INVALID);
  CHECK(o.said.find("[1,3,4,4]") != std::string::npos);
  CHECK(o.said.find("[2,2,3,3]") != std::string::npos);
}

}  // namespace tenon::reference::test
