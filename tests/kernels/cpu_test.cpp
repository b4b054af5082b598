// The cpu plugin's kernels against the reference plugin's: one graph a case, random operands, equal within
// float32's rounding, bit-equal from run to run and for one thread or three.
#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "core/runtime/session.hpp"
#include "tests/kernels/cpu_graphs.hpp"

using namespace tenon;
using test::engine;
using test::graph_of;
using test::number;

namespace {

struct Outcome {
  std::vector<std::vector<float>> values;
  uint64_t cpu_nodes = 0;
};

Outcome run(const std::string& body, bool reference, uint32_t threads, uint64_t seed = 1) {
  RuntimeOptions options;
  options.threads = threads;
  options.guard = true;
  if (reference) options.kernels.deny = {"tenon.cpu.*"};
  auto graph = graph_of(body);
  // Constants of zeros are placeholders: their operands become random inputs otherwise, weights must stay
  // constants.
  Session session(std::move(graph), engine().registries(), options);
  std::vector<std::vector<int64_t>> dims;
  std::vector<std::vector<float>> floats;
  std::vector<std::vector<int64_t>> integers;
  std::vector<NamedTensor> inputs;
  dims.reserve(16), floats.reserve(16), integers.reserve(16);
  for (const auto& i : session.inputs()) {
    auto& d = dims.emplace_back();
    int64_t n = 1;
    for (const auto& text : i.dims) d.push_back(std::stoll(text)), n *= d.back();
    NamedTensor t;
    t.name = i.name;
    if (i.dtype == TN_INT64) {
      auto& v = integers.emplace_back(static_cast<size_t>(n));
      for (size_t k = 0; k < v.size(); ++k) v[k] = static_cast<int64_t>(k % 5) - 2;
      t.tensor = {TN_INT64, static_cast<int32_t>(d.size()), d.data(), v.data(), v.size() * 8};
    } else {
      auto& v = floats.emplace_back(static_cast<size_t>(n));
      for (float& x : v) x = number(seed);
      t.tensor = {TN_FLOAT32, static_cast<int32_t>(d.size()), d.data(), v.data(), v.size() * 4};
    }
    inputs.push_back(t);
  }
  Outcome out;
  for (const auto& o : session.run(inputs)) {
    const tn_tensor t = o.tensor();
    auto& v = out.values.emplace_back(t.bytes / 4);
    if (t.bytes != 0) std::memcpy(v.data(), t.data, t.bytes);
  }
  const auto stats = session.stats();
  if (const auto at = stats.kernels.find("cpu"); at != stats.kernels.end()) out.cpu_nodes = at->second;
  return out;
}

void compare(const std::string& body, double rtol = 1e-4, double atol = 1e-5) {
  INFO(body);
  const Outcome want = run(body, true, 1), got = run(body, false, 1), again = run(body, false, 3),
                repeat = run(body, false, 3);
  REQUIRE(want.cpu_nodes == 0);
  REQUIRE(got.cpu_nodes > 0);
  REQUIRE(got.values.size() == want.values.size());
  for (size_t k = 0; k < want.values.size(); ++k) {
    REQUIRE(got.values[k].size() == want.values[k].size());
    if (!again.values[k].empty())
      CHECK(std::memcmp(again.values[k].data(), repeat.values[k].data(), again.values[k].size() * 4) == 0);
    for (const auto* side : {&got, &again}) {
      for (size_t i = 0; i < want.values[k].size(); ++i) {
        const double w = static_cast<double>(want.values[k][i]), g = static_cast<double>(side->values[k][i]);
        const bool equal =
            (std::isnan(w) && std::isnan(g)) || w == g || std::fabs(w - g) <= atol + rtol * std::fabs(w);
        if (!equal) FAIL("output " << k << " element " << i << ": reference " << w << ", cpu " << g);
      }
    }
  }
}

/// A float32 constant of these dims, as text; values repeat with a period that fits no dim.
std::string constant(const std::string& name, const std::vector<int64_t>& dims, uint64_t seed,
                     double scale = 0.5) {
  std::string d, v;
  int64_t n = 1;
  for (int64_t x : dims) d += (d.empty() ? "" : ",") + std::to_string(x), n *= x;
  for (int64_t i = 0; i < n; ++i)
    v += (i ? "," : "") + fmt::format("{:.4f}", static_cast<double>(number(seed)) * scale);
  return "  const %" + name + ": float32[" + d + "] = [" + v + "]\n";
}

}  // namespace

