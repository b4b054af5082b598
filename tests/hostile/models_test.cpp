// Models that are damaged or that contradict themselves: each is refused, with the place and what is wrong
// there.
#include <catch2/catch.hpp>
#include <random>

#include "messages.hpp"
#include "offer.hpp"

using namespace tenon::hostile;
using Catch::Matchers::Contains;

namespace {

struct Fault {
  const char* what;
  std::string model;
  std::vector<std::string> said;
};

void check_all(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    const Outcome outcome = offer(fault.model);
    INFO(fault.what << ": " << outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK(outcome.exit_code == 2);
    for (const std::string& text : fault.said) CHECK_THAT(outcome.said, Contains(text));
  }
}

std::string good_model() {
  return of_nodes(
      {node("Add", {"x", "w"}, {"t"}, {}, "sum"), node("Softmax", {"t"}, {"y"}, {int_attribute("axis", 0)})},
      {raw_tensor("w", 1, {2}, floats({1, 2}))});
}

}  // namespace

TEST_CASE("the model that the damage is done to runs") {
  const Outcome outcome = offer(good_model());
  INFO(outcome.said);
  CHECK(outcome.ran);
}

TEST_CASE("cut short at every byte") {
  const std::string whole = good_model();
  int refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    const Outcome outcome = offer(whole.substr(0, size));
    INFO(size << " of " << whole.size() << " bytes: " << outcome.said);
    if (outcome.ran) continue;  // what is cut off may have said nothing of weight
    ++refused;
    CHECK_FALSE(outcome.said.empty());
  }
  CHECK(refused + 16 > static_cast<int>(whole.size()));
}

TEST_CASE("bits flipped anywhere end in a message or a run") {
  const std::string whole = good_model();
  std::mt19937 random(7);
  for (int i = 0; i < 400; ++i) {
    std::string damaged = whole;
    for (uint32_t flips = 1 + random() % 3; flips; --flips)
      damaged[random() % damaged.size()] ^= static_cast<char>(1u << random() % 8);
    const Outcome outcome = offer(damaged);
    if (!outcome.ran) CHECK_FALSE(outcome.said.empty());
  }
}

