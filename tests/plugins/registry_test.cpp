// What lies in the plugin folders and what may be loaded of it: folders that cannot be searched, files that
// shadow one another, the lock file, what is remembered of scans, and plugins with the same symbols side by
// side.
#include <catch2/catch.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/files.hpp"
#include "core/pipeline/pipeline.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_inventory.hpp"
#include "core/plugin/scan_cache.hpp"
#include "core/report/plugins.hpp"
#include "test_paths.hpp"
#include "unprivileged.hpp"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

fs::path fixture(const std::string& name) {
  return fs::path(test::build_dir()) / "tests" / "plugins" / ("lib" + name + ".so");
}

// An empty folder, a cache of this case's own and no other plugin folder than the build tree's.
fs::path fresh(const std::string& name) {
  const fs::path folder = fs::path(test::scratch_dir()) / ("registry_" + name);
  fs::remove_all(folder);
  fs::create_directories(folder);
  setenv("TENON_CACHE_DIR", (folder / "cache").c_str(), 1);
  setenv("XDG_DATA_HOME", (folder / "data").c_str(), 1);
  unsetenv("TENON_PLUGIN_PATH");
  set_install_root(test::build_dir());
  return fs::canonical(folder);
}

fs::path put(const std::string& name, const fs::path& folder, const std::string& as = {}) {
  const fs::path file = folder / ("lib" + (as.empty() ? name : as) + ".so");
  fs::create_directories(folder);
  fs::copy_file(fixture(name), file, fs::copy_options::overwrite_existing);
  return file;
}

void sidecar(const fs::path& library, const std::string& id, const std::string& name,
             const std::string& version) {
  std::ofstream(sidecar_path(library))
      << R"({"schema": "tenon.plugin/1", "id": ")" << id << R"(", "name": ")" << name << R"(", "version": ")"
      << version
      << R"(", "abi": {"major": 1, "min_host_minor": 0, "built_host_minor": 0}, "interfaces": ["tenon.passes/1"]})";
}

const PluginFolder* find(const std::vector<PluginFolder>& folders, const fs::path& path) {
  for (const PluginFolder& folder : folders)
    if (folder.path == path) return &folder;
  return nullptr;
}

std::string texts(const Diagnostics& diagnostics) {
  std::string all;
  for (const Diagnostic& diagnostic : diagnostics.all()) all += to_string(diagnostic) + "\n";
  return all;
}

// A manifest of these plugins, opened. What it says.
std::string opened(const fs::path& manifest) {
  Diagnostics found;
  try {
    const Engine engine(read_manifest(manifest, {}, found));
    found.append(engine.diagnostics());
    return texts(found);
  } catch (const Error& error) {
    return error.what();
  }
}

void write_manifest(const fs::path& file, const std::string& plugins, const std::string& more = {}) {
  std::ofstream(file) << R"({"schema": "tenon.pipeline/1", "rules": [], "pipeline": [], "plugins": [)"
                      << plugins << "]" << more << "}";
}

// What `tenon plugins lock` writes, for files that the test chooses.
void write_lock(const fs::path& file, std::vector<LockedPlugin> plugins) {
  PluginLock lock;
  lock.file = file;
  lock.host_version = program_version();
  lock.plugins = std::move(plugins);
  std::ofstream(file) << plugin_lock_text(lock);
}

}  // namespace

TEST_CASE("folders: in order, once each, absolute only, and what is wrong with the others is told") {
  const fs::path at = fresh("folders");
  fs::create_directories(at / "one");
  fs::create_directories(at / "first");
  std::ofstream(at / "file") << "no folder";
  fs::create_directory_symlink(at / "one", at / "link");
  setenv("TENON_PLUGIN_PATH",
         ("relative/plugins::" + (at / "one").string() + ":" + (at / "link").string() + ":" +
          (at / "file").string() + ":" + (at / "gone").string())
             .c_str(),
         1);
  const std::vector<PluginFolder> folders = plugin_folders({at / "first"});
  unsetenv("TENON_PLUGIN_PATH");
  REQUIRE(folders.size() == 7);
  CHECK(folders[0].path == at / "first");
  CHECK(folders[0].is_searched());
  CHECK(folders[1].path == "relative/plugins");
  CHECK(folders[1].problem == "is a relative path, which would depend on the working folder");
  CHECK(folders[2].path == at / "one");  // and the link to it not again
  CHECK(folders[3].problem == "is not a folder");
  CHECK(folders[4].problem == "does not exist");
  CHECK(folders[5].path == fs::path(test::build_dir()) / "lib" / "tenon" / "plugins");
  CHECK(folders[5].from == "the installation");
  CHECK(folders[6].is_absent());  // one's own need not be there
  for (const PluginFolder& folder : folders) CHECK(folder.problem.empty() == folder.remedy.empty());
}