TEST_CASE("convolutions: pointwise, strided, padded, dilated, grouped, depthwise, one-dimensional") {
  const auto conv = [](const std::string& x, const std::vector<int64_t>& w, const std::string& attrs,
                       bool bias = true) {
    compare("  input %x: float32[" + x + "]\n" + constant("w", w, 3) +
                (bias ? constant("b", {w[0]}, 5) : "") + "  %y = Conv(%x, %w" + (bias ? ", %b" : "") + ") {" +
                attrs + "}\n  output %y as \"y\"\n",
            1e-4, 1e-4);
  };
  conv("1,8,9,11", {20, 8, 1, 1}, "kernel_shape = [1,1]");
  conv("3,16,5,5", {33, 16, 1, 1}, "kernel_shape = [1,1]", false);
  conv("1,8,9,11", {16, 8, 1, 1}, "kernel_shape = [1,1], strides = [2,2]");
  conv("2,3,17,19", {8, 3, 3, 3}, "kernel_shape = [3,3], pads = [1,1,1,1]");
  conv("1,16,28,28", {32, 16, 3, 3}, "kernel_shape = [3,3], pads = [1,1,1,1]");
  conv("1,32,7,7", {64, 32, 3, 3}, "kernel_shape = [3,3], pads = [1,1,1,1]");
  conv("1,3,32,32", {16, 3, 7, 7}, "kernel_shape = [7,7], pads = [3,3,3,3], strides = [2,2]");
  conv("1,4,15,15", {6, 4, 3, 3}, "kernel_shape = [3,3], dilations = [2,2], pads = [0,1,2,3]");
  conv("1,8,10,10", {12, 2, 3, 3}, "kernel_shape = [3,3], group = 4, pads = [1,1,1,1]");
  conv("2,10,13,9", {10, 1, 3, 3}, "kernel_shape = [3,3], group = 10, pads = [1,1,1,1]");
  conv("1,10,13,9", {10, 1, 5, 5}, "kernel_shape = [5,5], group = 10, strides = [2,2], pads = [2,2,2,2]");
  conv("1,6,20", {8, 6, 3}, "kernel_shape = [3], pads = [1,1]");
  conv("1,4,11,12", {4, 4, 3, 3}, "kernel_shape = [3,3], auto_pad = \"SAME_LOWER\", strides = [2,2]");
}