TEST_CASE("graphs that are none") {
  const std::string relu = node("Relu", {"x"}, {"y"});
  const auto with = [](GraphParts parts) { return model(graph(parts)); };
  check_all({
      {"cycle",
       of_nodes({node("Add", {"x", "b"}, {"a"}, {}, "n1"), node("Relu", {"a"}, {"b"}, {}, "n2"),
                 node("Relu", {"b"}, {"y"})}),
       {"cycle", "n1", "n2"}},
      {"a node that reads itself", of_nodes({node("Relu", {"y"}, {"y"}, {}, "self")}), {"cycle", "self"}},
      {"a branch that reads the If around it",
       with(
           {{node("If", {"c"}, {"y"},
                  {graph_attribute("then_branch",
                                   graph({{node("Relu", {"y"}, {"o"})}, {}, {}, {}, {typed("o", 1)}, {}})),
                   graph_attribute("else_branch",
                                   graph({{node("Relu", {"y"}, {"o"})}, {}, {}, {}, {typed("o", 1)}, {}}))})},
            {},
            {},
            {value_info("c", 9, {})},
            {y},
            {}}),
       {"cycle"}},
      {"missing producer",
       of_nodes({node("Add", {"x", "gone"}, {"y"}, {}, "n")}),
       {"n", "'gone'", "nothing defines"}},
      {"missing output", of_nodes({node("Relu", {"x"}, {"z"})}), {"'y'", "no node"}},
      {"two producers",
       of_nodes({node("Relu", {"x"}, {"y"}), node("Neg", {"x"}, {"y"}, {}, "n2")}),
       {"n2", "SSA"}},
      {"a node that writes an input", of_nodes({node("Relu", {"x"}, {"x"}, {}, "n")}), {"n", "SSA"}},
      {"input twice", with({{relu}, {}, {}, {x2, x2}, {y}, {}}), {"'x'", "twice"}},
      {"initializer twice", of_nodes({relu}, {shape("w", {1}), shape("w", {1})}), {"'w'", "unique"}},
      {"initializer named as a result", of_nodes({relu}, {raw_tensor("y", 1, {2}, floats({1, 2}))}), {"'y'"}},
      {"no outputs", with({{relu}, {}, {}, {x2}, {}, {}}), {"no outputs"}},
      {"a node without outputs",
       of_nodes({relu, node("Relu", {"x"}, {}, {}, "idle")}),
       {"idle", "no outputs"}},
      {"a node with omitted outputs only",
       of_nodes({relu, node("Relu", {"x"}, {""}, {}, "idle")}),
       {"idle", "no outputs"}},
      {"attribute twice",
       of_nodes({node("Softmax", {"x"}, {"y"}, {int_attribute("axis", 0), int_attribute("axis", -1)}, "n")}),
       {"n", "'axis'", "twice"}},
      {"unknown attribute",
       of_nodes({node("Softmax", {"x"}, {"y"}, {int_attribute("axes", 0)}, "n")}),
       {"n", "'axes'", "it has axis"}},
      {"attribute of another type",
       of_nodes({node("Softmax", {"x"}, {"y"}, {text_attribute("axis", "0")}, "n")}),
       {"n", "'axis'", "an int"}},
      {"too many operands", of_nodes({node("Relu", {"x", "x"}, {"y"}, {}, "n")}), {"n", "2 operands"}},
      {"too few operands", of_nodes({node("Add", {"x"}, {"y"}, {}, "n")}), {"n", "is missing"}},
      {"too many results", of_nodes({node("Relu", {"x"}, {"y", "z"}, {}, "n")}), {"n", "2 results"}},
      {"unknown operator", of_nodes({node("Rleu", {"x"}, {"y"}, {}, "n")}), {"Rleu", "Relu"}},
      {"output of another element type",
       with({{relu}, {}, {}, {x2}, {typed("y", 7)}, {}}),
       {"'y'", "int64", "float32", "Cast"}},
      {"input that is an output of another type",
       with({{}, {}, {}, {x2}, {typed("x", 7)}, {}}),
       {"'x'", "int64"}},
      {"two element types",
       with({{node("Add", {"x", "i"}, {"y"}, {}, "n")}, {}, {}, {x2, value_info("i", 7, {2})}, {y}, {}}),
       {"n", "int64", "float32"}},
      {"shapes that do not fit",
       with({{node("Add", {"x", "i"}, {"y"}, {}, "n")}, {}, {}, {x2, value_info("i", 1, {3})}, {y}, {}}),
       {"n", "broadcast"}},
      {"opset of the future", of_nodes({relu}, {}, 1000), {"opset 1000", "1 to 28"}},
      {"opset 0", of_nodes({relu}, {}, 0), {"version 0"}},
      {"negative opset", of_nodes({relu}, {}, -5), {"version -5"}},
      {"two graphs", good_model() + good_model(), {"two graphs"}},
      {"nothing", "", {"empty"}},
      {"text", "this is no model at all, but a text of some length", {"model.onnx"}},
      {"zeros", std::string(4096, '\0'), {"model.onnx"}},
  });
}

