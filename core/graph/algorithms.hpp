// Graph algorithms of Boost.Graph behind plain signatures: one .cpp holds the heavy headers. Vertices of
// these functions are numbers 0..count-1 of the caller's making, edges are pairs; all are iterative and
// near-linear.
#pragma once
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace tenon {

using Edge = std::pair<uint32_t, uint32_t>;  // from, to

// Ends first to last; empty when there is a cycle (and count > 0).
std::vector<uint32_t> topological_order(uint32_t count, std::span<const Edge> edges);
// The component number of each vertex, numbered in order of the smallest vertex; *components = how many.
std::vector<uint32_t> weak_components(uint32_t count, std::span<const Edge> edges, uint32_t* components);
std::vector<uint32_t> strong_components(uint32_t count, std::span<const Edge> edges, uint32_t* components);
// The vertices of one cycle in order; empty when there is none.
std::vector<uint32_t> find_cycle(uint32_t count, std::span<const Edge> edges);

}  // namespace tenon
