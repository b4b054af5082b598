// From a manifest to a running session: what the program and libtenon do alike.
#pragma once
#include "core/pipeline/pipeline.hpp"
#include "core/runtime/session.hpp"

namespace tenon {

RuntimeOptions runtime_options(const Manifest& manifest, bool explain = false);

// A further plugin as a person names it: a library (it has a '/' or ends in .so; relative to the working
// folder), or an installed one's name or id. `where` is for messages.
PluginRequest plugin_request(const std::string& named, std::string where);
RuleRequest rule_request(const std::string& file, std::string where);

// Writes the graph with the exporter of the path's ending; ".graph" is the text form. The exporter changes
// the graph as the format asks. `options` are the exporter's. Throws Error (2: no such exporter or option, 1:
// it fails); warnings go to `findings`.
void save_graph(Engine& engine, Graph& graph, const std::filesystem::path& path, const Json& options,
                Diagnostics& findings);

}  // namespace tenon
