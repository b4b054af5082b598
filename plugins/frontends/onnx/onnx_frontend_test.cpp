#include "onnx_frontend.hpp"

#include <catch2/catch.hpp>

#include "fake_host.hpp"
#include "test_models.hpp"

using namespace tenon;
using namespace tenon::onnx;
using namespace tenon::onnx::testing;

namespace {

struct Loaded {
  FakeGraph graph;
  tn_status status = TN_OK;
  std::string said;
};
std::unique_ptr<Loaded> load_file(const std::string& path) {
  auto result = std::make_unique<Loaded>();
  sdk::Services services(fake_host());
  sdk::DiagBuffer said;
  result->status = frontend_record()->load(&services, fake_host(), sdk::str(path), result->graph.handle(),
                                           result->graph.edit(), said.raw());
  result->said = said.text();
  return result;
}
std::unique_ptr<Loaded> load(const std::string& bytes) {
  TemporaryFolder folder;
  return load_file(folder.write("m.onnx", bytes));
}
using Catch::Matchers::Contains;

const std::string x3 = value_info("x", 1, {-1, 3}), y3 = value_info("y", 1, {-1, 3});

}  // namespace

TEST_CASE("a small graph: inputs, types, symbols, attributes, versions, metadata") {
  auto m = load(model(graph({{node("Relu", {"x"}, {"a"}, {}, "r"),
                              node("Softmax", {"a"}, {"y"}, {int_attribute("axis", -1)})},
                             {},
                             {},
                             {x3},
                             {y3},
                             {}}),
                      13));
  INFO(m->said);
  REQUIRE(m->status == TN_OK);
  REQUIRE(m->graph.nodes.size() == 2);
  CHECK(m->graph.op(0) == "Relu");
  CHECK(m->graph.nodes[0].name == "r");
  CHECK(m->graph.nodes[1].version == 13);
  CHECK(m->graph.nodes[1].int_attr("axis") == -1);
  const auto& x = m->graph.values[m->graph.regions[0].inputs.at(0)];
  CHECK(x.type.dtype == TN_FLOAT32);
  REQUIRE(x.dims.size() == 2);
  CHECK(m->graph.dim_names.at(static_cast<size_t>(-2 - x.dims[0])) == "N");
  CHECK(x.dims[1] == 3);
  CHECK(m->graph.regions[0].outputs.at(0) == m->graph.by_name("y"));
  CHECK(m->graph.opsets[""] == 13);
  CHECK(m->graph.metadata["producer_name"] == "test");
}

TEST_CASE(
    "initializers: raw data stays in the file, typed data and small ones are copied, sizes are checked") {
  const std::vector<float> big(600, 2.5f);
  auto m = load(model(graph(
      {{node("Add", {"x", "w"}, {"y"})}, {raw_tensor("w", 1, {200, 3}, floats(big))}, {}, {x3}, {y3}, {}})));
  REQUIRE(m->status == TN_OK);
  CHECK(m->graph.values[m->graph.by_name("w")].sliced);

  auto short_one = load(model(graph(
      {{node("Add", {"x", "w"}, {"y"})}, {raw_tensor("w", 1, {1, 3}, floats({1, 2}))}, {}, {x3}, {y3}, {}})));
  CHECK(short_one->status == TN_ERR_INVALID);
  CHECK_THAT(short_one->said, Contains("'w'") && Contains("8 bytes") && Contains("expected 12 bytes"));
  auto negative = load(model(graph({{}, {raw_tensor("w", 1, {-1, 3}, "")}, {}, {x3}, {x3}, {}})));
  CHECK_THAT(negative->said, Contains("negative"));
  auto huge = load(
      model(graph({{}, {raw_tensor("w", 1, {int64_t{1} << 32, int64_t{1} << 32}, "")}, {}, {x3}, {x3}, {}})));
  CHECK(huge->status == TN_ERR_LIMIT);
  CHECK_THAT(huge->said, Contains("too large"));
}

