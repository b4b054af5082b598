// A kilobyte of file that asks for gigabytes: refused before anything is allocated, with the node that asks.
#include <catch2/catch.hpp>

#include "core/base/memory_budget.hpp"
#include "messages.hpp"
#include "offer.hpp"

using namespace tenon::hostile;
using Catch::Matchers::Contains;

namespace {

constexpr int64_t many = 10'000'000'000;  // elements

struct Promise {
  const char* asks;
  std::string model;
};

std::vector<Promise> promises() {
  const std::string far = shape("s", {many}), w = raw_tensor("w", 1, {1, 1, 1}, floats({1}));
  const auto loop = [](int64_t trips) {  // a tensor that doubles at each turn
    const std::string body = graph(
        {{node("Concat", {"a", "a"}, {"a2"}, {int_attribute("axis", 0)}), node("Identity", {"c"}, {"c2"})},
         {},
         {},
         {value_info("i", 7, {}), value_info("c", 9, {}), typed("a", 1)},
         {value_info("c2", 9, {}), typed("a2", 1)},
         {}});
    return of_nodes({node("Loop", {"n", "", "x"}, {"y"}, {graph_attribute("body", body)})},
                    {scalar("n", trips)});
  };
  const auto sparse = [](int64_t dims, int count) {
    GraphParts parts{{node("Relu", {"x"}, {"y"})}, {}, {}, {x2}, {y}, {}};
    for (int i = 0; i < count; ++i) {
      std::string one;
      protozero::pbf_writer out(one);
      out.add_message(tenon::onnx::sparse_field::values,
                      raw_tensor("w" + std::to_string(i), 1, {1}, floats({1})));
      out.add_message(tenon::onnx::sparse_field::indices, raw_tensor("i", 7, {1}, int64s({0})));
      out.add_int64(tenon::onnx::sparse_field::dims, dims);
      parts.sparse.push_back(one);
    }
    return model(graph(parts));
  };
  return {
      {"ConstantOfShape", of_nodes({node("ConstantOfShape", {"s"}, {"y"})}, {far})},
      {"ConstantOfShape",
       of_nodes({node("ConstantOfShape", {"s"}, {"t"}), node("Relu", {"t"}, {"y"})}, {far})},
      {"Expand", of_nodes({node("Expand", {"x", "s"}, {"y"})}, {shape("s", {many, 2})})},
      {"Tile", of_nodes({node("Tile", {"x", "s"}, {"y"})}, {far})},
      {"Range", model(graph({{node("Range", {"a", "b", "d"}, {"y"})},
                             {scalar("a", 0), scalar("b", many), scalar("d", 1)},
                             {},
                             {},
                             {typed("y", 7)},
                             {}}))},
      {"Pad", of_nodes({node("Pad", {"x", "s"}, {"y"})}, {shape("s", {0, many})})},
      {"Resize",
       of_nodes({node("Resize", {"x", "", "", "s"}, {"y"}, {text_attribute("mode", "nearest")})}, {far})},
      {"OneHot", of_nodes({node("Cast", {"x"}, {"i"}, {int_attribute("to", 7)}),
                           node("OneHot", {"i", "d", "v"}, {"y"})},
                          {scalar("d", many), raw_tensor("v", 1, {2}, floats({0, 1}))})},
      {"RandomNormal", of_nodes({node("RandomNormal", {}, {"y"}, {ints_attribute("shape", {many})})})},
      {"MatMul", of_nodes({node("Expand", {"x", "s"}, {"a"}),
                           node("Transpose", {"a"}, {"b"}, {ints_attribute("perm", {1, 0})}),
                           node("Reshape", {"a", "column"}, {"c"}), node("Reshape", {"b", "row"}, {"r"}),
                           node("MatMul", {"c", "r"}, {"y"})},
                          {shape("s", {1 << 20, 2}), shape("column", {-1, 1}), shape("row", {1, -1})})},
      {"Concat",
       [] {
         std::vector<std::string> nodes;
         for (int i = 0; i < 34; ++i) {
           const std::string from = i == 0 ? "x" : "v" + std::to_string(i), to = "v" + std::to_string(i + 1);
           nodes.push_back(node("Concat", {from, from}, {i == 33 ? "y" : std::string_view(to)},
                                {int_attribute("axis", 0)}));
         }
         return of_nodes(nodes);
       }()},
      {"Loop", loop(40)},
      {"Tile", of_nodes({node("NonZero", {"x"}, {"n"}), node("Cast", {"n"}, {"f"}, {int_attribute("to", 1)}),
                         node("Add", {"f", "one"}, {"g"}), node("Reshape", {"g", "flat"}, {"h"}),
                         node("Tile", {"one", "s"}, {"y"})},
                        {far, shape("flat", {-1}), raw_tensor("one", 1, {1}, floats({1}))})},
      {"input", model(graph({{node("Relu", {"x"}, {"y"})}, {}, {}, {value_info("x", 1, {many})}, {y}, {}}))},
      {"sparse", sparse(many, 1)},
      {"sparse", sparse(1 << 27, 3)},
      {"sparse", sparse(1 << 25, 3)},  // within the frontend's own bound, not within the memory limit
  };
}

}  // namespace