TEST_CASE("fused convolutions: residual and each activation") {
  for (const char* act :
       {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Swish", "Clip"}) {
    for (const char* shape : {"1,1", "3,3"}) {
      const bool pointwise = std::string(shape) == "1,1";
      const std::string body = "  input %x: float32[1,8,12,12]\n  input %r: float32[1,16,12,12]\n" +
                               constant("w", {16, 8, pointwise ? 1 : 3, pointwise ? 1 : 3}, 7) +
                               constant("b", {16}, 9) +
                               "  %y = tenon::FusedConv(%x, %w, %b, %r) {kernel_shape = [" + shape +
                               "], pads = [" + (pointwise ? "0,0,0,0" : "1,1,1,1") + "], activation = \"" +
                               act + "\", alpha = " + (std::string(act) == "Clip" ? "-0.5" : "0.3") +
                               ", beta = 0.7}\n  output %y as \"y\"\n";
      compare(body, 1e-4, 1e-4);
    }
  }
}

TEST_CASE("fused convolutions whose windows meet padding only keep their residual") {
  for (const char* attrs : {"pads = [1,0,1,1], strides = [2,2]", "pads = [2,2,0,0], strides = [3,3]",
                            "pads = [0,0,2,2], strides = [3,3]"}) {
    INFO(attrs);
    const bool square = attrs[8] != '1';
    compare(std::string("  input %x: float32[1,8,6,7]\n  input %r: float32[1,16,") +
                (square ? "3,3" : "4,4") + "]\n" + constant("w", {16, 8, 1, 1}, 7) + constant("b", {16}, 9) +
                "  %y = tenon::FusedConv(%x, %w, %b, %r) {kernel_shape = [1,1], " + attrs +
                ", activation = \"Relu\"}\n  output %y as \"y\"\n",
            1e-4, 1e-4);
  }
}

TEST_CASE("activations behind products keep NaN") {
  const std::string nan = "  const %k: float32[12,1] = [1,1,1,nan,1,1,1,1,1,1,1,1]\n";
  for (const std::string act : {"Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Swish",
                                "Clip", "Gelu", "Elu", "Mish"}) {
    const std::string activation = "activation = \"" + act +
                                   "\", alpha = " + (act == "Clip" ? "-0.5" : "0.3") +
                                   ", beta = 0.7}\n  output %y as \"y\"\n";
    compare("  input %x: float32[1,8,12,12]\n" + nan + constant("w", {16, 8, 1, 1}, 7) +
                "  %z = Mul(%x, %k)\n  %y = tenon::FusedConv(%z, %w) {kernel_shape = [1,1], " + activation,
            1e-4, 1e-4);
    compare("  input %x: float32[12,48]\n" + nan + constant("w", {48, 16}, 7) +
                "  %z = Mul(%x, %k)\n  %y = tenon::FusedMatMul(%z, %w) {" + activation,
            1e-4, 1e-4);
  }
}

TEST_CASE("functions of numbers far out, of infinities and of NaN") {
  for (const char* op : {"Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Softplus", "Elu", "Erf", "Relu",
                         "Reciprocal", "Abs", "HardSigmoid", "Floor", "Round", "Mish"})
    compare("  input %x: float32[5,9]\n  const %k: float32[5,1] = [200.0, 40.0, inf, nan, 0.0]\n" +
            std::string("  %z = Mul(%x, %k)\n  %y = ") + op + "(%z)\n  output %y as \"y\"\n");
}

TEST_CASE("rows of a softmax with one value far out, infinite or NaN") {
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (const char* k : {"nan", "inf", "3e38", "-inf"})
      for (const char* width : {"9", "33"})
        compare(std::string("  input %x: float32[5,") + width + "]\n  const %k: float32[5,1] = [1.0, " + k +
                ", 2.0, 0.0, 1.0]\n  const %one: float32[5,1] = [" + k + ", 1.0, " + k +
                ", 0.0, 1.0]\n  %z = Mul(%x, %k)\n  %w = Concat(%z, %one, %one) {axis = 1}\n  %y = " + op +
                "(%w)\n  output %y as \"y\"\n");
}

TEST_CASE("matrix products: constant and run-time operands, batches that broadcast, bias and activation") {
  compare("  input %a: float32[37,64]\n" + constant("b", {64, 80}, 3) +
              "  %y = MatMul(%a, %b)\n  output %y as \"y\"\n",
          1e-4, 1e-4);
  compare("  input %a: float32[2,5,33]\n" + constant("b", {33, 7}, 3) +
              "  %y = MatMul(%a, %b)\n  output %y as \"y\"\n",
          1e-4, 1e-4);
  compare("  input %a: float32[1,64]\n" + constant("b", {64, 200}, 3) +
              "  %y = MatMul(%a, %b)\n  output %y as \"y\"\n",
          1e-4, 1e-4);
  compare(
      "  input %a: float32[2,3,5,8]\n  input %b: float32[2,3,8,6]\n  %y = MatMul(%a, %b)\n  output %y as "
      "\"y\"\n",
      1e-4, 1e-4);
  compare(
      "  input %a: float32[2,1,5,8]\n  input %b: float32[3,8,6]\n  %y = MatMul(%a, %b)\n  output %y as "
      "\"y\"\n",
      1e-4, 1e-4);
  for (const char* act : {"", "Relu", "Gelu", "Tanh"})
    compare("  input %a: float32[9,48]\n" + constant("b", {48, 64}, 3) + constant("c", {64}, 5) +
                "  %y = tenon::FusedMatMul(%a, %b, %c) {activation = \"" + std::string(act) +
                "\"}\n  output %y as \"y\"\n",
            1e-4, 1e-4);
}

TEST_CASE("Gemm: transposes, scales, every way C broadcasts") {
  for (const char* c : {"", "7", "5,1", "1,7", "5,7", "1"})
    for (int t = 0; t < 4; ++t) {
      const std::string a = t & 1 ? "9,5" : "5,9", b = t & 2 ? "7,9" : "9,7",
                        attrs = fmt::format("transA = {}, transB = {}", t & 1, t >> 1);
      const std::string operands = *c ? "  input %c: float32[" + std::string(c) + "]\n" : "";
      compare("  input %a: float32[" + a + "]\n  input %b: float32[" + b + "]\n" + operands +
              "  %y = Gemm(%a, %b" + (*c ? ", %c" : "") + ") {" + attrs +
              ", alpha = 0.5, beta = 2.0}\n  output %y as \"y\"\n");
      compare("  input %a: float32[" + a + "]\n" +
              constant("b", t & 2 ? std::vector<int64_t>{7, 9} : std::vector<int64_t>{9, 7}, 3) + operands +
              "  %y = Gemm(%a, %b" + (*c ? ", %c" : "") + ") {" + attrs + "}\n  output %y as \"y\"\n");
    }
  compare("  input %a: float32[5,9]\n" + constant("b", {9, 7}, 3) + constant("c", {7}, 4) +
          "  %y = tenon::FusedGemm(%a, %b, %c) {alpha = 0.5, beta = 2.0, activation = \"LeakyRelu\", "
          "activation_alpha = 0.2}\n  output %y as \"y\"\n");
}

TEST_CASE("element-wise operators of one operand, tails of every length") {
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "HardSwish", "Mish", "Softplus", "Exp", "Neg", "Abs",
                         "Erf", "Floor", "Ceil", "Round", "LeakyRelu", "HardSigmoid", "Swish", "Elu", "Gelu"})
    for (int n : {1, 7, 16, 33, 1000})
      compare(fmt::format("  input %x: float32[{}]\n  %y = {}(%x)\n  output %y as \"y\"\n", n, op), 1e-5,
              3e-7);
  compare("  input %x: float32[100]\n  %y = Gelu(%x) {approximate = \"tanh\"}\n  output %y as \"y\"\n", 1e-5,
          1e-6);
  compare(
      "  input %x: float32[100]\n  %a = Abs(%x)\n  %s = Sqrt(%a)\n  %l = Log(%s)\n  %r = Reciprocal(%s)\n  "
      "output %l as \"l\"\n  output %r as \"r\"\n",
      1e-5, 1e-6);
  compare(
      "  input %x: float32[100]\n  const %lo: float32[] = [-0.5]\n  const %hi: float32[] = [0.5]\n  %y = "
      "Clip(%x, %lo, %hi)\n  %z = Clip(%x, _, %hi)\n  output %y as \"y\"\n  output %z as \"z\"\n",
      0, 0);
}

