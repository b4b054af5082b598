// Error codes: each is told where it belongs, and has a page.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "rule_harness.hpp"
#include "test_paths.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

std::string nodes(const std::string& pattern, const std::string& replace, const std::string& more = {}) {
  return R"({"rule": "A", "pattern": {"nodes": {)" + pattern +
         R"(}, "outputs": ["z"]}, "replace": {"nodes": {)" + replace + "}}" + more + "}";
}

}  // namespace

TEST_CASE("Every code has a page, and every page a code") {
  std::set<std::string> told, pages;
  const std::regex code("\"(E[0-9]{3})[\":]");
  for (const char* folder : {"/plugins/rules", "/core"})
    for (const auto& file : std::filesystem::recursive_directory_iterator(source_dir() + folder)) {
      if (file.path().extension() != ".cpp" || file.path().string().find("_test.cpp") != std::string::npos)
        continue;
      const std::string text = text_of(file.path());
      for (std::sregex_iterator i(text.begin(), text.end(), code), end; i != end; ++i) told.insert((*i)[1]);
    }
  for (const auto& file : std::filesystem::directory_iterator(source_dir() + "/docs/errors"))
    if (file.path().filename().string()[0] == 'E') pages.insert(file.path().stem().string());
  CHECK(told.size() > 30);
  CHECK(told == pages);
}

TEST_CASE("Faults of patterns and replacements have their codes") {
  const std::string neg_add =
      R"("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]})";
  const std::string sub = R"("f": {"op": "Sub", "in": ["Y", "X"], "out": ["z"]})";
  const std::string concat =
      R"("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "c": {"op": "Concat", "in": ["a", "...rest"], "out": ["z"]})";
  struct Case {
    std::string code, text;
  };
  const Case all[] = {
      {"ok", nodes(neg_add, sub)},
      {"E210", "[" + nodes(neg_add, sub) + "," + nodes(neg_add, sub) + "]"},
      {"E213",
       nodes(concat, R"("f": {"op": "Concat", "in": ["X", "rest"], "out": ["z"], "copy_attrs": ["c"]})")},
      {"E213",
       nodes(
           R"("n": {"op": "Neg", "in": ["X"], "out": ["a"]}, "c": {"op": "Concat", "in": ["...a"], "out": ["z"]})",
           sub)},
      {"E214",
       nodes(
           R"("s": {"op": "Add", "assoc": true, "repeat": {"min": 1, "max": 2}, "in": ["X", "Y", "Q"], "out": ["z"]})",
           sub)},
      {"E215", nodes(neg_add, R"("f": {"op": "Add", "in": ["a", "Y"], "out": ["z"]})")},
      {"E216", nodes(neg_add, sub, R"(, "let": {"X": "1 + 1"})")},
      {"E216",
       nodes(
           R"("a": {"op": "Neg", "in": ["X"], "out": ["a"]}, "s": {"op": "Add", "in": ["a", "Y"], "out": ["z"]})",
           sub)},
  };
  for (const Case& c : all) {
    const auto said = rules().check(c.text);
    std::string joined;
    for (const auto& s : said) joined += s + "\n";
    INFO(c.text << "\n" << joined);
    CHECK(joined.find(c.code) != std::string::npos);
    CHECK((joined.find("ok\n") == 0) == (c.code == "ok"));
  }
  const auto strict = rules().check(nodes(neg_add, sub), true);
  REQUIRE(strict.size() == 1);
  CHECK(strict[0].find("E212: rule 'A' has no verify cases") != std::string::npos);
}

TEST_CASE("Rounds that are used up are told (E311)") {
  // What B matches is made by A, so it is found in the second round.
  const std::string a =
      nodes(R"("a": {"op": "Abs", "in": ["X"], "out": ["t"]}, "b": {"op": "Abs", "in": ["t"], "out": ["z"]})",
            R"("f": {"op": "Ceil", "in": ["X"], "out": ["z"]})");
  std::string b = nodes(
      R"("a": {"op": "Ceil", "in": ["X"], "out": ["t"]}, "b": {"op": "Floor", "in": ["t"], "out": ["z"]})",
      R"("f": {"op": "Ceil", "in": ["X"], "out": ["z"]})");
  b.replace(b.find("\"A\""), 3, "\"B\"");
  for (const int64_t rounds : {1, 2}) {
    RunOptions options;
    options.max_rounds = rounds;
    const auto r = rules().run(
        "graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n  %a = Abs(%x)\n  %b = Abs(%a)\n  %c = "
        "Floor(%b)\n"
        "  output %c as \"c\"\n}\n",
        "[" + a + "," + b + "]", options);
    std::string said;
    for (const auto& s : r.said) said += s + "\n";
    INFO(said);
    const bool told =
        said.find("E311: after 1 rounds these rules still find something to rewrite: B; raise max_rounds") !=
        std::string::npos;
    CHECK(told == (rounds == 1));
    CHECK(r.nodes() == (rounds == 1 ? 2 : 1));
  }
}

TEST_CASE("A rule whose rewrites are undone eight times in a row is off, the others go on (E312)") {
  // Its replacement has another type than what it replaces.
  const std::string broken =
      nodes(R"("a": {"op": "Neg", "in": ["X"], "out": ["t"]}, "b": {"op": "Exp", "in": ["t"], "out": ["z"]})",
            R"("f": {"op": "Cast", "in": ["X"], "out": ["z"], "attrs": {"to": 7}})");
  std::string good =
      nodes(R"("a": {"op": "Abs", "in": ["X"], "out": ["t"]}, "b": {"op": "Abs", "in": ["t"], "out": ["z"]})",
            R"("f": {"op": "Abs", "in": ["X"], "out": ["z"]})");
  good.replace(good.find("\"A\""), 3, "\"B\"");
  std::string lines;
  for (int i = 0; i < 10; ++i) {
    const std::string n = std::to_string(i);
    lines +=
        "  %a" + n + " = Neg(%x)\n  %z" + n + " = Exp(%a" + n + ")\n  output %z" + n + " as \"z" + n + "\"\n";
  }
  const auto r = rules().run("graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n" + lines +
                                 "  %b = Abs(%x)\n  %c = Abs(%b)\n  output %c as \"c\"\n}\n",
                             "[" + broken + "," + good + "]");
  std::string said;
  for (const auto& s : r.said) said += s + "\n";
  INFO(said);
  CHECK(said.find("E312: rule 'A' is off for the rest of this run: 8 rewrites in a row were undone") !=
        std::string::npos);
  CHECK(r.why("A", TN_REASON_ROLLBACK) != nullptr);
  CHECK(r.count("Neg") == 10);
  CHECK(r.count("Exp") == 10);
  CHECK(r.count("Abs") == 1);
}
