// A plugin built with a newer SDK loads and runs here when it needs nothing new, and says so when it does.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "core/graph/graph.hpp"
#include "core/pipeline/pass_manager.hpp"
#include "core/pipeline/switches.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/plugin_set.hpp"
#include "test_paths.hpp"

using namespace tenon;

namespace {

struct Loaded {
  Host host;
  PluginSet plugins{host};
  Diagnostics diagnostics;
  explicit Loaded(const std::string& name) {
    setenv("TENON_CACHE_DIR", (test::scratch_dir() + "/cache").c_str(), 1);
    set_install_root(test::build_dir());
    provide_core_services(host);
    PluginRequest request;
    request.path = std::filesystem::path(test::build_dir()) / "tests" / "abi" / ("lib" + name + ".so");
    request.where = "pipeline.json:3:5";
    plugins.load({request}, diagnostics);
  }
};

}  // namespace

TEST_CASE("a plugin of a newer SDK that needs nothing new") {
  Loaded loaded("newer");
  INFO((loaded.diagnostics.all().empty() ? "" : loaded.diagnostics.all().front().text));
  CHECK_FALSE(loaded.diagnostics.has_errors());
  REQUIRE(loaded.plugins.loaded().size() == 1);
  const tn_plugin* table = loaded.plugins.loaded().front().table;
  CHECK(table->built_host_minor == TN_ABI_MINOR + 1);
  CHECK(table->size > sizeof(tn_plugin));
  Switches switches;
  switches.declare({"newer"}, false);
  const PassManager manager(loaded.host, loaded.plugins.registries(), switches, {});
  const std::vector<PreparedPass> prepared =
      manager.prepare({{"newer", Json::object(), "p.json"}}, false, loaded.diagnostics);
  PassOptions stop;
  stop.on_error = Manifest::OnError::stop;
  OptimizeReport report;
  Graph graph;
  REQUIRE_NOTHROW(manager.run(graph, prepared, stop, report, loaded.diagnostics));
  REQUIRE(report.passes.size() == 1);
  CHECK(report.passes.front().outcome == PassReport::Outcome::unchanged);
}

TEST_CASE("a plugin of a newer SDK that needs what is new") {
  Loaded loaded("needs_newer");
  CHECK(loaded.plugins.loaded().empty());
  REQUIRE(loaded.plugins.quarantined().size() == 1);
  CHECK(loaded.plugins.quarantined().front().line().find(
            "needs a host of ABI 1.1; this one is 1.0 -- use a newer tenon, or an older version of the "
            "plugin") != std::string::npos);
}
