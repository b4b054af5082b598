#include "core/pipeline/pass_manager.hpp"

#include <algorithm>
#include <chrono>

#include "core/base/crash_report.hpp"
#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/text_form.hpp"
#include "core/graph/verify.hpp"
#include "core/plugin/host.hpp"

namespace tenon {

namespace {

using Clock = std::chrono::steady_clock;

// What one pass is run with; the pass sees its base.
struct PassRun : tn_pass_ctx {
  const Switches* switches = nullptr;
  const std::atomic<bool>* cancel = nullptr;
  Graph* host_graph = nullptr;
  PassReport* pass_report = nullptr;
  OptimizeReport* report = nullptr;
  bool keep_records = false;
  tn_explain sink{};
};

const PassRun& run_of(const tn_pass_ctx* ctx) { return *static_cast<const PassRun*>(ctx); }

tn_str answer_switch(const tn_pass_ctx* ctx, tn_str name) {
  if (run_of(ctx).report->switched_off.count(string(name)) != 0) return to_abi("off");
  switch (run_of(ctx).switches->state(view(name))) {
    case SwitchState::on:
      return to_abi("on");
    case SwitchState::off:
      return to_abi("off");
    default:
      return {nullptr, 0};
  }
}

void take_count(const tn_pass_ctx* ctx, tn_str who, uint64_t matched, uint64_t applied) {
  const PassRun& run = run_of(ctx);
  for (auto* counts : {&run.pass_report->counts, &run.report->rules}) {
    RuleCount& count = (*counts)[string(who)];
    count.matched += matched;
    count.applied += applied;
  }
}

void take_tried(const tn_pass_ctx* ctx, tn_str who, uint64_t roots) {
  run_of(ctx).report->rules[string(who)].roots += roots;
}

void take_switch_off(const tn_pass_ctx* ctx, tn_str who, tn_str why) {
  run_of(ctx).report->switched_off.emplace(string(who), string(why));
}

void take_spent(const tn_pass_ctx* ctx, tn_str who, uint64_t nanoseconds, uint64_t steps) {
  const PassRun& run = run_of(ctx);
  const MatchCost cost{static_cast<double>(nanoseconds) * 1e-9, steps};
  run.pass_report->matching += cost;
  run.report->matching[string(who)] += cost;
}

int answer_cancelled(const tn_pass_ctx* ctx) {
  const std::atomic<bool>* cancel = run_of(ctx).cancel;
  return cancel != nullptr && cancel->load(std::memory_order_relaxed) ? 1 : 0;
}

// How the user knows a node: its name, else its first result's.
std::string place_name(const Graph& graph, tn_node node) {
  if (node == TN_NONE || node >= graph.node_bound()) return {};
  if (!graph.node_name(node).empty()) return std::string(graph.node_name(node));
  for (const tn_value output : graph.node(node).outputs()) {
    if (output != TN_NONE && !graph.name(output).empty()) return std::string(graph.name(output));
  }
  return "#" + std::to_string(node);
}

std::string value_name(const Graph& graph, tn_value value) {
  if (value == TN_NONE || value >= graph.value_bound()) return {};
  const std::string_view name = graph.name(value);
  return name.empty() ? "%" + std::to_string(value) : std::string(name);
}

void add_explanation(OptimizeReport& report, ExplainEntry entry, bool keep) {
  ExplainCount& count = report.explained[{entry.who, entry.reason}];
  if (count.count++ == 0) count.example = entry;
  count.constants_added += entry.constants_added;
  count.constants_removed += entry.constants_removed;
  if (keep) report.records.push_back(std::move(entry));
}

// Of the whole pass.
ExplainEntry pass_entry(tn_reason reason, const PassReport& pass) {
  ExplainEntry entry;
  entry.reason = reason;
  entry.pass = entry.who = pass.id;
  entry.got = pass.reason;
  return entry;
}

void take_record(void* context, const tn_explain_record* record) {
  PassRun& run = *static_cast<PassRun*>(context);
  if (!TN_HAS(record, pattern_nodes) || record->reason >= TN_REASON_COUNT) return;
  const auto count = run.report->explained.find({string(record->who), record->reason});
  // In a normal run all but the first of a kind are numbers only.
  if (!run.keep_records && count != run.report->explained.end()) {
    ++count->second.count;
    return;
  }
  const std::string who = string(record->who);
  // Said when it happened; that the rule is off since then is no news.
  if (record->reason == TN_REASON_SWITCH && run.report->switched_off.count(who) != 0) return;
  ExplainEntry entry;
  entry.reason = record->reason;
  entry.pass = run.pass_report->id;
  entry.who = who;
  entry.place = record->place.size != 0 ? string(record->place) : place_name(*run.host_graph, record->root);
  entry.value = value_name(*run.host_graph, record->value);
  entry.expr = string(record->expr);
  entry.got = string(record->got);
  entry.hint = string(record->hint);
  entry.matched_nodes = record->matched_nodes;
  entry.pattern_nodes = record->pattern_nodes;
  if (TN_HAS(record, constants_removed)) {
    entry.variant = string(record->variant);
    for (uint32_t i = 0; i < record->by_count; ++i) entry.by.push_back(string(record->by[i]));
    entry.constants_added = record->constants_added;
    entry.constants_removed = record->constants_removed;
    if (run.keep_records) {
      for (uint32_t i = 0; i < record->node_count; ++i)
        entry.nodes.push_back(place_name(*run.host_graph, record->nodes[i]));
    }
  }
  if (record->reason == TN_REASON_APPLIED && run.keep_records && record->root != TN_NONE &&
      record->root < run.host_graph->node_bound()) {
    for (const std::string_view origin : run.host_graph->origins(record->root))
      entry.nodes.emplace_back(origin);
  }
  add_explanation(*run.report, std::move(entry), run.keep_records);
}

// What a whole pass may not change, whatever it did in between.
struct Boundary {
  std::vector<tn_value> inputs;
  std::vector<std::string> outputs;
  explicit Boundary(const Graph& graph) {
    const Region& region = graph.region(Graph::main_region);
    inputs = region.inputs;
    for (uint32_t i = 0; i < region.outputs.size(); ++i)
      outputs.emplace_back(graph.output_name(Graph::main_region, i));
  }
  bool operator==(const Boundary&) const = default;
};

// Nodes that run: those of bodies that fused nodes carry stand for the same work once more, and are not
// counted.
uint64_t count_nodes(const Graph& graph) {
  uint64_t count = 0;
  for (tn_region id = 0; id < graph.region_bound(); ++id) {
    if (!graph.region(id).alive) continue;
    bool runs = true;
    for (tn_node owner = graph.region(id).parent; owner != TN_NONE && runs;
         owner = graph.region(graph.node(owner).region_id).parent) {
      const OpEntry* entry =
          graph.registry() == nullptr ? nullptr : graph.registry()->find(graph.node(owner).op);
      runs = entry == nullptr || (entry->def->flags & TN_OP_CONTROL_FLOW) != 0;
    }
    if (runs) count += graph.region(id).node_count;
  }
  return count;
}

bool verifies_always() {
#ifdef NDEBUG
  return false;
#else
  return true;
#endif
}

void dump(const Graph& graph, const PassOptions& options, size_t number, const std::string& name) {
  if (options.dump_folder.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.dump_folder, error);
  TextOptions text;
  text.constant_bytes = false;
  write_file_atomically(options.dump_folder / fmt::format("{:02}-{}.txt", number, name), print(graph, text));
}

// Counts of a pass whose work is undone.
void take_back(PassReport& pass, OptimizeReport& report) {
  for (const auto& [who, count] : pass.counts) {
    RuleCount& total = report.rules[who];
    total.matched -= count.matched;
    total.applied -= count.applied;
  }
  pass.counts.clear();
}

// The state before a pass, which a rule that is found wrong later takes the run back to.
struct Mark {
  size_t pass;  // of the pipeline
  Snapshot graph;
  size_t passes, records;  // of the report
  std::map<std::string, RuleCount> rules;
  std::map<std::string, MatchCost> matching;
  std::map<std::pair<std::string, uint32_t>, ExplainCount> explained;

