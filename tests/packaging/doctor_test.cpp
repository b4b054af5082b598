// An installation that is broken in one way: the doctor names the part, what is wrong and the remedy, and
// nothing else.
#include <catch2/catch.hpp>

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/files.hpp"
#include "core/cli/doctor_checks.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_lock.hpp"
#include "core/plugin/plugin_set.hpp"
#include "test_paths.hpp"
#include "unprivileged.hpp"

using namespace tenon;
using namespace tenon::cli;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

// A root that looks like an installed one, with the build tree's files behind links, so that it can be taken
// apart.
class Installation {
 public:
  Installation() {
    static int count = 0;
    root = fs::path(test::scratch_dir()) / ("root" + std::to_string(count++));
    const fs::path build = test::build_dir();
    for (const char* folder :
         {"lib/tenon/plugins", "libexec/tenon", "share/tenon/rules", "share/tenon/schemas"})
      fs::create_directories(root / folder);
    for (const char* plugin : {"onnx", "ops", "fusion", "rules", "elementwise", "memory", "tensors", "cpu"}) {
      const fs::path file = plugins() / ("lib" + std::string(plugin) + ".so");
      const fs::path built = build / "lib/tenon/plugins" / file.filename();
      if (!fs::exists(built)) continue;  // cpu is left out where oneDNN is missing
      fs::create_symlink(built, file);
      fs::create_symlink(sidecar_path(built), sidecar_path(file));
    }
    fs::create_symlink(build / "libexec/tenon/tenon-scan", helper());
    fs::create_symlink(build / "lib" / library().filename(), library());
    for (const char* folder : {"rules", "schemas"})
      for (const auto& entry : fs::directory_iterator(build / "share/tenon" / folder))
        fs::create_symlink(entry.path(), root / "share/tenon" / folder / entry.path().filename());
    std::ofstream(root / "share/tenon/VERSION") << program_version() << "\n";
    setenv("TENON_CACHE_DIR", (fs::path(test::scratch_dir()) / "cache").c_str(), 1);
    setenv("XDG_DATA_HOME", (root / "none").c_str(), 1);
    for (const char* variable : {"TENON_PLUGIN_PATH", "TENON_ROOT", "TENON_LOG"}) unsetenv(variable);
    setenv("TENON_SCAN_TIMEOUT_MS", "120000", 1);  // nothing here hangs
    set_install_root(root);
  }
  fs::path plugins() const { return root / "lib/tenon/plugins"; }
  fs::path helper() const { return root / "libexec/tenon/tenon-scan"; }
  fs::path library() const {
    const std::string version(program_version());
    return root / "lib" / ("libtenon.so." + version.substr(0, version.find('.')));
  }
  fs::path root;
};

std::string text(const DoctorFinding& f) {
  return std::string(health_name(f.health)) + " " + f.check + " " + f.where + ": " + f.text +
         (f.remedy.empty() ? "" : " -> " + f.remedy);
}

// What is not in order, one a line. Each error and warning has its remedy, in the message where it is the
// host's own.
std::string faults(const fs::path& manifest = {}) {
  std::string all;
  for (const DoctorFinding& finding : examine_installation(manifest)) {
    if (finding.health < Health::warning) continue;
    all += text(finding) + "\n";
    const bool from_host =
        finding.check.find("manifest") != std::string::npos || finding.check == "lock file";
    INFO(text(finding));
    CHECK((from_host || !finding.remedy.empty()));
  }
  return all;
}

size_t lines(const std::string& text) {
  return static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
}

fs::path fixture(const std::string& name) {
  return fs::path(test::build_dir()) / "tests/plugins" / ("lib" + name + ".so");
}

}  // namespace

TEST_CASE("a whole installation has nothing wrong") {
  const Installation whole;
  CHECK(faults() == "");
  size_t fine = 0;
  for (const DoctorFinding& finding : examine_installation({})) fine += finding.health == Health::ok;
  CHECK(fine > 15);
}

TEST_CASE("the scan helper") {
  const Installation broken;
  fs::remove(broken.helper());
  CHECK_THAT(faults(), Contains("error helper " + broken.helper().string() + ": is not there") &&
                           Contains("install tenon again"));
  std::ofstream(broken.helper()) << "#!/bin/sh\necho 0.9.0\n";
  CHECK_THAT(faults(), Contains("may not be started") && Contains("chmod +x"));
  chmod(broken.helper().c_str(), 0755);
  const std::string said = faults();
  CHECK_THAT(said, Contains("answers '0.9.0' when asked for its version; this program is "));
  CHECK(lines(said) == 1);
}

