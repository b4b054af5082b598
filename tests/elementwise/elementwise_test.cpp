// fuse_elementwise: which nodes become one, which must not, that nothing changes by it, and that it is
// linear.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/text.hpp"
#include "core/graph/edit.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "core/graph/verify.hpp"
#include "core/pipeline/model_loader.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/session.hpp"
#include "test_paths.hpp"

using namespace tenon;

namespace {

constexpr const char* fused = "tenon::FusedElementwise";

Manifest manifest(const std::string& options = "{}") {
  set_install_root(test::build_dir());
  Diagnostics findings;
  const std::string text =
      R"({"schema": "tenon.pipeline/1", "plugins": ["onnx", "ops", "elementwise", "memory", "cpu"], "rules": [],
          "pipeline": [{"pass": "fuse_elementwise", "options": )" +
      options + "}]}";
  auto parsed = parse_manifest("test.json", text, ".", {}, findings);
  findings.throw_if_errors(2);
  return *parsed;
}

Engine& engine() {
  static Engine* const one = [] {
    EngineOptions options;
    options.explain = true;
    return new Engine(manifest(), options);
  }();
  return *one;
}

std::unique_ptr<Graph> graph_of(const std::string& body) {
  Diagnostics findings;
  auto graph = parse("graph \"g\" {\n  opset \"\" 28\n" + body + "}\n", &engine().registries(), findings);
  findings.throw_if_errors(2);
  infer_graph(*graph, findings);
  findings.throw_if_errors(2);
  return graph;
}

struct Result {
  std::unique_ptr<Graph> graph;
  OptimizeReport report;
  std::string ops;  // of the main region in order
  const ExplainEntry* why(tn_reason reason) const {
    for (const ExplainEntry& entry : report.records)
      if (entry.reason == reason) return &entry;
    return nullptr;
  }
};

Result optimized(const std::string& body) {
  Result result;
  result.graph = graph_of(body);
  engine().optimize(*result.graph, result.report);
  Diagnostics broken;
  INFO(print(*result.graph));
  CHECK(verify(*result.graph, broken));
  for (const tn_node n : result.graph->nodes(0))
    result.ops += (result.ops.empty() ? "" : " ") + std::string(result.graph->op_name(n));
  return result;
}

bool is_whole(tn_dtype d) { return d == TN_INT8 || d == TN_UINT8 || d == TN_INT32 || d == TN_INT64; }

struct Values {
  std::vector<std::vector<char>> bytes;
};

/// Results for inputs that repeat from call to call.
Values run(std::unique_ptr<Graph> graph, uint32_t threads, bool without_kernel = false,
           const char* precision = "faithful") {
  RuntimeOptions options;
  options.precision_mode = precision;
  options.threads = threads;
  options.guard = true;
  if (without_kernel) options.kernels.deny = {"tenon.cpu.fused_elementwise*"};
  const Session session(std::move(graph), engine().registries(), options);
  std::vector<std::vector<int64_t>> dims(session.inputs().size());
  std::vector<std::vector<char>> data(session.inputs().size());
  std::vector<NamedTensor> inputs;
  uint64_t state = 7;
  for (size_t i = 0; i < dims.size(); ++i) {
    const InputInfo& input = session.inputs()[i];
    int64_t count = 1;
    for (const std::string& text : input.dims) dims[i].push_back(std::stoll(text)), count *= dims[i].back();
    const size_t width = TN_DTYPE_BITS(input.dtype) / 8;
    data[i].resize(static_cast<size_t>(count) * width);
    if (input.dtype == TN_BOOL || is_whole(input.dtype)) {
      for (char& byte : data[i]) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        byte = static_cast<char>(input.dtype == TN_BOOL ? state >> 40 & 1 : state >> 40 & 0xff);
      }
      if (input.dtype != TN_BOOL && width > 1)  // small numbers of both signs
        for (int64_t k = 0; k < count; ++k) {
          const auto low = static_cast<int8_t>(data[i][static_cast<size_t>(k) * width]);
          for (size_t b = 1; b < width; ++b)
            data[i][static_cast<size_t>(k) * width + b] = static_cast<char>(low < 0 ? -1 : 0);
        }
    } else
      for (int64_t k = 0; k < count; ++k) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        const double number = static_cast<double>(static_cast<int32_t>(state >> 40 & 0xfff) - 2048) / 1024;
        const auto single = static_cast<float>(number);
        if (width == 8) std::memcpy(&data[i][static_cast<size_t>(k) * 8], &number, 8);
        if (width == 4) std::memcpy(&data[i][static_cast<size_t>(k) * 4], &single, 4);
        if (width == 2) {  // the upper half of a float32 is a bfloat16, and any bits some float16
          uint32_t bits = 0;
          std::memcpy(&bits, &single, 4);
          const auto half = static_cast<uint16_t>(bits >> 16);
          std::memcpy(&data[i][static_cast<size_t>(k) * 2], &half, 2);
        }
      }
    NamedTensor named;
    named.name = input.name;
    named.tensor = {input.dtype, static_cast<int32_t>(dims[i].size()), dims[i].data(), data[i].data(),
                    data[i].size()};
    inputs.push_back(named);
  }
  Values values;
  for (const NamedOutput& output : session.run(inputs)) {
    const tn_tensor t = output.tensor();
    values.bytes.emplace_back(static_cast<const char*>(t.data), static_cast<const char*>(t.data) + t.bytes);
  }
  return values;
}

