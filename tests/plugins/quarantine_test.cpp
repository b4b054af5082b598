// Every way a plugin can be bad is one line that says what and what to do, and the others still load.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/plugin/host.hpp"
#include "core/plugin/plugin_set.hpp"
#include "test_paths.hpp"

using namespace tenon;

namespace {

namespace fs = std::filesystem;

fs::path fixture(const std::string& name) {
  return fs::path(test::build_dir()) / "tests" / "plugins" / ("lib" + name + ".so");
}

// A cache and an install root of this process's own.
void prepare() {
  setenv("TENON_CACHE_DIR", (test::scratch_dir() + "/cache").c_str(), 1);
  unsetenv("TENON_PLUGIN_PATH");
  set_install_root(test::build_dir());
}

PluginRequest request(const fs::path& library, bool required = false) {
  PluginRequest made;
  made.path = library;
  made.required = required;
  made.where = "pipeline.json:3:5";
  return made;
}

struct Loaded {
  Host host;
  PluginSet plugins;
  Diagnostics diagnostics;
  explicit Loaded(ScanOptions scan = {}) : plugins(host, std::move(scan)) { provide_core_services(host); }
};

// The quarantine line of one library, loaded together with a good one, which must be there afterwards.
std::string refused(const fs::path& library, ScanOptions scan = {}) {
  prepare();
  Loaded loaded(std::move(scan));
  loaded.plugins.load({request(library), request(fixture("good"))}, loaded.diagnostics);
  CHECK(loaded.plugins.find("test.good") != nullptr);
  CHECK_FALSE(loaded.diagnostics.has_errors());
  REQUIRE(loaded.plugins.quarantined().size() == 1);
  return loaded.plugins.quarantined().front().line();
}

std::string line(const fs::path& library, const std::string& reason_and_remedy) {
  return "plugin " + library.string() + ": refused: " + reason_and_remedy;
}

fs::path copy_of(const std::string& name, const std::string& new_name) {
  const fs::path folder = fs::path(test::scratch_dir()) / new_name;
  fs::create_directories(folder);
  const fs::path copy = folder / ("lib" + new_name + ".so");
  if (!fs::exists(copy)) fs::copy_file(fixture(name), copy);  // one that is loaded must not be written over
  return copy;
}

const std::string rebuild = " -- rebuild the plugin with the SDK of this version (1.0)";
const std::string ask_vendor =
    " -- report it to the plugin's vendor, or leave the plugin out of the manifest";

}  // namespace

TEST_CASE("a good plugin loads, its pass is registered, and a second scan comes from the cache") {
  prepare();
  for (const bool from_cache : {false, true}) {
    Loaded loaded;
    if (!from_cache) fs::remove_all(cache_folder());
    loaded.plugins.load({request(copy_of("good", "cached"))}, loaded.diagnostics);
    REQUIRE(loaded.plugins.loaded().size() == 1);
    CHECK(loaded.plugins.loaded().front().id == "test.good");
    CHECK(loaded.plugins.registries().pass("good_pass") != nullptr);
    CHECK(loaded.diagnostics.empty());
  }
  const ScanResult again = scan_plugin(fs::canonical(copy_of("good", "cached")));
  CHECK_FALSE(again.refusal);
}

TEST_CASE("what is in the library's table and file") {
  CHECK(refused(fixture("wrong_major")) ==
        line(fixture("wrong_major"), "does not serve hosts of ABI major 1; it serves major 2" + rebuild));
  CHECK(refused(fixture("missing_symbol")) == line(fixture("missing_symbol"),
                                                   "has no symbol tenon_plugin_entry -- export it as extern "
                                                   "\"C\" with default visibility (TENON_PLUGIN does)"));
  CHECK(refused(fixture("needs_newer_host")) == line(fixture("needs_newer_host"),
                                                     "needs a host of ABI 1.99; this one is 1.0 -- use a "
                                                     "newer tenon, or an older version of the plugin"));
  CHECK(refused(fixture("small_table")).find("its table has 24 bytes; at least ") != std::string::npos);
}

