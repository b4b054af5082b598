// Makes a graph that fails smaller while it still fails.
#pragma once
#include <functional>
#include <memory>

#include "core/graph/graph.hpp"

namespace tenon::fuzz {

// `fails` is asked about every candidate; the result is the last one it held for.
std::unique_ptr<Graph> shrink(std::unique_ptr<Graph> graph, const std::function<bool(const Graph&)>& fails);

}  // namespace tenon::fuzz
