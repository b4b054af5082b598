#include "core/plugin/scan_cache.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/files.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_table.hpp"

namespace tenon {

namespace {

constexpr size_t max_entries = 512;
constexpr size_t max_hosts = 4;
constexpr const char* schema = "tenon.plugin-scan/2";

// Empty: there is no such file.
std::string key_of(const std::filesystem::path& library) {
  struct stat facts {};
  if (stat(library.c_str(), &facts) != 0) return {};
  return std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino) + ":" +
         std::to_string(facts.st_size) + ":" + std::to_string(facts.st_mtim.tv_sec) + "." +
         std::to_string(facts.st_mtim.tv_nsec);
}

std::string host_key() { return std::string(program_version()) + " " + build_id(); }

}  // namespace

std::filesystem::path cache_folder() {
  if (const char* folder = secure_getenv("TENON_CACHE_DIR"); folder != nullptr && *folder != '\0')
    return folder;
  if (const char* folder = secure_getenv("XDG_CACHE_HOME"); folder != nullptr && *folder == '/')
    return std::filesystem::path(folder) / "tenon";
  if (const char* home = secure_getenv("HOME"); home != nullptr && *home == '/')
    return std::filesystem::path(home) / ".cache" / "tenon";
  return {};
}

ScanCache::ScanCache(std::filesystem::path folder)
    : file_(folder.empty() ? std::filesystem::path() : folder / "plugin-scan.json") {}

ScanCache& ScanCache::shared() {
  static std::mutex mutex;
  static std::map<std::filesystem::path, ScanCache> caches;
  const std::lock_guard lock(mutex);
  const std::filesystem::path folder = cache_folder();
  return caches.try_emplace(folder, folder).first->second;
}

void ScanCache::read() {
  was_read_ = true;
  if (file_.empty()) return;
  std::ifstream file(file_, std::ios::binary);
  if (!file) return;
  const nlohmann::json json = nlohmann::json::parse(file, nullptr, false);
  if (!json.is_object() || json.value("schema", "") != schema) return;
  const auto hosts = json.find("hosts");
  if (hosts == json.end() || !hosts->is_array()) return;
  nlohmann::json others = nlohmann::json::array();
  for (const nlohmann::json& host : *hosts) {
    if (!host.is_object() || !host.contains("plugins") || !host["plugins"].is_object()) continue;
    if (host.value("host", "") == host_key())
      read_entries(host["plugins"]);
    else if (others.size() + 1 < max_hosts)
      others.push_back(host);
  }
  other_hosts_ = others.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void ScanCache::read_entries(const nlohmann::json& plugins) {
  for (const auto& [path, item] : plugins.items()) {
    try {
      Entry entry;
      entry.key = item.at("key").get<std::string>();
      if (const auto refused = item.find("refused"); refused != item.end()) {
        entry.result.refusal = Refusal{refused->get<std::string>(), item.at("remedy").get<std::string>()};
      } else {
        entry.result.facts = facts_from_json(item.at("facts"));
      }
      entries_.insert_or_assign(path, std::move(entry));
    } catch (const nlohmann::json::exception&) {
      continue;  // a damaged entry is one that is not there
    }
  }
}

void ScanCache::write() {
  if (file_.empty()) return;
  nlohmann::json plugins = nlohmann::json::object();
  for (const auto& [path, entry] : entries_) {
    nlohmann::json item{{"key", entry.key}};
    if (entry.result.refusal) {
      item["refused"] = entry.result.refusal->reason;
      item["remedy"] = entry.result.refusal->remedy;
    } else {
      item["facts"] = facts_to_json(entry.result.facts);
    }
    plugins[path] = std::move(item);
  }
  nlohmann::json hosts = nlohmann::json::array();
  hosts.push_back({{"host", host_key()}, {"plugins", std::move(plugins)}});
  if (!other_hosts_.empty())
    for (nlohmann::json& host : nlohmann::json::parse(other_hosts_)) hosts.push_back(std::move(host));
  const nlohmann::json json{{"schema", schema}, {"hosts", std::move(hosts)}};
  std::error_code error;
  std::filesystem::create_directories(file_.parent_path(), error);
  try {
    write_file_atomically(file_, json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } catch (const Error&) {
    // Scanning again next time is all that is lost.
  }
}

std::optional<ScanResult> ScanCache::find(const std::filesystem::path& library) {
  const std::lock_guard lock(mutex_);
  if (!was_read_) read();
  const auto found = entries_.find(library.string());
  if (found == entries_.end() || found->second.key != key_of(library)) return std::nullopt;
  ScanResult result = found->second.result;
  result.from_cache = true;
  return result;
}

void ScanCache::store(const std::filesystem::path& library, const ScanResult& result) {
  const std::lock_guard lock(mutex_);
  // Another process may have added to it meanwhile.
  read();
  std::string key = key_of(library);
  if (key.empty()) return;
  entries_[library.string()] = Entry{std::move(key), result};
  if (entries_.size() > max_entries) {
    std::erase_if(entries_, [](const auto& entry) { return key_of(entry.first) != entry.second.key; });
    while (entries_.size() > max_entries) entries_.erase(entries_.begin());
  }
  write();
}

}  // namespace tenon
