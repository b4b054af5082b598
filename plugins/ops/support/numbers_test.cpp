// What the standard's own cases leave open: integers at their ends, saturation, negative pads, fused
// operators against the operators they stand for, zero-sized tensors, a seed.
#include <catch2/catch.hpp>

#include "support/test_harness.hpp"

namespace tenon::reference::test {
namespace {

/// Deterministic numbers in [-1, 1).
Value noise(Dims dims, uint64_t seed) {
  std::vector<double> x(static_cast<size_t>(element_count(dims)));
  for (auto& v : x) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<double>(static_cast<int64_t>(seed) >> 40) * 0x1p-23;
  }
  return f32(std::move(dims), x);
}
Tensor empty(tn_dtype dtype, Dims dims) {
  const auto n = static_cast<size_t>(element_count(dims));
  return tensor(dtype, std::move(dims), std::vector<double>(n, 0));
}
std::vector<double> compute(const std::string& op, std::vector<Value> in, Tensor like,
                            std::vector<Attr> attrs = {}) {
  auto o = run(op, std::move(in), std::move(like), std::move(attrs));
  INFO(op << ": " << o.said);
  REQUIRE(o.planned == TN_OK);
  REQUIRE(o.code == 0);
  return numbers(o.outputs.at(0).tensor);
}
void close(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == Approx(b[i]).margin(2e-6));
}

}  // namespace

TEST_CASE("integer division and remainder are defined for every operand", "[integers]") {
  Tensor a, b;
  a.dtype = b.dtype = TN_INT64;
  a.dims = b.dims = {3};
  const int64_t x[] = {INT64_MIN, 5, -7}, y[] = {-1, 0, 2};
  a.bytes.assign(reinterpret_cast<const uint8_t*>(x), reinterpret_cast<const uint8_t*>(x) + sizeof x);
  b.bytes.assign(reinterpret_cast<const uint8_t*>(y), reinterpret_cast<const uint8_t*>(y) + sizeof y);
  const auto read = [](const Outcome& o) {
    std::vector<int64_t> r(3);
    std::memcpy(r.data(), o.outputs.at(0).tensor.bytes.data(), 24);
    return r;
  };
  CHECK(read(run("Div", {value(a), value(b)}, a)) == std::vector<int64_t>{INT64_MIN, 0, -3});
  CHECK(read(run("Mod", {value(a), value(b)}, a)) == std::vector<int64_t>{0, 0, 1});
  CHECK(read(run("Mod", {value(a), value(b)}, a, {attr("fmod", 1)})) == std::vector<int64_t>{0, 0, -1});
  CHECK(read(run("Abs", {value(a)}, a))[0] == INT64_MIN);
}

TEST_CASE("casts of reals saturate and give 0 for NaN", "[cast]") {
  const double nan = std::nan("");
  CHECK(compute("Cast", {f32({5}, {300, -1, nan, 1e30, 2.9})}, empty(TN_UINT8, {5})) ==
        std::vector<double>{255, 0, 0, 255, 2});
  CHECK(compute("Cast", {f32({3}, {1e30, -1e30, nan})}, empty(TN_INT32, {3})) ==
        std::vector<double>{2147483647, -2147483648.0, 0});
  CHECK(compute("Cast", {f32({2}, {nan, -0.0})}, empty(TN_BOOL, {2})) == std::vector<double>{1, 0});
  // One rounding from double: a value just above the middle of two halves rounds up.
  CHECK(compute("Cast", {value(tensor(TN_FLOAT64, {1}, {1 + 0x1p-11 + 0x1p-40}))}, empty(TN_FLOAT16, {1})) ==
        std::vector<double>{1 + 0x1p-10});
}

TEST_CASE("packed integers are written whole, the unused half of the last byte is zero", "[cast]") {
  auto o = run("Cast", {f32({3}, {1, -2, 7})}, empty(TN_INT4, {3}));
  CHECK(o.outputs.at(0).tensor.bytes == std::vector<uint8_t>{0xe1, 0x07});
}

TEST_CASE("negative pads cut", "[pad]") {
  CHECK(compute("Pad", {f32({4}, {1, 2, 3, 4}), value(tensor(TN_INT64, {2}, {-1, 1}))},
                empty(TN_FLOAT32, {4})) == std::vector<double>{2, 3, 4, 0});
}

