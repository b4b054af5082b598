// From a model file to a graph of canonical operators with inferred types.
#pragma once
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/base/diagnostics.hpp"
#include "core/graph/graph.hpp"
#include "core/pipeline/manifest.hpp"
#include "core/plugin/host.hpp"
#include "core/plugin/registries.hpp"

namespace tenon {

// Graphs in the text form are models too: the host reads and writes them itself, under this id.
inline constexpr std::string_view text_form_id = "text";
bool has_text_form_suffix(const std::filesystem::path& path);  // .graph, .txt

// The frontend that the manifest names, or the one that is surest of the file. Throws Error (exit code 2)
// when none is, or two are equally sure.
const FrontendEntry& choose_frontend(const Manifest& manifest, const Registries& registries);

// The graph as the model file has it: versions as written, no types but the declared ones. Throws Error (exit
// code 2).
std::unique_ptr<Graph> read_model(const Manifest& manifest, const Registries& registries, const Host& host,
                                  Diagnostics& diagnostics);

// model.shapes: types of the graph's inputs as the user wants them. Before inference.
void apply_shapes(Graph& graph, const std::vector<ShapeOverride>& shapes, Diagnostics& diagnostics);

// Brings every node that is of an older version than its operator's definition up to it. An upgrade that
// needs to know types is asked again after inference. Errors name all nodes that cannot be upgraded. Infers
// the types of the whole graph. Throws Error (exit code 2).
void upgrade_and_infer(Graph& graph, const Registries& registries, Diagnostics& diagnostics);

}  // namespace tenon
