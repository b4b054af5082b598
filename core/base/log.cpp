#include "core/base/log.hpp"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace tenon::log {

namespace {
Level initial_level() {
  const char* const wanted = std::getenv("TENON_LOG");
  const std::string_view text = wanted ? wanted : "";
  if (text == "debug") return Level::debug;
  if (text == "info") return Level::info;
  if (text == "error") return Level::error;
  if (text == "off") return Level::off;
  return Level::warning;
}
std::atomic<Level>& current() {
  static std::atomic<Level> value{initial_level()};
  return value;
}
std::atomic<Sink>& other_sink() {
  static std::atomic<Sink> value{nullptr};
  return value;
}
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> instance = [] {
    auto made = std::make_shared<spdlog::logger>("tenon", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("tenon %l: %v");
    made->set_level(spdlog::level::trace);
    made->flush_on(spdlog::level::trace);
    return made;
  }();
  return *instance;
}
}  // namespace

void set_level(Level level) { current().store(level, std::memory_order_relaxed); }
Level level() { return current().load(std::memory_order_relaxed); }

void set_sink(Sink sink) { other_sink().store(sink); }

void write(Level at, std::string_view text) {
  if (const Sink sink = other_sink().load(); sink != nullptr) {
    sink(at, text);
    return;
  }
  const spdlog::string_view_t message(text.data(), text.size());
  switch (at) {
    case Level::debug:
      logger().debug(message);
      break;
    case Level::info:
      logger().info(message);
      break;
    case Level::warning:
      logger().warn(message);
      break;
    case Level::error:
      logger().error(message);
      break;
    case Level::off:
      break;
  }
}

}  // namespace tenon::log
