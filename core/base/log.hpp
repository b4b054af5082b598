// Log lines of the host, on stderr unless told otherwise. A facade, so that spdlog is compiled in one file.
#pragma once
#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace tenon::log {

enum class Level { debug, info, warning, error, off };

void set_level(Level level);  // default: warning, or what TENON_LOG says (debug, info, warning, error, off)
Level level();
void write(Level level, std::string_view text);  // [any]
// Where lines go instead of stderr, for programs that embed the host; null: stderr.
using Sink = void (*)(Level level, std::string_view text);
void set_sink(Sink sink);

template <class... Args>
void write_formatted(Level at, fmt::format_string<Args...> format, Args&&... args) {
  if (at >= level()) write(at, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted(Level::debug, format, std::forward<Args>(args)...);
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted(Level::info, format, std::forward<Args>(args)...);
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted(Level::warning, format, std::forward<Args>(args)...);
}
template <class... Args>
void error(fmt::format_string<Args...> format, Args&&... args) {
  write_formatted(Level::error, format, std::forward<Args>(args)...);
}

}  // namespace tenon::log
