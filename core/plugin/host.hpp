// The host as plugins see it: one tn_host a plugin over one table of services found by string id.
#pragma once
#include <tenon/abi/core.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tenon {

std::string_view program_version();  // "1.0.0"
// Differs between two builds of the host whose code differs: part of every cache key.
const std::string& build_id();

// This program's own file. By its path, since tools that run a program for us (valgrind) answer for the link,
// not for what the link opens; "/proc/self/exe" when the file is gone.
std::filesystem::path program_file();

// The file that this code is part of: the program's own, or libtenon where another program embeds it.
const std::filesystem::path& code_file();

// The folder that holds bin/, lib/tenon/plugins and share/tenon: what an embedding program or a test said,
// $TENON_ROOT, or the parent of code_file()'s folder. Never read from the environment of a set-uid program.
std::filesystem::path install_root();
void set_install_root(std::filesystem::path root);

class Host {
 public:
  Host();
  ~Host();
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // `table` (and `context`) stay valid as long as this host; providing an id again replaces it. [main]
  void provide(std::string id, const void* table, void* context = nullptr);
  const void* find(std::string_view id) const;  // NULL: none
  void* context(std::string_view id) const;     // what was given to provide()

  // The host without a plugin behind it, for host code and tests that call an interface themselves.
  const tn_host* abi() const;
  // One for each plugin; lives as long as this object. `options_json` answers tenon.plugin-options/1.
  const tn_host* make_plugin_host(std::string plugin, std::string options_json);
  bool options_were_read(const tn_host* plugin_host) const;
  static std::string_view options_of(const tn_host* plugin_host);

  // The host that handed out this tn_host. [any]
  static Host& from(const tn_host* host);

 private:
  struct PluginHost;
  struct Service {
    const void* table;
    void* context;
  };
  std::map<std::string, Service, std::less<>> services_;
  std::vector<std::unique_ptr<PluginHost>> plugin_hosts_;
};

// Graph, graph-edit, symbols, files and limits. The registry is provided by Registries, eval by the runtime.
void provide_core_services(Host& host);

}  // namespace tenon
