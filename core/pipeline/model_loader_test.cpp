#include <catch2/catch.hpp>
#include <fstream>

#include "core/base/text.hpp"
#include "core/graph/test_ops.hpp"
#include "core/pipeline/model_loader.hpp"
#include "test_paths.hpp"

using namespace tenon;

namespace {

// The fakes' graph: x -> old -> Neg -> y, built by whichever frontend loads. `old` is an operator of
// version 1.
tn_status load_chain(void*, const tn_host*, tn_str path, tn_graph* graph, tn_edit* edit,
                     const tn_diag* diag) {
  if (view(path).ends_with("broken.aaa")) {
    report(diag, TN_SEVERITY_ERROR, "A1", "byte 4", "the magic number is wrong");
    return TN_ERR_INVALID;
  }
  if (view(path).ends_with("silent.aaa")) return TN_ERR_IO;
  test::Editor build(edit);
  const tn_value x = build.input("x", TN_FLOAT32, {Graph::from(graph).symbols().named("N"), 4});
  tn_value value = x;
  const std::string stem = std::filesystem::path(view(path)).stem().string();
  for (const char* op : {"Old", "NeedsRank"}) {
    const tn_value inputs[] = {value};
    const tn_str names[] = {to_abi(op)};
    tn_node_desc desc{};
    desc.size = sizeof desc;
    desc.op = intern(stem == "foreign" ? "acme::Foreign" : op);
    desc.op_version = stem == "ancient" ? 1 : 2;
    desc.before = TN_NONE;
    desc.name = to_abi(std::string_view(op) == "Old" ? "first" : "second");
    desc.inputs = inputs;
    desc.input_count = 1;
    desc.output_names = names;
    desc.output_count = 1;
    tn_node node = TN_NONE;
    if (const tn_status status = edit_api()->create_node(edit, &desc, &node); status != TN_OK) return status;
    value = Graph::from(graph).node(node).output(0);
  }
  return build.outputs({value});
}

int probe_a(void*, tn_str path, const uint8_t* bytes, uint64_t count) {
  return view(path).ends_with(".aaa") ? (count > 0 && bytes[0] == 'A' ? 90 : 40) : 0;
}
int probe_b(void*, tn_str path, const uint8_t*, uint64_t) {
  return view(path).ends_with(".aaa") ? 40 : view(path).ends_with(".bbb") ? 10 : 0;
}

// Version 2 to 3 of Old: nothing but the version.
tn_status upgrade_old(void*, const tn_graph_api*, const tn_edit_api*, tn_graph*, tn_edit*, tn_node,
                      const tn_diag*) {
  return TN_OK;
}
// Needs its operand's rank, which is known after inference of what comes before.
tn_status upgrade_needs_rank(void*, const tn_graph_api* graph_api, const tn_edit_api* edit_api,
                             tn_graph* graph, tn_edit* edit, tn_node node, const tn_diag* diag) {
  tn_node_info info{};
  info.size = sizeof info;
  graph_api->node(graph, node, &info);
  tn_value_info value{};
  value.size = sizeof value;
  graph_api->value(graph, info.inputs[0], &value);
  if (value.type.kind != TN_KIND_TENSOR || value.type.rank < 0) {
    report(diag, TN_SEVERITY_ERROR, "", "", "the operand's rank is not known");
    return TN_ERR_UNSUPPORTED;
  }
  return edit_api->set_version(edit, node, 3);
}

tn_op_def make_op(const char* name, tn_status (*upgrade)(void*, const tn_graph_api*, const tn_edit_api*,
                                                         tn_graph*, tn_edit*, tn_node, const tn_diag*)) {
  static const tn_param_def in[] = {{to_abi("X"), to_abi("T"), 0, 0}};
  static const tn_param_def out[] = {{to_abi("Y"), to_abi("T"), 0, 0}};
  static const tn_type_var any[] = {{to_abi("T"), nullptr, 0, 0}};
  tn_op_def def{};
  def.size = sizeof def;
  def.since_version = 3;
  def.first_version = 2;
  def.name = to_abi(name);
  def.inputs = in;
  def.outputs = out;
  def.type_vars = any;
  def.input_count = def.output_count = def.type_var_count = 1;
  def.min_inputs = def.min_outputs = 1;
  def.infer = &test::infer_same;
  def.upgrade = upgrade;
  return def;
}

const void* interface_of(const char* id) {
  static const tn_op_def old = make_op("Old", &upgrade_old);
  static const tn_op_def needs_rank = make_op("NeedsRank", &upgrade_needs_rank);
  static const tn_op_def* const ops[] = {&old, &needs_rank};
  static const tn_op_list op_list = {sizeof(tn_op_list), 2, ops};
  static const tn_str suffixes[] = {to_abi(".aaa")};
  static const tn_frontend_record a = {
      sizeof(tn_frontend_record), 0, to_abi("a"), to_abi(""), suffixes, 1, 0, &probe_a, &load_chain};
  static const tn_frontend_record b = {
      sizeof(tn_frontend_record), 0, to_abi("b"), to_abi(""), suffixes, 1, 0, &probe_b, &load_chain};
  static const tn_frontend_record* const frontends[] = {&a, &b};
  static const tn_frontend_list frontend_list = {sizeof(tn_frontend_list), 2, frontends};
  if (std::string_view(id) == TN_OPS_ID) return &op_list;
  if (std::string_view(id) == TN_FRONTENDS_ID) return &frontend_list;
  return nullptr;
}

struct Loader {
  Registries registries;
  Host host;
  Diagnostics diagnostics;
  Loader() {
    tn_plugin plugin{};
    plugin.name = to_abi("fakes");
    plugin.get_interface = &interface_of;
    registries.add_plugin(plugin, nullptr, diagnostics);
  }
  static std::string file(const std::string& name, const char* text = "A") {
    const std::string path = test::scratch_dir() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::unique_ptr<Graph> read(const std::string& path, const std::string& frontend = "auto") {
    Manifest manifest;
    manifest.path = "p.json";
    manifest.model_path = path;
    manifest.frontend = frontend;
    return read_model(manifest, registries, host, diagnostics);
  }
};

}  // namespace

TEST_CASE("the surest frontend reads the file; a tie, an unknown file and a wrong name say what to do") {
  Loader loader;
  CHECK(loader.read(Loader::file("m.aaa")) != nullptr);
  CHECK(loader.read(Loader::file("m.bbb")) != nullptr);
  CHECK_THROWS_WITH(loader.read(Loader::file("tie.aaa", "x")),
                    Catch::Contains("frontends 'a' (plugin fakes) and 'b' (plugin fakes) are equally sure"));
  CHECK(loader.read(Loader::file("tie.aaa", "x"), "b") != nullptr);
  CHECK_THROWS_WITH(
      loader.read(Loader::file("m.zip")),
      Catch::Contains("no frontend knows this file; formats that can be read: a (.aaa), b (.aaa)"));
  CHECK_THROWS_WITH(loader.read(Loader::file("m.aaa"), "onyx"),
                    Catch::Contains("model.frontend is 'onyx', which no loaded plugin has"));
  CHECK_THROWS_WITH(loader.read(test::scratch_dir() + "/absent.aaa"), Catch::Contains("absent.aaa"));
  CHECK_THROWS_WITH(loader.read(test::scratch_dir()), Catch::Contains("is a folder"));
  CHECK_THROWS_WITH(loader.read(""), Catch::Contains("names no model"));
  CHECK_THROWS_WITH(loader.read(Loader::file("broken.aaa")), Catch::Contains("the magic number is wrong"));
  CHECK_THROWS_WITH(loader.read(Loader::file("silent.aaa")),
                    Catch::Contains("cannot read it (status 6) and did not say why"));
}

TEST_CASE("the text form is a model like another, unless a frontend knows the file") {
  Loader loader;
  const std::string text = "graph \"net\" {\n  input %x: float32[2,N]\n  output %x as \"y\"\n}\n";
  for (const char* name : {"net.graph", "net.txt"}) {
    const auto graph = loader.read(Loader::file(name, text.c_str()));
    REQUIRE(graph != nullptr);
    CHECK(graph->region(Graph::main_region).inputs.size() == 1);
    CHECK(graph->registry() == &loader.registries);
  }
  CHECK(loader.read(Loader::file("net", text.c_str()), "text") != nullptr);
  CHECK_THROWS_WITH(loader.read(Loader::file("net", text.c_str())),
                    Catch::Contains("no frontend knows this file"));
  CHECK_THROWS_WITH(loader.read(Loader::file("bad.graph", "graph \"net\" {\n  inputs\n}\n")),
                    Catch::Contains("bad.graph:2:"));
}

TEST_CASE("older nodes are upgraded, those that need types after inference, and everything is inferred") {
  Loader loader;
  const auto graph = loader.read(Loader::file("m.aaa"));
  upgrade_and_infer(*graph, loader.registries, loader.diagnostics);
  CHECK_FALSE(loader.diagnostics.has_errors());
  for (tn_node id = graph->first_node(0); id != TN_NONE; id = graph->next_node(id)) {
    CHECK(graph->node(id).op_version == 3);
    CHECK(graph->type(graph->node(id).output(0)).rank == 2);
  }
}

TEST_CASE(
    "a version older than the operator, and an upgrade that never comes, are errors with the node's name") {
  Loader loader;
  const auto ancient = loader.read(Loader::file("ancient.aaa"));
  CHECK_THROWS_WITH(upgrade_and_infer(*ancient, loader.registries, loader.diagnostics),
                    Catch::Contains("exists since version 2; the model uses version 1"));
}

TEST_CASE("an operator that nobody defines is kept") {
  Loader loader;
  const auto graph = loader.read(Loader::file("foreign.aaa"));
  upgrade_and_infer(*graph, loader.registries, loader.diagnostics);
  CHECK(graph->live_node_count() == 2);
  CHECK(graph->op_name(graph->first_node(0)) == "acme::Foreign");
}

TEST_CASE("model.shapes: numbers and names where the model leaves a dimension open") {
  const auto apply = [](std::vector<ShapeDim> dims, std::string input = "x") {
    Loader loader;
    const auto graph = loader.read(Loader::file("m.aaa"));
    apply_shapes(*graph, {{std::move(input), std::move(dims), "p.json:2:3"}}, loader.diagnostics);
    if (loader.diagnostics.has_errors())
      return loader.diagnostics.all().back().where + ": " + loader.diagnostics.all().back().text;
    upgrade_and_infer(*graph, loader.registries, loader.diagnostics);
    return type_text(*graph, graph->type(graph->region(0).outputs[0]));
  };
  const ShapeDim open;
  CHECK(apply({open, open}) == "float32[N,4]");
  CHECK(apply({ShapeDim{8, "", 0, INT64_MAX}, open}) == "float32[8,4]");
  CHECK(apply({ShapeDim{std::nullopt, "batch", 1, 16}, ShapeDim{4, "", 0, INT64_MAX}}) == "float32[batch,4]");
  CHECK(apply({open, ShapeDim{5, "", 0, INT64_MAX}})
            .find("p.json:2:3: dimension 1 of input 'x' is 4 in the model; 5 cannot be given") == 0);
  CHECK(apply({open}).find("has rank 2; 1 dimensions are given") != std::string::npos);
  CHECK(apply({open, open}, "X").find("the model has no input 'X'") != std::string::npos);
}
