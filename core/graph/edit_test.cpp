// Transactions: undo to the slot, order, names, types, errors that name their place.
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "core/graph/test_ops.hpp"
#include "core/graph/text_form.hpp"
#include "core/graph/verify.hpp"

using namespace tenon;
using test::Editor;

namespace {
void require_sound(const Graph& graph) {
  Diagnostics found;
  verify(graph, found);
  INFO(found.first_error());
  REQUIRE_FALSE(found.has_errors());
}

// Everything an undo must bring back: the text, and use lists in their order.
std::string fingerprint(const Graph& graph) {
  std::string text = print(graph);
  for (tn_value value = 0; value < graph.value_bound(); ++value) {
    if (graph.value(value).kind == TN_VALUE_DEAD) continue;
    text += fmt::format("{} {}:", value, graph.name(value));
    for (const tn_use& use : graph.users(value))
      text += fmt::format(" {}/{}/{}", use.node, use.index, use.region);
    text += '\n';
  }
  return text;
}

std::string commit_error(Transaction& edit) {
  Diagnostics found;
  if (edit.commit(found)) return {};
  return found.first_error();
}
}  // namespace

TEST_CASE("A graph is built, inferred and sound") {
  const auto graph = test::small_chain();
  require_sound(*graph);
  CHECK(type_text(*graph, graph->type(graph->find_value("y"))) == "float32[N,4]");
  CHECK(graph->origins(0) == std::vector<std::string_view>{"relu"});
  CHECK(graph->output_name(0, 0) == "y");
}

TEST_CASE("A replacement keeps outside names, joins origins and takes the old output's name") {
  const auto graph = test::small_chain();
  Transaction edit(*graph, "fuse");
  Editor e(edit.get());
  const tn_value x = graph->find_value("x");
  const tn_node fused = e.node("Relu", {x}, {}, {}, 0, 1, {0, 1});
  const tn_value out = graph->node(fused).output(0);
  REQUIRE(edit_api()->replace_uses(edit.get(), graph->find_value("y"), out) == TN_OK);
  REQUIRE(edit_api()->erase(edit.get(), 1) == TN_OK);
  REQUIRE(edit_api()->erase(edit.get(), 0) == TN_OK);
  CHECK(commit_error(edit).empty());
  require_sound(*graph);
  CHECK(graph->name(out) == "y");
  CHECK(graph->output_name(0, 0) == "y");
  CHECK(graph->node_name(fused) == "relu_1");
  CHECK(graph->origins(fused) == std::vector<std::string_view>{"relu", "neg"});
  CHECK(graph->node(fused).op_version == 28);
  CHECK(graph->edits_committed() == 1);
  CHECK(graph->edit_authors() == std::vector<std::string>{"fuse"});
  CHECK(type_text(*graph, graph->type(out)) == "float32[N,4]");
}

