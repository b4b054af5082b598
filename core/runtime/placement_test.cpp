#include "core/runtime/placement.hpp"

#include <catch2/catch.hpp>

#include <random>

using namespace tenon;
namespace {

// Layered random graphs: costs and sizes small enough that ties are frequent.
PlacementProblem random_problem(std::mt19937& random, uint32_t devices, uint32_t nodes) {
  const auto pick = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
  PlacementProblem problem;
  problem.devices.resize(devices);
  for (uint32_t d = 1; d < devices; ++d) {
    problem.devices[d].upload = {static_cast<double>(pick(0, 4)), 1};
    problem.devices[d].download = {static_cast<double>(pick(0, 4)), 1};
    problem.devices[d].peer.resize(devices);
    for (uint32_t other = 1; other < devices; ++other) {
      if (other != d && pick(0, 2) == 0)
        problem.devices[d].peer[other] = {static_cast<double>(pick(0, 3)), 2};
    }
  }
  const auto value = [&](uint32_t producer) {
    PlacementProblem::Value made;
    made.producer = producer;
    made.bytes = static_cast<uint64_t>(pick(0, 6));
    made.read_on_host = pick(0, 5) == 0;
    problem.values.push_back(made);
  };
  for (int i = 0; i < 2; ++i) value(PlacementProblem::no_node);
  for (uint32_t n = 0; n < nodes; ++n) {
    std::vector<PlacementCost> cost(devices);
    for (PlacementCost& c : cost) c = pick(0, 4) == 0 ? cannot_run : placement_cost(pick(0, 9), nodes);
    const auto able = static_cast<size_t>(pick(0, static_cast<int>(devices) - 1));
    if (cost[able] == cannot_run) cost[able] = placement_cost(pick(0, 9), nodes);
    const int operands = pick(1, 3);
    for (int i = 0; i < operands; ++i)
      problem.values[static_cast<size_t>(pick(0, static_cast<int>(problem.values.size()) - 1))]
          .readers.push_back(n);
    problem.nodes.push_back(cost);
    for (int results = pick(1, 2); results > 0; --results) value(n);
  }
  return problem;
}

// The least sum over all assignments in which each node runs on one of `allowed`, or stays where `base` has
// it.
PlacementCost least(const PlacementProblem& problem, const Placement& base,
                    const std::vector<uint32_t>& allowed) {
  std::vector<uint32_t> free;
  for (uint32_t n = 0; n < base.size(); ++n) {
    for (const uint32_t d : allowed) {
      if (base[n] == d) free.push_back(n);
    }
  }
  PlacementCost best = INT64_MAX;
  uint64_t count = 1;
  for (size_t i = 0; i < free.size(); ++i) count *= allowed.size();
  for (uint64_t code = 0; code < count; ++code) {
    Placement tried = base;
    uint64_t rest = code;
    for (const uint32_t n : free) {
      tried[n] = allowed[rest % allowed.size()];
      rest /= allowed.size();
    }
    best = std::min(best, total_cost(problem, tried));
  }
  return best;
}

PlacementProblem two_devices(double latency) {
  PlacementProblem problem;
  problem.devices.resize(2);
  problem.devices[1].upload = problem.devices[1].download = {latency, 0};
  return problem;
}

}  // namespace

TEST_CASE("with two devices no assignment is cheaper: random graphs, every assignment tried") {
  std::mt19937 random(7);
  int mixed = 0;
  for (int trial = 0; trial < 1500; ++trial) {
    const uint32_t nodes = 1 + static_cast<uint32_t>(trial % 9);
    const PlacementProblem problem = random_problem(random, 2, nodes);
    const Placement found = place(problem);
    INFO("trial " << trial);
    REQUIRE(total_cost(problem, found) == least(problem, Placement(nodes, 0), {0, 1}));
    REQUIRE(place(problem) == found);
    const size_t away = static_cast<size_t>(std::count(found.begin(), found.end(), 1u));
    mixed += away != 0 && away != nodes ? 1 : 0;
  }
  CHECK(mixed > 300);  // the graphs are such that the answer is no matter of course
}

TEST_CASE("with three and four devices no exchange between two of them is cheaper") {
  std::mt19937 random(11);
  int exact = 0;
  constexpr int trials = 300;
  for (int trial = 0; trial < trials; ++trial) {
    const uint32_t devices = 3 + static_cast<uint32_t>(trial % 2),
                   nodes = 1 + static_cast<uint32_t>(trial % 6);
    const PlacementProblem problem = random_problem(random, devices, nodes);
    const Placement found = place(problem);
    const PlacementCost cost = total_cost(problem, found);
    INFO("trial " << trial);
    REQUIRE(cost < INT64_MAX);
    for (uint32_t a = 0; a < devices; ++a) {
      for (uint32_t b = a + 1; b < devices; ++b) REQUIRE(cost == least(problem, found, {a, b}));
    }
    std::vector<uint32_t> all(devices);
    for (uint32_t d = 0; d < devices; ++d) all[d] = d;
    exact += cost == least(problem, found, all) ? 1 : 0;
  }
  CHECK(exact > trials * 9 / 10);
}

