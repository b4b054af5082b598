#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "core/pipeline/manifest.hpp"
#include "core/plugin/host.hpp"
#include "test_paths.hpp"

using namespace tenon;

namespace {

std::optional<Manifest> parse(const std::string& text, Diagnostics& diagnostics,
                              std::vector<std::string> set = {}) {
  ManifestOptions options;
  options.set = std::move(set);
  return parse_manifest("p.json", text, "/project", options, diagnostics);
}

// All errors, a line each: place and the first line of the text.
std::vector<std::string> errors(const std::string& text, std::vector<std::string> set = {}) {
  Diagnostics diagnostics;
  CHECK_FALSE(parse(text, diagnostics, std::move(set)));
  std::vector<std::string> lines;
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (diagnostic.severity == TN_SEVERITY_ERROR)
      lines.push_back(diagnostic.where + ": " + diagnostic.text.substr(0, diagnostic.text.find('\n')));
  }
  return lines;
}

Manifest good(const std::string& text, std::vector<std::string> set = {}) {
  Diagnostics diagnostics;
  std::optional<Manifest> manifest = parse(text, diagnostics, std::move(set));
  for (const Diagnostic& diagnostic : diagnostics.all()) UNSCOPED_INFO(to_string(diagnostic));
  REQUIRE(manifest);
  return std::move(*manifest);
}

std::string warnings(const std::string& text) {
  Diagnostics diagnostics;
  CHECK(parse(text, diagnostics));
  std::string all;
  for (const Diagnostic& diagnostic : diagnostics.all()) all += to_string(diagnostic) + "\n";
  return all;
}

}  // namespace

TEST_CASE("the design's example manifest, every key of it") {
  const std::string digest(64, 'a');
  const Manifest manifest = good(R"({ "schema": "tenon.pipeline/1", // a comment
  "plugins": ["onnx", "ops", {"path": "acme/libacme.so", "id": "com.acme", "min_version": "2.1", "sha256": ")" +
                                 digest + R"(", "options": {"tile": 64}}, {"name": "cpu", "required": false}],
  "model":   {"path": "resnet50.onnx", "frontend": "auto", "shapes": {"x": ["N", 3, 224, -1, "1~10", {"name": "S", "min": 2, "max": 9}]}},
  "rules":   ["builtin", "rules/my_fusion.json", {"name": "inline", "pattern": []}],
  "level":   3, "pipeline": ["canonicalize", {"pass": "fuse", "options": {"max_rounds": 10}}, "clean"],
  "switches":{"GraphFusion.ConvBnAct": "off", "UBFusion": {"ALL": true}},
  "precision":{"mode": "strict", "weights": "keep"},
  "kernels": {"prefer": ["cpu"], "pin": {"conv_7": "tenon.reference.conv/1"}, "deny": ["com.acme.*int8*"]},
  "runtime": {"threads": 2, "streams": 1, "deterministic": true},
  "inputs":  {"x": "cat.npy"}, "outputs": "out.npz", "on_error": "stop", "rules_verify": "sample", "choices": "c.json" })");
  REQUIRE(manifest.plugins.size() == 4);
  CHECK(manifest.plugins[0].name == "onnx");
  CHECK(manifest.plugins[2].path == "/project/acme/libacme.so");
  CHECK(manifest.plugins[2].id == "com.acme");
  CHECK(manifest.plugins[2].min_version == "2.1");
  CHECK(manifest.plugins[2].sha256 == digest);
  CHECK(manifest.plugins[2].options_json == R"({"tile":64})");
  CHECK(manifest.plugins[2].required);
  CHECK_FALSE(manifest.plugins[3].required);
  CHECK(manifest.plugins[3].where == "p.json:2:202");
  CHECK(manifest.model_path == "/project/resnet50.onnx");
  REQUIRE(manifest.shapes.size() == 1);
  REQUIRE(manifest.shapes[0].dims.size() == 6);
  CHECK(manifest.shapes[0].dims[0].name == "N");
  CHECK(manifest.shapes[0].dims[1].number == 3);
  CHECK_FALSE(manifest.shapes[0].dims[3].number);
  CHECK(manifest.shapes[0].dims[4].max == 10);
  CHECK(manifest.shapes[0].dims[5].min == 2);
  REQUIRE(manifest.rules.size() == 3);
  CHECK(manifest.rules[0].builtin);
  CHECK(manifest.rules[1].path == "/project/rules/my_fusion.json");
  CHECK(manifest.rules[2].inline_text == R"({"name":"inline","pattern":[]})");
  CHECK(manifest.pipeline.size() == 3);
  CHECK(manifest.pipeline[1].options.at("max_rounds") == 10);
  CHECK_FALSE(manifest.pipeline_is_default);
  REQUIRE(manifest.switches.size() == 2);
  CHECK_FALSE(manifest.switches[0].on);
  CHECK(manifest.switches[1].name == "UBFusion.ALL");
  CHECK(manifest.precision.mode == "strict");
  CHECK(manifest.kernels.pin.at("conv_7") == "tenon.reference.conv/1");
  CHECK(manifest.runtime.threads == 2);
  CHECK(manifest.inputs.at("x") == "/project/cat.npy");
  CHECK(manifest.outputs_path == "/project/out.npz");
  CHECK(manifest.on_error == Manifest::OnError::stop);
  CHECK(manifest.rules_verify == RulesVerify::sample);
  CHECK(manifest.choices_file.filename() == "c.json");
}

