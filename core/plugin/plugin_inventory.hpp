// The plugins that lie in the plugin folders, and what can be told of each without opening any: from its
// sidecar, its file, what an earlier scan found, and its neighbours.
#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "core/plugin/plugin_set.hpp"

namespace tenon {

struct InventoryEntry {
  InstalledPlugin plugin;
  // Of its sidecar, of its file, or remembered from an earlier scan. None: nothing speaks against it so far.
  std::optional<Refusal> refusal;
  bool was_scanned = false;            // an earlier scan of this very file is remembered
  std::filesystem::path same_file_as;  // the name that this file goes by, when it is another
  std::filesystem::path shadowed_by;   // the entry before it with the same id and a version at least as high

  // "ready", "refused", "same file" or "shadowed".
  const char* state() const;
};

// `remember`: look into the scan cache.
std::vector<InventoryEntry> plugin_inventory(const std::vector<PluginFolder>& folders, bool remember = true);

}  // namespace tenon