/// Fused, by the kernel and by the body, with one thread and with three: the bits of the separate nodes.
void same_bits(const std::string& body, const std::string& ops = fused) {
  INFO(body);
  const Values want = run(graph_of(body), 1);
  const auto fuse = [&] {
    Result result = optimized(body);
    CHECK(result.ops == ops);
    return std::move(result.graph);
  };
  for (const uint32_t threads : {1u, 3u}) {
    CHECK(run(fuse(), threads).bytes == want.bytes);
    CHECK(run(fuse(), threads, true).bytes == want.bytes);
  }
}

}  // namespace

TEST_CASE("A chain with broadcast operands becomes one node that keeps it as its body") {
  const Result r = optimized(
      "  input %x: float32[N,4,8]\n  input %b: float32[4,1]\n  const %k: float32[] = [0.5]\n"
      "  %a = Mul(%x, %k)\n  %c = Add(%a, %b)\n  %d = Tanh(%c)\n  output %d as \"d\"\n");
  INFO(print(*r.graph));
  REQUIRE(r.ops == fused);
  const Node& node = r.graph->node(r.graph->nodes(0)[0]);
  CHECK(node.input_count == 3);
  REQUIRE(node.region_count == 1);
  CHECK(r.graph->region(node.regions()[0]).node_count == 3);
  CHECK(r.report.rules.at("fuse_elementwise").applied == 1);
  REQUIRE(r.why(TN_REASON_APPLIED));
  CHECK(r.why(TN_REASON_APPLIED)->got.find("Tanh") != std::string::npos);
}

TEST_CASE("Two ways from one value to another are one group") {
  CHECK(
      optimized("  input %x: float32[8]\n  %a = Exp(%x)\n  %b = Neg(%a)\n  %c = Abs(%a)\n  %d = Sub(%b, %c)\n"
                "  output %d as \"d\"\n")
          .ops == fused);
}

TEST_CASE("A value that something else reads ends a group, and that is told") {
  const std::string head = "  input %x: float32[8]\n  %a = Exp(%x)\n  %b = Neg(%a)\n";
  CHECK(optimized(head + "  output %b as \"b\"\n  output %a as \"a\"\n").ops == "Exp Neg");
  const Result read = optimized(head + "  %s = Softmax(%a)\n  output %b as \"b\"\n  output %s as \"s\"\n");
  CHECK(read.ops.find(fused) == std::string::npos);
  const Result joined = optimized(
      "  input %x: float32[8]\n  %a = Exp(%x)\n  %b = Neg(%a)\n  %c = Abs(%b)\n  %d = Softmax(%a)\n"
      "  output %c as \"c\"\n  output %d as \"d\"\n");
  CHECK(joined.ops == "Exp " + std::string(fused) + " Softmax");
  // Between the Exp and the Add lies a Softmax: together they would be before and after it.
  const Result around = optimized(
      "  input %x: float32[8]\n  %a = Exp(%x)\n  %s = Softmax(%a)\n  %d = Add(%a, %s)\n  output %d as "
      "\"d\"\n");
  CHECK(around.ops == "Exp Softmax Add");
  const Result told = optimized(
      "  input %x: float32[8]\n  %a = Exp(%x)\n  %b = Neg(%a)\n  %c = Abs(%b)\n  %d = Abs(%a)\n  %e = "
      "Sqrt(%d)\n"
      "  output %c as \"c\"\n  output %e as \"e\"\n");
  REQUIRE(told.why(TN_REASON_ESCAPE));
  CHECK(told.why(TN_REASON_ESCAPE)->got == "its result is read elsewhere too");
}