TEST_CASE("all findings at once, each with its place, and the nearest key") {
  const std::vector<std::string> found = errors(R"({
  "schema": "tenon.pipeline/2",
  "plugin": ["onnx"],
  "runtime": {"treads": 2, "threads": "two"},
  "level": 7,
  "on_error": "rolback",
  "plugins": ["onnx", 3, {"sha256": "12"}, "a/b"],
  "pipeline": {"pass": "fold"}
})");
  CHECK(found ==
        std::vector<std::string>{
            "p.json:3:3: unknown key 'plugin' [/plugin]",
            "p.json:2:13: unknown value 'tenon.pipeline/2'; expected one of tenon.pipeline/1 [/schema]",
            "p.json:7:23: expected a plugin's name or an object; found an integer [/plugins/1]",
            "p.json:7:37: is no SHA-256 digest; expected 64 hexadecimal digits [/plugins/2/sha256]",
            "p.json:7:26: names no plugin [/plugins/2]",
            "p.json:7:44: 'a/b' is no plugin's name [/plugins/3]",
            "p.json:5:12: is 7; expected 0..3 [/level]",
            "p.json:8:15: expected an array; found an object [/pipeline]",
            "p.json:4:15: unknown key 'treads' [/runtime/treads]",
            "p.json:4:39: expected an integer 0..1024; found a string [/runtime/threads]",
            "p.json:6:15: unknown value 'rolback'; expected one of rollback, stop [/on_error]",
        });
}

TEST_CASE("what belongs to later work says so") {
  CHECK(errors(R"({"runtime": {"streams": 2}})") ==
        std::vector<std::string>{
            "p.json:1:25: more than one stream is not supported yet; use 1 [/runtime/streams]"});
  CHECK(errors(R"({"state": {}})").front().find("'state' is not supported yet") != std::string::npos);
  CHECK(errors(R"({"precision": {"mode": "bf16"}})").front().find("'bf16' is not supported yet") !=
        std::string::npos);
  CHECK(errors(R"({"precision": {"weights": "int8"}})").front().find("not supported yet") !=
        std::string::npos);
  CHECK(errors(R"({"runtime": {"batching": {}}})").front().find("not supported yet") != std::string::npos);
  CHECK(errors(R"({"model": {"shapes": {"x": [[1, 2]]}}})").front().find("gears") != std::string::npos);
  CHECK(warnings(R"({"rules_verify": "off", "runtime": {"deterministic": true}})").empty());
  CHECK(warnings(R"({"runtime": {"deterministic": false}})").find("has no effect: every kernel") !=
        std::string::npos);
  CHECK(warnings(R"({"auto_tune": {}})").find("'auto_tune' is not supported yet; it has no effect") !=
        std::string::npos);
  CHECK(warnings(R"({"pipeline": ["fold", "layout"]})")
            .find("pass 'layout' is not supported yet; it is left out") != std::string::npos);
}

