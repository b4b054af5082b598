#include <catch2/catch.hpp>
#include <functional>
#include <stdexcept>

#include "core/base/text.hpp"
#include "core/graph/test_ops.hpp"
#include "core/graph/verify.hpp"
#include "core/pipeline/pass_manager.hpp"
#include "core/plugin/host.hpp"
#include "test_paths.hpp"

using namespace tenon;

namespace {

using Body = std::function<tn_status(const tn_pass_ctx*, const tn_diag*)>;

// A pass written as a lambda; the instance of its record is the lambda.
struct FakePass {
  std::string id;
  Body body;
  std::vector<tn_str> after, before;
  std::vector<tn_option_def> options;
  tn_pass_record record{};
  FakePass(std::string pass_id, Body pass_body, int level = 1)
      : id(std::move(pass_id)), body(std::move(pass_body)) {
    record.level = level;
  }
  const tn_pass_record* finish() {
    record.size = sizeof record;
    record.id = to_abi(id);
    record.after = after.data();
    record.after_count = static_cast<uint32_t>(after.size());
    record.before = before.data();
    record.before_count = static_cast<uint32_t>(before.size());
    record.options = options.data();
    record.option_count = static_cast<uint32_t>(options.size());
    record.run = [](void* instance, const tn_pass_ctx* ctx, const tn_diag* diag) -> tn_status {
      return (*static_cast<std::map<std::string, Body>*>(instance))[string(ctx->options[0].u.s)](ctx, diag);
    };
    return &record;
  }
};

tn_option_def option(const char* name, tn_attr_kind kind) {
  tn_option_def def{};
  def.name = to_abi(name);
  def.kind = kind;
  def.min = 1;
  def.max = 0;
  return def;
}

const tn_pass_list* listed = nullptr;
const void* interface_of(const char* id) { return std::string_view(id) == TN_PASSES_ID ? listed : nullptr; }

// Registries with these passes. A record's run finds its lambda by its first option, "self", whose default is
// its id.
struct Passes {
  Host host;
  Registries registries;
  Switches switches;
  std::vector<std::unique_ptr<FakePass>> passes;
  std::map<std::string, Body> bodies;
  Diagnostics diagnostics;
  OptimizeReport report;

  FakePass& add(std::string id, Body body, int level = 1) {
    passes.push_back(std::make_unique<FakePass>(std::move(id), std::move(body), level));
    return *passes.back();
  }
  void load() {
    std::vector<const tn_pass_record*> records;
    for (auto& pass : passes) {
      tn_option_def self = option("self", TN_ATTR_STRING);
      self.default_string = to_abi(pass->id);
      pass->options.insert(pass->options.begin(), self);
      bodies[pass->id] = pass->body;
      records.push_back(pass->finish());
      switches.declare({pass->id}, pass->record.level >= 2);
    }
    const tn_pass_list list = {sizeof(tn_pass_list), static_cast<uint32_t>(records.size()), records.data()};
    tn_plugin plugin{};
    plugin.name = to_abi("fakes");
    plugin.get_interface = &interface_of;
    listed = &list;
    registries.add_plugin(plugin, &bodies, diagnostics);
  }
  PassManager manager() { return PassManager(host, registries, switches, {}); }
  std::vector<PreparedPass> prepare(const std::vector<std::string>& names, bool is_default = false) {
    std::vector<PassRequest> requests;
    for (const std::string& name : names) requests.push_back({name, Json::object(), "p.json"});
    return manager().prepare(requests, is_default, diagnostics);
  }
  void run(Graph& graph, const std::vector<std::string>& names, const PassOptions& options = {}) {
    const std::vector<PreparedPass> prepared = prepare(names);
    REQUIRE_FALSE(diagnostics.has_errors());
    manager().run(graph, prepared, options, report, diagnostics);
  }
  std::string order(const std::vector<std::string>& names, bool is_default = false) {
    std::string text;
    for (const PreparedPass& pass : prepare(names, is_default))
      text += (text.empty() ? "" : " ") + string(pass.entry->record->id);
    return text;
  }
};

tn_status nothing(const tn_pass_ctx*, const tn_diag*) { return TN_OK; }

// x -> Neg -> Neg -> Neg -> y
std::unique_ptr<Graph> chain() {
  auto graph = std::make_unique<Graph>();
  graph->set_registry(&test::fake_ops());
  Transaction edit(*graph, "test", TN_EDIT_BUILD);
  test::Editor build(edit.get());
  tn_value value = build.input("x", TN_FLOAT32, {2});
  for (int i = 0; i < 3; ++i) {
    const tn_node node = build.node("Neg", {value}, {"v" + std::to_string(i)}, "neg" + std::to_string(i));
    value = graph->node(node).output(0);
  }
  edit_api()->region_outputs(edit.get(), 0, &value, 1);
  Diagnostics diagnostics;
  REQUIRE(edit.commit(diagnostics));
  return graph;
}

// Takes the first node of the chain out; TN_ERR_LIMIT at the limit of edits.
tn_status shorten(const tn_pass_ctx* ctx) {
  Graph& graph = Graph::from(ctx->graph);
  const tn_node first = graph.first_node(0);
  tn_edit* edit = nullptr;
  if (const tn_status status = edit_api()->begin(ctx->graph, to_abi("shorten"), 0, &edit); status != TN_OK)
    return status;
  edit_api()->replace_uses(edit, graph.node(first).output(0), graph.node(first).input(0));
  edit_api()->erase(edit, first);
  return edit_api()->commit(edit, nullptr);
}

}  // namespace

