#include "core/pipeline/json_source.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/files.hpp"
#include "core/base/text.hpp"

namespace tenon {

namespace {

constexpr uint32_t max_depth = 256;
constexpr uint64_t max_file_bytes = uint64_t{64} << 20;
constexpr size_t shown_line_bytes = 160;

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The end of a comment that begins at `at`, or `at` when none does there.
uint32_t skip_comment(std::string_view text, uint32_t at) {
  if (text.substr(at, 2) == "//") return static_cast<uint32_t>(std::min(text.find('\n', at), text.size()));
  if (text.substr(at, 2) == "/*") {
    const size_t end = text.find("*/", at + 2);
    return static_cast<uint32_t>(end == std::string_view::npos ? text.size() : end + 2);
  }
  return at;
}

// The end of the string literal that begins at `at`.
uint32_t skip_string(std::string_view text, uint32_t at) {
  for (++at; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\') ++at;
  }
  return static_cast<uint32_t>(std::min<size_t>(at + size_t{1}, text.size()));
}

}  // namespace

std::string pointer_step(std::string_view key) {
  std::string step;
  for (const char c : key) {
    if (c == '~') {
      step += "~0";
    } else if (c == '/') {
      step += "~1";
    } else {
      step += c;
    }
  }
  return step;
}

// Walks the tokens of a text that has parsed, and notes where each key and value stands.
class JsonLocator {
 public:
  JsonLocator(JsonSource& source, Diagnostics& diagnostics)
      : source_(source), text_(source.text_), diagnostics_(diagnostics) {}

  // The byte after the one that nests too deep; 0: none does.
  static uint32_t too_deep(std::string_view text) {
    uint32_t depth = 0;
    for (uint32_t at = 0; at < text.size();) {
      if (const uint32_t end = skip_comment(text, at); end != at) {
        at = end;
      } else if (text[at] == '"') {
        at = skip_string(text, at);
      } else {
        if (text[at] == '{' || text[at] == '[') {
          if (++depth > max_depth) return at + 1;
        } else if (text[at] == '}' || text[at] == ']') {
          if (depth > 0) --depth;
        }
        ++at;
      }
    }
    return 0;
  }

  void run() {
    while (skip_blank()) {
      const char c = text_[at_];
      if (c == '{' || c == '[') {
        const std::string pointer = begin_value();
        levels_.push_back({pointer, c == '{', at_, 0, {}, {}, 0, 0});
        ++at_;
      } else if (c == '}' || c == ']') {
        ++at_;
        source_.places_[levels_.back().pointer].value_end = at_;
        levels_.pop_back();
        end_value();
      } else if (c == ',' || c == ':') {
        ++at_;
      } else if (c == '"' && !levels_.empty() && levels_.back().is_object && levels_.back().key_end == 0) {
        take_key();
      } else {
        const std::string pointer = begin_value();
        at_ = c == '"' ? skip_string(text_, at_) : literal_end();
        source_.places_[pointer].value_end = at_;
        end_value();
      }
    }
  }

 private:
  struct Level {
    std::string pointer;
    bool is_object;
    uint32_t begin;
    size_t index;  // of the next element, in arrays
    std::set<std::string> keys;
    std::string key;
    uint32_t key_begin, key_end;  // end 0: a key comes next
  };

