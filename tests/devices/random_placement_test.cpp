// Random graphs with random pins over host and toys, against the host alone, and every copy accounted for.
#include <catch2/catch.hpp>

#include <random>
#include <set>

#include "toys.hpp"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Drawn {
  std::string lines;
  std::vector<std::string> nodes;          // names, by number
  std::vector<int> made_by;                // of each value: the node; -1: an input
  std::vector<std::pair<int, int>> reads;  // node, value
  std::vector<int> outputs;                // values
};

// Values are 4 x 4. Some operators only the host has; a Reshape is a view of its operand.
Drawn draw(std::mt19937& random) {
  Drawn drawn;
  const auto below = [&](size_t n) { return static_cast<int>(random() % n); };
  std::vector<std::string> names = {"x", "y"};
  std::vector<int> root = {0, 1};  // whose bytes they are
  drawn.made_by = {-1, -1};
  drawn.lines =
      "  input %x: float32[4,4]\n  input %y: float32[4,4]\n  const %same: int64[2] = [4,-1]\n"
      "  const %k: float32[4,4] = [1,0,-1,0.5,0,1,0.25,0,0,-1,1,0.5,0.5,0,0,1]\n";
  const int count = 1 + below(16);
  for (int i = 0; i < count; ++i) {
    const auto newest = [&] {  // the newer the likelier, so that graphs are deep
      const int a = below(names.size()), b = below(names.size());
      return std::max(a, b);
    };
    static const char* const binary[] = {"Add", "Sub", "MatMul", "Max"};
    static const char* const unary[] = {"Relu", "Tanh", "Softmax", "Neg"};
    const int kind = below(10), a = newest(), b = newest();
    const std::string value = "v" + std::to_string(i), node = "n" + std::to_string(i);
    std::string call;
    std::vector<int> operands = {a};
    if (kind < 4) {
      call = std::string(binary[below(4)]) + "(%" + names[static_cast<size_t>(a)] + ", %" +
             names[static_cast<size_t>(b)] + ")";
      operands.push_back(b);
    } else if (kind < 5) {
      call = "MatMul(%" + names[static_cast<size_t>(a)] + ", %k)";
    } else if (kind < 9) {
      call = std::string(unary[below(4)]) + "(%" + names[static_cast<size_t>(a)] + ")";
    } else {
      drawn.lines +=
          "  %" + value + " = Reshape(%" + names[static_cast<size_t>(a)] + ", %same) name \"" + node + "\"\n";
      names.push_back(value);
      root.push_back(root[static_cast<size_t>(a)]);
      continue;
    }
    drawn.lines += "  %" + value + " = " + call + " name \"" + node + "\"\n";
    for (const int operand : operands)
      drawn.reads.emplace_back(static_cast<int>(drawn.nodes.size()), root[static_cast<size_t>(operand)]);
    names.push_back(value);
    root.push_back(static_cast<int>(drawn.made_by.size()));
    drawn.made_by.push_back(static_cast<int>(drawn.nodes.size()));
    drawn.nodes.push_back(node);
  }
  const int outputs = 1 + below(3);
  std::set<size_t> chosen = {names.size() - 1};
  for (int i = 0; i < outputs; ++i) chosen.insert(static_cast<size_t>(below(names.size())));
  for (const size_t value : chosen) {
    drawn.lines += "  output %" + names[value] + " as \"out" + std::to_string(value) + "\"\n";
    drawn.outputs.push_back(root[value]);
  }
  return drawn;
}

// How many copies the placement needs when each value crosses once: by definition, from who makes and who
// reads.
uint64_t least_copies(const Drawn& drawn, const Session& session, bool peers) {
  std::map<std::string, std::string> device;
  for (const PlannedNode& node : session.planned_nodes()) {
    if (node.how == "kernel") device[node.name] = node.device;
  }
  const auto runs = [&](int node) { return device.count(drawn.nodes[static_cast<size_t>(node)]) != 0; };
  const auto where = [&](int node) {
    return node < 0 ? std::string("cpu") : device.at(drawn.nodes[static_cast<size_t>(node)]);
  };
  uint64_t copies = 0;
  for (int value = 0; value < static_cast<int>(drawn.made_by.size()); ++value) {
    const int maker = drawn.made_by[static_cast<size_t>(value)];
    if (maker >= 0 && !runs(maker)) continue;  // nobody needs it
    std::set<std::string> readers;
    for (const auto& [node, read] : drawn.reads) {
      if (read == value && runs(node)) readers.insert(where(node));
    }
    if (std::count(drawn.outputs.begin(), drawn.outputs.end(), value) != 0) readers.insert("cpu");
    const std::string home = where(maker);
    readers.erase(home);
    copies += readers.size();
    if (home == "cpu" || readers.count("cpu") != 0 || readers.empty() || peers) continue;
    ++copies;  // down to the host, to go on from there
  }
  return copies;
}

}  // namespace

TEST_CASE("random graphs, randomly pinned, give the host's numbers with the fewest copies") {
  std::mt19937 random(17);
  uint64_t mixed = 0, copies = 0;
  for (int trial = 0; trial < 250; ++trial) {
    const Drawn drawn = draw(random);
    const Toy toy = std::array{Toy::plain, Toy::in_order, Toy::visible, Toy::two,
                               Toy::two_peers}[static_cast<size_t>(trial % 5)];
    const bool two = toy == Toy::two || toy == Toy::two_peers;
    DevicePolicy policy;
    policy.all = true;
    for (const std::string& node : drawn.nodes) {
      const auto choice = random() % 4;
      if (choice != 3)
        policy.pin[node] = choice == 0 ? "cpu" : two && choice == 2 ? "toy:1" : two ? "toy:0" : "toy";
    }
    Engine& engine = engine_with(toy);
    INFO("trial " << trial << "\n" << drawn.lines);
    const Tensors want = reference(engine, drawn.lines, static_cast<uint64_t>(trial));
    const Session session(graph_of(engine, drawn.lines), engine.registries(),
                          options_for(policy, 1 + static_cast<uint32_t>(trial) % 2, trial % 3 == 0));
    for (int turn = 0; turn < 2; ++turn)
      require_close(run(session, inputs_for(session, static_cast<uint64_t>(trial))), want);
    const RunStats stats = session.stats();
    if (toy != Toy::visible) REQUIRE(stats.copies == least_copies(drawn, session, toy == Toy::two_peers));
    mixed += stats.devices.size() > 1 ? 1 : 0;
    copies += stats.copies;
  }
  CHECK(mixed > 100);
  CHECK(copies > 500);
}
