// tenon rules learn and tenon rules new: rules written from a model.
#include <algorithm>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/cli/rules.hpp"
#include "core/graph/graph.hpp"

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

struct Written {
  std::string name, text, summary;
  uint64_t occurrences = 0, bytes_saved = 0;
  uint32_t nodes = 0;
  std::vector<std::string> places;
};

struct Sink {
  const Graph* graph;
  std::vector<Written> all;
};

void take(void* context, const tn_rule_draft* draft) {
  auto& sink = *static_cast<Sink*>(context);
  Written w{string(draft->name),
            string(draft->text),
            string(draft->summary),
            draft->occurrences,
            draft->bytes_saved,
            draft->nodes,
            {}};
  for (uint32_t i = 0; i < draft->root_count; ++i)
    w.places.emplace_back(sink.graph->node_name(draft->roots[i]));
  sink.all.push_back(std::move(w));
}

const RuleEngineEntry& engine_that_writes(const Pipeline& p) {
  const RuleEngineEntry* engine = p.engine->registries().rule_engine();
  if (engine == nullptr)
    throw Error(exit_bad_input, "rules", "no plugin provides a rule engine; plugin rules does");
  if (!TN_HAS(engine->record, from_nodes) || engine->record->learn == nullptr ||
      engine->record->from_nodes == nullptr)
    throw Error(exit_bad_input, "rules",
                "the rule engine of plugin " + std::string(engine->plugin) + " writes no rules");
  return *engine;
}

std::string file_text(const std::vector<Written>& rules) {
  std::string text = "{\"schema\": \"tenon.rules/1\", \"rules\": [\n";
  for (size_t i = 0; i < rules.size(); ++i) text += (i ? ",\n" : "") + rules[i].text;
  return text + "]}\n";
}

void write_rules(const std::string& output, const std::vector<Written>& rules) {
  if (!output.empty()) write_file_atomically(output, file_text(rules));
}

// x:1,3,224,224 as the manifest's model.shapes would have it.
std::vector<ShapeOverride> shapes_of(const std::vector<std::string>& flags) {
  std::vector<ShapeOverride> shapes;
  for (const std::string& text : flags) {
    for (const std::string_view one : split(text, ';')) {
      const size_t colon = one.rfind(':');
      ShapeOverride shape;
      shape.where = "--shape " + std::string(one);
      if (colon == std::string_view::npos)
        throw Error(exit_bad_input, shape.where, "names no dimensions; expected NAME:1,3,224,224");
      shape.input = std::string(one.substr(0, colon));
      for (const std::string_view dim : split(one.substr(colon + 1), ',')) {
        if (dim.empty() || dim.size() > 18 || dim.find_first_not_of("0123456789") != std::string_view::npos)
          throw Error(exit_bad_input, shape.where,
                      fmt::format("'{}' is no dimension; expected whole numbers from 0 up", dim));
        ShapeDim d;
        d.number = std::stoll(std::string(dim));
        shape.dims.push_back(std::move(d));
      }
      shapes.push_back(std::move(shape));
    }
  }
  return shapes;
}

int learn(LearnVerb o) {
  o.pipeline.change_manifest = [shapes = shapes_of(o.shapes)](Manifest& m) {
    m.shapes.insert(m.shapes.end(), shapes.begin(), shapes.end());
  };
  if (o.pipeline.print_resolved) return print_resolved_manifest(o.pipeline);
  // Several models: what they propose stands in one file, under names of their own.
  std::vector<Written> rules;
  Json models = Json::array();
  for (const std::string& model : o.models) {
    PipelineOptions options = o.pipeline;
    options.target = model;
    options.json = false;
    Pipeline p = load_pipeline(options);
    const RuleEngineEntry& engine = engine_that_writes(p);
    Sink sink{p.graph.get(), {}};
    Diagnostics findings;
    const tn_learn_options wanted{sizeof(tn_learn_options), o.max_rules, o.max_nodes, o.min_occurrences};
    const tn_status status =
        engine.record->learn(engine.instance, p.graph.get(), &wanted, &take, &sink, findings.abi());
    if (status != TN_OK && !findings.has_errors())
      findings.error("", model, fmt::format("the rule engine failed with status {}", status));
    findings.throw_if_errors(exit_job_failed);
    Json proposals = Json::array();
    for (Written& w : sink.all) {
      proposals.push_back({{"rule", w.name},
                           {"nodes", w.nodes},
                           {"operators", w.summary},
                           {"occurrences", w.occurrences},
                           {"bytes_saved", w.bytes_saved},
                           {"places", w.places}});
      if (!o.pipeline.json && !o.pipeline.quiet)
        std::printf("%-40s %4llu times  saves %-10s %s\n", w.name.c_str(),
                    static_cast<unsigned long long>(w.occurrences), format_bytes(w.bytes_saved).c_str(),
                    w.summary.c_str());
      // The same rule found in two models is one rule.
      const auto same = std::find_if(rules.begin(), rules.end(),
                                     [&](const Written& other) { return other.name == w.name; });
      if (same != rules.end()) {
        if (same->summary == w.summary) continue;
        const std::string old = "\"rule\": \"" + w.name + "\"";
        const std::string fresh = w.name + "_" + fs::path(model).stem().string();
        const size_t at = w.text.find(old);
        if (at != std::string::npos) w.text.replace(at, old.size(), "\"rule\": " + quoted(fresh));
      }
      rules.push_back(std::move(w));
    }
    models.push_back({{"model", model}, {"proposals", proposals}});
  }
  write_rules(o.output, rules);
  if (o.pipeline.json) {
    print_json({{"models", models}, {"file", o.output}});
  } else if (rules.empty()) {
    std::printf("nothing is repeated that fusing would save\n");
  } else if (!o.pipeline.quiet) {
    if (o.output.empty())
      std::printf("%s", file_text(rules).c_str());
    else
      std::printf("%s: %zu rules; `tenon rules test %s` proves them\n", o.output.c_str(), rules.size(),
                  o.output.c_str());
  }
  return 0;
}