  bool skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else if (const uint32_t end = skip_comment(text_, at_); end != at_) {
        at_ = end;
      } else {
        return true;
      }
    }
    return false;
  }

  uint32_t literal_end() const {
    uint32_t end = at_;
    while (end < text_.size() &&
           std::string_view(" \t\r\n,:]}/\"").find(text_[end]) == std::string_view::npos)
      ++end;
    return std::max(end, at_ + 1);
  }

  void take_key() {
    Level& level = levels_.back();
    level.key_begin = at_;
    at_ = skip_string(text_, at_);
    level.key_end = at_;
    level.key =
        nlohmann::json::parse(text_.substr(level.key_begin, at_ - level.key_begin)).get<std::string>();
    if (!level.keys.insert(level.key).second) {
      const std::string pointer = level.pointer + "/" + pointer_step(level.key);
      const JsonPosition first = source_.locate(pointer, JsonSource::Part::key);
      const JsonPosition again = source_.position(level.key_begin, level.key_end);
      diagnostics_.error(
          "M202", source_.path_ + ":" + std::to_string(again.line) + ":" + std::to_string(again.column),
          "key '" + level.key + "' appears twice [" + pointer + "]; the first is in line " +
              std::to_string(first.line) + "; remove one of the two");
    }
  }

  std::string begin_value() {
    JsonSource::Place place{at_, at_, at_, at_};
    std::string pointer;
    if (!levels_.empty()) {
      Level& level = levels_.back();
      pointer =
          level.pointer + "/" + (level.is_object ? pointer_step(level.key) : std::to_string(level.index));
      if (level.is_object) {
        place.key_begin = level.key_begin;
        place.key_end = level.key_end;
      }
    }
    source_.places_[pointer] = place;
    return pointer;
  }

  void end_value() {
    if (levels_.empty()) return;
    ++levels_.back().index;
    levels_.back().key_end = 0;
  }

  JsonSource& source_;
  std::string_view text_;
  Diagnostics& diagnostics_;
  uint32_t at_ = 0;
  std::vector<Level> levels_;
};

JsonPosition JsonSource::position(uint32_t begin, uint32_t end) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), begin);
  const uint32_t line_start = *(after - 1);
  JsonPosition position;
  position.line = static_cast<uint32_t>(after - line_starts_.begin());
  position.column = 1;
  for (uint32_t at = line_start; at < begin && at < text_.size(); ++at)
    position.column += is_continuation(text_[at]) ? 0 : 1;
  position.length = 0;
  for (uint32_t at = begin; at < end && at < text_.size() && text_[at] != '\n' && text_[at] != '\r'; ++at)
    position.length += is_continuation(text_[at]) ? 0 : 1;
  position.length = std::max(position.length, 1u);
  return position;
}

std::optional<JsonSource> JsonSource::parse(std::string path, std::string text, Diagnostics& diagnostics) {
  JsonSource source;
  source.path_ = std::move(path);
  source.text_ = std::move(text);
  if (source.text_.starts_with("\xEF\xBB\xBF")) source.text_.erase(0, 3);
  if (source.text_.size() > max_file_bytes) {
    diagnostics.error("M201", source.path_,
                      "has " + format_bytes(source.text_.size()) + "; at most " +
                          format_bytes(max_file_bytes) + " are read");
    return std::nullopt;
  }
  source.line_starts_.push_back(0);
  for (uint32_t at = 0; at < source.text_.size(); ++at) {
    if (source.text_[at] == '\n') source.line_starts_.push_back(at + 1);
  }
  const auto fail = [&](uint32_t byte, const std::string& what) {
    const JsonPosition at = source.position(byte, byte + 1);
    diagnostics.error("M201", source.path_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column),
                      what + source.excerpt(at));
    return std::nullopt;
  };
  // The parser takes a zero byte for the end and would not look at what follows.
  if (const size_t zero = source.text_.find('\0'); zero != std::string::npos)
    return fail(static_cast<uint32_t>(zero), "is not valid JSON: a zero byte; is this a text file?");
  if (const uint32_t byte = JsonLocator::too_deep(source.text_); byte != 0)
    return fail(byte - 1, "nests deeper than " + std::to_string(max_depth) + " levels; make it flatter");
  try {
    source.root_ = Json::parse(source.text_, nullptr, true, true);
  } catch (const Json::parse_error& error) {
    // "[json.exception.parse_error.101] parse error at line 3, column 5: <what>"
    std::string what = error.what();
    if (const size_t column = what.find(", column "); column != std::string::npos) {
      const size_t colon = what.find(": ", column);
      if (colon != std::string::npos) what.erase(0, colon + 2);
    } else if (const size_t end = what.find("] "); end != std::string::npos) {
      what.erase(0, end + 2);
    }
    const size_t byte = std::min(error.byte == 0 ? 0 : error.byte - 1, source.text_.size());
    return fail(static_cast<uint32_t>(byte), "is not valid JSON: " + what);
  } catch (const Json::exception& error) {
    // out_of_range 406: "number overflow parsing '1e999'"
    std::string what = error.what();
    size_t byte = 0;
    if (const size_t quote = what.find('\''); quote != std::string::npos) {
      const std::string number = what.substr(quote + 1, what.rfind('\'') - quote - 1);
      byte = std::min(source.text_.find(number), source.text_.size());
    }
    if (const size_t end = what.find("] "); end != std::string::npos) what.erase(0, end + 2);
    return fail(static_cast<uint32_t>(byte), "is not valid JSON: " + what);
  }
  const size_t errors = diagnostics.error_count();
  JsonLocator(source, diagnostics).run();
  if (diagnostics.error_count() != errors) return std::nullopt;
  return source;
}

