#include "cases.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>

namespace tenon::conformance {

namespace fs = std::filesystem;

bool has_cases(const fs::path& data) { return fs::exists(data / "cases.txt"); }

std::vector<Case> read_cases(const fs::path& data) {
  const fs::path list = data / "cases.txt";
  std::ifstream in(list);
  std::vector<Case> cases;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.empty() || line[0] == '#') continue;
    Case one;
    std::istringstream words(line);
    words >> one.name >> one.tolerance.relative >> one.tolerance.absolute;
    one.folder = data / one.name;
    if (!words || !fs::exists(one.folder / "model.onnx"))
      throw std::runtime_error(list.string() + ":" + std::to_string(number) + ": '" + line +
                               "' is no test with its tolerances; remove the folder and generate it again");
    cases.push_back(std::move(one));
  }
  return cases;
}

std::vector<fs::path> data_sets(const Case& one) {
  std::vector<fs::path> sets;
  for (int k = 0;; ++k) {
    fs::path set = one.folder / ("test_data_set_" + std::to_string(k));
    if (!fs::exists(set)) return sets;
    sets.push_back(std::move(set));
  }
}

}  // namespace tenon::conformance
