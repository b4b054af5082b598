// How a node runs, told by name: its kernel and the others, what they take, and why none did.
#include "core/report/explain_node.hpp"

#include <catch2/catch.hpp>

#include "tests/kernels/cpu_graphs.hpp"

using namespace tenon;
using Catch::Matchers::Contains;

namespace {

std::unique_ptr<Graph> graph() {
  return test::graph_of(
      "  input %x: float32[64]\n  %a = Tanh(%x) name \"first\"\n  %y = Gelu(%a) name \"second\"\n"
      "  output %y as \"y\"\n");
}

struct Ran {
  RuntimeOptions options;
  std::vector<float> x = std::vector<float>(64, 0.5f);
  int64_t dims[1] = {64};
  std::vector<NamedTensor> inputs;
  std::unique_ptr<Session> session;
  explicit Ran(std::vector<std::string> deny = {}) {
    options.threads = 1;
    options.explain = true;
    options.kernels.deny = std::move(deny);
    inputs = {{"x", {TN_FLOAT32, 1, dims, x.data(), 256}, nullptr}};
    session = std::make_unique<Session>(graph(), test::engine().registries(), options);
    session->run(inputs);
  }
};

}  // namespace

TEST_CASE("each kernel that takes a node is timed there, the chosen one first") {
  const Ran ran;
  const auto nodes = nodes_of(*ran.session, "first");
  REQUIRE(nodes.size() == 1);
  CHECK_THAT(planned_text(nodes[0]),
             Contains("Tanh first: kernel tenon.cpu.tanh/1") && Contains("* tenon.cpu.tanh/1  cost"));
  REQUIRE(nodes[0].able.size() >= 2);  // the reference too
  CHECK(nodes[0].able[0] == nodes[0].kernel);
  const auto times = time_kernels(*graph(), test::engine().registries(), ran.options, nodes[0], ran.inputs);
  REQUIRE(times.size() == nodes[0].able.size());
  for (size_t i = 0; i < times.size(); ++i) {
    CHECK(times[i].kernel == nodes[0].able[i]);
    CHECK(times[i].runs >= 1);
    CHECK(times[i].runs <= 10);
  }
  CHECK_THAT(timing_text(times), Contains("tenon.cpu.tanh/1  measured ") && Contains(" us, the least of "));
  CHECK(timing_text({{"com.acme.tanh/1", 0, 0}}) ==
        "    com.acme.tanh/1  not timed: it did not run on the host\n");
  CHECK(nodes_of(*ran.session, "third").empty());
  CHECK(expansion_text(*ran.session, "first").empty());
}

TEST_CASE("a pin leaves one kernel to time, a denial says so") {
  Ran ran;
  ran.options.kernels.pin["first"] = "tenon.cpu.tanh/1";
  ran.session = std::make_unique<Session>(graph(), test::engine().registries(), ran.options);
  ran.session->run(ran.inputs);
  CHECK(nodes_of(*ran.session, "first").at(0).able == std::vector<std::string>{"tenon.cpu.tanh/1"});
  const Ran denied({"tenon.cpu.tanh*"});
  const auto nodes = nodes_of(*denied.session, "first");
  REQUIRE(nodes.size() == 1);
  CHECK_THAT(planned_text(nodes[0]), Contains("tenon.cpu.tanh/1  refused: ") && Contains("deny"));
}

TEST_CASE("a node that no kernel takes is found by its name, with the reasons and what became of it") {
  const Ran ran({"*gelu*"});
  CHECK_THAT(
      expansion_text(*ran.session, "second"),
      Contains("Gelu second: its decomposition, as no kernel takes it") && Contains("gelu/1  refused: "));
  const auto parts = nodes_of(*ran.session, "second");
  REQUIRE(parts.size() > 1);
  for (const PlannedNode& part : parts) CHECK(part.op != "Gelu");
}
