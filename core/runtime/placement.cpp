#include "core/runtime/placement.hpp"

// GCC 12 takes an optional inside Boost's edge iterator for uninitialised.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/boykov_kolmogorov_max_flow.hpp>
#include <cmath>

namespace tenon {
namespace {

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
struct VertexState {
  Traits::edge_descriptor predecessor;
  boost::default_color_type color = boost::white_color;
  int64_t distance = 0;
};
struct Arc {
  PlacementCost capacity = 0, residual = 0;
  Traits::edge_descriptor reverse;
};
using FlowGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, VertexState, Arc>;

// A minimum cut between source and sink; those on the sink's side are as few as can be.
class Cut {
 public:
  explicit Cut(size_t vertices) : graph_(vertices + 2) {}
  static constexpr uint32_t source = 0, sink = 1;
  uint32_t vertex(size_t i) const { return static_cast<uint32_t>(i + 2); }
  uint32_t add_vertex() { return static_cast<uint32_t>(boost::add_vertex(graph_)); }
  // Costs `capacity` when `from` is on the source's side and `to` on the sink's.
  void add(uint32_t from, uint32_t to, PlacementCost capacity) {
    if (capacity <= 0) return;
    const auto there = boost::add_edge(from, to, graph_).first;
    const auto back = boost::add_edge(to, from, graph_).first;
    graph_[there].capacity = capacity;
    graph_[there].reverse = back;
    graph_[back].reverse = there;
  }
  std::vector<bool> solve() {
    const auto index = boost::get(boost::vertex_index, graph_);
    boost::boykov_kolmogorov_max_flow(graph_, boost::get(&Arc::capacity, graph_),
                                      boost::get(&Arc::residual, graph_), boost::get(&Arc::reverse, graph_),
                                      boost::get(&VertexState::predecessor, graph_),
                                      boost::get(&VertexState::color, graph_),
                                      boost::get(&VertexState::distance, graph_), index, source, sink);
    // Whoever can still reach the sink has to be on its side; nobody else.
    std::vector<bool> on_sink_side(boost::num_vertices(graph_), false);
    std::vector<uint32_t> work = {sink};
    on_sink_side[sink] = true;
    while (!work.empty()) {
      const uint32_t v = work.back();
      work.pop_back();
      for (auto [e, end] = boost::out_edges(v, graph_); e != end; ++e) {
        const auto u = static_cast<uint32_t>(boost::target(*e, graph_));
        if (on_sink_side[u] || graph_[graph_[*e].reverse].residual <= 0) continue;
        on_sink_side[u] = true;
        work.push_back(u);
      }
    }
    return on_sink_side;
  }

