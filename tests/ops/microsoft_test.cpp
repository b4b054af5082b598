// Operators of com.microsoft against what ONNX Runtime gives, through decomposition or kernel:
// microsoft.cases.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <sstream>

#include "core/base/tensor.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/model_loader.hpp"
#include "core/runtime/session.hpp"
#include "one_node.hpp"
#include "tenon/sdk/tensor.hpp"
#include "test_paths.hpp"

namespace tenon::test {
namespace {

// A tensor as a line has it: TYPE NUMBERS.
struct Numbers {
  std::string name;
  tn_dtype dtype = TN_DTYPE_NONE;
  std::vector<int64_t> dims;
  std::vector<double> values;
  std::vector<uint8_t> bytes;

  tn_tensor raw() {
    bytes.resize(values.size() * 8 + 8);
    sdk::visit_number(dtype, [&](auto x) {
      for (size_t i = 0; i < values.size(); ++i)
        reinterpret_cast<decltype(x)*>(bytes.data())[i] = static_cast<decltype(x)>(values[i]);
    });
    if (dtype == TN_BOOL)
      for (size_t i = 0; i < values.size(); ++i) bytes[i] = values[i] != 0;
    return {dtype, static_cast<int32_t>(dims.size()), dims.data(), bytes.data(),
            values.size() * TN_DTYPE_BITS(dtype) / 8};
  }
};
Numbers read_numbers(std::istringstream& line) {
  Numbers n;
  std::string type;
  line >> n.name >> type;
  const size_t open = type.find('[');
  n.dtype = dtype_from_name(type.substr(0, open)).value_or(TN_DTYPE_NONE);
  REQUIRE(n.dtype != TN_DTYPE_NONE);
  std::istringstream dims(type.substr(open + 1, type.size() - open - 2));
  for (std::string d; std::getline(dims, d, ',');) n.dims.push_back(std::stoll(d));
  for (std::string word; line >> word;) n.values.push_back(std::strtod(word.c_str(), nullptr));
  return n;
}

struct Case {
  std::string name, graph;
  std::vector<Numbers> inputs, outputs;
};
std::vector<Case> read_cases() {
  std::ifstream file(source_dir() + "/tests/ops/microsoft.cases");
  REQUIRE(file);
  std::vector<Case> cases;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    if (text.rfind("#", 0) == 0 || !(line >> word)) continue;
    if (word == "case")
      line >> cases.emplace_back().name;
    else if (word == "in")
      cases.back().inputs.push_back(read_numbers(line));
    else if (word == "out")
      cases.back().outputs.push_back(read_numbers(line));
    else
      cases.back().graph += text + "\n";
  }
  return cases;
}

double number_at(const tn_tensor& t, size_t i) {
  double r = 0;
  if (t.dtype == TN_BOOL) return static_cast<const uint8_t*>(t.data)[i];
  sdk::visit_number(t.dtype,
                    [&](auto x) { r = static_cast<double>(static_cast<const decltype(x)*>(t.data)[i]); });
  return r;
}
// 8-bit results may be one step off: ONNX Runtime folds scales together before it rounds.
double tolerance(const Case& c, tn_dtype dtype, double wanted) {
  if (dtype == TN_INT8 || dtype == TN_UINT8) return c.name.rfind("QuantizeLinear", 0) == 0 ? 0 : 1;
  return sdk::is_float(dtype) ? 2e-5 * (1 + std::fabs(wanted)) : 0;
}

void run_case(Case& c) {
  Diagnostics diagnostics;
  auto graph = parse(c.graph, &ops_registry(), diagnostics);
  diagnostics.throw_if_errors(2);
  REQUIRE(graph);
  upgrade_and_infer(*graph, ops_registry(), diagnostics);
  diagnostics.throw_if_errors(2);
  RuntimeOptions options;
  options.threads = 2;
  const Session session(std::move(graph), ops_registry(), options);
  std::vector<NamedTensor> inputs;
  for (Numbers& n : c.inputs) inputs.push_back({n.name, n.raw()});
  const auto outputs = session.run(inputs);
  REQUIRE(outputs.size() == c.outputs.size());
  for (size_t k = 0; k < outputs.size(); ++k) {
    const tn_tensor got = outputs[k].tensor();
    const Numbers& want = c.outputs[k];
    INFO("result " << want.name);
    CHECK(outputs[k].name == want.name);
    REQUIRE(got.dtype == want.dtype);
    REQUIRE(std::vector<int64_t>(got.dims, got.dims + got.rank) == want.dims);
    for (size_t i = 0; i < want.values.size(); ++i) {
      const double x = number_at(got, i), y = want.values[i];
      if (std::fabs(x - y) <= tolerance(c, got.dtype, y) || (std::isnan(x) && std::isnan(y))) continue;
      FAIL_CHECK("element " << i << " is " << x << ", expected " << y);
      break;
    }
  }
}

}  // namespace

TEST_CASE("operators of com.microsoft give what ONNX Runtime gives") {
  auto cases = read_cases();
  REQUIRE(cases.size() > 130);
  for (Case& c : cases) {
    INFO("case " << c.name);
    try {
      run_case(c);
    } catch (const Error& error) {
      FAIL_CHECK(error.diagnostics.front().text);
    }
  }
}

}  // namespace tenon::test
