// Products of 8-bit integers against plain sums, over shapes that meet every block, lane and slice; and the
// way back to 8 bits against its formula.
#include <catch2/catch.hpp>

#include "support/test_harness.hpp"

namespace tenon::reference::test {
namespace {

struct Numbers {
  uint64_t seed;
  int64_t below(int64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((seed >> 33) % static_cast<uint64_t>(n));
  }
};
bool with_sign(tn_dtype dtype) { return dtype == TN_INT8; }
std::vector<double> bytes(Numbers& from, tn_dtype dtype, int64_t n) {
  std::vector<double> r(static_cast<size_t>(n));
  for (auto& x : r) x = static_cast<double>(from.below(256) - (with_sign(dtype) ? 128 : 0));
  return r;
}
std::vector<double> run_call(const std::string& op, std::vector<Value> in, Tensor like,
                             std::vector<Attr> attrs, bool constants) {
  Call call;
  call.op = op;
  call.inputs = std::move(in);
  call.outputs = {value(std::move(like))};
  call.attrs = std::move(attrs);
  call.constants = constants;
  auto o = run(std::move(call));
  INFO(op << ": " << o.said);
  REQUIRE(o.planned == TN_OK);
  REQUIRE(o.code == 0);
  return numbers(o.outputs.at(0).tensor);
}
Tensor empty(tn_dtype dtype, Dims dims) {
  const auto n = static_cast<size_t>(element_count(dims));
  return tensor(dtype, std::move(dims), std::vector<double>(n, 0));
}
double at(const std::vector<double>& v, int64_t i) {
  return v.size() == 1 ? v[0] : v[static_cast<size_t>(i)];
}

/// One product: [m,k] by [k,n], zero points one or one a line.
struct Matrices {
  tn_dtype a_type, b_type;
  int64_t m, n, k;
  std::vector<double> a, b, a_zero, b_zero;
  Matrices(tn_dtype at, tn_dtype bt, int64_t mm, int64_t nn, int64_t kk, bool by_line, Numbers& from)
      : a_type(at), b_type(bt), m(mm), n(nn), k(kk) {
    a = bytes(from, at, m * k);
    b = bytes(from, bt, k * n);
    a_zero = bytes(from, at, by_line ? m : 1);
    b_zero = bytes(from, bt, by_line ? n : 1);
  }
  double sum(int64_t i, int64_t j) const {
    double s = 0;
    for (int64_t q = 0; q < k; ++q)
      s += (a[static_cast<size_t>(i * k + q)] - test::at(a_zero, i)) *
           (b[static_cast<size_t>(q * n + j)] - test::at(b_zero, j));
    return s;
  }
  Value value_a() const { return value(tensor(a_type, {m, k}, a)); }
  Value value_b() const { return value(tensor(b_type, {k, n}, b)); }
  Value zero(tn_dtype type, const std::vector<double>& z) const {
    return value(tensor(type, z.size() == 1 ? Dims{} : Dims{static_cast<int64_t>(z.size())}, z));
  }
};
constexpr tn_dtype byte_types[] = {TN_INT8, TN_UINT8};

}  // namespace

TEST_CASE("MatMulInteger is the sum of products", "[quant]") {
  Numbers from{1};
  const int64_t shapes[][3] = {{1, 1, 1},     {3, 5, 7},     {4, 4, 16}, {65, 129, 33},
                               {2, 130, 513}, {70, 3, 1030}, {5, 4, 0}};
  for (const tn_dtype a_type : byte_types)
    for (const tn_dtype b_type : byte_types)
      for (const auto& shape : shapes)
        for (const bool by_line : {false, true})
          for (const bool constants : {false, true}) {
            const Matrices x(a_type, b_type, shape[0], shape[1], shape[2], by_line, from);
            INFO(x.m << " x " << x.n << " x " << x.k << (by_line ? " by line" : "")
                     << (constants ? " constant" : ""));
            const auto y =
                run_call("MatMulInteger",
                         {x.value_a(), x.value_b(), x.zero(a_type, x.a_zero), x.zero(b_type, x.b_zero)},
                         empty(TN_INT32, {x.m, x.n}), {}, constants);
            bool same = true;
            for (int64_t i = 0; i < x.m; ++i)
              for (int64_t j = 0; j < x.n; ++j)
                same = same && y[static_cast<size_t>(i * x.n + j)] == x.sum(i, j);
            CHECK(same);
          }
}

TEST_CASE("MatMulInteger multiplies batches, and one matrix with many", "[quant]") {
  Numbers from{2};
  const auto a = bytes(from, TN_UINT8, 2 * 3 * 2), b = bytes(from, TN_INT8, 2 * 2 * 5);
  for (const bool shared : {false, true}) {
    const std::vector<double> right(b.begin(), b.begin() + (shared ? 10 : 20));
    const auto y = run_call("MatMulInteger",
                            {value(tensor(TN_UINT8, {2, 3, 2}, a)),
                             value(tensor(TN_INT8, shared ? Dims{2, 5} : Dims{2, 2, 5}, right)),
                             value(tensor(TN_UINT8, {2, 3, 1}, {1, 2, 3, 4, 5, 6}))},
                            empty(TN_INT32, {2, 3, 5}), {}, false);
    for (int64_t batch = 0; batch < 2; ++batch)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t j = 0; j < 5; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < 2; ++k)
            sum +=
                (a[static_cast<size_t>((batch * 3 + i) * 2 + k)] - static_cast<double>(batch * 3 + i + 1)) *
                right[static_cast<size_t>((shared ? 0 : batch * 10) + k * 5 + j)];
          CHECK(y[static_cast<size_t>((batch * 3 + i) * 5 + j)] == sum);
        }
  }
}

