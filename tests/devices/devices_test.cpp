// Graphs on the toy device, on the host, and over both: what is placed where, what is copied, and the
// numbers.
#include <catch2/catch.hpp>

#include <set>
#include <thread>

#include "toys.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

const Toy every_toy[] = {Toy::plain, Toy::in_order, Toy::visible, Toy::two, Toy::two_peers};

// Softmax and Transpose have no toy kernel.
const char* const mixed_graph =
    "  input %x: float32[N,4]\n  const %w: float32[4,4] = [1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7]\n"
    "  %a = MatMul(%x, %w) name \"a\"\n  %b = Relu(%a) name \"b\"\n  %s = Softmax(%b) name \"s\"\n"
    "  %t = Add(%s, %b) name \"t\"\n  %u = MatMul(%t, %w) name \"u\"\n  output %u as \"u\"\n"
    "  output %s as \"s\"\n";

std::string device_of(const Session& session, const std::string& node) {
  for (const PlannedNode& planned : session.planned_nodes()) {
    if (planned.name == node) return planned.device;
  }
  return "no such node";
}

std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a graph of operators that the device has runs there as a whole: one copy there, one back") {
  const std::string lines =
      "  input %x: float32[N,4]\n  const %w: float32[4,4] = [1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7]\n"
      "  %a = MatMul(%x, %w)\n  %b = Relu(%a)\n  %c = Mul(%a, %b)\n  %d = Sub(%c, %a)\n  output %d as "
      "\"d\"\n";
  for (const Toy toy : every_toy) {
    Engine& engine = engine_with(toy);
    DevicePolicy policy = on_toy();
    if (toy == Toy::two || toy == Toy::two_peers) policy.use = {"toy:1"};
    const Session session(graph_of(engine, lines), engine.registries(), options_for(policy));
    for (const int64_t size : {3, 1, 5, 3}) {
      const Tensors inputs = inputs_for(session, 1, size);
      require_close(run(session, inputs), reference(engine, lines, 1, size));
      const RunStats stats = session.stats();
      const std::string name = policy.use[0];
      CHECK(stats.devices == std::map<std::string, uint64_t>{{name, 4}});
      CHECK(stats.copies == 2);
      CHECK(stats.copied_bytes == static_cast<uint64_t>(2 * size * 16));
      CHECK(stats.device_constant_bytes == 64);
      CHECK(stats.device_arena_bytes != 0);
      CHECK(stats.arena_bytes == 0);
    }
  }
}

TEST_CASE("a graph of operators that the device has not stays on the host, with no copy") {
  const std::string lines =
      "  input %x: float32[3,4]\n  %a = Softmax(%x)\n  %b = Neg(%a)\n  output %b as \"b\"\n";
  Engine& engine = engine_with(Toy::plain);
  const Session session(graph_of(engine, lines), engine.registries(), options_for(on_toy()));
  require_close(run(session, inputs_for(session, 2)), reference(engine, lines, 2));
  const RunStats stats = session.stats();
  CHECK(stats.devices == std::map<std::string, uint64_t>{{"cpu", 2}});
  CHECK(stats.copies == 0);
  CHECK(stats.device_arena_bytes == 0);
}

TEST_CASE("a mixed graph is split, and a value is copied once however many read it") {
  for (const Toy toy : {Toy::plain, Toy::in_order}) {
    for (const bool guard : {false, true}) {
      Engine& engine = engine_with(toy);
      const Session session(graph_of(engine, mixed_graph), engine.registries(),
                            options_for(on_toy(), 2, guard));
      for (int turn = 0; turn < 3; ++turn)
        require_close(run(session, inputs_for(session, 3 + turn)), reference(engine, mixed_graph, 3 + turn));
      for (const char* node : {"a", "b", "t", "u"}) CHECK(device_of(session, node) == "toy");
      CHECK(device_of(session, "s") == "cpu");
      // x and s to the toy, b and u from there; s is an output where it was made.
      CHECK(session.stats().copies == 4);
    }
  }
}

TEST_CASE("what the host reads in memory that it can see is not copied") {
  Engine& engine = engine_with(Toy::visible);
  const Session session(graph_of(engine, mixed_graph), engine.registries(), options_for(on_toy()));
  require_close(run(session, inputs_for(session, 4)), reference(engine, mixed_graph, 4));
  CHECK(session.stats().copies == 3);  // b is read in place
}