TEST_CASE("Rollback restores everything, whatever was done") {
  const auto graph = test::small_chain();
  {
    Transaction edit(*graph, "prepare");
    Editor e(edit.get());
    const tn_value a = graph->find_value("a");
    const tn_node add = e.node("Add", {a, a}, {"twice"}, "add");
    e.node("Add", {graph->node(add).output(0), a}, {"thrice"}, "add2");
    CHECK(commit_error(edit).empty());
  }
  const std::string before = fingerprint(*graph);
  const uint64_t version = graph->version();
  SECTION("by hand") {
    tn_edit* edit = nullptr;
    REQUIRE(edit_api()->begin(graph.get(), test::str("all of it"), 0, &edit) == TN_OK);
    Editor e(edit);
    const tn_value x = graph->find_value("x"), a = graph->find_value("a");
    const tn_node node = e.node("Neg", {x}, {"n"}, "n", 0, 0);
    const tn_value n = graph->node(node).output(0);
    edit_api()->replace_uses(edit, a, n);
    edit_api()->set_input(edit, 2, 1, x);
    edit_api()->set_input(edit, 2, 2, a);
    edit_api()->set_input(edit, 2, 3, a);
    const tn_attr attr{intern("alpha"), TN_ATTR_INT, 0, {7}};
    edit_api()->set_attr(edit, 2, &attr);
    edit_api()->set_version(edit, 2, 9);
    edit_api()->erase(edit, 3);
    edit_api()->set_metadata(edit, test::str("k"), test::str("v"));
    edit_api()->set_metadata(edit, test::str("graph_name"), test::str("another"));
    edit_api()->set_opset(edit, test::str("d"), 3);
    e.ints("c", {1, 2});
    tn_region region = TN_NONE;
    edit_api()->create_region(edit, node, test::str("body"), &region);
    const tn_value inner = e.input("inner", TN_FLOAT32, {1}, region);
    const tn_node nested = e.node("Neg", {inner}, {"o"}, "deep", region);
    e.outputs({graph->node(nested).output(0), n}, region);
    e.outputs({a, a, n});
    edit_api()->region_output_name(edit, 0, 1, test::str("other"));
    tn_node clone = TN_NONE;
    edit_api()->clone_node(edit, node, 0, TN_NONE, &x, 1, &clone);
    CHECK(clone != TN_NONE);
    edit_api()->inline_region(edit, region, &n, 1, clone);
    edit_api()->erase(edit, node);
    edit_api()->rollback(edit);
    CHECK(fingerprint(*graph) == before);
    CHECK(graph->version() == version);
    require_sound(*graph);
  }
  SECTION("by a failed commit") {
    Transaction edit(*graph, "bad");
    edit_api()->erase(edit.get(), 0);
    const std::string error = commit_error(edit);
    CHECK(error.find("'bad'") != std::string::npos);
    CHECK(error.find("node 'relu' (Relu)") != std::string::npos);
    CHECK(error.find("'a' is still used") != std::string::npos);
    CHECK(fingerprint(*graph) == before);
    require_sound(*graph);
  }
  SECTION("by a snapshot over several commits") {
    const Snapshot mark = graph->snapshot();
    for (int i = 0; i < 3; ++i) {
      Transaction edit(*graph, "step");
      Editor e(edit.get());
      const tn_node node = e.node("Neg", {graph->find_value("x")}, {}, {}, 0, 0);
      edit_api()->replace_uses(edit.get(), graph->find_value("thrice"), graph->node(node).output(0));
      CHECK(commit_error(edit).empty());
    }
    CHECK(fingerprint(*graph) != before);
    CHECK(graph->edits_committed() == 4);
    graph->restore(mark);
    CHECK(graph->edits_committed() == 1);
    CHECK(fingerprint(*graph) == before);
    CHECK(graph->version() == version);
    require_sound(*graph);
  }
}

TEST_CASE("A producer placed too late is moved, with what it needs, and nothing else") {
  const auto graph = test::small_chain();
  Transaction edit(*graph, "order");
  Editor e(edit.get());
  const tn_node first = e.node("Neg", {graph->find_value("x")}, {"p"}, "p");
  const tn_node second = e.node("Neg", {graph->node(first).output(0)}, {"q"}, "q");
  const tn_node bystander = e.node("Neg", {graph->find_value("x")}, {"b"}, "b");
  edit_api()->set_input(edit.get(), 1, 0, graph->node(second).output(0));
  CHECK(commit_error(edit).empty());
  require_sound(*graph);
  const auto order = graph->nodes(0);
  CHECK(std::vector<tn_node>(order.begin(), order.end()) ==
        std::vector<tn_node>{0, first, second, 1, bystander});
}

TEST_CASE("A cycle is refused and names its nodes") {
  const auto graph = test::small_chain();
  Transaction edit(*graph, "loop");
  edit_api()->set_input(edit.get(), 0, 0, graph->find_value("y"));
  const std::string error = commit_error(edit);
  CHECK(error.find("cycle") != std::string::npos);
  CHECK(error.find("'relu'") != std::string::npos);
  CHECK(error.find("'neg'") != std::string::npos);
  require_sound(*graph);
}

TEST_CASE("A cycle in a model is refused; a model out of order is sorted") {
  Graph graph;
  graph.set_registry(&test::fake_ops());
  const bool cyclic = GENERATE(false, true);
  Transaction build(graph, "m", TN_EDIT_BUILD);
  Editor e(build.get());
  const tn_value x = e.input("x", TN_FLOAT32, {2});
  const tn_node late = e.node("Neg", {x}, {"late"}, "late");
  const tn_node early = e.node("Neg", {x}, {"early"}, "early");
  edit_api()->set_input(build.get(), late, 0, graph.node(early).output(0));
  if (cyclic) edit_api()->set_input(build.get(), early, 0, graph.node(late).output(0));
  e.outputs({graph.node(late).output(0)});
  const std::string error = commit_error(build);
  if (cyclic) {
    CHECK(error.find("cycle") != std::string::npos);
    CHECK(error.find("'late' (Neg)") != std::string::npos);
    CHECK(error.find("'early' (Neg)") != std::string::npos);
    CHECK(graph.node_bound() == 0);
  } else {
    CHECK(error.empty());
    CHECK(graph.nodes(0)[0] == early);
    require_sound(graph);
  }
}

