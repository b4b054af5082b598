// What an operator set cannot say as it is: written in its older form, as a few nodes, as a body's nodes, or
// refused with the node's name. Each written file is read again, and must give the same numbers.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <deque>
#include <map>

#include "core/graph/graph.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/interner.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/model_loader.hpp"
#include "test_paths.hpp"
#include "whole_program.hpp"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

Engine& engine() {
  static test::WholeProgram* program = nullptr;  // plugins stay open until the end
  if (program == nullptr) {
    test::use_build_tree(test::build_dir(), test::scratch_dir());
    program = new test::WholeProgram(test::one_thread_manifest({"pipeline=[]"}));
  }
  return program->engine;
}

struct Trip {
  std::string said;  // the refusal
  std::string ops;   // of the main graph in the file
  std::string file;  // the file's graph as text
  std::string wrong;
};

/// Runs a graph on inputs that depend on places and names only.
std::vector<NamedOutput> run(std::unique_ptr<Graph> graph) {
  std::vector<NamedTensor> inputs;
  std::vector<std::unique_ptr<std::vector<char>>> storage;
  std::deque<std::string> names;
  for (const tn_value v : graph->region(0).inputs) {
    const tn_type type = graph->type(v);
    int64_t count = 1;
    for (int32_t i = 0; i < type.rank; ++i) count *= type.dims[i];
    auto& bytes = *storage.emplace_back(std::make_unique<std::vector<char>>());
    const auto fill = [&](auto zero, auto&& at) {
      using T = decltype(zero);
      bytes.resize(static_cast<size_t>(count) * sizeof(T));
      for (int64_t i = 0; i < count; ++i) {
        const T x = static_cast<T>(at(i));
        std::memcpy(bytes.data() + static_cast<size_t>(i) * sizeof(T), &x, sizeof x);
      }
    };
    const auto wave = [](int64_t i) { return 2 * std::sin(1.7 * static_cast<double>(i) + 0.3); };
    if (type.dtype == TN_FLOAT32) fill(0.0f, wave);
    if (type.dtype == TN_FLOAT64) fill(0.0, wave);
    if (type.dtype == TN_INT64) fill(int64_t{}, [](int64_t i) { return i % 3; });
    if (type.dtype == TN_BOOL) fill(char{}, [](int64_t i) { return i % 2 == 0; });
    NamedTensor named;
    named.name = names.emplace_back(graph->name(v));
    named.tensor = {type.dtype, type.rank, type.dims, bytes.data(), bytes.size()};
    inputs.push_back(named);
  }
  RuntimeOptions options;
  options.threads = 1;
  const Session session(std::move(graph), engine().registries(), options);
  return session.run(inputs);
}

std::string difference(const std::vector<NamedOutput>& want, const std::vector<NamedOutput>& got) {
  for (size_t k = 0; k < want.size(); ++k) {
    const tn_tensor a = want[k].tensor(), b = got[k].tensor();
    if (want[k].name != got[k].name || a.dtype != b.dtype || a.bytes != b.bytes ||
        !std::equal(a.dims, a.dims + a.rank, b.dims, b.dims + b.rank))
      return want[k].name + " has another name, type or shape";
    if (a.dtype != TN_FLOAT32) {
      if (std::memcmp(a.data, b.data, a.bytes) != 0) return want[k].name + " differs";
      continue;
    }
    for (uint64_t i = 0; i < a.bytes / 4; ++i) {
      const float x = static_cast<const float*>(a.data)[i], y = static_cast<const float*>(b.data)[i];
      if (!(std::fabs(x - y) <= 1e-5f + 1e-5f * std::fabs(x)) && !(std::isnan(x) && std::isnan(y)))
        return want[k].name + "[" + std::to_string(i) + "] is " + std::to_string(y) + ", want " +
               std::to_string(x);
    }
  }
  return {};
}

std::unique_ptr<Graph> graph_of(const std::string& body) {
  Diagnostics findings;
  auto graph = parse("graph \"g\" {\n  opset \"\" 28\n" + body + "}\n", &engine().registries(), findings);
  findings.throw_if_errors(exit_bad_input);
  infer_graph(*graph, findings);
  findings.throw_if_errors(exit_bad_input);
  return graph;
}