int write_new(NewVerb o) {
  if (o.pipeline.print_resolved) return print_resolved_manifest(o.pipeline);
  // The nodes are those of the model, not of what the passes make of it, unless that is asked for.
  if (!o.optimized) o.pipeline.set.push_back("pipeline=[]");
  Pipeline p = load_pipeline(o.pipeline);
  const RuleEngineEntry& engine = engine_that_writes(p);
  std::vector<std::string> known;
  for (tn_node n = 0; n < p.graph->node_bound(); ++n)
    if (p.graph->node(n).alive) known.emplace_back(p.graph->node_name(n));
  std::vector<tn_node> nodes;
  Diagnostics findings;
  for (const std::string_view name : split(o.nodes, ',')) {
    const tn_node node = p.graph->find_node(name);
    if (node == TN_NONE)
      findings.error("", "--from-nodes",
                     "the model has no node '" + std::string(name) + "'" + did_you_mean(name, known));
    else
      nodes.push_back(node);
  }
  findings.throw_if_errors(exit_bad_input);
  Sink sink{p.graph.get(), {}};
  const tn_status status = engine.record->from_nodes(engine.instance, p.graph.get(), nodes.data(),
                                                     static_cast<uint32_t>(nodes.size()), to_abi(o.name),
                                                     &take, &sink, findings.abi());
  if (status != TN_OK && !findings.has_errors())
    findings.error("", "--from-nodes", fmt::format("the rule engine failed with status {}", status));
  findings.throw_if_errors(exit_job_failed);
  write_rules(o.output, sink.all);
  if (o.output.empty())
    std::printf("%s", file_text(sink.all).c_str());
  else if (!o.pipeline.quiet)
    std::printf("%s: rule %s over %u nodes; `tenon rules test %s` proves it\n", o.output.c_str(),
                sink.all.at(0).name.c_str(), sink.all.at(0).nodes, o.output.c_str());
  return 0;
}

}  // namespace

void add_rules_learn(CLI::App& rules, Action& action) {
  auto o = std::make_shared<LearnVerb>();
  auto* verb = rules.add_subcommand("learn", "propose rules for what models repeat and fusing would save");
  add_pipeline_options(*verb, o->pipeline, false);
  verb->add_option("models", o->models, "models or manifests")->required()->type_name("MODEL");
  verb->add_option("-o,--output", o->output, "the rule file to write; none: it is printed")
      ->type_name("FILE");
  verb->add_option("--shape", o->shapes, "shape of an input, as in x:1,3,224,224")->allow_extra_args(false);
  verb->add_option("--max-rules", o->max_rules, "proposals a model")->check(CLI::Range(1, 1000));
  verb->add_option("--max-nodes", o->max_nodes, "nodes of one rule")->check(CLI::Range(2, 64));
  verb->add_option("--min-occurrences", o->min_occurrences, "how often the model must repeat it")
      ->check(CLI::Range(1, 1000000));
  verb->callback([o, &action] { action = [o] { return learn(*o); }; });

  auto n = std::make_shared<NewVerb>();
  auto* fresh = rules.add_subcommand("new", "write a rule whose pattern is given nodes of a model");
  add_pipeline_options(*fresh, n->pipeline);
  fresh->add_option("--from-nodes", n->nodes, "names of the nodes, with commas")
      ->required()
      ->type_name("A,B,C");
  fresh->add_option("--name", n->name, "the rule's name");
  fresh->add_option("-o,--output", n->output, "the rule file to write; none: it is printed")
      ->type_name("FILE");
  fresh->add_flag("--optimized", n->optimized, "nodes of the optimised graph instead of the model's");
  fresh->callback([n, &action] { action = [n] { return write_new(*n); }; });
}

}  // namespace tenon::cli