TEST_CASE("what asks for more than the memory limit is refused by name") {
  for (const Promise& promise : promises()) {
    const uint64_t before = tenon::memory_in_use();
    const Outcome outcome = offer(promise.model);
    INFO(promise.asks << ": " << outcome.said);
    CHECK(promise.model.size() < 8192);
    CHECK_FALSE(outcome.ran);
    CHECK_THAT(outcome.said, Contains("too large") && Contains(promise.asks));
    CHECK(tenon::memory_in_use() == before);  // nothing is left behind
  }
}

TEST_CASE("sizes that no 63 bits hold are refused") {
  const int64_t huge = int64_t{1} << 62;
  const std::vector<Promise> all = {
      {"ConstantOfShape", of_nodes({node("ConstantOfShape", {"s"}, {"y"})}, {shape("s", {huge, huge})})},
      {"'y'", of_nodes({node("Tile", {"x", "s"}, {"y"})}, {shape("s", {huge})})},
      {"'y'", of_nodes({node("Pad", {"x", "s"}, {"y"})}, {shape("s", {INT64_MAX, INT64_MAX})})},
      {"RandomUniform", of_nodes({node("RandomUniform", {}, {"y"}, {ints_attribute("shape", {huge, 4})})})},
      {"input",
       model(graph({{node("Relu", {"x"}, {"y"})}, {}, {}, {value_info("x", 1, {huge, huge})}, {y}, {}}))},
      {"Reshape", of_nodes({node("Reshape", {"x", "s"}, {"y"})}, {shape("s", {huge, huge})})},
      {"tensor 'w'", of_nodes({node("Add", {"x", "w"}, {"y"})}, {raw_tensor("w", 1, {huge, huge}, "")})},
  };
  for (const Promise& one : all) {
    const Outcome outcome = offer(one.model);
    INFO(one.asks << ": " << outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK_THAT(outcome.said, Contains(one.asks));
  }
}

TEST_CASE("what stays below the memory limit runs, and the same above it does not") {
  const std::string model = of_nodes({node("Expand", {"x", "s"}, {"t"}), node("Relu", {"t"}, {"y"})},
                                     {shape("s", {1 << 20, 2})});  // 8 MiB
  const Outcome fits = offer(model, uint64_t{64} << 20);
  INFO(fits.said);
  CHECK(fits.ran);
  const Outcome not_fits = offer(model, uint64_t{4} << 20);
  CHECK_FALSE(not_fits.ran);
  CHECK_THAT(not_fits.said, Contains("the memory limit is") && Contains("--memory-limit"));
}