TEST_CASE("an attribute belongs to the version of the operator that the model uses") {
  const auto of_opset = [](int64_t opset, const char* op, const std::string& attribute,
                           tenon::onnx::testing::Names operands = {"x"}) {
    return model(graph({{node(op, operands, {"y"}, {attribute}, "n")},
                        {raw_tensor("w", 1, {2}, floats({1, 2}))},
                        {},
                        {value_info("x", 1, {1, 2})},
                        {value_info("y", 1, {})},
                        {}}),
                 opset);
  };
  const tenon::onnx::testing::Names normalised{"x", "w", "w", "w", "w"};
  check_all({
      {"spelt otherwise",
       of_opset(13, "ReduceMean", ints_attribute("Axes", {1})),
       {"node n", "'Axes', which ReduceMean of opset 13 does not have; it has keepdims, axes: correct"}},
      {"no longer there",
       of_opset(18, "ReduceMean", ints_attribute("axes", {1})),
       {"'axes', which ReduceMean of opset 18 does not have"}},
      {"not there since a version before today's",
       of_opset(8, "BatchNormalization", int_attribute("is_test", 1), normalised),
       {"'is_test', which BatchNormalization of opset 8 does not have"}},
      {"never there",
       of_opset(6, "Relu", int_attribute("alpha", 1)),
       {"'alpha', which Relu of opset 6 does not have; it has none"}},
  });
  for (const std::string& good : {
           of_opset(17, "ReduceMean", ints_attribute("axes", {1})),
           of_opset(8, "BatchNormalization", int_attribute("spatial", 1), normalised),
           of_opset(6, "Dropout", int_attribute("is_test", 1)),
           of_opset(1, "Relu", ints_attribute("consumed_inputs", {0})),
       }) {
    const Outcome outcome = offer(good);
    INFO(outcome.said);
    CHECK(outcome.ran);
  }
}

TEST_CASE("tensors that are not what they say") {
  const auto add = [](const std::string& w) { return of_nodes({node("Add", {"x", "w"}, {"y"})}, {w}); };
  const auto typed_data = [](int32_t type, uint32_t field, std::vector<int64_t> values,
                             std::vector<int64_t> dims) {
    std::string out;
    protozero::pbf_writer w(out);
    w.add_packed_int64(tenon::onnx::tensor_field::dims, dims.begin(), dims.end());
    w.add_int32(tenon::onnx::tensor_field::data_type, type);
    w.add_string(tenon::onnx::tensor_field::name, "w");
    w.add_packed_int64(field, values.begin(), values.end());
    return out;
  };
  const uint32_t int32_data = tenon::onnx::tensor_field::int32_data;
  check_all({
      {"shorter", add(raw_tensor("w", 1, {2}, std::string(7, '\0'))), {"'w'", "7 bytes", "expected 8"}},
      {"longer", add(raw_tensor("w", 1, {2}, std::string(9, '\0'))), {"'w'", "9 bytes", "expected 8"}},
      {"empty", add(raw_tensor("w", 1, {2}, "")), {"'w'", "expected"}},
      {"more dims", add(raw_tensor("w", 1, {2, 1 << 20}, std::string(8, '\0'))), {"'w'", "8 bytes"}},
      {"negative dim", add(raw_tensor("w", 1, {-2}, std::string(8, '\0'))), {"'w'", "-2", "negative"}},
      {"overflowing dims",
       add(raw_tensor("w", 1, {INT64_MAX, INT64_MAX}, std::string(8, '\0'))),
       {"'w'", "too large"}},
      {"bits that overflow",
       add(raw_tensor("w", 11, {INT64_MAX / 4}, std::string(8, '\0'))),
       {"'w'", "too large"}},
      {"65 dimensions",
       add(raw_tensor("w", 1, std::vector<int64_t>(65, 1), std::string(4, '\0'))),
       {"'w'", "64"}},
      {"unknown type", add(raw_tensor("w", 99, {2}, std::string(8, '\0'))), {"'w'", "number 99"}},
      {"no type", add(raw_tensor("w", 0, {2}, std::string(8, '\0'))), {"'w'", "number 0"}},
      {"strings as raw data", add(raw_tensor("w", 8, {1}, std::string(8, '\0'))), {"'w'", "string_data"}},
      {"int8 of 300", add(typed_data(3, int32_data, {1, 300}, {2})), {"'w'", "300", "-128 to 127"}},
      {"bool of 2", add(typed_data(9, int32_data, {1, 2}, {2})), {"'w'", "2", "0 to 1"}},
      {"int4 in too many entries", add(typed_data(22, int32_data, {1, 2, 3}, {2})), {"'w'", "3 elements"}},
      {"a field of another type", add(typed_data(1, int32_data, {1, 2}, {2})), {"'w'", "float_data"}},
      {"nameless", add(raw_tensor("", 1, {2}, std::string(8, '\0'))), {"no name"}},
  });
}

