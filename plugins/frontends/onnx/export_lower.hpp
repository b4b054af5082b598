// Replaces what the model cannot say, by edits of the graph: a node becomes its body, or what its operator's
// definition decomposes it to, until everything that is left can be written.
#pragma once
#include "export_choice.hpp"
#include "tenon/sdk/edit.hpp"

namespace tenon::onnx {

/// Nodes that turn out to have no decomposition end up in `choosing.kept`.
void lower(const tn_edit_api* edit, const sdk::GraphView& graph, Choosing& choosing);

/// The regions of a node that are written when it is written so.
bool is_written(const sdk::GraphView& graph, const sdk::Node& node, const Choosing& choosing, Writing writing,
                tn_region region);

}  // namespace tenon::onnx
