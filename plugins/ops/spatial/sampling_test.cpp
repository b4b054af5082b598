// What the standard's cases leave open in losses, windows, sampling and caches: coordinates that are no
// numbers, regions without bounds, elements that are not numbers, and operands whose values are wrong.
#include <catch2/catch.hpp>

#include "support/test_harness.hpp"

namespace tenon::reference::test {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();

Value ramp(Dims dims) {
  std::vector<double> x(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i) + 1;
  return f32(std::move(dims), x);
}
Tensor like(tn_dtype dtype, Dims dims) {
  const auto n = static_cast<size_t>(element_count(dims));
  return tensor(dtype, std::move(dims), std::vector<double>(n, 0));
}
std::vector<double> compute(const std::string& op, std::vector<Value> in, Tensor result,
                            std::vector<Attr> attrs = {}) {
  auto o = run(op, std::move(in), std::move(result), std::move(attrs));
  INFO(op << ": " << o.said);
  REQUIRE(o.planned == TN_OK);
  REQUIRE(o.code == 0);
  return numbers(o.outputs.at(0).tensor);
}

}  // namespace

TEST_CASE("a run names the operand whose value is wrong") {
  struct Case {
    const char* op;
    std::vector<Value> in;
    Tensor result;
    std::vector<Attr> attrs;
    const char* said;
  };
  const Tensor scalar = like(TN_FLOAT32, {});
  const auto mel = [&](double rate, double low, double high) {
    return std::vector<Value>{i64({}, {4}), i64({}, {16}), i64({}, {rate}), f32({}, {low}), f32({}, {high})};
  };
  const Tensor bins = like(TN_FLOAT32, {9, 4}), image = like(TN_FLOAT32, {1, 1, 4, 4}),
               region = like(TN_FLOAT32, {1, 1, 1, 1}), cache = like(TN_FLOAT32, {2, 3, 1});
  const std::vector<Attr> unpool = {attr("kernel_shape", std::vector<int64_t>{2, 2}),
                                    attr("strides", std::vector<int64_t>{2, 2})};
  const std::vector<Case> cases = {
      {"NegativeLogLikelihoodLoss",
       {ramp({2, 3}), i64({2}, {0, 3})},
       scalar,
       {},
       "operand target holds 3; expected 0 to 2"},
      {"NegativeLogLikelihoodLoss", {ramp({2, 3}), i64({2}, {-1, 0})}, scalar, {}, "operand target holds -1"},
      {"SoftmaxCrossEntropyLoss",
       {ramp({2, 3}), i64({2}, {5, 0})},
       scalar,
       {attr("ignore_index", 4)},
       "operand labels holds 5"},
      {"MelWeightMatrix", mel(0, 10, 400), bins, {}, "operand sample_rate"},
      {"MelWeightMatrix", mel(1000, -1, 400), bins, {}, "operand lower_edge_hertz"},
      {"MelWeightMatrix", mel(1000, nan, 400), bins, {}, "operand lower_edge_hertz"},
      {"MelWeightMatrix", mel(1000, 10, infinity), bins, {}, "operand upper_edge_hertz"},
      {"MelWeightMatrix", mel(1000, 10, 5), bins, {}, "operand upper_edge_hertz"},
      {"MelWeightMatrix", mel(1000, 10, 5000), bins, {}, "operand upper_edge_hertz lies beyond the spectrum"},
      {"STFT",
       {ramp({1, 8, 1}), i64({}, {0}), ramp({4})},
       like(TN_FLOAT32, {1, 2, 3, 2}),
       {},
       "operand frame_step"},
      {"STFT",
       {ramp({1, 8, 1}), i64({}, {5}), ramp({4})},
       like(TN_FLOAT32, {1, 2, 3, 2}),
       {},
       "operand frame_step"},
      {"MaxUnpool",
       {ramp({1, 1, 2, 2}), i64({1, 1, 2, 2}, {0, 1, 2, 16})},
       image,
       unpool,
       "operand I holds 16; expected 0 to 15"},
      {"MaxUnpool",
       {ramp({1, 1, 2, 2}), i64({1, 1, 2, 2}, {0, -1, 2, 3})},
       image,
       unpool,
       "operand I holds -1"},
      {"Col2Im", {ramp({1, 4, 9}), i64({2}, {4, 4}), i64({2}, {0, 4})}, image, {}, "block_shape"},
      {"Col2Im", {ramp({1, 4, 9}), i64({2}, {4, 4}), i64({2}, {1, 4})}, image, {}, "9 blocks"},
      {"RoiAlign",
       {ramp({1, 1, 4, 4}), f32({1, 4}, {0, 0, nan, 1}), i64({1}, {0})},
       region,
       {},
       "operand rois"},
      {"RoiAlign",
       {ramp({1, 1, 4, 4}), f32({1, 4}, {0, 0, 1, 1}), i64({1}, {1})},
       region,
       {},
       "operand batch_indices holds 1"},
      {"MaxRoiPool", {ramp({1, 1, 4, 4}), f32({1, 5}, {-1, 0, 0, 1, 1})}, region, {}, "operand rois"},
      {"MaxRoiPool", {ramp({1, 1, 4, 4}), f32({1, 5}, {0, 0, 0, 1e20, 1})}, region, {}, "operand rois"},
      {"ReverseSequence",
       {ramp({3, 1}), i64({1}, {4})},
       like(TN_FLOAT32, {3, 1}),
       {},
       "operand sequence_lens holds 4; expected 0 to 3"},
      {"TensorScatter",
       {ramp({2, 3, 1}), ramp({2, 2, 1}), i64({2}, {0, 2})},
       cache,
       {},
       "operand write_indices holds 2; expected 0 to 1"},
      {"TensorScatter",
       {ramp({2, 3, 1}), ramp({2, 2, 1}), i64({2}, {-1, 0})},
       cache,
       {},
       "operand write_indices holds -1"},
      {"Multinomial", {f32({1, 2}, {-infinity, -infinity})}, like(TN_INT32, {1, 1}), {}, "operand input"},
      {"Multinomial", {f32({1, 2}, {0, nan})}, like(TN_INT32, {1, 1}), {}, "operand input"},
      {"Multinomial", {f32({1, 0}, {})}, like(TN_INT32, {1, 1}), {}, "operand input"},
  };
  for (const Case& c : cases) {
    INFO(c.op << ": " << c.said);
    const auto o = run(c.op, c.in, c.result, c.attrs);
    REQUIRE(o.planned == TN_OK);
    CHECK(o.code != 0);
    CHECK_THAT(o.said, Catch::Contains(c.said));
  }
}