TEST_CASE("FusedConv is Conv, residual, activation", "[fused]") {
  const auto x = noise({2, 3, 9, 8}, 1), w = noise({66, 3, 3, 3}, 2), b = noise({66}, 3),
             r = noise({2, 66, 9, 8}, 4);
  const std::vector<Attr> pads = {attr("pads", std::vector<int64_t>{1, 1, 1, 1})};
  auto plain = compute("Conv", {x, w, b}, empty(TN_FLOAT32, {2, 66, 9, 8}), pads);
  const auto rest = numbers(r.tensor);
  for (size_t i = 0; i < plain.size(); ++i) plain[i] = std::max(0.0, plain[i] + rest[i]);
  auto attrs = pads;
  attrs.push_back(attr("activation", "Relu"));
  close(compute("tenon::FusedConv", {x, w, b, r}, empty(TN_FLOAT32, {2, 66, 9, 8}), attrs), plain);
}

TEST_CASE("FusedGemm and FusedMatMul are the product, bias, activation", "[fused]") {
  const auto a = noise({5, 300}, 5), b = noise({300, 70}, 6), c = noise({70}, 7);
  auto plain = compute("Gemm", {a, b, c}, empty(TN_FLOAT32, {5, 70}));
  for (auto& v : plain) v = std::min(std::max(v, -0.25), 0.5);
  close(compute("tenon::FusedMatMul", {a, b, c}, empty(TN_FLOAT32, {5, 70}),
                {attr("activation", "Clip"), attr("alpha", -0.25), attr("beta", 0.5)}),
        plain);
  close(compute("tenon::FusedGemm", {a, b, c}, empty(TN_FLOAT32, {5, 70}),
                {attr("activation", "Clip"), attr("activation_alpha", -0.25), attr("activation_beta", 0.5)}),
        plain);
  CHECK(run("tenon::FusedMatMul", {a, b, c}, empty(TN_FLOAT32, {5, 70}), {attr("activation", "Soft")})
            .said.find("'Soft' is not known") != std::string::npos);
}

TEST_CASE("SDPA is MatMul, scale, mask, Softmax, MatMul", "[fused]") {
  const auto q = noise({2, 3, 5, 8}, 8), k = noise({2, 3, 70, 8}, 9), v = noise({2, 3, 70, 4}, 10),
             mask = noise({2, 1, 1, 70}, 11);
  Tensor turned = empty(TN_FLOAT32, {2, 3, 8, 70});
  const auto kt = compute("Transpose", {k}, turned, {attr("perm", std::vector<int64_t>{0, 1, 3, 2})});
  const auto scores = compute("MatMul", {q, f32({2, 3, 8, 70}, kt)}, empty(TN_FLOAT32, {2, 3, 5, 70}));
  std::vector<double> scaled = scores;
  for (auto& s : scaled) s *= 0.35;
  const auto masked = compute("Add", {f32({2, 3, 5, 70}, scaled), mask}, empty(TN_FLOAT32, {2, 3, 5, 70}));
  const auto p = compute("Softmax", {f32({2, 3, 5, 70}, masked)}, empty(TN_FLOAT32, {2, 3, 5, 70}));
  const auto want = compute("MatMul", {f32({2, 3, 5, 70}, p), v}, empty(TN_FLOAT32, {2, 3, 5, 4}));
  close(compute("tenon::SDPA", {q, k, v, mask}, empty(TN_FLOAT32, {2, 3, 5, 4}), {attr("scale", 0.35)}),
        want);
  close(compute("tenon::SDPA", {q, f32({2, 3, 8, 70}, kt), v, mask}, empty(TN_FLOAT32, {2, 3, 5, 4}),
                {attr("scale", 0.35), attr("k_is_transposed", 1)}),
        want);
}

