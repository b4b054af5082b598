// A JSON file (// and /* */ comments allowed) that remembers where everything in it stands, and the one form
// in which findings about such files are reported.
#pragma once
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/diagnostics.hpp"

namespace tenon {

using Json = nlohmann::ordered_json;

struct JsonPosition {
  uint32_t line = 0;    // from 1
  uint32_t column = 0;  // from 1, in characters (code points)
  uint32_t length = 1;  // characters to underline
};

class JsonSource {
 public:
  // A syntax error, duplicate key, or nesting above 256 goes to diagnostics with its place; then there is no
  // result.
  static std::optional<JsonSource> parse(std::string path, std::string text, Diagnostics& diagnostics);
  static std::optional<JsonSource> read(const std::filesystem::path& path, Diagnostics& diagnostics);

  const Json& root() const { return root_; }
  const std::string& path() const { return path_; }  // as given, for messages
  const std::string& text() const { return text_; }

  enum class Part { value, key };
  // Of "/runtime/threads"; the nearest enclosing thing that exists otherwise (a value given by --set has no
  // place).
  JsonPosition locate(const std::string& pointer, Part part = Part::value) const;

  // where = "file:line:col"; text = "unknown key 'treads' [/runtime/treads]", the source line, a caret, the
  // hint.
  Diagnostic finding(tn_severity severity, std::string code, const std::string& pointer,
                     const std::string& text, const std::string& hint = {}, Part part = Part::value) const;

 private:
  struct Place {
    uint32_t key_begin, key_end;  // byte offsets; equal: no key
    uint32_t value_begin, value_end;
  };
  JsonPosition position(uint32_t begin, uint32_t end) const;
  std::string excerpt(
      const JsonPosition& at) const;  // the source line and a caret, each on a line of its own
  friend class JsonLocator;
  std::string path_, text_;
  Json root_;
  std::unordered_map<std::string, Place> places_;
  std::vector<uint32_t> line_starts_;
};

// Escapes ~ and / of one step of a JSON pointer.
std::string pointer_step(std::string_view key);

}  // namespace tenon