TEST_CASE("a value that many nodes read elsewhere is copied once") {
  // One copy to the device costs 10, each of three readers saves 4 there: 12 > 10.
  PlacementProblem problem = two_devices(10);
  problem.nodes.assign(3, {placement_cost(5, 3), placement_cost(1, 3)});
  problem.values.push_back({PlacementProblem::no_node, 64, false, {0, 1, 2}});
  CHECK(place(problem) == Placement{1, 1, 1});
  problem.nodes.pop_back();
  problem.values[0].readers = {0, 1};
  CHECK(place(problem) == Placement{0, 0});
}

TEST_CASE("a node that only the device runs takes its neighbours along when that saves copies") {
  PlacementProblem problem = two_devices(10);
  const PlacementCost cheap = placement_cost(2, 4), dear = placement_cost(8, 4);
  problem.nodes = {{cheap, dear}, {cannot_run, cheap}, {cheap, dear}, {cannot_run, cheap}, {cheap, dear}};
  for (uint32_t n = 0; n < 5; ++n) problem.values.push_back({n, 4, n == 4, {}});
  for (uint32_t n = 1; n < 5; ++n) problem.values[n - 1].readers = {n};
  problem.values.push_back({PlacementProblem::no_node, 4, false, {0}});
  // Between the two there are two copies to save (20) for 6; outside, one copy is needed wherever the edge
  // is.
  CHECK(place(problem) == Placement{0, 1, 1, 1, 0});
}

TEST_CASE("of equal assignments the one on the host is taken") {
  PlacementProblem problem = two_devices(0);
  problem.nodes.assign(4, {placement_cost(3, 4), placement_cost(3, 4)});
  CHECK(place(problem) == Placement{0, 0, 0, 0});
}

TEST_CASE("between devices that cannot read each other a value goes through the host, once for all") {
  PlacementProblem problem;
  problem.devices.resize(4);
  for (uint32_t d = 1; d < 4; ++d) problem.devices[d].upload = problem.devices[d].download = {double(d), 0};
  const PlacementProblem::Value value{0, 8, false, {}};
  CHECK(copy_cost(problem, value, 1, {false, false, true, true}) == 1000 * (1 + 2 + 3));
  CHECK(copy_cost(problem, value, 1, {true, false, true, true}) == 1000 * (1 + 2 + 3));
  CHECK(copy_cost(problem, value, 0, {true, false, false, true}) == 1000 * 3);
  problem.devices[1].peer.assign(4, std::nullopt);
  problem.devices[1].peer[2] = TransferCost{0.5, 0};
  CHECK(copy_cost(problem, value, 1, {false, true, true, false}) == 500);
  CHECK(copy_cost(problem, value, 1, {false, false, true, true}) == 500 + 1000 * (1 + 3));
}

TEST_CASE("what moving a node alone would cost is told apart: its kernel, and copies") {
  PlacementProblem problem = two_devices(10);
  problem.nodes = {{placement_cost(50, 2), placement_cost(1, 2)},
                   {placement_cost(4, 2), placement_cost(3, 2)}};
  problem.values.push_back({PlacementProblem::no_node, 4, false, {0}});
  problem.values.push_back({0, 4, false, {1}});
  problem.values.push_back({1, 4, true, {}});
  const Placement found = place(problem);
  CHECK(found == Placement{1, 1});
  const PlacementExplainer explainer(problem, found);
  CHECK(explainer.move(1, 0).kernel == 1000);
  CHECK(explainer.move(1, 0).copies == 0);
  CHECK(explainer.move(0, 0).kernel == 49000);
  CHECK(explainer.move(0, 0).copies == 0);  // the input is no longer copied, the result is
}

TEST_CASE("a chain of 20,000 nodes is cut in no time to speak of") {
  PlacementProblem problem = two_devices(10);
  std::mt19937 random(3);
  for (uint32_t n = 0; n < 20000; ++n) {
    problem.nodes.push_back(
        {placement_cost(double(random() % 30), 20000), placement_cost(double(random() % 30), 20000)});
    problem.values.push_back({n, 4, n + 1 == 20000, {}});
    if (n != 0) problem.values[n - 1].readers = {n};
  }
  const Placement found = place(problem);
  // A chain has an exact answer by dynamic programming.
  PlacementCost here = 0, there = 10000;
  for (const auto& cost : problem.nodes) {
    const PlacementCost stay = std::min(here, there + 10000) + cost[0];
    there = std::min(there, here + 10000) + cost[1];
    here = stay;
  }
  CHECK(total_cost(problem, found) == std::min(here, there + 10000));
}
