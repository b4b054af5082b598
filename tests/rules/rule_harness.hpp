// Runs a pass of the rule plugin over a graph written as text.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "core/graph/text_form.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_set.hpp"

namespace tenon::test {

struct Explained {
  tn_reason reason;
  std::string who, expr, got, hint;
  tn_node root = TN_NONE;
};

struct RuleRun {
  std::unique_ptr<Graph> graph;
  std::map<std::string, std::pair<uint64_t, uint64_t>> counts;  // rule: matched, applied
  std::map<std::string, uint64_t> steps;                        // of matching, by rule
  std::vector<Explained> explained;
  std::vector<std::string> said;
  tn_status status = TN_OK;

  uint64_t applied(const std::string& rule) const { return counts.count(rule) ? counts.at(rule).second : 0; }
  uint64_t matched(const std::string& rule) const { return counts.count(rule) ? counts.at(rule).first : 0; }
  /// How many nodes of the main region have this operator.
  int count(const std::string& op) const;
  int nodes() const;
  /// The first explain record of a rule with a reason; NULL when there is none.
  const Explained* why(const std::string& rule, tn_reason reason) const;
  std::string text() const { return print(*graph); }
};

struct RunOptions {
  std::string pass = "fuse";
  std::string precision = "faithful";
  int32_t level = 3;
  bool detailed = true;
  std::map<std::string, std::string> switches;
  int64_t max_rounds = 10;
};

class RuleHarness {
 public:
  explicit RuleHarness(const std::vector<std::string>& libraries = {});  // beside ops and rules
  /// rules: the text of one rule file; empty: the built-in ones.
  RuleRun run(const std::string& graph, const std::string& rules = {}, const RunOptions& options = {});
  RuleRun run(std::unique_ptr<Graph> graph, const std::string& rules = {}, const RunOptions& options = {});
  std::unique_ptr<Graph> parse(const std::string& text);
  /// Findings of `rules check`, "file:line:col: code: text".
  std::vector<std::string> check(const std::string& rules, bool strict = false);
  const Registries& registries() const { return plugins_.registries(); }
  Host& host() { return host_; }

  static std::vector<std::pair<std::string, std::string>> builtin();

 private:
  Host host_;
  PluginSet plugins_;
};

/// One for the process: plugins are loaded once.
RuleHarness& rules();

}  // namespace tenon::test