TEST_CASE("typed fields of every kind, packed or not") {
  const auto typed = [](int32_t type, const std::vector<int64_t>& dims, auto&& fill) {
    std::string out;
    protozero::pbf_writer w(out);
    for (int64_t d : dims) w.add_int64(tensor_field::dims, d);  // not packed
    w.add_int32(tensor_field::data_type, type);
    w.add_string(tensor_field::name, "w");
    fill(w);
    return model(graph({{node("Foo", {"w"}, {"y"})}, {out}, {}, {x3}, {y3}, {}}));
  };
  const auto ints = [](std::vector<int64_t> v, uint32_t field) {
    return [v, field](protozero::pbf_writer& w) { w.add_packed_int64(field, v.begin(), v.end()); };
  };
  const auto value = [](Loaded& l) {
    INFO(l.said);
    REQUIRE(l.status == TN_OK);
    return l.graph.by_name("w");
  };
  {
    auto m = load(typed(1, {3}, [](auto& w) {
      for (float f : {1.f, 2.f, 3.f}) w.add_float(tensor_field::float_data, f);
    }));
    CHECK(m->graph.elements<float>(value(*m)) == std::vector<float>{1, 2, 3});
  }
  {
    auto m = load(typed(3, {3}, ints({-128, 0, 127}, tensor_field::int32_data)));
    CHECK(m->graph.elements<int8_t>(value(*m)) == std::vector<int8_t>{-128, 0, 127});
  }
  {
    auto m = load(typed(3, {1}, ints({128}, tensor_field::int32_data)));
    CHECK_THAT(m->said, Contains("element 0 is 128") && Contains("-128 to 127"));
  }
  {
    auto m = load(typed(9, {2}, ints({0, 2}, tensor_field::int32_data)));
    CHECK_THAT(m->said, Contains("0 to 1"));
  }
  {
    auto m = load(typed(22, {3}, ints({0x21, 0x03}, tensor_field::int32_data)));  // int4, odd count
    CHECK(m->graph.elements<uint8_t>(value(*m)) == std::vector<uint8_t>{0x21, 0x03});
  }
  {
    auto m = load(typed(10, {2}, ints({0x3c00, 0xbc00}, tensor_field::int32_data)));
    CHECK(m->graph.elements<uint16_t>(value(*m)) == std::vector<uint16_t>{0x3c00, 0xbc00});
  }
  {
    auto m = load(typed(13, {1}, ints({-1}, tensor_field::uint64_data)));
    CHECK(m->graph.elements<uint64_t>(value(*m)) == std::vector<uint64_t>{UINT64_MAX});
  }
  {
    auto m = load(typed(8, {2}, [](auto& w) {
      w.add_bytes(tensor_field::string_data, "ab");
      w.add_bytes(tensor_field::string_data, "");
    }));
    CHECK(m->graph.values[value(*m)].texts == std::vector<std::string>{"ab", ""});
  }
  {
    auto m = load(typed(7, {3}, ints({1, 2}, tensor_field::int64_data)));
    CHECK_THAT(m->said, Contains("found 2 elements in int64_data") && Contains("expected 3"));
  }
  CHECK_THAT(load(typed(27, {1}, ints({1}, tensor_field::int32_data)))->said, Contains("number 27"));
}

TEST_CASE("external data stays in the model's folder and inside its file") {
  const auto external = [](std::string_view location, std::string_view offset, std::string_view length,
                           int64_t n) {
    std::string out;
    protozero::pbf_writer w(out);
    w.add_int64(tensor_field::dims, n);
    w.add_int32(tensor_field::data_type, 1);
    w.add_string(tensor_field::name, "w");
    w.add_int32(tensor_field::data_location, 1);
    for (auto [k, v] : {std::pair<std::string_view, std::string_view>{"location", location},
                        {"offset", offset},
                        {"length", length}}) {
      std::string e;
      protozero::pbf_writer ew(e);
      ew.add_string(entry_field::key, k.data(), k.size());
      ew.add_string(entry_field::value, v.data(), v.size());
      if (!v.empty()) w.add_message(tensor_field::external_data, e);
    }
    return model(graph({{node("Foo", {"w"}, {"y"})}, {out}, {}, {x3}, {y3}, {}}));
  };
  TemporaryFolder folder;
  std::vector<float> numbers(512);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  folder.write("w.bin", floats(numbers));
  auto m = load_file(folder.write("m.onnx", external("w.bin", "16", "2000", 500)));
  INFO(m->said);
  REQUIRE(m->status == TN_OK);
  CHECK(m->graph.values[m->graph.by_name("w")].sliced);
  CHECK(m->graph.elements<float>(m->graph.by_name("w"))[0] == 4.f);
  CHECK_THAT(load_file(folder.write("m.onnx", external("w.bin", "64", "2000", 500)))->said,
             Contains("external") && Contains("2048 bytes"));
  CHECK_THAT(load_file(folder.write("m.onnx", external("w.bin", "18446744073709551615", "2000", 500)))->said,
             Contains("external"));
  CHECK_THAT(load_file(folder.write("m.onnx", external("w.bin", "0", "1996", 500)))->said,
             Contains("expected 2000 bytes"));
  CHECK_THAT(load_file(folder.write("m.onnx", external("w.bin", "x", "", 500)))->said, Contains("'x'"));
  CHECK_THAT(load_file(folder.write("m.onnx", external("../w.bin", "", "", 500)))->said,
             Contains("outside the model's folder"));
  CHECK_THAT(load_file(folder.write("m.onnx", external("none.bin", "", "", 500)))->said,
             Contains("none.bin"));
}

