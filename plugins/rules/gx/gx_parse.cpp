#include <cctype>
#include <cstdlib>

#include "gx/gx.hpp"
#include "load/findings.hpp"

namespace tenon::rules::gx {
namespace {

constexpr size_t max_length = 2000;  // bounds recursion too: each level eats at least one character
constexpr int max_depth = 100;

struct Token {
  enum Kind { End, Number, Text, Word, Sign, Bad } kind = End;
  size_t column = 0;
  std::string text;
  double number = 0;
  bool is_int = false;
};

class Parser {
 public:
  Parser(std::string_view text, Program* program) : text_(text), program_(*program) { advance(); }
  uint32_t run() {
    const uint32_t root = conditional();
    if (!failed() && token_.kind != Token::End) unexpected("the end of the expression");
    return root;
  }
  bool failed() const { return !error_.code.empty(); }
  const Error& error() const { return error_; }

 private:
  void advance() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    token_ = {};
    token_.column = at_;
    if (at_ >= text_.size()) return;
    const char c = text_[at_];
    const auto digit = [&](size_t i) {
      return i < text_.size() && std::isdigit(static_cast<unsigned char>(text_[i]));
    };
    if (digit(at_) || (c == '.' && digit(at_ + 1))) {
      size_t end = at_;
      bool whole = true;
      while (digit(end)) ++end;
      if (end < text_.size() && text_[end] == '.') {
        whole = false;
        ++end;
        while (digit(end)) ++end;
      }
      if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
        size_t e = end + 1;
        if (e < text_.size() && (text_[e] == '+' || text_[e] == '-')) ++e;
        if (digit(e)) {
          whole = false;
          end = e;
          while (digit(end)) ++end;
        }
      }
      token_.kind = Token::Number;
      token_.text = std::string(text_.substr(at_, end - at_));
      token_.number = std::strtod(token_.text.c_str(), nullptr);
      token_.is_int = whole;
      at_ = end;
    } else if (std::isalpha(static_cast<unsigned char>(c)) || c == '_') {
      size_t end = at_;
      while (end < text_.size() &&
             (std::isalnum(static_cast<unsigned char>(text_[end])) || text_[end] == '_'))
        ++end;
      token_.kind = Token::Word;
      token_.text = std::string(text_.substr(at_, end - at_));
      at_ = end;
    } else if (c == '\'' || c == '"') {
      const size_t end = text_.find(c, at_ + 1);
      if (end == std::string_view::npos) {
        token_.kind = Token::Bad;
        fail(at_, "text without a closing quote");
        return;
      }
      token_.kind = Token::Text;
      token_.text = std::string(text_.substr(at_ + 1, end - at_ - 1));
      at_ = end + 1;
    } else {
      static constexpr std::string_view two[] = {"**", "//", "==", "!=", "<=", ">="};
      token_.kind = Token::Sign;
      token_.text = std::string(1, c);
      for (const auto t : two)
        if (text_.substr(at_, 2) == t) token_.text = std::string(t);
      if (std::string_view("+-*/%<>()[],.:!=").find(c) == std::string_view::npos || token_.text == "!")
        token_.kind = Token::Bad;
      at_ += token_.text.size();
      if (token_.kind == Token::Bad)
        fail(token_.column, "character '" + token_.text + "' has no meaning here");
    }
  }
  void fail(size_t column, std::string message, std::string hint = {}) {
    if (failed()) return;
    error_ = {"E300", column, std::move(message), std::move(hint)};
  }
  void unexpected(const char* wanted) {
    std::string hint;
    if (token_.text == "=") hint = "to compare, write '=='";
    if (token_.text == "&" || token_.text == "|") hint = "write 'and', 'or'";
    fail(token_.column,
         std::string("expected ") + wanted + ", found " +
             (token_.kind == Token::End ? "the end" : "'" + token_.text + "'"),
         hint);
  }
  bool is(std::string_view s) const {
    return (token_.kind == Token::Sign || token_.kind == Token::Word) && token_.text == s;
  }
  bool take(std::string_view s) {
    if (!is(s)) return false;
    advance();
    return true;
  }
  void expect(const char* s) {
    if (!take(s)) unexpected((std::string("'") + s + "'").c_str());
  }
  uint32_t add(Op op, size_t column, std::vector<uint32_t> args = {}) {
    Expr e;
    e.op = op;
    e.column = static_cast<uint16_t>(column);
    e.args = std::move(args);
    program_.nodes.push_back(std::move(e));
    return static_cast<uint32_t>(program_.nodes.size() - 1);
  }