TEST_CASE("what must come before is moved there, with a note; a circle of wishes ends") {
  Passes fakes;
  fakes.add("clean", nothing);
  fakes.add("fuse", nothing).after = {to_abi("raise"), to_abi("fold")};
  fakes.add("raise", nothing).before = {to_abi("fuse")};
  fakes.add("fold", nothing);
  fakes.add("a", nothing).after = {to_abi("b")};
  fakes.add("b", nothing).after = {to_abi("a")};
  fakes.load();
  CHECK(fakes.order({"fold", "raise", "fuse", "clean"}) == "fold raise fuse clean");
  CHECK(fakes.diagnostics.empty());
  CHECK(fakes.order({"fuse", "clean", "raise"}) == "raise fuse clean");
  REQUIRE(fakes.diagnostics.all().size() == 1);
  CHECK(fakes.diagnostics.all()[0].text == "pass 'raise' must come before 'fuse'; it is moved there");
  CHECK(fakes.order({"fold", "fuse", "fold"}) == "fold fuse fold");
  CHECK(fakes.order({"a", "b"}).size() == 3);
}

TEST_CASE("a pass of no loaded plugin is an error, in the default pipeline a note") {
  Passes fakes;
  fakes.add("fold", nothing);
  fakes.load();
  CHECK(fakes.order({"fold", "fuse"}, true) == "fold");
  CHECK_FALSE(fakes.diagnostics.has_errors());
  CHECK(fakes.order({"fould"}).empty());
  REQUIRE(fakes.diagnostics.has_errors());
  CHECK(fakes.diagnostics.all().back().text.find(
            "no loaded plugin has a pass 'fould'; did you mean 'fold'?") == 0);
}

TEST_CASE("options: defaults, types, bounds, unknown names") {
  Passes fakes;
  FakePass& pass = fakes.add("fuse", nothing);
  tn_option_def rounds = option("max_rounds", TN_ATTR_INT);
  rounds.default_int = 10;
  rounds.min = 1;
  rounds.max = 100;
  tn_option_def ratio = option("ratio", TN_ATTR_FLOAT);
  ratio.default_float = 0.5;
  tn_option_def flag = option("deep", TN_ATTR_INT);
  flag.is_bool = 1;
  pass.options = {rounds, ratio, flag, option("skip", TN_ATTR_STRINGS)};
  fakes.load();
  const auto prepare = [&](const char* json) {
    fakes.diagnostics.clear();
    return fakes.manager().prepare({{"fuse", Json::parse(json), "p.json:1:2"}}, false, fakes.diagnostics);
  };
  {
    const auto prepared = prepare("{}");
    CHECK(fakes.diagnostics.empty());
    REQUIRE(prepared[0].options.size() == 5);
    CHECK(prepared[0].options[1].u.i == 10);
    CHECK(prepared[0].options[2].u.f == 0.5);
    CHECK(prepared[0].options[4].count == 0);
  }
  {
    const auto prepared = prepare(R"({"max_rounds": 3, "ratio": 2, "deep": true, "skip": ["a", "bc"]})");
    CHECK(fakes.diagnostics.empty());
    CHECK(prepared[0].options[1].u.i == 3);
    CHECK(prepared[0].options[2].u.f == 2);
    CHECK(prepared[0].options[3].u.i == 1);
    REQUIRE(prepared[0].options[4].count == 2);
    CHECK(view(prepared[0].options[4].u.strings[1]) == "bc");
  }
  prepare(R"({"max_rounds": 0, "ratio": "x", "deep": 2, "skip": [1], "max_round": 1})");
  REQUIRE(fakes.diagnostics.error_count() == 5);
  CHECK(fakes.diagnostics.all()[0].text.find(
            "pass 'fuse' has no option 'max_round'; did you mean 'max_rounds'?") == 0);
  CHECK(fakes.diagnostics.all()[1].text == "option 'max_rounds' of pass 'fuse' is 0; expected 1..100");
  CHECK(fakes.diagnostics.all()[2].text == "option 'ratio' of pass 'fuse' is a number; found \"x\"");
  CHECK(fakes.diagnostics.all()[3].text == "option 'deep' of pass 'fuse' is true or false; found 2");
  CHECK(fakes.diagnostics.all()[4].where == "p.json:1:2");
}