TEST_CASE("zeros keep their sign") {
  const std::string zeros =
      "  input %x: float32[100]\n  const %0: float32[] = [0]\n  const %one: float32[] = [1]\n"
      "  const %six: float32[] = [6]\n  const %low: float32[] = [-6]\n  %z = Mul(%x, %0)\n";  // of both signs
  for (const char* act : {"Clip(%z, %0, %six)",
                          "Clip(%z, %low, %0)",
                          "Clip(%z, %0)",
                          "Clip(%z, _, %0)",
                          "Relu(%z)",
                          "LeakyRelu(%z)",
                          "Tanh(%z)",
                          "Elu(%z)",
                          "HardSwish(%z)",
                          "Swish(%z)",
                          "Gelu(%z)",
                          "Mish(%z)",
                          "Abs(%z)",
                          "Neg(%z)",
                          "Sqrt(%z)",
                          "Floor(%z)",
                          "Ceil(%z)",
                          "Round(%z)",
                          "Sign(%z)",
                          "Erf(%z)",
                          "Sin(%z)",
                          "Max(%z, %0)",
                          "Min(%z, %0)",
                          "Max(%0, %z)",
                          "Min(%0, %z)",
                          "Add(%z, %z)",
                          "Sub(%z, %0)",
                          "Pow(%z, %one)",
                          "Softsign(%z)"})
    compare(zeros + "  %y = " + act + "\n  %s = Div(%one, %y)\n  output %s as \"s\"\n", 0, 0);
}

TEST_CASE("element-wise operators of two operands, every way they broadcast") {
  for (const char* op : {"Add", "Sub", "Mul", "Max", "Min"})
    for (const char* b : {"2,3,4,5", "5", "4,1", "1", "3,1,1", "2,1,1,1", "2,1,4,1", "1,3,1,5"}) {
      compare(fmt::format("  input %a: float32[2,3,4,5]\n  input %b: float32[{}]\n  %y = {}(%a, %b)\n  "
                          "output %y as \"y\"\n",
                          b, op),
              0, 0);
      compare(fmt::format("  input %a: float32[2,3,4,5]\n  input %b: float32[{}]\n  %y = {}(%b, %a)\n  "
                          "output %y as \"y\"\n",
                          b, op),
              0, 0);
    }
  compare(
      "  input %a: float32[8]\n  input %b: float32[3,1]\n  %e = Exp(%b)\n  %y = Div(%a, %e)\n  output %y as "
      "\"y\"\n",
      1e-5, 1e-6);
}

