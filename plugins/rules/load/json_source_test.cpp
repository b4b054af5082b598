#include "load/json_source.hpp"

#include <catch2/catch.hpp>
#include <string>

#include "load/findings.hpp"

using namespace tenon::rules;

namespace {
Source source(std::string text) {
  Source s;
  s.path = "f.json";
  s.text = std::move(text);
  return s;
}
std::string syntax(const std::string& text) {
  Source s = source(text);
  Finding f;
  if (parse_json(s, &f)) return "ok";
  const auto p = s.place(f.offset);
  return std::to_string(p.line) + ":" + std::to_string(p.column) + " " + f.code + " " + f.message +
         (f.hint.empty() ? "" : " | " + f.hint);
}
}  // namespace

TEST_CASE("Places of keys and values, with comments, escapes and UTF-8 before them") {
  Source s = source(
      "{ // first\n  \"a\": [1, \"q\\\"\\u00e4\", {\"b\": true}], /* \"x\": */\r\n  \"\xC3\xA4\": -2.5e3}\n");
  Finding f;
  REQUIRE(parse_json(s, &f));
  const Json* a = s.root.find("a");
  REQUIRE(a);
  CHECK(s.place(a->key_offset).line == 2);
  CHECK(s.place(a->key_offset).column == 3);
  CHECK(s.place(a->offset).column == 8);
  CHECK(s.place(a->items[1].offset).column == 12);
  CHECK(a->items[1].text == "q\"\xC3\xA4");
  CHECK(s.inside(a->items[1], 2) == a->items[1].offset + 4);
  CHECK(s.place(a->items[2].items[0].offset).column == 31);
  CHECK(s.pointer(a->items[2].items[0].offset) == "/a/2/b");
  const Json* umlaut = s.root.find("\xC3\xA4");
  REQUIRE(umlaut);
  CHECK(umlaut->number == -2500);
  CHECK(s.place(umlaut->offset).line == 3);
  CHECK(s.place(umlaut->offset).column == 8);
}

TEST_CASE("A byte order mark is skipped") { CHECK(syntax("\xEF\xBB\xBF[1]") == "ok"); }

TEST_CASE("Syntax faults say where and what was expected") {
  CHECK(syntax("{\"a\": 1\n \"b\": 2}").find("2:2 E100") == 0);
  CHECK(syntax("{\"a\": 1\n \"b\": 2}").find("is a comma missing on line 1?") != std::string::npos);
  CHECK(syntax("{\"a\": 1, \"a\": 2}") == "1:10 E101 duplicate key 'a' | keep one of the two");
  CHECK(syntax(std::string(70, '[')).find("E102") != std::string::npos);
  CHECK(syntax("[1e999]").find("E103") != std::string::npos);
  CHECK(syntax("").find("E100") != std::string::npos);
  CHECK(syntax("{\"a\"").find("E100") != std::string::npos);
  CHECK(syntax("[1] x").find("E100") != std::string::npos);
}

TEST_CASE("A zero byte is a fault wherever it stands") {
  using std::string_literals::operator""s;
  for (const std::string& text : {"\0[1]"s, "[1\0]"s, "[1]\0"s, "[1]\0]"s, "[1]\0}}"s, "[\"\0\"]"s, "\0"s})
    CHECK(syntax(text).find("E100 a zero byte | is this a text file?") != std::string::npos);
  CHECK(syntax("[1]\n\0"s) == "2:1 E100 a zero byte | is this a text file?");
}

TEST_CASE("A finding shows its line, also of a very long one, with the caret under the place") {
  Source s = source("{\"k\": \"" + std::string(300, 'x') + "\", \"bad\": 1}");
  Finding f;
  REQUIRE(parse_json(s, &f));
  Findings all(s);
  all.error("E201", s.root.items[1].key_offset, "unknown key 'bad'", "did you mean 'k'?");
  const std::string text = all.render(all.all()[0]);
  const auto lines = [&] {
    std::vector<std::string> l;
    size_t from = 0;
    for (size_t to; (to = text.find('\n', from)) != std::string::npos; from = to + 1)
      l.push_back(text.substr(from, to - from));
    l.push_back(text.substr(from));
    return l;
  }();
  REQUIRE(lines.size() == 3);
  CHECK(lines[1].size() < 130);
  CHECK(lines[1].substr(lines[2].find('^'), 5) == "\"bad\"");
}

TEST_CASE("Nearest names") {
  CHECK(did_you_mean("outs", {"out", "in", "op"}) == "did you mean 'out'?");
  CHECK(did_you_mean("rnk", {"rank", "min", "max"}) == "did you mean 'rank'?");
  CHECK(did_you_mean("zebra", {"rank"}).empty());
}
