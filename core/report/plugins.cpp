#include "core/report/plugins.hpp"

#include <algorithm>

#include "core/base/text.hpp"

namespace tenon {

namespace {

Json facts_json(const PluginFacts& facts) {
  return {{"id", facts.id},
          {"name", facts.name},
          {"version", facts.version},
          {"vendor", facts.vendor},
          {"license", facts.license},
          {"summary", facts.summary},
          {"interfaces", facts.interfaces}};
}

const LoadedPlugin* loaded_from(const PluginSet* host, const std::filesystem::path& library) {
  if (host == nullptr) return nullptr;
  for (const LoadedPlugin& plugin : host->loaded()) {
    std::error_code error;
    if (std::filesystem::equivalent(plugin.library, library, error)) return &plugin;
  }
  return nullptr;
}

const QuarantinedPlugin* refused_from(const PluginSet* host, const std::filesystem::path& library) {
  if (host == nullptr) return nullptr;
  for (const QuarantinedPlugin& plugin : host->quarantined()) {
    std::error_code error;
    if (plugin.library == library || std::filesystem::equivalent(plugin.library, library, error))
      return &plugin;
  }
  return nullptr;
}

// The refusal that holds now: the host's own, else what is known.
const Refusal* refusal_of(const InventoryEntry& entry, const PluginSet* host) {
  if (loaded_from(host, entry.plugin.library) != nullptr) return nullptr;
  if (const QuarantinedPlugin* refused = refused_from(host, entry.plugin.library)) return &refused->refusal;
  return entry.refusal ? &*entry.refusal : nullptr;
}

std::string state_of(const InventoryEntry& entry, const PluginSet* host) {
  if (!entry.same_file_as.empty()) return "same file";
  if (loaded_from(host, entry.plugin.library) != nullptr) return "loaded";
  if (refusal_of(entry, host) != nullptr) return "refused";
  return entry.state();
}

// Libraries of a host that lie in no plugin folder.
template <class Plugins>
std::vector<const typename Plugins::value_type*> elsewhere(const Plugins& plugins,
                                                           const std::vector<InventoryEntry>& entries) {
  std::vector<const typename Plugins::value_type*> found;
  for (const auto& plugin : plugins) {
    const bool listed = std::any_of(entries.begin(), entries.end(), [&](const InventoryEntry& entry) {
      std::error_code error;
      return std::filesystem::equivalent(entry.plugin.library, plugin.library, error);
    });
    if (!listed) found.push_back(&plugin);
  }
  return found;
}

Json loaded_json(const LoadedPlugin& plugin) {
  return {{"library", plugin.library.string()},
          {"id", plugin.id},
          {"name", plugin.name},
          {"version", plugin.version},
          {"state", "loaded"}};
}

Json refused_json(const QuarantinedPlugin& plugin) {
  return {{"library", plugin.library.string()},
          {"state", "refused"},
          {"reason", plugin.refusal.reason},
          {"remedy", plugin.refusal.remedy}};
}

std::string row(const std::string& name, const std::string& version, const std::string& id,
                const std::string& summary, const std::filesystem::path& library) {
  return fmt::format("{:<12} {:<8} {:<20} {}\n{:22}{}\n", name, version, id, summary, "", library.string());
}

std::string note(const std::string& text) { return fmt::format("{:22}{}\n", "", text); }

std::string refused_note(const Refusal& refusal) {
  return note("refused: " + refusal.reason + (refusal.remedy.empty() ? "" : " -- " + refusal.remedy));
}

}  // namespace

Json loaded_plugins_json(const PluginSet& plugins) {
  Json all = Json::array();
  for (const LoadedPlugin& plugin : plugins.loaded()) all.push_back(loaded_json(plugin));
  for (const QuarantinedPlugin& plugin : plugins.quarantined()) all.push_back(refused_json(plugin));
  return all;
}

std::string loaded_plugins_text(const PluginSet& plugins) {
  std::string text;
  for (const LoadedPlugin& plugin : plugins.loaded())
    text += fmt::format("{:<12} {:<8} {:<20} {}\n", plugin.name, plugin.version, plugin.id,
                        plugin.library.string());
  for (const QuarantinedPlugin& plugin : plugins.quarantined()) text += plugin.line() + "\n";
  return text;
}

Json inventory_json(const std::vector<InventoryEntry>& entries, const std::vector<PluginFolder>& folders,
                    const PluginSet* host) {
  Json list = Json::array();
  for (const InventoryEntry& entry : entries) {
    Json item = facts_json(entry.plugin.facts);
    item["library"] = entry.plugin.library.string();
    item["state"] = state_of(entry, host);
    item["scanned"] = entry.was_scanned;
    if (const Refusal* refusal = refusal_of(entry, host)) {
      item["reason"] = refusal->reason;
      item["remedy"] = refusal->remedy;
    }
    if (!entry.same_file_as.empty()) item["same_file_as"] = entry.same_file_as.string();
    if (!entry.shadowed_by.empty()) item["shadowed_by"] = entry.shadowed_by.string();
    list.push_back(std::move(item));
  }
  if (host != nullptr) {
    for (const LoadedPlugin* plugin : elsewhere(host->loaded(), entries))
      list.push_back(loaded_json(*plugin));
    for (const QuarantinedPlugin* plugin : elsewhere(host->quarantined(), entries))
      list.push_back(refused_json(*plugin));
  }
  Json searched = Json::array();
  for (const PluginFolder& folder : folders) {
    Json item{{"path", folder.path.string()}, {"from", folder.from}, {"searched", folder.is_searched()}};
    if (!folder.problem.empty()) {
      item["problem"] = folder.problem;
      item["remedy"] = folder.remedy;
    }
    searched.push_back(std::move(item));
  }
  return {{"plugins", std::move(list)}, {"folders", std::move(searched)}};
}

std::string inventory_text(const std::vector<InventoryEntry>& entries,
                           const std::vector<PluginFolder>& folders, const PluginSet* host) {
  std::string text;
  for (const InventoryEntry& entry : entries) {
    const PluginFacts& facts = entry.plugin.facts;
    text += row(facts.name, facts.version, facts.id, facts.summary, entry.plugin.library);
    const std::string state = state_of(entry, host);
    if (state == "loaded") text += note("loaded");
    if (state == "same file") text += note("the same file as " + entry.same_file_as.string());
    if (state == "shadowed") text += note("shadowed by " + entry.shadowed_by.string());
    if (state == "refused") text += refused_note(*refusal_of(entry, host));
  }
  if (host != nullptr) {
    for (const LoadedPlugin* plugin : elsewhere(host->loaded(), entries))
      text += row(plugin->name, plugin->version, plugin->id, "", plugin->library) + note("loaded");
    for (const QuarantinedPlugin* plugin : elsewhere(host->quarantined(), entries))
      text += row("", "", "", "", plugin->library) + refused_note(plugin->refusal);
  }
  text += "folders, in the order of the search:\n";
  for (const PluginFolder& folder : folders) {
    text += "  " + folder.path.string() + " (" + folder.from + ")";
    if (folder.is_absent()) text += ": there is none";
    if (!folder.problem.empty()) text += ": passed over: it " + folder.problem + " -- " + folder.remedy;
    text += "\n";
  }
  return text;
}

}  // namespace tenon
