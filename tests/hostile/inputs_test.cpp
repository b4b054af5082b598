// Inputs that do not fit the model: input, dimension, expected and found are named.
#include <catch2/catch.hpp>

#include "messages.hpp"
#include "offer.hpp"

using namespace tenon::hostile;
using Catch::Matchers::Contains;

namespace {

/// value_info with names for dimensions: digits are numbers.
std::string input(std::string_view name, const std::vector<std::string>& dims) {
  std::string shape;
  protozero::pbf_writer sw(shape);
  for (const std::string& d : dims) {
    std::string dim;
    protozero::pbf_writer dw(dim);
    if (d.find_first_not_of("0123456789") == std::string::npos)
      dw.add_int64(tenon::onnx::dim_field::value, std::stoll(d));
    else
      dw.add_string(tenon::onnx::dim_field::param, d);
    sw.add_message(tenon::onnx::shape_field::dim, dim);
  }
  std::string tensor;
  protozero::pbf_writer tw(tensor);
  tw.add_int32(tenon::onnx::tensor_type_field::elem_type, 1);
  tw.add_message(tenon::onnx::tensor_type_field::shape, shape);
  std::string out;
  protozero::pbf_writer w(out);
  w.add_string(tenon::onnx::value_info_field::name, name.data(), name.size());
  w.add_message(tenon::onnx::value_info_field::type, message({{tenon::onnx::type_field::tensor, tensor}}));
  return out;
}

// a: [N, 3], b: [N, M], c: [M]; N and M are one number each wherever they stand.
std::string symbolic() {
  return model(graph(
      {{node("MatMul", {"a", "w"}, {"t"}), node("Add", {"t", "b"}, {"u"}), node("Add", {"u", "c"}, {"y"})},
       {raw_tensor("w", 1, {3, 1}, floats({1, 2, 3}))},
       {},
       {input("a", {"N", "3"}), input("b", {"N", "M"}), input("c", {"M"})},
       {typed("y", 1)},
       {}}));
}

}  // namespace

TEST_CASE("symbolic dimensions are one number by name, and what does not fit is named") {
  const std::vector<Given> fits = {
      {"a", TN_FLOAT32, {2, 3}}, {"b", TN_FLOAT32, {2, 4}}, {"c", TN_FLOAT32, {4}}};
  const Outcome good = offer_inputs(symbolic(), fits);
  INFO(good.said);
  CHECK(good.ran);
  const struct {
    const char* what;
    size_t input;  // of `fits`, replaced
    Given given;
    std::vector<std::string> said;
  } all[] = {
      {"number", 0, {"a", TN_FLOAT32, {2, 5}}, {"input 'a'", "dimension 1 is 5", "expected 3", "[N,3]"}},
      {"symbol",
       1,
       {"b", TN_FLOAT32, {3, 4}},
       {"input 'b'", "dimension 0 (N) is 3", "expected 2", "dimension 0 of input 'a'"}},
      {"other symbol",
       2,
       {"c", TN_FLOAT32, {5}},
       {"input 'c'", "dimension 0 (M) is 5", "expected 4", "dimension 1 of input 'b'"}},
      {"rank", 0, {"a", TN_FLOAT32, {2}}, {"input 'a'", "rank 1", "expected rank 2"}},
      {"scalar", 2, {"c", TN_FLOAT32, {}}, {"input 'c'", "rank 0", "expected rank 1"}},
      {"type", 0, {"a", TN_INT64, {2, 3}}, {"input 'a'", "int64", "expected float32"}},
      {"unknown", 0, {"A", TN_FLOAT32, {2, 3}}, {"input 'A'", "no such input", "'a'"}},
      {"twice", 0, {"b", TN_FLOAT32, {2, 4}}, {"input 'b'", "twice"}},
  };
  for (const auto& one : all) {
    auto given = fits;
    given[one.input] = one.given;
    const Outcome outcome = offer_inputs(symbolic(), given);
    INFO(one.what << ": " << outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK(outcome.exit_code == 2);
    for (const std::string& text : one.said) CHECK_THAT(outcome.said, Contains(text));
  }
  const Outcome missing = offer_inputs(symbolic(), {fits[0], fits[1]});
  CHECK_THAT(missing.said, Contains("input 'c'") && Contains("is missing") && Contains("float32 [M]"));
  const Outcome empty =
      offer_inputs(symbolic(), {{"a", TN_FLOAT32, {0, 3}}, {"b", TN_FLOAT32, {0, 4}}, fits[2]});
  INFO(empty.said);
  CHECK(empty.ran);
}
