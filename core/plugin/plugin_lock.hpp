// The lock file of a manifest's plugins, tenon.plugins-lock/1: which files they were when it was written, by
// digest. Written by `tenon plugins lock`; a manifest that has one loads these very files or none.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

struct PluginRequest;

struct LockedPlugin {
  std::string name;            // as the manifest names it; empty: by its path
  std::filesystem::path path;  // absolute; empty: by its name
  std::string id, version, sha256;
  bool absent = false;  // not required, and not to be had when the file was written
};

struct PluginLock {
  std::filesystem::path file;
  std::filesystem::path manifest;  // that it belongs to, for messages
  std::string host_version;        // of the tenon that wrote it
  std::vector<LockedPlugin> plugins;

  const LockedPlugin* find(const PluginRequest& request) const;  // NULL: it has none
};

// pipeline.json -> pipeline.lock.json, in the same folder.
std::filesystem::path lock_file_beside(const std::filesystem::path& manifest);

// Throws Error (exit code 2) naming the file and what is wrong with it.
PluginLock read_plugin_lock(const std::filesystem::path& file, const std::filesystem::path& manifest);
// As it is written: paths relative to the lock file where they are below its folder.
std::string plugin_lock_text(const PluginLock& lock);

}  // namespace tenon