TEST_CASE("what goes wrong in open") {
  CHECK(refused(fixture("throws_in_open")) ==
        line(fixture("throws_in_open"),
             "throws a C++ exception out of open or close: the accelerator is on fire" + ask_vendor));
  CHECK(refused(fixture("fails_in_open")) ==
        line(fixture("fails_in_open"),
             "its open failed with status 6: no device /dev/acme0 -- see the plugin's documentation"));
  CHECK(refused(fixture("crashes_in_open")) ==
        line(fixture("crashes_in_open"), "crashes in open (SIGSEGV)" + ask_vendor));
}

TEST_CASE("what goes wrong while the library is loaded") {
  CHECK(refused(fixture("throws_in_constructor")) ==
        line(fixture("throws_in_constructor"),
             "throws a C++ exception while it is loaded: no licence found" + ask_vendor));
  CHECK(refused(fixture("crashes_on_load")) ==
        line(fixture("crashes_on_load"), "crashes while it is loaded (SIGSEGV)" + ask_vendor));
  CHECK(refused(fixture("aborts_on_load")).find("crashes while it is loaded (SIGABRT)") != std::string::npos);
  CHECK(refused(fixture("exits_on_load")) ==
        line(fixture("exits_on_load"), "ends the program while it is loaded (exit status 7)" + ask_vendor));
}

TEST_CASE("a library that hangs is given up after the time limit") {
  prepare();
  setenv("TENON_SCAN_TIMEOUT_MS", "300", 1);
  const ScanResult scan = scan_plugin(fixture("hangs_on_load"));
  setenv("TENON_SCAN_TIMEOUT_MS", "120000", 1);
  REQUIRE(scan.refusal);
  CHECK(scan.refusal->reason == "does not come back while it is loaded within 300 ms");
  CHECK_FALSE(scan.refusal->lasting);
}

TEST_CASE("what the library needs and does not get") {
  CHECK(refused(fixture("missing_dependency")) ==
        line(fixture("missing_dependency"),
             "needs the library libtenon_test_gone.so, which cannot be found -- install it, or give the "
             "plugin an rpath to it"));
  CHECK(refused(fixture("undefined_symbol"))
            .find("needs the symbol tenon_test_function_nobody_has, which nothing provides") !=
        std::string::npos);
  if (fs::exists(fixture("needs_asan"))) {
    CHECK(refused(fixture("needs_asan")).find("is built with AddressSanitizer (needs libasan.so") !=
          std::string::npos);
  }
}

