#include "onnx_frontend.hpp"

#include "graph_builder.hpp"
#include "onnx_fields.hpp"
#include "tenon/sdk/plugin.hpp"

namespace tenon::onnx {
namespace {

using sdk::Failure;

bool ends_with(std::string_view s, std::string_view end) {
  return s.size() >= end.size() && s.substr(s.size() - end.size()) == end;
}

/// A ModelProto begins with its IR version in practice: every writer puts field 1 first.
bool looks_like_model(const uint8_t* bytes, uint64_t count) {
  return count >= 4 && bytes[0] == 0x08 && bytes[1] >= 1 && bytes[1] < 0x40 && (bytes[2] & 7u) <= 2 &&
         bytes[2] != 0;
}

int probe(void*, tn_str path, const uint8_t* bytes, uint64_t count) {
  const bool named = ends_with(sdk::view(path), ".onnx");
  if (looks_like_model(bytes, count)) return named ? 95 : 40;
  return named ? 60 : 0;  // a damaged .onnx file is ours to complain about
}

struct OpenFile {
  const tn_files_api* files;
  tn_file* file = nullptr;
  ~OpenFile() {
    if (file) files->release(file);
  }
};

void set_metadata(const BuilderServices& s, const ModelMessage& model) {
  const auto set = [&](std::string_view key, std::string_view value) {
    if (!value.empty())
      sdk::check(s.edit_api->set_metadata(s.edit, sdk::str(key), sdk::str(value)), "setting metadata");
  };
  set("graph_name", model.graph->name);
  set("producer_name", model.producer_name);
  set("producer_version", model.producer_version);
  set("model_domain", model.domain);
  set("doc_string", model.doc_string);
  if (model.model_version) set("model_version", std::to_string(model.model_version));
  // A graph's metadata cannot be listed, so the exporter finds the model's own keys here.
  std::string keys;
  for (const auto& [key, value] : model.metadata) {
    set("onnx.property." + std::string(key), value);
    keys.append(keys.empty() ? "" : "\n").append(key);
  }
  set("onnx.property_keys", keys);
}

void load_model(const sdk::Services& services, tn_str path, tn_graph* graph, tn_edit* edit,
                const tn_diag* diag) {
  if (!services.files || !services.graph || !services.edit || !services.symbols)
    throw Failure(TN_ERR_UNSUPPORTED,
                  "this host lacks a service that the ONNX frontend needs: files, graph, graph-edit and "
                  "symbols are all required");
  OpenFile opened{services.files};
  sdk::DiagBuffer said;
  const tn_status status = services.files->open(path, said.raw(), &opened.file);
  if (status != TN_OK)
    throw Failure(status, said.text().empty() ? "the model cannot be opened; check its path" : said.text(),
                  sdk::text(path));
  const BuilderServices s{services.host,
                          services.graph,
                          services.edit,
                          services.symbols,
                          services.registry,
                          services.files,
                          services.get<tn_limits_api>(TN_LIMITS_ID),
                          graph,
                          edit,
                          opened.file,
                          sdk::Diag(diag)};
  try {
    const uint64_t size = services.files->size_bytes(opened.file);
    if (size == 0) throw Failure(TN_ERR_INVALID, "the file is empty; expected an ONNX model");
    ModelMessage model =
        decode_model({reinterpret_cast<const char*>(services.files->data(opened.file)), size});
    if (model.ir_version < 1)
      throw Failure(
          TN_ERR_INVALID,
          "the model has no IR version; this is no ONNX model, or it is damaged: export or fetch it again");
    // Models older than IR version 3 name no operator sets: there was one.
    if (model.ir_version < 3 && model.opsets.empty()) model.opsets.emplace(std::string_view(), 1);
    for (const auto& [domain, version] : model.opsets)
      if (version > 0 && version <= INT32_MAX)
        sdk::check(services.edit->set_opset(edit, sdk::str(domain), static_cast<int32_t>(version)),
                   "setting an opset");
    set_metadata(s, model);
    GraphBuilder(model, s).build();
  } catch (const Failure& e) {  // every message names the file
    throw Failure(e.status(), e.what(), sdk::text(path) + (e.where().empty() ? "" : ": " + e.where()),
                  e.code());
  }
}

tn_status load(void* instance, const tn_host*, tn_str path, tn_graph* graph, tn_edit* edit,
               const tn_diag* diag) {
  return sdk::guarded(
      diag, [&] { load_model(*static_cast<const sdk::Services*>(instance), path, graph, edit, diag); });
}

}  // namespace

const tn_frontend_record* frontend_record() noexcept {
  static constexpr tn_str suffixes[] = {{".onnx", 5}};
  static const tn_frontend_record record = [] {
    tn_frontend_record r{};
    r.size = sizeof r;
    r.id = sdk::str("onnx");
    r.summary = sdk::str("ONNX models, opsets 1 to 28; weights stay in the mapped file");
    r.suffixes = suffixes;
    r.suffix_count = 1;
    r.probe = probe;
    r.load = load;
    return r;
  }();
  return &record;
}

}  // namespace tenon::onnx