TEST_CASE("softmax, normalisations, means") {
  for (int n : {1, 5, 16, 77, 300}) {
    compare(fmt::format("  input %x: float32[3,{}]\n  %y = Softmax(%x)\n  %z = LogSoftmax(%x)\n  output %y "
                        "as \"y\"\n  output %z as \"z\"\n",
                        n),
            1e-5, 1e-6);
    compare(fmt::format("  input %x: float32[4,{0}]\n  input %s: float32[{0}]\n  input %b: float32[{0}]\n  "
                        "%y = LayerNormalization(%x, %s, %b)\n  %z = LayerNormalization(%x, %s)\n  output %y "
                        "as \"y\"\n  output %z as \"z\"\n",
                        n + 3),
            1e-4, 1e-5);
    compare(fmt::format("  input %x: float32[4,{0}]\n  input %s: float32[{0}]\n  %y = RMSNormalization(%x, "
                        "%s)\n  output %y as \"y\"\n",
                        n),
            1e-4, 1e-5);
  }
  compare(
      "  input %x: float32[2,4,6]\n  input %s: float32[4,6]\n  %y, %m, %i = LayerNormalization(%x, %s) {axis "
      "= 1}\n  output %y as \"y\"\n  output %m as \"m\"\n  output %i as \"i\"\n",
      1e-4, 1e-5);
  compare(
      "  input %x: float32[4,24]\n  input %k: float32[4,24]\n  input %s: float32[24]\n  input %b: "
      "float32[24]\n  %y, %u = tenon::SkipLayerNorm(%x, %k, %s, %b)\n  output %y as \"y\"\n  output %u as "
      "\"u\"\n",
      1e-4, 1e-5);
  compare("  input %x: float32[2,5,7,9]\n  %y = GlobalAveragePool(%x)\n  output %y as \"y\"\n", 1e-4, 1e-6);
  compare(
      "  input %x: float32[2,5,7]\n  const %a: int64[1] = [-1]\n  %y = ReduceMean(%x, %a)\n  %z = "
      "ReduceMean(%x, %a) {keepdims = 0}\n  output %y as \"y\"\n  output %z as \"z\"\n",
      1e-4, 1e-6);
}

TEST_CASE("attention: masks of every shape, transposed keys, heads that broadcast") {
  const std::string qkv =
      "  input %q: float32[2,3,70,8]\n  input %k: float32[2,3,9,8]\n  input %v: float32[2,3,9,5]\n";
  compare(qkv + "  %y = tenon::SDPA(%q, %k, %v) {scale = 0.35}\n  output %y as \"y\"\n", 1e-4, 1e-5);
  for (const char* m : {"9", "70,9", "2,1,1,9", "1,3,70,9", "70,1"})
    compare(qkv + "  input %m: float32[" + m +
                "]\n  %y = tenon::SDPA(%q, %k, %v, %m) {scale = 0.35}\n  output %y as \"y\"\n",
            1e-4, 1e-5);
  compare(
      "  input %q: float32[3,4,8]\n  input %k: float32[3,8,9]\n  input %v: float32[3,9,5]\n  %y = "
      "tenon::SDPA(%q, %k, %v) {scale = 1.0, k_is_transposed = 1}\n  output %y as \"y\"\n",
      1e-4, 1e-5);
}

TEST_CASE("attention reads heads where they lie, shares those of the keys, and takes every mask") {
  const std::string out = "}\n  output %y as \"y\"\n";
  const std::string flat =
      "  input %q: float32[2,70,24]\n  input %k: float32[2,9,24]\n  input %v: float32[2,9,12]\n";
  compare(flat + "  %y = Attention(%q, %k, %v) {q_num_heads = 3, kv_num_heads = 3" + out, 1e-4, 1e-5);
  for (const char* m : {"70,9", "1,9", "2,1,1,9", "1,3,70,9", "3,70,9"})
    compare(flat + "  input %m: float32[" + m +
                "]\n  %y = Attention(%q, %k, %v, %m) {q_num_heads = 3, kv_num_heads = 3, scale = 0.3" + out,
            1e-4, 1e-5);
  compare(
      "  input %q: float32[2,5,32]\n  input %k: float32[2,9,16]\n  input %v: float32[2,9,8]\n  %y = "
      "Attention(%q, %k, %v) {q_num_heads = 4, kv_num_heads = 2" +
          out,
      1e-4, 1e-5);
  compare(
      "  input %q: float32[2,4,5,8]\n  input %k: float32[2,2,9,8]\n  input %v: float32[2,2,9,4]\n  %y = "
      "Attention(%q, %k, %v) {scale = 0.5" +
          out,
      1e-4, 1e-5);
  // A query that may see no key yields zeros.
  compare(
      "  const %m: float32[2,3] = [-inf,-inf,-inf,0.0,-inf,0.5]\n  input %q: float32[1,2,8]\n  input %k: "
      "float32[1,3,8]\n  input %v: float32[1,3,8]\n  %y = Attention(%q, %k, %v, %m) {q_num_heads = 2, "
      "kv_num_heads = 2" +
          out,
      1e-4, 1e-5);
  // In MultiHeadSDPA it yields what the formula says: NaN.
  compare(
      "  const %m: float32[2,3] = [-inf,-inf,-inf,0.0,-inf,0.5]\n  input %q: float32[1,2,8]\n  input %k: "
      "float32[1,3,8]\n  input %v: float32[1,3,8]\n  %y = tenon::MultiHeadSDPA(%q, %k, %v, %m) {q_num_heads "
      "= "
      "2, kv_num_heads = 2" +
          out,
      1e-4, 1e-5);
  // A mask of one column leaves one key to be seen: it is not broadcast.
  compare(flat +
              "  input %m: float32[70,1]\n  %y0 = Attention(%q, %k, %v, %m) {q_num_heads = 3, kv_num_heads = "
              "3}\n  %y "
              "= Relu(%y0)\n  output %y as \"y\"\n",
          1e-4, 1e-5);
}