TEST_CASE("damaged files are told before anything loads them") {
  const fs::path cut = copy_of("good", "cut");
  fs::resize_file(cut, 4096 + 512);
  CHECK(refused(cut).find("is cut short") != std::string::npos);
  const fs::path stub = copy_of("good", "stub");
  fs::resize_file(stub, 60);
  CHECK(refused(stub).find("is not an ELF file (60 bytes)") != std::string::npos);
  const fs::path text = copy_of("good", "text");
  std::ofstream(text, std::ios::trunc)
      << "this is no library, but it is long enough to hold a header of sixty-four bytes";
  CHECK(refused(text).find("is not an ELF file") != std::string::npos);
  const fs::path empty = copy_of("good", "empty");
  fs::resize_file(empty, 0);
  CHECK(refused(empty).find("is not an ELF file (0 bytes)") != std::string::npos);
  const fs::path other = copy_of("good", "other");
  {
    std::fstream file(other, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(18);
    file.put(static_cast<char>(0xF3));  // e_machine: RISC-V
    file.put(0);
  }
  CHECK(refused(other).find("is built for riscv; this program runs on ") != std::string::npos);
}

// Bytes flipped anywhere: refused, or still a plugin; never the end of this process.
TEST_CASE("flipped bytes never reach this process") {
  prepare();
  std::ifstream file(fixture("good"), std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const fs::path folder = fs::path(test::scratch_dir()) / "flipped";
  fs::create_directories(folder);
  ScanOptions scan;
  scan.use_cache = false;
  uint64_t state = 0x9E3779B97F4A7C15u;
  for (int i = 0; i < 24; ++i) {
    std::string changed = bytes;
    for (int flips = 0; flips < 4; ++flips) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      // The first half of the tries goes for the headers.
      const size_t range = i < 12 ? 1024 : changed.size();
      changed[(state >> 33) % range] ^= static_cast<char>(1u << ((state >> 20) & 7));
    }
    const fs::path library = folder / ("lib" + std::to_string(i) + ".so");
    std::ofstream(library, std::ios::binary) << changed;
    const ScanResult result = scan_plugin(library, scan);
    CHECK((result.refusal ? !result.refusal->reason.empty() && !result.refusal->remedy.empty()
                          : result.facts.id.size() > 0));
  }
}

TEST_CASE("a sidecar that says something else than the library") {
  const fs::path library = copy_of("good", "sidecar");
  std::ofstream(sidecar_path(library))
      << R"({"schema": "tenon.plugin/1", "id": "test.good", "name": "good", "version": "1.5.0",
    "abi": {"major": 1, "min_host_minor": 0, "built_host_minor": 0}, "interfaces": ["tenon.passes/1"]})";
  CHECK(refused(library).find("its sidecar says version '1.5.0' but the library has '1.0.0'") !=
        std::string::npos);
  std::ofstream(sidecar_path(library), std::ios::trunc) << "{";
  CHECK(refused(library).find("is no sidecar: ") != std::string::npos);
  std::ofstream(sidecar_path(library), std::ios::trunc)
      << R"({"schema": "tenon.plugin/1", "id": "test.good", "name": "good", "version": "1.0.0",
    "abi": {"major": 1, "min_host_minor": 0, "built_host_minor": 0}, "interfaces": ["tenon.passes/1"]})";
  prepare();
  CHECK_FALSE(scan_plugin(library).refusal);
}

TEST_CASE("a processor feature that the machine lacks is told before the library is opened") {
  const fs::path library = copy_of("crashes_on_load", "features");
  std::ofstream(sidecar_path(library))
      << R"({"schema": "tenon.plugin/1", "id": "test.crashes_on_load", "name": "x", "version": "1.0.0",
    "cpu_feature_bits": 131072, "abi": {"major": 1, "min_host_minor": 0, "built_host_minor": 0}, "interfaces": []})";
#if defined(__x86_64__)
  CHECK(refused(library).find("needs processor features that this machine (or TENON_MAX_ISA) lacks: ") !=
        std::string::npos);
#endif
}

TEST_CASE("records that are malformed are left out one by one") {
  prepare();
  Loaded loaded;
  loaded.plugins.load({request(fixture("malformed_records"), true)}, loaded.diagnostics);
  CHECK(loaded.plugins.registries().pass("malformed_records_pass") != nullptr);
  CHECK(loaded.plugins.registries().passes().size() == 1);
  std::string all;
  for (const Diagnostic& diagnostic : loaded.diagnostics.all()) all += diagnostic.text + "\n";
  CHECK(all.find("('without_run') has no run function; it is left out") != std::string::npos);
  CHECK(
      all.find("record 2 of tenon.passes/1 is smaller than version 1.0 of tn_pass_record; it is left out") !=
      std::string::npos);
  CHECK(all.find("record 3 of tenon.passes/1 is NULL; it is left out") != std::string::npos);
}

TEST_CASE("a required plugin that is refused is an error, an optional one is not; all are told at once") {
  prepare();
  Loaded loaded;
  PluginRequest absent;
  absent.name = "good_agian";
  absent.where = "pipeline.json:2:3";
  loaded.plugins.load({request(fixture("wrong_major"), true), absent, request(fixture("good"))},
                      loaded.diagnostics);
  CHECK(loaded.diagnostics.error_count() == 2);
  CHECK(loaded.diagnostics.all()[0].text.find("refused: does not serve hosts of ABI major 1") !=
        std::string::npos);
  CHECK(loaded.diagnostics.all()[0].where == "pipeline.json:3:5");
  CHECK(loaded.diagnostics.all()[1].text.find("no plugin 'good_agian' is installed") != std::string::npos);
  CHECK(loaded.plugins.find("good") != nullptr);
}

