// What earlier scans found, by the library's path, inode, size and time and the host's version and build. One
// JSON file, replaced as a whole; a cache that cannot be read or written costs time and nothing else. It
// keeps what the last few hosts found: the program and the programs that embed libtenon are built apart.
#pragma once
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/plugin/plugin_scan.hpp"

namespace tenon {

class ScanCache {
 public:
  explicit ScanCache(std::filesystem::path folder);
  static ScanCache& shared();  // of cache_folder()

  std::optional<ScanResult> find(const std::filesystem::path& library);
  void store(const std::filesystem::path& library, const ScanResult& result);

 private:
  struct Entry {
    std::string key;
    ScanResult result;
  };
  void read();
  void read_entries(const nlohmann::json& plugins);
  void write();
  std::mutex mutex_;
  std::filesystem::path file_;
  std::map<std::string, Entry> entries_;
  std::string other_hosts_;  // JSON: what other hosts wrote, the last first
  bool was_read_ = false;
};

}  // namespace tenon