  uint32_t conditional() {
    if (++depth_ > max_depth) fail(token_.column, "nested too deeply");
    uint32_t value = failed() ? 0 : disjunction();
    if (!failed() && is("if")) {
      const size_t column = token_.column;
      advance();
      const uint32_t condition = disjunction();
      expect("else");
      const uint32_t otherwise = failed() ? 0 : conditional();
      value = add(Op::If, column, {value, condition, otherwise});
    }
    --depth_;
    return value;
  }
  uint32_t disjunction() {
    uint32_t left = conjunction();
    while (!failed() && is("or")) {
      const size_t column = token_.column;
      advance();
      left = add(Op::Or, column, {left, conjunction()});
    }
    return left;
  }
  uint32_t conjunction() {
    uint32_t left = negation();
    while (!failed() && is("and")) {
      const size_t column = token_.column;
      advance();
      left = add(Op::And, column, {left, negation()});
    }
    return left;
  }
  uint32_t negation() {
    const size_t column = token_.column;
    size_t count = 0;
    while (!failed() && take("not")) ++count;
    uint32_t e = comparison();
    for (size_t i = 0; i < count && !failed(); ++i) e = add(Op::Not, column, {e});
    return e;
  }
  bool relation(Relation* r) {
    if (take("=="))
      *r = Relation::Eq;
    else if (take("!="))
      *r = Relation::Ne;
    else if (take("<="))
      *r = Relation::Le;
    else if (take(">="))
      *r = Relation::Ge;
    else if (take("<"))
      *r = Relation::Lt;
    else if (take(">"))
      *r = Relation::Gt;
    else if (take("in"))
      *r = Relation::In;
    else if (is("not")) {
      advance();
      expect("in");
      *r = Relation::NotIn;
    } else
      return false;
    return !failed();
  }
  uint32_t comparison() {
    const uint32_t first = sum();
    std::vector<uint32_t> args{first};
    std::vector<Relation> relations;
    Relation r;
    const size_t column = token_.column;
    while (!failed() && relation(&r)) {
      relations.push_back(r);
      args.push_back(sum());
    }
    if (relations.empty() || failed()) return first;
    const uint32_t e = add(Op::Compare, column, std::move(args));
    program_.nodes[e].relations = std::move(relations);
    return e;
  }
  uint32_t sum() {
    uint32_t left = product();
    while (!failed() && (is("+") || is("-"))) {
      const Op op = is("+") ? Op::Add : Op::Sub;
      const size_t column = token_.column;
      advance();
      left = add(op, column, {left, product()});
    }
    return left;
  }
  uint32_t product() {
    uint32_t left = unary();
    while (!failed() && (is("*") || is("/") || is("//") || is("%"))) {
      const Op op = is("*") ? Op::Mul : is("/") ? Op::Div : is("//") ? Op::FloorDiv : Op::Mod;
      const size_t column = token_.column;
      advance();
      left = add(op, column, {left, unary()});
    }
    return left;
  }
  uint32_t unary() {
    const size_t column = token_.column;
    size_t count = 0;
    while (!failed() && (is("-") || is("+"))) {
      count += is("-");
      advance();
    }
    uint32_t e = power();
    for (size_t i = 0; i < count && !failed(); ++i) e = add(Op::Negate, column, {e});
    return e;
  }
  uint32_t power() {
    const uint32_t base = postfix();
    if (failed() || !is("**")) return base;
    const size_t column = token_.column;
    advance();
    if (++depth_ > max_depth) fail(column, "nested too deeply");
    const uint32_t exponent = failed() ? 0 : unary();
    --depth_;
    return add(Op::Pow, column, {base, exponent});
  }
  uint32_t postfix() {
    uint32_t e = atom();
    while (!failed()) {
      const size_t column = token_.column;
      if (take(".")) {
        if (token_.kind != Token::Word) {
          unexpected("the name of an attribute");
          break;
        }
        const std::string name = token_.text;
        advance();
        e = add(Op::Attribute, column, {e});
        program_.nodes[e].text = name;
      } else if (take("[")) {
        uint32_t from = none, to = none;
        bool slice = false;
        if (!is(":")) from = conditional();
        if (take(":")) {
          slice = true;
          if (!is("]")) to = conditional();
        }
        expect("]");
        if (failed()) break;
        e = slice ? add(Op::Slice, column, {e, from, to}) : add(Op::Index, column, {e, from});
      } else {
        break;
      }
    }
    return e;
  }
  std::vector<uint32_t> list_until(const char* close) {
    std::vector<uint32_t> items;
    while (!failed() && !is(close)) {
      items.push_back(conditional());
      if (!take(",")) break;
    }
    expect(close);
    return items;
  }
  uint32_t atom() {
    if (failed()) return 0;
    const Token t = token_;
    if (t.kind == Token::Number) {
      advance();
      const uint32_t e = add(Op::Number, t.column);
      program_.nodes[e].number = t.number;
      program_.nodes[e].is_int = t.is_int;
      return e;
    }
    if (t.kind == Token::Text) {
      advance();
      const uint32_t e = add(Op::Text, t.column);
      program_.nodes[e].text = t.text;
      return e;
    }
    if (t.kind == Token::Word && t.text != "if" && t.text != "else" && t.text != "and" && t.text != "or" &&
        t.text != "in") {
      advance();
      if (t.text == "true" || t.text == "True" || t.text == "false" || t.text == "False") {
        const uint32_t e = add(Op::Bool, t.column);
        program_.nodes[e].number = t.text[0] == 't' || t.text[0] == 'T';
        return e;
      }
      if (t.text == "none" || t.text == "None") return add(Op::Nothing, t.column);
      if (take("(")) {
        auto items = list_until(")");
        const uint32_t e = add(Op::Call, t.column, std::move(items));
        program_.nodes[e].text = t.text;
        return e;
      }
      const uint32_t e = add(Op::Name, t.column);
      program_.nodes[e].text = t.text;
      return e;
    }
    if (take("(")) {
      const uint32_t e = conditional();
      expect(")");
      return e;
    }
    if (take("[")) return add(Op::List, t.column, list_until("]"));
    unexpected("a value");
    return 0;
  }

