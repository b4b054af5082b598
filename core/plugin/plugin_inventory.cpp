#include "core/plugin/plugin_inventory.hpp"

#include <sys/stat.h>

#include <map>

#include "core/plugin/plugin_table.hpp"
#include "core/plugin/scan_cache.hpp"

namespace tenon {

const char* InventoryEntry::state() const {
  if (!same_file_as.empty()) return "same file";
  if (refusal) return "refused";
  return shadowed_by.empty() ? "ready" : "shadowed";
}

namespace {

using FileIdentity = std::pair<uint64_t, uint64_t>;

FileIdentity identity_of(const std::filesystem::path& library) {
  struct stat facts {};
  return stat(library.c_str(), &facts) == 0 ? FileIdentity{facts.st_dev, facts.st_ino} : FileIdentity{0, 0};
}

// Which of its names a file goes by: the first one that has a sidecar, else the first.
std::map<FileIdentity, std::filesystem::path> names_of_files(const std::vector<InstalledPlugin>& plugins) {
  std::map<FileIdentity, std::filesystem::path> names;
  for (const bool with_sidecar : {true, false}) {
    for (const InstalledPlugin& plugin : plugins)
      if (plugin.has_sidecar == with_sidecar) names.emplace(identity_of(plugin.library), plugin.library);
  }
  return names;
}

}  // namespace

std::vector<InventoryEntry> plugin_inventory(const std::vector<PluginFolder>& folders, bool remember) {
  std::vector<InventoryEntry> entries;
  std::vector<InstalledPlugin> plugins = PluginSet::installed(folders);
  const auto names = names_of_files(plugins);
  std::map<std::string, std::filesystem::path> ids;
  for (InstalledPlugin& plugin : plugins) {
    InventoryEntry entry;
    entry.plugin = std::move(plugin);
    InstalledPlugin& p = entry.plugin;
    if (const FileIdentity file = identity_of(p.library);
        file != FileIdentity{0, 0} && names.at(file) != p.library)
      entry.same_file_as = names.at(file);
    entry.refusal = p.sidecar_fault;
    if (!entry.refusal) entry.refusal = check_library_file(p.library);
    if (!entry.refusal && remember) {
      std::error_code error;
      const std::filesystem::path file = std::filesystem::canonical(p.library, error);
      if (std::optional<ScanResult> known = error ? std::nullopt : ScanCache::shared().find(file)) {
        entry.was_scanned = true;
        entry.refusal = known->refusal;
        if (!entry.refusal && p.has_sidecar) entry.refusal = compare_facts(p.facts, known->facts);
        if (!entry.refusal && !p.has_sidecar) p.facts = known->facts;
      }
    }
    // Only what can be used casts a shadow.
    if (!entry.refusal && entry.same_file_as.empty() && !p.facts.id.empty()) {
      if (const auto [at, fresh] = ids.emplace(p.facts.id, p.library); !fresh) entry.shadowed_by = at->second;
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

}  // namespace tenon