TEST_CASE(
    "a folder that may not be read is passed over and named where a plugin is missing; a read-only one "
    "serves") {
  const fs::path at = fresh("unreadable");
  test::Unprivileged user(at);
  if (!user.can_switch(test::build_dir())) return;
  const fs::path closed = at / "closed", read_only = at / "read_only";
  put("good", closed);
  put("good", read_only);
  sidecar(read_only / "libgood.so", "test.good", "good", "1.0.0");
  chmod(closed.c_str(), 0700);
  chmod(read_only.c_str(), 0555);
  setenv("TENON_PLUGIN_PATH", (closed.string() + ":" + read_only.string()).c_str(), 1);
  user.with([&] {
    const std::vector<PluginFolder> folders = plugin_folders();
    REQUIRE(find(folders, closed) != nullptr);
    CHECK_THAT(find(folders, closed)->problem, Contains("cannot be read: Permission denied"));
    Host host;
    provide_core_services(host);
    PluginSet plugins(host);
    Diagnostics diagnostics;
    PluginRequest absent;
    absent.name = "no_such";
    absent.where = "m.json:1:1";
    PluginRequest good;
    good.name = "good";
    plugins.load({absent, good}, diagnostics);
    CHECK_THAT(texts(diagnostics), Contains("no plugin 'no_such' is installed in " + read_only.string()) &&
                                       Contains("the folder " + closed.string() +
                                                " (TENON_PLUGIN_PATH) was passed over: it cannot be read"));
    CHECK(plugins.find("good") != nullptr);
  });
  unsetenv("TENON_PLUGIN_PATH");
  chmod(closed.c_str(), 0755);
  chmod(read_only.c_str(), 0755);
}

TEST_CASE("the inventory: ready, the same file, shadowed, refused by its file, refused as remembered") {
  const fs::path at = fresh("inventory");
  const fs::path folder = at / "plugins";
  sidecar(put("good", folder), "test.good", "good", "1.0.0");
  sidecar(put("good_again", folder), "test.good", "good_again", "2.0.0");
  fs::create_symlink("libgood_again.so", folder / "libtwin.so");
  put("crashes_in_open", folder);
  const fs::path cut = put("good", folder, "cut");
  fs::resize_file(cut, 5000);
  setenv("TENON_PLUGIN_PATH", folder.c_str(), 1);
  const auto state_of = [](const std::vector<InventoryEntry>& entries, const std::string& file) {
    for (const InventoryEntry& entry : entries)
      if (entry.plugin.library.filename() == file)
        return std::string(entry.state()) + (entry.refusal ? ": " + entry.refusal->reason : "");
    return std::string("not listed");
  };
  const std::vector<PluginFolder> folders = plugin_folders();
  std::vector<InventoryEntry> entries = plugin_inventory(folders);
  CHECK(state_of(entries, "libgood_again.so") == "ready");
  CHECK(state_of(entries, "libgood.so") == "shadowed");
  CHECK(state_of(entries, "libtwin.so") == "same file");
  CHECK(state_of(entries, "libcrashes_in_open.so") == "ready");  // nobody has looked
  CHECK_THAT(state_of(entries, "libcut.so"), Contains("refused: is cut short"));

  CHECK(scan_plugin(folder / "libcrashes_in_open.so").refusal);
  entries = plugin_inventory(folders);
  CHECK(state_of(entries, "libcrashes_in_open.so") == "refused: crashes in open (SIGSEGV)");
  const std::string text = inventory_text(entries, folders, nullptr);
  CHECK_THAT(text, Contains("refused: crashes in open (SIGSEGV) -- report it to the plugin's vendor") &&
                       Contains("shadowed by " + (folder / "libgood_again.so").string()) &&
                       Contains("the same file as " + (folder / "libgood_again.so").string()) &&
                       Contains(folder.string() + " (TENON_PLUGIN_PATH)"));

  // With a host that loaded one and refused another: what happened there counts.
  Host host;
  provide_core_services(host);
  PluginSet plugins(host);
  Diagnostics diagnostics;
  PluginRequest good, crashing;
  good.name = "good_again";
  crashing.path = folder / "libcrashes_in_open.so";
  crashing.required = false;
  plugins.load({good, crashing}, diagnostics);
  const Json json = inventory_json(entries, folders, &plugins);
  for (const Json& plugin : json.at("plugins")) {
    const std::string file = fs::path(plugin.at("library").get<std::string>()).filename();
    if (file == "libgood_again.so") CHECK(plugin.at("state") == "loaded");
    if (file == "libgood.so") CHECK(plugin.at("shadowed_by") == (folder / "libgood_again.so").string());
    if (file == "libcrashes_in_open.so") CHECK(plugin.at("reason") == "crashes in open (SIGSEGV)");
    if (file == "libcut.so") CHECK_FALSE(plugin.at("remedy").get<std::string>().empty());
  }
  CHECK(json.at("folders").at(0).at("searched") == true);
  unsetenv("TENON_PLUGIN_PATH");
}

