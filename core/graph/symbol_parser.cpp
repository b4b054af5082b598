// Reads the text of dimensions back: sums, products, parentheses, floordiv/mod/min/max calls.
#include "core/graph/symbols.hpp"

namespace tenon {

class SymbolParser {
 public:
  SymbolParser(SymbolTable& table, std::string_view text) : table_(table), text_(text) {}

  std::optional<tn_dim> run() {
    const tn_dim value = sum(0);
    skip();
    if (failed_ || at_ != text_.size()) return std::nullopt;
    return value;
  }

 private:
  static constexpr int max_nesting = 100;

  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  tn_dim fail() {
    failed_ = true;
    return 0;
  }

  tn_dim sum(int nesting) {
    if (nesting > max_nesting) return fail();
    const bool negative = take('-');
    tn_dim value = product(nesting);
    if (negative) value = table_.combine(TN_DIM_SUB, 0, value);
    while (!failed_) {
      if (take('+'))
        value = table_.combine(TN_DIM_ADD, value, product(nesting));
      else if (take('-'))
        value = table_.combine(TN_DIM_SUB, value, product(nesting));
      else
        break;
    }
    return value;
  }

  tn_dim product(int nesting) {
    tn_dim value = factor(nesting);
    while (!failed_ && take('*')) value = table_.combine(TN_DIM_MUL, value, factor(nesting));
    return value;
  }

  tn_dim factor(int nesting) {
    if (take('(')) {
      const tn_dim value = sum(nesting + 1);
      return take(')') ? value : fail();
    }
    skip();
    if (at_ >= text_.size()) return fail();
    const char c = text_[at_];
    if (c >= '0' && c <= '9') return digits();
    std::string name;
    if (c == '\'') {
      if (!quoted_name(name)) return fail();
      return table_.named(name);
    }
    while (at_ < text_.size() && is_name_char(text_[at_])) name += text_[at_++];
    if (name.empty()) return fail();
    static constexpr std::pair<std::string_view, tn_dim_op> functions[] = {
        {"floordiv", TN_DIM_FLOORDIV}, {"mod", TN_DIM_MOD}, {"min", TN_DIM_MIN}, {"max", TN_DIM_MAX_OF}};
    for (const auto& [function, op] : functions) {
      if (name != function) continue;
      if (!take('(')) return fail();
      const tn_dim a = sum(nesting + 1);
      if (!take(',')) return fail();
      const tn_dim b = sum(nesting + 1);
      return take(')') ? table_.combine(op, a, b) : fail();
    }
    return table_.named(name);
  }

  tn_dim digits() {
    int64_t value = 0;
    while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') {
      if (__builtin_mul_overflow(value, int64_t(10), &value) ||
          __builtin_add_overflow(value, int64_t(text_[at_] - '0'), &value))
        return fail();
      ++at_;
    }
    return value;
  }

  bool quoted_name(std::string& name) {
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\'') {
        ++at_;
        return true;
      }
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      name += text_[at_];
    }
    return false;
  }

  static bool is_name_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '#';
  }

  SymbolTable& table_;
  std::string_view text_;
  size_t at_ = 0;
  bool failed_ = false;
};

std::optional<tn_dim> SymbolTable::parse(std::string_view text) { return SymbolParser(*this, text).run(); }

}  // namespace tenon