TEST_CASE("attention grows a cache, takes masks of true and false, and looks no further than its own place") {
  const std::string in =
      "  input %pk: float32[2,2,4,8]\n  input %pv: float32[2,2,4,6]\n  const %b: bool[3,7] = "
      "[1,0,1,1,0,1,1, 0,0,0,0,0,0,0, 1,1,1,1,1,1,0]\n  input %m: float32[1,4,3,7]\n";
  const std::string flat =
      in + "  input %q: float32[2,3,32]\n  input %k: float32[2,3,16]\n  input %v: float32[2,3,12]\n";
  const std::string split =
      in + "  input %q: float32[2,4,3,8]\n  input %k: float32[2,2,3,8]\n  input %v: float32[2,2,3,6]\n";
  const std::string heads = "q_num_heads = 4, kv_num_heads = 2, ";
  const std::string end = "}\n  output %y as \"y\"\n",
                    present = end + "  output %k2 as \"k2\"\n  output %v2 as \"v2\"\n";
  for (const char* causal : {"is_causal = 0", "is_causal = 1"})
    for (const char* mask : {", %m, ", ", %b, ", ", _, "})
      for (const bool grown : {false, true}) {
        const std::string call =
            std::string(grown ? "  %y, %k2, %v2" : "  %y") + " = Attention(%q, %k, %v" + mask + "%pk, %pv) {";
        compare(flat + call + heads + causal + (grown ? present : end), 1e-4, 1e-5);
        compare(split + call + causal + (grown ? present : end), 1e-4, 1e-5);
      }
  compare(flat + "  %y, %k2, %v2 = tenon::MultiHeadSDPA(%q, %k, %v, %m, %pk, %pv) {scale = 0.3, " +
              heads.substr(0, heads.size() - 2) + present,
          1e-4, 1e-5);
  // Every head has its own keys, one block of queries: the copy is read.
  const std::string own =
      "  input %q: float32[1,3,16]\n  input %k: float32[1,3,16]\n  input %v: float32[1,3,12]\n  input %pk: "
      "float32[1,2,4,8]\n  input %pv: float32[1,2,4,6]\n";
  compare(own + "  %y, %k2, %v2 = Attention(%q, %k, %v, _, %pk, %pv) {q_num_heads = 2, kv_num_heads = 2" +
              present,
          1e-4, 1e-5);
  compare(own +
              "  %y, %k2 = Attention(%q, %k, %v, _, %pk, %pv) {q_num_heads = 2, kv_num_heads = 2}\n  output "
              "%y as "
              "\"y\"\n  output %k2 as \"k2\"\n",
          1e-4, 1e-5);
  // Several blocks of queries, no cache: places count from the first key.
  compare(
      "  input %q: float32[1,2,150,8]\n  input %k: float32[1,2,150,8]\n  input %v: float32[1,2,150,8]\n  %y "
      "= "
      "Attention(%q, %k, %v) {is_causal = 1}\n  output %y as \"y\"\n",
      1e-4, 1e-5);
}