Trip trip(const std::string& body, int64_t opset) {
  Trip result;
  auto graph = graph_of(body);
  const auto want = run(graph->clone());
  const std::string path = test::scratch_dir() + "/trip.onnx";
  const ExporterEntry* exporter = engine().registries().exporter("onnx");
  REQUIRE(exporter != nullptr);
  tn_attr options[2]{};
  options[0].kind = options[1].kind = TN_ATTR_INT;
  options[0].u.i = opset;
  Diagnostics said;
  if (exporter->record->write(exporter->instance, engine().host().abi(), graph.get(),
                              {path.data(), path.size()}, options, 2, said.abi()) != TN_OK) {
    result.said = said.first_error();
    return result;
  }
  Diagnostics findings;
  Manifest manifest = engine().manifest();
  manifest.model_path = path;
  auto again = read_model(manifest, engine().registries(), engine().host(), findings);
  CHECK((opset == 0 || again->opsets().at("") == opset));
  for (const tn_node n : again->nodes(0))
    result.ops += (result.ops.empty() ? "" : " ") + std::string(again->op_name(n));
  result.file = print(*again);
  upgrade_and_infer(*again, engine().registries(), findings);
  result.wrong = difference(want, run(std::move(again)));
  return result;
}

/// One node on x, which is float32[2,3,4], and constants.
std::string on_x(const std::string& lines) {
  return "  input %x: float32[2,3,4]\n" + lines + "  output %y as \"y\"\n";
}
std::string ints(const std::string& name, const std::string& list, const std::string& count) {
  return "  const %" + name + ": int64[" + count + "] = [" + list + "]\n";
}

/// Written in `opset` as `ops`, with `part` in the file's text, and right.
void check_written(const std::string& body, int64_t opset, const std::string& ops,
                   const std::string& part = {}) {
  const Trip t = trip(body, opset);
  INFO("opset " << opset << "\n" << body << t.said << "\n" << t.file);
  CHECK(t.said == "");
  CHECK(t.ops == ops);
  if (!part.empty()) CHECK_THAT(t.file, Contains(part));
  CHECK(t.wrong == "");
}
void check_refused(const std::string& body, int64_t opset, const std::string& part) {
  const Trip t = trip(body, opset);
  INFO("opset " << opset << "\n" << body << t.file);
  CHECK_THAT(t.said, Contains("opset " + std::to_string(opset) + " cannot hold") && Contains(part));
}

}  // namespace

TEST_CASE("axes become attributes again") {
  const std::string axes = ints("axes", "-1", "1");
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1",
                         "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare"}) {
    const std::string body = on_x(axes + "  %y = " + op + "(%x, %axes) {keepdims = 0} name \"n\"\n");
    check_written(body, 11, op, "axes = [-1]");
    check_written(body, 7, op, "axes = [2]");
    check_written(body, 18, op);
  }
  check_written(on_x(axes + "  %y = ReduceMean(%x, %axes)\n"), 17, "ReduceMean", "axes = [-1]");
  check_written(on_x("  %y = ReduceMean(%x) {noop_with_empty_axes = 1}\n"), 17, "Identity");
  check_written(on_x("  %y = ReduceL1(%x) {noop_with_empty_axes = 1}\n"), 17, "Abs ReduceSum");
  check_refused(on_x("  %y = ReduceLogSumExp(%x) {noop_with_empty_axes = 1} name \"n\"\n"), 17,
                "node n (ReduceLogSumExp) needs opset 18");
  check_refused(
      "  input %x: float32[2,3]\n  input %i: int64[1]\n  %y = ReduceSum(%x, %i) name \"n\"\n"
      "  output %y as \"y\"\n",
      12, "needs opset 13 for its operand 1, and its axes are computed");

  check_written("  input %x: float32[2,1,4]\n" + ints("a", "-2", "1") +
                    "  %y = Squeeze(%x, %a)\n  output %y as \"y\"\n",
                9, "Squeeze", "axes = [1]");
  check_written("  input %x: float32[2,1,4]\n  %y = Squeeze(%x)\n  output %y as \"y\"\n", 7, "Squeeze");
  check_written(on_x(ints("a", "-1, 0", "2") + "  %y = Unsqueeze(%x, %a)\n"), 8, "Unsqueeze",
                "axes = [4, 0]");
  check_written(on_x(ints("a", "-1, 0", "2") + "  %y = Unsqueeze(%x, %a)\n"), 12, "Unsqueeze",
                "axes = [-1, 0]");
  check_refused(
      "  input %x: float32[2,3]\n  input %i: int64[1]\n  %y = Unsqueeze(%x, %i) name \"n\"\n"
      "  output %y as \"y\"\n",
      12, "node n (Unsqueeze) needs opset 13");
  check_written(on_x("  %y = ArgMax(%x) {axis = -1}\n"), 10, "ArgMax", "axis = 2");
  check_written(on_x("  %y = Concat(%x, %x) {axis = -2}\n"), 8, "Concat", "axis = 1");
}