TEST_CASE("Other shapes and other operators end a group") {
  const auto ops = [](const std::string& lines, const std::string& out) {
    return optimized("  input %x: float32[4,8]\n  input %row: float32[8]\n" + lines + "  output %" + out +
                     " as \"" + out + "\"\n")
        .ops;
  };
  CHECK(ops("  %a = Neg(%row)\n  %b = Add(%x, %a)\n", "b") == "Neg Add");
  CHECK(ops("  %a = Identity(%x)\n  %b = Abs(%a)\n", "b") == "Identity Abs");
  CHECK(ops("  %a = Neg(%x)\n", "a") == "Neg");
  const Result shape = optimized(
      "  input %x: float32[4,8]\n  input %r: float32[8]\n  %a = Neg(%r)\n  %b = Add(%x, %a)\n  output %b as "
      "\"b\"\n");
  REQUIRE(shape.why(TN_REASON_SHAPE));
  CHECK(optimized("  input %x: float32[M]\n  input %y: float32[N]\n  %a = Neg(%x)\n  %b = Add(%a, %y)\n"
                  "  output %b as \"b\"\n")
            .ops == "Neg Add");
}

TEST_CASE("A group may have values of several element types") {
  const auto ops = [](const std::string& lines, const std::string& out) {
    return optimized("  input %x: float32[4,8]\n  input %i: int64[4,8]\n" + lines + "  output %" + out +
                     " as \"" + out + "\"\n")
        .ops;
  };
  CHECK(ops("  %a = Neg(%x)\n  %b = Cast(%a) {to = 11}\n  %c = Abs(%b)\n", "c") == fused);
  CHECK(ops("  %a = Neg(%x)\n  %b = Greater(%a, %x)\n  %c = Not(%b)\n", "c") == fused);
  CHECK(ops("  %a = Greater(%x, %x)\n  %b = Where(%a, %i, %i)\n  %c = Mul(%b, %i)\n", "c") == fused);
  // Of text, and of types narrower than a byte, nothing.
  CHECK(ops("  %a = Cast(%x) {to = 8}\n  %b = Cast(%a) {to = 1}\n  %c = Abs(%b)\n", "c") == "Cast Cast Abs");
  CHECK(ops("  %a = Abs(%x)\n  %b = Cast(%a) {to = 22}\n  %c = Cast(%b) {to = 1}\n", "c") == "Abs Cast Cast");
}

TEST_CASE("What only shapes tell stays apart: it is computed while planning") {
  CHECK(optimized("  input %x: float32[N,4,M]\n  const %two: int64[] = [2]\n  const %h: float32[] = [1.5]\n"
                  "  %s = Shape(%x)\n  %a = Mul(%s, %two)\n  %b = Cast(%a) {to = 1}\n  %c = Mul(%b, %h)\n"
                  "  %d = Floor(%c)\n  %e = Cast(%d) {to = 7}\n  output %e as \"e\"\n")
            .ops == "Shape Mul Cast Mul Floor Cast");
}

TEST_CASE("A reduction over the last axes ends a group from behind") {
  const auto ops = [](const std::string& lines, const std::string& out = "c") {
    return optimized(
               "  input %x: float32[4,6,8]\n  input %w: float32[4,8]\n"
               "  const %last: int64[1] = [-1]\n  const %two: int64[2] = [2,1]\n"
               "  const %first: int64[1] = [0]\n" +
               lines + "  output %" + out + " as \"" + out + "\"\n")
        .ops;
  };
  CHECK(ops("  %a = Neg(%x)\n  %c = ReduceMax(%a, %last) {keepdims = 0}\n") == fused);
  CHECK(ops("  %a = Neg(%x)\n  %c = ReduceSum(%a, %two) {keepdims = 1}\n") == fused);
  CHECK(ops("  %a = Neg(%x)\n  %c = ReduceMean(%a)\n") == fused);
  // Behind it another group begins; a first axis, a running sum and places are something else.
  CHECK(ops("  %a = Neg(%x)\n  %b = ReduceMax(%a, %last) {keepdims = 0}\n  %d = Exp(%b)\n  %c = Neg(%d)\n") ==
        std::string(fused) + " " + fused);
  CHECK(ops("  %a = Neg(%x)\n  %c = ReduceSum(%a, %first) {keepdims = 0}\n") == "Neg ReduceSum");
  CHECK(ops("  const %ax: int64[] = [2]\n  %a = Neg(%x)\n  %c = CumSum(%a, %ax)\n") == "Neg CumSum");
  CHECK(ops("  %a = Neg(%x)\n  %c = ArgMax(%a) {axis = 2, keepdims = 0}\n") == "Neg ArgMax");
  // Two readers, or nothing element-wise before it.
  CHECK(ops("  %a = Neg(%x)\n  %b = ReduceMax(%a, %last) {keepdims = 1}\n  %c = Sub(%a, %b)\n") ==
        "Neg ReduceMax Sub");
  CHECK(ops("  %c = ReduceMax(%x, %last) {keepdims = 0}\n") == "ReduceMax");
  // Axes that are not known here.
  CHECK(optimized("  input %x: float32[4,6]\n  input %ax: int64[1]\n  %a = Neg(%x)\n"
                  "  %c = ReduceSum(%a, %ax) {keepdims = 1}\n  output %c as \"c\"\n")
            .ops == "Neg ReduceSum");
}