TEST_CASE("coordinates that are no numbers lie outside") {
  const std::vector<Value> in = {ramp({1, 1, 3, 3}),
                                 f32({1, 1, 4, 2}, {nan, 0, infinity, 0, -infinity, 1e38, 0, 0})};
  const Tensor result = like(TN_FLOAT32, {1, 1, 1, 4});
  for (const char* mode : {"linear", "nearest", "cubic"}) {
    INFO(mode);
    CHECK(compute("GridSample", in, result, {attr("mode", mode)}) == std::vector<double>{0, 0, 0, 5});
    CHECK(compute("GridSample", in, result, {attr("mode", mode), attr("padding_mode", "border")}) ==
          std::vector<double>{4, 6, 7, 5});
    CHECK(compute("GridSample", in, result, {attr("mode", mode), attr("padding_mode", "reflection")}).at(3) ==
          5);
  }
  // A moved tap of a convolution too.
  CHECK(compute("DeformConv",
                {ramp({1, 1, 2, 2}), f32({1, 1, 1, 1}, {1}),
                 f32({1, 2, 2, 2}, {nan, 0, infinity, 0, 0, 0, 0, 1})},
                like(TN_FLOAT32, {1, 1, 2, 2})) == std::vector<double>{0, 2, 0, 0});
}

TEST_CASE("a reflection ends inside, however far the coordinate") {
  std::vector<double> places;
  for (double far : {3e38, -3e38, 1e20, -1e20, 12345678.0, -7.25}) {
    places.push_back(far);
    places.push_back(-far);
  }
  const auto n = static_cast<int64_t>(places.size() / 2);
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (int corners : {0, 1})
      for (double y :
           compute("GridSample", {f32({1, 1, 3, 3}, std::vector<double>(9, 2.0)), f32({1, 1, n, 2}, places)},
                   like(TN_FLOAT32, {1, 1, 1, n}),
                   {attr("mode", mode), attr("padding_mode", "reflection"), attr("align_corners", corners)}))
        CHECK(y == Approx(2));
}

TEST_CASE("elements that are no numbers are moved") {
  Call c;
  c.op = "GridSample";
  c.attrs = {attr("mode", "nearest"), attr("align_corners", 1)};
  c.inputs = {value(text_tensor({1, 1, 1, 2}, {"a", "b"})), f32({1, 1, 3, 2}, {-1, 0, 1, 0, 4, 0})};
  c.outputs = {value(text_tensor({1, 1, 1, 3}, {"", "", ""}))};
  auto o = run(c);
  REQUIRE(o.code == 0);
  CHECK(o.outputs[0].tensor.texts == std::vector<std::string>{"a", "b", ""});
  c.op = "CenterCropPad";
  c.attrs.clear();
  c.inputs = {value(text_tensor({2}, {"a", "b"})), i64({1}, {5})};
  c.outputs = {value(text_tensor({5}, {"", "", "", "", ""}))};
  o = run(c);
  REQUIRE(o.code == 0);
  CHECK(o.outputs[0].tensor.texts == std::vector<std::string>{"", "a", "b", "", ""});
}

