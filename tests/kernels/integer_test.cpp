// The cpu plugin's kernels of 8-bit integers against the reference ones: every number equal, whatever the
// instruction set, the types of both sides, the zero points and the shapes.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/runtime/cpu_features.hpp"
#include "core/runtime/session.hpp"
#include "tests/kernels/cpu_graphs.hpp"

using namespace tenon;
using test::engine;
using test::graph_of;
using test::number;

namespace {

/// A repeatable byte; the ends and the middle of both types come often.
uint8_t byte(uint64_t& state) {
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  const auto r = static_cast<uint32_t>(state >> 33);
  constexpr uint8_t ends[] = {0, 255, 127, 128, 1};
  return r % 3 == 0 ? ends[r / 3 % 5] : static_cast<uint8_t>(r >> 8);
}

struct Outcome {
  std::vector<std::string> values;
  uint64_t cpu_nodes = 0;
};

Outcome run(const std::string& body, bool reference, uint32_t threads) {
  RuntimeOptions options;
  options.threads = threads;
  options.guard = true;
  if (reference) options.kernels.deny = {"tenon.cpu.*"};
  Session session(graph_of(body), engine().registries(), options);
  uint64_t seed = 7;
  std::vector<std::vector<int64_t>> dims;
  std::vector<std::string> data;
  dims.reserve(8), data.reserve(8);
  std::vector<NamedTensor> inputs;
  for (const auto& i : session.inputs()) {
    auto& d = dims.emplace_back();
    size_t n = 1;
    for (const auto& text : i.dims) d.push_back(std::stoll(text)), n *= static_cast<size_t>(d.back());
    auto& bytes = data.emplace_back();
    if (i.dtype == TN_FLOAT32) {
      std::vector<float> x(n);
      for (float& v : x) v = number(seed);
      bytes.assign(reinterpret_cast<const char*>(x.data()), n * sizeof(float));
    } else {
      for (size_t k = 0; k < n; ++k) bytes += static_cast<char>(byte(seed));
    }
    NamedTensor t;
    t.name = i.name;
    t.tensor = {i.dtype, static_cast<int32_t>(d.size()), d.data(), bytes.data(), bytes.size()};
    inputs.push_back(t);
  }
  Outcome out;
  for (const auto& o : session.run(inputs)) {
    const tn_tensor t = o.tensor();
    out.values.emplace_back(static_cast<const char*>(t.data), t.bytes);
  }
  const auto stats = session.stats();
  if (const auto at = stats.kernels.find("cpu"); at != stats.kernels.end()) out.cpu_nodes = at->second;
  return out;
}

void equal(const std::string& body) {
  INFO(body);
  const Outcome want = run(body, true, 1), one = run(body, false, 1), three = run(body, false, 3);
  REQUIRE(want.cpu_nodes == 0);
  // The records ask for AVX2: without it the reference kernels run on both sides.
  if ((cpu_features() & TN_CPU_AVX2) != 0) REQUIRE(one.cpu_nodes > 0);
  CHECK(want.values == one.values);
  CHECK(want.values == three.values);
}

/// Reals that are quantised on the way: a step of a number that fell on the other side would be seen.
void close(const std::string& body) {
  INFO(body);
  const Outcome want = run(body, true, 1), got = run(body, false, 1), again = run(body, false, 3);
  if ((cpu_features() & TN_CPU_AVX2) != 0) REQUIRE(got.cpu_nodes > 0);
  CHECK(got.values == again.values);
  REQUIRE(got.values.size() == want.values.size());
  for (size_t k = 0; k < want.values.size(); ++k) {
    REQUIRE(got.values[k].size() == want.values[k].size());
    for (size_t i = 0; i < want.values[k].size(); i += sizeof(float)) {
      float w = 0, g = 0;
      std::memcpy(&w, want.values[k].data() + i, sizeof w);
      std::memcpy(&g, got.values[k].data() + i, sizeof g);
      if (!(std::fabs(w - g) <= 1e-5f * std::max(1.0f, std::fabs(w))))
        FAIL("output " << k << " element " << i / sizeof(float) << ": reference " << w << ", cpu " << g);
    }
  }
}

int64_t count_of(const std::string& dims) {
  int64_t n = 1;
  for (const auto part : split(dims, ',')) n *= std::stoll(std::string(part));
  return n;
}
/// A constant of random bytes, int8 or uint8.
std::string bytes(const std::string& name, const std::string& type, const std::string& dims, uint64_t seed) {
  std::string v;
  for (int64_t i = 0; i < (dims.empty() ? 1 : count_of(dims)); ++i) {
    const uint8_t b = byte(seed);
    v += (i ? "," : "") + std::to_string(type == "int8" ? int{static_cast<int8_t>(b)} : int{b});
  }
  return "  const %" + name + ": " + type + "[" + dims + "] = [" + v + "]\n";
}
std::string scales(const std::string& name, const std::string& dims, double scale) {
  uint64_t seed = 31;
  std::string v;
  for (int64_t i = 0; i < (dims.empty() ? 1 : count_of(dims)); ++i)
    v += (i ? "," : "") + fmt::format("{:.6f}", scale * (1.1 + static_cast<double>(number(seed)) / 2));
  return "  const %" + name + ": float32[" + dims + "] = [" + v + "]\n";
}

const std::vector<std::pair<std::string, std::string>> mixes{
    {"uint8", "int8"}, {"uint8", "uint8"}, {"int8", "int8"}, {"int8", "uint8"}};

}  // namespace

