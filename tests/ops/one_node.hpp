// One node in a graph, given as text; what inference says of its results, as text.
#pragma once
#include <memory>
#include <string>

#include "core/graph/graph.hpp"
#include "core/plugin/registries.hpp"

namespace tenon::test {

const Registries& ops_registry();

// `given`: operands, separated by ';', as the graph's text form has them: "x: float32[N,3]; s: int64[2] =
// [0,-1]" (with contents: a constant). `node`: "Reshape(x, s) {allowzero = 1}", perhaps with " version 9" or
// regions. `results`: how many. Throws Error when the graph is refused.
std::unique_ptr<Graph> graph_of(const std::string& given, const std::string& node, int results = 1);

// Types of the results joined by "; ", each with its known contents: "int64[2] = 1,N". "error: ..." when
// refused.
std::string types_of(const std::string& given, const std::string& node, int results = 1);
// The operators of the graph after upgrading, in order, joined by blanks.
std::string operators_of(const std::string& given, const std::string& node, int results = 1);
// Replaces the node by its body, infers again: the result's type, then the operators of the body.
std::string body_of(const std::string& given, const std::string& node, int results = 1);

}  // namespace tenon::test
