// tenon plugins new: what is written, and what is said of names, ids and operator definitions that are wrong.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>

#include "core/cli/plugin_project.hpp"
#include "core/plugin/host.hpp"
#include "test_paths.hpp"

using namespace tenon;
using tenon::cli::NewPlugin;
namespace fs = std::filesystem;

namespace {

std::string fresh(const std::string& name) {
  set_install_root(test::build_dir());
  return test::scratch_dir() + "/" + name;
}

NewPlugin wanted(const std::string& kind, const std::string& folder) {
  return {.name = "soft_clip", .kind = kind, .id = "", .vendor = "", .folder = folder, .from = ""};
}

/// All findings, one a line; the exit code before them.
std::string said(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    std::string text = std::to_string(error.exit_code) + "\n";
    for (const Diagnostic& finding : error.diagnostics) text += finding.where + ": " + finding.text + "\n";
    return text;
  }
  return "nothing";
}

std::string content(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// What is said of a definition with this text.
std::string said_of(const std::string& text) {
  const std::string path = fresh("op.json");
  std::ofstream(path) << text;
  std::string found = said([&] { cli::operators_from_file(path, "com.acme", "com.acme.ops"); });
  for (size_t at; (at = found.find(path)) != std::string::npos;) found.replace(at, path.size(), "op.json");
  return found;
}

/// One operator whose lists are these, on a line each.
std::string op(const std::string& in, const std::string& out, const std::string& attr = "") {
  return "{\"op\": \"Half\",\n\"input_desc\": [" + in + "],\n\"output_desc\": [" + out + "],\n\"attr\": [" +
         attr + "]}";
}
const std::string x = R"({"name": "x", "type": ["float"]})", y = R"({"name": "y", "type": ["float"]})";

}  // namespace

TEST_CASE("every kind is written whole: no placeholder is left, and the parts that all have are there") {
  set_install_root(test::build_dir());
  const std::vector<std::string> kinds = cli::plugin_kinds();
  for (const char* kind : {"device", "exporter", "frontend", "kernel", "pass", "planner", "rules"})
    CHECK(std::find(kinds.begin(), kinds.end(), kind) != kinds.end());
  for (const std::string& kind : kinds) {
    INFO(kind);
    const std::string folder = fresh("kind_" + kind);
    const std::vector<std::string> files = cli::write_plugin_project(wanted(kind, folder));
    for (const char* file :
         {"CMakeLists.txt", "README.md", "ci.sh", "tests.cmake", ".github/workflows/ci.yml"})
      CHECK(std::find(files.begin(), files.end(), file) != files.end());
    for (const std::string& file : files) {
      const std::string text = content(fs::path(folder) / file);
      CHECK_FALSE(text.empty());
      for (const char* placeholder :
           {"@NAME@", "@ID@", "@TYPE@", "@DOMAIN@", "@NAMESPACE@", "@VENDOR@", "@BUILD@"})
        CHECK(text.find(placeholder) == std::string::npos);
      CHECK(file.find('@') == std::string::npos);
    }
    CHECK((fs::status(folder + "/ci.sh").permissions() & fs::perms::owner_exec) != fs::perms::none);
    CHECK(content(folder + "/CMakeLists.txt").find("com.example.soft_clip") != std::string::npos);
    CHECK_FALSE(fs::exists(folder + ".part"));
  }
}

TEST_CASE("a name, a kind and an id that are wrong are told with what is expected, and nothing is written") {
  const std::string folder = fresh("wrong");
  const auto with = [&](auto change) {
    NewPlugin plugin = wanted("pass", folder);
    change(plugin);
    const std::string text = said([&] { cli::write_plugin_project(plugin); });
    CHECK_FALSE(fs::exists(folder));
    return text;
  };
  for (const char* name : {"", "SoftClip", "3d", "_x", "soft-clip", "a b", "../up", "caf\xc3\xa9"})
    CHECK(with([&](NewPlugin& p) { p.name = name; }) ==
          "2\nplugins new: '" + std::string(name) +
              "' is no plugin's name; expected lower-case letters, digits and _, beginning with a letter, "
              "such as "
              "soft_clip\n");
  CHECK_THAT(with([](NewPlugin& p) { p.kind = "kernal"; }),
             Catch::StartsWith("2\n--kind: 'kernal' is no kind; did you mean 'kernel'?; there are ") &&
                 Catch::Contains("device, exporter, frontend, kernel, pass, planner, rules"));
  for (const char* kind : {"common", "snippets", "kernel_from", "..", ""})
    CHECK_THAT(with([&](NewPlugin& p) { p.kind = kind; }), Catch::Contains("is no kind"));
  for (const char* id : {"acme", "com..clip", "Com.acme", "com.acme.", "com/acme.x", "com.a b"})
    CHECK(with([&](NewPlugin& p) { p.id = id; }) == "2\n--id: '" + std::string(id) +
                                                        "' is no plugin's id; expected dotted lower-case "
                                                        "names that you own, such as com.acme.soft_clip\n");
  CHECK(with([](NewPlugin& p) { p.from = "op.json"; }) ==
        "2\n--from: describes operators, which plugins of kind kernel have; found --kind pass\n");
}