TEST_CASE("rotary embeddings of heads in a row, and with rows of the tables picked by positions") {
  const std::string out = "}\n  output %y as \"y\"\n";
  for (const char* x : {"float32[2,5,24]", "float32[2,3,5,8]"}) {
    const std::string in = std::string("  input %x: ") + x + "\n";
    const std::string whole = "  input %c: float32[2,5,4]\n  input %s: float32[2,5,4]\n",
                      table =
                          "  input %c: float32[9,4]\n  input %s: float32[9,4]\n  const %p: int64[2,5] = "
                          "[0,1,2,3,8,4,5,6,7,0]\n";
    for (const char* interleaved : {"0", "1"}) {
      const std::string attrs = std::string(" {num_heads = 3, interleaved = ") + interleaved;
      compare(in + whole + "  %y = RotaryEmbedding(%x, %c, %s)" + attrs + out);
      compare(in + table + "  %y = RotaryEmbedding(%x, %c, %s, %p)" + attrs + out);
    }
  }
}

TEST_CASE("rotary embeddings of halves and neighbours, of whole heads and of their first part") {
  const std::string in =
      "  input %x: float32[2,3,5,8]\n  input %c: float32[2,5,4]\n  input %s: float32[2,5,4]\n";
  compare(in + "  %y = RotaryEmbedding(%x, %c, %s)\n  output %y as \"y\"\n");
  compare(in + "  %y = RotaryEmbedding(%x, %c, %s) {interleaved = 1}\n  output %y as \"y\"\n");
  for (const char* interleaved : {"0", "1"})
    compare(
        "  input %x: float32[2,3,5,8]\n  input %c: float32[2,5,2]\n  input %s: float32[2,5,2]\n  %y = "
        "RotaryEmbedding(%x, %c, %s) {rotary_embedding_dim = 4, interleaved = " +
        std::string(interleaved) + "}\n  output %y as \"y\"\n");
}

TEST_CASE("gated activations and the skip norms with a bias a column") {
  const std::string out = "\n  output %y as \"y\"\n";
  for (const char* act :
       {"activation = \"Swish\"", "activation = \"Swish\", alpha = 1.7", "activation = \"Gelu\"",
        "activation = \"Gelu\", approximate = \"tanh\"", "activation = \"Sigmoid\""})
    compare(
        "  input %g: float32[3,5000]\n  input %u: float32[3,5000]\n  %y = tenon::GatedActivation(%g, %u) {" +
            std::string(act) + "}" + out,
        1e-4, 1e-5);
  const std::string in =
      "  input %x: float32[2,5,24]\n  input %k: float32[2,5,24]\n  input %s: float32[24]\n  input %b: "
      "float32[24]\n  input %c: float32[24]\n";
  compare(in + "  %y, %u = tenon::SkipLayerNorm(%x, %k, %s, %b, %c)\n  output %u as \"u\"" + out, 1e-4, 1e-4);
  compare(in + "  %y, %u = tenon::SkipRmsNorm(%x, %k, %s, %c)\n  output %u as \"u\"" + out, 1e-4, 1e-4);
  compare(
      "  input %x: float32[2,5,24]\n  input %k: float32[2,5,24]\n  input %s: float32[24]\n  %y = "
      "tenon::SkipRmsNorm(%x, %k, %s)" +
          out,
      1e-4, 1e-4);
}

TEST_CASE("pooling: pads, strides, ceil, dilation, divisors") {
  for (const char* attrs : {"kernel_shape = [3,3]", "kernel_shape = [3,3], pads = [1,1,1,1], strides = [2,2]",
                            "kernel_shape = [2,3], strides = [2,1], ceil_mode = 1",
                            "kernel_shape = [3,3], pads = [0,1,1,0], ceil_mode = 1, strides = [2,2]"}) {
    compare(fmt::format("  input %x: float32[2,5,11,12]\n  %y = MaxPool(%x) {{{}}}\n  output %y as \"y\"\n",
                        attrs),
            0, 0);
    compare(
        fmt::format("  input %x: float32[2,5,11,12]\n  %y = AveragePool(%x) {{{}}}\n  output %y as \"y\"\n",
                    attrs),
        1e-5, 1e-6);
    compare(fmt::format("  input %x: float32[2,5,11,12]\n  %y = AveragePool(%x) {{{}, count_include_pad = "
                        "1}}\n  output %y as \"y\"\n",
                        attrs),
            1e-5, 1e-6);
  }
  compare(
      "  input %x: float32[1,2,9,9]\n  %y = MaxPool(%x) {kernel_shape = [2,2], dilations = [2,2]}\n  output "
      "%y as \"y\"\n",
      0, 0);
}

