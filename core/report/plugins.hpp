// Plugins as text and JSON: those of a host, and those that lie in the plugin folders.
#pragma once
#include <string>

#include "core/pipeline/json_source.hpp"
#include "core/plugin/plugin_inventory.hpp"
#include "core/plugin/plugin_set.hpp"

namespace tenon {

// What a host loaded, and what it refused and why.
Json loaded_plugins_json(const PluginSet& plugins);
std::string loaded_plugins_text(const PluginSet& plugins);

// What is installed. With `host`, also which of them it loaded or refused.
Json inventory_json(const std::vector<InventoryEntry>& entries, const std::vector<PluginFolder>& folders,
                    const PluginSet* host);
std::string inventory_text(const std::vector<InventoryEntry>& entries,
                           const std::vector<PluginFolder>& folders, const PluginSet* host);

}  // namespace tenon