 private:
  FlowGraph graph_;
};

// With node `moved`, if it is one, on device `to` instead.
PlacementCost cost_of_value(const PlacementProblem& problem, const PlacementProblem::Value& value,
                            const Placement& placement, uint32_t moved = PlacementProblem::no_node,
                            uint32_t to = 0) {
  const auto device_of = [&](uint32_t node) { return node == moved ? to : placement[node]; };
  std::vector<bool> readers(problem.devices.size(), false);
  if (value.read_on_host) readers[PlacementProblem::host] = true;
  for (const uint32_t reader : value.readers) readers[device_of(reader)] = true;
  const bool made_here = value.producer != PlacementProblem::no_node;
  return copy_cost(problem, value, made_here ? device_of(value.producer) : PlacementProblem::host, readers);
}

// The best exchange of nodes between devices a and b while all others stay. True: the sum became smaller.
bool swap_devices(const PlacementProblem& problem, Placement& placement, uint32_t a, uint32_t b) {
  const size_t count = problem.nodes.size();
  std::vector<uint32_t> number(count, UINT32_MAX), movable;
  bool choice = false;
  for (uint32_t n = 0; n < count; ++n) {
    if (placement[n] != a && placement[n] != b) continue;
    number[n] = static_cast<uint32_t>(movable.size());
    movable.push_back(n);
    choice = choice || (problem.nodes[n][a] < cannot_run && problem.nodes[n][b] < cannot_run);
  }
  if (!choice) return false;
  Cut cut(movable.size());
  std::vector<PlacementCost> on_a(movable.size()), on_b(movable.size());
  for (size_t i = 0; i < movable.size(); ++i) {
    on_a[i] = problem.nodes[movable[i]][a];
    on_b[i] = problem.nodes[movable[i]][b];
  }
  const auto add_up = [](PlacementCost& to, PlacementCost more) { to = std::min(cannot_run, to + more); };
  for (const PlacementProblem::Value& value : problem.values) {
    // Who reads it: devices that stay, and vertices that may be on either side.
    std::vector<bool> fixed(problem.devices.size(), false);
    std::vector<uint32_t> readers;
    if (value.read_on_host) fixed[PlacementProblem::host] = true;
    for (const uint32_t reader : value.readers) {
      if (number[reader] == UINT32_MAX) {
        fixed[placement[reader]] = true;
      } else {
        readers.push_back(cut.vertex(number[reader]));
      }
    }
    const bool fixed_a = fixed[a], fixed_b = fixed[b];
    fixed[a] = fixed[b] = false;
    const auto cost = [&](uint32_t from, bool at_a, bool at_b) {
      std::vector<bool> all = fixed;
      all[a] = at_a;
      all[b] = at_b;
      return copy_cost(problem, value, from, all);
    };
    // `amount` is due when any of the readers is on b's (else a's) side, and `who` is on the other one.
    const auto when_read_on_b = [&](uint32_t who, PlacementCost amount) {
      if (amount <= 0) return;
      if (fixed_b) return cut.add(who, Cut::sink, amount);
      const uint32_t x = cut.add_vertex();
      cut.add(who, x, amount);
      for (const uint32_t reader : readers) cut.add(x, reader, cannot_run);
    };
    const auto when_read_on_a = [&](uint32_t who, PlacementCost amount) {
      if (amount <= 0) return;
      if (fixed_a) return cut.add(Cut::source, who, amount);
      const uint32_t y = cut.add_vertex();
      cut.add(y, who, amount);
      for (const uint32_t reader : readers) cut.add(reader, y, cannot_run);
    };
    const bool stays = value.producer == PlacementProblem::no_node || number[value.producer] == UINT32_MAX;
    if (!stays) {
      const uint32_t producer = number[value.producer];
      const PlacementCost from_a = cost(a, false, false), from_b = cost(b, false, false);
      add_up(on_a[producer], from_a);
      add_up(on_b[producer], from_b);
      when_read_on_b(cut.vertex(producer), cost(a, false, true) - from_a);
      when_read_on_a(cut.vertex(producer), cost(b, true, false) - from_b);
      continue;
    }
    const uint32_t from =
        value.producer == PlacementProblem::no_node ? PlacementProblem::host : placement[value.producer];
    if (readers.empty() || (fixed_a && fixed_b)) continue;  // nothing here depends on the cut
    // What reading on both costs less than reading on each (one download for two) is due in any case.
    const PlacementCost none = cost(from, false, false);
    const PlacementCost only_a = cost(from, true, false) - none, only_b = cost(from, false, true) - none;
    const PlacementCost shared = only_a + only_b - (cost(from, true, true) - none);
    if (!fixed_b) when_read_on_b(Cut::source, only_b - shared);
    if (!fixed_a) when_read_on_a(Cut::sink, only_a - shared);
  }
  for (size_t i = 0; i < movable.size(); ++i) {
    // Only the difference decides; a smaller flow is found sooner.
    const PlacementCost both = std::min(on_a[i], on_b[i]);
    cut.add(Cut::source, cut.vertex(i), on_b[i] - both);
    cut.add(cut.vertex(i), Cut::sink, on_a[i] - both);
  }
  const std::vector<bool> on_b_side = cut.solve();
  Placement changed = placement;
  for (size_t i = 0; i < movable.size(); ++i) changed[movable[i]] = on_b_side[cut.vertex(i)] ? b : a;
  if (total_cost(problem, changed) >= total_cost(problem, placement)) return false;
  placement = std::move(changed);
  return true;
}

}  // namespace

PlacementCost placement_cost(double ns, uint64_t terms) {
  const double most = static_cast<double>(INT64_C(1) << 59) / static_cast<double>(terms + 1);
  if (!(ns > 0)) return 0;
  return static_cast<PlacementCost>(std::min(std::round(ns * 1000), most));
}

PlacementCost TransferCost::of(uint64_t bytes) const {
  const double moving = bytes_per_ns > 0 ? static_cast<double>(bytes) / bytes_per_ns : 0;
  return placement_cost(latency_ns + moving, 1 << 20);
}

PlacementCost copy_cost(const PlacementProblem& problem, const PlacementProblem::Value& value, uint32_t from,
                        const std::vector<bool>& readers) {
  constexpr uint32_t host = PlacementProblem::host;
  PlacementCost cost = 0;
  bool through_host = from != host && readers[host];
  for (uint32_t to = 1; to < readers.size(); ++to) {
    if (!readers[to] || to == from) continue;
    const auto& peers = problem.devices[from].peer;
    if (from != host && to < peers.size() && peers[to]) {
      cost += peers[to]->of(value.bytes);
      continue;
    }
    through_host = through_host || from != host;
    cost += problem.devices[to].upload.of(value.bytes);
  }
  return through_host ? cost + problem.devices[from].download.of(value.bytes) : cost;
}

PlacementCost total_cost(const PlacementProblem& problem, const Placement& placement) {
  PlacementCost sum = 0;
  for (size_t n = 0; n < placement.size(); ++n) {
    if (problem.nodes[n][placement[n]] >= cannot_run) return INT64_MAX;
    sum += problem.nodes[n][placement[n]];
  }
  for (const PlacementProblem::Value& value : problem.values) sum += cost_of_value(problem, value, placement);
  return sum;
}

Placement place(const PlacementProblem& problem) {
  Placement placement(problem.nodes.size(), 0);
  for (size_t n = 0; n < placement.size(); ++n) {
    const auto able = std::find_if(problem.nodes[n].begin(), problem.nodes[n].end(),
                                   [](PlacementCost cost) { return cost < cannot_run; });
    placement[n] = able == problem.nodes[n].end() ? PlacementProblem::host
                                                  : static_cast<uint32_t>(able - problem.nodes[n].begin());
  }
  for (bool better = true; better;) {
    better = false;
    for (uint32_t a = 0; a < problem.devices.size(); ++a) {
      for (uint32_t b = a + 1; b < problem.devices.size(); ++b)
        better = swap_devices(problem, placement, a, b) || better;
    }
    if (problem.devices.size() == 2) break;  // one cut is the answer
  }
  return placement;
}

PlacementExplainer::PlacementExplainer(const PlacementProblem& problem, const Placement& placement)
    : problem_(problem), placement_(placement), values_of_(problem.nodes.size()) {
  for (uint32_t v = 0; v < problem.values.size(); ++v) {
    const PlacementProblem::Value& value = problem.values[v];
    if (value.producer != PlacementProblem::no_node) values_of_[value.producer].push_back(v);
    for (const uint32_t reader : value.readers) {
      if (values_of_[reader].empty() || values_of_[reader].back() != v) values_of_[reader].push_back(v);
    }
  }
}

MoveCost PlacementExplainer::move(uint32_t node, uint32_t device) const {
  MoveCost cost;
  cost.kernel = problem_.nodes[node][device] - problem_.nodes[node][placement_[node]];
  for (const uint32_t v : values_of_[node]) {
    cost.copies += cost_of_value(problem_, problem_.values[v], placement_, node, device) -
                   cost_of_value(problem_, problem_.values[v], placement_);
  }
  return cost;
}

}  // namespace tenon