TEST_CASE("movement: Transpose, Concat, Split, Slice, Gather") {
  for (const char* perm : {"0,1,2,3", "3,2,1,0", "0,2,1,3", "0,3,1,2", "1,0,3,2", "2,3,0,1"})
    compare(fmt::format(
                "  input %x: float32[2,3,17,5]\n  %y = Transpose(%x) {{perm = [{}]}}\n  output %y as \"y\"\n",
                perm),
            0, 0);
  for (int axis : {0, 1, 2, -1})
    compare(fmt::format("  input %x: float32[2,3,4]\n  input %w: float32[2,3,4]\n  %c = Concat(%x, %w, %x) "
                        "{{axis = {0}}}\n  %a, %b = Split(%w) {{axis = {0}, num_outputs = 2}}\n  output %c "
                        "as \"c\"\n  output %a as \"a\"\n  output %b as \"b\"\n",
                        axis),
            0, 0);
  for (const char* cut : {"1,1|3,3|1,2|1,1", "0,3|9,0|2,1|2,-1", "-1|-9|0|-2", "1|2|1|1", "5|9|0|1"}) {
    const auto parts = split(cut, '|');
    const auto n = std::to_string(split(parts[0], ',').size());
    compare("  input %x: float32[5,4,6]\n  const %s: int64[" + n + "] = [" + std::string(parts[0]) +
                "]\n  const %e: int64[" + n + "] = [" + std::string(parts[1]) + "]\n  const %a: int64[" + n +
                "] = [" + std::string(parts[2]) + "]\n  const %t: int64[" + n + "] = [" +
                std::string(parts[3]) + "]\n  %y = Slice(%x, %s, %e, %a, %t)\n  output %y as \"y\"\n",
            0, 0);
  }
  for (int axis : {0, 1, -1})
    compare(fmt::format("  input %x: float32[5,4,6]\n  input %i: int64[2,3]\n  %y = Gather(%x, %i) {{axis = "
                        "{}}}\n  output %y as \"y\"\n",
                        axis),
            0, 0);
}

TEST_CASE("Gather refuses an index outside the axis") {
  CHECK_THROWS_WITH(run("  input %x: float32[2,6]\n  const %i: int64[1] = [2]\n  %y = Gather(%x, %i)\n  "
                        "output %y as \"y\"\n",
                        false, 1),
                    Catch::Contains("index 2 is outside [-2, 2)"));
}

TEST_CASE("one session, many threads, shapes of their own: every run gives the bits of a run alone") {
  const std::string body =
      "  input %x: float32[n,8,12,12]\n" + constant("w", {16, 8, 3, 3}, 7) + constant("b", {16}, 9) +
      constant("p", {16, 16, 1, 1}, 11) + constant("d", {16, 1, 3, 3}, 13) + constant("m", {12, 24}, 15) +
      constant("s", {24}, 17) +
      "  %a = tenon::FusedConv(%x, %w, %b) {kernel_shape = [3,3], pads = [1,1,1,1], activation = \"Swish\"}\n"
      "  %c = Conv(%a, %p) {kernel_shape = [1,1]}\n"
      "  %e = Conv(%c, %d) {kernel_shape = [3,3], pads = [1,1,1,1], group = 16}\n"
      "  %f = MatMul(%e, %m)\n  %g = LayerNormalization(%f, %s) {axis = -1}\n  %h = Softmax(%g) {axis = -1}\n"
      "  %y = Transpose(%h) {perm = [0,3,1,2]}\n  output %y as \"y\"\n";
  RuntimeOptions options;
  options.threads = 3;
  Session session(graph_of(body), engine().registries(), options);
  uint64_t seed = 21;
  std::vector<float> values(3 * 8 * 12 * 12);
  for (float& v : values) v = number(seed);
  const auto run_once = [&](int64_t batch) {
    const int64_t dims[] = {batch, 8, 12, 12};
    NamedTensor input;
    input.name = "x";
    input.tensor = {TN_FLOAT32, 4, dims, values.data(), static_cast<uint64_t>(batch) * 8 * 12 * 12 * 4};
    const auto results = session.run(std::vector<NamedTensor>{input});
    const tn_tensor t = results.at(0).tensor();
    return std::string(static_cast<const char*>(t.data), t.bytes);
  };
  std::vector<std::string> alone;
  for (int64_t batch = 1; batch <= 3; ++batch) alone.push_back(run_once(batch));
  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (size_t k = 0; k < wrong.size(); ++k)
    threads.emplace_back([&, k] {
      for (size_t i = 0; i < 24; ++i)
        wrong[k] += run_once(static_cast<int64_t>((i + k) % 3 + 1)) != alone[(i + k) % 3];
    });
  for (auto& t : threads) t.join();
  CHECK(wrong == std::vector<int>(4, 0));
}