TEST_CASE("nesting without end") {
  const auto nested = [](int depth) {
    std::string g = graph({{node("Relu", {"x"}, {"o"})}, {}, {}, {}, {typed("o", 1)}, {}});
    for (int i = 0; i < depth; ++i)
      g = graph(
          {{node("If", {"c"}, {"o"},
                 {graph_attribute("then_branch", g),
                  graph_attribute("else_branch",
                                  graph({{node("Neg", {"x"}, {"o"})}, {}, {}, {}, {typed("o", 1)}, {}}))})},
           {},
           {},
           {},
           {typed("o", 1)},
           {}});
    return model(graph(
        {{node("If", {"c"}, {"y"}, {graph_attribute("then_branch", g), graph_attribute("else_branch", g)})},
         {},
         {},
         {x2, value_info("c", 9, {})},
         {y},
         {}}));
  };
  const Outcome shallow = offer(nested(20));
  INFO(shallow.said);
  CHECK(shallow.ran);
  check_all({{"subgraphs", nested(70), {"nested more than 64 deep"}}});
  std::string type = message({{tenon::onnx::type_field::tensor, std::string("\x08\x01")}});
  for (int i = 0; i < 5000; ++i)
    type = message(
        {{tenon::onnx::type_field::sequence, message({{tenon::onnx::nested_type_field::elem_type, type}})}});
  std::string info;
  protozero::pbf_writer w(info);
  w.add_string(tenon::onnx::value_info_field::name, "x");
  w.add_message(tenon::onnx::value_info_field::type, type);
  check_all({{"types",
              model(graph({{node("Relu", {"x"}, {"y"})}, {}, {}, {info}, {y}, {}})),
              {"'x'", "sequence of sequences"}}});
}

TEST_CASE("loops within loops take no exponential time") {
  std::string body;
  for (int depth = 0; depth < 24; ++depth) {
    const std::string n = std::to_string(depth), a = "a" + n, r = "r" + n, i = "i" + n, c = "c" + n,
                      co = "co" + n;
    const std::string step = depth == 0 ? node("Concat", {a, a}, {r}, {int_attribute("axis", 0)})
                                        : node("Loop", {"one", "", a}, {r}, {graph_attribute("body", body)});
    body = graph({{step, node("Identity", {c}, {co})},
                  {},
                  {},
                  {value_info(i, 7, {}), value_info(c, 9, {}), typed(a, 1)},
                  {value_info(co, 9, {}), typed(r, 1)},
                  {}});
  }
  const Outcome outcome = offer(
      of_nodes({node("Loop", {"one", "", "x"}, {"y"}, {graph_attribute("body", body)})}, {scalar("one", 1)}));
  INFO(outcome.said);
  CHECK(outcome.ran);
}

TEST_CASE("names are bytes: odd ones run, and none reaches the terminal or cuts a message") {
  const std::string odd = std::string("a\0b", 3) + "\x1b[31m/\n\t\"\\ \xc3\xa9";
  const auto named = [&](std::string_view name) {
    return model(graph({{node("Relu", {"x"}, {name}), node("Neg", {name}, {"y"})}, {}, {}, {x2}, {y}, {}}));
  };
  for (const std::string& name :
       {std::string("a/b:0"), std::string(" "), std::string("\n"), odd, std::string(5000, 'n')}) {
    const Outcome outcome = offer(named(name));
    INFO(outcome.said);
    CHECK(outcome.ran);
  }
  check_all({{"no UTF-8", named("\xff\xfe"), {"UTF-8"}}});
}
