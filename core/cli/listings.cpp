// tenon passes, ops, frontends: what the plugins of a manifest provide.

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/pipeline/model_loader.hpp"

namespace tenon::cli {

namespace {

struct Options {
  std::string manifest, filter;
  std::vector<std::string> plugins;
  bool json = false, types = false;
};

Pipeline open(const Options& o) {
  PipelineOptions po;
  po.target = o.manifest.empty() ? "none.onnx" : o.manifest;
  po.plugins = o.plugins;
  po.quiet = true;
  return open_pipeline(po, read_target(po));
}

std::string option_default(const tn_option_def& d) {
  if (d.is_bool) return d.default_int ? "true" : "false";
  if (d.kind == TN_ATTR_INT) return std::to_string(d.default_int);
  if (d.kind == TN_ATTR_FLOAT) return fmt::format("{:g}", d.default_float);
  return quoted(view(d.default_string));
}

int passes(const Options& o) {
  const Pipeline p = open(o);
  Json all = Json::array();
  for (const auto& e : p.engine->registries().passes()) {
    const auto& r = *e.record;
    Json j = {{"pass", string(r.id)},
              {"plugin", std::string(e.plugin)},
              {"summary", string(r.summary)},
              {"doc", string(r.doc)},
              {"level", r.level}};
    j["options"] = Json::array();
    for (uint32_t i = 0; i < r.option_count; ++i)
      j["options"].push_back({{"name", string(r.options[i].name)},
                              {"default", option_default(r.options[i])},
                              {"doc", string(r.options[i].doc)}});
    j["aliases"] = Json::array();
    for (uint32_t i = 0; i < r.alias_count; ++i) j["aliases"].push_back(string(r.aliases[i]));
    all.push_back(j);
    if (o.json) continue;
    std::printf("%-14s %s (plugin %s, level %d)\n", string(r.id).c_str(), string(r.summary).c_str(),
                std::string(e.plugin).c_str(), r.level);
    if (r.doc.size) std::printf("%15s%s\n", "", string(r.doc).c_str());
    for (uint32_t i = 0; i < r.option_count; ++i)
      std::printf("%15soption %s = %s: %s\n", "", string(r.options[i].name).c_str(),
                  option_default(r.options[i]).c_str(), string(r.options[i].doc).c_str());
  }
  if (o.json) print_json(all);
  return 0;
}

int ops(const Options& o) {
  const Pipeline p = open(o);
  const auto& r = p.engine->registries();
  Json all = Json::array();
  for (const tn_sym op : r.op_symbols()) {
    const tn_op_def& d = *r.find(op)->def;
    const std::string name = (d.domain.size ? string(d.domain) + "::" : "") + string(d.name);
    if (!o.filter.empty() && lower(name).find(lower(o.filter)) == std::string::npos) continue;
    Json kernels = Json::array(), inputs = Json::array(), outputs = Json::array(), attributes = Json::array();
    for (const auto& k : r.kernels(op)) kernels.push_back(string(k.record->id));
    for (uint32_t i = 0; i < d.input_count; ++i)
      inputs.push_back({{"name", string(d.inputs[i].name)},
                        {"type", string(d.inputs[i].type)},
                        {"optional", (d.inputs[i].flags & TN_PARAM_OPTIONAL) != 0},
                        {"variadic", (d.inputs[i].flags & TN_PARAM_VARIADIC) != 0}});
    for (uint32_t i = 0; i < d.output_count; ++i)
      outputs.push_back({{"name", string(d.outputs[i].name)}, {"type", string(d.outputs[i].type)}});
    for (uint32_t i = 0; i < d.attr_count; ++i) {
      const auto& a = d.attrs[i];
      Json j = {{"name", string(a.name)}, {"required", a.required != 0}};
      if (a.has_default && a.kind == TN_ATTR_INT) j["default"] = a.default_int;
      if (a.has_default && a.kind == TN_ATTR_FLOAT) j["default"] = a.default_float;
      if (a.has_default && a.kind == TN_ATTR_STRING) j["default"] = string(a.default_string);
      attributes.push_back(j);
    }
    Json types = Json::object();
    std::string types_text;
    for (uint32_t i = 0; i < d.type_var_count; ++i) {
      const tn_type_var& variable = d.type_vars[i];
      Json names = Json::array();
      std::string text;
      for (uint32_t k = 0; k < variable.dtype_count; ++k) {
        names.push_back(dtype_name(variable.dtypes[k]));
        text += (k ? " " : "") + dtype_name(variable.dtypes[k]);
      }
      types[string(variable.name)] = names;
      types_text += (i ? "; " : "") + string(variable.name) + ": " + (text.empty() ? "any" : text);
    }
    if (!o.json) {
      std::string line;
      for (const auto& k : kernels) line += (line.empty() ? "" : ", ") + k.get<std::string>();
      const std::string versions = d.first_version == d.since_version
                                       ? std::to_string(d.since_version)
                                       : fmt::format("{}..{}", d.first_version, d.since_version);
      std::printf("%-34s %-12s %-7s %s\n", name.c_str(), d.domain.size ? string(d.domain).c_str() : "ai.onnx",
                  versions.c_str(),
                  line.empty() ? (d.decompose ? "(by its decomposition)" : "no kernel") : line.c_str());
      if (o.types && !types_text.empty()) std::printf("    %s\n", types_text.c_str());
      continue;
    }
    all.push_back({{"op", name},
                   {"domain", d.domain.size ? string(d.domain) : "ai.onnx"},
                   {"types", types},
                   {"since_version", d.since_version},
                   {"first_version", d.first_version},
                   {"inputs", inputs},
                   {"outputs", outputs},
                   {"attributes", attributes},
                   {"kernels", kernels},
                   {"decomposes", d.decompose != nullptr}});
  }
  if (o.json) print_json(all);
  return 0;
}

int frontends(const Options& o) {
  const Pipeline p = open(o);
  Json all = Json::array();
  const auto add = [&](const char* kind, const auto& entries) {
    for (const auto& e : entries) {
      Json suffixes = Json::array();
      std::string text;
      for (uint32_t i = 0; i < e.record->suffix_count; ++i) {
        suffixes.push_back(string(e.record->suffixes[i]));
        text += " " + string(e.record->suffixes[i]);
      }
      all.push_back({{"kind", kind},
                     {"id", string(e.record->id)},
                     {"plugin", std::string(e.plugin)},
                     {"summary", string(e.record->summary)},
                     {"suffixes", suffixes}});
      if (!o.json)
        std::printf("%-11s %-10s%s  %s (plugin %s)\n", kind, string(e.record->id).c_str(), text.c_str(),
                    string(e.record->summary).c_str(), std::string(e.plugin).c_str());
    }
  };
  add("frontend", p.engine->registries().frontends());
  add("exporter", p.engine->registries().exporters());
  add("tensors", p.engine->registries().tensor_files());
  const std::string doc = "graphs as text, one line a node: read back to the same graph";
  for (const char* kind : {"frontend", "exporter"})
    all.push_back({{"kind", kind},
                   {"id", text_form_id},
                   {"plugin", ""},
                   {"summary", doc},
                   {"suffixes", {".graph", ".txt"}}});
  if (o.json)
    print_json(all);
  else
    std::printf("%-11s %-10s .graph .txt  %s (the host)\n", "both", std::string(text_form_id).c_str(),
                doc.c_str());
  return 0;
}

int default_manifest() {
  std::printf("%s\n", std::string(default_manifest_text()).c_str());
  return 0;
}

}  // namespace

void add_listings(CLI::App& app, Action& action) {
  auto o = std::make_shared<Options>();
  const auto add = [&](const char* name, const char* doc, int (*f)(const Options&)) {
    auto* verb = app.add_subcommand(name, doc);
    verb->add_option("manifest", o->manifest,
                     "a manifest whose plugins are loaded; the default one otherwise")
        ->check(CLI::ExistingFile);
    verb->add_option("--plugin", o->plugins, "also load this plugin")->allow_extra_args(false);
    verb->add_flag("--json", o->json, "print JSON");
    verb->callback([o, f, &action] { action = [o, f] { return f(*o); }; });
    return verb;
  };
  add("passes", "the passes there are, with their options", passes);
  auto* operators = add("ops", "the operators there are: domain, versions, kernels", ops);
  operators->add_option("--filter", o->filter, "names that contain this");
  operators->add_flag("--types", o->types, "also the element types each takes");
  add("frontends", "readers and writers of models and tensors", frontends);
  app.add_subcommand("default-manifest", "print the manifest that `tenon run MODEL` uses")
      ->callback([&action] { action = default_manifest; });
}

}  // namespace tenon::cli
