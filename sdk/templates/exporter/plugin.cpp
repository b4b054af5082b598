// The exporter @NAME@: a graph as Graphviz's dot language has it, one box a node, one arrow a value.
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/exporter.hpp"

namespace {

using namespace tenon::sdk;

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) >= ' ') out += c;
  }
  return out + "\"";
}

std::string place(tn_node node) { return "n" + std::to_string(node); }

void write(const ExportJob& job) {
  FileWriter file(job.host, job.path);  // appears under its name when it is whole
  const GraphView& graph = job.graph;
  file.write("digraph {\n  node [shape=box];\n");
  const tn_region_info main = graph.region(graph.main());
  for (const tn_value input : Span<const tn_value>(main.inputs, main.input_count))
    file.write("  v" + std::to_string(input) +
               " [shape=ellipse, label=" + quoted(text(graph.value(input).name)) + "];\n");
  for (const tn_node id : graph.nodes(graph.main())) {
    const Node node = graph.node(id);
    file.write("  " + place(id) + " [label=" + quoted(node.op_name()) + "];\n");
    for (const tn_value value : node.inputs()) {
      if (value == TN_NONE || graph.is_constant(value)) continue;
      const tn_node from = graph.producer(value);
      file.write("  " + (from == TN_NONE ? "v" + std::to_string(value) : place(from)) + " -> " + place(id) +
                 ";\n");
    }
  }
  file.write("}\n");
  file.keep();
}

void provide(Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("@VENDOR@").license("Apache-2.0").summary("writes .@NAME@ files");
  static ExporterBuilder exporter("@NAME@", "a graph in Graphviz's language");
  plugin.exporter(exporter.suffix(".@NAME@").write<write>().record());
}

}  // namespace

TENON_PLUGIN(provide)
