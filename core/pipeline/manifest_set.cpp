#include "core/pipeline/manifest_set.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/base/text.hpp"

namespace tenon {

namespace {

// Below these, what follows is one key whatever dots it has: names of inputs, nodes and rules have dots.
constexpr std::array<std::string_view, 8> open_objects = {"switches",    "model.shapes", "kernels.pin",
                                                          "devices.pin", "devices.deny", "inputs",
                                                          "outputs",     "precision.ops"};

std::vector<std::string> steps_of(std::string_view path) {
  for (const std::string_view open : open_objects) {
    if (path.size() > open.size() + 1 && path.starts_with(open) && path[open.size()] == '.') {
      std::vector<std::string> steps = steps_of(open);
      steps.emplace_back(path.substr(open.size() + 1));
      return steps;
    }
  }
  std::vector<std::string> steps;
  for (const std::string_view step : split(path, '.')) steps.emplace_back(step);
  return steps;
}

Json value_of(std::string_view text) {
  Json value = Json::parse(text, nullptr, false);
  return value.is_discarded() ? Json(std::string(text)) : value;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> apply_settings(Json& document,
                                                                const std::vector<std::string>& settings,
                                                                Diagnostics& diagnostics) {
  std::vector<std::pair<std::string, std::string>> applied;
  for (const std::string& setting : settings) {
    const size_t equals = setting.find('=');
    const std::string place = "--set " + setting;
    if (equals == std::string::npos || equals == 0) {
      diagnostics.error("M206", place, "expected key=value, such as runtime.threads=2 or pipeline=[]");
      continue;
    }
    const std::vector<std::string> steps = steps_of(std::string_view(setting).substr(0, equals));
    if (std::any_of(steps.begin(), steps.end(), [](const std::string& step) { return step.empty(); })) {
      diagnostics.error("M206", place, "has an empty step in its key; write a.b.c=value");
      continue;
    }
    Json* at = &document;
    std::string pointer;
    bool reached = true;
    for (size_t i = 0; i < steps.size() && reached; ++i) {
      const std::string& step = steps[i];
      // "model": "x.onnx" is short for {"path": ...}; a step into it makes it long.
      if (at->is_string() && pointer == "/model") *at = Json{{"path", *at}};
      if (at->is_object()) {
        at = &(*at)[step];
        if (at->is_null() && i + 1 < steps.size()) *at = Json::object();
      } else if (at->is_array() &&
                 std::all_of(step.begin(), step.end(), [](char c) { return c >= '0' && c <= '9'; }) &&
                 step.size() < 9 && std::stoul(step) < at->size()) {
        at = &(*at)[std::stoul(step)];
      } else {
        diagnostics.error(
            "M206", place,
            "'" + step + "' cannot be set: " + (pointer.empty() ? "the manifest" : pointer) + " is " +
                (at->is_array() ? "an array of " + std::to_string(at->size()) + " items, numbered from 0"
                                : "no object"));
        reached = false;
      }
      pointer += "/" + pointer_step(step);
    }
    if (!reached) continue;
    *at = value_of(std::string_view(setting).substr(equals + 1));
    applied.emplace_back(pointer, setting);
  }
  return applied;
}

}  // namespace tenon