TEST_CASE("Bodies of control flow are looked at, and what they read from outside stays there") {
  const Result r = optimized(
      "  input %x: float32[8]\n  input %q: bool[]\n  %a = Exp(%x)\n  %b = Neg(%a)\n"
      "  %y = If(%q) {\n"
      "    region \"then_branch\" {\n      %t = Abs(%a)\n      %u = Sqrt(%t)\n      output %u as \"u\"\n    "
      "}\n"
      "    region \"else_branch\" {\n      %v = Abs(%b)\n      output %v as \"v\"\n    }\n  }\n"
      "  output %y as \"y\"\n");
  INFO(print(*r.graph));
  CHECK(r.ops == "Exp Neg If");
  CHECK(r.report.rules.at("fuse_elementwise").applied == 1);
}

TEST_CASE("A body reads what a group outside became: the bodies come after the groups around them") {
  std::string body = "  input %x: float32[8]\n  input %q: bool[]\n  %a = Exp(%x)\n  %b = Neg(%a)\n";
  std::string branch = "      %t0 = Abs(%b)\n";
  for (int i = 1; i < 200; ++i)
    branch += fmt::format("      %t{} = Sqrt(%t{})\n", i, i - 1);  // many values, none of them new
  body += "  %y = If(%q) {\n    region \"then_branch\" {\n" + branch +
          "      output %t199 as \"u\"\n    }\n    region \"else_branch\" {\n      %v = Neg(%b)\n"
          "      %w = Exp(%v)\n      output %w as \"v\"\n    }\n  }\n  output %y as \"y\"\n";
  const Result r = optimized(body);
  INFO(print(*r.graph));
  CHECK(r.ops == std::string(fused) + " If");
  CHECK(r.report.rules.at("fuse_elementwise").applied >= 3);
}

TEST_CASE("The kernel gives the bits of the separate nodes, whatever the shapes") {
  const auto chain = [](const std::string& x, const std::string& b, const std::string& c) {
    same_bits(
        "  input %x: float32[" + x + "]\n  input %b: float32[" + b + "]\n  input %c: float32[" + c +
        "]\n  %1 = Mul(%x, %b)\n  %2 = Add(%1, %c)\n  %3 = Tanh(%2)\n  %4 = Sub(%x, %3)\n  %5 = Max(%4, %1)\n"
        "  output %5 as \"y\"\n");
  };
  chain("5000", "5000", "1");
  chain("64,1500", "1500", "64,1");
  chain("7,300", "1,300", "7,1");
  chain("50,4,3", "4,1", "3");
  chain("200,3", "200,1", "3");
  chain("6,5,4,3", "5,1,3", "6,1,4,1");
  chain("1", "1", "1");
  chain("", "", "");
  chain("3,0,2", "2", "1");
  chain("2,1,9", "9", "2,1,1");
  chain("2,40000", "2,1", "40000");
}