TEST_CASE("what ONNX Runtime has no kernel for is written in a form that it runs") {
  const auto on_integers = [](const std::string& type, const std::string& lines) {
    return "  input %x: float32[2,3,4]\n  %i = Cast(%x) {to = " + type + "}\n" + lines +
           "  %y = Cast(%r) {to = 1}\n  output %y as \"y\"\n";
  };
  const std::string int16 = "5", uint16 = "4", int32 = "6", int64 = "7";
  // A wider type around the node; Relu of the widest is a Max; what has a kernel stays.
  check_written(on_integers(int16, "  %r = Relu(%i)\n"), 28, "Cast Cast Relu Cast Cast", "to = 6");
  check_written(on_integers(int64, "  %r = Relu(%i)\n"), 17, "Cast Max Cast");
  check_written(on_integers(int32, "  %r = Relu(%i)\n"), 17, "Cast Relu Cast");
  check_written(on_integers(uint16, "  %r = Max(%i, %i)\n"), 13, "Cast Cast Cast Max Cast Cast");
  check_written(on_integers(int16, "  %a = ArgMax(%i) {axis = 1, keepdims = 0}\n  %r = Cast(%a) {to = 6}\n"),
                13, "Cast Cast ArgMax Cast Cast");
  // No kernel at all in this operator set.
  const std::string one = "  const %s: float32[] = [0.02]\n  const %z: int8[] = [3]\n";
  const std::string each = "  const %s: float32[3] = [0.02, 0.01, 0.5]\n  const %z: uint8[3] = [3, 0, 128]\n";
  for (const std::string& scale : {one, each}) {
    const std::string trip_of = on_x(scale +
                                     "  %q = QuantizeLinear(%x, %s, %z) {axis = 1}\n"
                                     "  %y = DequantizeLinear(%q, %s, %z) {axis = -2}\n");
    check_written(trip_of, 27, "QuantizeLinear DequantizeLinear");
    const Trip t = trip(trip_of, 28);
    INFO(t.said << t.file);
    CHECK(t.ops.find("Linear") == std::string::npos);
    CHECK(t.wrong == "");
  }
  check_written(
      on_x("  const %s: float32[] = [0.02]\n  %q = QuantizeLinear(%x, %s)\n  %y = Cast(%q) {to = 1}\n"), 28,
      "Div Round Clip Cast Cast");
}

TEST_CASE("splits, slices and pads") {
  const std::string two = "  output %z as \"z\"\n";
  const std::string sized = on_x(ints("s", "1, 3", "2") + "  %y, %z = Split(%x, %s) {axis = -1}\n") + two;
  check_written(sized, 13, "Split");
  check_written(sized, 11, "Split", "split = [1, 3]");
  check_written(sized, 10, "Split", "axis = 2");
  const std::string uneven = on_x("  %y, %z = Split(%x) {axis = 1, num_outputs = 2}\n") + two;
  check_written(uneven, 18, "Split", "num_outputs = 2");
  check_written(uneven, 15, "Split", "[2, 1]");
  check_written(uneven, 9, "Split", "split = [2, 1]");

  const std::string part =
      ints("b", "0, -3", "2") + ints("e", "9223372036854775807, -1", "2") + ints("a", "0, -1", "2");
  check_written(on_x(part + "  %y = Slice(%x, %b, %e, %a)\n"), 9, "Slice", "axes = [0, 2]");
  check_written(on_x(part + "  %y = Slice(%x, %b, %e, %a)\n"), 10, "Slice");
  check_refused(on_x(part + ints("s", "2, 1", "2") + "  %y = Slice(%x, %b, %e, %a, %s) name \"n\"\n"), 9,
                "it has steps other than 1");

  const std::string some = ints("p", "1, 2", "2") + ints("a", "-1", "1") + "  const %v: float32[] = [3]\n";
  check_written(on_x(some + "  %y = Pad(%x, %p, %v, %a)\n"), 13, "Pad", "[0, 0, 1, 0, 0, 2]");
  check_written(on_x(some + "  %y = Pad(%x, %p, %v, %a)\n"), 7, "Pad", "value = 3.0");
  check_written(on_x(ints("p", "0, 0, 1, 0, 0, 1", "6") + "  %y = Pad(%x, %p) {mode = \"reflect\"}\n"), 9,
                "Pad", "reflect");
  check_refused(
      on_x(ints("p", "0, 0, 1, 0, 0, 1", "6") + "  %y = Pad(%x, %p) {mode = \"wrap\"} name \"n\"\n"), 18,
      "node n (Pad) needs opset 19 for mode 'wrap'");
}

