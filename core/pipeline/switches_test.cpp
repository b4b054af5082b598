#include <catch2/catch.hpp>

#include "core/pipeline/switches.hpp"

using namespace tenon;

namespace {

// Three rules and two passes, as an engine declares them.
void declare(Switches& switches) {
  switches.declare({"fold"}, false);
  switches.declare({"fuse", "operator_fusion"}, true);
  switches.declare({"ConvBnAct", "GraphOptimize.FuseConvBnRelu"}, true);
  switches.declare({"ConvBn", "GraphOptimize.FuseConvBn", "ConvBatchnormFusionPass"}, true);
  switches.declare({"MatMulAdd"}, true);
}

struct Case {
  std::vector<SwitchSetting> manifest;
  std::string file;
  std::string command_line;
};

std::string states(const Case& given, std::string* findings = nullptr) {
  Switches switches;
  Diagnostics diagnostics;
  switches.add_manifest(given.manifest);
  if (!given.file.empty()) switches.add_file_text("s.cfg", given.file, diagnostics);
  switches.add_command_line(given.command_line, diagnostics);
  declare(switches);
  switches.resolve(diagnostics);
  if (findings != nullptr) {
    for (const Diagnostic& diagnostic : diagnostics.all())
      *findings += diagnostic.where + ": " + diagnostic.text + "\n";
  } else {
    CHECK_FALSE(diagnostics.has_errors());
  }
  std::string text;
  for (const char* name : {"fold", "fuse", "ConvBnAct", "ConvBn", "MatMulAdd"}) {
    const SwitchState state = switches.state(name);
    text += state == SwitchState::unset ? '.' : state == SwitchState::on ? '+' : '-';
  }
  return text;
}

std::string findings(const Case& given) {
  std::string text;
  states(given, &text);
  return text;
}

}  // namespace

TEST_CASE("the command line beats the file, the file the manifest; a name beats ALL within one source") {
  CHECK(states({}) == ".....");
  CHECK(states({{{"ConvBn", false, "m"}}, "", ""}) == "...-.");
  CHECK(states({{{"ConvBn", false, "m"}}, "ConvBn:on", ""}) == "...+.");
  CHECK(states({{{"ConvBn", true, "m"}}, "ConvBn:on", "ConvBn:off"}) == "...-.");
  CHECK(states({{{"ALL", false, "m"}, {"ConvBn", true, "m"}}, "", ""}) == ".--+-");
  CHECK(states({{{"ConvBn", true, "m"}}, "", "ALL:off"}) == ".----");
  CHECK(states({{}, "ALL:off\nMatMulAdd:on", "ConvBn:on;"}) == ".--++");
  // ALL covers fusion; what only cleans has to be named.
  CHECK(states({{}, "fold:off", ""}) == "-....");
}

TEST_CASE("an alias is the same switch") {
  CHECK(states({{}, "GraphOptimize.FuseConvBn=0", ""}) == "...-.");
  CHECK(states({{}, "GraphFusion.ConvBatchnormFusionPass:off", ""}) == "...-.");
  CHECK(states({{}, "operator_fusion:off", ""}) == ".-...");
  CHECK(findings({{}, "GraphOptimize.FuseConvBn=0\nConvBn:on", ""})
            .find("'ConvBn' is another name of 'ConvBn', which s.cfg:1:1 sets the other way") !=
        std::string::npos);
}

TEST_CASE("the groups' ALL are one switch, and cannot be set both ways in one place") {
  const char* const both = R"({"Switch": {"GraphFusion": {"ALL": "off"}, "UBFusion": {"ALL": "on"}}})";
  CHECK(
      findings({{}, both, ""}).find("'UBFusion.ALL' is another name of 'GraphFusion.ALL', which s.cfg:1:") !=
      std::string::npos);
  CHECK(states({{}, "ALL:off\nUBFusion.ALL:off", "ALL:on"}) == ".++++");
}

TEST_CASE("an unknown name in each dialect") {
  for (const char* file : {"ConvBm:on", "ConvBm=1", R"({"Switch": {"GraphFusion": {"ConvBm": "on"}}})",
                           R"({"Switch": {"UBFusion": {"ConvBm": "off"}}})"}) {
    INFO(file);
    const std::string text = findings({{}, file, ""});
    CHECK(text.find("no rule or pass is called '") != std::string::npos);
    CHECK(text.find("ConvBm'") != std::string::npos);
    CHECK(text.find("'ConvBn'") != std::string::npos);
  }
  CHECK(findings({{}, "", "ConvBm:off"}).find("--optimization_switch: no rule or pass is called 'ConvBm'") ==
        0);
  CHECK(findings({{{"ConvBm", true, "p.json:1:2"}}, "", ""}).find("p.json:1:2: no rule or pass") == 0);
}

TEST_CASE("three dialects of switch files") {
  CHECK(states({{}, "# comment\n\n// another\n  ConvBn : OFF \r\nfuse=1\n", ""}) == ".+.-.");
  CHECK(states({{},
                R"({"Switch": {"GraphFusion": {"ALL": "off", "ConvBn": "on"}, "UBFusion": {"ALL": "off"}}})",
                ""}) == ".--+-");
  CHECK(states({{}, "MemoryOptimize.ReduceMemory=1", ""}) == ".....");
  CHECK(findings({{}, "OpOptimize.EnableSmallChannel=1", ""}).find("has no effect on this device") !=
        std::string::npos);
}

TEST_CASE("what is wrong in a switch file") {
  CHECK(findings({{}, "ConvBn:on\nConvBn:off", ""}) ==
        "s.cfg:2:1: switch 'ConvBn' is set twice; first at s.cfg:1:1; remove one\n");
  CHECK(findings({{}, "ConvBn:maybe", ""}) == "s.cfg:1:1: a switch is on or off (1 or 0); found 'maybe'\n");
  CHECK(findings({{}, "  ConvBn", ""}) == "s.cfg:1:3: expected Name:on, Name:off or Key=1; found 'ConvBn'\n");
  CHECK(findings({{}, R"({"Switch": {"GraphFusion": {"ConvBn": "maybe"}}})", ""})
            .find("s.cfg:1:39: a switch is \"on\" or \"off\"; found \"maybe\"") == 0);
  CHECK(findings({{}, R"({"Switches": {}})", ""}).find("unknown key 'Switches'; expected 'Switch'") !=
        std::string::npos);
  CHECK(findings({{}, R"({"Switch": {"Graph": {}}})", ""}).find("unknown group 'Graph'") !=
        std::string::npos);
  CHECK(findings({{}, "", "ConvBn"}).find("expected \"A:on;B:off\"") != std::string::npos);
}

TEST_CASE("an unknown name is an error with the nearest ones") {
  const std::string text = findings({{{"GraphFusion.ConvBnAkt", false, "p.json:4:9"}}, "", ""});
  CHECK(text.find("p.json:4:9: no rule or pass is called 'GraphFusion.ConvBnAkt'") == 0);
  CHECK(text.find("ConvBnAct") != std::string::npos);
}