  Mark(size_t number, Graph& of, const OptimizeReport& report)
      : pass(number),
        graph(of.snapshot()),
        passes(report.passes.size()),
        records(report.records.size()),
        rules(report.rules),
        matching(report.matching),
        explained(report.explained) {}

  // Why rules are off stays told.
  void take_back(OptimizeReport& report, bool keep_records) const {
    std::vector<ExplainEntry> kept;
    for (const auto& [key, count] : report.explained) {
      if (key.second == TN_REASON_VERIFY && explained.find(key) == explained.end())
        kept.push_back(count.example);
    }
    report.passes.resize(passes);
    report.records.resize(records);
    report.rules = rules;
    report.matching = matching;
    report.explained = explained;
    for (ExplainEntry& entry : kept) add_explanation(report, std::move(entry), keep_records);
  }
};

// Of the passes that a rule found wrong may have spoilt.
class Marks {
 public:
  explicit Marks(Graph& graph) : graph_(graph) {}
  ~Marks() {
    if (!all_.empty()) graph_.release(all_.front().graph);
  }
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  void add(size_t pass, const OptimizeReport& report) { all_.emplace_back(pass, graph_, report); }
  void drop_last() {
    graph_.release(all_.back().graph);
    all_.pop_back();
  }
  // To the first pass in which a rule rewrote that is off now, or else to the last one; its number.
  size_t go_back(OptimizeReport& report, bool keep_records) {
    const auto spoilt = [&](const Mark& mark) {
      const auto& counts = report.passes[mark.passes].counts;
      return std::any_of(counts.begin(), counts.end(), [&](const auto& who) {
        return who.second.applied != 0 && report.switched_off.count(who.first) != 0;
      });
    };
    auto first = std::find_if(all_.begin(), all_.end(), spoilt);
    if (first == all_.end()) --first;
    const size_t pass = first->pass;
    graph_.restore(first->graph);
    first->take_back(report, keep_records);
    all_.erase(first, all_.end());
    return pass;
  }

