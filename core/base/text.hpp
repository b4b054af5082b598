// Text helpers. Format with fmt through this header only.
#pragma once
#include <fmt/core.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tenon/abi/core.h"

namespace tenon {

inline tn_str to_abi(std::string_view text) { return {text.data(), text.size()}; }
inline std::string_view view(tn_str text) {
  return text.data ? std::string_view(text.data, text.size) : std::string_view();
}
inline std::string string(tn_str text) { return std::string(view(text)); }

// Up to three of `known` nearest to `wrong` by edit distance, nearest first; none when all are far.
std::vector<std::string> nearest_names(std::string_view wrong, std::span<const std::string> known);
// "; did you mean 'a' or 'b'?" or an empty string.
std::string did_you_mean(std::string_view wrong, std::span<const std::string> known);

std::string format_bytes(uint64_t bytes);   // "18.3 MB" (powers of ten), "512 B"
std::string format_count(uint64_t count);   // "1,234,567"
std::string quoted(std::string_view text);  // in double quotes, escaped as JSON does
inline std::string quoted(const std::string& text) {
  return quoted(std::string_view(text));
}  // wins over std::quoted
inline std::string quoted(const char* text) { return quoted(std::string_view(text)); }
std::string lower(std::string_view text);  // ASCII only
// '*' and '?' as in a shell; no recursion.
bool glob_match(std::string_view pattern, std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string hex64(uint64_t value);  // 16 digits

}  // namespace tenon
