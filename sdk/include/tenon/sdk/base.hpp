// Text, spans, failures and the guard that keeps exceptions inside the plugin. C++17.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <initializer_list>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tenon/abi/core.h"

namespace tenon::sdk {

inline tn_str str(std::string_view text) noexcept { return {text.data(), text.size()}; }
inline std::string_view view(tn_str text) noexcept {
  return {text.data ? text.data : "", text.data ? text.size : 0};
}
inline std::string text(tn_str s) { return std::string(view(s)); }

/// A borrowed array. Like std::span, for C++17.
template <class T>
class Span {
 public:
  constexpr Span() noexcept = default;
  constexpr Span(T* data, size_t size) noexcept : data_(data), size_(size) {}
  template <class C, class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<C&>().data()), T*>>>
  constexpr Span(C& c) noexcept : data_(c.data()), size_(c.size()) {}
  template <class C,
            class = std::enable_if_t<std::is_convertible_v<decltype(std::declval<const C&>().data()), T*>>>
  constexpr Span(const C& c) noexcept : data_(c.data()), size_(c.size()) {}
  constexpr T* data() const noexcept { return data_; }
  constexpr size_t size() const noexcept { return size_; }
  constexpr bool empty() const noexcept { return size_ == 0; }
  constexpr T* begin() const noexcept { return data_; }
  constexpr T* end() const noexcept { return data_ + size_; }
  constexpr T& operator[](size_t i) const noexcept { return data_[i]; }
  constexpr T& front() const noexcept { return data_[0]; }
  constexpr T& back() const noexcept { return data_[size_ - 1]; }
  constexpr Span subspan(size_t from, size_t count = SIZE_MAX) const noexcept {
    return {data_ + from, count < size_ - from ? count : size_ - from};
  }
  std::vector<std::remove_const_t<T>> copy() const { return {begin(), end()}; }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

/// printf into a string; the SDK needs no formatting library.
[[gnu::format(printf, 1, 2)]] inline std::string format(const char* pattern, ...) {
  va_list a, b;
  va_start(a, pattern);
  va_copy(b, a);
  const int n = std::vsnprintf(nullptr, 0, pattern, a);
  va_end(a);
  std::string s(n > 0 ? static_cast<size_t>(n) : 0, '\0');
  if (n > 0) std::vsnprintf(s.data(), s.size() + 1, pattern, b);
  va_end(b);
  return s;
}

/// What plugin code throws; it becomes a status and a message at the boundary.
class Failure : public std::exception {
 public:
  Failure(tn_status status, std::string message, std::string where = {}, std::string code = {})
      : status_(status), message_(std::move(message)), where_(std::move(where)), code_(std::move(code)) {}
  tn_status status() const noexcept { return status_; }
  const std::string& where() const noexcept { return where_; }
  const std::string& code() const noexcept { return code_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  tn_status status_;
  std::string message_, where_, code_;
};
[[noreturn]] inline void fail(std::string message) { throw Failure(TN_ERR_INVALID, std::move(message)); }
/// "I looked and do not act": a kernel that cannot take this node, an op without decomposition here.
[[noreturn]] inline void decline(std::string why) { throw Failure(TN_DECLINED, std::move(why)); }

/// Messages to the host. Borrowed; valid during the call it was handed to.
class Diag {
 public:
  Diag() = default;
  explicit Diag(const tn_diag* d) noexcept : d_(d) {}
  void report(tn_severity severity, std::string_view code, std::string_view where,
              std::string_view message) const noexcept {
    if (d_ && d_->report) d_->report(d_->context, severity, str(code), str(where), str(message));
  }
  void error(std::string_view where, std::string_view message, std::string_view code = {}) const noexcept {
    report(TN_SEVERITY_ERROR, code, where, message);
  }
  void warn(std::string_view where, std::string_view message, std::string_view code = {}) const noexcept {
    report(TN_SEVERITY_WARNING, code, where, message);
  }
  const tn_diag* raw() const noexcept { return d_; }

 private:
  const tn_diag* d_ = nullptr;
};

/// Collects what the host reports back to us (for calls that take a tn_diag).
class DiagBuffer {
 public:
  DiagBuffer() noexcept : diag_{sizeof(tn_diag), this, &DiagBuffer::add} {}
  DiagBuffer(const DiagBuffer&) = delete;
  DiagBuffer& operator=(const DiagBuffer&) = delete;
  const tn_diag* raw() const noexcept { return &diag_; }
  const std::string& text() const noexcept { return text_; }
  void clear() noexcept { text_.clear(); }

 private:
  static void add(void* context, tn_severity severity, tn_str, tn_str where, tn_str message) {
    auto* self = static_cast<DiagBuffer*>(context);
    if (severity < TN_SEVERITY_WARNING) return;
    if (!self->text_.empty()) self->text_ += "; ";
    if (where.size) self->text_.append(view(where)).append(": ");
    self->text_.append(view(message));
  }
  tn_diag diag_;
  std::string text_;
};

/// Runs f and turns every exception into a status and one message. The only door through which our code is
/// entered.
template <class F>
tn_status guarded(const tn_diag* diag, F&& f) noexcept {
  const Diag d(diag);
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      return TN_OK;
    } else {
      return f();
    }
  } catch (const Failure& e) {
    d.report(e.status() == TN_DECLINED ? TN_SEVERITY_INFO : TN_SEVERITY_ERROR, e.code(), e.where(), e.what());
    return e.status();
  } catch (const std::bad_alloc&) {
    d.error("", "out of memory");
    return TN_ERR_MEMORY;
  } catch (const std::exception& e) {
    d.error("", e.what());
    return TN_ERR_INTERNAL;
  } catch (...) {
    d.error("", "unknown exception");
    return TN_ERR_INTERNAL;
  }
}

/// Throws when a host call failed; what the host said goes along.
inline void check(tn_status status, const char* doing, const DiagBuffer* said = nullptr) {
  if (status == TN_OK) return;
  std::string m = doing;
  m += said && !said->text().empty() ? ": " + said->text()
                                     : format(" failed (status %d)", static_cast<int>(status));
  throw Failure(status, std::move(m));
}

/// a*b, or Failure when it does not fit 63 bits.
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r = 0;
  if (__builtin_mul_overflow(a, b, &r))
    throw Failure(TN_ERR_LIMIT, format("size overflow: %lld * %lld is too large", static_cast<long long>(a),
                                       static_cast<long long>(b)));
  return r;
}

}  // namespace tenon::sdk