 private:
  Graph& graph_;
  std::vector<Mark> all_;
};

}  // namespace

std::string_view reason_name(uint32_t reason) {
  static constexpr std::string_view names[] = {
      "applied", "escape", "guard",  "const",  "dtype",  "shape",    "unknown",   "kernel",
      "cost",    "lost",   "budget", "switch", "verify", "rollback", "structure", "limit"};
  static_assert(std::size(names) == TN_REASON_COUNT);
  return reason < TN_REASON_COUNT ? names[reason] : "?";
}

std::vector<PreparedPass> PassManager::prepare(const std::vector<PassRequest>& requests, bool is_default,
                                               Diagnostics& diagnostics) const {
  std::vector<PreparedPass> prepared;
  std::vector<std::string> known;
  for (const PassEntry& entry : registries_.passes()) known.push_back(string(entry.record->id));
  for (const PassRequest& request : requests) {
    const PassEntry* entry = registries_.pass(request.pass);
    for (const PassEntry& other : registries_.passes()) {
      for (uint32_t i = 0; entry == nullptr && i < other.record->alias_count; ++i) {
        if (view(other.record->aliases[i]) == request.pass) entry = &other;
      }
    }
    if (entry == nullptr) {
      const std::string text = "no loaded plugin has a pass '" + request.pass + "'";
      if (is_default) {
        diagnostics.info("M232", request.where, text + "; the default pipeline goes on without it");
      } else {
        diagnostics.error("M232", request.where,
                          text + did_you_mean(request.pass, known) +
                              (known.empty() ? "; no passes are loaded: name a plugin that brings it"
                                             : "; passes: " + join(known, ", ")));
      }
      continue;
    }
    PreparedPass pass;
    pass.entry = entry;
    pass.where = request.where;
    resolve_options("pass '" + request.pass + "'", entry->record->options, entry->record->option_count,
                    request.options, request.where, pass, diagnostics);
    prepared.push_back(std::move(pass));
  }

  // Where a pass must come after another that is named behind it, the other is moved up. Bounded, so that a
  // circle of wishes ends; then the rest stays as written.
  const auto first_of = [&](tn_str id) {
    return static_cast<size_t>(
        std::find_if(prepared.begin(), prepared.end(),
                     [&](const PreparedPass& pass) { return view(pass.entry->record->id) == view(id); }) -
        prepared.begin());
  };
  const auto last_of = [&](tn_str id) {
    size_t last = prepared.size();
    for (size_t i = 0; i < prepared.size(); ++i) {
      if (view(prepared[i].entry->record->id) == view(id)) last = i;
    }
    return last;
  };
  const auto move_up = [&](size_t from, size_t to) {
    diagnostics.info("M233", prepared[from].where,
                     "pass '" + string(prepared[from].entry->record->id) + "' must come before '" +
                         string(prepared[to].entry->record->id) + "'; it is moved there");
    std::rotate(prepared.begin() + static_cast<ptrdiff_t>(to),
                prepared.begin() + static_cast<ptrdiff_t>(from),
                prepared.begin() + static_cast<ptrdiff_t>(from) + 1);
  };
  bool moved = true;
  for (size_t round = 0; moved && round < prepared.size(); ++round) {
    moved = false;
    for (size_t i = 0; i < prepared.size() && !moved; ++i) {
      const tn_pass_record& record = *prepared[i].entry->record;
      if (first_of(record.id) != i) continue;
      for (uint32_t a = 0; a < record.after_count && !moved; ++a) {
        const size_t other = first_of(record.after[a]);
        if (other != prepared.size() && other > i) {
          move_up(other, i);
          moved = true;
        }
      }
      for (uint32_t b = 0; b < record.before_count && !moved; ++b) {
        const size_t other = last_of(record.before[b]);
        if (other != prepared.size() && other < i) {
          move_up(i, other);
          moved = true;
        }
      }
    }
  }
  return prepared;
}

void PassManager::run_one(Graph& graph, const PreparedPass& prepared, const PassOptions& options,
                          OptimizeReport& report, Diagnostics& diagnostics) const {
  const tn_pass_record& record = *prepared.entry->record;
  PassReport& pass = report.passes.emplace_back();
  pass.id = string(record.id);
  pass.plugin = std::string(prepared.entry->plugin);
  pass.nodes_before = pass.nodes_after = count_nodes(graph);
  if (record.level > options.level || switches_.state(pass.id) == SwitchState::off) {
    pass.outcome = PassReport::Outcome::switched_off;
    pass.reason = record.level > options.level
                      ? "level " + std::to_string(options.level) + "; the pass runs from level " +
                            std::to_string(record.level)
                      : "switched off";
    add_explanation(report, pass_entry(TN_REASON_SWITCH, pass), options.explain);
    return;
  }

  PassRun run;
  run.size = sizeof(tn_pass_ctx);
  run.level = options.level;
  run.graph = &graph;
  run.host = host_.abi();
  run.precision_mode = to_abi(options.precision_mode);
  run.options = prepared.options.data();
  run.option_count = static_cast<uint32_t>(prepared.options.size());
  run.rules_verify = options.rules_verify;
  run.explain = &run.sink;
  run.rule_sources = rule_sources_.data();
  run.rule_source_count = static_cast<uint32_t>(rule_sources_.size());
  run.reserved = 0;
  run.switch_of = &answer_switch;
  run.count = &take_count;
  run.cancelled = &answer_cancelled;
  run.tried = &take_tried;
  run.switch_off = &take_switch_off;
  run.samples = options.samples.data();
  run.sample_count = options.samples.size();
  run.spent = &take_spent;
  run.switches = &switches_;
  run.cancel = options.cancel;
  run.host_graph = &graph;
  run.pass_report = &pass;
  run.report = &report;
  run.keep_records = options.explain;
  run.sink = {sizeof(tn_explain), options.explain ? 1u : 0u, &run, &take_record};

  const Boundary boundary(graph);
  const uint64_t edits_before = graph.edits_committed();
  const uint64_t version_before = graph.version();
  const Snapshot before = graph.snapshot();
  Diagnostics said;
  std::string failure;
  const Clock::time_point begin = Clock::now();
  try {
    const PluginCallScope crumb("pass", view(record.id), prepared.entry->plugin);
    const tn_status status = record.run(prepared.entry->instance, &run, said.abi());
    const bool limit_reached = status == TN_ERR_LIMIT && graph.edits_committed() >= options.edit_limit;
    if (status != TN_OK && status != TN_DECLINED && !limit_reached) {
      failure = said.first_error();
      if (failure.empty()) failure = "it returned status " + std::to_string(status) + " and did not say why";
    }
  } catch (const std::exception& error) {
    failure = std::string("it threw a C++ exception through the boundary: ") + error.what();
  } catch (...) {
    failure = "it threw a C++ exception through the boundary";
  }
  pass.seconds = std::chrono::duration<double>(Clock::now() - begin).count();

  const bool is_changed = graph.version() != version_before;

  // An open transaction would make the next pass fail with a message about the wrong one.
  tn_edit* probe = nullptr;
  if (edit_api()->begin(&graph, to_abi("check"), TN_EDIT_NO_INFER, &probe) == TN_ERR_INVALID) {
    throw Error(exit_job_failed, "pass " + pass.id,
                "left a transaction open; report it to the vendor of plugin " + pass.plugin);
  }
  if (probe != nullptr) edit_api()->rollback(probe);

  if (failure.empty() && is_changed) {
    if (!(Boundary(graph) == boundary)) failure = "it changed the graph's inputs or the names of its outputs";
    if (failure.empty() && (options.verify_graph || verifies_always())) {
      Diagnostics broken;
      if (!verify(graph, broken)) failure = "the graph is not whole after it: " + broken.first_error();
    }
  }
  for (Diagnostic diagnostic : said.all()) {
    if (diagnostic.where.empty()) diagnostic.where = "pass " + pass.id;
    // The run goes on without the pass, so its errors are not the run's.
    if (diagnostic.severity == TN_SEVERITY_ERROR && options.on_error == Manifest::OnError::rollback)
      diagnostic.severity = TN_SEVERITY_WARNING;
    diagnostics.add(std::move(diagnostic));
  }
  if (!failure.empty()) {
    graph.restore(before);
    pass.outcome = PassReport::Outcome::rolled_back;
    pass.reason = failure;
    take_back(pass, report);
    add_explanation(report, pass_entry(TN_REASON_ROLLBACK, pass), options.explain);
    if (options.on_error == Manifest::OnError::stop)
      throw Error(exit_job_failed, "pass " + pass.id,
                  "failed: " + failure + "; leave it out of the pipeline or switch it off");
    diagnostics.warning("M234", "pass " + pass.id,
                        "failed and was undone; the run goes on without it: " + failure);
    return;
  }
  if (is_changed) graph.drop_unused_constants();
  graph.release(before);
  pass.outcome = is_changed ? PassReport::Outcome::ran : PassReport::Outcome::unchanged;
  pass.nodes_after = count_nodes(graph);
  pass.edits = graph.edits_committed() - edits_before;
}

void PassManager::run(Graph& graph, std::span<const PreparedPass> passes, const PassOptions& options,
                      OptimizeReport& report, Diagnostics& diagnostics) const {
  graph.set_edit_limit(options.edit_limit);
  report.nodes_before = report.nodes_after = count_nodes(graph);
  dump(graph, options, 0, "start");
  Marks marks(graph);
  for (size_t i = 0; i < passes.size();) {
    if (options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed))
      throw Error(exit_job_failed, "optimize", "was cancelled");
    marks.add(i, report);
    const size_t off = report.switched_off.size();
    run_one(graph, passes[i], options, report, diagnostics);
    if (report.switched_off.size() != off) {  // one more each time, so this ends
      i = marks.go_back(report, options.explain);
      continue;
    }
    const auto& counts = report.passes.back().counts;
    const bool may_be_wrong =
        options.rules_verify != 0 &&
        std::any_of(counts.begin(), counts.end(), [](const auto& who) { return who.second.applied != 0; });
    if (!may_be_wrong) marks.drop_last();
    dump(graph, options, ++i, report.passes.back().id);
    report.edit_limit_reached = graph.edits_committed() >= options.edit_limit;
    if (report.edit_limit_reached) break;
  }
  report.edits = graph.edits_committed();
  if (options.edit_limit != UINT64_MAX) report.edit_authors = graph.edit_authors();
  report.nodes_after = count_nodes(graph);
  graph.set_edit_limit(UINT64_MAX);
}

}  // namespace tenon
