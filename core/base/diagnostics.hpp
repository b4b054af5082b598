// Findings: what was found where, and the remedy. Collected, handed through the boundary as tn_diag, thrown
// as Error.
#pragma once
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/abi/core.h"

namespace tenon {

struct Diagnostic {
  tn_severity severity = TN_SEVERITY_ERROR;
  std::string code;   // stable ("E201"); may be empty
  std::string where;  // "file:3:51", "node /conv1/Conv", "byte 4711"
  std::string text;   // what was found, what was expected, the remedy
};

// "error E201: file:3:51: text" on one line.
std::string to_string(const Diagnostic& diagnostic);
std::string_view severity_name(tn_severity severity);

// What the program's exit code will be when an Error reaches main.
enum : int { exit_job_failed = 1, exit_bad_input = 2 };

class Error : public std::exception {
 public:
  Error(int code, std::vector<Diagnostic> found);
  Error(int code, std::string where, std::string text);  // one error
  const char* what() const noexcept override { return what_.c_str(); }

  int exit_code;
  std::vector<Diagnostic> diagnostics;

 private:
  std::string what_;
};

// Not thread-safe: one collector a thread. The address must not change while abi() is in use.
class Diagnostics {
 public:
  Diagnostics();
  Diagnostics(const Diagnostics& other);
  Diagnostics(Diagnostics&& other) noexcept;
  Diagnostics& operator=(const Diagnostics& other);
  Diagnostics& operator=(Diagnostics&& other) noexcept;

  void add(Diagnostic diagnostic);
  void add(tn_severity severity, std::string_view code, std::string_view where, std::string_view text);
  void error(std::string_view code, std::string_view where, std::string_view text);
  void warning(std::string_view code, std::string_view where, std::string_view text);
  void info(std::string_view code, std::string_view where, std::string_view text);
  void append(const Diagnostics& other);

  bool has_errors() const { return error_count_ != 0; }
  size_t error_count() const { return error_count_; }
  bool empty() const { return all_.empty(); }
  const std::vector<Diagnostic>& all() const { return all_; }
  std::string first_error() const;  // its text with its place; empty: none
  void clear();
  // Moves the findings into an Error when there is an error among them.
  void throw_if_errors(int exit_code);

  // Appends here. Valid as long as this object; never throws (a finding that does not fit in memory is lost).
  const tn_diag* abi() const { return &abi_; }

 private:
  std::vector<Diagnostic> all_;
  size_t error_count_ = 0;
  tn_diag abi_;
};

// Sends to a foreign tn_diag; does nothing when it is NULL.
void report(const tn_diag* diag, tn_severity severity, std::string_view code, std::string_view where,
            std::string_view text);
void report(const tn_diag* diag, const Diagnostics& findings);

}  // namespace tenon
