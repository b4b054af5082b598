#include "core/pipeline/model_loader.hpp"

#include <algorithm>

#include "core/base/crash_report.hpp"
#include "core/base/files.hpp"
#include "core/base/text.hpp"
#include "core/graph/edit.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/text_form.hpp"
#include "core/plugin/plugin_set.hpp"

namespace tenon {

namespace {

constexpr uint64_t probed_bytes = 4096;

std::string formats_of(const Registries& registries) {
  std::string text;
  for (const FrontendEntry& entry : registries.frontends()) {
    std::string suffixes;
    for (uint32_t i = 0; i < entry.record->suffix_count; ++i)
      suffixes += (i == 0 ? "" : " ") + string(entry.record->suffixes[i]);
    text += (text.empty() ? "" : ", ") + string(entry.record->id) + " (" + suffixes + ")";
  }
  return text.empty() ? "no frontend is loaded; name a plugin that reads models, such as \"onnx\""
                      : "formats that can be read: " + text + ", the text form (.graph .txt)";
}

// The text form is the host's own; a frontend that is sure of such a file goes before.
bool is_text_form(const Manifest& manifest, const Registries& registries) {
  if (manifest.frontend != "auto")
    return manifest.frontend == text_form_id && registries.frontend(text_form_id) == nullptr;
  if (!has_text_form_suffix(manifest.model_path)) return false;
  const std::shared_ptr<const MappedFile> file = MappedFile::open(manifest.model_path);
  const std::string path = manifest.model_path.string();
  return std::none_of(registries.frontends().begin(), registries.frontends().end(),
                      [&](const FrontendEntry& entry) {
                        return entry.record->probe(entry.instance, to_abi(path), file->data(),
                                                   std::min(file->size(), probed_bytes)) > 0;
                      });
}

std::unique_ptr<Graph> read_text_form(const std::string& path, const Registries& registries,
                                      Diagnostics& diagnostics) {
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  Diagnostics said;
  auto graph = parse({reinterpret_cast<const char*>(file->data()), static_cast<size_t>(file->size())},
                     &registries, said);
  for (Diagnostic diagnostic : said.all()) {
    diagnostic.where = diagnostic.where.empty() ? path : path + ":" + diagnostic.where;
    diagnostics.add(std::move(diagnostic));
  }
  diagnostics.throw_if_errors(exit_bad_input);
  return graph;
}

}  // namespace

bool has_text_form_suffix(const std::filesystem::path& path) {
  return path.extension() == ".graph" || path.extension() == ".txt";
}

const FrontendEntry& choose_frontend(const Manifest& manifest, const Registries& registries) {
  const std::string path = manifest.model_path.string();
  if (manifest.frontend != "auto") {
    if (const FrontendEntry* named = registries.frontend(manifest.frontend)) return *named;
    std::vector<std::string> known;
    for (const FrontendEntry& entry : registries.frontends()) known.push_back(string(entry.record->id));
    throw Error(exit_bad_input, manifest.path,
                "model.frontend is '" + manifest.frontend + "', which no loaded plugin has" +
                    did_you_mean(manifest.frontend, known) + "; " + formats_of(registries));
  }
  const std::shared_ptr<const MappedFile> file = MappedFile::open(manifest.model_path);
  const FrontendEntry* best = nullptr;
  const FrontendEntry* second = nullptr;
  int best_confidence = 0;
  for (const FrontendEntry& entry : registries.frontends()) {
    const int confidence =
        entry.record->probe(entry.instance, to_abi(path), file->data(), std::min(file->size(), probed_bytes));
    if (confidence > best_confidence) {
      best = &entry;
      second = nullptr;
      best_confidence = confidence;
    } else if (confidence == best_confidence && confidence > 0) {
      second = &entry;
    }
  }
  if (best == nullptr)
    throw Error(exit_bad_input, path, "no frontend knows this file; " + formats_of(registries));
  if (second != nullptr) {
    throw Error(exit_bad_input, path,
                "frontends '" + string(best->record->id) + "' (plugin " + std::string(best->plugin) +
                    ") and '" + string(second->record->id) + "' (plugin " + std::string(second->plugin) +
                    ") are equally sure that it is theirs; name one: --set model.frontend=" +
                    string(best->record->id));
  }
  return *best;
}

std::unique_ptr<Graph> read_model(const Manifest& manifest, const Registries& registries, const Host& host,
                                  Diagnostics& diagnostics) {
  if (manifest.model_path.empty())
    throw Error(exit_bad_input, manifest.path,
                "names no model; give model.path, or a model file on the command line");
  std::error_code error;
  if (std::filesystem::is_directory(manifest.model_path, error))
    throw Error(exit_bad_input, manifest.model_path.string(), "is a folder; name the model file in it");
  const bool text_form = is_text_form(manifest, registries);
  const FrontendEntry* chosen = text_form ? nullptr : &choose_frontend(manifest, registries);
  if (!manifest.model_sha256.empty()) {
    const std::string is = sha256_file(manifest.model_path);
    if (is != manifest.model_sha256) {
      throw Error(exit_bad_input, manifest.model_path.string(),
                  "has the sha256 " + is + "; the manifest pins " + manifest.model_sha256);
    }
  }
  if (text_form) return read_text_form(manifest.model_path.string(), registries, diagnostics);
  const FrontendEntry& frontend = *chosen;
  auto graph = std::make_unique<Graph>();
  graph->set_registry(&registries);
  const std::string path = manifest.model_path.string();
  Transaction edit(*graph, "frontend " + string(frontend.record->id), TN_EDIT_BUILD);
  Diagnostics said;
  const PluginCallScope crumb("frontend", view(frontend.record->id), frontend.plugin);
  const tn_status status =
      frontend.record->load(frontend.instance, host.abi(), to_abi(path), graph.get(), edit.get(), said.abi());
  for (Diagnostic diagnostic : said.all()) {
    if (diagnostic.where.empty()) diagnostic.where = path;
    diagnostics.add(std::move(diagnostic));
  }
  if (status == TN_ERR_LIMIT)
    for (const std::string& text : edit.get()->refused()) diagnostics.error("M240", path, text);
  if (status != TN_OK || said.has_errors()) {
    if (!said.has_errors()) {
      diagnostics.error("M240", path,
                        "frontend '" + string(frontend.record->id) + "' cannot read it (status " +
                            std::to_string(status) + ") and did not say why");
    }
    diagnostics.throw_if_errors(exit_bad_input);
  }
  if (!edit.commit(diagnostics)) {
    if (!diagnostics.has_errors()) diagnostics.error("M240", path, "its graph is not whole");
    diagnostics.throw_if_errors(exit_bad_input);
  }
  return graph;
}

void apply_shapes(Graph& graph, const std::vector<ShapeOverride>& shapes, Diagnostics& diagnostics) {
  const Region& main = graph.region(Graph::main_region);
  std::vector<std::string> known;
  for (const tn_value input : main.inputs) known.emplace_back(graph.name(input));
  for (const ShapeOverride& shape : shapes) {
    const auto found = std::find(known.begin(), known.end(), shape.input);
    if (found == known.end()) {
      diagnostics.error("M241", shape.where,
                        "the model has no input '" + shape.input + "'" + did_you_mean(shape.input, known) +
                            "; its inputs: " + join(known, ", "));
      continue;
    }
    const tn_value input = main.inputs[static_cast<size_t>(found - known.begin())];
    tn_type type = graph.type(input);
    if (type.kind != TN_KIND_TENSOR) {
      diagnostics.error("M241", shape.where,
                        "input '" + shape.input + "' is no tensor; it has no shape to set");
      continue;
    }
    if (type.rank >= 0 && static_cast<size_t>(type.rank) != shape.dims.size()) {
      diagnostics.error("M241", shape.where,
                        "input '" + shape.input + "' has rank " + std::to_string(type.rank) + "; " +
                            std::to_string(shape.dims.size()) + " dimensions are given");
      continue;
    }
    std::vector<tn_dim> dims;
    bool fits = true;
    for (size_t i = 0; i < shape.dims.size(); ++i) {
      const ShapeDim& dim = shape.dims[i];
      const tn_dim own = type.rank >= 0 ? type.dims[i] : -1;
      if (own >= 0 && dim.number && *dim.number != own) {
        diagnostics.error("M241", shape.where,
                          "dimension " + std::to_string(i) + " of input '" + shape.input + "' is " +
                              std::to_string(own) + " in the model; " + std::to_string(*dim.number) +
                              " cannot be given: only dimensions that the model leaves open can be set");
        fits = false;
      }
      if (dim.number) {
        dims.push_back(*dim.number);
      } else if (dim.name.empty() && dim.min == 0 && dim.max == INT64_MAX && type.rank >= 0) {
        dims.push_back(own);  // -1: as the model has it
      } else if (dim.name.empty()) {
        dims.push_back(graph.symbols().fresh(shape.input + "_" + std::to_string(i), dim.min, dim.max));
      } else {
        const tn_dim symbol = graph.symbols().named(dim.name);
        if (dim.min != 0 || dim.max != INT64_MAX) graph.symbols().set_range(symbol, dim.min, dim.max);
        dims.push_back(symbol);
      }
    }
    if (!fits) continue;
    type.rank = static_cast<int32_t>(dims.size());
    type.dims = dims.data();
    graph.redeclare(input, type);
  }
}

namespace {

struct Pending {
  tn_node node;
  std::string text;  // why it could not be upgraded so far
};

bool is_old(const Graph& graph, const Registries& registries, tn_node id, const OpEntry*& entry) {
  const Node& node = graph.node(id);
  if (!node.alive) return false;
  entry = registries.find(node.op);
  return entry != nullptr && node.op_version < entry->def->since_version;
}

// One round over `nodes` and what their upgrades make. Nodes that must wait for types stay in the list.
std::vector<Pending> upgrade_round(Graph& graph, const Registries& registries, std::vector<tn_node> nodes,
                                   bool infer, Diagnostics& diagnostics) {
  std::vector<Pending> waiting;
  Transaction edit(graph, "upgrade", infer ? 0 : TN_EDIT_NO_INFER);
  uint32_t next_new = graph.node_bound();
  for (size_t i = 0;; ++i) {
    if (i == nodes.size()) {
      for (; next_new < graph.node_bound(); ++next_new) nodes.push_back(next_new);
      if (i == nodes.size()) break;
    }
    const tn_node id = nodes[i];
    const OpEntry* entry = nullptr;
    if (!is_old(graph, registries, id, entry)) continue;
    const tn_op_def& def = *entry->def;
    const int32_t version = graph.node(id).op_version;
    const std::string place = node_place(graph, id);
    if (version < def.first_version) {
      diagnostics.error("M242", place,
                        "operator " + std::string(graph.op_name(id)) + " exists since version " +
                            std::to_string(def.first_version) + "; the model uses version " +
                            std::to_string(version));
      continue;
    }
    if (def.upgrade != nullptr) {
      Diagnostics said;
      const tn_status status =
          def.upgrade(entry->instance, graph_api(), edit_api(), &graph, edit.get(), id, said.abi());
      if (status == TN_DECLINED || status == TN_ERR_UNSUPPORTED) {
        waiting.push_back(
            {id, said.empty() ? std::string("its plugin gives no reason") : said.all().front().text});
        continue;
      }
      if (status != TN_OK) {
        diagnostics.error("M243", place,
                          "cannot be brought from version " + std::to_string(version) + " to " +
                              std::to_string(def.since_version) + ": " +
                              (said.empty() ? "status " + std::to_string(status) : said.all().front().text));
        continue;
      }
    }
    // Without an upgrade function, and where it changed nothing, the node's form means the same in both
    // versions.
    const OpEntry* still = nullptr;
    if (graph.node(id).alive && graph.node(id).op_version == version && is_old(graph, registries, id, still))
      edit_api()->set_version(edit.get(), id, def.since_version);
  }
  if (diagnostics.has_errors()) return waiting;  // the transaction is undone; the error stops everything
  edit.commit(diagnostics);
  return waiting;
}

}  // namespace

void upgrade_and_infer(Graph& graph, const Registries& registries, Diagnostics& diagnostics) {
  std::vector<tn_node> old;
  for (tn_region region = 0; region < graph.region_bound(); ++region) {
    if (!graph.region(region).alive) continue;
    const OpEntry* entry = nullptr;
    for (tn_node id = graph.first_node(region); id != TN_NONE; id = graph.next_node(id)) {
      if (is_old(graph, registries, id, entry)) old.push_back(id);
    }
  }
  std::vector<Pending> waiting;
  if (!old.empty()) {
    waiting = upgrade_round(graph, registries, std::move(old), false, diagnostics);
    diagnostics.throw_if_errors(exit_bad_input);
  }
  infer_graph(graph, diagnostics);
  diagnostics.throw_if_errors(exit_bad_input);
  // Those whose upgrade needs ranks or types: each round knows at least the types behind one more of them.
  while (!waiting.empty()) {
    std::vector<tn_node> nodes;
    for (const Pending& pending : waiting) nodes.push_back(pending.node);
    const size_t before = waiting.size();
    waiting = upgrade_round(graph, registries, std::move(nodes), false, diagnostics);
    diagnostics.throw_if_errors(exit_bad_input);
    if (waiting.size() >= before) {
      for (const Pending& pending : waiting) {
        const OpEntry* entry = registries.find(graph.node(pending.node).op);
        diagnostics.error(
            "M243", node_place(graph, pending.node),
            "cannot be brought from version " + std::to_string(graph.node(pending.node).op_version) + " to " +
                std::to_string(entry == nullptr ? 0 : entry->def->since_version) + ": " + pending.text);
      }
      diagnostics.throw_if_errors(exit_bad_input);
    }
    infer_graph(graph, diagnostics);
    diagnostics.throw_if_errors(exit_bad_input);
  }
}

}  // namespace tenon