TEST_CASE("every second node pinned to the host: the same numbers, and each crossing one copy") {
  std::string lines = "  input %x: float32[4,4]\n  %v0 = Relu(%x) name \"n0\"\n";
  for (int i = 1; i < 12; ++i) {
    const std::string v = std::to_string(i), before = std::to_string(i - 1);
    lines += "  %v" + v + " = " +
             (i % 3 == 0   ? "MatMul"
              : i % 3 == 1 ? "Add"
                           : "Sub") +
             "(%v" + before + ", %x) name \"n" + v + "\"\n";
  }
  lines += "  output %v11 as \"y\"\n";
  std::map<std::string, std::string> pins;
  for (int i = 0; i < 12; i += 2) pins["n" + std::to_string(i)] = "cpu";
  for (const Toy toy : every_toy) {
    Engine& engine = engine_with(toy);
    const Session session(graph_of(engine, lines), engine.registries(), options_for(on_toy(pins), 1, true));
    require_close(run(session, inputs_for(session, 5)), reference(engine, lines, 5));
    for (int i = 0; i < 12; ++i)
      CHECK((device_of(session, "n" + std::to_string(i)) == "cpu") == (i % 2 == 0));
    if (toy == Toy::plain)
      CHECK(session.stats().copies == 1 + 12);  // x, five pairs of crossings, v10, the result
  }
}

TEST_CASE("two devices: a value goes from one to the other through the host, or straight between peers") {
  const std::string lines =
      "  input %x: float32[4,4]\n  %a = Relu(%x) name \"a\"\n  %b = Add(%a, %a) name \"b\"\n"
      "  %c = Mul(%a, %b) name \"c\"\n  output %c as \"c\"\n";
  const std::map<std::string, std::string> pins = {{"a", "toy:0"}, {"b", "toy:1"}, {"c", "toy:0"}};
  for (const Toy toy : {Toy::two, Toy::two_peers}) {
    Engine& engine = engine_with(toy);
    const Session session(graph_of(engine, lines), engine.registries(), options_for(on_toy(pins)));
    for (int turn = 0; turn < 5; ++turn)
      require_close(run(session, inputs_for(session, 6 + turn)), reference(engine, lines, 6 + turn));
    CHECK(device_of(session, "a") == "toy:0");
    CHECK(device_of(session, "b") == "toy:1");
    CHECK(session.stats().copies == (toy == Toy::two ? 6 : 4));
  }
}

TEST_CASE("by cost: a large product goes to the device, a small one does not") {
  Engine& engine = engine_with(Toy::plain);
  DevicePolicy policy;
  policy.all = true;
  for (const int size : {4, 96}) {
    const std::string s = std::to_string(size);
    const std::string lines = "  input %x: float32[" + s + "," + s +
                              "]\n  %a = MatMul(%x, %x) name \"a\"\n  %b = MatMul(%a, %x) name \"b\"\n"
                              "  output %b as \"b\"\n";
    RuntimeOptions options = options_for(policy);
    options.kernels.deny = {"tenon.cpu.*"};  // the oracle's cost is not known: 10 ns an element
    options.explain = true;
    const Session session(graph_of(engine, lines), engine.registries(), options);
    require_close(run(session, inputs_for(session, 7)), reference(engine, lines, 7));
    CHECK(device_of(session, "a") == (size == 4 ? "cpu" : "toy"));
    const auto nodes = session.planned_nodes();
    INFO(nodes[0].placement);
    CHECK(nodes[0].placement.find(size == 4 ? "* on cpu: " : "* on toy: ") != std::string::npos);
    CHECK(nodes[0].placement.find("; this node alone there: kernel ") != std::string::npos);
    CHECK(nodes[0].placement.find(", copies +") != std::string::npos);
  }
}

