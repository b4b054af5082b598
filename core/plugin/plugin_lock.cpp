#include "core/plugin/plugin_lock.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/files.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_set.hpp"

namespace tenon {

namespace {

constexpr const char* schema = "tenon.plugins-lock/1";
constexpr uint64_t max_bytes = 16 << 20;

LockedPlugin locked_from_json(const nlohmann::json& json, const std::filesystem::path& folder) {
  LockedPlugin plugin;
  plugin.name = json.value("name", "");
  if (const std::string path = json.value("path", ""); !path.empty())
    plugin.path = (folder / path).lexically_normal();
  plugin.absent = json.value("absent", false);
  if (plugin.absent) return plugin;
  plugin.id = json.at("id").get<std::string>();
  plugin.version = json.at("version").get<std::string>();
  plugin.sha256 = json.at("sha256").get<std::string>();
  return plugin;
}

}  // namespace

const LockedPlugin* PluginLock::find(const PluginRequest& request) const {
  const auto found = std::find_if(plugins.begin(), plugins.end(), [&](const LockedPlugin& plugin) {
    return request.path.empty()
               ? plugin.path.empty() && (plugin.name == request.name || plugin.id == request.name)
               : plugin.path == request.path.lexically_normal();
  });
  return found == plugins.end() ? nullptr : &*found;
}

std::filesystem::path lock_file_beside(const std::filesystem::path& manifest) {
  std::filesystem::path file = manifest;
  return file.replace_extension(".lock.json");
}

PluginLock read_plugin_lock(const std::filesystem::path& file, const std::filesystem::path& manifest) {
  const std::string remedy = "; write it again with `tenon plugins lock " + manifest.string() + "`";
  PluginLock lock;
  lock.file = file;
  lock.manifest = manifest;
  try {
    const nlohmann::json json = nlohmann::json::parse(read_text_file(file, max_bytes));
    if (const std::string found = json.value("schema", ""); found != schema) {
      throw Error(
          exit_bad_input, file.string(),
          "is no lock file of plugins: its schema is '" + found + "'; expected '" + schema + "'" + remedy);
    }
    lock.host_version = json.at("tenon").get<std::string>();
    for (const nlohmann::json& item : json.at("plugins"))
      lock.plugins.push_back(locked_from_json(item, std::filesystem::absolute(file).parent_path()));
  } catch (const nlohmann::json::exception& error) {
    throw Error(exit_bad_input, file.string(),
                std::string("is no lock file of plugins: ") + error.what() + remedy);
  }
  for (const LockedPlugin& plugin : lock.plugins) {
    if (plugin.absent || (plugin.sha256.size() == 64 &&
                          plugin.sha256.find_first_not_of("0123456789abcdef") == std::string::npos))
      continue;
    throw Error(exit_bad_input, file.string(),
                "its sha256 of plugin " + plugin.id + " is '" + plugin.sha256 +
                    "'; expected 64 hexadecimal digits in lower case" + remedy);
  }
  return lock;
}

std::string plugin_lock_text(const PluginLock& lock) {
  const std::filesystem::path folder = std::filesystem::absolute(lock.file).parent_path();
  nlohmann::ordered_json plugins = nlohmann::ordered_json::array();
  for (const LockedPlugin& plugin : lock.plugins) {
    nlohmann::ordered_json item;
    if (!plugin.name.empty()) item["name"] = plugin.name;
    if (!plugin.path.empty()) {
      const std::filesystem::path relative = plugin.path.lexically_relative(folder);
      item["path"] = (relative.empty() || *relative.begin() == ".." ? plugin.path : relative).string();
    }
    if (plugin.absent) {
      item["absent"] = true;
    } else {
      item["id"] = plugin.id;
      item["version"] = plugin.version;
      item["sha256"] = plugin.sha256;
    }
    plugins.push_back(std::move(item));
  }
  const nlohmann::ordered_json json{
      {"schema", schema}, {"tenon", lock.host_version}, {"plugins", std::move(plugins)}};
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace tenon
