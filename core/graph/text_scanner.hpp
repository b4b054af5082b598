// Characters of the text form with their places. Private to the parser.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace tenon {

struct ScanError {
  size_t line, column;
  std::string text;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  [[noreturn]] void fail(std::string text) {
    size_t line = 1, start = 0;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i)
      if (text_[i] == '\n') {
        ++line;
        start = i + 1;
      }
    throw ScanError{line, at_ - start + 1, std::move(text)};
  }

  // Errors about a statement as a whole are placed at its start.
  void begin_statement() {
    peek();
    statement_ = at_;
  }
  [[noreturn]] void fail_statement(std::string text) {
    at_ = statement_;
    fail(std::move(text));
  }

  // The next character that is no space and in no comment; 0 at the end.
  char peek() {
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '#' && (at_ == 0 || text_[at_ - 1] == '\n' || text_[at_ - 1] == ' ') &&
          at_ + 1 < text_.size() && text_[at_ + 1] == ' ') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
        if (at_ == text_.size()) break;
      } else if (c != ' ' && c != '\n' && c != '\t' && c != '\r') {
        return c;
      }
    }
    return 0;
  }
  bool at_end() { return peek() == 0; }

  bool take(std::string_view mark) {
    peek();
    if (text_.substr(at_, mark.size()) != mark) return false;
    at_ += mark.size();
    return true;
  }
  void expect(std::string_view mark) {
    if (!take(mark)) fail("expected '" + std::string(mark) + "', found " + found());
  }
  bool take_word(std::string_view word) {
    peek();
    if (text_.substr(at_, word.size()) != word) return false;
    if (at_ + word.size() < text_.size() && is_word_char(text_[at_ + word.size()])) return false;
    at_ += word.size();
    return true;
  }
  void expect_word(std::string_view word) {
    if (!take_word(word)) fail("expected '" + std::string(word) + "', found " + found());
  }
  // Letters, digits and ._/:- ; never ends in a ':' that introduces a type.
  std::string word() {
    peek();
    const size_t start = at_;
    while (at_ < text_.size() && is_word_char(text_[at_])) ++at_;
    if (at_ > start + 1 && text_[at_ - 1] == ':') --at_;
    if (at_ == start) fail("expected a name, found " + found());
    return std::string(text_.substr(start, at_ - start));
  }
  std::string number_text() {
    peek();
    const size_t start = at_;
    while (at_ < text_.size() && (is_word_char(text_[at_]) || text_[at_] == '+')) ++at_;
    if (at_ == start) fail("expected a number, found " + found());
    return std::string(text_.substr(start, at_ - start));
  }
  int64_t integer() {
    const std::string text = number_text();
    char* end = nullptr;
    const long long value = std::strtoll(text.c_str(), &end, 10);
    if (*end != 0) fail("'" + text + "' is no integer");
    return value;
  }
  // Up to the comma or bracket that ends a dimension: brackets in names are inside quotes, commas of calls in
  // parentheses.
  std::string dimension() {
    peek();
    const size_t start = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '\'') {
        for (++at_; at_ < text_.size() && text_[at_] != '\''; ++at_)
          if (text_[at_] == '\\') ++at_;
      } else if (c == '(') {
        ++depth;
      } else if (c == ')') {
        --depth;
      } else if (depth == 0 && (c == ',' || c == ']')) {
        break;
      }
    }
    if (at_ > text_.size()) at_ = text_.size();
    return std::string(text_.substr(start, at_ - start));
  }
  std::string string() {
    expect("\"");
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\' && at_ < text_.size()) {
        c = text_[at_++];
        if (c == 'n')
          c = '\n';
        else if (c == 't')
          c = '\t';
        else if (c == 'r')
          c = '\r';
        else if (c == 'u')
          c = static_cast<char>(hex4());
      }
      out += c;
    }
    if (at_ >= text_.size()) fail("a text without closing quote");
    ++at_;
    return out;
  }
  // At '{': does a region (or nothing) follow it, rather than an attribute?
  bool brace_opens_body() {
    const size_t kept = at_;
    ++at_;
    const bool body = take_word("region") && peek() == '"';
    at_ = kept;
    return body || peek_after_brace() == '}';
  }

 private:
  char peek_after_brace() {
    const size_t kept = at_;
    ++at_;
    const char c = peek();
    at_ = kept;
    return c;
  }
  unsigned hex4() {
    unsigned value = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      if (at_ >= text_.size()) fail("a \\u without four digits");
      const char c = text_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) fail("a \\u without four digits");
      value = value * 16 + static_cast<unsigned>(digit);
    }
    if (value > 127) fail("\\u is for control characters; write others as they are, in UTF-8");
    return value;
  }
  std::string found() {
    const char c = peek();
    return c == 0 ? std::string("the end") : "'" + std::string(1, c) + "'";
  }
  static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '/' || c == '-' || c == ':';
  }
  std::string_view text_;
  size_t at_ = 0;
  size_t statement_ = 0;
};

}  // namespace tenon