TEST_CASE("initializers that are inputs too: defaults since IR 4, constants before") {
  const auto bytes = [](int64_t ir) {
    return model(graph({{node("Add", {"x", "w"}, {"y"})},
                        {raw_tensor("w", 1, {3}, floats({1, 2, 3}))},
                        {},
                        {x3, value_info("w", 1, {3})},
                        {y3},
                        {}}),
                 13, ir);
  };
  auto now = load(bytes(4));
  REQUIRE(now->graph.regions[0].inputs.size() == 2);
  const tn_value w = now->graph.by_name("w");
  CHECK(now->graph.values[w].kind == TN_VALUE_REGION_INPUT);
  CHECK(now->graph.elements<float>(now->graph.values[w].fallback) == std::vector<float>{1, 2, 3});
  auto old = load(bytes(3));
  REQUIRE(old->graph.regions[0].inputs.size() == 1);
  CHECK(old->graph.values[old->graph.by_name("w")].kind == TN_VALUE_CONSTANT);
}

TEST_CASE("Constant nodes become constants") {
  std::string list;
  {
    protozero::pbf_writer w(list);
    w.add_string(attribute_field::name, "value_ints");
    for (int64_t v : {3, 4}) w.add_int64(attribute_field::ints, v);
    w.add_int32(attribute_field::type, attribute_type::ints);
  }
  auto m = load(model(graph({{node("Constant", {}, {"c"},
                                   {message_attribute("value", attribute_field::t, attribute_type::tensor,
                                                      raw_tensor("", 1, {2}, floats({5, 6})))}),
                              node("Constant", {}, {"i"}, {int_attribute("value_int", 7)}),
                              node("Constant", {}, {"l"}, {list}), node("Foo", {"c", "i", "l"}, {"y"})},
                             {},
                             {},
                             {x3},
                             {y3},
                             {}})));
  INFO(m->said);
  REQUIRE(m->graph.nodes.size() == 1);
  CHECK(m->graph.elements<float>(m->graph.by_name("c")) == std::vector<float>{5, 6});
  CHECK(m->graph.elements<int64_t>(m->graph.by_name("i")) == std::vector<int64_t>{7});
  CHECK(m->graph.values[m->graph.by_name("i")].tensor.rank == 0);
  CHECK(m->graph.elements<int64_t>(m->graph.by_name("l")) == std::vector<int64_t>{3, 4});
  CHECK_THAT(load(model(graph({{node("Constant", {}, {"c"})}, {}, {}, {x3}, {x3}, {}})))->said,
             Contains("exactly one value"));
}