TEST_CASE("the articles' words") {
  const Manifest manifest = good(
      R"({"optimization_level": 2, "pipeline": ["graph_partition", "operator_fusion", "memory_planning", "instruction_schedule"],
    "fusion_patterns": [["Conv", "BatchNormalization", "Relu"]], "computation_optimization": false, "precision_config": {"mode": "strict"},
    "fusion_switch_file": "s.cfg"})");
  CHECK(manifest.level == 2);
  REQUIRE(manifest.pipeline.size() == 1);
  CHECK(manifest.pipeline[0].pass == "fuse");
  CHECK(manifest.rules.back().inline_text == R"({"fusion_patterns":[["Conv","BatchNormalization","Relu"]]})");
  REQUIRE(manifest.switches.size() == 1);
  CHECK(manifest.switches[0].name == "ALL");
  CHECK(manifest.precision.mode == "strict");
  CHECK(manifest.switch_file == "/project/s.cfg");
  CHECK(errors(R"({"optimization_level": 2, "level": 3})").front().find("says 2 but \"level\" says 3") !=
        std::string::npos);
}

TEST_CASE("--set: values are JSON, else text; names with dots stay whole; a wrong one names the option") {
  const std::string text = R"({"model": "m.onnx", "pipeline": ["fold", {"pass": "fuse"}]})";
  const Manifest manifest =
      good(text, {"runtime.threads=3", "model.frontend=onnx", "switches.GraphFusion.ConvBn=off",
                  "kernels.pin.a.b/c=x.y/1", "pipeline.1.options={\"max_rounds\": 2}", "plugins=[\"onnx\"]"});
  CHECK(manifest.runtime.threads == 3);
  CHECK(manifest.frontend == "onnx");
  CHECK(manifest.model_path == "/project/m.onnx");
  CHECK(manifest.switches.at(0).name == "GraphFusion.ConvBn");
  CHECK(manifest.kernels.pin.at("a.b/c") == "x.y/1");
  CHECK(manifest.pipeline[1].options.at("max_rounds") == 2);
  CHECK(manifest.plugins.size() == 1);
  CHECK(good(text, {"pipeline=[]"}).pipeline.empty());
  CHECK_FALSE(good(text, {"pipeline=[]"}).pipeline_is_default);
  CHECK(errors(text, {"runtime.treads=2"}) ==
        std::vector<std::string>{"--set runtime.treads=2: unknown key 'treads' [/runtime/treads]"});
  CHECK(errors(text, {"runtime.threads=many"}).front() ==
        "--set runtime.threads=many: expected an integer 0..1024; found a string [/runtime/threads]");
  CHECK(errors(text, {"nothing"}).front().find("--set nothing: expected key=value") == 0);
  CHECK(errors(text, {"pipeline.9.pass=x"}).front().find("is an array of 2 items") != std::string::npos);
  CHECK(errors(text, {"a..b=1"}).front().find("empty step") != std::string::npos);
}

TEST_CASE("the default manifest is the file that ships, and fills in what a manifest leaves out") {
  std::ifstream file(test::source_dir() + "/schemas/default.json");
  std::stringstream shipped;
  shipped << file.rdbuf();
  CHECK(shipped.str() == default_manifest_text());
  Diagnostics diagnostics;
  const Manifest manifest = default_manifest({}, diagnostics);
  CHECK(diagnostics.empty());
  CHECK(manifest.pipeline_is_default);
  const Manifest bare = good("{}");
  CHECK(bare.plugins.size() == manifest.plugins.size());
  CHECK(bare.pipeline.size() == manifest.pipeline.size());
  CHECK(bare.pipeline_is_default);
  CHECK(bare.rules.size() == 1);
  CHECK(bare.level == 3);
  ManifestOptions no_passes;
  no_passes.set = {"pipeline=[]"};
  CHECK(default_manifest(no_passes, diagnostics).pipeline.empty());
}

TEST_CASE("the resolved manifest is a manifest again, and says the same") {
  const std::string folder = test::scratch_dir();
  std::ofstream(folder + "/m.onnx") << "model";
  std::ofstream(folder + "/r.json") << "[]";
  Diagnostics diagnostics;
  const auto manifest = parse_manifest(
      "p.json",
      R"({"model": {"path": "m.onnx", "shapes": {"x": ["N", 2, -1, "1~4"]}}, "rules": ["r.json"], "plugins": [],
    "switches": {"A": "off"}, "runtime": {"threads": 5}, "pipeline": [{"pass": "fuse", "options": {"max_rounds": 3}}], "inputs": "in.npz"})",
      folder, {}, diagnostics);
  REQUIRE(manifest);
  Host host;
  const PluginSet plugins(host);
  const std::string resolved = print_resolved(*manifest, plugins);
  CHECK(resolved.find("9372c470eeadd5ecd9c3c74c2b3cb633f8e2f2fad799250a0f70d652b6b825e4") !=
        std::string::npos);  // of "model"
  const auto again = parse_manifest("lock.json", resolved, "/elsewhere", {}, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.all()) UNSCOPED_INFO(to_string(diagnostic));
  REQUIRE(again);
  CHECK(print_resolved(*again, plugins) == resolved);
  CHECK(again->model_path == manifest->model_path);
}

