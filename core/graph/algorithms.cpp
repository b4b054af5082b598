#include "core/graph/algorithms.hpp"

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <boost/graph/strong_components.hpp>
#include <boost/graph/topological_sort.hpp>
#include <iterator>

// Boost's depth-first searches keep an explicit stack, so a chain of a million vertices is as good as any.
namespace tenon {

namespace {
using Sparse = boost::compressed_sparse_row_graph<boost::directedS>;

Sparse directed(uint32_t count, std::span<const Edge> edges) {
  return Sparse(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), count);
}

// Components renumbered in order of their smallest vertex: Boost's own numbers follow its search.
std::vector<uint32_t> renumbered(const std::vector<uint32_t>& component, uint32_t count,
                                 uint32_t* components) {
  std::vector<uint32_t> number(count, UINT32_MAX), result(component.size());
  uint32_t next = 0;
  for (size_t v = 0; v < component.size(); ++v) {
    if (number[component[v]] == UINT32_MAX) number[component[v]] = next++;
    result[v] = number[component[v]];
  }
  if (components) *components = next;
  return result;
}
}  // namespace

std::vector<uint32_t> topological_order(uint32_t count, std::span<const Edge> edges) {
  const Sparse graph = directed(count, edges);
  std::vector<uint32_t> order;
  order.reserve(count);
  try {
    boost::topological_sort(graph, std::back_inserter(order));  // last to first
  } catch (const boost::not_a_dag&) {
    return {};
  }
  std::reverse(order.begin(), order.end());
  return order;
}

std::vector<uint32_t> weak_components(uint32_t count, std::span<const Edge> edges, uint32_t* components) {
  // Both directions of each edge: undirected connectivity on the same flat structure.
  std::vector<Edge> both;
  both.reserve(edges.size() * 2);
  for (const auto& [from, to] : edges) {
    both.emplace_back(from, to);
    both.emplace_back(to, from);
  }
  return strong_components(count, both, components);
}

std::vector<uint32_t> strong_components(uint32_t count, std::span<const Edge> edges, uint32_t* components) {
  const Sparse graph = directed(count, edges);
  std::vector<uint32_t> component(count, 0);
  if (count == 0) {
    if (components) *components = 0;
    return component;
  }
  const auto index = boost::get(boost::vertex_index, graph);
  const auto found =
      boost::strong_components(graph, boost::make_iterator_property_map(component.begin(), index));
  return renumbered(component, static_cast<uint32_t>(found), components);
}

std::vector<uint32_t> find_cycle(uint32_t count, std::span<const Edge> edges) {
  uint32_t components = 0;
  const auto component = strong_components(count, edges, &components);
  std::vector<uint32_t> size(components, 0), next(count, UINT32_MAX);
  for (const uint32_t c : component) ++size[c];
  for (const auto& [from, to] : edges) {
    if (from == to) return {from};
    // Within one component every vertex has a successor in it, so following them comes round.
    if (component[from] == component[to] && (next[from] == UINT32_MAX || to < next[from])) next[from] = to;
  }
  for (uint32_t start = 0; start < count; ++start) {
    if (size[component[start]] < 2) continue;
    std::vector<uint32_t> path;
    std::vector<uint32_t> seen_at(count, UINT32_MAX);
    uint32_t at = start;
    while (seen_at[at] == UINT32_MAX) {
      seen_at[at] = static_cast<uint32_t>(path.size());
      path.push_back(at);
      at = next[at];
    }
    path.erase(path.begin(), path.begin() + seen_at[at]);
    return path;
  }
  return {};
}

}  // namespace tenon