TEST_CASE("sparse initializers become dense, and their indices are checked") {
  const auto sparse = [](const std::vector<int64_t>& indices, const std::vector<int64_t>& index_dims) {
    std::string out;
    protozero::pbf_writer w(out);
    w.add_message(sparse_field::values, raw_tensor("w", 1, {2}, floats({7, 8})));
    w.add_message(sparse_field::indices, raw_tensor("i", 7, index_dims, int64s(indices)));
    for (int64_t d : {2, 3}) w.add_int64(sparse_field::dims, d);
    return model(graph({{node("Foo", {"w"}, {"y"})}, {}, {out}, {x3}, {y3}, {}}));
  };
  auto linear = load(sparse({1, 5}, {2}));
  CHECK(linear->graph.elements<float>(linear->graph.by_name("w")) == std::vector<float>{0, 7, 0, 0, 0, 8});
  auto coordinates = load(sparse({0, 2, 1, 0}, {2, 2}));
  CHECK(coordinates->graph.elements<float>(coordinates->graph.by_name("w")) ==
        std::vector<float>{0, 0, 7, 8, 0, 0});
  CHECK_THAT(load(sparse({0, 6}, {2}))->said, Contains("sparse index 6"));
  CHECK_THAT(load(sparse({0, 2, 2, 0}, {2, 2}))->said, Contains("out of range"));
  CHECK_THAT(load(sparse({-1, 2}, {2}))->said, Contains("out of range"));
  CHECK_THAT(load(sparse({1, 1}, {2}))->said, Contains("ascend"));
  CHECK_THAT(load(sparse({1}, {1}))->said, Contains("indices"));
}

TEST_CASE("names: undefined, written twice, absent, in any order, in a circle") {
  const auto nodes = [](std::vector<std::string> list, int64_t version = 17) {
    return load(model(graph({std::move(list), {}, {}, {x3}, {y3}, {}}), version));
  };
  CHECK_THAT(nodes({node("Add", {"x", "q"}, {"y"}, {}, "n1")})->said,
             Contains("n1") && Contains("'q', which nothing defines"));
  CHECK_THAT(
      nodes({node("Relu", {"x"}, {"t"}), node("Relu", {"x"}, {"t"}, {}, "n2"), node("Relu", {"t"}, {"y"})})
          ->said,
      Contains("n2") && Contains("SSA"));
  CHECK_THAT(nodes({node("Relu", {"x"}, {"x"})})->said, Contains("SSA"));
  CHECK_THAT(nodes({node("Relu", {"x"}, {"z"})})->said, Contains("'y' is made by no node"));

  auto absent = nodes({node("Foo", {"x", "", "x", ""}, {"", "y"})});
  REQUIRE(absent->status == TN_OK);
  CHECK(absent->graph.nodes[0].inputs.size() == 3);  // trailing absent operands say nothing
  CHECK(absent->graph.nodes[0].inputs[1] == TN_NONE);
  CHECK(absent->graph.nodes[0].outputs[0] == TN_NONE);

  auto unsorted = nodes({node("C", {"b"}, {"y"}), node("A", {"x"}, {"a"}), node("B", {"a"}, {"b"})});
  REQUIRE(unsorted->graph.nodes.size() == 3);
  CHECK(unsorted->graph.op(0) + unsorted->graph.op(1) + unsorted->graph.op(2) == "ABC");
  CHECK_THAT(nodes({node("Relu", {"x"}, {"t"}), node("A", {"q"}, {"p"}, {}, "n1"),
                    node("B", {"p"}, {"q"}, {}, "n2"), node("Relu", {"q"}, {"y"})})
                 ->said,
             Contains("cycle") && Contains("n1") && Contains("n2"));
  CHECK_THAT(nodes({node("A", {"y"}, {"y"})})->said, Contains("cycle"));
}

TEST_CASE("operator sets: missing imports and versions out of reach are named") {
  CHECK_THAT(
      load(model(graph({{node("Relu", {"x"}, {"y"}, {}, "n", "com.acme")}, {}, {}, {x3}, {y3}, {}})))->said,
      Contains("com.acme") && Contains("opset_import"));
  auto other = load(model(graph({{node("Relu", {"x"}, {"y"}, {}, "n", "com.acme")}, {}, {}, {x3}, {y3}, {}}),
                          17, 8, {}, {opset("com.acme", 3)}));
  CHECK(other->graph.op(0) == "com.acme::Relu");
  CHECK(other->graph.nodes[0].version == 3);
  CHECK_THAT(load(model(graph({{node("Relu", {"x"}, {"y"})}, {}, {}, {x3}, {y3}, {}}), 29))->said,
             Contains("opset 29") && Contains("1 to 28"));
  for (int64_t version : {1, 6, 28})
    CHECK(load(model(graph({{node("Relu", {"x"}, {"y"})}, {}, {}, {x3}, {y3}, {}}), version))->status ==
          TN_OK);
  auto alias = load(model(graph({{node("Relu", {"x"}, {"y"}, {}, {}, "ai.onnx")}, {}, {}, {x3}, {y3}, {}})));
  CHECK(alias->graph.op(0) == "Relu");
}