TEST_CASE("a pass that works: nodes, edits, counts, explanations") {
  Passes fakes;
  fakes.add("shorten", [](const tn_pass_ctx* ctx, const tn_diag*) {
    CHECK(ctx->level == 2);
    CHECK(view(ctx->precision_mode) == "strict");
    CHECK(ctx->switch_of(ctx, to_abi("idle")).data == nullptr);
    ctx->count(ctx, to_abi("first"), 2, 1);
    ctx->count(ctx, to_abi("first"), 1, 0);
    tn_explain_record record{};
    record.size = sizeof record;
    record.reason = TN_REASON_GUARD;
    record.who = to_abi("first");
    record.root = Graph::from(ctx->graph).first_node(0);
    record.value = TN_NONE;
    for (int i = 0; i < 3; ++i) ctx->explain->record(ctx->explain->context, &record);
    return shorten(ctx);
  });
  fakes.add("idle", nothing);
  fakes.load();
  const auto graph = chain();
  PassOptions options;
  options.level = 2;
  options.precision_mode = "strict";
  options.dump_folder = std::filesystem::path(test::scratch_dir()) / "dumps";
  options.verify_graph = true;
  fakes.run(*graph, {"shorten", "idle"}, options);
  CHECK(fakes.diagnostics.empty());
  CHECK(fakes.report.nodes_before == 3);
  CHECK(fakes.report.nodes_after == 2);
  REQUIRE(fakes.report.passes.size() == 2);
  CHECK(fakes.report.passes[0].outcome == PassReport::Outcome::ran);
  CHECK(fakes.report.passes[0].edits == 1);
  CHECK(fakes.report.passes[0].plugin == "fakes");
  CHECK(fakes.report.passes[1].outcome == PassReport::Outcome::unchanged);
  CHECK(fakes.report.rules.at("first").matched == 3);
  CHECK(fakes.report.rules.at("first").applied == 1);
  const ExplainCount& explained = fakes.report.explained.at({"first", TN_REASON_GUARD});
  CHECK(explained.count == 3);
  CHECK(explained.example.place == "neg0");
  CHECK(explained.example.pass == "shorten");
  CHECK(fakes.report.records.empty());
  CHECK(std::filesystem::exists(options.dump_folder / "01-shorten.txt"));
  CHECK(std::filesystem::exists(options.dump_folder / "00-start.txt"));
}

TEST_CASE("a pass that fails, after edits, is undone; the run goes on, or stops when asked") {
  for (const char* how : {"status", "silent", "throw", "half"}) {
    INFO(how);
    Passes fakes;
    fakes.add("bad", [how](const tn_pass_ctx* ctx, const tn_diag* diag) -> tn_status {
      shorten(ctx);
      ctx->count(ctx, to_abi("r"), 1, 1);
      if (std::string_view(how) == "throw") throw std::runtime_error("lost");
      if (std::string_view(how) == "status") report(diag, TN_SEVERITY_ERROR, "", "", "ran out of luck");
      return TN_ERR_INTERNAL;
    });
    fakes.add("shorten", [](const tn_pass_ctx* ctx, const tn_diag*) { return shorten(ctx); });
    fakes.load();
    const auto graph = chain();
    fakes.run(*graph, {"bad", "shorten"});
    CHECK_FALSE(fakes.diagnostics.has_errors());
    CHECK(fakes.diagnostics.all().back().text.find("failed and was undone; the run goes on without it: ") ==
          0);
    CHECK(fakes.report.passes[0].outcome == PassReport::Outcome::rolled_back);
    CHECK(fakes.report.passes[0].nodes_after == 3);
    CHECK(fakes.report.rules.at("r").applied == 0);
    CHECK(fakes.report.passes[1].outcome == PassReport::Outcome::ran);
    CHECK(graph->live_node_count() == 2);
    CHECK(fakes.report.explained.count({"bad", TN_REASON_ROLLBACK}) == 1);

    const auto other = chain();
    PassOptions stop;
    stop.on_error = Manifest::OnError::stop;
    CHECK_THROWS_AS(fakes.run(*other, {"bad"}, stop), Error);
    CHECK(other->live_node_count() == 3);
  }
}

