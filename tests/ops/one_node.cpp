#include "one_node.hpp"

#include <dlfcn.h>

#include <stdexcept>

#include "core/base/diagnostics.hpp"
#include "core/graph/edit.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "core/pipeline/model_loader.hpp"
#include "core/plugin/host.hpp"

namespace tenon::test {
namespace {

struct Loaded {
  Host host;
  Registries registries;
  Loaded() {
    provide_core_services(host);
    void* library = dlopen(OPS_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(dlerror());
    const auto entry = reinterpret_cast<tenon_plugin_entry_fn>(dlsym(library, TN_ENTRY_SYMBOL));
    const tn_plugin* plugin = entry ? entry(TN_ABI_MAJOR) : nullptr;
    if (!plugin) throw std::runtime_error("the plugin has no table");
    Diagnostics diagnostics;
    void* instance = nullptr;
    if (plugin->open(host.make_plugin_host("ops", "{}"), diagnostics.abi(), &instance) != TN_OK)
      throw std::runtime_error("the plugin does not open");
    registries.add_plugin(*plugin, instance, diagnostics);
    if (!diagnostics.all().empty()) throw std::runtime_error(diagnostics.all().front().text);
  }
};
Loaded& loaded() {
  static auto* one = new Loaded;
  return *one;
}

// "x, s" -> "%x, %s" for plain operand names.
std::string with_signs(const std::string& node) {
  const size_t open = node.find('('), close = node.find(')', open);
  std::string out = node.substr(0, open + 1);
  bool start = true;
  for (size_t i = open + 1; i < close; ++i) {
    const char ch = node[i];
    if (start && ch != ' ' && ch != '_') out += '%';
    start = ch == ',' || (start && ch == ' ');
    out += ch;
  }
  return out + node.substr(close);
}

std::string text_of(const std::string& given, const std::string& node, int results) {
  std::string text = "graph \"t\" {\n  opset \"\" 28\n";
  for (size_t at = 0; at < given.size();) {
    const size_t end = std::min(given.find(';', at), given.size());
    std::string one = given.substr(at, end - at);
    one.erase(0, one.find_first_not_of(' '));
    if (!one.empty())
      text += std::string(one.find('=') == std::string::npos ? "  input %" : "  const %") + one + "\n";
    at = end + 1;
  }
  text += "  ";
  for (int i = 0; i < results; ++i) text += (i ? ", %y" : "%y") + std::to_string(i) + ": ?";
  text += " = " + with_signs(node) + "\n";
  for (int i = 0; i < results; ++i)
    text += "  output %y" + std::to_string(i) + " as \"y" + std::to_string(i) + "\"\n";
  return text + "}\n";
}

std::string result_types(Graph& graph) {
  std::string out;
  for (const tn_value value : graph.region(Graph::main_region).outputs) {
    if (!out.empty()) out += "; ";
    out += type_text(graph, graph.type(value));
    const tn_dim* elements = nullptr;
    uint32_t count = 0;
    if (!graph.known_elements(value, &elements, &count)) continue;
    out += " = ";
    for (uint32_t i = 0; i < count; ++i) out += (i ? "," : "") + graph.symbols().text(elements[i]);
  }
  return out;
}
std::string operators(Graph& graph) {
  std::string out;
  for (const tn_node id : graph.nodes(Graph::main_region))
    out += (out.empty() ? "" : " ") + std::string(graph.op_name(id));
  return out;
}

}  // namespace

const Registries& ops_registry() { return loaded().registries; }

std::unique_ptr<Graph> graph_of(const std::string& given, const std::string& node, int results) {
  Diagnostics diagnostics;
  const std::string text = text_of(given, node, results);
  auto graph = parse(text, &loaded().registries, diagnostics);
  diagnostics.throw_if_errors(2);
  if (!graph) throw Error(2, "text form", "not read: " + text);
  upgrade_and_infer(*graph, loaded().registries, diagnostics);
  return graph;
}

std::string types_of(const std::string& given, const std::string& node, int results) {
  try {
    return result_types(*graph_of(given, node, results));
  } catch (const Error& error) {
    return "error: " + error.diagnostics.front().text;
  }
}

std::string operators_of(const std::string& given, const std::string& node, int results) {
  try {
    return operators(*graph_of(given, node, results));
  } catch (const Error& error) {
    return "error: " + error.diagnostics.front().text;
  }
}

std::string body_of(const std::string& given, const std::string& node, int results) {
  try {
    auto graph = graph_of(given, node, results);
    const tn_node id = graph->nodes(Graph::main_region).back();
    const OpEntry* entry = loaded().registries.find(graph->node(id).op);
    Diagnostics diagnostics;
    tn_edit* edit = nullptr;
    if (edit_api()->begin(graph.get(), {"test", 4}, 0, &edit) != TN_OK) return "error: no transaction";
    const tn_status status = entry->def->decompose(entry->instance, graph_api(), edit_api(), graph.get(),
                                                   edit, id, diagnostics.abi());
    if (status != TN_OK) {
      edit_api()->rollback(edit);
      return "declined: " + (diagnostics.all().empty() ? std::string() : diagnostics.all().front().text);
    }
    edit_api()->erase(edit, id);
    if (edit_api()->commit(edit, diagnostics.abi()) != TN_OK)
      return "error: " + diagnostics.all().front().text;
    return result_types(*graph) + " | " + operators(*graph);
  } catch (const Error& error) {
    return "error: " + error.diagnostics.front().text;
  }
}

}  // namespace tenon::test