TEST_CASE("Each operator the kernel has") {
  for (const char* op : {"Relu", "Sigmoid", "Tanh",       "HardSwish",   "Mish",  "Softplus", "Exp",
                         "Log",  "Sqrt",    "Reciprocal", "Neg",         "Abs",   "Erf",      "Floor",
                         "Ceil", "Round",   "LeakyRelu",  "HardSigmoid", "Swish", "Elu",      "Gelu"})
    same_bits(std::string("  input %x: float32[3,70]\n  %a = ") + op +
              "(%x)\n  %b = Add(%a, %x)\n  output %b as \"b\"\n");
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Sum"})
    same_bits(std::string("  input %x: float32[3,70]\n  input %z: float32[70]\n  %a = ") + op +
              "(%x, %z)\n  %b = Abs(%a)\n  output %b as \"b\"\n");
  same_bits(
      "  input %x: float32[3,70]\n  %a = LeakyRelu(%x) {alpha = 0.3}\n  %b = Elu(%a) {alpha = 0.7}\n"
      "  %c = Gelu(%b) {approximate = \"tanh\"}\n  output %c as \"c\"\n");
  same_bits(
      "  input %x: float32[3,70]\n  input %hi: float32[]\n  const %lo: float32[] = [-0.5]\n  %a = Neg(%x)\n"
      "  %b = Clip(%a, %lo, %hi)\n  %c = Clip(%b, _, %hi)\n  output %c as \"c\"\n");
}

