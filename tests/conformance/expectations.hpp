// The checked-in list of tests that do not simply pass (skipped.txt).
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cases.hpp"

namespace tenon::conformance {

enum class Expectation {
  passes,      // not in the list
  shape_only,  // random numbers: only types and shapes are compared
  fails,       // is run and must fail, so that the entry goes when it passes
  not_run
};

struct ListEntry {
  Expectation expectation;
  std::string pattern;  // of the test's name
  std::string mode;     // pattern of the mode; "*" when the entry names none
  std::string reason;
  int line = 0;
};

class ExpectationList {
 public:
  ExpectationList() = default;
  // Throws std::runtime_error with all faults: unknown words, entries without a reason.
  static ExpectationList parse(const std::string& path, std::string_view text);
  static ExpectationList read(const std::string& path);

  // The last entry that matches decides; null: none does.
  const ListEntry* find(const std::string& test, const std::string& mode) const;
  Expectation of(const std::string& test, const std::string& mode) const;
  // Entries that no test matches, each as "path:line: ...".
  std::vector<std::string> stale(const std::vector<Case>& cases) const;
  std::string place(const ListEntry& entry) const;
  const std::vector<ListEntry>& entries() const { return entries_; }

 private:
  std::string path_;
  std::vector<ListEntry> entries_;
};

}  // namespace tenon::conformance
