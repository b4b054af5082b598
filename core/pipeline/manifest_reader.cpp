#include "core/pipeline/manifest_reader.hpp"

#include "core/base/text.hpp"

namespace tenon {

JsonPlace ManifestReader::child(const JsonPlace& parent, const std::string& key) {
  return {&parent.value->at(key), parent.pointer + "/" + pointer_step(key)};
}

JsonPlace ManifestReader::element(const JsonPlace& parent, size_t index) {
  return {&parent.value->at(index), parent.pointer + "/" + std::to_string(index)};
}

const std::string* ManifestReader::override_of(const std::string& pointer) const {
  // The last one given wins, as its value did.
  for (auto item = overrides_.rbegin(); item != overrides_.rend(); ++item) {
    if (pointer.starts_with(item->first) &&
        (pointer.size() == item->first.size() || pointer[item->first.size()] == '/'))
      return &item->second;
  }
  return nullptr;
}

std::string ManifestReader::where(const JsonPlace& at) const {
  if (const std::string* option = override_of(at.pointer)) return "--set " + *option;
  return source_.finding(TN_SEVERITY_INFO, "", at.pointer, "").where;
}

void ManifestReader::report(tn_severity severity, const char* code, const JsonPlace& at,
                            const std::string& text, const std::string& hint, JsonSource::Part part) {
  if (const std::string* option = override_of(at.pointer)) {
    diagnostics_.add(severity, code, "--set " + *option,
                     text + " [" + at.pointer + "]" + (hint.empty() ? "" : "\n  hint: " + hint));
    return;
  }
  diagnostics_.add(source_.finding(severity, code, at.pointer, text, hint, part));
}

void ManifestReader::error(const char* code, const JsonPlace& at, const std::string& text,
                           const std::string& hint, JsonSource::Part part) {
  report(TN_SEVERITY_ERROR, code, at, text, hint, part);
}

void ManifestReader::warning(const char* code, const JsonPlace& at, const std::string& text,
                             const std::string& hint) {
  report(TN_SEVERITY_WARNING, code, at, text, hint, JsonSource::Part::value);
}

void ManifestReader::note(const char* code, const JsonPlace& at, const std::string& text) {
  diagnostics_.info(code, where(at), text);
}

std::string ManifestReader::kind_name(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return "a boolean";
    case Json::value_t::number_float:
      return "a fraction";
    default:
      return "an integer";
  }
}

bool ManifestReader::expect_object(const JsonPlace& at) {
  if (at.value->is_object()) return true;
  error("M204", at, "expected an object; found " + kind_name(*at.value));
  return false;
}

bool ManifestReader::expect_array(const JsonPlace& at) {
  if (at.value->is_array()) return true;
  error("M204", at, "expected an array; found " + kind_name(*at.value));
  return false;
}

void ManifestReader::check_keys(const JsonPlace& object, std::span<const std::string> known) {
  for (const auto& item : object.value->items()) {
    bool is_known = false;
    for (const std::string& key : known) is_known = is_known || key == item.key();
    if (is_known) continue;
    const std::vector<std::string> nearest = nearest_names(item.key(), known);
    error("M203", child(object, item.key()), "unknown key '" + item.key() + "'",
          nearest.empty() ? "known here: " + join(known, ", ") : "did you mean '" + nearest.front() + "'?",
          JsonSource::Part::key);
  }
}

std::string ManifestReader::text(const JsonPlace& parent, const char* key, std::string fallback,
                                 bool may_be_empty) {
  if (!has(parent, key)) return fallback;
  const JsonPlace at = child(parent, key);
  if (!at.value->is_string()) {
    error("M204", at, "expected a string; found " + kind_name(*at.value));
    return fallback;
  }
  std::string value = at.value->get<std::string>();
  if (value.empty() && !may_be_empty) {
    error("M205", at, "is empty; give a value or leave the key out");
    return fallback;
  }
  if (value.find('\0') != std::string::npos) {
    error("M205", at, "has a zero byte; remove it");
    return fallback;
  }
  return value;
}

bool ManifestReader::boolean(const JsonPlace& parent, const char* key, bool fallback) {
  if (!has(parent, key)) return fallback;
  const JsonPlace at = child(parent, key);
  if (at.value->is_boolean()) return at.value->get<bool>();
  error("M204", at, "expected true or false; found " + kind_name(*at.value));
  return fallback;
}

int64_t ManifestReader::integer(const JsonPlace& parent, const char* key, int64_t fallback, int64_t min,
                                int64_t max) {
  if (!has(parent, key)) return fallback;
  const JsonPlace at = child(parent, key);
  const std::string range = std::to_string(min) + ".." + std::to_string(max);
  if (!at.value->is_number_integer()) {
    error("M204", at, "expected an integer " + range + "; found " + kind_name(*at.value));
    return fallback;
  }
  const bool is_huge =
      at.value->is_number_unsigned() && at.value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX);
  const int64_t value = is_huge ? INT64_MAX : at.value->get<int64_t>();
  if (is_huge || value < min || value > max) {
    error("M205", at, "is " + at.value->dump() + "; expected " + range);
    return fallback;
  }
  return value;
}

std::string ManifestReader::choice(const JsonPlace& parent, const char* key, std::string fallback,
                                   std::span<const std::string> allowed) {
  if (!has(parent, key)) return fallback;
  const JsonPlace at = child(parent, key);
  if (!at.value->is_string()) {
    error("M204", at, "expected one of " + join(allowed, ", ") + "; found " + kind_name(*at.value));
    return fallback;
  }
  std::string value = at.value->get<std::string>();
  for (const std::string& name : allowed) {
    if (name == value) return value;
  }
  const std::vector<std::string> nearest = nearest_names(value, allowed);
  error("M205", at, "unknown value '" + value + "'; expected one of " + join(allowed, ", "),
        nearest.empty() ? "" : "did you mean '" + nearest.front() + "'?");
  return fallback;
}

std::vector<std::string> ManifestReader::texts(const JsonPlace& parent, const char* key) {
  std::vector<std::string> values;
  if (!has(parent, key)) return values;
  const JsonPlace at = child(parent, key);
  if (!expect_array(at)) return values;
  for (size_t i = 0; i < at.value->size(); ++i) {
    const JsonPlace item = element(at, i);
    if (item.value->is_string()) {
      values.push_back(item.value->get<std::string>());
    } else {
      error("M204", item, "expected a string; found " + kind_name(*item.value));
    }
  }
  return values;
}

}  // namespace tenon
