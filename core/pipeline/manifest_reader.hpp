// Checked reading of a manifest's values: every finding is reported with its place, and reading goes on.
#pragma once
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/pipeline/json_source.hpp"

namespace tenon {

// One place in a manifest: a value and the pointer to it.
struct JsonPlace {
  const Json* value;
  std::string pointer;
  std::string key() const { return pointer.substr(pointer.rfind('/') + 1); }
};

class ManifestReader {
 public:
  ManifestReader(const JsonSource& source, const Json& document, Diagnostics& diagnostics)
      : source_(source), document_(document), diagnostics_(diagnostics) {}

  // Pointers that --set gave a value, with the text of the option: findings below them name it instead of a
  // line.
  void set_overrides(std::vector<std::pair<std::string, std::string>> overrides) {
    overrides_ = std::move(overrides);
  }

  JsonPlace root() const { return {&document_, ""}; }
  static JsonPlace child(const JsonPlace& parent, const std::string& key);
  static JsonPlace element(const JsonPlace& parent, size_t index);
  static bool has(const JsonPlace& parent, const std::string& key) { return parent.value->contains(key); }

  void error(const char* code, const JsonPlace& at, const std::string& text, const std::string& hint = {},
             JsonSource::Part part = JsonSource::Part::value);
  void warning(const char* code, const JsonPlace& at, const std::string& text, const std::string& hint = {});
  void note(const char* code, const JsonPlace& at, const std::string& text);
  std::string where(const JsonPlace& at) const;  // "pipeline.json:3:5" or "--set a.b=c"

  // False, with an error, when the value is of another kind.
  bool expect_object(const JsonPlace& at);
  bool expect_array(const JsonPlace& at);
  // Every key must be among `known`; others are errors with the nearest.
  void check_keys(const JsonPlace& object, std::span<const std::string> known);

  // The value, or the fallback after an error (or when the key is absent).
  std::string text(const JsonPlace& parent, const char* key, std::string fallback, bool may_be_empty = false);
  bool boolean(const JsonPlace& parent, const char* key, bool fallback);
  int64_t integer(const JsonPlace& parent, const char* key, int64_t fallback, int64_t min, int64_t max);
  std::string choice(const JsonPlace& parent, const char* key, std::string fallback,
                     std::span<const std::string> allowed);
  std::vector<std::string> texts(const JsonPlace& parent, const char* key);
  static std::string kind_name(const Json& value);  // "a string", "an object"

 private:
  void report(tn_severity severity, const char* code, const JsonPlace& at, const std::string& text,
              const std::string& hint, JsonSource::Part part);
  const std::string* override_of(const std::string& pointer) const;
  const JsonSource& source_;
  const Json& document_;
  Diagnostics& diagnostics_;
  std::vector<std::pair<std::string, std::string>> overrides_;
};

}  // namespace tenon