TEST_CASE("Each type the kernel casts, compares and computes") {
  const std::pair<const char*, int> types[] = {{"float32", 1},  {"uint8", 2},    {"int8", 3},
                                               {"int32", 6},    {"int64", 7},    {"bool", 9},
                                               {"float16", 10}, {"float64", 11}, {"bfloat16", 16}};
  for (const auto& from : types) {
    const std::string input =
        std::string("  input %x: ") + from.first + "[3,170]\n  input %w: float32[3,1]\n";
    for (const auto& to : types)
      if (to.second != from.second)
        same_bits(input + "  %a = Cast(%x) {to = " + std::to_string(to.second) +
                  "}\n  %b = Cast(%a) {to = 1}\n  %c = Add(%b, %w)\n  output %c as \"c\"\n");
    same_bits(input + "  input %y: " + from.first +
              "[170]\n  %a = Equal(%x, %y)\n  %b = Where(%a, %y, %x)\n" + "  output %b as \"b\"\n");
    if (from.second == 9) continue;
    for (const char* op : {"Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
      same_bits(input + "  input %y: " + from.first + "[170]\n  %a = " + op +
                "(%x, %y)\n  %b = Not(%a)\n  output %b as \"b\"\n");
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min"})
      same_bits(input + "  input %y: " + from.first + "[170]\n  input %z: " + from.first +
                "[3,1]\n  %a = " + op + "(%x, %y)\n  %b = " + op + "(%z, %a)\n  output %b as \"b\"\n");
    same_bits(input + "  input %lo: " + from.first + "[]\n  input %y: " + from.first +
              "[170]\n  %a = Sign(%x)\n  %b = Mul(%a, %y)\n  %c = Clip(%b, %lo)\n  output %c as \"c\"\n");
    if (from.second != 2)
      same_bits(input + "  %a = Neg(%x)\n  %b = Abs(%a)\n  %c = Max(%b, %x, %a)\n  output %c as \"c\"\n");
  }
  for (const char* type : {"int8", "int32", "int64", "uint8"}) {
    const std::string input = std::string("  input %x: ") + type + "[3,170]\n  input %y: " + type + "[170]\n";
    for (const char* op : {"Mod(%x, %y)", "Mod(%x, %y) {fmod = 1}", "BitwiseAnd(%x, %y)", "BitwiseOr(%x, %y)",
                           "BitwiseXor(%x, %y)", "BitwiseNot(%x)"})
      same_bits(input + "  %a = " + op + "\n  %b = Max(%a, %y)\n  output %b as \"b\"\n");
  }
  for (const char* op : {"And", "Or", "Xor"})
    same_bits(std::string("  input %x: bool[3,170]\n  input %y: bool[170]\n  %a = Not(%x)\n  %b = ") + op +
              "(%a, %y)\n  output %b as \"b\"\n");
  for (const char* type : {"float16", "bfloat16", "float64"})
    for (const char* op : {"Sqrt", "Reciprocal", "Floor", "Ceil", "Round", "Relu"})
      if (std::string(type) != "bfloat16" || std::string(op) != "Relu")
        same_bits(std::string("  input %x: ") + type + "[3,170]\n  %a = Abs(%x)\n  %b = " + op +
                  "(%a)\n  output %b as \"b\"\n");
  for (const char* line :
       {"IsNaN(%b)", "IsInf(%b)", "IsInf(%b) {detect_negative = 0}", "IsInf(%b) {detect_positive = 0}"})
    same_bits(std::string("  input %x: float32[3,170]\n  const %z: float32[] = [0.0]\n  %a = Floor(%x)\n"
                          "  %b = Div(%x, %a)\n  %c = ") +
              line + "\n  %d = Where(%c, %z, %b)\n  output %d as \"d\"\n");
  same_bits(
      "  input %x: float32[3,170]\n  input %y: float32[3,1]\n  %a = PRelu(%x, %y)\n  %b = Abs(%a)\n"
      "  %c = Pow(%b, %y)\n  %d = Sin(%c)\n  %e = Cos(%d)\n  %f = Sign(%e)\n  output %f as \"f\"\n");
}

TEST_CASE("A mask: comparison, logic, choice and cast in one loop, whatever is broadcast") {
  const auto mask = [](const std::string& x, const std::string& p, const std::string& q) {
    same_bits(
        "  input %x: float32[" + x + "]\n  input %p: int64[" + p + "]\n  input %q: int64[" + q +
        "]\n  const %low: float32[] = [-1000.0]\n  const %no: float32[] = [0.0]\n"
        "  %a = Add(%x, %no)\n  %1 = Cast(%a) {to = 7}\n  %2 = Less(%1, %p)\n  %3 = GreaterOrEqual(%1, %q)\n"
        "  %4 = And(%2, %3)\n  %5 = Where(%4, %x, %low)\n  %6 = Cast(%4) {to = 1}\n  %7 = Mul(%5, %6)\n"
        "  output %7 as \"y\"\n");
  };
  mask("5000", "5000", "1");
  mask("64,1500", "1500", "64,1");
  mask("50,4,3", "4,1", "3");
  mask("200,3", "200,1", "3");
  mask("1", "1", "1");
  mask("", "", "");
  mask("3,0,2", "2", "1");
  mask("2,20000", "2,1", "20000");
}

TEST_CASE("An operand of wider elements is not written over") {
  // As many bytes as the result, and read again by every second row.
  const std::string body =
      "  input %x: float64[1,64]\n  input %w: float64[2,64]\n  %z = Softmax(%x)\n  %a = Add(%w, %z)\n"
      "  %b = Cast(%a) {to = 1}\n  output %b as \"b\"\n";
  same_bits(body, "Softmax " + std::string(fused));
}

TEST_CASE("A reduction at the end has the bits of one by itself") {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2",
                         "ReduceProd", "ReduceSumSquare"}) {
    const auto chain = [&](const std::string& x, const std::string& b, const std::string& axes, int keep,
                           const char* type = "float32") {
      const auto count = std::to_string(std::count(axes.begin(), axes.end(), ',') + 1);
      same_bits(std::string("  input %x: ") + type + "[" + x + "]\n  input %b: " + type + "[" + b +
                "]\n  const %axes: int64[" + count + "] = [" + axes +
                "]\n  %1 = Mul(%x, %b)\n  %2 = Sub(%1, %x)\n  %3 = " + op +
                "(%2, %axes) {keepdims = " + std::to_string(keep) + "}\n  output %3 as \"y\"\n");
    };
    chain("5000", "5000", "0", 1);
    chain("64,1500", "1500", "1", 0);
    chain("64,1500", "64,1", "-1", 1);
    chain("33,257", "1", "1", 0);
    chain("200,3", "200,1", "1", 1);
    chain("6,5,4,3", "5,1,3", "3", 0);
    chain("6,5,4,3", "4,1", "2,3", 0);
    chain("6,5,40,9", "6,5,1,9", "3,2", 1);
    chain("6,5,40,90", "5,1,1", "2,3", 1);
    chain("7,1", "7,1", "1", 0);
    chain("2,2100", "2,1", "1", 0);
    if (std::string(op) == "ReduceMean" || std::string(op) == "ReduceL2") continue;
    chain("33,257", "257", "1", 0, "int64");
    chain("33,257", "33,1", "1", 0, "int32");
  }
  same_bits(
      "  input %x: float16[20,300]\n  const %axes: int64[1] = [1]\n  %a = Neg(%x)\n  %b = Abs(%a)\n"
      "  %c = ReduceMax(%b, %axes) {keepdims = 0}\n  output %c as \"c\"\n");
  // What is long and repeats within is left to the body.
  same_bits(
      "  input %x: float32[3,40,90]\n  input %b: float32[40,1]\n  const %axes: int64[2] = [1,2]\n"
      "  %a = Mul(%x, %b)\n  %c = ReduceSum(%a, %axes) {keepdims = 0}\n  output %c as \"c\"\n");
}

