// What came out: counts of each mode and suite, and every surprise.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "expectations.hpp"

namespace tenon::conformance {

class Report {
 public:
  explicit Report(const ExpectationList& list) : list_(list) {}

  // Prints a line when the result is not the expected one. An empty `fault`: it passed. `lost`: it crashed or
  // hung, which no entry of the list excuses.
  void add(const std::string& test, const std::string& mode, const std::string& fault, bool lost);
  void add_not_run(const std::string& mode) { ++modes_[mode].not_run; }

  // A line a mode, in the order given.
  void print(const std::vector<std::string>& modes) const;
  uint64_t surprises() const { return surprises_; }
  // Unexpected failures as lines for the list.
  const std::vector<std::string>& failures() const { return failures_; }

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
  uint64_t surprises_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace tenon::conformance