TEST_CASE("rules, schemas and their version") {
  const Installation broken;
  const fs::path share = broken.root / "share/tenon";
  SECTION("rules that are no JSON") {
    fs::remove(share / "rules" / fs::directory_iterator(share / "rules")->path().filename());
    std::ofstream(share / "rules/zz.json") << "{";
    CHECK_THAT(faults(), Contains("error rules " + (share / "rules/zz.json").string()));
  }
  SECTION("no rules") {
    fs::remove_all(share / "rules");
    CHECK_THAT(faults(), Contains("error rules " + (share / "rules").string() + ": is not there"));
    fs::create_directories(share / "rules");
    CHECK_THAT(faults(), Contains("has no .json file; nothing is fused without them"));
  }
  SECTION("no schemas") {
    fs::remove_all(share / "schemas");
    const std::string said = faults();
    CHECK_THAT(said, Contains("warning schemas " + (share / "schemas").string() + ": is not there"));
    CHECK(lines(said) == 1);
  }
  SECTION("one schema less") {
    fs::remove(share / "schemas/rule.schema.json");
    CHECK_THAT(faults(), Contains("warning schemas " + (share / "schemas/rule.schema.json").string() +
                                  ": is not there"));
  }
  SECTION("of another version") {
    std::ofstream(share / "VERSION") << "0.8.1\n";
    CHECK_THAT(faults(), Contains("error installation") && Contains("says version 0.8.1; this program is "));
    fs::remove(share / "VERSION");
    CHECK_THAT(faults(), Contains("may be of any version"));
  }
  SECTION("nothing at all") {
    set_install_root(broken.root / "elsewhere");
    CHECK_THAT(faults(),
               Contains("error installation " + (broken.root / "elsewhere").string() + ": is no folder"));
  }
}

TEST_CASE("libtenon") {
  const Installation broken;
  fs::remove(broken.library());
  CHECK_THAT(faults(), Contains("warning library " + broken.library().string() + ": is not there"));
  const fs::path older = broken.library().string() + ".0.1";
  std::ofstream(older) << "older";
  fs::create_symlink(older, broken.library());
  CHECK_THAT(faults(), Contains("error library") &&
                           Contains("leads to " + older.filename().string() + "; this program"));
}

TEST_CASE("plugin folders") {
  const Installation broken;
  SECTION("of the installation") {
    fs::remove_all(broken.plugins());
    const std::string said = faults();
    CHECK_THAT(said, Contains("error plugin folders " + broken.plugins().string() + ": is not there") &&
                         Contains("error default manifest") && Contains("no plugin 'onnx' is installed"));
  }
  SECTION("relative ones, and none") {
    setenv("TENON_PLUGIN_PATH", "plugins:/no/such/folder", 1);
    CHECK_THAT(faults(), Contains("error plugin folders plugins: (TENON_PLUGIN_PATH) is a relative path") &&
                             Contains("write the absolute path") &&
                             Contains("/no/such/folder: (TENON_PLUGIN_PATH) does not exist"));
    unsetenv("TENON_PLUGIN_PATH");
  }
  SECTION("one that anybody may write to") {
    const fs::path open = broken.root / "open";
    fs::create_directories(open);
    chmod(open.c_str(), 0777);
    setenv("TENON_PLUGIN_PATH", open.c_str(), 1);
    CHECK_THAT(faults(), Contains("warning plugin folders") && Contains("may be written to by anybody") &&
                             Contains("chmod o-w"));
    unsetenv("TENON_PLUGIN_PATH");
  }
  SECTION("one that may not be read") {
    test::Unprivileged user(broken.root);
    chmod(broken.root.c_str(), 0755);
    if (!user.can_switch(test::build_dir())) return;
    const fs::path closed = broken.root / "closed";
    fs::create_directories(closed);
    chmod(closed.c_str(), 0700);
    setenv("TENON_PLUGIN_PATH", closed.c_str(), 1);
    std::string said;
    user.with([&] { said = faults(); });
    unsetenv("TENON_PLUGIN_PATH");
    // Its owner can read it; run by him, there is nothing to see.
    if (geteuid() == 0)
      CHECK_THAT(said, Contains("cannot be read: Permission denied; it is not searched") &&
                           Contains("give this user permission"));
  }
}

