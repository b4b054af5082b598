// Operators that only an installed plugin, which is not loaded, defines.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "rule_harness.hpp"
#include "test_paths.hpp"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("A rule over an operator without a schema says which installed plugin provides it") {
  // Sidecars are read; the libraries are not opened, and would be refused.
  const std::string folder = scratch_dir() + "/installed_ops";
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/libacme_conv.so") << "no library";
  std::ofstream(folder + "/libacme_conv.plugin.json")
      << R"({"schema": "tenon.plugin/1", "id": "com.acme.conv", "name": "acme_conv", "version": "1.0.0",
 "abi": {"major": 1, "min_host_minor": 0, "built_host_minor": 0}, "interfaces": ["tenon.ops/1"], "operators": ["com.acme::MyConv"]})";
  const char* before = std::getenv("TENON_PLUGIN_PATH");
  const std::string saved = before ? before : "";
  setenv("TENON_PLUGIN_PATH", folder.c_str(), 1);
  {
    RuleHarness own;
    const auto rule = [](const std::string& op) {
      return R"j({"rule": "A", "pattern": {"nodes": {"c": {)j" + op +
             R"j(, "in": ["X"], "out": ["a"]}, "n": {"op": "Relu", "in": ["a"], "out": ["z"]}}, "outputs": ["z"]},
  "replace": {"nodes": {"f": {"op": "F", "domain": "acme", "in": ["X"], "out": ["z"]}}, "body": "origin"}, "verify": {"cases": [{"X": [4]}]}})j";
    };
    const std::string graph =
        "graph \"g\" {\n  opset \"\" 28\n  input %x: float32[4]\n  %z = Relu(%x)\n  output %z as \"z\"\n}\n";
    for (const char* op : {R"("op": "MyConv")", R"("op": "MyConv", "domain": "com.acme")"}) {
      INFO(op);
      const auto said = own.check(rule(op));
      REQUIRE(said.size() == 2);
      CHECK(said[1].find("E401") != std::string::npos);
      CHECK(said[1].find("plugin acme_conv, which is installed, provides it: add it to \"plugins\"") !=
            std::string::npos);
      const auto r = own.run(graph, rule(op));
      const Explained* why = r.why("A", TN_REASON_UNKNOWN);
      REQUIRE(why);
      CHECK(why->got.find("not fired: no schema for ") == 0);
      CHECK(why->got.find("MyConv; plugin acme_conv, which is installed, provides it") != std::string::npos);
      CHECK(why->hint == "add it to \"plugins\"");
    }
    // Nobody has it; and an operator that is one of several does not stop a rule.
    CHECK(own.check(rule(R"("op": "MyConf")"))[1].find("installed") == std::string::npos);
    const auto r = own.run(graph, rule(R"("op": "MyConf")"));
    const Explained* why = r.why("A", TN_REASON_UNKNOWN);
    REQUIRE(why);
    CHECK(why->got == "not fired: no schema for MyConf");
    CHECK(own.run(graph, rule(R"("op": ["MyConv", "Neg"])")).why("A", TN_REASON_UNKNOWN) == nullptr);
  }
  if (before)
    setenv("TENON_PLUGIN_PATH", saved.c_str(), 1);
  else
    unsetenv("TENON_PLUGIN_PATH");
}
