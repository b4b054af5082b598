// tenon plugins: list (from sidecars, nothing is opened), inspect (scanned and loaded).
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/plugin/plugin_set.hpp"
#include "core/runtime/cpu_features.hpp"

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string name;
  bool json = false;
};

int list(const Options& o) {
  const auto plugins = PluginSet::installed();
  Json all = Json::array();
  std::map<std::string, std::string> first;  // id -> version shown first, the highest
  for (const auto& p : plugins) {
    std::string state = "ok";
    if (p.sidecar_fault)
      state = "refused: " + p.sidecar_fault->reason + " -- " + p.sidecar_fault->remedy;
    else if (const auto [at, fresh] = first.emplace(p.facts.id, p.facts.version); !fresh)
      state = "shadowed by version " + at->second;
    if (o.json) {
      all.push_back({{"library", p.library.string()},
                     {"id", p.facts.id},
                     {"name", p.facts.name},
                     {"version", p.facts.version},
                     {"vendor", p.facts.vendor},
                     {"license", p.facts.license},
                     {"summary", p.facts.summary},
                     {"interfaces", p.facts.interfaces},
                     {"state", state}});
    } else {
      std::printf("%-12s %-8s %-20s %s\n%*s%s\n", p.facts.name.c_str(), p.facts.version.c_str(),
                  p.facts.id.c_str(), p.facts.summary.c_str(), 22, "", p.library.string().c_str());
      if (state != "ok") std::printf("%*s%s\n", 22, "", state.c_str());
    }
  }
  if (o.json)
    print_json(all);
  else {
    std::printf("folders:");
    for (const auto& f : PluginSet::folders()) std::printf(" %s", f.string().c_str());
    std::printf("\n");
  }
  return 0;
}

int inspect(const Options& o) {
  Manifest m;
  PluginRequest request;
  const bool file = o.name.find('/') != std::string::npos || fs::path(o.name).extension() == ".so";
  if (file)
    request.path = fs::absolute(o.name);
  else
    request.name = o.name;
  request.where = o.name;
  m.path = "plugins inspect";
  m.plugins.push_back(request);
  Engine engine(m);
  const LoadedPlugin& p = engine.plugins().loaded().front();
  const Registries& r = engine.registries();
  Json j = {{"library", p.library.string()},
            {"id", p.id},
            {"name", p.name},
            {"version", p.version},
            {"vendor", string(p.table->vendor)},
            {"license", string(p.table->license)},
            {"summary", string(p.table->summary)},
            {"abi_major", p.table->abi_major},
            {"min_host_minor", p.table->min_host_minor},
            {"built_host_minor", p.table->built_host_minor},
            {"cpu_features", cpu_feature_names(p.table->cpu_features)}};
  j["interfaces"] = Json::array();
  for (uint32_t i = 0; i < p.table->interface_count; ++i) j["interfaces"].push_back(p.table->interfaces[i]);
  const auto names = [](const auto& entries) {
    Json list = Json::array();
    for (const auto& e : entries) list.push_back(string(e.record->id));
    return list;
  };
  j["operators"] = Json::array();
  for (const tn_sym op : r.op_symbols()) {
    const tn_op_def* d = r.find(op)->def;
    j["operators"].push_back((d->domain.size ? string(d->domain) + "::" : "") + string(d->name));
  }
  j["kernels"] = Json::array();
  for (const tn_sym op : r.kernel_ops())
    for (const auto& k : r.kernels(op))
      j["kernels"].push_back(
          {{"id", string(k.record->id)}, {"op", string(k.record->op)}, {"device", string(k.record->device)}});
  j["passes"] = names(r.passes());
  j["frontends"] = names(r.frontends());
  j["exporters"] = names(r.exporters());
  j["memory_planners"] = names(r.planners());
  j["tensor_files"] = names(r.tensor_files());
  j["rule_files"] = r.rule_sources().size();
  if (o.json) {
    print_json(j);
    return 0;
  }
  for (const auto& [key, value] : j.items()) {
    if (!value.is_array()) {
      std::printf("%-18s %s\n", key.c_str(),
                  value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
      continue;
    }
    if (value.empty()) continue;
    std::printf("%-18s %zu\n", key.c_str(), value.size());
    for (const auto& v : value)
      std::printf("  %s\n",
                  v.is_string() ? v.get<std::string>().c_str() : v["id"].get<std::string>().c_str());
  }
  return 0;
}

}  // namespace

void add_plugins(CLI::App& app, Action& action) {
  auto* plugins = app.add_subcommand("plugins", "installed plugins");
  plugins->require_subcommand(1);
  auto o = std::make_shared<Options>();
  auto* l = plugins->add_subcommand("list", "what is installed, what is refused and why; opens nothing");
  l->add_flag("--json", o->json, "print JSON");
  l->callback([o, &action] { action = [o] { return list(*o); }; });
  auto* i = plugins->add_subcommand("inspect", "load one plugin and show all it provides");
  i->add_option("plugin", o->name, "an installed name or id, or a library's path")->required();
  i->add_flag("--json", o->json, "print JSON");
  i->callback([o, &action] { action = [o] { return inspect(*o); }; });
  add_plugins_new(*plugins, action);
}

}  // namespace tenon::cli