  std::string_view text_;
  Program& program_;
  size_t at_ = 0;
  Token token_;
  Error error_;
  int depth_ = 0;
};

}  // namespace

bool parse(std::string_view text, Program* program, std::vector<Error>* errors) {
  *program = {};
  program->source = std::string(text);
  if (text.size() > max_length) {
    errors->push_back({"E303", 0, "the expression is longer than 2000 characters", "split it with 'let'"});
    return false;
  }
  Parser p(text, program);
  const uint32_t root = p.run();
  if (p.failed()) {
    errors->push_back(p.error());
    return false;
  }
  program->root = root;
  return true;
}

const std::vector<Function>& functions() {
  // The order is that of the enum in gx_functions.cpp.
  static const std::vector<Function> list = {
      {"shape", 1, 1, false},       {"rank", 1, 1, false},          {"numel", 1, 1, false},
      {"bytes", 1, 1, false},       {"dtype", 1, 1, false},         {"const", 1, 1, false},
      {"axes", 1, 1, true},         {"suffix_axes", 2, 2, false},   {"first", 1, 2, false},
      {"swaps_last2", 2, 2, false}, {"broadcastable", 2, 2, false}, {"present", 1, 1, false},
      {"opname", 1, 1, true},       {"attr", 2, 3, true},           {"default", 2, 2, false},
      {"item", 1, 1, false},        {"all", 1, 1, false},           {"any", 1, 1, false},
      {"isfinite", 1, 1, false},    {"min", 1, 8, false},           {"max", 1, 8, false},
      {"sum", 1, 1, false},         {"sqrt", 1, 1, false},          {"exp", 1, 1, false},
      {"log", 1, 1, false},         {"abs", 1, 1, false},           {"reshape", 2, 2, false},
      {"transpose", 1, 2, false},   {"concat", 1, 2, false},        {"split", 2, 3, false},
      {"slice", 4, 4, false},       {"pad", 2, 3, false},           {"cast", 2, 2, false},
      {"full", 2, 2, false},        {"matmul", 2, 2, false},        {"len", 1, 1, false},
      {"copies", 1, 1, true},       {"same", 2, 2, false}};
  return list;
}

