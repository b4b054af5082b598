#include "core/base/diagnostics.hpp"

#include "core/base/text.hpp"

namespace tenon {

std::string_view severity_name(tn_severity severity) {
  switch (severity) {
    case TN_SEVERITY_DEBUG:
      return "debug";
    case TN_SEVERITY_INFO:
      return "note";
    case TN_SEVERITY_WARNING:
      return "warning";
    case TN_SEVERITY_ERROR:
      return "error";
    case TN_SEVERITY_PLUGIN_MISBEHAVING:
      return "plugin error";
    case TN_SEVERITY_HOST_MISBEHAVING:
      return "internal error";
  }
  return "error";
}

std::string to_string(const Diagnostic& diagnostic) {
  std::string line(severity_name(diagnostic.severity));
  if (!diagnostic.code.empty()) line += " " + diagnostic.code;
  line += ": ";
  if (!diagnostic.where.empty()) line += diagnostic.where + ": ";
  return line + diagnostic.text;
}

Error::Error(int code, std::vector<Diagnostic> found) : exit_code(code), diagnostics(std::move(found)) {
  for (const auto& diagnostic : diagnostics) {
    if (diagnostic.severity < TN_SEVERITY_ERROR) continue;
    if (!what_.empty()) what_ += '\n';
    what_ += to_string(diagnostic);
  }
}

Error::Error(int code, std::string where, std::string text)
    : Error(code, {Diagnostic{TN_SEVERITY_ERROR, "", std::move(where), std::move(text)}}) {}

namespace {
void append_from_abi(void* context, tn_severity severity, tn_str code, tn_str where, tn_str text) noexcept {
  try {
    static_cast<Diagnostics*>(context)->add(severity, view(code), view(where), view(text));
  } catch (...) {
    // Out of memory while saying what went wrong: the status code still tells that something did.
  }
}
}  // namespace

Diagnostics::Diagnostics() : abi_{sizeof(tn_diag), this, append_from_abi} {}
Diagnostics::Diagnostics(const Diagnostics& other) : Diagnostics() { *this = other; }
Diagnostics::Diagnostics(Diagnostics&& other) noexcept : Diagnostics() { *this = std::move(other); }
Diagnostics& Diagnostics::operator=(const Diagnostics& other) {
  all_ = other.all_;
  error_count_ = other.error_count_;
  return *this;
}
Diagnostics& Diagnostics::operator=(Diagnostics&& other) noexcept {
  all_ = std::move(other.all_);
  error_count_ = other.error_count_;
  other.clear();
  return *this;
}

void Diagnostics::add(Diagnostic diagnostic) {
  if (diagnostic.severity >= TN_SEVERITY_ERROR) ++error_count_;
  all_.push_back(std::move(diagnostic));
}
void Diagnostics::add(tn_severity severity, std::string_view code, std::string_view where,
                      std::string_view text) {
  add(Diagnostic{severity, std::string(code), std::string(where), std::string(text)});
}
void Diagnostics::error(std::string_view code, std::string_view where, std::string_view text) {
  add(TN_SEVERITY_ERROR, code, where, text);
}
void Diagnostics::warning(std::string_view code, std::string_view where, std::string_view text) {
  add(TN_SEVERITY_WARNING, code, where, text);
}
void Diagnostics::info(std::string_view code, std::string_view where, std::string_view text) {
  add(TN_SEVERITY_INFO, code, where, text);
}
void Diagnostics::append(const Diagnostics& other) {
  for (const auto& diagnostic : other.all_) add(diagnostic);
}
std::string Diagnostics::first_error() const {
  for (const auto& diagnostic : all_)
    if (diagnostic.severity >= TN_SEVERITY_ERROR)
      return diagnostic.where.empty() ? diagnostic.text : diagnostic.where + ": " + diagnostic.text;
  return {};
}
void Diagnostics::clear() {
  all_.clear();
  error_count_ = 0;
}
void Diagnostics::throw_if_errors(int exit_code) {
  if (!has_errors()) return;
  auto found = std::move(all_);
  clear();
  throw Error(exit_code, std::move(found));
}

void report(const tn_diag* diag, tn_severity severity, std::string_view code, std::string_view where,
            std::string_view text) {
  if (diag && diag->report) diag->report(diag->context, severity, to_abi(code), to_abi(where), to_abi(text));
}
void report(const tn_diag* diag, const Diagnostics& findings) {
  for (const auto& finding : findings.all())
    report(diag, finding.severity, finding.code, finding.where, finding.text);
}

}  // namespace tenon
