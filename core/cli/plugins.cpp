// tenon plugins: list (from sidecars, nothing is opened), inspect (scanned and loaded), lock.
#include <filesystem>

#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/cli/common.hpp"
#include "core/plugin/plugin_inventory.hpp"
#include "core/report/plugins.hpp"
#include "core/runtime/cpu_features.hpp"

namespace tenon::cli {

namespace fs = std::filesystem;

namespace {

struct Options {
  std::string name, manifest, output;
  std::vector<std::string> plugins;
  bool json = false;
};

// The manifest's plugins, none of which ends the listing: what is refused is what one wants to see.
std::unique_ptr<Engine> engine_of(const std::string& path) {
  Diagnostics findings;
  Manifest manifest = read_manifest(path, {}, findings);
  findings.throw_if_errors(exit_bad_input);
  for (PluginRequest& request : manifest.plugins) request.required = false;
  manifest.rules.clear();
  manifest.pipeline.clear();
  manifest.switches.clear();
  manifest.switch_file.clear();
  return std::make_unique<Engine>(std::move(manifest));
}

int list(const Options& o) {
  const std::unique_ptr<Engine> engine = o.manifest.empty() ? nullptr : engine_of(o.manifest);
  const PluginSet* host = engine ? &engine->plugins() : nullptr;
  const auto folders = plugin_folders();
  const auto entries = plugin_inventory(folders);
  if (o.json)
    print_json(inventory_json(entries, folders, host));
  else
    std::printf("%s", printable(inventory_text(entries, folders, host)).c_str());
  if (engine) print_findings(engine->diagnostics().all(), false);
  return 0;
}

const LoadedPlugin* loaded_for(const PluginSet& plugins, const PluginRequest& request) {
  if (request.path.empty()) return plugins.find(request.name);
  for (const LoadedPlugin& plugin : plugins.loaded()) {
    std::error_code error;
    if (fs::equivalent(plugin.library, request.path, error)) return &plugin;
  }
  return nullptr;
}

int lock(const Options& o) {
  Diagnostics findings;
  ManifestOptions read;
  read.set = {"lock=false"};  // the files that are there now, whatever they were
  Manifest manifest = read_manifest(o.manifest, read, findings);
  print_findings(findings.all(), false);
  findings.throw_if_errors(exit_bad_input);
  for (const std::string& plugin : o.plugins)
    manifest.plugins.push_back(plugin_request(plugin, "--plugin " + plugin));
  Engine engine(manifest);
  print_findings(engine.diagnostics().all(), false);

  PluginLock made;
  made.manifest = o.manifest;
  made.file =
      fs::absolute(o.output.empty() ? lock_file_beside(o.manifest) : fs::path(o.output)).lexically_normal();
  made.host_version = program_version();
  for (const PluginRequest& request : manifest.plugins) {
    LockedPlugin plugin;
    plugin.name = request.path.empty() ? request.name : std::string();
    plugin.path = request.path;
    if (const LoadedPlugin* loaded = loaded_for(engine.plugins(), request)) {
      plugin.id = loaded->id;
      plugin.version = loaded->version;
      plugin.sha256 = sha256_file(loaded->library);
    } else {
      plugin.absent = true;
    }
    made.plugins.push_back(std::move(plugin));
  }
  write_file_atomically(made.file, plugin_lock_text(made));
  std::printf("%s: %zu plugins\n", made.file.string().c_str(), made.plugins.size());
  if (made.file != fs::absolute(lock_file_beside(o.manifest)).lexically_normal())
    std::printf("it counts once the manifest says \"lock\": %s\n", quoted(made.file.string()).c_str());
  return 0;
}

int inspect(const Options& o) {
  Manifest m;
  const PluginRequest request = plugin_request(o.name, o.name);
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
  j["devices"] = Json::array();
  for (const auto& d : r.devices())
    j["devices"].push_back({{"id", string(d.record->kind)}, {"count", d.record->count(d.instance)}});
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
  auto* l = plugins->add_subcommand(
      "list",
      "what is installed, refused and why, or shadowed; from sidecars and remembered scans, opens nothing");
  l->add_option("manifest", o->manifest, "also load what this manifest names, and say how that went")
      ->type_name("MANIFEST");
  l->add_flag("--json", o->json, "print JSON");
  l->callback([o, &action] { action = [o] { return list(*o); }; });
  auto* k = plugins->add_subcommand(
      "lock", "write the lock file of a manifest's plugins: from then on it loads these very files or none");
  k->add_option("manifest", o->manifest, "pipeline manifest (.json)")->required()->type_name("MANIFEST");
  k->add_option("-o,--output", o->output, "the file to write; default: MANIFEST's name with .lock.json")
      ->type_name("FILE");
  k->add_option("--plugin", o->plugins, "lock this one too, for runs with the same --plugin")
      ->type_name("NAME|FILE")
      ->allow_extra_args(false);
  k->callback([o, &action] { action = [o] { return lock(*o); }; });
  auto* i = plugins->add_subcommand("inspect", "load one plugin and show all it provides");
  i->add_option("plugin", o->name, "an installed name or id, or a library's path")->required();
  i->add_flag("--json", o->json, "print JSON");
  i->callback([o, &action] { action = [o] { return inspect(*o); }; });
  add_plugins_new(*plugins, action);
  add_plugins_check(*plugins, action);
}

}  // namespace tenon::cli