TEST_CASE("plugins that are refused are named with reason and remedy") {
  const Installation broken;
  SECTION("by what they are") {
    fs::copy_file(fixture("missing_symbol"), broken.plugins() / "libmissing_symbol.so");
    std::ofstream(broken.plugins() / "libtext.so") << "no library";
    CHECK_THAT(faults(), Contains("warning plugins " + (broken.plugins() / "libmissing_symbol.so").string() +
                                  ": is refused: has no symbol tenon_plugin_entry -> export it") &&
                             Contains("libtext.so: is refused: is not an ELF file"));
  }
  SECTION("built with a sanitizer that this program lacks") {
    if (!fs::exists(fixture("needs_asan"))) return;
    fs::copy_file(fixture("needs_asan"), broken.plugins() / "libneeds_asan.so");
    CHECK_THAT(faults(), Contains("is refused: is built with AddressSanitizer (needs libasan.so") &&
                             Contains("build the plugin without -fsanitize"));
  }
  SECTION("without a sidecar, which is a warning") {
    fs::copy_file(fixture("good"), broken.plugins() / "libgood.so");
    const std::string said = faults();
    CHECK_THAT(said, Contains("warning plugins") && Contains("has no sidecar libgood.plugin.json"));
    CHECK(lines(said) == 1);
  }
  SECTION("a built-in one of another version") {
    fs::copy_file(fixture("old_built_in"), broken.plugins() / "libold_built_in.so");
    CHECK_THAT(faults(), Contains("is the built-in plugin tenon.old of version 0.9.0; this program is "));
  }
  SECTION("one that the default manifest needs") {
    fs::remove(broken.plugins() / "libops.so");
    std::ofstream(broken.plugins() / "libops.so") << "cut";
    CHECK_THAT(faults(),
               Contains("warning plugins") && Contains("error default manifest") && Contains("libops.so"));
  }
  SECTION("the same file twice is said, and no fault") {
    fs::create_symlink("libops.so", broken.plugins() / "libzz.so");
    CHECK(faults() == "");
  }
}

TEST_CASE("the cache, and the environment") {
  const Installation whole;
  setenv("TENON_CACHE_DIR", "/proc/no-such-folder", 1);
  std::string said = faults();
  CHECK_THAT(said, Contains("warning cache /proc/no-such-folder: cannot be written to") &&
                       Contains("set TENON_CACHE_DIR to a folder that this user may write to"));
  CHECK(lines(said) == 1);
  setenv("TENON_CACHE_DIR", (fs::path(test::scratch_dir()) / "cache").c_str(), 1);
  setenv("TENON_SCAN_TIMEOUT_MS", "soon", 1);
  setenv("TENON_LOG", "loud", 1);
  said = faults();
  unsetenv("TENON_SCAN_TIMEOUT_MS");
  unsetenv("TENON_LOG");
  CHECK_THAT(said, Contains("warning environment TENON_SCAN_TIMEOUT_MS: is 'soon'; expected a number") &&
                       Contains("TENON_LOG: is 'loud'"));
  CHECK(lines(said) == 2);
}

TEST_CASE("a manifest, and its lock file") {
  const Installation whole;
  const fs::path manifest = whole.root / "pipeline.json";
  const auto lock = [&](const std::string& name, const fs::path& library, const std::string& digest,
                        const std::string& version) {
    PluginLock made;
    made.file = whole.root / "pipeline.lock.json";
    made.host_version = version;
    if (!name.empty()) made.plugins.push_back({name, "", "tenon." + name, version, digest, false});
    (void)library;
    std::ofstream(made.file) << plugin_lock_text(made);
  };
  const std::string here(program_version());
  std::ofstream(manifest)
      << R"({"schema": "tenon.pipeline/1", "plugins": ["memory"], "rules": [], "pipeline": []})";
  const fs::path library = whole.plugins() / "libmemory.so";
  CHECK(faults(manifest) == "");
  lock("memory", library, sha256_file(library), here);
  CHECK(faults(manifest) == "");
  lock("memory", library, std::string(64, '0'), here);
  CHECK_THAT(faults(manifest),
             Contains("error lock file") && Contains("M332") && Contains(sha256_file(library)));
  lock("", library, "", here);
  CHECK_THAT(faults(manifest), Contains("error lock file") && Contains("M330"));
  lock("memory", library, sha256_file(library), "0.9.0");
  CHECK_THAT(faults(manifest), Contains("warning lock file") && Contains("was written by tenon 0.9.0"));
  fs::remove(whole.root / "pipeline.lock.json");
  std::ofstream(manifest) << R"({"schema": "tenon.pipeline/1", "plugins": ["memroy"]})";
  CHECK_THAT(faults(manifest), Contains("error manifest") && Contains("did you mean 'memory'"));
}