TEST_CASE("integer matrix products: types, zero points of both operands, odd shapes") {
  for (const auto& [a, b] : mixes) {
    const auto product = [&, a = a, b = b](const std::string& m, int64_t k, int64_t n,
                                           const std::string& zeros) {
      const auto kn = std::to_string(k) + "," + std::to_string(n);
      std::string operands, text;
      if (zeros != "none")
        operands = ", %za, %zb",
        text = bytes("za", a, "", 11) + bytes("zb", b, zeros == "column" ? std::to_string(n) : "", 13);
      equal("  input %a: " + a + "[" + m + "," + std::to_string(k) + "]\n" + bytes("b", b, kn, 3) + text +
            "  %y = MatMulInteger(%a, %b" + operands + ")\n  output %y as \"y\"\n");
    };
    for (const char* zeros : {"none", "one", "column"}) {
      product("1", 1, 1, zeros);
      product("3", 7, 5, zeros);
      product("9", 64, 33, zeros);
      product("2,5", 130, 32, zeros);
      product("70", 33, 31, zeros);
      product("1", 514, 200, zeros);
    }
    product("150", 300, 40, "one");
    product("4", 700, 300, "one");
  }
}

TEST_CASE("integer matrix products whose every byte is at the end never saturate on the way") {
  const auto all = [](const std::string& name, const std::string& type, const std::string& dims, int value) {
    std::string v;
    for (int64_t i = 0; i < count_of(dims); ++i) v += (i ? "," : "") + std::to_string(value);
    return "  const %" + name + ": " + type + "[" + dims + "] = [" + v + "]\n";
  };
  for (int high : {0, 255})
    for (int end : {-128, 127})
      equal("  input %x: uint8[5,1024]\n" + all("h", "uint8", "1", high) + all("b", "int8", "1024,40", end) +
            "  %a = " + (high ? "Max" : "Min") +
            "(%x, %h)\n  %y = MatMulInteger(%a, %b)\n  output %y as \"y\"\n");
}

TEST_CASE("a zero point that comes at run time, of either operand") {
  equal("  input %a: uint8[9,50]\n  input %za: uint8[]\n  input %zb: int8[]\n" +
        bytes("b", "int8", "50,40", 3) + "  %y = MatMulInteger(%a, %b, %za, %zb)\n  output %y as \"y\"\n");
  equal("  input %a: uint8[1,6,9,11]\n  input %za: uint8[]\n  input %zb: uint8[]\n" +
        bytes("b", "uint8", "8,6,3,3", 3) +
        "  %y = ConvInteger(%a, %b, %za, %zb) {pads = [1,1,1,1]}\n  output %y as \"y\"\n");
}

TEST_CASE("quantised matrix products: scales a column, rounding and both ends of the range") {
  for (const auto& [a, b] : mixes)
    for (const char* y : {"uint8", "int8"})
      for (const bool column : {false, true})
        for (const double scale : {0.0007, 0.02})
          equal("  input %a: " + a + "[2,7,75]\n" + bytes("b", b, "75,43", 3) + bytes("za", a, "", 11) +
                bytes("zb", b, column ? "43" : "", 13) + bytes("zy", y, "", 17) + scales("sa", "", 0.5) +
                scales("sb", column ? "43" : "", scale) + scales("sy", "", 1.0) +
                "  %y = QLinearMatMul(%a, %sa, %za, %b, %sb, %zb, %sy, %zy)\n  output %y as \"y\"\n");
}