TEST_CASE("a folder that holds something is left as it is; an empty one is used") {
  const std::string folder = fresh("taken");
  fs::create_directory(folder);
  std::ofstream(folder + "/mine.txt") << "mine";
  CHECK(said([&] { cli::write_plugin_project(wanted("pass", folder)); }) ==
        "2\n" + folder + ": exists already; name a new folder with --output, or remove it\n");
  CHECK(content(folder + "/mine.txt") == "mine");
  CHECK(std::distance(fs::directory_iterator(folder), fs::directory_iterator()) == 1);
  fs::remove(folder + "/mine.txt");
  CHECK_FALSE(cli::write_plugin_project(wanted("pass", folder)).empty());
  CHECK(fs::exists(folder + "/plugin.cpp"));
}

TEST_CASE("all or nothing: a definition that is wrong, or a place that cannot be written, leaves no folder") {
  const std::string folder = fresh("from_wrong");
  NewPlugin plugin = wanted("kernel", folder);
  plugin.from = fresh("wrong.json");
  std::ofstream(plugin.from) << "[]";
  CHECK_THAT(said([&] { cli::write_plugin_project(plugin); }), Catch::Contains("has no operator"));
  CHECK_FALSE(fs::exists(folder));
  CHECK_FALSE(fs::exists(folder + ".part"));
  std::ofstream(fresh("a_file")) << "x";
  CHECK_THAT(
      said([&] { cli::write_plugin_project(wanted("pass", fresh("a_file") + "/below")); }),
      Catch::StartsWith("1\n") && Catch::Contains("cannot be written; check that the folder may be written"));
  CHECK(content(fresh("a_file")) == "x");
}

TEST_CASE("msopgen's sample gives operators, kernels and a model with one node of each") {
  const std::string folder = fresh("described");
  NewPlugin plugin = wanted("kernel", folder);
  plugin.id = "com.acme.described";
  plugin.from = test::source_dir() + "/tests/plugins/msopgen.json";
  cli::write_plugin_project(plugin);
  const std::string model = content(folder + "/model.graph");
  CHECK_THAT(model, Catch::Contains("com.acme::AddCustom(%AddCustom_x, %AddCustom_y, _) {axes = [1]}"));
  CHECK_THAT(model, Catch::Contains("com.acme::Halve(%Halve_x)") && Catch::Contains("com.acme::JoinCustom("));
  const std::string operators = content(folder + "/operators.cpp");
  CHECK_THAT(operators, Catch::Contains(".type_var(\"T0\", {TN_FLOAT32, TN_FLOAT16})") &&
                            Catch::Contains(".input(\"bias\", \"T1\", TN_PARAM_OPTIONAL)") &&
                            Catch::Contains(".input(\"others\", \"T0\", TN_PARAM_VARIADIC)"));
  CHECK_THAT(operators, Catch::Contains(".attr_float(\"alpha\", 1.0)") &&
                            Catch::Contains(".attr(\"axes\", TN_ATTR_INTS, /*required=*/true)") &&
                            Catch::Contains(".attr_int(\"transposed\", 0)") &&
                            Catch::Contains(".attr_string(\"mode\", \"same\")"));
  CHECK_THAT(content(folder + "/kernels.cpp"), Catch::Contains("com.acme.described.addcustom/1"));
}

