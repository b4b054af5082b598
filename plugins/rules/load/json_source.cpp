#include "load/json_source.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "load/findings.hpp"

namespace tenon::rules {
namespace {

constexpr size_t max_depth = 64;

/// Builds the tree. The parser tells values in the order of the text, so a cursor that walks the text beside
/// it finds where each token begins; no second parser is needed.
class Builder {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  Builder(Source& source, Finding* finding) : source_(source), finding_(finding) {}

  bool null() { return add(Json::Null) != nullptr; }
  bool boolean(bool v) {
    return set(add(Json::Bool), [&](Json& j) { j.boolean = v; });
  }
  bool number_integer(number_integer_t v) { return integer(v); }
  bool number_unsigned(number_unsigned_t v) {
    if (v > static_cast<number_unsigned_t>(INT64_MAX)) return number_float(static_cast<double>(v), {});
    return integer(static_cast<int64_t>(v));
  }
  bool number_float(number_float_t v, const string_t&) {
    return set(add(Json::Float), [&](Json& j) {
      j.number = v;
      if (j.whole()) j.integer = static_cast<int64_t>(v);
    });
  }
  bool string(string_t& v) {
    return set(add(Json::String), [&](Json& j) { j.text = std::move(v); });
  }
  bool binary(binary_t&) { return false; }
  bool start_object(size_t) { return open(Json::Object); }
  bool start_array(size_t) { return open(Json::Array); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(string_t& name) {
    const uint32_t at = token();
    skip_string();
    if (stack_.back()->find(name))
      return fail("E101", at, "duplicate key '" + name + "'", "keep one of the two");
    pending_ = std::move(name);
    pending_offset_ = at;
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& e) {
    if (finding_->code.empty()) {
      uint32_t at = static_cast<uint32_t>(position ? position - 1 : 0);
      std::string what = e.what();
      const auto cut = what.find("syntax error while parsing ");
      std::string message = cut != std::string::npos
                                ? what.substr(cut + 27)
                                : what.substr(what.find("] ") == std::string::npos ? 0 : what.find("] ") + 2);
      const auto last = message.find("; last read: ");
      if (last != std::string::npos) message.erase(last);
      const bool comma = message.find("unexpected string literal; expected") != std::string::npos ||
                         message.find("unexpected '{'; expected") != std::string::npos;
      // The parser stops behind the token it did not like; the reader looks for its beginning.
      const uint32_t begin = token();
      if (begin < at) at = begin;
      std::string hint;
      if (comma) hint = "is a comma missing on line " + std::to_string(source_.place(cursor_end_).line) + "?";
      const bool range = what.find("out_of_range") != std::string::npos;
      fail(range ? "E103" : "E100", at, range ? "number out of range" : message, hint);
    }
    return false;
  }

 private:
  template <class F>
  bool set(Json* j, F&& f) {
    if (!j) return false;
    f(*j);
    return true;
  }
  bool integer(int64_t v) {
    return set(add(Json::Int), [&](Json& j) {
      j.integer = v;
      j.number = static_cast<double>(v);
    });
  }
  /// Moves the cursor to the next token, over white space, comments and separators.
  uint32_t token() {
    const std::string& t = source_.text;
    while (cursor_ < t.size()) {
      const char c = t[cursor_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':') {
        ++cursor_;
      } else if (c == '/' && cursor_ + 1 < t.size() && t[cursor_ + 1] == '/') {
        while (cursor_ < t.size() && t[cursor_] != '\n') ++cursor_;
      } else if (c == '/' && cursor_ + 1 < t.size() && t[cursor_ + 1] == '*') {
        const auto end = t.find("*/", cursor_ + 2);
        cursor_ = end == std::string::npos ? t.size() : end + 2;
      } else if (cursor_ == 0 && t.compare(0, 3, "\xEF\xBB\xBF") == 0) {
        cursor_ = 3;
      } else {
        break;
      }
    }
    return static_cast<uint32_t>(cursor_);
  }
  void skip_string() {
    const std::string& t = source_.text;
    for (++cursor_; cursor_ < t.size() && t[cursor_] != '"'; ++cursor_)
      if (t[cursor_] == '\\') ++cursor_;
    ++cursor_;
    cursor_end_ = static_cast<uint32_t>(cursor_ - 1);
  }
  Json* add(Json::Kind kind) {
    const uint32_t at = token();
    if (kind == Json::String) {
      skip_string();
    } else if (kind == Json::Array || kind == Json::Object) {
      ++cursor_;
    } else {
      const std::string& t = source_.text;
      while (cursor_ < t.size() && (std::isalnum(static_cast<unsigned char>(t[cursor_])) ||
                                    t[cursor_] == '-' || t[cursor_] == '+' || t[cursor_] == '.'))
        ++cursor_;
    }
    cursor_end_ = static_cast<uint32_t>(cursor_ - 1);
    Json* j = &source_.root;
    uint32_t key_at = at;
    if (!stack_.empty()) {
      Json* parent = stack_.back();
      if (parent->kind == Json::Object) {
        parent->keys.push_back(std::move(pending_));
        key_at = pending_offset_;
      }
      parent->items.emplace_back();
      j = &parent->items.back();
    }
    j->kind = kind;
    j->offset = at;
    j->key_offset = key_at;
    return j;
  }
  bool open(Json::Kind kind) {
    if (stack_.size() >= max_depth)
      return fail("E102", token(), "nested deeper than " + std::to_string(max_depth) + " levels",
                  "rules need far fewer");
    stack_.push_back(add(kind));
    return true;
  }
  bool close() {
    token();
    cursor_end_ = static_cast<uint32_t>(cursor_);
    ++cursor_;
    stack_.pop_back();
    return true;
  }
  bool fail(const char* code, uint32_t at, std::string message, std::string hint) {
    *finding_ = {TN_SEVERITY_ERROR, code, at, std::move(message), std::move(hint)};
    return false;
  }

  Source& source_;
  Finding* finding_;
  size_t cursor_ = 0;
  uint32_t cursor_end_ = 0;  // last byte of the last token
  std::string pending_;
  uint32_t pending_offset_ = 0;
  // Only the newest item of each level grows, so pointers to the open ones stay valid.
  std::vector<Json*> stack_;
};

}  // namespace

const char* kind_name(Json::Kind kind) {
  switch (kind) {
    case Json::Null:
      return "null";
    case Json::Bool:
      return "true or false";
    case Json::Int:
      return "an integer";
    case Json::Float:
      return "a number";
    case Json::String:
      return "a string";
    case Json::Array:
      return "a list";
    case Json::Object:
      return "an object";
  }
  return "?";
}

Source::Place Source::place(uint32_t offset) const {
  Place p{1, 1};
  for (uint32_t i = 0; i < offset && i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '\n') {
      ++p.line;
      p.column = 1;
    } else if ((c & 0xC0u) != 0x80u) {
      ++p.column;
    }
  }
  return p;
}

std::string_view Source::line_text(uint32_t offset) const {
  const std::string_view t = text;
  size_t from = offset < t.size() ? offset : t.size();
  while (from > 0 && t[from - 1] != '\n') --from;
  size_t to = from;
  while (to < t.size() && t[to] != '\n' && t[to] != '\r') ++to;
  return t.substr(from, to - from);
}

std::string Source::pointer(uint32_t offset) const {
  std::string where;
  const Json* j = &root;
  for (;;) {
    const Json* next = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < j->items.size(); ++i) {
      if (j->items[i].key_offset > offset) break;
      next = &j->items[i];
      at = i;
    }
    if (!next) return where;
    where += "/" + (j->kind == Json::Object ? j->keys[at] : std::to_string(at));
    j = next;
  }
}