TEST_CASE("subgraphs become regions and see the names around them") {
  const std::string branch = graph({{node("Relu", {"late"}, {"t"}), node("Add", {"t", "x"}, {"o"})},
                                    {},
                                    {},
                                    {},
                                    {value_info("o", 1, {})},
                                    {}});
  auto m = load(model(
      graph({{node("If", {"c"}, {"y"},
                   {message_attribute("then_branch", attribute_field::g, attribute_type::graph, branch),
                    message_attribute("else_branch", attribute_field::g, attribute_type::graph, branch)},
                   "if"),
              node("Neg", {"x"}, {"late"})},
             {},
             {},
             {x3, value_info("c", 9, {})},
             {y3},
             {}})));
  INFO(m->said);
  REQUIRE(m->status == TN_OK);
  REQUIRE(m->graph.regions.size() == 3);
  CHECK(m->graph.op(0) == "Neg");  // sorted: the branches read its result
  CHECK(m->graph.regions[1].name == "then_branch");
  CHECK(m->graph.regions[2].nodes.size() == 2);
  const FakeNode& relu = m->graph.nodes[m->graph.regions[1].nodes[0]];
  CHECK(relu.inputs[0] == m->graph.by_name("late"));
  const std::string circular =
      graph({{node("Relu", {"y"}, {"o"})}, {}, {}, {}, {value_info("o", 1, {})}, {}});
  auto bad = load(model(graph(
      {{node("If", {"c"}, {"y"},
             {message_attribute("then_branch", attribute_field::g, attribute_type::graph, circular)}, "if")},
       {},
       {},
       {x3, value_info("c", 9, {})},
       {y3},
       {}})));
  CHECK_THAT(bad->said, Contains("cycle"));
}

TEST_CASE("local functions are inlined with their attributes, also inside branches") {
  const std::string inner = function(
      "Inner", {"a", "b"}, {"r"},
      {node("Elu", {"a"}, {"t"},
            {reference("alpha", "k", attribute_type::i), reference("beta", "missing", attribute_type::i)}),
       node("Add", {"t", "b"}, {"r"})},
      {"k", "missing"});
  const std::string outer = function(
      "Outer", {"p", "q"}, {"s"},
      {node("Inner", {"p", "q"}, {"s"}, {reference("k", "n", attribute_type::i)}, "call", "local")}, {"n"});
  auto m = load(model(
      graph({{node("Outer", {"x"}, {"y"}, {int_attribute("n", 5)}, "top", "local")}, {}, {}, {x3}, {y3}, {}}),
      18, 8, {inner, outer}));
  INFO(m->said);
  REQUIRE(m->graph.nodes.size() == 2);
  CHECK(m->graph.op(0) == "Elu");
  CHECK(m->graph.nodes[0].version == 17);  // the function's own import
  CHECK(m->graph.nodes[0].int_attr("alpha") == 5);
  CHECK(m->graph.nodes[0].attr("beta") == nullptr);
  CHECK(m->graph.nodes[1].inputs.size() == 1);  // the operand left out stays out
  CHECK(m->graph.values[m->graph.nodes[1].outputs[0]].name == "y");
  CHECK(m->graph.values[m->graph.nodes[0].outputs[0]].name == "top/call/t");
}

TEST_CASE("functions that call each other in a circle are refused, also from a branch") {
  const std::string a = function("A", {"p"}, {"r"}, {node("B", {"p"}, {"r"}, {}, {}, "local")});
  const std::string branch =
      graph({{node("A", {"p"}, {"o"}, {}, {}, "local")}, {}, {}, {}, {value_info("o", 1, {})}, {}});
  const std::string b =
      function("B", {"p"}, {"r"},
               {node("If", {"p"}, {"r"},
                     {message_attribute("then_branch", attribute_field::g, attribute_type::graph, branch)})});
  auto m = load(
      model(graph({{node("A", {"x"}, {"y"}, {}, "top", "local")}, {}, {}, {x3}, {y3}, {}}), 17, 8, {a, b}));
  CHECK(m->status == TN_ERR_INVALID);
  CHECK_THAT(m->said, Contains("A -> B -> A") && Contains("recurs"));
}