TEST_CASE("QLinearMatMul scales its sums, rounds halves to even, adds the zero point and saturates",
          "[quant]") {
  Numbers from{3};
  for (const tn_dtype y_type : byte_types)
    for (const tn_dtype real : {TN_FLOAT32, TN_FLOAT16, TN_BFLOAT16})
      for (const bool by_line : {false, true}) {
        const Matrices x(TN_UINT8, TN_INT8, 9, 6, 20, by_line, from);
        const auto scales = [&](int64_t n) {
          std::vector<double> r(static_cast<size_t>(by_line ? n : 1));
          for (auto& s : r) s = std::ldexp(1.0, static_cast<int>(from.below(3)) - 6);  // exact in every type
          return r;
        };
        const auto a_scale = scales(x.m), b_scale = scales(x.n), y_scale = scales(x.m);
        const auto y_zero = bytes(from, y_type, by_line ? x.m : 1);
        const auto list = [](tn_dtype type, const std::vector<double>& v) {
          return value(tensor(type, v.size() == 1 ? Dims{} : Dims{static_cast<int64_t>(v.size())}, v));
        };
        const auto y = run_call(
            "QLinearMatMul",
            {x.value_a(), list(real, a_scale), list(TN_UINT8, x.a_zero), x.value_b(), list(real, b_scale),
             list(TN_INT8, x.b_zero), list(real, y_scale), list(y_type, y_zero)},
            empty(y_type, {x.m, x.n}), {}, true);
        const double low = with_sign(y_type) ? -128 : 0;
        for (int64_t i = 0; i < x.m; ++i)
          for (int64_t j = 0; j < x.n; ++j) {
            const double scaled = x.sum(i, j) * at(a_scale, i) * at(b_scale, j) / at(y_scale, i);
            const double wanted = std::min(std::max(std::nearbyint(scaled) + at(y_zero, i), low), low + 255);
            CHECK(y[static_cast<size_t>(i * x.n + j)] == wanted);
          }
      }
}

TEST_CASE("QLinearMatMul of 8-bit floats", "[quant]") {
  const auto f8 = [](Dims dims, const std::vector<double>& v) {
    return value(tensor(TN_FLOAT8_E4M3FN, std::move(dims), v));
  };
  const auto f32 = [](double v) { return value(tensor(TN_FLOAT32, {}, {v})); };
  const auto y = run_call("QLinearMatMul",
                          {f8({1, 2}, {1.5, -2}), f32(2), f8({}, {0}), f8({2, 2}, {1, 0.5, 3, 100}), f32(0.5),
                           f8({}, {0}), f32(0.25), f8({}, {0})},
                          empty(TN_FLOAT8_E4M3FN, {1, 2}), {}, false);
  CHECK(y == std::vector<double>{-18, -448});  // (1.5 - 6) * 4; (0.75 - 200) * 4 saturates
}

namespace {
/// A convolution by its definition, of one to two axes (the last two of x and w).
struct Convolution {
  int64_t n, c, h, w, m, kh, kw, group, stride, dilation, pad;
  int64_t out(int64_t size, int64_t kernel) const {
    return (size + 2 * pad - (kernel - 1) * dilation - 1) / stride + 1;
  }
};
std::vector<double> convolve(const Convolution& c, const std::vector<double>& x, const std::vector<double>& w,
                             double x_zero, const std::vector<double>& w_zero) {
  const int64_t oh = c.out(c.h, c.kh), ow = c.out(c.w, c.kw), each = c.c / c.group;
  std::vector<double> y;
  for (int64_t n = 0; n < c.n; ++n)
    for (int64_t m = 0; m < c.m; ++m)
      for (int64_t i = 0; i < oh; ++i)
        for (int64_t j = 0; j < ow; ++j) {
          double sum = 0;
          for (int64_t q = 0; q < each; ++q)
            for (int64_t a = 0; a < c.kh; ++a)
              for (int64_t b = 0; b < c.kw; ++b) {
                const int64_t row = i * c.stride - c.pad + a * c.dilation,
                              column = j * c.stride - c.pad + b * c.dilation;
                if (row < 0 || row >= c.h || column < 0 || column >= c.w) continue;
                const int64_t channel = m / (c.m / c.group) * each + q;
                sum += (x[static_cast<size_t>(((n * c.c + channel) * c.h + row) * c.w + column)] - x_zero) *
                       (w[static_cast<size_t>(((m * each + q) * c.kh + a) * c.kw + b)] - at(w_zero, m));
              }
          y.push_back(sum);
        }
  return y;
}
constexpr Convolution convolutions[] = {
    {1, 1, 3, 3, 1, 2, 2, 1, 1, 1, 0},    {2, 3, 9, 8, 5, 3, 3, 1, 1, 1, 1},
    {1, 8, 12, 11, 12, 3, 2, 2, 2, 1, 1}, {1, 6, 10, 70, 6, 3, 3, 6, 1, 1, 1},
    {1, 4, 7, 7, 8, 3, 3, 4, 2, 2, 2},    {1, 70, 5, 5, 131, 3, 3, 1, 1, 1, 1},
    {2, 16, 6, 13, 9, 1, 1, 1, 1, 1, 0},
};
}  // namespace