TEST_CASE("of equal versions the folder that comes first wins") {
  const fs::path at = fresh("order");
  // The later folder's name sorts first.
  sidecar(put("good", at / "z"), "test.good", "good", "1.0.0");
  sidecar(put("good", at / "a"), "test.good", "good", "1.0.0");
  setenv("TENON_PLUGIN_PATH", ((at / "z").string() + ":" + (at / "a").string()).c_str(), 1);
  Host host;
  provide_core_services(host);
  PluginSet plugins(host);
  Diagnostics diagnostics;
  PluginRequest good;
  good.name = "good";
  plugins.load({good}, diagnostics);
  REQUIRE(plugins.loaded().size() == 1);
  CHECK(plugins.loaded().front().library == at / "z" / "libgood.so");
  CHECK_THAT(texts(diagnostics), Contains((at / "a" / "libgood.so").string()));  // both are shown
  unsetenv("TENON_PLUGIN_PATH");
}

TEST_CASE("a lock file: the very files, or an error that names file, expected, found and remedy") {
  const fs::path at = fresh("lock");
  const fs::path library = put("good", at / "lib");
  const fs::path manifest = at / "pipeline.json";
  const fs::path lock_file = at / "pipeline.lock.json";
  write_manifest(manifest, R"({"path": "lib/libgood.so"}, {"name": "not_there", "required": false})");
  LockedPlugin good{"", library, "test.good", "1.0.0", sha256_file(library), false};
  LockedPlugin absent{"not_there", "", "", "", "", true};
  write_lock(lock_file, {good, absent});
  // Moved as a whole, the lock still fits: its paths are relative.
  CHECK_THAT(read_text_file(lock_file), Contains("\"lib/libgood.so\""));
  CHECK_THAT(opened(manifest), !Contains("error") && !Contains("warning"));

  SECTION("another file under the same name") {
    fs::remove(library);
    fs::copy_file(fixture("good_again"), library);
    const std::string said = opened(manifest);
    CHECK_THAT(said, Contains("error M332: " + manifest.string() + ":1:") && Contains(library.string()) &&
                         Contains("has the sha256 " + sha256_file(library)) &&
                         Contains("expects " + good.sha256 + " (test.good 1.0.0)") &&
                         Contains("write it again with `tenon plugins lock " + manifest.string() + "`"));
    // Said to be right by whoever writes it again.
    good.sha256 = sha256_file(library);
    good.version = "2.0.0";
    write_lock(lock_file, {good, absent});
    CHECK_THAT(opened(manifest), !Contains("error"));
  }
  SECTION("a plugin that it does not have") {
    write_lock(lock_file, {absent});
    CHECK_THAT(opened(manifest),
               Contains("error M330") && Contains("is not in the lock file " + lock_file.string()));
  }
  SECTION("one that it has and the manifest does not name") {
    write_lock(lock_file, {good, absent, {"left_over", "", "x.y", "1.0", std::string(64, 'a'), false}});
    CHECK_THAT(opened(manifest), Contains("warning M333") && Contains("has plugin left_over, which"));
  }
  SECTION("one that was absent and has come since") {
    sidecar(put("good_again", at / "more"), "test.good-again", "not_there", "2.0.0");
    setenv("TENON_PLUGIN_PATH", (at / "more").c_str(), 1);
    const std::string said = opened(manifest);
    unsetenv("TENON_PLUGIN_PATH");
    CHECK_THAT(said, Contains("note M331") && Contains("was absent when the lock file"));
  }
  SECTION("another file of the same plugin, found first, is passed over for the locked one") {
    sidecar(put("good", at / "old"), "test.good", "good", "1.0.0");
    sidecar(put("good_again", at / "new"), "test.good", "good_again", "2.0.0");
    write_manifest(manifest, R"("test.good")");
    write_lock(lock_file,
               {{"test.good", "", "test.good", "1.0.0", sha256_file(at / "old" / "libgood.so"), false}});
    setenv("TENON_PLUGIN_PATH", ((at / "new").string() + ":" + (at / "old").string()).c_str(), 1);
    Diagnostics found;
    const Engine engine(read_manifest(manifest, {}, found));
    unsetenv("TENON_PLUGIN_PATH");
    REQUIRE(engine.plugins().loaded().size() == 1);
    CHECK(engine.plugins().loaded().front().version == "1.0.0");
  }
  SECTION("a lock file that is none") {
    std::ofstream(lock_file) << R"({"schema": "tenon.plugins-lock/2"})";
    CHECK_THAT(opened(manifest),
               Contains("its schema is 'tenon.plugins-lock/2'; expected 'tenon.plugins-lock/1'"));
    std::ofstream(lock_file) << "{";
    CHECK_THAT(opened(manifest), Contains("is no lock file of plugins"));
    good.sha256 = "12";
    write_lock(lock_file, {good});
    CHECK_THAT(opened(manifest), Contains("is '12'; expected 64 hexadecimal digits"));
  }
  SECTION("one that the manifest names, or none at all") {
    fs::rename(lock_file, at / "other.json");
    write_lock(lock_file, {});  // beside the manifest, and not asked
    write_manifest(manifest, R"({"path": "lib/libgood.so"})", R"(, "lock": "other.json")");
    CHECK_THAT(opened(manifest), !Contains("error") && Contains("M333"));
    write_manifest(manifest, R"({"path": "lib/libgood.so"})", R"(, "lock": false)");
    CHECK(opened(manifest).empty());
    write_manifest(manifest, R"({"path": "lib/libgood.so"})", R"(, "lock": "gone.json")");
    CHECK_THAT(opened(manifest), Contains("gone.json"));
    write_manifest(manifest, R"({"path": "lib/libgood.so"})", R"(, "lock": true)");
    CHECK_THAT(opened(manifest), Contains("M204") && Contains("expected a lock file's path, or false"));
  }
}