TEST_CASE("the schema for editors knows the keys that the parser knows") {
  std::ifstream file(test::source_dir() + "/schemas/pipeline.schema.json");
  const Json schema = Json::parse(file);
  const Json& properties = schema.at("properties");
  const auto is_known = [](const std::string& text, const std::string& key) {
    Diagnostics diagnostics;
    parse(text, diagnostics);
    for (const Diagnostic& diagnostic : diagnostics.all()) {
      if (diagnostic.text.find("unknown key '" + key + "'") != std::string::npos) return false;
    }
    return true;
  };
  for (const auto& item : properties.items()) {
    INFO(item.key());
    CHECK(is_known(Json{{item.key(), nullptr}}.dump(), item.key()));
    if (!item.value().contains("properties")) continue;
    for (const auto& inner : item.value().at("properties").items()) {
      INFO(inner.key());
      CHECK(is_known(Json{{item.key(), Json{{inner.key(), nullptr}}}}.dump(), inner.key()));
    }
  }
  CHECK_FALSE(is_known(R"({"modle": 1})", "modle"));
  Diagnostics diagnostics;
  parse(R"({"modle": 1, "zzzzzzzzzz": 1})", diagnostics);
  std::string known;
  for (const Diagnostic& diagnostic : diagnostics.all()) known += diagnostic.text;
  // What the parser lists as known is in the schema.
  const size_t list = known.find("known here: ");
  REQUIRE(list != std::string::npos);
  std::stringstream keys(known.substr(list + 12));
  for (std::string key; std::getline(keys, key, ',');) {
    key.erase(0, key.find_first_not_of(' '));
    INFO(key);
    CHECK(properties.contains(key.substr(0, key.find('\n'))));
  }
}

TEST_CASE("runtime.memory_limit is a number of bytes, or text with a unit") {
  const auto limit = [](const std::string& value) {
    return good(R"({"schema": "tenon.pipeline/1", "runtime": {"memory_limit": )" + value + "}}")
        .runtime.memory_limit;
  };
  CHECK(limit("4096") == 4096);
  CHECK(limit("\"500MB\"") == 500'000'000);
  CHECK(limit("\"2GiB\"") == uint64_t{2} << 30);
  CHECK(good(R"({"schema": "tenon.pipeline/1"})").runtime.memory_limit == 0);
  CHECK(good(R"({"schema": "tenon.pipeline/1"})", {"runtime.memory_limit=1.5GB"}).runtime.memory_limit ==
        1'500'000'000);
  for (const char* value : {"\"much\"", "-1", "1.5", "true", "\"5 quux\""})
    CHECK_THAT(
        errors(std::string(R"({"schema": "tenon.pipeline/1", "runtime": {"memory_limit": )") + value + "}}")
            .front(),
        Catch::Contains("is no amount of memory"));
}

TEST_CASE("devices: which, pins and denials; nothing said means all") {
  Diagnostics none;
  const auto silent = parse("{}", none);
  REQUIRE(silent);
  CHECK(silent->devices.all);
  Diagnostics diagnostics;
  const auto manifest = parse(
      R"({"devices": {"use": ["toy:1"], "pin": {"conv_7": "toy", "MatMul": "cpu"}, "deny": {"toy": ["Softmax"]}}})",
      diagnostics);
  REQUIRE(manifest);
  CHECK_FALSE(manifest->devices.all);
  CHECK(manifest->devices.use == std::vector<std::string>{"toy:1"});
  CHECK(manifest->devices.pin.at("MatMul") == "cpu");
  CHECK(manifest->devices.deny.at("toy") == std::vector<std::string>{"Softmax"});
  Diagnostics wrong;
  CHECK_FALSE(parse(R"({"devices": {"use": "toy", "pin": {"a": 1}, "deny": ["toy"], "dney": 1}})", wrong));
  CHECK(wrong.error_count() == 4);
}
