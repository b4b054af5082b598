// Level 5: passes, and the rules and transforms that passes use.
#include <set>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/draw.hpp"
#include "core/check/levels.hpp"
#include "core/check/stage.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/eval.hpp"

namespace tenon::check {

namespace {

struct Work {
  std::string name;
  std::unique_ptr<Graph> graph;
};

// The corpus, parts of it, and graphs drawn from the operators' definitions.
std::vector<Work> graphs_to_rewrite(Checker& checker, size_t corpus_limit, uint32_t drawn) {
  const Registries& registries = checker.engine().registries();
  std::vector<Work> work;
  std::vector<CorpusGraph> corpus = load_corpus(registries, checker.request());
  // Evenly over the corpus; a vendor's samples always.
  const size_t step = std::max<size_t>(1, corpus.size() / std::max<size_t>(1, corpus_limit));
  for (size_t i = 0; i < corpus.size(); ++i)
    if (corpus[i].is_sample || i % step == 0) work.push_back({corpus[i].name, corpus[i].graph->clone()});
  const uint32_t count = drawn * checker.request().effort;
  for (uint32_t i = 0; i < count; ++i) {
    Random random = checker.random("graph " + std::to_string(i));
    const bool cut = !corpus.empty() && i % 2 == 0;
    std::unique_ptr<Graph> graph =
        cut ? cut_graph(*corpus[random.below(corpus.size())].graph, random)
            : draw_graph(registries, random, 4 + static_cast<uint32_t>(random.below(8)));
    if (graph != nullptr)
      work.push_back({fmt::format("{} graph {}", cut ? "cut" : "drawn", i), std::move(graph)});
  }
  return work;
}

template <class Look>
void each_pass(Checker& checker, Look&& look) {
  Engine& engine = checker.engine();
  for (const PassEntry& pass : engine.registries().passes())
    if (checker.is_own(pass.plugin)) look(engine, pass, string(pass.record->id));
}

PassTrial run(Engine& engine, const PassEntry& pass, const Graph& graph,
              const PassTrialOptions& options = {}) {
  return run_pass(engine.host(), engine.registries(), pass, engine.rule_sources(), graph, options);
}

// Each own pass over each graph; the subject is begun.
template <class Look>
void each_rewrite(Checker& checker, size_t corpus_limit, uint32_t drawn, Look&& look) {
  std::vector<Work> work;
  each_pass(checker, [&](Engine& engine, const PassEntry& pass, const std::string& id) {
    if (work.empty()) work = graphs_to_rewrite(checker, corpus_limit, drawn);
    for (const Work& one : work)
      if (checker.begin(fmt::format("pass {} on {}", id, one.name))) look(engine, pass, one);
  });
}

// Whether the values of a graph are the same as another's on the same inputs.
std::optional<std::string> value_difference(const Registries& registries, const Graph& before,
                                            const Graph& after, Random random) {
  const std::vector<Tensor> inputs = random_inputs(before, random, Fill::tame);
  if (inputs.size() != before.region(Graph::main_region).inputs.size()) return std::nullopt;
  const RunResult want = run_graph(before, registries, inputs, {});
  if (!want.error.empty()) return std::nullopt;  // nothing to compare with
  const RunResult got = run_graph(after, registries, inputs, {});
  std::optional<std::string> text;
  if (!got.error.empty())
    text = "it no longer runs: " + got.error;
  else
    text = difference(want.outputs, got.outputs);
  if (text && !is_steady(before, registries, inputs, want)) return std::nullopt;
  return text;
}

Json bound(const tn_option_def& option, double value) {
  if (option.kind == TN_ATTR_FLOAT) return value;
  return static_cast<int64_t>(value);
}

}  // namespace

void check_pass_options(Checker& checker) {
  const Registries& records = checker.records();
  for (const PassEntry& pass : records.passes()) {
    const tn_pass_record& record = *pass.record;
    if (!checker.begin("pass " + string(record.id))) continue;
    if (record.summary.size == 0) checker.finding("it has no summary; `tenon passes` shows it");
    if (record.level < 0 || record.level > 3)
      checker.finding(fmt::format("its level is {}; levels are 0 to 3", record.level));
    std::set<std::string> names;
    for (uint32_t i = 0; i < record.option_count; ++i) {
      const tn_option_def& option = record.options[i];
      const std::string name = string(option.name);
      const auto told = [&](const std::string& text) {
        checker.finding(fmt::format("option '{}' {}", name, text));
      };
      if (name.empty()) told("has no name");
      if (!names.insert(name).second) told("is there twice");
      if (option.doc.size == 0) told("has no doc");
      if (option.kind != TN_ATTR_INT && option.kind != TN_ATTR_FLOAT && option.kind != TN_ATTR_STRING &&
          option.kind != TN_ATTR_STRINGS) {
        told(fmt::format("has the kind {}; an int, float, string or list of strings is possible",
                         option.kind));
        continue;
      }
      const double value = option.kind == TN_ATTR_INT     ? static_cast<double>(option.default_int)
                           : option.kind == TN_ATTR_FLOAT ? option.default_float
                                                          : 0;
      const bool is_number = option.kind == TN_ATTR_INT || option.kind == TN_ATTR_FLOAT;
      if (is_number && option.min <= option.max && (value < option.min || value > option.max))
        told(fmt::format("has the default {}, outside its own bounds {} to {}", value, option.min,
                         option.max));
      if (option.is_bool != 0 &&
          (option.kind != TN_ATTR_INT || option.default_int < 0 || option.default_int > 1))
        told("is a bool, but not an int of 0 or 1");
    }
  }
}

void check_passes_keep_graphs_sound(Checker& checker) {
  each_rewrite(checker, 60, 40, [&](Engine& engine, const PassEntry& pass, const Work& work) {
    const PassTrial trial = run(engine, pass, *work.graph);
    if (!trial.failure.empty()) checker.finding(trial.failure);
  });
}

void check_passes_keep_values(Checker& checker) {
  each_rewrite(checker, 60, 40, [&](Engine& engine, const PassEntry& pass, const Work& work) {
    const PassTrial trial = run(engine, pass, *work.graph);
    if (!trial.failure.empty() || trial.edits == 0) return;  // told by the check before
    if (auto text =
            value_difference(engine.registries(), *work.graph, *trial.graph, checker.random(work.name)))
      checker.finding(*text);
  });
}

void check_passes_are_deterministic(Checker& checker) {
  each_rewrite(checker, 25, 10, [&](Engine& engine, const PassEntry& pass, const Work& work) {
    const PassTrial once = run(engine, pass, *work.graph), again = run(engine, pass, *work.graph);
    if (once.failure.empty() && print(*once.graph) != print(*again.graph))
      checker.finding("two runs on one graph give two graphs; go by ids, not by addresses or hashes");
  });
}

void check_passes_are_idempotent(Checker& checker) {
  std::vector<Work> work;
  each_pass(checker, [&](Engine& engine, const PassEntry& pass, const std::string& id) {
    if ((pass.record->flags & TN_PASS_IDEMPOTENT) == 0) return;
    if (work.empty()) work = graphs_to_rewrite(checker, 40, 20);
    for (const Work& one : work) {
      if (!checker.begin(fmt::format("pass {} on {}", id, one.name))) continue;
      const PassTrial once = run(engine, pass, *one.graph);
      if (!once.failure.empty()) continue;
      const PassTrial again = run(engine, pass, *once.graph);
      if (again.edits != 0)
        checker.finding(fmt::format("it is flagged idempotent, but rewrites {} more places the second time",
                                    again.edits));
    }
  });
}

void check_analyses_do_not_edit(Checker& checker) {
  std::vector<Work> work;
  each_pass(checker, [&](Engine& engine, const PassEntry& pass, const std::string& id) {
    if ((pass.record->flags & TN_PASS_ANALYSIS) == 0) return;
    if (work.empty()) work = graphs_to_rewrite(checker, 20, 6);
    for (const Work& one : work) {
      if (!checker.begin(fmt::format("pass {} on {}", id, one.name))) continue;
      if (print(*run(engine, pass, *one.graph).graph) != print(*one.graph))
        checker.finding("it is flagged as an analysis, but changes the graph");
    }
  });
}

void check_passes_in_any_order(Checker& checker) {
  each_rewrite(checker, 25, 6, [&](Engine& engine, const PassEntry& pass, const Work& work) {
    Random random = checker.random("order of " + work.name);
    const std::unique_ptr<Graph> shuffled = shuffle_nodes(*work.graph, engine.registries(), random);
    if (shuffled == nullptr) return;
    const PassTrial trial = run(engine, pass, *shuffled);
    if (!trial.failure.empty()) {
      checker.finding("with its nodes in another order: " + trial.failure);
      return;
    }
    if (auto text = value_difference(engine.registries(), *shuffled, *trial.graph, checker.random(work.name)))
      checker.finding("with its nodes in another order: " + *text);
  });
}

void check_pass_option_bounds(Checker& checker) {
  std::vector<Work> work;
  each_pass(checker, [&](Engine& engine, const PassEntry& pass, const std::string& id) {
    for (uint32_t i = 0; i < pass.record->option_count; ++i) {
      const tn_option_def& option = pass.record->options[i];
      std::vector<Json> values;
      if (option.is_bool != 0) {
        values = {true, false};
      } else if ((option.kind == TN_ATTR_INT || option.kind == TN_ATTR_FLOAT) && option.min <= option.max) {
        values = {bound(option, option.min), bound(option, option.max)};
      } else if (option.kind == TN_ATTR_STRINGS) {
        values = {Json::array(), Json::array({"", "x"})};
      }
      if (work.empty()) work = graphs_to_rewrite(checker, 10, 2);
      for (const Json& value : values)
        for (const Work& one : work) {
          if (!checker.begin(
                  fmt::format("pass {} with {} = {} on {}", id, string(option.name), value.dump(), one.name)))
            continue;
          PassTrialOptions options;
          options.options[string(option.name)] = value;
          const PassTrial trial = run(engine, pass, *one.graph, options);
          if (!trial.failure.empty()) {
            checker.finding(trial.failure);
          } else if (auto text = value_difference(engine.registries(), *one.graph, *trial.graph,
                                                  checker.random(one.name))) {
            checker.finding(*text);
          }
        }
    }
  });
}

void check_passes_can_be_stopped(Checker& checker) {
  each_rewrite(checker, 12, 4, [&](Engine& engine, const PassEntry& pass, const Work& work) {
    PassTrialOptions options;
    // The pipeline ends with an error of its own then; what counts is that the pass comes back.
    options.cancelled = true;
    run(engine, pass, *work.graph, options);
    options.cancelled = false;
    for (const uint64_t limit : {0, 1}) {
      options.edit_limit = limit;
      const PassTrial trial = run(engine, pass, *work.graph, options);
      if (!trial.failure.empty())
        checker.finding(fmt::format("with a limit of {} rewrites: {}", limit, trial.failure));
      if (trial.edits > limit)
        checker.finding(fmt::format("with a limit of {} rewrites it makes {}", limit, trial.edits));
    }
  });
}

void check_rules(Checker& checker) {
  const Registries& own = checker.records();
  if (own.rule_sources().empty()) return;
  // A pipeline with wrong rules cannot be made, so this one is made of the others.
  std::unique_ptr<Engine> others;
  try {
    others = checker.make_engine(false);
  } catch (const Error& error) {
    checker.note(std::string("no pipeline can be made without it: ") + error.what());
    return;
  }
  const Evaluator evaluator(others->host(), others->registries());
  const RuleEngineEntry* const rules = others->registries().rule_engine();
  if (rules == nullptr) {
    checker.note("no rule engine is installed; its rules were not looked at");
    return;
  }
  for (const tn_rule_source& source : own.rule_sources()) {
    if (!checker.begin(string(source.path))) continue;
    Diagnostics said;
    rules->record->check(
        rules->instance, &source, 1, 1, [](void*, const tn_rule_info*) {}, nullptr, said.abi());
    for (const Diagnostic& one : said.all())
      if (one.severity >= TN_SEVERITY_ERROR) checker.finding(one.where + ": " + one.text);
    if (said.has_errors()) continue;
    rules->record->test(
        rules->instance, &source, 1, {nullptr, 0}, checker.request().seed,
        [](void* context, tn_str rule, tn_str name, int passed, tn_str text) {
          if (passed == 0)
            static_cast<Checker*>(context)->finding(
                fmt::format("rule {}, case {}: {}", view(rule), view(name), view(text)));
        },
        &checker, said.abi());
  }
}

void check_transforms(Checker& checker) {
  const Registries& own = checker.records();
  for (const TransformEntry& entry : own.transforms()) {
    const tn_transform& transform = *entry.record;
    for (int i = 0; i < 24; ++i) {
      if (!checker.begin(fmt::format("transform {} with arguments {}", view(transform.name), i))) continue;
      Random random = checker.random(fmt::format("{} {}", view(transform.name), i));
      std::vector<Tensor> tensors;
      for (uint32_t k = 0; k < (i == 0 ? 0 : transform.parameter_count); ++k) {
        std::vector<int64_t> dims(random.below(4));
        for (int64_t& dim : dims) dim = random.between(i % 4 == 1 ? 0 : 1, 4);
        fill(tensors.emplace_back(random.of({TN_FLOAT32, TN_FLOAT32, TN_INT64, TN_FLOAT16, TN_INT8}), dims),
             random, Fill::tame);
      }
      std::vector<tn_tensor> arguments;
      for (const Tensor& tensor : tensors) arguments.push_back(tensor.view());
      int results = 0;
      Diagnostics said;
      const tn_status status = transform.apply(
          entry.instance, arguments.data(), static_cast<uint32_t>(arguments.size()),
          [](void* context, const tn_tensor* result) { *static_cast<int*>(context) += result != nullptr; },
          &results, said.abi());
      if (status == TN_OK && results != 1)
        checker.finding(fmt::format("it says it is done, but gave {} results", results));
      if (status != TN_OK && said.all().empty())
        checker.finding(fmt::format("it answers status {} and does not say why", status));
      if (status == TN_ERR_INTERNAL)
        checker.finding("it answers that it has a bug (TN_ERR_INTERNAL): " + said.first_error());
    }
  }
}

}  // namespace tenon::check