TEST_CASE("functions that multiply without end meet a limit") {
  std::vector<std::string> functions{function("F0", {"p"}, {"r"}, {node("Relu", {"p"}, {"r"})})};
  for (int i = 1; i < 40; ++i) {
    const std::string callee = "F" + std::to_string(i - 1), self = "F" + std::to_string(i);
    functions.push_back(
        function(self, {"p"}, {"r"},
                 {node(callee, {"p"}, {"m"}, {}, {}, "local"), node(callee, {"m"}, {"r"}, {}, {}, "local")}));
  }
  // Every function is empty but for its calls: no node is made before the limit is met.
  functions[0] = function("F0", {"p"}, {"p"}, {});
  auto m = load(
      model(graph({{node("F39", {"x"}, {"y"}, {}, {}, "local")}, {}, {}, {x3}, {y3}, {}}), 17, 8, functions));
  CHECK(m->status == TN_ERR_LIMIT);
  CHECK_THAT(m->said, Contains("250000 calls"));
}

TEST_CASE("types beyond tensors") {
  const auto typed = [](const std::string& type) {
    std::string info;
    protozero::pbf_writer w(info);
    w.add_string(value_info_field::name, "x");
    w.add_message(value_info_field::type, type);
    return load(model(graph({{node("Foo", {"x"}, {"y"})}, {}, {}, {info}, {y3}, {}})));
  };
  std::string tensor;
  protozero::pbf_writer(tensor).add_int32(tensor_type_field::elem_type, 1);
  const std::string of_tensor = message({{type_field::tensor, tensor}});
  const auto wrap = [](uint32_t kind, const std::string& inner) {
    return message({{kind, message({{nested_type_field::elem_type, inner}})}});
  };
  const auto kind = [&](const std::string& t) {
    auto m = typed(t);
    INFO(m->said);
    return m->graph.values.at(0).type.kind;
  };
  CHECK(kind(wrap(type_field::sequence, of_tensor)) == TN_KIND_SEQUENCE);
  CHECK(kind(wrap(type_field::optional, of_tensor)) == TN_KIND_OPTIONAL);
  CHECK(kind(wrap(type_field::optional, wrap(type_field::sequence, of_tensor))) == TN_KIND_OPTIONAL_SEQUENCE);
  CHECK_THAT(typed(wrap(type_field::sequence, wrap(type_field::sequence, of_tensor)))->said,
             Contains("sequence of sequences"));
  CHECK_THAT(typed(message({{type_field::map, ""}}))->said, Contains("a map"));
}

TEST_CASE("a chain of 200000 nodes is loaded without recursion") {
  GraphParts parts;
  std::string before = "x";
  for (int i = 0; i < 200000; ++i) {
    const std::string next = i == 199999 ? "y" : "v" + std::to_string(i);
    parts.nodes.push_back(node("Relu", {before}, {next}));
    before = next;
  }
  parts.inputs = {x3};
  parts.outputs = {y3};
  SECTION("in order") {}
  SECTION("backwards") { std::reverse(parts.nodes.begin(), parts.nodes.end()); }
  auto m = load(model(graph(parts)));
  CHECK(m->status == TN_OK);
  CHECK(m->graph.nodes.size() == 200000);
}

TEST_CASE("subgraphs nested without end are refused") {
  std::string g = graph({{node("Relu", {"x"}, {"o"})}, {}, {}, {}, {value_info("o", 1, {})}, {}});
  for (int i = 0; i < 100; ++i)
    g = graph({{node("If", {"c"}, {"o"},
                     {message_attribute("then_branch", attribute_field::g, attribute_type::graph, g)})},
               {},
               {},
               {},
               {value_info("o", 1, {})},
               {}});
  auto m = load(model(g));
  CHECK(m->status == TN_ERR_LIMIT);
  CHECK_THAT(m->said, Contains("nested"));
}