TEST_CASE("pins, denials and preferences decide, and what cannot be kept is said") {
  Engine& engine = engine_with(Toy::plain);
  const auto planned = [&](DevicePolicy policy, KernelPolicy kernels) {
    RuntimeOptions options = options_for(std::move(policy));
    options.kernels = std::move(kernels);
    options.explain = true;
    const Session session(graph_of(engine, mixed_graph), engine.registries(), options);
    require_close(run(session, inputs_for(session, 8)), reference(engine, mixed_graph, 8));
    std::map<std::string, PlannedNode> by_name;
    for (const PlannedNode& node : session.planned_nodes()) by_name[node.name] = node;
    return by_name;
  };
  SECTION("a name beats an operator, an operator a pattern") {
    auto nodes = planned(on_toy({{"MatMul", "cpu"}, {"u", "toy"}}), {});
    CHECK(nodes["a"].device == "cpu");
    CHECK(nodes["u"].device == "toy");
    CHECK(nodes["b"].device == "toy");
    CHECK(nodes["a"].placement.find("on toy: pinned to cpu by devices.pin") != std::string::npos);
  }
  SECTION("auto is no pin: cost decides") {
    auto nodes = planned(on_toy({{"u", "auto"}}), {});
    CHECK(nodes["u"].placement.find("on cpu: pinned") == std::string::npos);
    CHECK(nodes["t"].placement.find("on cpu: pinned to toy") != std::string::npos);
  }
  SECTION("a pin to a device that cannot run the node") {
    auto nodes = planned(on_toy(), {});
    CHECK(nodes["s"].device == "cpu");
    CHECK(nodes["s"].placement.find("pinned to toy, which cannot run it: no kernel for Softmax") !=
          std::string::npos);
  }
  SECTION("denials") {
    DevicePolicy policy = on_toy();
    policy.deny["toy"] = {"MatMul", "t"};
    auto nodes = planned(policy, {});
    CHECK(nodes["a"].device == "cpu");
    CHECK(nodes["t"].device == "cpu");
    CHECK(nodes["b"].device == "toy");
    CHECK(nodes["a"].placement.find("on toy: denied by devices.deny \"MatMul\"") != std::string::npos);
  }
  SECTION("kernels: a pin, a denial, a preference") {
    DevicePolicy all;
    all.all = true;
    KernelPolicy kernels;
    kernels.pin["b"] = "com.example.toy.relu/1";
    CHECK(planned(all, kernels)["b"].device == "toy");
    kernels = {};
    kernels.prefer = {"toy"};
    auto nodes = planned(all, kernels);
    CHECK(nodes["a"].device == "toy");
    CHECK(nodes["s"].device == "cpu");
    kernels = {};
    kernels.deny = {"com.example.toy.matmul*"};
    nodes = planned(on_toy(), kernels);
    CHECK(nodes["a"].device == "cpu");
    CHECK(nodes["b"].device == "toy");
  }
  SECTION("what no device may run is an error") {
    DevicePolicy policy = on_toy();
    policy.deny = {{"toy", {"Relu"}}, {"cpu", {"b"}}};
    const Session session(graph_of(engine, mixed_graph), engine.registries(), options_for(policy));
    const std::string text = error_of([&] { run(session, inputs_for(session, 1)); });
    CHECK(text.find("node 'b' (Relu)") != std::string::npos);
    CHECK(text.find(
              "no device may run this node; cpu: denied by devices.deny \"b\"; toy: denied by devices.deny "
              "\"Relu\"") != std::string::npos);
  }
  SECTION("names of devices that there are not") {
    DevicePolicy policy;
    policy.use = {"tpy"};
    policy.pin["a"] = "gpu";
    const std::string text =
        error_of([&] { Session(graph_of(engine, mixed_graph), engine.registries(), options_for(policy)); });
    INFO(text);
    CHECK(text.find("no loaded plugin brings a device 'tpy'; did you mean 'toy'") != std::string::npos);
    CHECK(text.find("there are: cpu, toy") != std::string::npos);
    CHECK(text.find("devices.pin of 'a'") != std::string::npos);
  }
}

TEST_CASE("operators that only the device has run there, without a body or a host kernel") {
  Engine& engine = engine_with(Toy::plain);
  RuntimeOptions options = options_for({});
  options.kernels.deny = {"tenon.*relu*", "tenon.*matmul*", "tenon.*mat_mul*"};
  const std::string lines =
      "  input %x: float32[4,4]\n  %a = MatMul(%x, %x)\n  %b = Relu(%a)\n  %c = Softmax(%b)\n  output %c as "
      "\"c\"\n";
  CHECK(error_of([&] {
          Session(graph_of(engine, lines), engine.registries(), options);
        }).find("nothing can run it") != std::string::npos);
  options.devices.all = true;
  const Session session(graph_of(engine, lines), engine.registries(), options);
  require_close(run(session, inputs_for(session, 9)), reference(engine, lines, 9));
  CHECK(session.stats().devices == std::map<std::string, uint64_t>{{"cpu", 1}, {"toy", 2}});
  // Shapes that it declines, and nobody else takes: said with its reason.
  const std::string broadcast =
      "  input %x: float32[4,4]\n  input %r: float32[4]\n  %a = Add(%x, %r)\n  output %a as \"a\"\n";
  options.kernels.deny = {"tenon.*"};
  const Session refused(graph_of(engine, broadcast), engine.registries(), options);
  CHECK(error_of([&] {
          run(refused, inputs_for(refused, 1));
        }).find("com.example.toy.add/1: operands of one shape, no broadcasting") != std::string::npos);
}