TEST_CASE("rows of a softmax, parts of a shape, sizes without zeros") {
  check_written(on_x("  %y = Softmax(%x)\n"), 12, "Softmax", "axis = 2");
  check_written(on_x("  %y = Softmax(%x) {axis = 1}\n"), 11, "Transpose Softmax Transpose",
                "perm = [0, 2, 1]");
  check_written(on_x("  %y = LogSoftmax(%x) {axis = -3}\n"), 7, "Transpose LogSoftmax Transpose",
                "perm = [2, 1, 0]");
  check_written(on_x("  %y = Shape(%x) {start = 1}\n"), 14, "Shape Slice");
  check_written("  input %x: float32[1,4,2]\n  %y = DFT(%x)\n  output %y as \"y\"\n", 17, "DFT", "axis = 1");
  check_written(on_x("  %y = Shape(%x) {end = -1, start = 0}\n"), 8, "Shape Slice", "ends = [-1]");
  check_written(on_x(ints("s", "6, 4", "2") + "  %y = Reshape(%x, %s) {allowzero = 1}\n"), 13, "Reshape");
  check_refused("  input %x: float32[0,3]\n" + ints("s", "3, 0", "2") +
                    "  %y = Reshape(%x, %s) {allowzero = 1} name \"n\"\n  output %y as \"y\"\n",
                13, "needs opset 14 for attribute 'allowzero', and its shape holds a zero");
}

TEST_CASE("operands become attributes, or must be there") {
  const std::string bounds = "  const %l: float32[] = [-1]\n  const %h: float32[] = [0.5]\n";
  check_written(on_x(bounds + "  %y = Clip(%x, %l, %h)\n"), 10, "Clip", "min = -1.0, max = 0.5");
  check_written(on_x(bounds + "  %y = Clip(%x, _, %h)\n"), 7, "Clip", "max = 0.5");
  check_refused(
      "  input %x: float32[2]\n  input %l: float32[]\n  %y = Clip(%x, %l) name \"n\"\n  output %y as \"y\"\n",
      10, "node n (Clip) needs opset 11 for its operand 1, and its min is computed");
  const std::string top =
      on_x(ints("k", "2", "1") + "  %y, %i = TopK(%x, %k) {axis = -2}\n") + "  output %i as \"i\"\n";
  check_written(top, 10, "TopK", "axis = 1");
  check_written(top, 9, "TopK", "k = 2");
  check_refused(on_x(ints("k", "2", "1") + "  %y, %i = TopK(%x, %k) {largest = 0} name \"n\"\n"), 10,
                "needs opset 11 for attribute 'largest'");
  check_written(on_x("  const %r: float32[] = [0.3]\n  %y = Dropout(%x, %r)\n"), 10, "Dropout",
                "ratio = 0.3");
  check_written(
      "  input %a: float32[2,3]\n  input %b: float32[3,4]\n  %y = Gemm(%a, %b) {alpha = 0.5}\n  output %y as "
      "\"y\"\n",
      9, "Gemm", "const");
  check_written(on_x("  const %e: int64[] = [2]\n  %y = Pow(%x, %e)\n"), 11, "Cast Pow");
  check_written(
      "  input %s: int64[2]\n  %y = ConstantOfShape(%s) {value = tensor float32[1] [2.5]}\n  output %y as "
      "\"y\"\n",
      8, "Expand");
  check_refused("  input %s: int64[2]\n  %y = ConstantOfShape(%s) name \"n\"\n  output %y as \"y\"\n", 7,
                "needs opset 9 for the operator");
  check_written(
      "  input %x: float32[2]\n  input %t: int64[1]\n  %y = CastLike(%x, %t)\n  output %y as \"y\"\n", 13,
      "Cast", "to = 7");
  check_refused(
      "  input %x: float32[2]\n  input %t: float32[1]\n  %y = Mod(%x, %t) name \"n\"\n  output %y as \"y\"\n",
      27, "node n (Mod) needs opset 28 for the remainder of reals that is not fmod");
  const std::string scatter =
      "  const %i: int64[1,2] = [0, 1]\n  const %u: float32[1,2] = [5, 6]\n  input %x: float32[3,2]\n";
  check_written(scatter + "  %y = ScatterElements(%x, %i, %u)\n  output %y as \"y\"\n", 10, "Scatter");
  check_refused(
      scatter + "  %y = ScatterElements(%x, %i, %u) {reduction = \"add\"} name \"n\"\n  output %y as \"y\"\n",
      10, "node n (ScatterElements) needs opset 16");
}