TEST_CASE("MatMulAddLayerNorm, SkipLayerNorm and SkipRmsNorm give the normalised sum and the sum",
          "[fused]") {
  const auto a = noise({2, 40, 9}, 12), b = noise({9, 66}, 13), c = noise({66}, 14),
             r = noise({2, 40, 66}, 15), g = noise({66}, 16), h = noise({66}, 17);
  const Dims dims = {2, 40, 66};
  const auto product = compute("tenon::FusedMatMul", {a, b, c}, empty(TN_FLOAT32, dims));
  const auto sum = compute("Add", {f32(dims, product), r}, empty(TN_FLOAT32, dims));
  const auto want = compute("LayerNormalization", {f32(dims, sum), g, h}, empty(TN_FLOAT32, dims));
  Call call;
  call.op = "tenon::MatMulAddLayerNorm";
  call.inputs = {a, b, c, r, g, h};
  call.outputs = {value(empty(TN_FLOAT32, dims)), value(empty(TN_FLOAT32, dims))};
  auto o = run(call);
  REQUIRE(o.code == 0);
  close(numbers(o.outputs.at(1).tensor), sum);
  for (size_t i = 0; i < want.size(); ++i)
    CHECK(numbers(o.outputs[0].tensor)[i] == Approx(want[i]).margin(1e-5));
  call.op = "tenon::SkipLayerNorm";
  call.inputs = {f32(dims, product), r, g, h};
  o = run(call);
  REQUIRE(o.code == 0);
  close(numbers(o.outputs.at(1).tensor), sum);
  close(numbers(o.outputs.at(0).tensor), want);

  // C is added first, one number a column.
  const auto shifted = compute("Add", {f32(dims, sum), c}, empty(TN_FLOAT32, dims));
  call.inputs = {f32(dims, product), r, g, h, c};
  o = run(call);
  REQUIRE(o.code == 0);
  close(numbers(o.outputs.at(1).tensor), shifted);
  close(numbers(o.outputs.at(0).tensor),
        compute("LayerNormalization", {f32(dims, shifted), g, h}, empty(TN_FLOAT32, dims)));
  call.op = "tenon::SkipRmsNorm";
  call.inputs = {f32(dims, product), r, g, c};
  o = run(call);
  REQUIRE(o.code == 0);
  close(numbers(o.outputs.at(1).tensor), shifted);
  close(numbers(o.outputs.at(0).tensor),
        compute("RMSNormalization", {f32(dims, shifted), g}, empty(TN_FLOAT32, dims)));
}

TEST_CASE("zero-sized tensors are legal", "[empty]") {
  CHECK(compute("Add", {f32({0, 3}, {}), f32({3}, {1, 2, 3})}, empty(TN_FLOAT32, {0, 3})).empty());
  CHECK(compute("MatMul", {f32({2, 0}, {}), f32({0, 3}, {})}, empty(TN_FLOAT32, {2, 3})) ==
        std::vector<double>(6, 0));
  CHECK(compute("Concat", {f32({0, 2}, {}), f32({1, 2}, {1, 2})}, empty(TN_FLOAT32, {1, 2}),
                {attr("axis", 0)}) == std::vector<double>{1, 2});
  CHECK(compute("Transpose", {f32({2, 0}, {})}, empty(TN_FLOAT32, {0, 2})).empty());
  CHECK(compute("Softmax", {f32({2, 0}, {})}, empty(TN_FLOAT32, {2, 0})).empty());
  CHECK(compute("Conv", {f32({0, 1, 3, 3}, {}), f32({1, 1, 2, 2}, {1, 1, 1, 1})},
                empty(TN_FLOAT32, {0, 1, 2, 2}))
            .empty());
  CHECK(compute("ReduceMax", {value(empty(TN_INT8, {0, 2})), value(tensor(TN_INT64, {1}, {0}))},
                empty(TN_INT8, {1, 2})) == std::vector<double>{-128, -128});
  CHECK(compute("Gather", {f32({3, 0}, {}), value(tensor(TN_INT64, {2}, {0, 1}))}, empty(TN_FLOAT32, {2, 0}))
            .empty());
}

TEST_CASE("a seed fixes the numbers, a run without one draws fresh ones", "[random]") {
  const std::vector<Attr> shape = {attr("shape", std::vector<int64_t>{1000})};
  auto seeded = shape;
  seeded.push_back(attr("seed", 3.0));
  const auto once = compute("RandomNormal", {}, empty(TN_FLOAT32, {1000}), seeded);
  CHECK(once == compute("RandomNormal", {}, empty(TN_FLOAT32, {1000}), seeded));
  double mean = 0, square = 0;
  for (double x : once) {
    mean += x / 1000;
    square += x * x / 1000;
  }
  CHECK(std::fabs(mean) < 0.15);
  CHECK(square == Approx(1).margin(0.2));
  const auto drawn = compute("RandomUniform", {}, empty(TN_FLOAT32, {1000}), seeded);
  CHECK(*std::min_element(drawn.begin(), drawn.end()) >= 0);
  CHECK(*std::max_element(drawn.begin(), drawn.end()) < 1);
}

}  // namespace tenon::reference::test
