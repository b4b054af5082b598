#include "onnx_exporter.hpp"

#include <algorithm>
#include <memory>

#include "export_model.hpp"
#include "onnx_fields.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tensor_writer.hpp"
#include "wire_writer.hpp"

namespace tenon::onnx {
namespace {

using sdk::Failure;

/// protobuf readers take messages below 2 GiB; what is larger has its weights in a file of their own.
constexpr uint64_t largest_message_bytes = (uint64_t{1} << 31) - (uint64_t{1} << 20);
/// In that file; smaller tensors stay in the model.
constexpr uint64_t smallest_external_bytes = 1024, external_alignment = 4096;

/// One file being written; dropped unless kept.
class Output {
 public:
  Output(const tn_files_api* files, std::string path) : files_(files), path_(std::move(path)) {
    sdk::DiagBuffer said;
    const tn_status s = files_->create(sdk::str(path_), said.raw(), &writer_);
    if (s != TN_OK) throw Failure(s, "the file cannot be written: " + said.text(), path_);
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() {
    if (writer_) (void)files_->close(writer_, 0, nullptr);
  }
  void write(const void* data, uint64_t bytes) {
    if (!bytes) return;
    const tn_status s = files_->write(writer_, data, bytes);
    if (s != TN_OK) throw Failure(s, "writing failed; is the disk full?", path_);
    written_ += bytes;
  }
  void write(const std::string& bytes) { write(bytes.data(), bytes.size()); }
  uint64_t written() const noexcept { return written_; }
  void keep() {
    sdk::DiagBuffer said;
    const tn_status s = files_->close(std::exchange(writer_, nullptr), 1, said.raw());
    if (s != TN_OK) throw Failure(s, "the file cannot be finished: " + said.text(), path_);
  }

 private:
  const tn_files_api* files_;
  std::string path_;
  tn_writer* writer_ = nullptr;
  uint64_t written_ = 0;
};

uint64_t varint_bytes(uint64_t v) {
  uint64_t n = 1;
  for (; v >= 0x80; v >>= 7) ++n;
  return n;
}

/// Everything of the model but its graph.
std::string model_head(const ExportModel& m) {
  const sdk::GraphView& g = m.graph();
  const auto metadata = [&](const std::string& key) {
    return sdk::view(g.api()->metadata(g.raw(), sdk::str(key)));
  };
  std::string out;
  put_int(out, model_field::ir_version, m.ir_version());
  put_bytes(out, model_field::producer_name, "tenon");
  put_bytes(out, model_field::producer_version, TENON_PLUGIN_VERSION);
  if (!metadata("model_domain").empty()) put_bytes(out, model_field::domain, metadata("model_domain"));
  if (!metadata("model_version").empty())
    put_int(out, model_field::model_version,
            std::strtoll(sdk::text(sdk::str(metadata("model_version"))).c_str(), nullptr, 10));
  if (!metadata("doc_string").empty()) put_bytes(out, model_field::doc_string, metadata("doc_string"));
  const auto put_opset = [&](std::string_view domain, int32_t version) {
    std::string entry;
    put_bytes(entry, opset_field::domain, domain);
    put_int(entry, opset_field::version, version);
    put_bytes(out, model_field::opset_import, entry);
  };
  put_opset("", m.opset);
  std::vector<std::pair<std::string, int32_t>> domains(m.domains.begin(), m.domains.end());
  std::sort(domains.begin(), domains.end());
  for (const auto& [domain, version] : domains) put_opset(domain, version);
  const std::string keys(metadata("onnx.property_keys"));
  for (size_t from = 0; from < keys.size();) {
    const size_t to = std::min(keys.find('\n', from), keys.size());
    const std::string key = keys.substr(from, to - from);
    std::string entry;
    put_bytes(entry, entry_field::key, key);
    put_bytes(entry, entry_field::value, metadata("onnx.property." + key));
    put_bytes(out, model_field::metadata_props, entry);
    from = to + 1;
  }
  return out += m.functions;
}

struct Weight {
  tn_tensor tensor;
  std::string head;
  bool external;
  uint64_t message_bytes() const { return head.size() + (has_tail(tensor, external) ? tensor.bytes : 0); }
};

std::string file_name(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? path : path.substr(slash + 1);
}

/// Writes the external data file when there is one, and returns the initializers.
std::vector<Weight> place_weights(const ExportModel& m, const tn_files_api* files, const std::string& path,
                                  bool external) {
  std::vector<Weight> weights;
  std::unique_ptr<Output> data;
  const std::string data_path = path + ".data", data_name = file_name(data_path);
  static const std::string zeros(external_alignment, '\0');
  for (const auto& i : m.initializers) {
    const auto tensor = m.graph().constant(i.value);
    if (!tensor) throw Failure(TN_ERR_INTERNAL, "constant '" + i.name + "' has no bytes");
    const tn_tensor& t = tensor->raw();
    if (!external || t.dtype == TN_STRING || t.bytes < smallest_external_bytes) {
      weights.push_back({t, tensor_head(i.name, t), false});
      continue;
    }
    if (!data) data = std::make_unique<Output>(files, data_path);
    data->write(zeros.data(),
                (external_alignment - data->written() % external_alignment) % external_alignment);
    const ExternalPlace place{data_name, data->written()};
    data->write(t.data, t.bytes);
    weights.push_back({t, tensor_head(i.name, t, &place), true});
  }
  if (data) data->keep();
  return weights;
}

void write_model(ExportModel& m, const tn_files_api* files, const std::string& path, bool external) {
  const std::string head = model_head(m);
  uint64_t total = head.size() + m.graph_nodes.size() + m.graph_values.size();
  for (const auto& i : m.initializers)
    if (const auto t = m.graph().constant(i.value)) total += t->bytes() + 128 + i.name.size();
  const auto weights = place_weights(m, files, path, external || total > largest_message_bytes);
  uint64_t graph_bytes = m.graph_nodes.size() + m.graph_values.size();
  for (const Weight& w : weights) graph_bytes += 1 + varint_bytes(w.message_bytes()) + w.message_bytes();
  if (head.size() + graph_bytes > largest_message_bytes)
    throw Failure(TN_ERR_LIMIT,
                  "the model without its weights is larger than 2 GiB, which no ONNX reader takes", path);
  Output out(files, path);
  std::string small = head;
  put_length(small, model_field::graph, graph_bytes);
  out.write(small);
  out.write(m.graph_nodes);
  for (const Weight& w : weights) {
    small.clear();
    put_length(small, graph_field::initializer, w.message_bytes());
    small += w.head;
    out.write(small);
    if (has_tail(w.tensor, w.external)) out.write(w.tensor.data, w.tensor.bytes);
  }
  out.write(m.graph_values);
  out.keep();
}

const tn_option_def* option_table() {
  static const tn_option_def* table = [] {
    static tn_option_def t[2]{};
    t[0].name = sdk::str("opset");
    t[0].kind = TN_ATTR_INT;
    t[0].min = 0;
    t[0].max = newest_opset;
    t[0].doc = sdk::str(
        "operator set of ai.onnx to write, 7 to 28; 0: the lowest from 13 on that holds the operators as "
        "they are");
    t[1].name = sdk::str("external");
    t[1].kind = TN_ATTR_INT;
    t[1].is_bool = 1;
    t[1].min = 0;
    t[1].max = 1;
    t[1].doc = sdk::str("weights go to a file of their own, MODEL.data; models over 2 GiB do so in any case");
    return t;
  }();
  return table;
}

tn_status write(void* instance, const tn_host*, tn_graph* graph, tn_str path, const tn_attr* options,
                uint32_t option_count, const tn_diag* diag) {
  return sdk::guarded(diag, [&] {
    const auto& s = *static_cast<const sdk::Services*>(instance);
    if (!s.files || !s.graph || !s.edit || !s.symbols)
      throw Failure(TN_ERR_UNSUPPORTED,
                    "this host lacks a service that the ONNX exporter needs: files, graph, graph-edit and "
                    "symbols are all required");
    ExportOptions o;
    if (option_count > 0) o.opset = static_cast<int32_t>(options[0].u.i);
    if (option_count > 1) o.external = options[1].u.i != 0;
    if (o.opset != 0 && (o.opset < oldest_written || o.opset > newest_opset))
      throw Failure(
          TN_ERR_INVALID,
          sdk::format("option opset is %d, expected %d to %d, or 0 for the lowest that holds the operators",
                      o.opset, oldest_written, newest_opset),
          sdk::text(path));
    try {
      ExportModel m(s, graph, o);
      m.prepare();
      write_model(m, s.files, sdk::text(path), o.external);
    } catch (const Failure& e) {
      throw Failure(e.status(), e.what(), e.where().empty() ? sdk::text(path) : e.where(), e.code());
    }
  });
}

}  // namespace

const tn_exporter_record* exporter_record() noexcept {
  static constexpr tn_str suffixes[] = {{".onnx", 5}};
  static const tn_exporter_record record = [] {
    tn_exporter_record r{};
    r.size = sizeof r;
    r.id = sdk::str("onnx");
    r.summary = sdk::str("ONNX models; fused operators become local functions, so that any tool runs them");
    r.suffixes = suffixes;
    r.suffix_count = 1;
    r.options = option_table();
    r.option_count = 2;
    r.write = write;
    return r;
  }();
  return &record;
}

}  // namespace tenon::onnx