TEST_CASE("optionals: an operand that is one asks for less than a tensor does") {
  const std::string made =
      "  input %x: float32[2]\n  %o = Optional(%x)\n  %h = OptionalHasElement(%o)\n  %y = "
      "OptionalGetElement(%o)\n"
      "  output %h as \"h\"\n  output %y as \"y\"\n";
  check_written(made, 15, "Optional OptionalHasElement OptionalGetElement");
  check_refused("  input %x: float32[2]\n  %y = OptionalGetElement(%x) name \"n\"\n  output %y as \"y\"\n",
                17, "node n (OptionalGetElement) needs opset 18 for element type float32");
  check_refused("  input %x: float32[2]\n  %y = OptionalHasElement(%x) name \"n\"\n  output %y as \"y\"\n",
                17, "node n (OptionalHasElement) needs opset 18");
}

TEST_CASE("pools count windows as their operator set does") {
  const auto pool = [](const std::string& pads) {
    return "  input %x: float32[1,1,3,3]\n  %y = MaxPool(%x) {ceil_mode = 1, kernel_shape = [1, 1], strides "
           "= [2, 2]" +
           pads + "} name \"n\"\n  output %y as \"y\"\n";
  };
  check_written(pool(""), 11, "MaxPool");
  const std::string begins_in_padding = pool(", pads = [0, 0, 0, 1]");
  check_written(begins_in_padding, 11, "MaxPool");  // as runtimes have it, whatever the operator set
  CHECK_THAT(trip(begins_in_padding, 0).file, Contains("opset \"\" 22"));
  CHECK_THAT(trip(pool(""), 0).file, Contains("opset \"\" 13"));
}