TEST_CASE("integer convolutions: strides, pads, dilations, groups, one dimension, both types") {
  for (const auto& [x, w] : mixes) {
    const auto conv = [&, x = x, w = w](const std::string& xd, const std::string& wd,
                                        const std::string& attrs, bool channel = false) {
      const auto m = wd.substr(0, wd.find(','));
      equal("  input %x: " + x + "[" + xd + "]\n" + bytes("w", w, wd, 3) + bytes("zx", x, "", 11) +
            bytes("zw", w, channel ? m : "", 13) + "  %y = ConvInteger(%x, %w, %zx, %zw) {" + attrs +
            "}\n  output %y as \"y\"\n");
    };
    conv("1,8,9,11", "20,8,1,1", "kernel_shape = [1,1]");
    conv("3,16,5,5", "33,16,1,1", "kernel_shape = [1,1]", true);
    conv("1,8,9,11", "16,8,1,1", "kernel_shape = [1,1], strides = [2,2]");
    conv("2,3,17,19", "8,3,3,3", "kernel_shape = [3,3], pads = [1,1,1,1]", true);
    conv("1,16,28,28", "72,16,3,3", "kernel_shape = [3,3], pads = [1,1,1,1]");
    conv("1,3,32,32", "16,3,7,7", "kernel_shape = [7,7], pads = [3,3,3,3], strides = [2,2]");
    conv("1,4,15,15", "6,4,3,3", "kernel_shape = [3,3], dilations = [2,2], pads = [0,1,2,3]");
    conv("1,4,16,15", "6,4,3,3",
         "kernel_shape = [3,3], dilations = [3,2], strides = [2,3], pads = [4,1,2,5]");
    conv("1,8,10,10", "12,2,3,3", "kernel_shape = [3,3], group = 4, pads = [1,1,1,1]", true);
    conv("2,10,13,9", "10,1,3,3", "kernel_shape = [3,3], group = 10, pads = [1,1,1,1]", true);
    conv("1,10,13,9", "20,1,5,5", "kernel_shape = [5,5], group = 10, strides = [2,2], pads = [2,2,2,2]");
    conv("1,4,6,7", "8,4,1,1", "kernel_shape = [1,1], pads = [2,1,3,2], strides = [3,3]");
    conv("1,6,20", "8,6,3", "kernel_shape = [3], pads = [1,1]");
    conv("2,6,900", "24,6,5", "kernel_shape = [5], pads = [4,0], strides = [2]");
    conv("1,40,2000", "16,40,3", "kernel_shape = [3], dilations = [700], pads = [0,1400]");
    conv("1,4,11,12", "4,4,3,3", "kernel_shape = [3,3], auto_pad = \"SAME_LOWER\", strides = [2,2]");
  }
  equal("  input %x: uint8[1,8,9,11]\n" + bytes("w", "int8", "9,8,3,3", 3) +
        "  %y = ConvInteger(%x, %w)\n  output %y as \"y\"\n");
}

TEST_CASE("quantised convolutions: a bias, scales and zero points a channel, both ends of the range") {
  for (const auto& [x, w] : mixes)
    for (const char* y : {"uint8", "int8"})
      for (const bool channel : {false, true})
        for (const char* shape : {"12,6,3,3|1", "12,1,3,3|6", "12,6,1,1|1"}) {
          const auto parts = split(shape, '|');
          equal("  input %x: " + x + "[2,6,10,13]\n" + bytes("w", w, std::string(parts[0]), 3) +
                bytes("zx", x, "", 11) + bytes("zw", w, channel ? "12" : "", 13) + bytes("zy", y, "", 17) +
                scales("sx", "", 0.5) + scales("sw", channel ? "12" : "", 0.004) + scales("sy", "", 1.0) +
                "  const %b: int32[12] = [0,1,-1,3000,-3000,70000,-70000,2000000000,-2000000000,5,6,7]\n"
                "  %y = QLinearConv(%x, %sx, %zx, %w, %sw, %zw, %sy, %zy" +
                (channel ? ", %b" : "") + ") {pads = [1,0,0,1], group = " + std::string(parts[1]) +
                "}\n  output %y as \"y\"\n");
        }
}