TEST_CASE("ConvInteger and QLinearConv are the sums of their windows", "[quant]") {
  Numbers from{4};
  for (const auto& c : convolutions)
    for (const tn_dtype x_type : byte_types)
      for (const tn_dtype w_type : byte_types)
        for (const bool constants : {false, true}) {
          INFO(c.c << " channels to " << c.m << " in " << c.group << " groups"
                   << (constants ? ", constant" : ""));
          const auto x = bytes(from, x_type, c.n * c.c * c.h * c.w),
                     w = bytes(from, w_type, c.m * (c.c / c.group) * c.kh * c.kw);
          const auto x_zero = bytes(from, x_type, 1), w_zero = bytes(from, w_type, constants ? 1 : c.m);
          const Dims y_dims{c.n, c.m, c.out(c.h, c.kh), c.out(c.w, c.kw)};
          const std::vector<Attr> attrs = {attr("group", c.group),
                                           attr("strides", std::vector<int64_t>{c.stride, c.stride}),
                                           attr("dilations", std::vector<int64_t>{c.dilation, c.dilation}),
                                           attr("pads", std::vector<int64_t>(4, c.pad))};
          const auto xv = value(tensor(x_type, {c.n, c.c, c.h, c.w}, x));
          const auto wv = value(tensor(w_type, {c.m, c.c / c.group, c.kh, c.kw}, w));
          const auto zx = value(tensor(x_type, {}, x_zero));
          const auto zw = value(tensor(w_type, w_zero.size() == 1 ? Dims{} : Dims{c.m}, w_zero));
          const auto sums = convolve(c, x, w, x_zero[0], w_zero);
          CHECK(run_call("ConvInteger", {xv, wv, zx, zw}, empty(TN_INT32, y_dims), attrs, constants) == sums);

          std::vector<double> w_scale(static_cast<size_t>(c.m)), bias(static_cast<size_t>(c.m));
          for (auto& s : w_scale) s = std::ldexp(1.0, -static_cast<int>(from.below(4)));
          for (auto& b : bias) b = static_cast<double>(from.below(20001) - 10000);
          const auto one = [](double v) { return value(tensor(TN_FLOAT32, {}, {v})); };
          const auto y =
              run_call("QLinearConv",
                       {xv, one(0.5), zx, wv, value(tensor(TN_FLOAT32, {c.m}, w_scale)), zw, one(256),
                        value(tensor(TN_UINT8, {}, {101})), value(tensor(TN_INT32, {c.m}, bias))},
                       empty(TN_UINT8, y_dims), attrs, constants);
          const int64_t plane = y_dims[2] * y_dims[3];
          bool same = y.size() == sums.size();
          for (size_t i = 0; same && i < y.size(); ++i) {
            const auto m = static_cast<size_t>(static_cast<int64_t>(i) / plane % c.m);
            const double scaled = std::nearbyint((sums[i] + bias[m]) * 0.5 * w_scale[m] / 256) + 101;
            same = y[i] == std::min(std::max(scaled, 0.0), 255.0);
          }
          CHECK(same);
        }
}

TEST_CASE("kernels that move elements take those packed below 8 bits", "[quant]") {
  std::vector<double> x(15);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i % 4) - 2;
  const auto y =
      run_call("Transpose", {value(tensor(TN_INT4, {3, 5}, x))}, empty(TN_INT4, {5, 3}), {}, false);
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < 5; ++j) CHECK(y[j * 3 + i] == x[i * 5 + j]);
  std::vector<double> bits(7);
  for (size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<double>(i % 2);
  const auto padded = run_call("Pad",
                               {value(tensor(TN_INT2, {7}, bits)), value(tensor(TN_INT64, {2}, {1, 2})),
                                value(tensor(TN_INT2, {}, {-2}))},
                               empty(TN_INT2, {10}), {}, false);
  CHECK(padded == std::vector<double>{-2, 0, 1, 0, 1, 0, 1, 0, -2, -2});
  const auto joined =
      run_call("Concat", {value(tensor(TN_UINT4, {3}, {1, 2, 15})), value(tensor(TN_UINT4, {2}, {9, 4}))},
               empty(TN_UINT4, {5}), {attr("axis", 0)}, false);
  CHECK(joined == std::vector<double>{1, 2, 15, 9, 4});
}

}  // namespace tenon::reference::test