TEST_CASE("sampling") {
  const auto resize = [](const std::string& more) {
    return "  input %x: float32[1,2,3,4]\n  const %s: float32[4] = [1, 1, 2, 2]\n  const %z: int64[2] = [6, "
           "8]\n" +
           more + "  output %y as \"y\"\n";
  };
  const std::string scaled = resize("  %y = Resize(%x, _, %s)\n");
  check_written(scaled, 13, "Resize");
  check_written(scaled, 11, "Resize");
  check_written(scaled, 10, "Resize", "mode = \"nearest\"");
  check_written(scaled, 9, "Upsample");
  check_written(scaled, 7, "Upsample", "scales = [1.0, 1.0, 2.0, 2.0]");
  const std::string computed =
      "  input %x: float32[1,1,2,2]\n  input %n: int64[4]\n  const %o: int64[4] = [1, 1, 2, 3]\n  const %z: "
      "int64[4] = [0, 0, 0, 0]\n"
      "  %m = Mul(%n, %z)\n  %k = Add(%m, %o)\n  %s = Cast(%k) {to = 1}\n";
  const std::string plain = "{coordinate_transformation_mode = \"asymmetric\", nearest_mode = \"floor\"";
  check_written(computed + "  %y = Resize(%x, _, %s) " + plain + "}\n  output %y as \"y\"\n", 9,
                "Mul Add Cast Upsample");
  check_refused(computed + "  %y = Resize(%x, _, %s) " + plain + "} name \"n\"\n  output %y as \"y\"\n", 8,
                "its scales are computed");
  check_refused(computed + "  %y = Resize(%x, _, %s) name \"n\"\n  output %y as \"y\"\n", 9, "came later");
  const std::string some = resize("  %y = Resize(%x, _, _, %z) {axes = [2, 3]}\n");
  check_written(some, 18, "Resize", "axes = [2, 3]");
  check_written(some, 13, "Resize", "[1, 2, 6, 8]");
  check_written(some, 8, "Upsample");
  check_refused(resize("  %y = Resize(%x, _, %s) {mode = \"cubic\"} name \"n\"\n"), 10, "mode 'cubic'");
  check_refused(resize("  %y = Resize(%x, _, %s) {antialias = 1, mode = \"linear\"} name \"n\"\n"), 17,
                "it smooths");
  const std::string grid = "  input %x: float32[1,1,3,3]\n  input %g: float32[1,2,2,2]\n";
  check_written(grid + "  %y = GridSample(%x, %g) {mode = \"cubic\"}\n  output %y as \"y\"\n", 16,
                "GridSample", "bicubic");
  check_written(grid + "  %y = GridSample(%x, %g)\n  output %y as \"y\"\n", 19, "GridSample", "bilinear");
  check_refused(
      "  input %x: float32[1,1,2,3,3]\n  input %g: float32[1,2,2,2,3]\n"
      "  %y = GridSample(%x, %g) name \"n\"\n  output %y as \"y\"\n",
      16, "node n (GridSample) needs opset 20");
}

TEST_CASE("boxes of regions are moved by half a pixel since 16, unless said otherwise") {
  const auto regions = [](const std::string& attributes) {
    return "  input %x: float32[2,2,5,4]\n  const %r: float32[3,4] = [0,1,3,4,-9,-9,20,20,2,2,2.5,2.25]\n" +
           ints("i", "1,0,1", "3") +
           "  %y = RoiAlign(%x, %r, %i) {output_height = 2, output_width = 3, spatial_scale = 0.5" +
           attributes + "} name \"n\"\n  output %y as \"y\"\n";
  };
  const std::string before = ", coordinate_transformation_mode = \"output_half_pixel\"";
  for (const std::string mode : {"avg", "max"}) {
    const std::string how = ", mode = \"" + mode + "\"";
    for (const int64_t opset : {0, 16, 22, 28}) check_written(regions(how), opset, "RoiAlign");
    check_refused(regions(how), 15,
                  "node n (RoiAlign) needs opset 16 for the operator, and its boxes are moved by half");
    for (const int64_t opset : {10, 15}) check_written(regions(how + before), opset, "RoiAlign");
    for (const int64_t opset : {0, 16, 28})
      check_written(regions(how + before), opset, "RoiAlign", "output_half_pixel");
  }
}

TEST_CASE("operators that came later are written as what they are made of") {
  check_written(on_x("  %y = Gelu(%x)\n"), 17, "Mul Erf Mul Add Mul");
  for (const char* op : {"Gelu", "Mish", "HardSwish", "Swish"}) {
    INFO(op);
    CHECK(trip(on_x(std::string("  %y = ") + op + "(%x)\n"), 13).wrong == "");
    CHECK(trip(on_x(std::string("  %y = ") + op + "(%x)\n"), 13).said == "");
  }
  const std::string norm =
      on_x("  const %g: float32[4] = [1, 2, 3, 4]\n  %y = LayerNormalization(%x, %g) name \"n\"\n");
  check_written(norm, 17, "LayerNormalization");
  for (const int64_t opset : {16, 13, 11, 9, 7}) {
    const Trip t = trip(norm, opset);
    CHECK(t.said == "");
    CHECK(t.wrong == "");
    CHECK(t.ops.find("LayerNormalization") == std::string::npos);
  }
  // The second one's rank is known only when the first one is replaced.
  const Trip chain = trip(on_x("  const %g: float32[4] = [1, 2, 3, 4]\n  %a = LayerNormalization(%x, %g)\n"
                               "  %b = Gelu(%a)\n  %y = LayerNormalization(%b, %g)\n"),
                          13);
  CHECK(chain.said == "");
  CHECK(chain.wrong == "");
  // ONNX Runtime has no kernel for Swish from 25 on.
  CHECK(trip(on_x("  %y = Swish(%x)\n"), 24).ops == "Swish");
  CHECK(trip(on_x("  %y = Swish(%x)\n"), 26).ops.find("Swish") == std::string::npos);
  check_refused(on_x("  %y = Trilu(%x) name \"n\"\n"), 13, "node n (Trilu) needs opset 14 for the operator");
  check_refused(
      "  input %x: float64[2,3]\n  input %g: float64[3]\n  %y = NonZero(%x) name \"n\"\n  output %y as "
      "\"y\"\n",
      8, "node n (NonZero) needs opset 9 for the operator");
}

