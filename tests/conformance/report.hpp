// What came out: counts of each mode and suite, and every surprise.
#pragma once
#include <compare>
#include <map>
#include <string>
#include <vector>

#include "expectations.hpp"

namespace tenon::conformance {

class Report {
 public:
  explicit Report(const ExpectationList& list) : list_(list) {}

  // An empty `fault`: it passed. `lost`: it crashed or hung, which no entry of the list excuses.
  void add(const std::string& test, const std::string& mode, const std::string& fault, bool lost);
  void add_not_run(const std::string& mode) { ++modes_[mode].not_run; }

  // What is not as the list says, then a line a mode, in the order given.
  void print(const std::vector<std::string>& modes) const;
  uint64_t surprises() const;
  // Unexpected failures as lines for the list.
  std::vector<std::string> failures() const;

 private:
  struct Counts {
    uint64_t passed = 0, total = 0;
  };
  struct ModeCounts {
    std::map<std::string, Counts> suites;
    uint64_t shape_only = 0, expected_failures = 0, not_run = 0;
  };
  const ExpectationList& list_;
  std::map<std::string, ModeCounts> modes_;
  // A test that fails in the same way in every mode is one message.
  struct Surprise {
    std::string test, message;
    bool failed;
    auto operator<=>(const Surprise&) const = default;
  };
  std::map<Surprise, std::vector<std::string>> surprises_;  // the modes
};

}  // namespace tenon::conformance