TEST_CASE("regions without bounds end, and cover what there is") {
  const Tensor result = like(TN_FLOAT32, {1, 1, 1, 1});
  const std::vector<Value> all = {f32({1, 1, 2, 2}, {3, 3, 3, 3}), f32({1, 4}, {-1e30, -1e30, 1e30, 1e30}),
                                  i64({1}, {0})};
  CHECK(compute("RoiAlign", all, result).at(0) ==
        Approx(0).margin(1e-6));  // all but a few of its points lie outside
  const std::vector<Value> turned = {f32({1, 1, 2, 2}, {3, 3, 3, 3}), f32({1, 4}, {1, 1, 0, 0}),
                                     i64({1}, {0})};
  CHECK(compute("RoiAlign", turned, result).at(0) == 0);
  CHECK(compute("MaxRoiPool", {ramp({1, 1, 2, 2}), f32({1, 5}, {0, -1e8, -1e8, 1e8, 1e8})}, result,
                {attr("pooled_shape", std::vector<int64_t>{1, 1})})
            .at(0) == 4);
}

TEST_CASE("empty and single operands") {
  CHECK(compute("HannWindow", {i64({}, {1})}, like(TN_FLOAT32, {1}), {attr("periodic", 0)}) ==
        std::vector<double>{1});
  CHECK(compute("HannWindow", {i64({}, {0})}, like(TN_FLOAT32, {0})).empty());
  CHECK(compute("Det", {f32({2, 0, 0}, {})}, like(TN_FLOAT32, {2})) == std::vector<double>{1, 1});
  CHECK(compute("AffineGrid", {f32({1, 2, 3}, {1, 0, 0, 0, 1, 0}), i64({4}, {1, 1, 1, 1})},
                like(TN_FLOAT32, {1, 1, 1, 2}), {attr("align_corners", 1)}) == std::vector<double>{0, 0});
  CHECK(compute("NegativeLogLikelihoodLoss", {f32({0, 3}, {}), i64({0}, {})}, like(TN_FLOAT32, {}),
                {attr("reduction", "sum")}) == std::vector<double>{0});
  const auto ignored = compute("NegativeLogLikelihoodLoss", {ramp({1, 3}), i64({1}, {7})},
                               like(TN_FLOAT32, {}), {attr("ignore_index", 7)});
  CHECK(ignored.at(0) != ignored.at(0));  // the mean of nothing
}

TEST_CASE("BitCast keeps bits, and makes true of every byte that is not 0") {
  CHECK(compute("BitCast", {value(tensor(TN_UINT8, {4}, {0, 1, 2, 255}))}, like(TN_BOOL, {4})) ==
        std::vector<double>{0, 1, 1, 1});
  CHECK(compute("BitCast", {value(tensor(TN_INT4, {3}, {-1, 7, -8}))}, like(TN_UINT4, {3})) ==
        std::vector<double>{15, 7, 8});
}

TEST_CASE("TensorScatter into a cache of four-bit elements keeps their neighbours") {
  CHECK(compute("TensorScatter",
                {value(tensor(TN_INT4, {1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, -8, -7})),
                 value(tensor(TN_INT4, {1, 1, 3}, {-1, -2, -3})), i64({1}, {1})},
                like(TN_INT4, {1, 3, 3})) == std::vector<double>{1, 2, 3, -1, -2, -3, 7, -8, -7});
}

TEST_CASE("Multinomial draws by probability, the same with a seed") {
  const std::vector<Attr> attrs = {attr("sample_size", 4000), attr("seed", 3.0)};
  const std::vector<Value> in = {f32({2, 3}, {0, std::log(3.0), -infinity, -infinity, -infinity, 5})};
  const auto drawn = compute("Multinomial", in, like(TN_INT32, {2, 4000}), attrs);
  CHECK(drawn == compute("Multinomial", in, like(TN_INT32, {2, 4000}), attrs));
  double ones = 0;
  for (size_t i = 0; i < 4000; ++i) {
    CHECK((drawn[i] == 0 || drawn[i] == 1));
    ones += drawn[i];
    if (drawn[4000 + i] != 2) FAIL("a class without probability was drawn");
  }
  CHECK(ones / 4000 == Approx(0.75).margin(0.03));
}

}  // namespace tenon::reference::test