TEST_CASE("what other hosts remember of scans stays, and what is no memory is none") {
  const fs::path at = fresh("memory");
  const fs::path library = put("good", at);
  const fs::path file = cache_folder() / "plugin-scan.json";
  fs::create_directories(cache_folder());
  Json hosts = Json::array();
  for (const char* host : {"1.0.0 a", "0.9.0 b", "0.8.0 c", "0.7.0 d"})
    hosts.push_back(
        {{"host", host}, {"plugins", {{"/x", {{"key", "k"}, {"refused", "r"}, {"remedy", "m"}}}}}});
  std::ofstream(file) << Json{{"schema", "tenon.plugin-scan/2"}, {"hosts", hosts}};
  CHECK_FALSE(scan_plugin(library).refusal);
  const Json written = Json::parse(read_text_file(file));
  REQUIRE(written.at("hosts").size() == 4);  // the oldest went
  CHECK(written["hosts"][0].at("plugins").contains(library.string()));
  CHECK(written["hosts"][1].at("host") == "1.0.0 a");
  CHECK(written["hosts"][3].at("host") == "0.8.0 c");
  CHECK(ScanCache(cache_folder()).find(library));
  // Whatever somebody else writes there.
  for (const char* bad :
       {"", "[]", "{\"schema\": \"tenon.plugin-scan/2\", \"hosts\": {}}",
        "{\"schema\": \"tenon.plugin-scan/2\", \"hosts\": [3, {\"plugins\": 4}]}", "\xff"}) {
    INFO(bad);
    std::ofstream(file) << bad;
    CHECK_FALSE(ScanCache(cache_folder()).find(library));
  }
}

TEST_CASE("two plugins with the same symbols each see their own") {
  fresh("twins");
  const fs::path folder = fs::path(test::build_dir()) / "tests" / "plugins" / "twins";
  Host host;
  provide_core_services(host);
  PluginSet plugins(host);
  Diagnostics diagnostics;
  std::vector<PluginRequest> requests;
  for (const char* twin : {"twin-a", "twin-b"}) {
    PluginRequest request;
    request.path = folder / ("lib" + std::string(twin) + ".so");
    requests.push_back(std::move(request));
  }
  plugins.load(requests, diagnostics);
  INFO(texts(diagnostics));
  REQUIRE(plugins.loaded().size() == 2);
  std::vector<std::string> seen;
  for (const Diagnostic& diagnostic : diagnostics.all())
    if (diagnostic.code == "T1") seen.push_back(diagnostic.text);
  REQUIRE(seen.size() == 2);
  const bool has_protobuf = seen[0].size() > std::string("1 a a a").size();
  CHECK(seen[0] == std::string("1 a a a") + (has_protobuf ? " a1" : ""));
  CHECK(seen[1] == std::string("1 b b b") + (has_protobuf ? " b1" : ""));
}
