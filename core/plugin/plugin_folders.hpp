// Where plugins are looked for, in order, and which of these folders cannot be searched.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace tenon {

struct PluginFolder {
  std::filesystem::path path;  // links resolved, once it is known to be there
  std::string from;            // "TENON_PLUGIN_PATH", "the installation", "the user's own", "the program"
  std::string problem;         // "is relative ..."; empty: none
  std::string remedy;
  bool exists = true;

  bool is_searched() const { return exists && problem.empty(); }
  // Not there, and nobody said that it must be: no fault.
  bool is_absent() const { return !exists && problem.empty(); }
};

// `first` (an embedding program's), $TENON_PLUGIN_PATH (colons between), install_root()/lib/tenon/plugins,
// $XDG_DATA_HOME/tenon/plugins or ~/.local/share/tenon/plugins. A folder that stands there twice is listed
// once. Neither variable counts in a set-uid program.
std::vector<PluginFolder> plugin_folders(const std::vector<std::filesystem::path>& first = {});

}  // namespace tenon