TEST_CASE("Two results of one name violate single static assignment") {
  Graph graph;
  Transaction build(graph, "m", TN_EDIT_BUILD);
  Editor e(build.get());
  const tn_value x = e.input("x", TN_FLOAT32, {2});
  e.node("Neg", {x}, {"t"}, "one");
  CHECK(e.node("Neg", {x}, {"t"}, "two") == TN_NONE);
  CHECK(e.status == TN_ERR_INVALID);
  const std::string error = commit_error(build);
  CHECK(error.find("value 't' is written twice") != std::string::npos);
  CHECK(error.find("single static assignment") != std::string::npos);
}

TEST_CASE(
    "Sibling regions may share names, a region may not shadow what it sees, a name made later is free") {
  enum Twin { none, seen, own, later };
  const Twin twin = GENERATE(none, seen, own, later);
  Graph graph;
  graph.set_registry(&test::fake_ops());
  Transaction build(graph, "m", TN_EDIT_BUILD);
  Editor e(build.get());
  const tn_value c = e.input("c", TN_BOOL, {});
  const tn_value x = e.input("x", TN_FLOAT32, {2});
  if (twin == seen) e.node("Neg", {x}, {"t"}, "before");
  const tn_node owner = e.node("If", {c}, {twin == own ? "t" : "z"}, "if");
  for (const char* name : {"then_branch", "else_branch"}) {
    tn_region region = TN_NONE;
    edit_api()->create_region(build.get(), owner, test::str(name), &region);
    const tn_node inner = e.node("Neg", {x}, {"t"}, {}, region);
    REQUIRE(e.status == TN_OK);
    e.outputs({graph.node(inner).output(0)}, region);
  }
  e.outputs({graph.node(owner).output(0)});
  if (twin == later) e.node("Neg", {graph.node(owner).output(0)}, {"t"}, "after");
  CHECK(commit_error(build).empty() == (twin != seen));
  if (twin == own) CHECK(graph.name(graph.node(owner).output(0)) == "t");  // what users see keeps its name
}

TEST_CASE("An input of an inner region that hides an outer value is renamed, whichever came first") {
  const bool inner_first = GENERATE(false, true);
  Graph graph;
  graph.set_registry(&test::fake_ops());
  Transaction build(graph, "m", TN_EDIT_BUILD);
  Editor e(build.get());
  const tn_value x = e.input("x", TN_FLOAT32, {2});
  if (!inner_first) e.node("Neg", {x}, {"t"});
  const tn_node owner = e.node("Loop", {x}, {"z"});
  tn_region region = TN_NONE;
  edit_api()->create_region(build.get(), owner, test::str("body"), &region);
  const tn_value inner = e.input("t", TN_FLOAT32, {2}, region);
  e.outputs({inner}, region);
  if (inner_first) e.node("Neg", {x}, {"t"});
  CHECK(commit_error(build).empty());
  CHECK(graph.name(inner) == "t_1");
  CHECK(graph.value(graph.find_value("t")).kind == TN_VALUE_RESULT);
  require_sound(graph);
}