uint32_t Source::inside(const Json& value, size_t index) const {
  size_t at = value.offset + 1;
  size_t seen = 0;
  while (seen < index && at < text.size() && text[at] != '"') {
    if (text[at] == '\\')
      at += at + 1 < text.size() && text[at + 1] == 'u' ? 6 : 2;
    else
      ++at;
    ++seen;
  }
  return static_cast<uint32_t>(at < text.size() ? at : text.size());
}

bool parse_json(Source& source, Finding* finding) {
  *finding = {};
  if (source.text.size() > (64u << 20)) {
    *finding = {TN_SEVERITY_ERROR, "E102", 0, "the file is larger than 64 MiB", "split it"};
    return false;
  }
  // The parser takes a zero byte for the end and would not look at what follows.
  if (const size_t zero = source.text.find('\0'); zero != std::string::npos) {
    *finding = {TN_SEVERITY_ERROR, "E100", static_cast<uint32_t>(zero), "a zero byte",
                "is this a text file?"};
    return false;
  }
  Builder builder(source, finding);
  source.root = {};
  const bool ok = nlohmann::json::sax_parse(source.text.begin(), source.text.end(), &builder,
                                            nlohmann::json::input_format_t::json, true, true);
  if (!ok && finding->code.empty()) *finding = {TN_SEVERITY_ERROR, "E100", 0, "not JSON", ""};
  return ok;
}

}  // namespace tenon::rules
