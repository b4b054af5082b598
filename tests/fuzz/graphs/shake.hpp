// What roundings do to a graph: the same graph with every float a few units in its last place away.
#pragma once
#include <memory>
#include <span>

#include "core/base/tensor.hpp"
#include "core/graph/graph.hpp"

namespace tenon::fuzz {

inline constexpr double shake_units = 4;  // in the last place, at most

// `inputs` are the tensors of a run, in the order of the graph's inputs: shapes are fixed to theirs. Every
// float input, constant and result is multiplied by 1 + a few units at random, element by element; what comes
// out of a node that sums or cancels inside, where numbers are about 1, is moved by as much of 1 too: at
// random, or, with `to_grid`, as v + 1 - 1 is, which makes exact zeros of what is much smaller, and with what
// ends at -1 and 1 taken to the ends. NULL when it cannot be done.
std::unique_ptr<Graph> shaken(const Graph& graph, std::span<const Tensor* const> inputs, uint64_t seed,
                              bool to_grid);

}  // namespace tenon::fuzz
