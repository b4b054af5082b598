// Opening a library and checking its table; used by the scan child and, after it, by the host itself.
#pragma once
#include <tenon/abi/core.h>

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/plugin/plugin_scan.hpp"

namespace tenon {

inline constexpr std::string_view ask_vendor =
    "report it to the plugin's vendor, or leave the plugin out of the manifest";

// dlopen(RTLD_NOW | RTLD_LOCAL) and the entry function, through Boost.DLL. The library is never unmapped:
// thread-local objects and shared pointers of a plugin may outlive its instance.
std::variant<tenon_plugin_entry_fn, Refusal> load_library(const std::filesystem::path& library);

// The handshake: the table for our major, or why not. Checks all that can be told without opening an
// instance.
std::variant<const tn_plugin*, Refusal> check_table(tenon_plugin_entry_fn entry);
PluginFacts table_facts(const tn_plugin& table);
// Where a sidecar and a table say different things.
std::optional<Refusal> compare_facts(const PluginFacts& sidecar, const PluginFacts& table);

nlohmann::json facts_to_json(const PluginFacts& facts);
// Throws nlohmann::json::exception when a field is missing or of another type.
PluginFacts facts_from_json(const nlohmann::json& json);

}  // namespace tenon
