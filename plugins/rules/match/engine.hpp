// Runs a rule set over a graph: sweeps, sorts out conflicts, rewrites, looks again only near what changed.
#pragma once
#include <unordered_map>

#include "match/anchor_index.hpp"
#include "match/rewrite.hpp"
#include "rule_set.hpp"
#include "tenon/sdk/pass.hpp"

namespace tenon::rules {

struct EngineOptions {
  Stage stage = Stage::Fuse;
  int64_t max_rounds = 10;
  int32_t level = 3;
  std::string precision = "faithful";
  bool detailed = false;
  bool at_any_cost = false;  // checks of a match: what it gains is not asked
  std::string only_rule;     // tests: this rule alone, whatever its switches and stage say
};

/// What the engine tells; a pass forwards it to the host.
class EngineListener {
 public:
  virtual ~EngineListener() = default;
  virtual std::string_view switch_of(const std::string&) { return {}; }
  virtual void explain(const tn_explain_record&) {}
  virtual void count(const std::string&, uint64_t, uint64_t) {}
  virtual void tried(const std::string&, uint64_t /*roots*/) {}
  virtual void spent(const std::string&, uint64_t /*nanoseconds*/, uint64_t /*steps*/) {}
  virtual void warn(const std::string&, const std::string&) {}
  /// Before a match is rewritten; empty: go on. Else why the rule is wrong: it is off from then on, and what
  /// it did is undone by whoever runs the engine.
  virtual std::string check(uint32_t /*entry*/, uint32_t /*variant*/, const Match&) { return {}; }
  /// Of a match of a rule with cost.measure.
  virtual Measured measured(const Match&) { return {}; }
  virtual bool cancelled() { return false; }
};

class Engine {
 public:
  Engine(const GraphAccess& graph, const OpCatalog& ops, const RuleSet& rules, RewriteServices services,
         EngineListener& listener, EngineOptions options);
  void run();
  uint64_t applied() const { return applied_; }

 private:
  struct State {  // of a rule
    bool active = false;
    uint64_t matched = 0, applied = 0, roots = 0;
    uint32_t rollbacks = 0;                // since the last success
    int64_t phase_time = 0, cpu_time = 0;  // of matching, nanoseconds
    uint64_t steps = 0;
  };
  struct Candidate {
    uint32_t entry, variant;
    tn_node anchor;
    uint32_t topological, size;
    uint32_t first_node;  // into pool_: the matched nodes, `size` of them
  };
  struct Told {
    Refusal refusal;
    uint32_t matched_nodes = 0, pattern_nodes = 0;
    uint32_t topological = 0;
  };

  struct Taken {  // who took a node away
    uint32_t entry;
    tn_node made;  // what stands there now
  };
  struct Seen {  // a graph, after a round
    uint64_t hash;
    int64_t round;
    std::vector<uint64_t> applied;  // per rule, so far
  };

  void choose();
  bool came_back(int64_t round);
  struct Phase {  // of a sweep or a round of rewrites
    int64_t wall, cpu;
  };
  void sweep(const std::vector<tn_node>& nodes);
  static Phase begin_phase();
  double end_phase(const Phase& phase);
  void look(uint32_t entry, const AnchorIndex::Place* places, size_t count, tn_node anchor);
  bool matches(uint32_t entry, uint32_t variant, tn_node anchor, Refusal* refusal, bool detailed,
               int budget = Matcher::step_budget);
  void apply_round();
  void apply(const Candidate& c);
  void touched(const std::vector<tn_value>& boundary, const std::vector<tn_node>& made);
  void spread(tn_node from, uint32_t depth);
  uint32_t topological(tn_node n);
  void refuse(uint32_t entry, tn_node root, Refusal refusal, uint32_t matched, uint32_t pattern);
  void lost(const Candidate& c);
  bool checked(const Candidate& c, const Match& match);
  void tell();
  void tell_waiting(uint32_t entry);
  void tell_one(uint32_t entry, tn_node root, const Told& told);

  const GraphAccess& graph_;
  const OpCatalog& ops_;
  const RuleSet& rules_;
  EngineListener& listener_;
  EngineOptions options_;
  AnchorIndex index_;
  Matcher matcher_;
  MatchChecker checker_;
  Rewriter rewriter_;
  std::vector<State> states_;
  std::vector<Seen> seen_;
  int64_t index_time_ = 0;  // nanoseconds of CPU
  std::vector<AnchorIndex::Place> places_;
  Match match_;         // the last one looked for
  uint32_t depth_ = 1;  // of the deepest active variant
  std::vector<uint32_t> topological_;
  std::vector<Candidate> candidates_;
  std::vector<tn_node> pool_;
  std::vector<tn_node> dirty_;
  std::vector<uint8_t> reach_;  // per node: depth that a change still spreads from it, this round
  std::vector<tn_node> queue_, next_queue_;
  std::unordered_map<tn_node, Taken> erased_by_;
  std::unordered_map<tn_node, std::vector<const Rule*>> tags_;  // rules flagged once that made a node
  std::unordered_map<uint64_t, Told> told_;                     // by (entry, root)
  uint64_t near_misses_ = 0, applied_ = 0;
  bool limit_ = false, undone_ = false;
};

}  // namespace tenon::rules