TEST_CASE("Captures count as the owner's uses in the order") {
  Graph graph;
  graph.set_registry(&test::fake_ops());
  Transaction build(graph, "m", TN_EDIT_BUILD);
  Editor e(build.get());
  const tn_value c = e.input("c", TN_BOOL, {});
  const tn_node owner = e.node("If", {c}, {"z"}, "if");
  const tn_value x = e.input("x", TN_FLOAT32, {2});
  const tn_node source = e.node("Neg", {x}, {"s"}, "source");
  for (const char* name : {"then_branch", "else_branch"}) {
    tn_region region = TN_NONE;
    edit_api()->create_region(build.get(), owner, test::str(name), &region);
    const tn_node inner =
        e.node("Neg", {graph.node(source).output(0)}, {std::string("t_") + name}, {}, region);
    e.outputs({graph.node(inner).output(0)}, region);
  }
  e.outputs({graph.node(owner).output(0)});
  REQUIRE(commit_error(build).empty());
  CHECK(graph.nodes(0)[0] == source);
  require_sound(graph);
  Diagnostics found;
  REQUIRE(infer_graph(graph, found) == TN_OK);
  CHECK(type_text(graph, graph.type(graph.find_value("z"))) == "float32[2]");

  SECTION("a taken branch is inlined") {
    Transaction edit(graph, "fold");
    const tn_region region = graph.node(owner).regions()[0];
    REQUIRE(edit_api()->inline_region(edit.get(), region, nullptr, 0, owner) == TN_OK);
    edit_api()->replace_uses(edit.get(), graph.node(owner).output(0), graph.region(region).outputs[0]);
    edit_api()->erase(edit.get(), owner);
    CHECK(commit_error(edit).empty());
    require_sound(graph);
    CHECK(graph.live_node_count() == 2);
    CHECK(graph.output_name(0, 0) == "z");
  }
  SECTION("a value of a region is not visible outside it") {
    Transaction edit(graph, "leak");
    edit_api()->set_input(edit.get(), source, 0,
                          graph.find_value("t_then_branch", graph.node(owner).regions()[0]));
    CHECK(commit_error(edit).find("not visible") != std::string::npos);
    require_sound(graph);
  }
  SECTION("the owner is cloned with its regions") {
    Transaction edit(graph, "copy");
    tn_node clone = TN_NONE;
    REQUIRE(edit_api()->clone_node(edit.get(), owner, 0, TN_NONE, &c, 1, &clone) == TN_OK);
    CHECK(commit_error(edit).empty());
    CHECK(graph.node(clone).region_count == 2);
    CHECK(type_text(graph, graph.type(graph.node(clone).output(0))) == "float32[2]");
    require_sound(graph);
  }
}

TEST_CASE("Types narrow and never change") {
  const auto graph = test::small_chain();
  Diagnostics found;
  SECTION("a replacement of another type is refused, with both types named") {
    Transaction edit(*graph, "bad fuse");
    Editor e(edit.get());
    const tn_node node = e.node("Shape", {graph->find_value("x")});
    edit_api()->replace_uses(edit.get(), graph->find_value("y"), graph->node(node).output(0));
    const std::string error = commit_error(edit);
    CHECK(error.find("bad fuse") != std::string::npos);
    CHECK(error.find("float32[N,4]") != std::string::npos);
    CHECK(error.find("int64[2]") != std::string::npos);
  }
  SECTION("a vague replacement takes what was known") {
    Transaction edit(*graph, "fuse");
    Editor e(edit.get());
    const tn_node node = e.node("Vague", {graph->find_value("x")});
    edit_api()->replace_uses(edit.get(), graph->find_value("y"), graph->node(node).output(0));
    edit_api()->erase(edit.get(), 1);
    CHECK(commit_error(edit).empty());
    CHECK(type_text(*graph, graph->type(graph->node(node).output(0))) == "float32[N,4]");
  }
  SECTION("a narrowed input reaches its users") {
    Transaction edit(*graph, "shapes");
    const tn_dim dims[] = {3, 4};
    const tn_type type{TN_KIND_TENSOR, TN_FLOAT32, 2, 0, dims};
    edit_api()->set_type(edit.get(), graph->find_value("x"), &type);
    CHECK(commit_error(edit).empty());
    CHECK(type_text(*graph, graph->type(graph->find_value("y"))) == "float32[3,4]");
  }
  SECTION("it cannot become something else") {
    Transaction edit(*graph, "shapes");
    const tn_dim dims[] = {3, 5};
    const tn_type type{TN_KIND_TENSOR, TN_FLOAT32, 2, 0, dims};
    CHECK(edit_api()->set_type(edit.get(), graph->find_value("x"), &type) == TN_ERR_INVALID);
    CHECK(commit_error(edit).find("may narrow, never change") != std::string::npos);
  }
  SECTION("a wrong element type is named with operand, found and expected") {
    Transaction edit(*graph, "p");
    Editor e(edit.get());
    const tn_node shape = e.node("Shape", {graph->find_value("x")}, {"s"});
    e.node("Relu", {graph->node(shape).output(0)}, {}, "r");
    const std::string error = commit_error(edit);
    CHECK(error.find("node 'r' (Relu)") != std::string::npos);
    CHECK(error.find("operand 0 'X' (value 's') is int64[2]") != std::string::npos);
    CHECK(error.find("float32, float64") != std::string::npos);
  }
  SECTION("operands of one type variable must agree; operands must be there; attributes too") {
    for (const int which : {0, 1, 2}) {
      Transaction edit(*graph, "p");
      Editor e(edit.get());
      const tn_value x = graph->find_value("x");
      const tn_value other = graph->node(e.node("Shape", {x})).output(0);
      if (which == 0) e.node("Add", {x, other});
      if (which == 1) e.node("Add", {x});
      if (which == 2) e.node("Leaky", {x});
      const std::string error = commit_error(edit);
      INFO(error);
      CHECK(error.find(which == 0   ? "both of one type T"
                       : which == 1 ? "operand 1 'B' is missing"
                                    : "attribute 'alpha' is missing") != std::string::npos);
    }
  }
}

