// The canonical text of a graph: one line a node, readable, and read back to an equal graph.
//
//   graph "net" {
//     opset "" 28
//     input %x: float32[N,3,224,224]
//     const %w: float32[64,3,7,7] = base64 "..."
//     const %half: float32[] = [0.5]
//     %y: float32[N,64,112,112] = Conv(%x, %w, _) {strides = [2,2], group = 1} version 22 name "conv1" origin
//     "conv1" %z: float32[N] = If(%c) {
//       region "then_branch" {
//         ...
//         output %t as "t"
//       }
//     }
//     output %z as "z"
//   }
//
// Names that are not made of letters, digits and ._/:- are quoted: %"odd name". `_` is an omitted operand or
// result. Types: float32[N,4], float32[*] (rank unknown), ?[4] (element type unknown), seq(T), optional(T),
// none when nothing is known. Constants: [literals], base64 "...", uniform [literal]. Attributes: 3, 0.5,
// "text", [1, 2], [0.5], ["a"], empty lists ints[] floats[] strings[], tensor T contents, type T. `symbol "k"
// 1 5` bounds a symbol, `*` is no bound. A line that begins with "# " is a comment.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/base/diagnostics.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/op_registry.hpp"

namespace tenon {

struct TextOptions {
  bool constant_bytes =
      true;  // false: constants over 16 elements are `#<content hash>`, which cannot be read back
  bool types = true;
  bool origins = true;
};

std::string print(const Graph& graph, const TextOptions& options = {});
// One node with its types, without its regions: for messages and explain.
std::string print_node(const Graph& graph, tn_node node);

// Reads a graph; the registry may be NULL (versions default to 0 then) and is set on the result. Errors name
// line and column; NULL is returned with them.
std::unique_ptr<Graph> parse(std::string_view text, const OpRegistry* registry, Diagnostics& diagnostics);

}  // namespace tenon