TEST_CASE("A sigmoid far below zero is zero, so infinity times it has no value") {
  const std::string body =
      "  input %x: float32[20]\n  const %k: float32[] = [-inf]\n  %a = Abs(%x)\n  %b = Max(%a, %x)\n"
      "  %c = Exp(%b)\n  %d = Mul(%c, %k)\n  %e = Sigmoid(%d)\n  %f = Mul(%d, %e)\n  output %f as \"f\"\n";
  // Strict: otherwise denormals are zeros, and what is nearly zero is too.
  const Values values = run(std::move(optimized(body).graph), 1, false, "strict");
  std::vector<float> numbers(values.bytes[0].size() / 4);
  std::memcpy(numbers.data(), values.bytes[0].data(), values.bytes[0].size());
  for (const float number : numbers) CHECK(std::isnan(number));
}

TEST_CASE("What the kernel does not have runs as its body") {
  same_bits("  input %x: float64[3,70]\n  %a = Exp(%x)\n  %b = Abs(%a)\n  output %b as \"b\"\n");
  same_bits("  input %x: float32[3,70]\n  %a = Tan(%x)\n  %b = Abs(%a)\n  output %b as \"b\"\n");
  same_bits(
      "  input %x: float32[3,70]\n  input %z: float32[3,70]\n  %a = Neg(%x)\n  %b = Sum(%a, %x, %z)\n"
      "  output %b as \"b\"\n");
}

TEST_CASE("Written as an ONNX function, read again, the results are the same") {
  const std::string body =
      "  input %x: float32[3,70]\n  input %z: float32[70]\n  %a = Mul(%x, %z)\n  %b = Sigmoid(%a)\n  %c = "
      "Add(%b, %x)\n"
      "  output %c as \"c\"\n";
  const Values want = run(graph_of(body), 1);
  const Result r = optimized(body);
  const std::string path = test::scratch_dir() + "/fused.onnx";
  const ExporterEntry* const exporter = engine().registries().exporter("onnx");
  REQUIRE(exporter);
  Diagnostics findings;
  REQUIRE(exporter->record->write(exporter->instance, engine().host().abi(), r.graph.get(), to_abi(path),
                                  nullptr, 0, findings.abi()) == TN_OK);
  Manifest reading = manifest();
  reading.model_path = path;
  auto again = read_model(reading, engine().registries(), engine().host(), findings);
  findings.throw_if_errors(2);
  upgrade_and_infer(*again, engine().registries(), findings);
  findings.throw_if_errors(2);
  CHECK(run(std::move(again), 1).bytes == want.bytes);
}

TEST_CASE("A hundred thousand nodes in one chain become groups of at most max_nodes") {
  auto graph = std::make_unique<Graph>();
  graph->set_registry(&engine().registries());
  Transaction build(*graph, "chain", TN_EDIT_BUILD);
  const tn_edit_api& api = *edit_api();
  const tn_dim dims[] = {4};
  const tn_type type{TN_KIND_TENSOR, TN_FLOAT32, 1, 0, dims};
  tn_value at = TN_NONE;
  REQUIRE(api.region_input(build.get(), 0, to_abi("x"), &type, &at) == TN_OK);
  for (uint32_t i = 0; i < 100000; ++i) {
    tn_node_desc desc{};
    desc.size = sizeof desc;
    desc.op = graph_api()->symbol(to_abi(i % 2 ? "Neg" : "Tanh"));
    desc.before = TN_NONE;
    desc.inputs = &at;
    desc.input_count = 1;
    desc.output_count = 1;
    tn_node node = TN_NONE;
    REQUIRE(api.create_node(build.get(), &desc, &node) == TN_OK);
    at = graph->node(node).output(0);
  }
  api.region_outputs(build.get(), 0, &at, 1);
  Diagnostics findings;
  REQUIRE(build.commit(findings));
  infer_graph(*graph, findings);
  OptimizeReport report;
  engine().optimize(*graph, report);
  CHECK(graph->nodes(0).size() == 100000 / 32);
  CHECK(report.rules.at("fuse_elementwise").applied == 100000 / 32);
  CHECK(verify(*graph, findings));
}