TEST_CASE("views share the bytes on whichever device they are, and leave it as outputs") {
  const std::string lines =
      "  input %x: float32[N,4]\n  const %flat: int64[1] = [-1]\n  const %back: int64[2] = [4,-1]\n"
      "  %a = Relu(%x) name \"a\"\n  %r = Reshape(%a, %flat)\n  %b = Add(%r, %r) name \"b\"\n"
      "  %q = Reshape(%b, %back)\n  %n = Neg(%r) name \"n\"\n  %z = Reshape(%n, %back)\n  %m = Mul(%q, %z) "
      "name \"m\"\n"
      "  output %r as \"r\"\n  output %a as \"a\"\n  output %q as \"q\"\n  output %m as \"m\"\n";
  for (const Toy toy : every_toy) {
    Engine& engine = engine_with(toy);
    for (const bool guard : {false, true}) {
      const Session session(graph_of(engine, lines), engine.registries(), options_for(on_toy(), 1, guard));
      require_close(run(session, inputs_for(session, 10)), reference(engine, lines, 10));
      CHECK(device_of(session, "n") == "cpu");
      // x and n to the toy; a, q and m from there: r is a, and q is b.
      if (toy == Toy::plain) CHECK(session.stats().copies == 5);
    }
  }
}

TEST_CASE("bodies of Loop and If are placed too, with their inputs and results on the host") {
  const std::string lines =
      "  input %x: float32[4,4]\n  const %n: int64[] = [3]\n  const %go: bool[] = [1]\n"
      "  %w = Relu(%x) name \"w\"\n"
      "  %y = Loop(%n, %go, %w) name \"loop\" {\n    region \"body\" {\n      input %i: int64[]\n"
      "      input %d: bool[]\n      input %s: float32[4,4]\n      %p = MatMul(%s, %w)\n      %t = Tanh(%p)\n"
      "      %s2 = Add(%t, %w)\n      output %d as \"d2\"\n      output %s2 as \"s2\"\n    }\n  }\n"
      "  %z = Mul(%y, %x) name \"z\"\n  output %z as \"z\"\n";
  for (const Toy toy : every_toy) {
    Engine& engine = engine_with(toy);
    const Session session(graph_of(engine, lines), engine.registries(), options_for(on_toy()));
    for (int turn = 0; turn < 3; ++turn)
      require_close(run(session, inputs_for(session, 11 + turn)), reference(engine, lines, 11 + turn));
    const auto devices = session.stats().devices;
    uint64_t elsewhere = 0;
    for (const auto& [name, count] : devices) elsewhere += name == "cpu" ? 0 : count;
    CHECK(elsewhere == 4);          // w, z, and two in the body
    CHECK(devices.at("cpu") == 2);  // Loop and Tanh
  }
}

TEST_CASE("a run that is cut where shapes depend on data places each part") {
  const std::string lines =
      "  input %x: float32[N,4]\n  const %flat: int64[1] = [-1]\n  %a = Relu(%x) name \"a\"\n"
      "  %f = Reshape(%a, %flat)\n  %i = NonZero(%f) name \"nz\"\n  %v = GatherND(%f, %t) name \"g\"\n"
      "  %y = Add(%v, %v) name \"y\"\n  output %y as \"y\"\n";
  std::string ordered = lines;
  ordered.insert(ordered.find("  %v = GatherND"), "  %t = Transpose(%i)\n");
  Engine& engine = engine_with(Toy::plain);
  const Session session(graph_of(engine, ordered), engine.registries(), options_for(on_toy()));
  for (int turn = 0; turn < 4; ++turn)
    require_close(run(session, inputs_for(session, 20 + turn)), reference(engine, ordered, 20 + turn));
  CHECK(session.stats().segments >= 2);
  CHECK(device_of(session, "y") == "toy");
}

TEST_CASE("many threads run one session, and two sessions one device") {
  Engine& engine = engine_with(Toy::plain);
  const Session first(graph_of(engine, mixed_graph), engine.registries(), options_for(on_toy(), 2));
  const Session second(graph_of(engine, mixed_graph), engine.registries(), options_for(on_toy()));
  const Tensors want = reference(engine, mixed_graph, 12);
  std::vector<Tensors> got(40);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const Session& session = t % 2 == 0 ? first : second;
      for (size_t i = t; i < got.size(); i += 4) got[i] = run(session, inputs_for(session, 12));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Tensors& one : got) require_close(one, want);
}

TEST_CASE("an observer sees every step once, on whichever device") {
  Engine& engine = engine_with(Toy::plain);
  const Session session(graph_of(engine, mixed_graph), engine.registries(), options_for(on_toy()));
  const Tensors inputs = inputs_for(session, 13);
  NamedTensor x;
  x.name = "x";
  x.tensor = {TN_FLOAT32, 2, inputs.dims[0].data(), const_cast<float*>(inputs.values[0].data()),
              inputs.values[0].size() * sizeof(float)};
  std::vector<std::string> seen;
  session.run_observed({&x, 1}, [&](const StepTiming& timing) {
    seen.emplace_back(timing.name);
    CHECK(timing.end_ns >= timing.begin_ns);
  });
  CHECK(seen == std::vector<std::string>{"a", "b", "s", "t", "u"});
}