TEST_CASE("a rule found wrong after earlier passes takes the run back to the first one that it spoilt") {
  Passes fakes;
  std::string log;
  // Rule R rewrites in the first and third pass; the check of the third finds it wrong.
  const auto rewrites = [&log](const char* name, bool checks) {
    return [&log, name, checks](const tn_pass_ctx* ctx, const tn_diag* diag) -> tn_status {
      log += name;
      if (view(ctx->switch_of(ctx, to_abi("R"))) == "off") return TN_OK;
      if (checks) {
        report(diag, TN_SEVERITY_WARNING, "E320", "", "R is wrong");
        shorten(ctx);
        ctx->switch_off(ctx, to_abi("R"), to_abi("it computes something else"));
        return TN_OK;
      }
      ctx->count(ctx, to_abi("R"), 1, 1);
      return shorten(ctx);
    };
  };
  fakes.add("one", rewrites("1", false));
  fakes.add("two", [&log](const tn_pass_ctx* ctx, const tn_diag*) {
    log += "2";
    ctx->count(ctx, to_abi("S"), 1, 1);
    return shorten(ctx);
  });
  fakes.add("three", rewrites("3", true));
  fakes.load();
  const auto graph = chain();
  PassOptions options;
  options.rules_verify = 1;
  fakes.run(*graph, {"two", "one", "three"}, options);
  CHECK(log == "21313");
  CHECK(graph->live_node_count() == 2);  // what S did stays
  CHECK(fakes.report.edits == 1);
  CHECK(fakes.report.nodes_after == 2);
  REQUIRE(fakes.report.passes.size() == 3);
  CHECK(fakes.report.passes[1].outcome == PassReport::Outcome::unchanged);
  CHECK(fakes.report.rules.count("R") == 0);
  CHECK(fakes.report.rules.at("S").applied == 1);
  CHECK(fakes.report.switched_off.at("R") == "it computes something else");
  CHECK(fakes.diagnostics.all().size() == 1);
  Diagnostics broken;
  CHECK(verify(*graph, broken));
}

TEST_CASE("a transaction left open is the pass's fault and says so") {
  Passes fakes;
  fakes.add("open", [](const tn_pass_ctx* ctx, const tn_diag*) {
    tn_edit* edit = nullptr;
    return edit_api()->begin(ctx->graph, to_abi("open"), 0, &edit);
  });
  fakes.load();
  const auto graph = chain();
  CHECK_THROWS_WITH(fakes.run(*graph, {"open"}), Catch::Contains("left a transaction open"));
}

TEST_CASE("switches and levels") {
  Passes fakes;
  fakes.add(
      "shorten", [](const tn_pass_ctx* ctx, const tn_diag*) { return shorten(ctx); }, 2);
  fakes.load();
  const auto graph = chain();
  PassOptions low;
  low.level = 1;
  fakes.run(*graph, {"shorten"}, low);
  CHECK(fakes.report.passes[0].outcome == PassReport::Outcome::switched_off);
  CHECK(fakes.report.passes[0].reason == "level 1; the pass runs from level 2");
  CHECK(graph->live_node_count() == 3);
  fakes.switches.add_command_line("shorten:off", fakes.diagnostics);
  fakes.switches.resolve(fakes.diagnostics);
  fakes.run(*graph, {"shorten"});
  CHECK(fakes.report.passes[1].reason == "switched off");
  CHECK(fakes.report.explained.at({"shorten", TN_REASON_SWITCH}).count == 2);
}

TEST_CASE("the limit of edits stops after the N-th, keeps it, and names who made each") {
  for (const uint64_t limit : {0, 1, 2, 3, 9}) {
    INFO(limit);
    Passes fakes;
    fakes.add("shorten_all", [](const tn_pass_ctx* ctx, const tn_diag*) -> tn_status {
      while (Graph::from(ctx->graph).live_node_count() > 1) {
        if (const tn_status status = shorten(ctx); status != TN_OK) return status;
      }
      return TN_OK;
    });
    fakes.load();
    const auto graph = chain();
    PassOptions options;
    options.edit_limit = limit;
    fakes.run(*graph, {"shorten_all"}, options);
    const uint64_t made = std::min<uint64_t>(limit, 2);
    CHECK(graph->live_node_count() == 3 - made);
    CHECK(fakes.report.edits == made);
    CHECK(fakes.report.edit_authors == std::vector<std::string>(made, "shorten"));
    CHECK(fakes.report.edit_limit_reached == (limit <= 2));
    CHECK(fakes.report.passes[0].outcome != PassReport::Outcome::rolled_back);
  }
}

TEST_CASE("a cancelled run ends before the next pass") {
  Passes fakes;
  std::atomic<bool> cancel{false};
  fakes.add("first", [&](const tn_pass_ctx* ctx, const tn_diag*) {
    cancel = true;
    CHECK(ctx->cancelled(ctx) != 0);
    return TN_OK;
  });
  fakes.add("second", nothing);
  fakes.load();
  const auto graph = chain();
  PassOptions options;
  options.cancel = &cancel;
  CHECK_THROWS_AS(fakes.run(*graph, {"first", "second"}, options), Error);
  CHECK(fakes.report.passes.size() == 1);
}