TEST_CASE("one file by two names is one plugin; of two files with one id the higher version wins") {
  prepare();
  const fs::path folder = fs::path(test::scratch_dir()) / "installed";
  fs::create_directories(folder);
  fs::copy_file(fixture("good"), folder / "libgood.so", fs::copy_options::skip_existing);
  fs::copy_file(fixture("good_again"), folder / "libgood_again.so", fs::copy_options::skip_existing);
  if (!fs::exists(folder / "libtwin.so")) fs::create_symlink("libgood.so", folder / "libtwin.so");
  const auto sidecar = [&](const char* file, const char* version) {
    std::ofstream(folder / file)
        << R"({"schema": "tenon.plugin/1", "id": "test.good", "name": ")"
        << (std::string(version) == "1.0.0" ? "good" : "good_again") << R"(", "version": ")" << version
        << R"(", "abi": {"major": 1, "min_host_minor": 0, "built_host_minor": 0}, "interfaces": ["tenon.passes/1"]})";
  };
  sidecar("libgood.plugin.json", "1.0.0");
  sidecar("libgood_again.plugin.json", "2.0.0");
  setenv("TENON_PLUGIN_PATH", folder.c_str(), 1);
  {
    Loaded loaded;
    PluginRequest by_id;
    by_id.name = "test.good";
    loaded.plugins.load({by_id}, loaded.diagnostics);
    REQUIRE(loaded.plugins.loaded().size() == 1);
    CHECK(loaded.plugins.loaded().front().version == "2.0.0");
    REQUIRE(loaded.diagnostics.all().size() == 1);
    CHECK(loaded.diagnostics.all().front().text.find("is installed 2 times") != std::string::npos);
  }
  {
    Loaded loaded;
    loaded.plugins.load({request(folder / "libgood.so", true), request(folder / "libtwin.so", true)},
                        loaded.diagnostics);
    CHECK(loaded.plugins.loaded().size() == 1);
    CHECK(loaded.diagnostics.empty());
    loaded.plugins.load({request(folder / "libgood_again.so", false)}, loaded.diagnostics);
    REQUIRE(loaded.plugins.quarantined().size() == 1);
    CHECK(loaded.plugins.quarantined().front().refusal.reason.find(
              "has the id 'test.good' (version 2.0.0), which ") != std::string::npos);
  }
  unsetenv("TENON_PLUGIN_PATH");
}

TEST_CASE("pins: id, version, digest") {
  prepare();
  const auto reason = [](PluginRequest pinned) {
    Loaded loaded;
    loaded.plugins.load({std::move(pinned)}, loaded.diagnostics);
    return loaded.plugins.quarantined().empty() ? std::string()
                                                : loaded.plugins.quarantined().front().refusal.reason;
  };
  PluginRequest pinned = request(fixture("good"));
  pinned.id = "test.good";
  pinned.min_version = "1.0";
  pinned.sha256 = sha256_file(fixture("good"));
  CHECK(reason(pinned).empty());
  pinned.min_version = "1.10";
  CHECK(reason(pinned) == "has version 1.0.0; the manifest needs at least 1.10");
  pinned.min_version.clear();
  pinned.id = "test.other";
  CHECK(reason(pinned) == "has the id 'test.good'; the manifest expects 'test.other'");
  pinned.sha256 = std::string(64, '0');
  CHECK(reason(pinned).find("has the sha256 ") == 0);
}

TEST_CASE("a cache that cannot be written costs nothing but time") {
  prepare();
  setenv("TENON_CACHE_DIR", "/proc/no-such-folder", 1);
  Loaded loaded;
  loaded.plugins.load({request(fixture("good"), true)}, loaded.diagnostics);
  CHECK(loaded.plugins.loaded().size() == 1);
  CHECK(loaded.diagnostics.empty());
}
