// Hosts: a manifest with what the caller adds, opened.
#include <chrono>

#include "core/assembly/assembly.hpp"
#include "core/base/log.hpp"
#include "core/base/text.hpp"
#include "core/plugin/host.hpp"
#include "core/report/plugins.hpp"
#include "lib/internal.hpp"

namespace tenon::lib {

namespace {

std::vector<std::string> texts(const char* const* list, size_t count, const char* what) {
  std::vector<std::string> found;
  if (count != 0) require(list, what);
  for (size_t i = 0; i < count; ++i) {
    if (list[i] == nullptr) throw Misuse{std::string(what) + "[" + std::to_string(i) + "] is NULL"};
    found.emplace_back(list[i]);
  }
  return found;
}

Manifest manifest_of(const tenon_host_options& options, Diagnostics& findings) {
  ManifestOptions read;
  read.set = texts(options.set, options.set_count, "tenon_host_options.set");
  if (options.manifest_path != nullptr && options.manifest_text != nullptr)
    throw Misuse{"tenon_host_options has both manifest_path and manifest_text; give one"};
  if (options.manifest_path != nullptr) return read_manifest(options.manifest_path, read, findings);
  if (options.manifest_text == nullptr) return default_manifest(read, findings);
  const std::filesystem::path folder = std::filesystem::absolute(
      options.manifest_folder == nullptr ? std::filesystem::path(".")
                                         : std::filesystem::path(options.manifest_folder));
  std::optional<Manifest> manifest =
      parse_manifest("manifest", options.manifest_text, folder, read, findings);
  findings.throw_if_errors(exit_bad_input);
  return std::move(*manifest);
}

EngineOptions engine_options(const tenon_host_options& options) {
  EngineOptions made;
  made.scan.use_child = (options.flags & TENON_NO_CHILD_PROCESS) == 0;
  made.scan.use_cache = (options.flags & TENON_NO_SCAN_CACHE) == 0;
  if (options.scan_helper != nullptr) made.scan.helper = options.scan_helper;
  if (options.scan_timeout_ms != 0) made.scan.timeout = std::chrono::milliseconds(options.scan_timeout_ms);
  made.explain = (options.flags & TENON_KEEP_EXPLANATIONS) != 0;
  for (std::string& folder :
       texts(options.plugin_folders, options.plugin_folder_count, "tenon_host_options.plugin_folders")) {
    if (!std::filesystem::path(folder).is_absolute())
      throw Error(exit_bad_input, "plugin folder '" + folder + "'", "is relative; give an absolute path");
    made.scan.folders.emplace_back(std::move(folder));
  }
  return made;
}

log::Level level_of(tn_severity severity) {
  return severity == TN_SEVERITY_DEBUG     ? log::Level::debug
         : severity == TN_SEVERITY_INFO    ? log::Level::info
         : severity == TN_SEVERITY_WARNING ? log::Level::warning
                                           : log::Level::error;
}

}  // namespace

void HostState::tell() {
  const std::vector<Diagnostic>& all = engine->diagnostics().all();
  for (; told < all.size(); ++told) {
    const log::Level at = level_of(all[told].severity);
    if (at >= log::level()) log::write(at, to_string(all[told]));
  }
}

}  // namespace tenon::lib

using namespace tenon;
using namespace tenon::lib;

tenon_status tenon_host_open(const tenon_host_options* options, tenon_host** host, tenon_error** error) {
  return guarded(error, [&] {
    require(host, "host");
    *host = nullptr;
    const tenon_host_options given =
        options == nullptr ? tenon_host_options{} : known_part(options, options->size, "tenon_host_options");
    constexpr uint32_t all_flags = TENON_NO_CHILD_PROCESS | TENON_KEEP_EXPLANATIONS | TENON_NO_SCAN_CACHE;
    if ((given.flags & ~all_flags) != 0)
      throw Misuse{"tenon_host_options.flags has bits that this libtenon does not know: " +
                   std::to_string(given.flags & ~all_flags)};
    if (given.root != nullptr) set_install_root(std::filesystem::absolute(given.root));
    Diagnostics findings;
    Manifest manifest = manifest_of(given, findings);
    for (const std::string& file : texts(given.rules, given.rule_count, "tenon_host_options.rules"))
      manifest.rules.push_back(rule_request(file, "rules " + file));
    for (const std::string& plugin : texts(given.plugins, given.plugin_count, "tenon_host_options.plugins"))
      manifest.plugins.push_back(plugin_request(plugin, "plugin " + plugin));
    auto state = std::make_shared<HostState>();
    const EngineOptions opened = engine_options(given);
    state->explain = opened.explain;
    state->engine = std::make_unique<Engine>(std::move(manifest), opened);
    state->evaluator = std::make_unique<Evaluator>(state->engine->host(), state->engine->registries(),
                                                   runtime_options(state->engine->manifest()));
    for (const Diagnostic& finding : findings.all()) state->engine->diagnostics().add(finding);
    state->tell();
    *host = new tenon_host{std::move(state)};
  });
}

void tenon_host_close(tenon_host* host) { delete host; }

tenon_status tenon_host_plugins(const tenon_host* host, tenon_format format, char** text,
                                tenon_error** error) {
  return guarded(error, [&] {
    require(host, "host");
    require(text, "text");
    const PluginSet& plugins = host->state->engine->plugins();
    *text = as_text(format == TENON_JSON
                        ? loaded_plugins_json(plugins).dump(2, ' ', false, Json::error_handler_t::replace)
                        : loaded_plugins_text(plugins));
  });
}
