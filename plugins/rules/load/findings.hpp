// What is wrong in a rule file, collected so that all of it is reported at once.
#pragma once
#include <initializer_list>

#include "load/json_source.hpp"
#include "tenon/sdk/base.hpp"

namespace tenon::rules {

struct Finding {
  tn_severity severity = TN_SEVERITY_ERROR;
  std::string code;
  uint32_t offset = 0;
  std::string message, hint;
};

class Findings {
 public:
  explicit Findings(const Source& source) : source_(&source) {}
  void error(std::string code, uint32_t offset, std::string message, std::string hint = {}) {
    found_.push_back({TN_SEVERITY_ERROR, std::move(code), offset, std::move(message), std::move(hint)});
    ++errors_;
  }
  void warn(std::string code, uint32_t offset, std::string message, std::string hint = {}) {
    found_.push_back({TN_SEVERITY_WARNING, std::move(code), offset, std::move(message), std::move(hint)});
  }
  void note(uint32_t offset, std::string message) {
    found_.push_back({TN_SEVERITY_INFO, "", offset, std::move(message), {}});
  }
  size_t errors() const { return errors_; }
  const std::vector<Finding>& all() const { return found_; }
  const Source& source() const { return *source_; }
  /// All findings in the order of the file; `strict` makes warnings errors.
  void emit(const sdk::Diag& diag, bool strict = false) const;
  /// "3:51: error E201: ..." with source line and caret, as emit sends it.
  std::string render(const Finding& finding) const;

 private:
  const Source* source_;
  std::vector<Finding> found_;
  size_t errors_ = 0;
};

/// "did you mean 'a' or 'b'?", empty when nothing is near.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace tenon::rules
