#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/plugin/plugin_scan.hpp"
#include "core/plugin/plugin_table.hpp"

namespace tenon {

std::filesystem::path sidecar_path(const std::filesystem::path& library) {
  std::filesystem::path path = library;
  return path.replace_extension(".plugin.json");
}

std::optional<Refusal> read_sidecar(const std::filesystem::path& sidecar, PluginFacts& facts) {
  const std::string remedy = "write it again with tenon-sidecar";
  std::ifstream file(sidecar, std::ios::binary);
  if (!file) return Refusal{"its sidecar " + sidecar.string() + " cannot be read", remedy};
  try {
    // Depth is bounded by what the fields below accept; the parser itself does not recurse.
    const nlohmann::json json = nlohmann::json::parse(file);
    const std::string schema = json.value("schema", "");
    if (schema != "tenon.plugin/1") {
      return Refusal{
          "its sidecar " + sidecar.string() + " has the schema '" + schema + "'; expected 'tenon.plugin/1'",
          remedy};
    }
    facts = facts_from_json(json);
  } catch (const nlohmann::json::exception& error) {
    return Refusal{"its sidecar " + sidecar.string() + " is no sidecar: " + error.what(), remedy};
  }
  return std::nullopt;
}

}  // namespace tenon