TEST_CASE("probe") {
  const auto p = [](const char* name, const std::string& bytes) {
    return frontend_record()->probe(nullptr, sdk::str(name), reinterpret_cast<const uint8_t*>(bytes.data()),
                                    bytes.size());
  };
  const std::string good = model(graph({{}, {}, {}, {x3}, {x3}, {}}));
  CHECK(p("m.onnx", good) > 90);
  CHECK(p("m.bin", good) > 0);
  CHECK(p("m.bin", "PK\x03\x04....") == 0);
  CHECK(p("m.onnx", "") > 0);
  CHECK_THAT(load("")->said, Contains("empty"));
  CHECK_THAT(load("not a model at all")->said, Contains("m.onnx"));
}

TEST_CASE("outputs: listed twice, of another type, of any shape") {
  const std::string relu = node("Relu", {"x"}, {"y"});
  const auto with = [&](std::vector<std::string> outputs, std::vector<std::string> nodes) {
    return load(model(graph({std::move(nodes), {}, {}, {x3}, std::move(outputs), {}})));
  };
  auto twice = with({y3, y3}, {relu});
  INFO(twice->said);
  CHECK(twice->status == TN_OK);
  CHECK(twice->graph.regions[0].outputs.size() == 2);
  // The element type is kept for inference to meet; shapes are hints that are often stale.
  auto hinted = with({value_info("y", 7, {9, 9})}, {relu});
  REQUIRE(hinted->status == TN_OK);
  const FakeValue& y = hinted->graph.values[hinted->graph.by_name("y")];
  CHECK(y.type.dtype == TN_INT64);
  CHECK(y.type.rank == -1);
  CHECK_THAT(with({value_info("x", 7, {3})}, {})->said, Contains("'x' as int64") && Contains("float32"));
  CHECK_THAT(with({}, {relu})->said, Contains("no outputs"));
  CHECK_THAT(with({y3}, {relu, node("Neg", {"x"}, {}, {}, "n")})->said,
             Contains("n") && Contains("no outputs"));
  CHECK_THAT(with({y3}, {relu, node("Neg", {"x"}, {""}, {}, "n")})->said, Contains("no outputs"));
  CHECK(with({y3}, {relu, node("Print", {"x"}, {}, {}, "n", "com.acme")})->said.find("no outputs") ==
        std::string::npos);
}

TEST_CASE("dimensions below zero are not known; models before IR 3 name no operator set") {
  auto m =
      load(model(graph({{node("Relu", {"x"}, {"y"})}, {}, {}, {value_info("x", 1, {-7, 2})}, {y3}, {}})));
  INFO(m->said);
  REQUIRE(m->status == TN_OK);
  const FakeValue& x = m->graph.values[m->graph.by_name("x")];
  CHECK(x.type.rank == 2);
  std::string old;
  protozero::pbf_writer w(old);
  w.add_int64(model_field::ir_version, 2);
  w.add_message(model_field::graph, graph({{node("Relu", {"x"}, {"y"})}, {}, {}, {x3}, {y3}, {}}));
  auto first = load(old);
  INFO(first->said);
  REQUIRE(first->status == TN_OK);
  CHECK(first->graph.nodes[0].version == 1);
}

TEST_CASE("dimensions of one name are one, but for names without a letter, which say that nothing is known") {
  for (const auto& [name, one] : std::vector<std::pair<std::string, bool>>{{"N", true},
                                                                           {"_", true},
                                                                           {"batch 2", true},
                                                                           {"\xe9\xab\x98", true},
                                                                           {"?", false},
                                                                           {"-1", false},
                                                                           {"*", false},
                                                                           {"1", false}}) {
    INFO("dimensions named " << name);
    auto m = load(
        model(graph({{node("Relu", {"x"}, {"y"})}, {}, {}, {value_info("x", 1, {-1, -1}, name)}, {y3}, {}})));
    INFO(m->said);
    REQUIRE(m->status == TN_OK);
    const FakeValue& x = m->graph.values[m->graph.by_name("x")];
    CHECK((x.dims[0] == x.dims[1]) == one);
  }
}

