#include "onnx_exporter.hpp"

#include <catch2/catch.hpp>

#include "fake_host.hpp"
#include "model_messages.hpp"
#include "onnx_frontend.hpp"
#include "opset_forms.hpp"
#include "test_models.hpp"

using namespace tenon;
using namespace tenon::onnx;
using namespace tenon::onnx::testing;
using Catch::Matchers::Contains;

namespace {

// A registry that knows a few operators, so that they count as canonical.
const tn_registry_api* registry_table() {
  static const tn_registry_api table = [] {
    tn_registry_api t{};
    t.size = sizeof t;
    t.find = [](const tn_host*, tn_sym op) -> const tn_op_def* {
      static std::map<tn_sym, tn_op_def> defs;
      static tn_attr_def reduction{}, shape{};
      if (defs.empty()) {
        reduction = {sdk::str("noop_with_empty_axes"), TN_ATTR_INT, 0, 1, 0, 0, 0, {}, nullptr};
        shape = {sdk::str("start"), TN_ATTR_INT, 0, 1, 0, 0, 0, {}, nullptr};
        for (const char* name : {"Relu", "Add", "Shape", "ReduceMean", "Gelu", "Swish", "Mul", "If",
                                 "Identity", "Clip", "tenon::FusedConv", "Conv", "Neg", "DFT"}) {
          tn_op_def d{};
          d.size = sizeof d;
          d.since_version = 28;
          if (std::string_view(name) == "If") d.flags = TN_OP_CONTROL_FLOW;
          if (std::string_view(name) == "ReduceMean") d.attrs = &reduction, d.attr_count = 1;
          if (std::string_view(name) == "Shape") d.attrs = &shape, d.attr_count = 1;
          defs[symbol_of(name)] = d;
        }
      }
      const auto at = defs.find(op);
      return at == defs.end() ? nullptr : &at->second;
    };
    return t;
  }();
  return &table;
}
sdk::Services services() {
  sdk::Services s(fake_host());
  s.registry = registry_table();
  return s;
}

// A graph put together by hand: what the frontend never makes.
struct Built {
  FakeGraph graph;
  tn_value input(std::string_view name, std::initializer_list<tn_dim> dims, tn_dtype dtype = TN_FLOAT32,
                 tn_region region = 0) {
    const tn_type t{TN_KIND_TENSOR, dtype, static_cast<int32_t>(dims.size()), 0, dims.begin()};
    tn_value v;
    edit_table()->region_input(graph.edit(), region, sdk::str(name), &t, &v);
    return v;
  }
  tn_node node(std::string_view op, std::vector<tn_value> inputs, std::vector<std::string> outputs,
               tn_region region = 0, std::vector<tn_attr> attrs = {}, std::string_view name = {}) {
    std::vector<tn_str> names;
    for (const auto& o : outputs) names.push_back(sdk::str(o));
    tn_node_desc d{};
    d.size = sizeof d;
    d.op = symbol_of(op);
    d.op_version = 28;
    d.region = region;
    d.name = sdk::str(name);
    d.inputs = inputs.data();
    d.input_count = static_cast<uint32_t>(inputs.size());
    d.attrs = attrs.data();
    d.attr_count = static_cast<uint32_t>(attrs.size());
    d.output_names = names.data();
    d.output_count = static_cast<uint32_t>(names.size());
    tn_node n;
    edit_table()->create_node(graph.edit(), &d, &n);
    for (tn_value v : graph.nodes[n].outputs)
      if (v != TN_NONE) graph.values[v].type = tn_type{TN_KIND_TENSOR, TN_FLOAT32, -1, 0, nullptr};
    return n;
  }
  tn_value result(tn_node n, size_t i = 0) const { return graph.nodes.at(n).outputs.at(i); }
  tn_value constant(std::string_view name, const std::vector<float>& v) {
    const int64_t n = static_cast<int64_t>(v.size());
    return copy_constant(graph, name, {TN_FLOAT32, 1, &n, const_cast<float*>(v.data()), v.size() * 4});
  }
  tn_region region(tn_node parent, std::string_view name) {
    tn_region r;
    edit_table()->create_region(graph.edit(), parent, sdk::str(name), &r);
    return r;
  }
  void outputs(std::vector<tn_value> v, tn_region r = 0) {
    edit_table()->region_outputs(graph.edit(), r, v.data(), static_cast<uint32_t>(v.size()));
  }
};

struct Exported {
  tn_status status;
  std::string said, bytes;
  ModelMessage model;
  FakeGraph again;  // what the frontend makes of it
};
std::unique_ptr<Exported> write(FakeGraph& graph, int64_t opset = 0, int64_t external = 0) {
  auto e = std::make_unique<Exported>();
  TemporaryFolder folder;
  const std::string path = folder.file("m.onnx");
  sdk::Services s = services();
  sdk::DiagBuffer said;
  tn_attr options[2]{};
  options[0].kind = options[1].kind = TN_ATTR_INT;
  options[0].u.i = opset;
  options[1].u.i = external;
  e->status =
      exporter_record()->write(&s, fake_host(), graph.handle(), sdk::str(path), options, 2, said.raw());
  e->said = said.text();
  if (e->status != TN_OK) return e;
  std::ifstream in(path, std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  e->bytes = all.str();
  e->model = decode_model({e->bytes.data(), e->bytes.size()});
  const tn_status s2 = frontend_record()->load(&s, fake_host(), sdk::str(path), e->again.handle(),
                                               e->again.edit(), said.raw());
  INFO(said.text());
  REQUIRE(s2 == TN_OK);
  return e;
}
int64_t opset_of(const Exported& e) { return e.model.opsets.at(""); }
tn_attr int_attr(std::string_view name, int64_t v) {
  tn_attr a{};
  a.name = symbol_of(name);
  a.kind = TN_ATTR_INT;
  a.u.i = v;
  return a;
}

}  // namespace

TEST_CASE("a plain graph is written with its names, symbols and weights, in the lowest opset") {
  Built b;
  const tn_dim n = symbols_table()->named(b.graph.handle(), sdk::str("batch"));
  const tn_value x = b.input("x", {n, 3});
  const tn_node relu = b.node("Relu", {x}, {"x"}, 0, {}, "relu");  // a value called as the input is
  const tn_node add = b.node("Add", {b.result(relu), b.constant("w", {1, 2, 3})}, {"sum"});
  b.outputs({b.result(add)});
  b.graph.regions[0].output_names[0] = "y";
  auto e = write(b.graph);
  INFO(e->said);
  REQUIRE(e->status == TN_OK);
  CHECK(opset_of(*e) == 13);
  CHECK(e->model.ir_version == 7);
  REQUIRE(e->again.nodes.size() == 2);
  CHECK(e->again.nodes[0].name == "relu");
  CHECK(e->again.values[e->again.nodes[0].outputs[0]].name == "x_1");
  CHECK(e->again.regions[0].output_names[0] == "y");
  CHECK(e->again.values[e->again.nodes[1].outputs[0]].name == "y");
  CHECK(e->again.dim_names == std::vector<std::string>{"batch"});
  CHECK(e->again.elements<float>(e->again.by_name("w")) == std::vector<float>{1, 2, 3});
}

TEST_CASE("outputs that no node makes go through Identity") {
  Built b;
  const tn_value x = b.input("x", {3}), c = b.constant("c", {1});
  const tn_node r = b.node("Relu", {x}, {"r"});
  b.outputs({x, b.result(r), c, b.result(r)});
  b.graph.regions[0].output_names = {"x", "first", "constant", "second"};
  auto e = write(b.graph);
  REQUIRE(e->status == TN_OK);
  std::string ops;
  for (size_t i = 0; i < e->again.nodes.size(); ++i) ops += e->again.op(i) + " ";
  CHECK(ops == "Relu Identity Identity ");
  CHECK(e->again.regions[0].output_names == std::vector<std::string>{"x", "first", "constant", "second"});
}

TEST_CASE("the opset follows from the form of each node") {
  const auto opset = [](std::string_view op, std::vector<tn_attr> attrs, bool second_operand = false) {
    Built b;
    const tn_value x = b.input("x", {3});
    std::vector<tn_value> inputs{x};
    if (second_operand) inputs.push_back(b.constant("axes", {1}));
    b.outputs({b.result(b.node(op, inputs, {"y"}, 0, std::move(attrs)))});
    auto e = write(b.graph);
    INFO(e->said);
    REQUIRE(e->status == TN_OK);
    return opset_of(*e);
  };
  CHECK(opset("Shape", {}) == 13);
  CHECK(opset("Shape", {int_attr("start", 1)}) == 15);
  CHECK(opset("ReduceMean", {}) == 13);
  CHECK(opset("ReduceMean", {int_attr("noop_with_empty_axes", 0)}) == 13);  // the default: left out
  CHECK(opset("ReduceMean", {int_attr("noop_with_empty_axes", 1)}) == 18);
  CHECK(opset("ReduceMean", {}, true) == 18);
  CHECK(opset("Gelu", {}) == 20);
  CHECK(opset("Swish", {}) == 24);
  CHECK(opset("DFT", {}) == 20);  // without the operand, the axis was another one before
  CHECK(ir_version_of(20) == 9);
  CHECK(same_definition("Relu", 14, 28));
  CHECK_FALSE(same_definition("Clip", 11, 13));
}

TEST_CASE("an asked-for opset is kept or refused by name") {
  Built b;
  b.outputs({b.result(b.node("Gelu", {b.input("x", {3})}, {"y"}, 0, {}, "act"))});
  CHECK(opset_of(*write(b.graph, 22)) == 22);
  CHECK_THAT(write(b.graph, 17)->said, Contains("opset 17 cannot hold the graph") &&
                                           Contains("node act (Gelu)") &&
                                           Contains("needs opset 20 for the operator"));
  CHECK_THAT(write(b.graph, 6)->said, Contains("expected 7 to 28"));
}

TEST_CASE("an old operator set has an old IR version, whose initializers are inputs") {
  Built b;
  const tn_value x = b.input("x", {3});
  b.outputs({b.result(b.node("Add", {x, b.constant("w", {1, 2, 3})}, {"y"}))});
  auto e = write(b.graph, 8);
  INFO(e->said);
  REQUIRE(e->status == TN_OK);
  CHECK(e->model.ir_version == 3);
  CHECK(e->model.graph->inputs.size() == 2);
  CHECK(e->again.regions[0].inputs.size() == 1);  // the other is a constant again
  for (const auto& [opset, ir] :
       std::map<int64_t, int64_t>{{9, 4}, {10, 5}, {11, 6}, {12, 7}, {14, 7}, {15, 8}, {28, 14}}) {
    const auto written = write(b.graph, opset);
    CHECK(written->model.ir_version == ir);
    CHECK(written->model.graph->inputs.size() == 1);
  }
  b.graph.values[x].fallback = b.constant("x.default", {7, 8, 9});
  CHECK(write(b.graph, 8)->model.ir_version == 4);  // one input can be overridden, the other not
}

TEST_CASE("fused nodes become local functions: one for equal bodies, with captures as inputs") {
  Built b;
  const tn_value x = b.input("x", {3});
  const tn_value w1 = b.constant("w1", std::vector<float>(40, 1)),
                 w2 = b.constant("w2", std::vector<float>(40, 2)),
                 big = b.constant("big", std::vector<float>(40, 3));
  const auto fused = [&](tn_value in, tn_value w, const char* out, float factor, const char* inner_name) {
    const tn_node f = b.node("tenon::FusedConv", {in, w, TN_NONE}, {out}, 0, {}, out);
    const tn_region body = b.region(f, "body");
    const tn_value i = b.input("i", {3}, TN_FLOAT32, body), j = b.input("j", {3}, TN_FLOAT32, body);
    (void)b.input("bias", {3}, TN_FLOAT32, body);
    const tn_node add = b.node("Add", {i, j}, {inner_name}, body);
    const tn_node mul = b.node("Mul", {b.result(add), b.constant("k", {factor})}, {"m"}, body);
    const tn_node again = b.node("Mul", {b.result(mul), big}, {"z"}, body);
    b.outputs({b.result(again)}, body);
    return b.result(f);
  };
  const tn_value a = fused(x, w1, "a", 2, "inner1");
  const tn_value c = fused(a, w2, "c", 2, "inner2");
  b.outputs({fused(c, w1, "y", 5, "inner3")});
  auto e = write(b.graph);
  INFO(e->said);
  REQUIRE(e->status == TN_OK);
  REQUIRE(e->model.functions.size() == 2);
  CHECK(e->model.functions[0]->domain == "tenon");
  CHECK(e->model.ir_version == 8);
  CHECK(opset_of(*e) == 15);  // the first with an IR version that has functions
  CHECK(e->model.opsets.at("tenon") == 1);
  const auto& nodes = e->model.graph->block.nodes;
  REQUIRE(nodes.size() == 3);
  CHECK(nodes[0].op_type == nodes[1].op_type);
  CHECK(nodes[0].op_type != nodes[2].op_type);
  CHECK(e->model.graph->block.inputs(nodes[0]).copy() == std::vector<std::string_view>{"x", "w1", "", "big"});
  REQUIRE(e->again.nodes.size() == 9);  // inlined again
  CHECK(e->again.op(2) == "Mul");
  CHECK(e->again.elements<float>(e->again.nodes[1].inputs[1]) == std::vector<float>{2});
}

TEST_CASE("a fused node without a body is refused by name, an ONNX one is written as it is") {
  Built b;
  b.outputs({b.result(b.node("tenon::FusedConv", {b.input("x", {3})}, {"y"}, 0, {}, "f"))});
  CHECK_THAT(write(b.graph)->said, Contains("node f") && Contains("tenon::FusedConv") && Contains("body"));

  Built g;
  const tn_value x = g.input("x", {3});
  const tn_node swish = g.node("Swish", {x}, {"y"}, 0, {}, "s");
  const tn_region body = g.region(swish, "body");
  const tn_value i = g.input("i", {3}, TN_FLOAT32, body);
  g.outputs({g.result(g.node("Mul", {i, i}, {"z"}, body))}, body);
  g.outputs({g.result(swish)});
  auto plain = write(g.graph);
  CHECK(opset_of(*plain) == 24);
  CHECK(plain->model.functions.empty());
  auto lower = write(g.graph, 17);  // an older opset gets the body
  INFO(lower->said);
  REQUIRE(lower->status == TN_OK);
  CHECK(lower->model.functions.size() == 1);
  CHECK(write(g.graph, 26)->model.functions.size() == 1);  // and one where runtimes lack the operator
}

TEST_CASE("a branch that hands on a sequence asks for the opset whose Identity takes one") {
  Built b;
  const tn_value s = b.input("s", {3}), cond = b.input("cond", {}, TN_BOOL);
  b.graph.values[s].type.kind = TN_KIND_SEQUENCE;
  const tn_node n = b.node("If", {cond}, {"y"});
  b.graph.values[b.result(n)].type.kind = TN_KIND_SEQUENCE;
  for (const char* name : {"then_branch", "else_branch"}) b.outputs({s}, b.region(n, name));
  b.outputs({b.result(n)});
  CHECK(opset_of(*write(b.graph)) == 14);
  CHECK_THAT(write(b.graph, 13)->said, Contains("needs opset 14"));
}

TEST_CASE("subgraphs keep what they read from outside, in the graph and in functions") {
  Built b;
  const tn_value x = b.input("x", {3}), cond = b.input("cond", {}, TN_BOOL),
                 w = b.constant("w", std::vector<float>(40, 1));
  const auto branch = [&](tn_node owner, const char* name, tn_value read, bool compute) {
    const tn_region r = b.region(owner, name);
    b.outputs({compute ? b.result(b.node("Add", {read, w}, {"t"}, r)) : read}, r);
  };
  const tn_node plain = b.node("If", {cond}, {"p"});
  branch(plain, "then_branch", x, true);
  branch(plain, "else_branch", x, false);  // a branch that hands on an outer value needs a node
  const tn_node f = b.node("tenon::FusedConv", {b.result(plain)}, {"y"});
  const tn_region body = b.region(f, "body");
  const tn_value i = b.input("i", {3}, TN_FLOAT32, body);
  const tn_node inner = b.node("If", {cond}, {"q"}, body);
  branch(inner, "then_branch", i, true);
  branch(inner, "else_branch", i, false);
  b.outputs({b.result(inner)}, body);
  b.outputs({b.result(f)});
  auto e = write(b.graph);
  INFO(e->said);
  REQUIRE(e->status == TN_OK);
  REQUIRE(e->model.functions.size() == 1);
  CHECK(e->model.functions[0]->inputs.size() == 3);  // i, and what the body reads from outside: cond and w
  CHECK(e->again.regions.size() == 5);
  std::string ops;
  for (size_t k = 0; k < e->again.nodes.size(); ++k) ops += e->again.op(k) + " ";
  CHECK(ops == "If Add Identity If Add Identity ");
}

TEST_CASE("weights go to their own file on demand; nothing is lost") {
  Built b;
  const tn_value x = b.input("x", {300});
  std::vector<float> numbers(300);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const tn_node a = b.node("Add", {x, b.constant("w", numbers)}, {"a"});
  b.outputs({b.result(b.node("Add", {b.result(a), b.constant("small", {1})}, {"y"}))});
  auto e = write(b.graph, 0, 1);
  INFO(e->said);
  REQUIRE(e->status == TN_OK);
  CHECK(e->bytes.size() < 1000);
  CHECK(e->bytes.find("m.onnx.data") != std::string::npos);
  CHECK(e->again.elements<float>(e->again.by_name("w")) == numbers);
  CHECK(e->again.elements<float>(e->again.by_name("small")) == std::vector<float>{1});
}

TEST_CASE("defaults of inputs, attributes of every kind, absent operands") {
  Built b;
  const tn_value x = b.input("x", {3});
  b.graph.values[x].fallback = b.constant("x.default", {7, 8, 9});
  const int64_t ints[] = {-1, 5};
  const double floats[] = {0.5, 2};
  const tn_str strings[] = {sdk::str("a"), sdk::str("")};
  const float element = 3;
  const tn_tensor tensor{TN_FLOAT32, 0, nullptr, const_cast<float*>(&element), 4};
  std::vector<tn_attr> attrs(7);
  const char* names[] = {"i", "f", "s", "is", "fs", "ss", "t"};
  for (uint32_t k = 0; k < 7; ++k) attrs[k].name = symbol_of(names[k]), attrs[k].kind = k + 1;
  attrs[0].u.i = -7;
  attrs[1].u.f = 1.5;
  attrs[2].u.s = sdk::str("text");
  attrs[3].u.ints = ints, attrs[3].count = 2;
  attrs[4].u.floats = floats, attrs[4].count = 2;
  attrs[5].u.strings = strings, attrs[5].count = 2;
  attrs[6].u.tensor = &tensor;
  b.graph.opsets["com.acme"] = 4;
  b.outputs({b.result(b.node("com.acme::Thing", {TN_NONE, x, TN_NONE}, {"y"}, 0, attrs))});
  auto e = write(b.graph);
  INFO(e->said);
  REQUIRE(e->status == TN_OK);
  const FakeNode& n = e->again.nodes.at(0);
  CHECK(e->again.op(0) == "com.acme::Thing");
  CHECK(n.version == 4);
  REQUIRE(n.inputs.size() == 2);
  CHECK(n.inputs[0] == TN_NONE);
  CHECK(n.int_attr("i") == -7);
  CHECK(n.attr("f")->u.f == 1.5);
  CHECK(sdk::view(n.attr("s")->u.s) == "text");
  CHECK(n.attr("is")->u.ints[1] == 5);
  CHECK(n.attr("fs")->u.floats[0] == 0.5);
  CHECK(n.attr("ss")->count == 2);
  CHECK(*static_cast<const float*>(n.attr("t")->u.tensor->data) == 3);
  CHECK(e->again.elements<float>(e->again.values[n.inputs[1]].fallback) == std::vector<float>{7, 8, 9});
}
