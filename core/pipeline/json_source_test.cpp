#include <catch2/catch.hpp>

#include "core/pipeline/json_source.hpp"

using namespace tenon;

namespace {

std::string first_error(const std::string& text) {
  Diagnostics diagnostics;
  CHECK_FALSE(JsonSource::parse("p.json", text, diagnostics));
  REQUIRE(diagnostics.has_errors());
  return diagnostics.all().front().where + ": " + diagnostics.all().front().text;
}

std::string at(const JsonSource& source, const std::string& pointer,
               JsonSource::Part part = JsonSource::Part::value) {
  const JsonPosition position = source.locate(pointer, part);
  return std::to_string(position.line) + ":" + std::to_string(position.column) + "+" +
         std::to_string(position.length);
}

}  // namespace

TEST_CASE(
    "every key and value has its place, through comments, CRLF, a byte order mark and letters of two bytes") {
  Diagnostics diagnostics;
  const auto source =
      JsonSource::parse("p.json",
                        "\xEF\xBB\xBF{ // a comment with \"quotes\"\r\n"
                        "  \"gr\u00fc\u00dfe\": \"\u00e4\\\"\u00f6\", /* , : { */ \"n\": -1.5e3,\r\n"
                        "  \"a/b~c\": [true, [null, {\"x\": {}}], \"s\"]\r\n"
                        "}\r\n",
                        diagnostics);
  REQUIRE(source);
  CHECK(diagnostics.empty());
  CHECK(at(*source, "") == "1:1+28");
  CHECK(at(*source, "/gr\u00fc\u00dfe", JsonSource::Part::key) == "2:3+7");
  CHECK(at(*source, "/gr\u00fc\u00dfe") == "2:12+6");
  CHECK(at(*source, "/n", JsonSource::Part::key) == "2:32+3");
  CHECK(at(*source, "/n") == "2:37+6");
  CHECK(at(*source, "/a~1b~0c", JsonSource::Part::key) == "3:3+7");
  CHECK(at(*source, "/a~1b~0c/0") == "3:13+4");
  CHECK(at(*source, "/a~1b~0c/1/0") == "3:20+4");
  CHECK(at(*source, "/a~1b~0c/1/1/x", JsonSource::Part::key) == "3:27+3");
  CHECK(at(*source, "/a~1b~0c/1/1/x") == "3:32+2");
  CHECK(at(*source, "/a~1b~0c/2") == "3:38+3");
  CHECK(at(*source, "/a~1b~0c/2/nowhere/below") == "3:38+3");
}

TEST_CASE("what is no JSON says where and what") {
  CHECK(first_error("{\n  \"a\": 1,\n  \"b\" 2\n}").find("p.json:3:7: is not valid JSON: ") == 0);
  CHECK(first_error("").find("p.json:1:1: is not valid JSON: ") == 0);
  CHECK(first_error("{\"a\": 1} x").find("p.json:1:10: ") == 0);
  CHECK(
      first_error("{\"a\": 1e999}").find("p.json:1:7: is not valid JSON: number overflow parsing '1e999'") ==
      0);
  CHECK(first_error("{\"a\": \"\xff\"}").find("p.json:1:8: is not valid JSON: ") == 0);
  CHECK(first_error("{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}")
            .find("p.json:2:16: key 'c' appears twice [/b/c]; the first is in line 2") == 0);
  CHECK(first_error("{\"a\": 1,\n \"\\u0061\": 2}").find("p.json:2:2: key 'a' appears twice [/a]") == 0);
  CHECK(first_error("{\"a\": /* never closed").find("is not valid JSON") != std::string::npos);
}

TEST_CASE(
    "a zero byte is no JSON wherever it stands, also behind the end, where a parser would stop looking") {
  using std::string_literals::operator""s;
  for (const std::string& text :
       {"\0[1]"s, "[1\0]"s, "[1]\0"s, "[1]\0]"s, "[1]\0}}"s, "[1]\0,{\"a\": 1}"s, "[\"\0\"]"s, "\0"s})
    CHECK(first_error(text).find("a zero byte; is this a text file?") != std::string::npos);
  CHECK(first_error("{}\n\0}"s).starts_with("p.json:2:1: is not valid JSON: a zero byte"));
}

TEST_CASE("nesting has a limit, reached without overflow") {
  Diagnostics diagnostics;
  CHECK(JsonSource::parse("p", std::string(256, '[') + std::string(256, ']'), diagnostics));
  CHECK(first_error(std::string(257, '[') + std::string(257, ']'))
            .find("p.json:1:257: nests deeper than 256 levels") == 0);
  CHECK(first_error(std::string(1000000, '[')).find("nests deeper") != std::string::npos);
}

TEST_CASE("a finding shows the line, a caret and the hint") {
  Diagnostics diagnostics;
  const auto source = JsonSource::parse("p.json", "{\n\t\"runtime\": {\"treads\": 2}\n}", diagnostics);
  REQUIRE(source);
  const Diagnostic finding =
      source->finding(TN_SEVERITY_ERROR, "M203", "/runtime/treads", "unknown key 'treads'",
                      "did you mean 'threads'?", JsonSource::Part::key);
  CHECK(finding.where == "p.json:2:14");
  CHECK(finding.text ==
        "unknown key 'treads' [/runtime/treads]\n"
        "  2 |  \"runtime\": {\"treads\": 2}\n"
        "    |              ^~~~~~~~\n"
        "  hint: did you mean 'threads'?");
  // A long line is shown from a little before the place.
  const auto wide =
      JsonSource::parse("w.json", "{\"a\": \"" + std::string(5000, 'x') + "\", \"b\": 3}", diagnostics);
  REQUIRE(wide);
  const Diagnostic far = wide->finding(TN_SEVERITY_ERROR, "M1", "/b", "wrong");
  CHECK(far.where == "w.json:1:5016");
  CHECK(far.text.size() < 500);
}
