#include "expectations.hpp"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "core/base/text.hpp"

namespace tenon::conformance {

namespace {

// "shape  node/test_bernoulli@pass:*  reason in words"; an empty text: fine.
std::string parse_line(const std::string& line, ListEntry& entry) {
  std::istringstream words(line);
  std::string kind, test;
  words >> kind >> test;
  std::getline(words >> std::ws, entry.reason);
  if (kind == "shape")
    entry.expectation = Expectation::shape_only;
  else if (kind == "fails")
    entry.expectation = Expectation::fails;
  else if (kind == "skip")
    entry.expectation = Expectation::not_run;
  else
    return "'" + kind + "' is none of shape, fails, skip";
  const size_t at = test.find('@');
  entry.pattern = test.substr(0, at);
  entry.mode = at == std::string::npos ? "*" : test.substr(at + 1);
  if (entry.pattern.find('/') == std::string::npos)
    return "'" + entry.pattern + "' is no test: expected SUITE/NAME, as in node/test_abs";
  if (entry.reason.empty()) return "no reason is given for " + test;
  return "";
}

}  // namespace

ExpectationList ExpectationList::parse(const std::string& path, std::string_view text) {
  ExpectationList list;
  list.path_ = path;
  std::istringstream in{std::string(text)};
  std::string line, faults;
  for (int number = 1; std::getline(in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos || line[0] == '#') continue;
    ListEntry entry;
    entry.line = number;
    if (const std::string fault = parse_line(line, entry); !fault.empty())
      faults += (faults.empty() ? "" : "\n") + list.place(entry) + ": " + fault;
    list.entries_.push_back(std::move(entry));
  }
  if (!faults.empty()) throw std::runtime_error(faults);
  return list;
}

ExpectationList ExpectationList::read(const std::string& path) {
  std::ifstream in(path);
  if (!in) throw std::runtime_error(path + ": the list of expected failures cannot be read");
  std::ostringstream text;
  text << in.rdbuf();
  return parse(path, text.str());
}

const ListEntry* ExpectationList::find(const std::string& test, const std::string& mode) const {
  const auto found = std::find_if(entries_.rbegin(), entries_.rend(), [&](const ListEntry& entry) {
    return glob_match(entry.pattern, test) && glob_match(entry.mode, mode);
  });
  return found == entries_.rend() ? nullptr : &*found;
}

Expectation ExpectationList::of(const std::string& test, const std::string& mode) const {
  const ListEntry* entry = find(test, mode);
  return entry == nullptr ? Expectation::passes : entry->expectation;
}

std::vector<std::string> ExpectationList::stale(const std::vector<Case>& cases) const {
  std::vector<std::string> lines;
  for (const ListEntry& entry : entries_)
    if (std::none_of(cases.begin(), cases.end(),
                     [&](const Case& one) { return glob_match(entry.pattern, one.name); }))
      lines.push_back(place(entry) + ": no test is called " + entry.pattern + "; remove the entry");
  return lines;
}

std::string ExpectationList::place(const ListEntry& entry) const {
  return path_ + ":" + std::to_string(entry.line);
}

}  // namespace tenon::conformance
