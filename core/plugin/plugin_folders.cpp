#include "core/plugin/plugin_folders.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "core/base/text.hpp"
#include "core/plugin/host.hpp"

namespace tenon {

namespace {

// Fills in what is wrong with a folder; `asked_for`: somebody named it, so it must be there.
PluginFolder examined(const std::filesystem::path& path, std::string from, bool asked_for) {
  PluginFolder folder{path, std::move(from), {}, {}, true};
  if (!path.is_absolute()) {
    folder.problem = "is a relative path, which would depend on the working folder";
    folder.remedy = "write the absolute path";
    return folder;
  }
  struct stat facts {};
  if (stat(path.c_str(), &facts) != 0) {
    folder.exists = false;
    if (errno != ENOENT && errno != ENOTDIR) {
      folder.problem = std::string("cannot be reached: ") + std::strerror(errno);
      folder.remedy = "give this user permission to enter the folders above it";
    } else if (asked_for) {
      folder.problem = "does not exist";
      folder.remedy = "make the folder, or take it out";
    }
    return folder;
  }
  if (!S_ISDIR(facts.st_mode)) {
    folder.problem = "is not a folder";
    folder.remedy = "name the folder that the plugins lie in; a single library is named in the manifest";
    return folder;
  }
  // The effective user's permissions, as they count when files are opened.
  if (faccessat(AT_FDCWD, path.c_str(), R_OK | X_OK, AT_EACCESS) != 0) {
    folder.problem = std::string("cannot be read: ") + std::strerror(errno);
    folder.remedy = "give this user permission to read and enter it";
    return folder;
  }
  std::error_code error;
  if (std::filesystem::path canonical = std::filesystem::canonical(path, error); !error)
    folder.path = std::move(canonical);
  return folder;
}

}  // namespace

std::vector<PluginFolder> plugin_folders(const std::vector<std::filesystem::path>& first) {
  std::vector<PluginFolder> folders;
  const auto add = [&folders](const std::filesystem::path& path, const char* from, bool asked_for) {
    PluginFolder folder = examined(path, from, asked_for);
    const bool known = std::any_of(folders.begin(), folders.end(),
                                   [&](const PluginFolder& other) { return other.path == folder.path; });
    if (!known) folders.push_back(std::move(folder));
  };
  for (const std::filesystem::path& path : first) add(path, "the program", true);
  if (const char* list = secure_getenv("TENON_PLUGIN_PATH"); list != nullptr) {
    for (const std::string_view path : split(list, ':'))
      if (!path.empty()) add(std::filesystem::path(path), "TENON_PLUGIN_PATH", true);
  }
  add(install_root() / "lib" / "tenon" / "plugins", "the installation", false);
  // The XDG base directory specification: a relative value is ignored.
  if (const char* data = secure_getenv("XDG_DATA_HOME"); data != nullptr && *data == '/') {
    add(std::filesystem::path(data) / "tenon" / "plugins", "the user's own", false);
  } else if (const char* home = secure_getenv("HOME"); home != nullptr && *home == '/') {
    add(std::filesystem::path(home) / ".local" / "share" / "tenon" / "plugins", "the user's own", false);
  }
  return folders;
}

}  // namespace tenon