TEST_CASE("fused nodes: functions, the body's nodes where there are none, the decomposition without a body") {
  const std::string fused =
      "  input %x: float32[1,2,5,5]\n  const %w: float32[3,2,3,3] = uniform [0.1]\n"
      "  %y = tenon::FusedConv(%x, %w) {activation = \"Relu\"} name \"n\"";
  const std::string body =
      " {\n    region \"body\" {\n      input %a: float32[1,2,5,5]\n      input %b: float32[3,2,3,3]\n"
      "      %c = Conv(%a, %b)\n      %d = Relu(%c)\n      output %d as \"d\"\n    }\n  }\n";
  for (const std::string& rest : {body, std::string("\n")}) {
    for (const int64_t opset : {0, 28, 15, 14, 7}) {
      const Trip t = trip(fused + rest + "  output %y as \"y\"\n", opset);
      INFO("opset " << opset << rest << t.said);
      CHECK(t.said == "");
      CHECK(t.wrong == "");
      CHECK(t.ops == "Conv Relu");  // functions are inlined when they are read
    }
  }
}

TEST_CASE("a body may leave out the operands that its node leaves out") {
  const std::string fused =
      "  input %x: float32[1,2,3,3]\n  input %r: float32[1,2,3,3]\n  const %w: float32[2,2,1,1] = uniform "
      "[0.1]\n"
      "  %y = tenon::FusedConv(%x, %w, _, %r) name \"n\" {\n    region \"body\" {\n      input %a: "
      "float32[1,2,3,3]\n"
      "      input %b: float32[2,2,1,1]\n      input %d: float32[1,2,3,3]\n      %c = Conv(%a, %b)\n"
      "      %e = Add(%c, %d)\n      output %e as \"e\"\n    }\n  }\n  output %y as \"y\"\n";
  check_written(fused, 20, "Conv Add");
  check_written(fused, 13, "Conv Add");
}

TEST_CASE("quantised by slices since 13") {
  const auto quantised = [](const std::string& scale) {
    return "  input %x: float32[2,3]\n  const %s: " + scale +
           "\n  %y = QuantizeLinear(%x, %s) name \"n\"\n  output %y as \"y\"\n";
  };
  check_written(quantised("float32[] = [0.1]"), 10, "QuantizeLinear");
  check_written(quantised("float32[3] = [0.1, 0.2, 0.3]"), 13, "QuantizeLinear");
  check_refused(quantised("float32[3] = [0.1, 0.2, 0.3]"), 12,
                "node n (QuantizeLinear) needs opset 13 for a scale for each slice");
}

