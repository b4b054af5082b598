#include "report.hpp"

#include <cstdio>

#include "core/base/text.hpp"

namespace tenon::conformance {

namespace {

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n') c = ' ';
  return text;
}

}  // namespace

void Report::add(const std::string& test, const std::string& mode, const std::string& fault, bool lost) {
  ModeCounts& counts = modes_[mode];
  Counts& suite = counts.suites[test.substr(0, test.find('/'))];
  ++suite.total;
  const ListEntry* entry = list_.find(test, mode);
  const Expectation expected = entry == nullptr ? Expectation::passes : entry->expectation;
  if (fault.empty()) {
    ++suite.passed;
    if (expected == Expectation::shape_only) ++counts.shape_only;
    if (expected != Expectation::fails) return;
    surprises_[{test, list_.place(*entry) + " says that it fails (" + entry->reason + "): remove the entry",
                false}]
        .push_back(mode);
    return;
  }
  if (expected == Expectation::fails && !lost) {
    ++counts.expected_failures;
    return;
  }
  surprises_[{test, one_line(fault), true}].push_back(mode);
}

uint64_t Report::surprises() const {
  uint64_t count = 0;
  for (const auto& [surprise, modes] : surprises_) count += modes.size();
  return count;
}

std::vector<std::string> Report::failures() const {
  std::vector<std::string> lines;
  for (const auto& [surprise, modes] : surprises_) {
    if (!surprise.failed) continue;
    const std::string reason = "  " + surprise.message.substr(0, 100);
    if (modes.size() == modes_.size()) {
      lines.push_back("fails  " + surprise.test + reason);
      continue;
    }
    for (const std::string& mode : modes) lines.push_back("fails  " + surprise.test + "@" + mode + reason);
  }
  return lines;
}

void Report::print(const std::vector<std::string>& modes) const {
  for (const auto& [surprise, where] : surprises_) {
    const std::string text = where.size() == modes_.size() ? "every mode" : join(where, ", ");
    std::printf("%s %s [%s]\n    %s\n", surprise.failed ? "FAILS" : "PASSES", surprise.test.c_str(),
                text.c_str(), surprise.message.c_str());
  }
  for (const std::string& mode : modes) {
    const auto found = modes_.find(mode);
    if (found == modes_.end()) continue;
    const ModeCounts& counts = found->second;
    std::string suites;
    uint64_t passed = 0, total = 0;
    for (const auto& [name, suite] : counts.suites) {
      suites += (suites.empty() ? "" : ", ") + name + " " + std::to_string(suite.passed) + "/" +
                std::to_string(suite.total);
      passed += suite.passed;
      total += suite.total;
    }
    std::printf("%-20s %llu of %llu pass: %s", mode.c_str(), static_cast<unsigned long long>(passed),
                static_cast<unsigned long long>(total), suites.c_str());
    if (counts.shape_only > 0)
      std::printf("; %llu by type and shape", static_cast<unsigned long long>(counts.shape_only));
    if (counts.expected_failures > 0)
      std::printf("; %llu listed as failing", static_cast<unsigned long long>(counts.expected_failures));
    if (counts.not_run > 0) std::printf("; %llu not run", static_cast<unsigned long long>(counts.not_run));
    std::printf("\n");
  }
}

}  // namespace tenon::conformance