TEST_CASE("attributes are given once, inputs are listed once") {
  CHECK_THAT(
      load(model(graph({{node("Elu", {"x"}, {"y"}, {int_attribute("a", 1), int_attribute("a", 1)}, "n")},
                        {},
                        {},
                        {x3},
                        {y3},
                        {}})))
          ->said,
      Contains("n") && Contains("'a' is given twice"));
  CHECK_THAT(load(model(graph({{node("Elu", {"x"}, {"y"})}, {}, {}, {x3, x3}, {y3}, {}})))->said,
             Contains("'x'") && Contains("twice"));
}

TEST_CASE("sparse tensors of less than a byte an element") {
  std::string sparse;
  protozero::pbf_writer w(sparse);
  w.add_message(sparse_field::values,
                raw_tensor("w", 22, {3}, std::string("\x21\x0f", 2)));  // int4: 1, 2, -1
  w.add_message(sparse_field::indices, raw_tensor("i", 7, {3}, int64s({0, 3, 4})));
  w.add_int64(sparse_field::dims, 5);
  auto m = load(model(graph({{node("Foo", {"w"}, {"y"})}, {}, {sparse}, {x3}, {y3}, {}})));
  INFO(m->said);
  REQUIRE(m->status == TN_OK);
  CHECK(m->graph.elements<uint8_t>(m->graph.by_name("w")) == std::vector<uint8_t>{0x01, 0x20, 0x0f});
}

TEST_CASE("functions: overloads, default attributes, references handed on, imports of their own") {
  const auto typed_function = [](std::string_view name, std::string_view overload, const std::string& body,
                                 int64_t version, const std::string& preset = {}) {
    std::string out;
    protozero::pbf_writer w(out);
    w.add_string(function_field::name, name.data(), name.size());
    w.add_string(function_field::domain, "local");
    w.add_string(function_field::overload, overload.data(), overload.size());
    w.add_string(function_field::input, "p");
    w.add_string(function_field::output, "r");
    w.add_message(function_field::node, body);
    w.add_message(function_field::opset_import, opset("", version));
    if (!preset.empty()) w.add_message(function_field::attribute_proto, preset);
    return out;
  };
  const auto overloaded = [](const std::string& call, char which) {
    return call + std::string("\x42\x01", 2) + which;  // field 8: overload
  };
  const std::string inner =
      typed_function("Inner", "", node("Elu", {"p"}, {"r"}, {reference("alpha", "k", attribute_type::i)}), 15,
                     int_attribute("k", 3));
  const std::string outer = typed_function(
      "Outer", "", node("Inner", {"p"}, {"r"}, {reference("k", "n", attribute_type::i)}, {}, "local"), 17,
      int_attribute("n", 4));
  auto m = load(model(graph({{node("Inner", {"x"}, {"a"}, {}, {}, "local"),
                              node("Inner", {"a"}, {"b"}, {int_attribute("k", 9)}, {}, "local"),
                              node("Outer", {"b"}, {"c"}, {}, {}, "local"),
                              node("Outer", {"c"}, {"d"}, {int_attribute("n", 5)}, {}, "local"),
                              overloaded(node("F", {"d"}, {"e"}, {}, {}, "local"), 'a'),
                              overloaded(node("F", {"e"}, {"y"}, {}, {}, "local"), 'b')},
                             {},
                             {},
                             {x3},
                             {y3},
                             {}}),
                      17, 10,
                      {inner, outer, typed_function("F", "a", node("Relu", {"p"}, {"r"}), 17),
                       typed_function("F", "b", node("Neg", {"p"}, {"r"}), 6)}));
  INFO(m->said);
  REQUIRE(m->status == TN_OK);
  REQUIRE(m->graph.nodes.size() == 6);
  CHECK(m->graph.nodes[0].int_attr("alpha") == 3);
  CHECK(m->graph.nodes[0].version == 15);
  CHECK(m->graph.nodes[1].int_attr("alpha") == 9);
  CHECK(m->graph.nodes[2].int_attr("alpha") == 4);
  CHECK(m->graph.nodes[3].int_attr("alpha") == 5);
  CHECK(m->graph.op(4) == "Relu");
  CHECK(m->graph.op(5) == "Neg");
  CHECK(m->graph.nodes[5].version == 6);
}