TEST_CASE("Shapes flow through small integer tensors") {
  const auto graph = test::small_chain();
  Transaction edit(*graph, "p");
  Editor e(edit.get());
  const tn_value x = graph->find_value("x");
  const tn_node shape = e.node("Shape", {x});
  const tn_node reshape = e.node("Reshape", {x, graph->node(shape).output(0)});
  const tn_value fixed = e.ints("dims", {2, 2});
  const tn_node other = e.node("Reshape", {x, fixed});
  const tn_node unknown = e.node("NonZero", {x}, {"nz"});
  CHECK(commit_error(edit).empty());
  CHECK(type_text(*graph, graph->type(graph->node(reshape).output(0))) == "float32[N,4]");
  CHECK(type_text(*graph, graph->type(graph->node(other).output(0))) == "float32[2,2]");
  CHECK(type_text(*graph, graph->type(graph->node(unknown).output(0))) == "int64[nz.0#1]");
  const tn_dim* elements = nullptr;
  uint32_t count = 0;
  REQUIRE(graph_api()->known_elements(graph.get(), fixed, &elements, &count) == TN_OK);
  CHECK(count == 2);
  CHECK(elements[1] == 2);
}

TEST_CASE("The limit of applied edits stops the next begin") {
  const auto graph = test::small_chain();
  graph->set_edit_limit(1);
  tn_edit* edit = nullptr;
  REQUIRE(edit_api()->begin(graph.get(), test::str("p"), 0, &edit) == TN_OK);
  CHECK(edit_api()->commit(edit, nullptr) == TN_OK);  // nothing changed: not counted
  REQUIRE(edit_api()->begin(graph.get(), test::str("p"), 0, &edit) == TN_OK);
  Editor(edit).node("Neg", {graph->find_value("x")});
  CHECK(edit_api()->commit(edit, nullptr) == TN_OK);
  CHECK(edit_api()->begin(graph.get(), test::str("p"), 0, &edit) == TN_ERR_LIMIT);
}

TEST_CASE("Constants: uniform ones expand when asked, equal ones are found equal") {
  Graph graph;
  Transaction build(graph, "m", TN_EDIT_BUILD);
  Editor e(build.get());
  const int64_t dims[] = {3, 5};
  const float half = 0.5f;
  const tn_tensor uniform{TN_FLOAT32, 2, dims, const_cast<float*>(&half), 4};
  tn_value a = TN_NONE, b = TN_NONE, c = TN_NONE;
  REQUIRE(edit_api()->constant_uniform(build.get(), test::str("a"), &uniform, &a) == TN_OK);
  std::vector<float> bytes(15, 0.5f);
  tn_tensor dense{TN_FLOAT32, 2, dims, bytes.data(), 60};
  REQUIRE(edit_api()->constant_copy(build.get(), test::str("b"), &dense, &b) == TN_OK);
  bytes[7] = 1;
  REQUIRE(edit_api()->constant_copy(build.get(), test::str("c"), &dense, &c) == TN_OK);
  dense.bytes = 59;
  tn_value bad = TN_NONE;
  CHECK(edit_api()->constant_copy(build.get(), test::str("d"), &dense, &bad) == TN_ERR_INVALID);
  CHECK(graph.same_constant(a, b));
  CHECK(graph.constant_hash(a) == graph.constant_hash(b));
  CHECK_FALSE(graph.same_constant(a, c));
  CHECK(graph.uniform_element(c) == nullptr);
  tn_tensor out{};
  REQUIRE(graph.constant(a, &out));
  CHECK(std::memcmp(out.data, std::vector<float>(15, 0.5f).data(), 60) == 0);

  const uint8_t nibble = 0x5;
  const int64_t odd[] = {3};
  const tn_tensor small{TN_UINT4, 1, odd, const_cast<uint8_t*>(&nibble), 1};
  tn_value d = TN_NONE;
  REQUIRE(edit_api()->constant_uniform(build.get(), test::str("e"), &small, &d) == TN_OK);
  REQUIRE(graph.constant(d, &out));
  CHECK(out.bytes == 2);
  CHECK(static_cast<const uint8_t*>(out.data)[0] == 0x55);
  CHECK(static_cast<const uint8_t*>(out.data)[1] == 0x05);
}

