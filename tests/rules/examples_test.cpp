// The worked examples of the rule language load, prove themselves, and every code has its page.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "core/runtime/eval.hpp"
#include "rule_harness.hpp"
#include "test_paths.hpp"

using namespace tenon;
using namespace tenon::test;
namespace fs = std::filesystem;

namespace {

std::string text_of(const fs::path& file) {
  std::ifstream in(file);
  std::stringstream s;
  s << in.rdbuf();
  return s.str();
}

}  // namespace

TEST_CASE("The worked examples load without an error and prove themselves", "[rules][examples]") {
  static Evaluator evaluator(rules().host(), rules().registries());
  const auto* engine = rules().registries().rule_engine();
  REQUIRE(engine);
  std::set<fs::path> files;
  for (const auto& f : fs::directory_iterator(source_dir() + "/tests/rules/examples")) files.insert(f.path());
  CHECK(files.size() >= 11);
  for (const auto& file : files) {
    const std::string text = text_of(file), name = file.filename().string();
    INFO(name);
    CHECK(rules().check(text)[0] == "ok");
    struct Lines {
      int passed = 0;
      std::vector<std::string> failed;
    } lines;
    const tn_rule_source source{{name.data(), name.size()}, {text.data(), text.size()}, 0, 0};
    const tn_diag diag{sizeof(tn_diag), nullptr, [](void*, tn_severity, tn_str, tn_str, tn_str) {}};
    const tn_status status = engine->record->test(
        engine->instance, &source, 1, {nullptr, 0}, 1,
        [](void* context, tn_str rule, tn_str what, int passed, tn_str why) {
          auto& l = *static_cast<Lines*>(context);
          l.passed += passed;
          if (!passed)
            l.failed.push_back(std::string(rule.data, rule.size) + ", " + std::string(what.data, what.size) +
                               ": " + std::string(why.data, why.size));
        },
        &lines, &diag);
    for (const auto& f : lines.failed) UNSCOPED_INFO(f);
    if (name == "00_article_form.json") {  // the article's own operators, which nobody here has
      REQUIRE(lines.failed.size() == 1);
      CHECK(lines.failed[0] ==
            "MyConvActivation, proof: nothing was proved: no loaded plugin defines operator 'MyConv'; load "
            "one that does "
            "(--plugin)");
      continue;
    }
    CHECK(status == TN_OK);
    CHECK(lines.failed.empty());
    CHECK(lines.passed > 0);
  }
}

TEST_CASE("Every code that the rule language speaks has a page, and every page a code", "[rules][docs]") {
  std::set<std::string> spoken, pages;
  const std::regex code("\"(E[1-5][0-9][0-9])");
  std::vector<fs::path> sources{source_dir() + "/core/pipeline/switches.cpp"};
  for (const auto& f : fs::recursive_directory_iterator(source_dir() + "/plugins/rules"))
    sources.push_back(f.path());
  for (const fs::path& path : sources) {
    const std::string name = path.filename().string();
    if (path.extension() != ".cpp" || name.find("_test.cpp") != std::string::npos) continue;
    const std::string text = text_of(path);
    for (std::sregex_iterator i(text.begin(), text.end(), code), end; i != end; ++i) spoken.insert((*i)[1]);
  }
  for (const auto& f : fs::directory_iterator(source_dir() + "/docs/errors")) {
    const std::string name = f.path().stem().string();
    if (std::regex_match(name, std::regex("E[0-9]{3}"))) pages.insert(name);
    if (!std::regex_match(name, std::regex("E[0-9]{3}"))) continue;
    const std::string text = text_of(f.path());
    INFO(name);
    CHECK(text.find("# " + name + ": ") == 0);
    CHECK(text.find("**Why.**") != std::string::npos);
    CHECK(text.find("**Remedy.**") != std::string::npos);
  }
  std::string missing, stale;
  for (const auto& c : spoken) missing += pages.count(c) ? "" : c + " ";
  for (const auto& c : pages) stale += spoken.count(c) ? "" : c + " ";
  CHECK(missing == "");
  CHECK(stale == "");
}
