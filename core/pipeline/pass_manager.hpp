// The one wrapper of every pass: options, order, switch, time, verification after, undo, dump, counts,
// explanations.
#pragma once
#include <tenon/abi/explain.h>
#include <tenon/abi/pass.h>

#include <atomic>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/pipeline/manifest.hpp"
#include "core/pipeline/switches.hpp"
#include "core/plugin/registries.hpp"

namespace tenon {

class Graph;
class Host;

std::string_view reason_name(uint32_t reason);  // "guard", "escape" ... of tn_reason

struct RuleCount {
  uint64_t matched = 0, applied = 0;
  uint64_t roots = 0;  // places tried
};

// What looking for places took, found or not.
struct MatchCost {
  double seconds = 0;
  uint64_t steps = 0;  // counted by the pass, the same on every machine
  MatchCost& operator+=(const MatchCost& other) {
    seconds += other.seconds;
    steps += other.steps;
    return *this;
  }
};

struct ExplainEntry {
  uint32_t reason = TN_REASON_STRUCTURE;
  std::string pass, who, place, value, expr, got, hint, variant;  // place and value: their names
  std::vector<std::string> by;                                    // nodes that stood in the way
  std::vector<std::string> nodes;  // that fitted, or that an applied rewrite stands for
  uint32_t matched_nodes = 0, pattern_nodes = 0;
  uint64_t constants_added = 0, constants_removed = 0;
};
struct ExplainCount {
  uint64_t count = 0, constants_added = 0, constants_removed = 0;
  ExplainEntry example;  // the first one
};

struct PassReport {
  std::string id, plugin;
  enum class Outcome { ran, unchanged, switched_off, rolled_back } outcome = Outcome::unchanged;
  std::string reason;  // of switched_off and rolled_back
  double seconds = 0;
  uint64_t nodes_before = 0, nodes_after = 0, edits = 0;
  std::map<std::string, RuleCount> counts;
  MatchCost matching;
};

struct OptimizeReport {
  uint64_t nodes_before = 0,
           nodes_after = 0;  // of all regions that run: bodies of fused nodes are not counted
  uint64_t edits = 0;
  bool edit_limit_reached = false;
  std::vector<std::string> edit_authors;  // pass or rule of each edit, when there was a limit
  std::vector<PassReport> passes;
  std::map<std::string, RuleCount> rules;  // by rule or step name, over all passes
  std::map<std::string, MatchCost> matching;
  std::map<std::pair<std::string, uint32_t>, ExplainCount> explained;  // by (who, reason)
  std::vector<ExplainEntry> records;                // all of them, when `explain` was asked for
  std::map<std::string, std::string> switched_off;  // rules that a check found wrong, and why
};

struct PassOptions {
  int32_t level = 3;
  std::string precision_mode = "faithful";
  uint32_t rules_verify = 0;
  Manifest::OnError on_error = Manifest::OnError::rollback;
  bool verify_graph = false;           // the full verifier after each pass, not only the cheap checks
  bool explain = false;                // keep every record
  uint64_t edit_limit = UINT64_MAX;    // applied rewrites; --bisect-limit
  std::filesystem::path dump_folder;   // the text form after each pass
  std::span<const tn_tensor> samples;  // for the main region's inputs, in their order; may be empty
  const std::atomic<bool>* cancel = nullptr;
};

// A pass with its options resolved against its record.
struct PreparedPass {
  const PassEntry* entry = nullptr;
  std::vector<tn_attr> options;  // one for each of the record's, pointing into `texts` and `lists`
  std::vector<std::unique_ptr<std::string>> texts;
  std::vector<std::unique_ptr<std::vector<tn_str>>> lists;
  std::string where;
};

class PassManager {
 public:
  PassManager(Host& host, const Registries& registries, const Switches& switches,
              std::span<const tn_rule_source> rule_sources)
      : host_(host), registries_(registries), switches_(switches), rule_sources_(rule_sources) {}
  // Names, options (types, ranges, unknown ones) and order; all findings at once. In the default pipeline a
  // pass of no loaded plugin is left out with a note. [main]
  std::vector<PreparedPass> prepare(const std::vector<PassRequest>& requests, bool is_default,
                                    Diagnostics& diagnostics) const;
  // A pass that fails is undone and reported as a warning; with OnError::stop it throws Error (exit code 1).
  // [main]
  void run(Graph& graph, std::span<const PreparedPass> passes, const PassOptions& options,
           OptimizeReport& report, Diagnostics& diagnostics) const;

 private:
  void run_one(Graph& graph, const PreparedPass& pass, const PassOptions& options, OptimizeReport& report,
               Diagnostics& diagnostics) const;
  Host& host_;
  const Registries& registries_;
  const Switches& switches_;
  std::span<const tn_rule_source> rule_sources_;
};

// Options of a pass or exporter as its function wants them: one for each definition, defaults filled in.
// Wrong types, values out of range and unknown names are errors at `where`.
void resolve_options(std::string_view owner, const tn_option_def* defs, uint32_t count, const Json& given,
                     const std::string& where, PreparedPass& out, Diagnostics& diagnostics);

}  // namespace tenon