void resolve(Program* program, const Names& names, std::vector<Error>* errors) {
  const auto bind = [&](Expr& e) {
    e.ref = names.find(e.text);
    if (e.ref.kind == Ref::Unbound)
      errors->push_back(
          {"E302", e.column, "unknown name '" + e.text + "'", did_you_mean(e.text, names.all())});
  };
  std::vector<bool> node_expected(program->nodes.size());  // names that may stand for a node
  for (auto& e : program->nodes) {
    if (e.op == Op::Attribute) {
      Expr& base = program->nodes[e.args[0]];
      node_expected[e.args[0]] = true;
      if (base.op != Op::Name) {
        errors->push_back(
            {"E304", e.column, "'." + e.text + "' needs the name of a pattern node before it", {}});
        continue;
      }
      const Ref r = names.find(base.text);
      if (r.kind != Ref::Unbound && r.kind != Ref::Node)
        errors->push_back({"E304",
                           base.column,
                           "'" + base.text + "' is a value; only nodes of the pattern have attributes",
                           {}});
      e.ref = r;
    } else if (e.op == Op::Call) {
      const Function* f = nullptr;
      for (size_t i = 0; i < functions().size(); ++i)
        if (e.text == functions()[i].name) {
          f = &functions()[i];
          e.function = static_cast<uint16_t>(i);
        }
      if (!f) {
        std::vector<std::string_view> known;
        for (const auto& k : functions()) known.emplace_back(k.name);
        errors->push_back(
            {"E301", e.column, "unknown function '" + e.text + "'", did_you_mean(e.text, known)});
        continue;
      }
      if (e.args.size() < f->min_args || e.args.size() > f->max_args) {
        std::string wanted = std::to_string(f->min_args);
        if (f->max_args != f->min_args) wanted += " to " + std::to_string(f->max_args);
        errors->push_back(
            {"E305",
             e.column,
             "'" + e.text + "' takes " + wanted + " argument(s), found " + std::to_string(e.args.size()),
             {}});
        continue;
      }
      const bool presence = e.text == "present";
      if (f->takes_node || presence) {
        const Expr& a = program->nodes[e.args[0]];
        node_expected[e.args[0]] = true;
        const Ref r = a.op == Op::Name ? names.find(a.text) : Ref{};
        if (a.op != Op::Name || (f->takes_node && r.kind != Ref::Node && r.kind != Ref::Unbound))
          errors->push_back({"E304", a.column, "'" + e.text + "' wants the name of a pattern node", {}});
      }
    }
  }
  for (size_t i = 0; i < program->nodes.size(); ++i) {
    Expr& e = program->nodes[i];
    if (e.op != Op::Name) continue;
    bind(e);
    if (e.ref.kind == Ref::Node && !node_expected[i])
      errors->push_back({"E304",
                         e.column,
                         "'" + e.text + "' is a node, not a value; write '" + e.text +
                             ".attribute' or a function of nodes such as present(" + e.text + ")",
                         {}});
  }
}

}  // namespace tenon::rules::gx