std::optional<JsonSource> JsonSource::read(const std::filesystem::path& path, Diagnostics& diagnostics) {
  try {
    return parse(path.string(), read_text_file(path, max_file_bytes), diagnostics);
  } catch (const Error& error) {
    for (const Diagnostic& diagnostic : error.diagnostics) diagnostics.add(diagnostic);
    return std::nullopt;
  }
}

JsonPosition JsonSource::locate(const std::string& pointer, Part part) const {
  for (std::string wanted = pointer;; wanted.erase(wanted.rfind('/'))) {
    if (const auto found = places_.find(wanted); found != places_.end()) {
      const Place& place = found->second;
      const bool use_key =
          place.key_begin != place.key_end && (part == Part::key || wanted.size() != pointer.size());
      return use_key ? position(place.key_begin, place.key_end)
                     : position(place.value_begin, place.value_end);
    }
    if (wanted.empty() || wanted.find('/') == std::string::npos) return {};
  }
}

std::string JsonSource::excerpt(const JsonPosition& at) const {
  if (at.line == 0) return {};
  const uint32_t begin = line_starts_[at.line - 1];
  std::string line = text_.substr(begin, text_.find('\n', begin) - begin);
  if (!line.empty() && line.back() == '\r') line.pop_back();
  uint32_t column = at.column;
  // Long lines are shown from a little before the place.
  size_t from = 0;
  if (line.size() > shown_line_bytes) {
    size_t place = 0;
    for (uint32_t passed = 1; passed < column && place < line.size(); ++place)
      passed += is_continuation(line[place]) ? 0 : 1;
    from = place > shown_line_bytes / 2 ? place - shown_line_bytes / 2 : 0;
    while (from < line.size() && is_continuation(line[from])) ++from;
    for (size_t i = 0; i < from; ++i) column -= is_continuation(line[i]) ? 0 : 1;
    size_t length = std::min(shown_line_bytes, line.size() - from);
    while (from + length < line.size() && is_continuation(line[from + length])) ++length;
    line = line.substr(from, length);
  }
  std::replace(line.begin(), line.end(), '\t', ' ');
  uint32_t width = 0;
  for (const char c : line) width += is_continuation(c) ? 0 : 1;
  const uint32_t marks = std::max(1u, std::min(at.length, width + 1 >= column ? width + 1 - column : 1u));
  const std::string number = std::to_string(at.line);
  return "\n  " + number + " | " + line + "\n  " + std::string(number.size(), ' ') + " | " +
         std::string(column - 1, ' ') + "^" + std::string(marks - 1, '~');
}

Diagnostic JsonSource::finding(tn_severity severity, std::string code, const std::string& pointer,
                               const std::string& text, const std::string& hint, Part part) const {
  const JsonPosition at = locate(pointer, part);
  Diagnostic diagnostic;
  diagnostic.severity = severity;
  diagnostic.code = std::move(code);
  diagnostic.where = path_ + ":" + std::to_string(at.line) + ":" + std::to_string(at.column);
  diagnostic.text = text + (pointer.empty() ? "" : " [" + pointer + "]") + excerpt(at) +
                    (hint.empty() ? "" : "\n  hint: " + hint);
  return diagnostic;
}

}  // namespace tenon