TEST_CASE("Slices of a file are checked, and copied only where they lie askew and are read") {
  std::string path = (std::filesystem::temp_directory_path() / "tenon_slice_XXXXXX").string();
  const int descriptor = ::mkstemp(path.data());
  REQUIRE(::write(descriptor, "\x01\x02\x00\x00\x00\x03\x00\x00\x00", 9) == 9);
  ::close(descriptor);
  tn_file* file = nullptr;
  REQUIRE(files_api()->open(test::str(path), nullptr, &file) == TN_OK);
  ::unlink(path.c_str());
  Graph graph;
  Transaction build(graph, "m", TN_EDIT_BUILD);
  const int64_t dims[] = {2};
  const tn_tensor tensor{TN_INT32, 1, dims, nullptr, 8};
  tn_value straight = TN_NONE, askew = TN_NONE, beyond = TN_NONE;
  REQUIRE(edit_api()->constant_slice(build.get(), test::str("a"), &tensor, file, 0, &straight) == TN_OK);
  REQUIRE(edit_api()->constant_slice(build.get(), test::str("b"), &tensor, file, 1, &askew) == TN_OK);
  CHECK(edit_api()->constant_slice(build.get(), test::str("c"), &tensor, file, 2, &beyond) == TN_ERR_INVALID);
  CHECK(edit_api()->constant_slice(build.get(), test::str("c"), &tensor, file, UINT64_MAX, &beyond) ==
        TN_ERR_INVALID);
  const auto mapping = mapped_file(file);
  files_api()->release(file);
  tn_tensor out{};
  REQUIRE(graph.constant(straight, &out));
  CHECK(out.data == mapping->data());
  REQUIRE(graph.constant(askew, &out));
  CHECK(reinterpret_cast<uintptr_t>(out.data) % 64 == 0);
  CHECK(static_cast<const int32_t*>(out.data)[0] == 2);
  CHECK(static_cast<const int32_t*>(out.data)[1] == 3);
}

TEST_CASE("An adopted constant is released with the graph, once") {
  static int released = 0;
  released = 0;
  {
    Graph graph;
    Transaction build(graph, "m", TN_EDIT_BUILD);
    const int64_t dims[] = {100};
    std::vector<float> bytes(100);
    const tn_tensor tensor{TN_FLOAT32, 1, dims, bytes.data(), 400};
    tn_value value = TN_NONE;
    edit_api()->constant_adopt(
        build.get(), test::str("a"), &tensor, [](void*) { ++released; }, nullptr, &value);
    Diagnostics found;
    CHECK(build.commit(found));
    const auto copy = graph.clone();
    CHECK(released == 0);
  }
  CHECK(released == 1);
}

TEST_CASE("A clone has the same ids and goes its own way") {
  const auto graph = test::small_chain();
  const auto copy = graph->clone();
  CHECK(fingerprint(*graph) == fingerprint(*copy));
  Transaction edit(*copy, "p");
  edit_api()->set_input(edit.get(), 1, 0, copy->find_value("x"));
  edit_api()->erase(edit.get(), 0);
  CHECK(commit_error(edit).empty());
  require_sound(*copy);
  require_sound(*graph);
  CHECK(graph->live_node_count() == 2);
}

TEST_CASE("Regions nest up to a limit") {
  Graph graph;
  Transaction build(graph, "m", TN_EDIT_BUILD);
  Editor e(build.get());
  tn_region region = 0;
  uint32_t depth = 0;
  for (;; ++depth) {
    const tn_node owner = e.node("If", {}, {"v" + std::to_string(depth)}, {}, region);
    if (edit_api()->create_region(build.get(), owner, test::str("body"), &region) != TN_OK) break;
  }
  CHECK(depth == Graph::max_region_depth);
  CHECK(commit_error(build).find("nested more than") != std::string::npos);
}
