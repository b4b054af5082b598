// A rule file in memory: its text, its JSON as a tree that knows where each key and value stands, and lines.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::rules {

struct Json {
  enum Kind : uint8_t { Null, Bool, Int, Float, String, Array, Object };
  Kind kind = Null;
  bool boolean = false;
  int64_t integer = 0;
  double number = 0;              // Int and Float
  uint32_t offset = 0;            // of the value's first byte
  uint32_t key_offset = 0;        // members: of the key's opening quote; others: offset
  std::string text;               // String
  std::vector<std::string> keys;  // Object: parallel to items
  std::vector<Json> items;

  /// 2, and 2.0 as JSON sees no difference.
  bool whole() const {
    return kind == Int || (kind == Float && number >= -9007199254740992.0 && number <= 9007199254740992.0 &&
                           static_cast<double>(static_cast<int64_t>(number)) == number);
  }
  bool is_number() const { return kind == Int || kind == Float; }
  bool is_string() const { return kind == String; }
  bool is_array() const { return kind == Array; }
  bool is_object() const { return kind == Object; }
  const Json* find(std::string_view key) const {
    for (size_t i = 0; i < keys.size(); ++i)
      if (keys[i] == key) return &items[i];
    return nullptr;
  }
};
const char* kind_name(Json::Kind kind);

struct Finding;

struct Source {
  std::string path;
  std::string text;
  bool builtin = false;
  Json root;

  struct Place {
    uint32_t line, column;
  };  // from 1; columns count characters, not bytes
  Place place(uint32_t offset) const;
  std::string_view line_text(uint32_t offset) const;
  /// "/pattern/nodes/conv/outs" of the innermost key or value that begins at or before offset.
  std::string pointer(uint32_t offset) const;
  /// Where character `index` of the string value stands in the file, escapes counted.
  uint32_t inside(const Json& string_value, size_t index) const;
};

/// Parses source.text into source.root. False when it is no JSON; the one finding says where and why.
bool parse_json(Source& source, Finding* finding);

}  // namespace tenon::rules
