#include "rule_harness.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/graph/infer.hpp"
#include "tenon/abi/rules.h"
#include "test_paths.hpp"

namespace tenon::test {
namespace {

std::string text_of(tn_str s) { return s.data ? std::string(s.data, s.size) : std::string(); }

struct Collector {
  RuleRun run;
  const RunOptions* options = nullptr;
};

void report(void* context, tn_severity, tn_str code, tn_str where, tn_str text) {
  static_cast<std::vector<std::string>*>(context)->push_back(text_of(where) + ": " + text_of(code) + ": " +
                                                             text_of(text));
}

thread_local Collector* collecting = nullptr;  // the context's functions get no user pointer

tn_str switch_of(const tn_pass_ctx*, tn_str name) {
  const auto i = collecting->options->switches.find(text_of(name));
  return i == collecting->options->switches.end() ? tn_str{nullptr, 0}
                                                  : tn_str{i->second.data(), i->second.size()};
}
void count(const tn_pass_ctx*, tn_str who, uint64_t matched, uint64_t applied) {
  collecting->run.counts[text_of(who)] = {matched, applied};
}
int cancelled(const tn_pass_ctx*) { return 0; }
void spent(const tn_pass_ctx*, tn_str who, uint64_t, uint64_t steps) {
  collecting->run.steps[text_of(who)] += steps;
}
void explain(void*, const tn_explain_record* r) {
  collecting->run.explained.push_back({static_cast<tn_reason>(r->reason), text_of(r->who), text_of(r->expr),
                                       text_of(r->got), text_of(r->hint), r->root});
}

}  // namespace

int RuleRun::count(const std::string& op) const {
  int n = 0;
  for (const tn_node id : graph->nodes(0)) n += graph->op_name(id) == op;
  return n;
}
int RuleRun::nodes() const { return static_cast<int>(graph->nodes(0).size()); }
const Explained* RuleRun::why(const std::string& rule, tn_reason reason) const {
  for (const auto& e : explained)
    if (e.who == rule && e.reason == reason) return &e;
  return nullptr;
}

RuleHarness::RuleHarness(const std::vector<std::string>& libraries) : plugins_(host_) {
  setenv("TENON_CACHE_DIR", (scratch_dir() + "/cache").c_str(), 1);
  set_install_root(build_dir());
  provide_core_services(host_);
  plugins_.registries().provide(host_);
  Diagnostics diagnostics;
  std::vector<PluginRequest> wanted;
  for (const char* name : {"ops", "rules"}) {
    PluginRequest r;
    r.name = name;
    r.required = true;
    wanted.push_back(r);
  }
  for (const auto& path : libraries) {
    PluginRequest r;
    r.path = path;
    r.required = true;
    wanted.push_back(r);
  }
  plugins_.load(wanted, diagnostics);
  for (const auto& d : diagnostics.all()) UNSCOPED_INFO(d.where << ": " << d.text);
  REQUIRE_FALSE(diagnostics.has_errors());
}

std::vector<std::pair<std::string, std::string>> RuleHarness::builtin() {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& f : std::filesystem::directory_iterator(source_dir() + "/rules")) {
    if (f.path().extension() != ".json") continue;
    std::ifstream in(f.path());
    std::stringstream s;
    s << in.rdbuf();
    files.emplace_back("rules/" + f.path().filename().string(), s.str());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::unique_ptr<Graph> RuleHarness::parse(const std::string& text) {
  Diagnostics diagnostics;
  auto graph = tenon::parse(text, &plugins_.registries(), diagnostics);
  for (const auto& d : diagnostics.all()) UNSCOPED_INFO(d.where << ": " << d.text);
  REQUIRE(graph);
  infer_graph(*graph, diagnostics);
  for (const auto& d : diagnostics.all()) UNSCOPED_INFO(d.where << ": " << d.text);
  REQUIRE_FALSE(diagnostics.has_errors());
  return graph;
}

RuleRun RuleHarness::run(const std::string& graph, const std::string& rule_text, const RunOptions& options) {
  return run(parse(graph), rule_text, options);
}

RuleRun RuleHarness::run(std::unique_ptr<Graph> graph, const std::string& rule_text,
                         const RunOptions& options) {
  const PassEntry* pass = plugins_.registries().pass(options.pass);
  REQUIRE(pass);
  Collector collector;
  collector.options = &options;
  collecting = &collector;
  const auto files = rule_text.empty()
                         ? builtin()
                         : std::vector<std::pair<std::string, std::string>>{{"test.json", rule_text}};
  std::vector<tn_rule_source> sources;
  for (const auto& f : files)
    sources.push_back({{f.first.data(), f.first.size()},
                       {f.second.data(), f.second.size()},
                       rule_text.empty() ? 1u : 0u,
                       0});
  const auto* api = static_cast<const tn_graph_api*>(host_.find(TN_GRAPH_ID));
  tn_attr rounds{};
  rounds.name = api->symbol({"max_rounds", 10});
  rounds.kind = TN_ATTR_INT;
  rounds.u.i = options.max_rounds;
  const tn_explain explainer{sizeof(tn_explain), options.detailed, nullptr, explain};
  tn_pass_ctx ctx{};
  ctx.size = sizeof ctx;
  ctx.level = options.level;
  ctx.graph = graph.get();
  ctx.host = host_.abi();
  ctx.precision_mode = {options.precision.data(), options.precision.size()};
  ctx.options = &rounds;
  ctx.option_count = 1;
  ctx.explain = &explainer;
  ctx.rule_sources = sources.data();
  ctx.rule_source_count = static_cast<uint32_t>(sources.size());
  ctx.switch_of = switch_of;
  ctx.count = count;
  ctx.cancelled = cancelled;
  ctx.spent = spent;
  const tn_diag diag{sizeof(tn_diag), &collector.run.said, report};
  collector.run.status = pass->record->run(pass->instance, &ctx, &diag);
  collecting = nullptr;
  for (const auto& s : collector.run.said) UNSCOPED_INFO(s);
  collector.run.graph = std::move(graph);
  return std::move(collector.run);
}

std::vector<std::string> RuleHarness::check(const std::string& rule_text, bool strict) {
  const auto* engine = plugins_.registries().rule_engine();
  REQUIRE(engine);
  std::vector<std::string> said;
  const tn_diag diag{sizeof(tn_diag), &said, report};
  const tn_rule_source source{{"test.json", 9}, {rule_text.data(), rule_text.size()}, 0, 0};
  const tn_status s = engine->record->check(engine->instance, &source, 1, strict, nullptr, nullptr, &diag);
  if (s == TN_OK) said.insert(said.begin(), "ok");
  return said;
}

RuleHarness& rules() {
  static RuleHarness harness;
  return harness;
}

}  // namespace tenon::test
