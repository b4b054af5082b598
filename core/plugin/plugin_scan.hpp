// Looking at a plugin before it is opened in this process: its ELF file first, then in a child that loads it,
// so that whatever it does while loading happens to the child.
#pragma once
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace tenon {

// Why a plugin is not used, and what to do about it.
struct Refusal {
  std::string reason;
  std::string remedy;
  // False: may go away without the file changing (a missing library, a timeout); never cached.
  bool lasting = true;
};

// What a plugin's table, or its sidecar, says.
struct PluginFacts {
  std::string id, name, version, vendor, license, summary;
  uint32_t abi_major = 0, min_host_minor = 0, built_host_minor = 0;
  uint64_t cpu_features = 0;
  std::vector<std::string> interfaces;
  std::vector<std::string> operators;         // that it defines, qualified
  std::vector<std::string> kernel_operators;  // that it has kernels for
};

struct ScanResult {
  std::optional<Refusal> refusal;  // none: usable
  PluginFacts facts;               // of the table; only when usable
  bool from_cache = false;
};

struct ScanOptions {
  // $TENON_SCAN_TIMEOUT_MS overrides.
  std::chrono::milliseconds timeout{10000};
  // The program that scans: it is started as `helper --scan-plugin PATH`. Empty: this program when it has
  // called scan_plugin_main(), else libexec/tenon/tenon-scan beside it.
  std::filesystem::path helper;
  bool use_cache = true;
  // False: an embedding program that must start no process; a bad plugin then takes it along.
  bool use_child = true;
  std::vector<std::filesystem::path> folders;  // absolute; searched for installed plugins before all others
};

// The first lines of main() of every program that loads plugins:
//   if (const int code = tenon::scan_plugin_main(argc, argv); code >= 0) return code;
// -1: not started as a scan child.
int scan_plugin_main(int argc, char** argv);

// ELF header, segments, sanitizers and the libraries it needs, without loading anything.
std::optional<Refusal> check_library_file(const std::filesystem::path& library);

// check_library_file, then the child, or what the cache remembers of both.
ScanResult scan_plugin(const std::filesystem::path& library, const ScanOptions& options = {});

// $TENON_CACHE_DIR, else $XDG_CACHE_HOME/tenon, else ~/.cache/tenon; empty when there is none.
std::filesystem::path cache_folder();

// The sidecar lib<name>.plugin.json beside a library.
std::filesystem::path sidecar_path(const std::filesystem::path& library);
// Fills facts; otherwise says what is wrong with the sidecar.
std::optional<Refusal> read_sidecar(const std::filesystem::path& sidecar, PluginFacts& facts);

}  // namespace tenon