TEST_CASE("every operator of the domain tenon can be written without a body") {
  const std::string matrices =
      "  input %a: float32[2,3]\n  input %b: float32[3,4]\n  input %c: float32[4]\n  input %g: float32[4]\n";
  const std::string rows = "  input %x: float32[2,4]\n  input %s: float32[2,4]\n  input %g: float32[4]\n";
  const std::map<std::string, std::string> graphs{
      {"tenon::FusedConv",
       "  input %x: float32[1,2,4,4]\n  const %w: float32[3,2,3,3] = uniform [0.1]\n"
       "  %y = tenon::FusedConv(%x, %w) {activation = \"HardSwish\", pads = [1, 1, 1, 1]}\n"},
      {"tenon::FusedGemm",
       matrices + "  %y = tenon::FusedGemm(%a, %b, %c) {activation = \"Clip\", activation_alpha = 0.0}\n"},
      {"tenon::FusedMatMul", matrices + "  %y = tenon::FusedMatMul(%a, %b, %c) {activation = \"Gelu\"}\n"},
      {"tenon::SDPA",
       "  input %q: float32[2,3,4]\n  input %k: float32[2,5,4]\n  input %v: float32[2,5,6]\n"
       "  %y = tenon::SDPA(%q, %k, %v) {scale = 0.5}\n"},
      {"tenon::MatMulAddLayerNorm", matrices + "  %y, _ = tenon::MatMulAddLayerNorm(%a, %b, %c, _, %g)\n"},
      {"tenon::SkipLayerNorm", rows + "  %y, _ = tenon::SkipLayerNorm(%x, %s, %g)\n"},
      {"tenon::SkipRmsNorm", rows + "  %y, _ = tenon::SkipRmsNorm(%x, %s, %g)\n"},
      {"tenon::NormalizeL2", rows + "  %y = tenon::NormalizeL2(%x) {axes = [-1]}\n"},
      {"tenon::GatedActivation", rows + "  %y = tenon::GatedActivation(%x, %s) {activation = \"Swish\"}\n"},
      {"tenon::ChannelShuffle",
       "  input %x: float32[1,4,2,2]\n  %y = tenon::ChannelShuffle(%x) {groups = 2}\n"}};
  for (const tn_sym op : engine().registries().op_symbols()) {
    const std::string name(symbol_text(op));
    if (name.rfind("tenon::", 0) != 0 || name == "tenon::FusedElementwise") continue;
    INFO(name << ": nodes of it without a body cannot be exported; give it a decomposition");
    CHECK(engine().registries().find(op)->def->decompose != nullptr);
  }
  // Its body is all its meaning: a node without one is no valid node in the first place.
  CHECK_THROWS_WITH(
      trip("  input %x: float32[2]\n  %y = tenon::FusedElementwise(%x)\n  output %y as \"y\"\n", 0),
      Contains("it has 0 bodies; expected one"));
  for (const auto& [name, node] : graphs) {
    if (engine().registries().find(intern(name)) == nullptr) continue;
    for (const int64_t opset : {0, 28, 17, 12, 9}) {
      const Trip t = trip(node + "  output %y as \"y\"\n", opset);
      INFO("opset " << opset << "\n" << node << t.said);
      CHECK(t.said == "");
      CHECK(t.wrong == "");
    }
  }
}

TEST_CASE("scans with a batch of one") {
  const std::string sum =
      "  input %s: float32[2]\n  input %x: float32[3,2]\n  %y, %z = Scan(%s, %x) {num_scan_inputs = 1MORE} "
      "name \"n\" {\n"
      "    region \"body\" {\n      input %a: float32[2]\n      input %b: float32[2]\n      %c = Add(%a, "
      "%b)\n"
      "      %d = Neg(%c)\n      output %c as \"c\"\n      output %d as \"d\"\n    }\n  }\n  output %y as "
      "\"y\"\n  output %z as \"z\"\n";
  const auto with = [&](const std::string& more) {
    std::string s = sum;
    return s.replace(s.find("MORE"), 4, more);
  };
  check_written(with(""), 9, "Scan");
  check_written(with(""), 8, "Unsqueeze Unsqueeze Scan Squeeze Squeeze");
  check_written(with(", scan_input_directions = [1]"), 8, "Unsqueeze Unsqueeze Scan Squeeze Squeeze",
                "directions = [1]");
  check_refused(with(", scan_output_directions = [1]"), 8,
                "its attribute 'scan_output_directions' has no older form");
  check_refused(with(""), 7, "node n (Scan) needs opset");
}

TEST_CASE("control flow keeps its bodies in each operator set") {
  const std::string branch =
      "  input %x: float32[2,3]\n  input %c: bool[]\n  %y = If(%c) {\n    region \"then_branch\" {\n"
      "      %t = Softmax(%x) {axis = 0}\n      output %t as \"t\"\n    }\n    region \"else_branch\" {\n"
      "      %e = Gelu(%x)\n      output %e as \"e\"\n    }\n  }\n  output %y as \"y\"\n";
  for (const int64_t opset : {0, 20, 13, 11, 9}) {
    const Trip t = trip(branch, opset);
    INFO("opset " << opset << t.said);
    CHECK(t.said == "");
    CHECK(t.ops == "If");
    CHECK(t.wrong == "");
  }
}
