#include "match/engine.hpp"

#include <time.h>
#include <algorithm>
#include <chrono>

#include "match/graph_hash.hpp"

namespace tenon::rules {
namespace {

constexpr uint32_t give_up_after_rollbacks = 8;
constexpr int64_t first_hashed_round = 4;  // few graphs take more, and a hash reads all of them
constexpr uint32_t wide_value = 64;        // more readers than this: losing one makes no pattern possible
constexpr uint64_t max_near_misses = 20000;

int64_t wall_clock() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
int64_t cpu_clock() {
  timespec t{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return int64_t{1000000000} * t.tv_sec + t.tv_nsec;
}
uint64_t key(uint32_t entry, tn_node root) { return static_cast<uint64_t>(entry) << 32 | root; }

}  // namespace

Engine::Engine(const GraphAccess& graph, const OpCatalog& ops, const RuleSet& rules, RewriteServices services,
               EngineListener& listener, EngineOptions options)
    : graph_(graph),
      ops_(ops),
      rules_(rules),
      listener_(listener),
      options_(std::move(options)),
      index_(graph),
      matcher_(graph, ops),
      checker_(graph, ops),
      rewriter_(graph, ops, services) {
  states_.resize(rules.entries().size());
  checker_.place = [this](tn_node n) { return topological(n); };
  checker_.measure = [this](const Match& match) { return listener_.measured(match); };
  checker_.at_any_cost = options_.at_any_cost;
  matcher_.made_by = [this](const Rule& rule, tn_node n) {
    const auto i = tags_.find(n);
    return i != tags_.end() && std::find(i->second.begin(), i->second.end(), &rule) != i->second.end();
  };
}

/// Which rules run: stage, level, precision, switches (rule id, switch name, aliases, in that order).
void Engine::choose() {
  for (uint32_t e = 0; e < states_.size(); ++e) {
    const Rule& r = *rules_.entries()[e].rule;
    std::string why;
    if (!options_.only_rule.empty()) {
      states_[e].active = r.name == options_.only_rule;
    } else if (r.stage == options_.stage) {
      std::string_view said = listener_.switch_of(r.name);
      if (said.empty()) said = listener_.switch_of(r.switch_name);
      for (size_t i = 0; said.empty() && i < r.aliases.size(); ++i) said = listener_.switch_of(r.aliases[i]);
      const std::string& mode = options_.precision;
      if (said == "off")
        why = "switched off";
      else if (said.empty() && !r.enabled)
        why = "off unless a switch or a chain asks for it";
      else if (r.level > options_.level)
        why = "needs level " + std::to_string(r.level) + ", the run has " + std::to_string(options_.level);
      else if (r.precision != Precision::Exact && mode == "strict")
        why =
            std::string("class ") + precision_name(r.precision) + " does not run under precision mode strict";
      else if (r.precision == Precision::Approx && mode != "fast")
        why = "class approx runs under precision mode fast alone, the mode is " + mode;
      states_[e].active = why.empty();
      if (!why.empty()) {
        tn_explain_record x{};
        x.size = sizeof x;
        x.reason = TN_REASON_SWITCH;
        x.who = sdk::str(r.name);
        x.root = x.value = TN_NONE;
        x.got = sdk::str(why);
        listener_.explain(x);
      }
    }
    if (!states_[e].active) continue;
    const auto& variants = rules_.entries()[e].variants;
    for (uint32_t v = 0; v < variants.size(); ++v) {
      depth_ = std::max(depth_, variants[v].depth);
      index_.add(e, v, variants[v]);
    }
  }
}

uint32_t Engine::topological(tn_node n) { return n < topological_.size() ? topological_[n] : 0; }

void Engine::run() {
  choose();
  if (std::none_of(states_.begin(), states_.end(), [](const State& s) { return s.active; })) return;
  topological_.assign(graph_.api()->node_bound(graph_.raw()), 0);
  std::vector<tn_node> nodes = running_nodes(graph_, ops_);
  for (uint32_t i = 0; i < nodes.size(); ++i) topological_[nodes[i]] = i;
  for (int64_t round = 0;
       round < options_.max_rounds && !nodes.empty() && !limit_ && !undone_ && !listener_.cancelled();
       ++round) {
    sweep(nodes);
    const uint64_t before = applied_;
    apply_round();
    if (applied_ != before && round + 1 >= first_hashed_round && came_back(round)) {
      dirty_.clear();
      nodes.clear();
      break;
    }
    nodes.clear();
    for (const tn_node n : dirty_) {
      reach_[n] = 0;
      if (graph_.node(n).alive) nodes.push_back(n);
    }
    dirty_.clear();
    std::sort(nodes.begin(), nodes.end(), [&](tn_node a, tn_node b) {
      return topological(a) != topological(b) ? topological(a) < topological(b) : a < b;
    });
  }
  if (undone_) return;
  if (!nodes.empty() && !limit_ && !listener_.cancelled()) {
    // Do rules still act on what they made? Then it is the limit that stopped them.
    sweep(nodes);
    std::string names;
    for (const auto& c : candidates_) {
      const std::string& name = rules_.entries()[c.entry].rule->name;
      if (names.find(name) == std::string::npos) names += (names.empty() ? "" : ", ") + name;
    }
    if (!candidates_.empty())
      listener_.warn("E311", "after " + std::to_string(options_.max_rounds) +
                                 " rounds these rules still find something to rewrite: " + names +
                                 "; raise max_rounds, or mark a rule that undoes another's work \"once\"");
  }
  tell();
}

/// A graph that was there after an earlier round: what was applied since undoes itself.
bool Engine::came_back(int64_t round) {
  Seen now{graph_hash(graph_), round, {}};
  for (const auto& s : states_) now.applied.push_back(s.applied);
  for (const auto& then : seen_) {
    if (then.hash != now.hash) continue;
    std::string names;
    for (size_t e = 0; e < states_.size(); ++e)
      if (now.applied[e] != then.applied[e])
        names += (names.empty() ? "" : ", ") + rules_.entries()[e].rule->name;
    listener_.warn("E313", "the graph after round " + std::to_string(round + 1) + " is the one after round " +
                               std::to_string(then.round + 1) + ": these rules undo one another: " + names +
                               "; the stage ends here; mark one of them \"once\", or switch it off");
    return true;
  }
  seen_.push_back(std::move(now));
  return false;
}

void Engine::sweep(const std::vector<tn_node>& nodes) {
  candidates_.clear();
  pool_.clear();
  index_.forget();
  const Phase phase = begin_phase();
  int64_t looked = 0;
  for (const tn_node n : nodes) {
    index_.at(n, options_.detailed, &places_);
    for (size_t first = 0, last; first < places_.size(); first = last) {
      const uint32_t entry = places_[first].entry;
      for (last = first + 1; last < places_.size() && places_[last].entry == entry;) ++last;
      if (!states_[entry].active) continue;
      const int64_t begin = wall_clock();
      look(entry, &places_[first], last - first, n);
      const int64_t took = wall_clock() - begin;
      states_[entry].phase_time += took;
      looked += took;
    }
  }
  const int64_t wall = wall_clock() - phase.wall - looked;
  index_time_ += static_cast<int64_t>(static_cast<double>(wall) * end_phase(phase));
}

/// The clock of CPU time is slow to read, so it is read for a phase as a whole, and what the fast clock says
/// of each rule is scaled by what part of the phase the processor was ours.
Engine::Phase Engine::begin_phase() { return {wall_clock(), cpu_clock()}; }

double Engine::end_phase(const Phase& phase) {
  const auto wall = static_cast<double>(std::max<int64_t>(wall_clock() - phase.wall, 1));
  const double ours = std::min(1.0, static_cast<double>(cpu_clock() - phase.cpu) / wall);
  for (State& s : states_) {
    s.cpu_time += static_cast<int64_t>(static_cast<double>(s.phase_time) * ours);
    s.phase_time = 0;
  }
  return ours;
}

/// Leaves the match in match_.
bool Engine::matches(uint32_t entry, uint32_t variant, tn_node anchor, Refusal* refusal, bool detailed,
                     int budget) {
  const auto result = matcher_.run(
      rules_.entries()[entry].variants[variant], anchor, &match_,
      [&](Match& m) { return checker_.check(m, refusal, options_.detailed); }, detailed, budget);
  states_[entry].steps += static_cast<uint64_t>(matcher_.steps());
  return result == Matcher::Found;
}

void Engine::look(uint32_t entry, const AnchorIndex::Place* places, size_t count, tn_node anchor) {
  const auto& e = rules_.entries()[entry];
  Refusal refusal;
  NearMiss near;
  uint32_t near_size = 0;
  bool over_budget = false;
  uint32_t refused_size = 0;
  ++states_[entry].roots;
  int budget = Matcher::step_budget;
  for (size_t i = 0; i < count && budget > 0; ++i) {
    const uint32_t v = places[i].variant;
    const Variant& variant = e.variants[v];
    const int before = refusal.progress;
    const bool found = matches(entry, v, anchor, &refusal, options_.detailed, budget);
    if (refusal.progress != before) refused_size = static_cast<uint32_t>(variant.nodes.size());
    if (found) {
      Candidate c{entry,
                  v,
                  anchor,
                  topological(anchor),
                  static_cast<uint32_t>(match_.nodes.size() + match_.inner.size()),
                  static_cast<uint32_t>(pool_.size())};
      pool_.insert(pool_.end(), match_.nodes.begin(), match_.nodes.end());
      pool_.insert(pool_.end(), match_.inner.begin(), match_.inner.end());
      candidates_.push_back(c);
      return;
    }
    budget -= matcher_.steps();
    over_budget = budget < 0;
    const NearMiss& m = matcher_.near_miss();
    const uint32_t size = static_cast<uint32_t>(variant.nodes.size());
    // Fewest nodes missing, not most found: else the largest variant always wins.
    if (options_.detailed && m.at != near.at &&
        (near_size == 0 || size - m.matched < near_size - near.matched)) {
      near = m;
      near_size = size;
    }
  }
  if (over_budget && !refusal.any()) {
    refusal.reason = TN_REASON_BUDGET;
    refusal.got = "no answer within " + std::to_string(Matcher::step_budget) + " steps";
  }
  if (refusal.any()) {
    refuse(entry, anchor, std::move(refusal), refused_size, refused_size);
  } else if (options_.detailed && near_size && near_misses_ < max_near_misses) {
    ++near_misses_;
    Refusal r;
    r.reason = TN_REASON_STRUCTURE;
    r.value = near.value;
    r.variant = near.variant;
    r.nodes = near.nodes;
    r.expr = near.wanted.empty() ? "" : "wanted " + near.wanted;
    if (near.at != TN_NONE)
      r.got = graph_.node_name(near.at) + " is " + std::string(graph_.op_name(graph_.node(near.at).op));
    else if (near.value != TN_NONE)
      r.got = graph_.value_name(near.value) + " has no such producer";
    refuse(entry, anchor, std::move(r), near.matched, near_size);
  }
}

void Engine::refuse(uint32_t entry, tn_node root, Refusal refusal, uint32_t matched, uint32_t pattern) {
  told_[key(entry, root)] = {std::move(refusal), matched, pattern, topological(root)};
}

/// First claim wins: by priority, larger pattern, place in the graph, name of the rule.
void Engine::apply_round() {
  std::sort(candidates_.begin(), candidates_.end(), [&](const Candidate& a, const Candidate& b) {
    const auto& x = rules_.entries()[a.entry];
    const auto& y = rules_.entries()[b.entry];
    if (x.order != y.order) return x.order < y.order;
    if (a.size != b.size) return a.size > b.size;
    if (a.topological != b.topological) return a.topological < b.topological;
    if (a.entry != b.entry) return x.rule->name < y.rule->name;
    return a.anchor < b.anchor;
  });
  reach_.resize(graph_.api()->node_bound(graph_.raw()), 0);
  size_t done = 0;
  const Phase phase = begin_phase();
  for (const auto& c : candidates_) {
    if (limit_ || undone_ || (++done % 256 == 0 && listener_.cancelled())) break;
    if (states_[c.entry].active) apply(c);
  }
  end_phase(phase);
}

void Engine::lost(const Candidate& c) {
  Refusal r;
  r.reason = TN_REASON_LOST;
  r.progress = 0;
  r.variant = &rules_.entries()[c.entry].variants[c.variant];
  for (uint32_t i = 0; i < c.size; ++i) {
    const auto gone = erased_by_.find(pool_[c.first_node + i]);
    if (gone == erased_by_.end()) continue;
    if (gone->second.entry == c.entry) return;  // a smaller variant of what this very rule took: no loss
    const auto& winner = rules_.entries()[gone->second.entry];
    r.got = "lost to " + winner.rule->name + " (priority " + std::to_string(winner.rule->priority) + ")";
    if (gone->second.made != TN_NONE) r.got += " at " + graph_.node_name(gone->second.made);
    r.by.push_back(winner.rule->name);
    break;
  }
  if (r.got.empty()) r.got = "lost to an earlier rewrite beside it";
  if (graph_.node(c.anchor).alive) {
    spread(c.anchor, 1);  // retried
  }
  refuse(c.entry, c.anchor, std::move(r), c.size, c.size);
}

void Engine::apply(const Candidate& c) {
  const auto& e = rules_.entries()[c.entry];
  State& state = states_[c.entry];
  Refusal refusal;
  // The graph may have changed since the sweep, so the match is made again; what still stands may be
  // rewritten.
  const int64_t begin = wall_clock();
  const bool found = graph_.node(c.anchor).alive && matches(c.entry, c.variant, c.anchor, &refusal, false);
  state.phase_time += wall_clock() - begin;
  if (!found) return lost(c);
  const std::string figures = checker_.measured();
  std::vector<tn_value> boundary;
  std::vector<tn_node> old = match_.nodes;
  old.insert(old.end(), match_.inner.begin(), match_.inner.end());
  std::string names;
  for (const tn_node n : old) {
    const tn_node_info info = graph_.node(n);
    for (uint32_t i = 0; i < info.input_count; ++i)
      if (info.inputs[i] != TN_NONE) boundary.push_back(info.inputs[i]);
    if (options_.detailed) names += (names.empty() ? "" : ", ") + graph_.node_name(n);
  }
  if (!checked(c, match_)) return;
  refusal = {};
  const auto outcome = rewriter_.apply(match_, &refusal);
  if (outcome == Rewriter::LimitReached) {
    limit_ = true;
    return;
  }
  if (outcome == Rewriter::Refused) {
    if (refusal.reason == TN_REASON_ROLLBACK && ++state.rollbacks == give_up_after_rollbacks) {
      state.active = false;
      listener_.warn("E312", "rule '" + e.rule->name +
                                 "' is off for the rest of this run: " + std::to_string(state.rollbacks) +
                                 " rewrites in a row were undone, the last because " + refusal.got);
    }
    refusal.variant = match_.variant;
    refusal.nodes = match_.nodes;
    return refuse(c.entry, c.anchor, std::move(refusal), c.size, c.size);
  }
  state.rollbacks = 0;
  ++state.applied;
  ++applied_;
  told_.erase(key(c.entry, c.anchor));
  std::vector<const Rule*> tags;
  if (e.rule->once) tags.push_back(e.rule.get());
  for (const tn_node n : old) {
    if (graph_.node(n).alive) continue;
    erased_by_[n] = {c.entry, rewriter_.made().empty() ? TN_NONE : rewriter_.made().back()};
    if (const auto t = tags_.find(n); t != tags_.end()) {
      tags.insert(tags.end(), t->second.begin(), t->second.end());
      tags_.erase(t);
    }
  }
  const uint32_t place = topological(c.anchor);
  const tn_node bound = graph_.api()->node_bound(graph_.raw());
  reach_.resize(bound, 0);
  topological_.resize(bound, 0);
  for (const tn_node n : rewriter_.made()) {
    topological_[n] = place;
    if (!tags.empty()) tags_[n] = tags;
  }
  touched(boundary, rewriter_.made());
  tn_explain_record x{};
  x.size = sizeof x;
  x.reason = TN_REASON_APPLIED;
  x.who = sdk::str(e.rule->name);
  x.root = rewriter_.made().empty() ? TN_NONE : rewriter_.made().back();
  x.value = TN_NONE;
  x.matched_nodes = x.pattern_nodes = c.size;
  std::string got;
  std::string variant;
  if (options_.detailed) {
    got = graph_.node_name(x.root) + " <- " + names;
    variant = variant_text(e.variants[c.variant], ops_);
  }
  x.got = sdk::str(got);
  x.expr = sdk::str(figures);
  x.variant = sdk::str(variant);
  x.constants_added = rewriter_.constant_bytes_added();
  x.constants_removed = rewriter_.constant_bytes_matched();
  listener_.explain(x);
}

/// Looks again at what is downstream of the new nodes, and of values that lost readers, as far as a pattern
/// reaches.
void Engine::touched(const std::vector<tn_value>& boundary, const std::vector<tn_node>& made) {
  for (const tn_node n : made) spread(n, depth_);
  for (const tn_value v : boundary) {
    const auto info = graph_.value(v);
    if (info.kind == TN_VALUE_DEAD || info.kind == TN_VALUE_CONSTANT || info.use_count > wide_value) continue;
    const auto users = graph_.users(v).copy();
    for (const auto& u : users)
      if (u.node != TN_NONE) spread(u.node, depth_);
  }
}

void Engine::spread(tn_node from, uint32_t depth) {
  queue_.assign(1, from);
  for (uint32_t left = std::min(depth, 200u); left > 0 && !queue_.empty(); --left) {
    next_queue_.clear();
    for (const tn_node n : queue_) {
      if (n >= reach_.size() || reach_[n] >= left) continue;
      if (!reach_[n]) dirty_.push_back(n);
      reach_[n] = static_cast<uint8_t>(left);
      const tn_node_info info = graph_.node(n);
      if (!info.alive) continue;
      for (uint32_t k = 0; k < info.output_count; ++k) {
        if (info.outputs[k] == TN_NONE) continue;
        for (const auto& u : graph_.users(info.outputs[k]))
          if (u.node != TN_NONE) next_queue_.push_back(u.node);
      }
    }
    queue_.swap(next_queue_);
  }
}

/// False: the match would compute something else, so the rule is off and this run is for nothing.
bool Engine::checked(const Candidate& c, const Match& match) {
  const std::string wrong = listener_.check(c.entry, c.variant, match);
  if (wrong.empty()) return true;
  const Rule& rule = *rules_.entries()[c.entry].rule;
  states_[c.entry].active = false;
  undone_ = true;
  Told told;
  told.refusal.reason = TN_REASON_VERIFY;
  told.refusal.expr = "the match computes the same before and after";
  told.refusal.got = wrong;
  told.refusal.hint = "tenon rules test " + rule.source->path + " --rule " + rule.name;
  told.refusal.nodes = match.nodes;
  told.refusal.variant = match.variant;
  told.matched_nodes = told.pattern_nodes = c.size;
  tell_one(c.entry, c.anchor, told);
  const auto at = rule.source->place(rule.offset);
  listener_.warn("E320", "rule '" + rule.name + "' (" + rule.source->path + ":" + std::to_string(at.line) +
                             ") is off for this run and what it did is undone: at " +
                             graph_.node_name(c.anchor) +
                             " its replacement computes something else: " + wrong + "; " + told.refusal.hint);
  return false;
}

void Engine::tell_one(uint32_t entry, tn_node root, const Told& t) {
  const Refusal& r = t.refusal;
  const std::string variant = options_.detailed && r.variant ? variant_text(*r.variant, ops_) : std::string();
  std::vector<tn_str> by;
  for (const auto& b : r.by) by.push_back(sdk::str(b));
  std::vector<tn_node> nodes;  // those that are still there
  for (const tn_node n : r.nodes)
    if (n != TN_NONE && n != root && graph_.node(n).alive) nodes.push_back(n);
  tn_explain_record x{};
  x.size = sizeof x;
  x.reason = r.reason;
  x.who = sdk::str(rules_.entries()[entry].rule->name);
  x.root = graph_.node(root).alive ? root : TN_NONE;
  x.value = r.value != TN_NONE && graph_.value(r.value).kind == TN_VALUE_DEAD ? TN_NONE : r.value;
  x.expr = sdk::str(r.expr);
  x.got = sdk::str(r.got);
  x.hint = sdk::str(r.hint);
  x.matched_nodes = t.matched_nodes;
  x.pattern_nodes = t.pattern_nodes;
  x.variant = sdk::str(variant);
  x.by = by.data();
  x.by_count = static_cast<uint32_t>(by.size());
  x.nodes = nodes.data();
  x.node_count = static_cast<uint32_t>(nodes.size());
  listener_.explain(x);
}

/// Rules whose patterns hang on operators that nothing loaded defines.
void Engine::tell_waiting(uint32_t entry) {
  std::string missing;
  for (const Variant& variant : rules_.entries()[entry].variants) {
    std::string here;
    for (const VariantNode& n : variant.nodes) {
      const auto& ops = n.what->ops;
      if (here.empty() && !ops.empty() &&
          std::none_of(ops.begin(), ops.end(), [&](tn_sym op) { return ops_.find(op) != nullptr; }))
        here = ops_.text(ops[0]);
    }
    if (here.empty()) return;  // this form could match
    if (missing.empty()) missing = here;
  }
  if (missing.empty()) return;
  const std::string plugin = ops_.provider(missing);
  const std::string got = "not fired: no schema for " + missing +
                          (plugin.empty() ? "" : "; plugin " + plugin + ", which is installed, provides it");
  const std::string hint = plugin.empty() ? "load a plugin that provides it" : "add it to \"plugins\"";
  tn_explain_record x{};
  x.size = sizeof x;
  x.reason = TN_REASON_UNKNOWN;
  x.who = sdk::str(rules_.entries()[entry].rule->name);
  x.root = x.value = TN_NONE;
  x.got = sdk::str(got);
  x.hint = sdk::str(hint);
  listener_.explain(x);
}

/// Reasons as they stand at the end, in the order of rules and places, then the counts.
void Engine::tell() {
  std::vector<std::pair<uint64_t, const Told*>> all;
  for (const auto& t : told_) all.emplace_back(t.first, &t.second);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    if (a.first >> 32 != b.first >> 32) return a.first >> 32 < b.first >> 32;
    if (a.second->topological != b.second->topological) return a.second->topological < b.second->topological;
    return a.first < b.first;
  });
  for (const auto& [k, t] : all) {
    // What was refused at a node that another rule took away since is of no interest.
    if (t->refusal.reason != TN_REASON_LOST && !graph_.node(static_cast<tn_node>(k & 0xffffffffu)).alive)
      continue;
    if (t->refusal.reason != TN_REASON_STRUCTURE) ++states_[k >> 32].matched;
    tell_one(static_cast<uint32_t>(k >> 32), static_cast<tn_node>(k & 0xffffffffu), *t);
  }
  for (uint32_t e = 0; e < states_.size(); ++e) {
    const State& s = states_[e];
    if (s.active && !s.applied) tell_waiting(e);
    if (s.matched + s.applied)
      listener_.count(rules_.entries()[e].rule->name, s.matched + s.applied, s.applied);
    if (s.roots) listener_.tried(rules_.entries()[e].rule->name, s.roots);
    if (s.steps) listener_.spent(rules_.entries()[e].rule->name, static_cast<uint64_t>(s.cpu_time), s.steps);
  }
  listener_.spent("anchor index", static_cast<uint64_t>(index_time_), 0);
}

}  // namespace tenon::rules
