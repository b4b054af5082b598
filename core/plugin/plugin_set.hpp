// Finding plugins, refusing bad ones with a reason, loading those that a manifest names.
#pragma once
#include <tenon/abi/core.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/diagnostics.hpp"
#include "core/plugin/plugin_folders.hpp"
#include "core/plugin/plugin_lock.hpp"
#include "core/plugin/plugin_scan.hpp"
#include "core/plugin/registries.hpp"

namespace tenon {

class Host;

// One entry of a manifest's "plugins".
struct PluginRequest {
  std::string name;            // short name or id of an installed one; empty when `path` is given
  std::filesystem::path path;  // absolute
  std::string id;              // with `path`: the id it must have
  std::string min_version;
  std::string sha256;  // lower-case hex; the file must have it
  std::string options_json;
  bool required = true;  // absent or refused: an error; else a note, and the run goes on
  std::string where;     // place in the manifest
};

struct InstalledPlugin {
  std::filesystem::path library;
  PluginFacts facts;  // of its sidecar
  bool has_sidecar = false;
  std::optional<Refusal> sidecar_fault;
};

struct LoadedPlugin {
  const tn_plugin* table;
  void* instance;
  std::string id, name, version;
  std::filesystem::path library;
  bool scanned_from_cache;
};

struct QuarantinedPlugin {
  std::filesystem::path library;
  Refusal refusal;
  // "plugin /path/libx.so: refused: <reason> -- <remedy>"
  std::string line() const;
};

class PluginSet {
 public:
  explicit PluginSet(Host& host, ScanOptions scan = {});
  ~PluginSet();  // closes the instances; the libraries stay mapped
  PluginSet(const PluginSet&) = delete;
  PluginSet& operator=(const PluginSet&) = delete;

  // All installed, from their sidecars; opens nothing. Sorted by id, then version, the highest first, then in
  // the order of the folders.
  static std::vector<InstalledPlugin> installed(const std::vector<PluginFolder>& folders = plugin_folders());

  // From now on only what the lock file has is loaded, and only the very files it has.
  void set_lock(PluginLock lock) { lock_ = std::move(lock); }

  // Loads in the order asked for. Required ones that cannot be had are errors in `diagnostics` (all of them),
  // others notes; refusals are kept in quarantined() too. [main]
  void load(const std::vector<PluginRequest>& requests, Diagnostics& diagnostics);

  const std::vector<LoadedPlugin>& loaded() const { return loaded_; }
  const LoadedPlugin* find(std::string_view name_or_id) const;
  // Installed plugins that are not loaded and define the operator ("com.acme::Fancy"; in a rule perhaps
  // without its domain), or with `kernel` have one for it, as their sidecars say.
  std::vector<std::string> plugins_with_operator(std::string_view op, bool kernel = false) const;
  const std::vector<QuarantinedPlugin>& quarantined() const { return quarantined_; }
  Registries& registries() { return registries_; }
  const Registries& registries() const { return registries_; }

 private:
  const std::vector<InstalledPlugin>& read_installed() const;
  void load_one(const PluginRequest& request, Diagnostics& diagnostics);
  std::vector<std::filesystem::path> candidates(const PluginRequest& request, Diagnostics& diagnostics);
  void report_missing(const PluginRequest& request, Diagnostics& diagnostics) const;
  // Leaves only the file that the lock has; false: nothing may be loaded, which is said.
  bool apply_lock(const PluginRequest& request, std::vector<std::filesystem::path>& libraries,
                  Diagnostics& diagnostics) const;
  std::optional<Refusal> open(const std::filesystem::path& library, const PluginRequest& request,
                              Diagnostics& diagnostics);
  static std::optional<Refusal> check_pins(const std::filesystem::path& library, const PluginFacts& facts,
                                           const PluginRequest& request);
  void refuse(const std::filesystem::path& library, const Refusal& refusal, const PluginRequest& request,
              bool is_last, Diagnostics& diagnostics);

  Host& host_;
  ScanOptions scan_;
  Registries registries_;
  std::vector<LoadedPlugin> loaded_;
  std::vector<QuarantinedPlugin> quarantined_;
  mutable std::vector<InstalledPlugin> installed_;
  mutable bool installed_read_ = false;
  std::map<std::string, std::string, std::less<>> with_operator_;  // what plugins were told
  std::optional<PluginLock> lock_;
  std::vector<std::pair<uint64_t, uint64_t>> files_;  // device and inode of each loaded one
};

// Negative, 0, positive as a is older than, the same as, newer than b ("1.10" is newer than "1.9").
int compare_versions(std::string_view a, std::string_view b);

std::string sha256_file(
    const std::filesystem::path& path);  // lower-case hex; throws Error when it cannot be read

}  // namespace tenon
