// Errors, texts, the log, versions and element types.
#include <cstdlib>

#include "core/base/log.hpp"
#include "core/base/tensor.hpp"
#include "core/plugin/host.hpp"
#include "lib/internal.hpp"

namespace tenon::lib {

namespace {

// What is reported when there is no memory for a report.
tenon_error& no_memory_error() {
  static tenon_error error{TENON_NO_MEMORY, "out of memory", {}};
  return error;
}

struct LogTarget {
  std::mutex mutex;
  tenon_log_function function = nullptr;
  void* context = nullptr;
};
LogTarget& log_target() {
  static auto* target = new LogTarget;  // threads may write while the process ends
  return *target;
}

tn_severity severity_of(log::Level level) {
  switch (level) {
    case log::Level::debug:
      return TN_SEVERITY_DEBUG;
    case log::Level::info:
      return TN_SEVERITY_INFO;
    case log::Level::warning:
      return TN_SEVERITY_WARNING;
    default:
      return TN_SEVERITY_ERROR;
  }
}

void forward(log::Level level, std::string_view text) {
  LogTarget& target = log_target();
  const std::lock_guard lock(target.mutex);
  if (target.function == nullptr) return;
  try {
    const std::string line(text);
    target.function(target.context, severity_of(level), line.c_str());
  } catch (...) {
    // The callback broke its word; there is nobody to tell.
  }
}

}  // namespace

tenon_status fail(tenon_error** error, tenon_status status, std::vector<Diagnostic> findings) noexcept {
  if (error == nullptr) return status;
  try {
    auto made = std::make_unique<tenon_error>();
    made->status = status;
    for (const Diagnostic& finding : findings)
      made->message += (made->message.empty() ? "" : "\n") + to_string(finding);
    made->findings = std::move(findings);
    *error = made.release();
  } catch (...) {
    *error = &no_memory_error();
  }
  return status;
}

char* as_text(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace tenon::lib

using namespace tenon;
using namespace tenon::lib;

const char* tenon_version(void) { return program_version().data(); }  // a literal, so it ends with a zero
uint32_t tenon_api_version(void) { return TENON_API_MAJOR << 16 | TENON_API_MINOR; }

tenon_status tenon_error_status(const tenon_error* error) {
  return error == nullptr ? TENON_OK : error->status;
}
const char* tenon_error_message(const tenon_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
size_t tenon_error_count(const tenon_error* error) { return error == nullptr ? 0 : error->findings.size(); }

tenon_status tenon_error_finding(const tenon_error* error, size_t index, tenon_finding* finding) {
  return guarded(nullptr, [&] {
    require(error, "error");
    if (index >= error->findings.size()) throw Misuse{"there is no such finding"};
    const Diagnostic& found = error->findings[index];
    fill(finding,
         {0, static_cast<uint32_t>(found.severity), found.code.c_str(), found.where.c_str(),
          found.text.c_str()},
         "tenon_finding");
  });
}

void tenon_error_free(tenon_error* error) {
  if (error != &no_memory_error()) delete error;
}
void tenon_text_free(char* text) { std::free(text); }

void tenon_set_log(tenon_log_function function, void* context, tn_severity lowest) {
  LogTarget& target = log_target();
  {
    const std::lock_guard lock(target.mutex);
    target.function = function;
    target.context = context;
  }
  log::set_sink(function == nullptr ? nullptr : &forward);
  log::set_level(lowest <= TN_SEVERITY_DEBUG     ? log::Level::debug
                 : lowest == TN_SEVERITY_INFO    ? log::Level::info
                 : lowest == TN_SEVERITY_WARNING ? log::Level::warning
                                                 : log::Level::error);
}

size_t tenon_dtype_name(tn_dtype dtype, char* buffer, size_t bytes) {
  size_t length = 0;
  guarded(nullptr, [&] {
    const std::string name = dtype_name(dtype);
    length = name.size();
    if (buffer == nullptr || bytes == 0) return;
    const size_t copied = std::min(bytes - 1, name.size());
    std::memcpy(buffer, name.data(), copied);
    buffer[copied] = '\0';
  });
  return length;
}

tn_dtype tenon_dtype_from_name(const char* name) {
  tn_dtype dtype = TN_DTYPE_NONE;
  guarded(nullptr, [&] {
    require(name, "name");
    dtype = dtype_from_name(name).value_or(TN_DTYPE_NONE);
  });
  return dtype;
}