TEST_CASE("names that C++ or the generated kernels use themselves become variables of another name") {
  const std::string path = fresh("names.json");
  std::ofstream(path) << op(R"({"name": "in", "type": "float"}, {"name": "class", "type": "float"})", y);
  const std::string kernels = cli::operators_from_file(path, "com.acme", "com.acme.ops").at("KERNELS");
  CHECK_THAT(kernels, Catch::Contains("const auto* in_ = in<float>(args, 0);") &&
                          Catch::Contains("const auto* class_ = in<float>(args, 1);") &&
                          Catch::Contains("static_cast<float>(in_[i])"));
}

TEST_CASE("each fault of a definition is told with its place; all of them at once") {
  using Catch::Contains;
  CHECK_THAT(said_of("{\"op\": "), Contains("op.json:1:"));
  CHECK_THAT(said_of("[]"), Contains("op.json:1:1: has no operator"));
  CHECK_THAT(said_of("[3]"), Contains("op.json:1:2: is no operator"));
  CHECK_THAT(said_of("[{}]"), Contains("op.json:1:2: lacks a \"op\" that is a name"));
  CHECK_THAT(said_of("{\"op\": \"a-b\"}"), Contains("lacks a \"op\" that is a name"));
  CHECK_THAT(said_of("{\"op\": \"Half\"}"),
             Contains("lacks the list \"input_desc\"") && Contains("lacks the list \"output_desc\""));
  CHECK_THAT(said_of(op(x, "")), Contains("lacks the list \"output_desc\""));
  CHECK_THAT(said_of(op("", y)), Contains("op.json:2:15: has no operand"));
  CHECK_THAT(said_of(op(R"({"name": "x", "type": "float", "param_type": "optional"})", y)),
             Contains("op.json:2:16: the first operand is not required"));
  CHECK_THAT(said_of(op(R"({"type": "float"})", y)), Contains("op.json:2:16: lacks a \"name\""));
  CHECK_THAT(said_of(op(R"({"name": "x", "type": "flaot"})", y)),
             Contains("op.json:2:38: 'flaot' is no element type; did you mean 'float'"));
  CHECK_THAT(said_of(op(R"({"name": "x", "type": []})", y)), Contains("op.json:2:38: is an empty list"));
  CHECK_THAT(said_of(op(R"({"name": "x", "type": 3})", y)), Contains("op.json:2:38: is no element type"));
  CHECK_THAT(said_of(op(R"({"name": "x"})", y)), Contains("is no element type"));
  CHECK_THAT(said_of(op(x + "," + x, y)), Contains("'x' stands here twice"));
  CHECK_THAT(said_of(op(R"({"name": "x", "type": "float", "param_type": "dynamic"},)" + y, y)),
             Contains("'dynamic' is not possible here"));
  CHECK_THAT(said_of(op(R"({"name": "x", "type": "float", "param_type": 1})", y)),
             Contains("\"param_type\" is no text"));
  CHECK_THAT(said_of(op(x, y, R"({"name": "a", "type": "complex"})")),
             Contains("op.json:4:10: 'complex' is no type of an attribute"));
  CHECK_THAT(said_of(op(x, y, R"({"name": "a", "type": 3})")), Contains("\"type\" is no text"));
  CHECK_THAT(said_of(op(x, y, R"({"name": "a", "type": "float", "default_value": "nan"})")),
             Contains("the default 'nan' is no number"));
  CHECK_THAT(said_of(op(x, y, R"({"name": "a", "type": "int", "default_value": "1.5"})")),
             Contains("the default '1.5' is no whole number"));
  CHECK_THAT(
      said_of("{\"op\": \"Half\", \"input_desc\": [" + x + "], \"output_desc\": [" + y + "], \"attr\": 3}"),
      Contains("is no list"));
  CHECK_THAT(said_of("[" + op(x, y) + "," + op(x, y) + "]"),
             Contains("the operator 'Half' stands here twice"));
  const std::string many = said_of(op(R"({"name": "x", "type": "flaot"})", R"({"type": "duoble"})"));
  CHECK(many.substr(0, 2) == "2\n");
  CHECK_THAT(many, Contains("op.json:2:38: 'flaot' is no element type"));
  CHECK_THAT(many, Contains("op.json:3:17: lacks a \"name\" that is a name"));
  CHECK_THAT(many, Contains("op.json:3:26: 'duoble' is no element type; did you mean 'double'"));
}