TEST_CASE("products between DequantizeLinear and QuantizeLinear: a real bias, one scale or many") {
  // Scales are powers of two and sums small, so float32 holds every number of the formula.
  const std::string many = "float32[8] = [0.5,0.25,0.125,1,2,0.5,0.0625,4]";
  for (const auto& [x, w] : mixes)
    for (const char* y : {"uint8", "int8"})
      for (const bool column : {false, true})
        for (const bool bias : {false, true}) {
          const auto operands = [&, x = x, w = w](const std::string& xd, const std::string& wd) {
            return "  input %x: " + x + "[" + xd + "]\n" + bytes("w", w, wd, 3) + bytes("zx", x, "", 11) +
                   bytes("zw", w, column ? "8" : "", 13) + bytes("zy", y, "", 17) +
                   "  const %sx: float32[] = [0.5]\n  const %sw: " +
                   (column ? many : std::string("float32[] = [0.25]")) +
                   "\n  const %sy: float32[] = [64]\n  const %b: float32[8] = "
                   "[0,0.5,-3.25,100,-1000,7,8,9]\n";
          };
          const std::string call =
              "(%x, %sx, %zx, %w, %sw, %zw, %sy, %zy" + std::string(bias ? ", %b" : "") + ") {";
          const std::string out = "}\n  output %y as \"y\"\n";
          equal(operands("2,3,7,9", "8,3,3,3") + "  %y = tenon::QuantizedConv" + call +
                "pads = [1,0,0,1], strides = [2,1]" + out);
          equal(operands("5,20", "20,8") + "  %y = tenon::QuantizedGemm" + call + "transB = 0" + out);
          equal(operands("5,20", "8,20") + "  %y = tenon::QuantizedGemm" + call + "transB = 1" + out);
        }
}

TEST_CASE(
    "LSTMs whose products are quantised: directions, zero points a direction or a column, first states") {
  for (const char* type : {"int8", "uint8"})
    for (const char* direction : {"forward", "reverse", "bidirectional"})
      for (const bool column : {false, true})
        for (const char* x : {"9,1,20", "70,3,37"}) {
          const std::string d = std::string(direction) == "bidirectional" ? "2" : "1";
          const std::string inputs(split(x, ',').back()), batch(split(x, ',')[1]);
          const std::string each = d + (column ? ",76" : "");
          const auto one = "  input %x: float32[" + std::string(x) + "]\n" +
                           bytes("w", type, d + "," + inputs + ",76", 3) + bytes("r", type, d + ",19,76", 5) +
                           scales("b", d + ",152", 0.1) + scales("sw", each, 0.002) +
                           scales("sr", each, 0.003) + bytes("zw", type, each, 7) +
                           bytes("zr", type, each, 9) + "  input %h: float32[" + d + "," + batch +
                           ",19]\n  input %c: float32[" + d + "," + batch + ",19]\n";
          const std::string outputs =
              "  output %y as \"y\"\n  output %yh as \"yh\"\n  output %yc as \"yc\"\n";
          const auto call = "com.microsoft::DynamicQuantizeLSTM(%x, %w, %r, ";
          const auto tail =
              std::string("_, %sw, %zw, %sr, %zr) {hidden_size = 19, direction = \"") + direction + "\"";
          close(one + "  %y, %yh, %yc = " + call + "%b, _, %h, %c, " + tail + "}\n" + outputs);
          close(one + "  %y, %yh, %yc = " + call + "_, _, _, _, " + tail + ", activations = [" +
                (d == "2" ? "\"Sigmoid\",\"Tanh\",\"Sigmoid\",\"Sigmoid\",\"Relu\",\"Tanh\""
                          : "\"Sigmoid\",\"Sigmoid\",\"Relu\"") +
                "]}\n" + outputs);
        }
}

TEST_CASE("what the integer kernels do not take stays with the reference kernels") {
  const auto left = [](const std::string& body) {
    INFO(body);
    CHECK(run(body, false, 1).cpu_nodes == 0);
  };
  left("  input %a: uint8[3,4]\n  input %b: int8[4,5]\n  %y = MatMulInteger(%a, %b)\n  output %y as \"y\"\n");
  left("  input %a: uint8[3,4]\n" + bytes("b", "int8", "4,5", 3) + bytes("z", "uint8", "3", 5) +
       "  %y = MatMulInteger(%a, %b, %z)\n  output %y as \"y\"\n");
  left("  input %x: uint8[1,2,4,4,4]\n" + bytes("w", "int8", "3,2,2,2,2", 3) +
       "  %y = ConvInteger(%x, %w)\n  output %y as \"y\"\n");
}
