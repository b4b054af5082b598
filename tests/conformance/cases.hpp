// ONNX's tests as generate.py writes them.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::conformance {

// What ONNX's runner allows a number to be off: |got - expected| <= absolute + relative * |expected|.
struct Tolerance {
  double relative = 1e-3;
  double absolute = 1e-7;
};

struct Case {
  std::string name;              // "node/test_abs"
  std::filesystem::path folder;  // with model.onnx and test_data_set_0 ...
  Tolerance tolerance;

  std::string suite() const { return name.substr(0, name.find('/')); }
};

bool has_cases(const std::filesystem::path& data);
// In the order of the list, suite by suite. Throws std::runtime_error naming the line that is wrong.
std::vector<Case> read_cases(const std::filesystem::path& data);

// test_data_set_0 ... of a case, in order.
std::vector<std::filesystem::path> data_sets(const Case& one);

}  // namespace tenon::conformance
