// Readers of models: a mapped file, the graph that is built from it, and the builder of records.
#pragma once
#include "edit.hpp"
#include "service.hpp"
#include "tenon/abi/files.h"
#include "tenon/abi/frontend.h"

namespace tenon::sdk {

/// A file mapped by the host, read-only.
class File {
 public:
  File(const tn_host* host, std::string_view path) : api_(required_service<tn_files_api>(host, TN_FILES_ID)) {
    DiagBuffer said;
    const tn_status status = api_->open(str(path), said.raw(), &file_);
    check(status, ("opening " + std::string(path)).c_str(), &said);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { api_->release(file_); }
  std::string_view text() const noexcept {
    return {reinterpret_cast<const char*>(api_->data(file_)), static_cast<size_t>(api_->size_bytes(file_))};
  }
  Span<const uint8_t> bytes() const noexcept {
    return {api_->data(file_), static_cast<size_t>(api_->size_bytes(file_))};
  }
  tn_file* raw() const noexcept { return file_; }

 private:
  const tn_files_api* api_;
  tn_file* file_ = nullptr;
};

/// The empty graph that a frontend fills. The host commits it when `load` returns.
class ModelBuilder : public Editor {
 public:
  ModelBuilder(const tn_host* host, tn_graph* graph, tn_edit* edit)
      : Editor(required_service<tn_graph_api>(host, TN_GRAPH_ID),
               required_service<tn_edit_api>(host, TN_GRAPH_EDIT_ID), graph, edit),
        symbols_(required_service<tn_symbols_api>(host, TN_SYMBOLS_ID)),
        host_(host) {}
  const tn_host* host() const noexcept { return host_; }
  /// The version of a domain's operators that nodes without one of their own have; "" is ai.onnx.
  void opset(std::string_view domain, int32_t version) {
    check(api_->set_opset(edit_, str(domain), version), "setting an opset");
  }
  /// A dimension that is known by its name only, the same one each time.
  tn_dim named_dim(std::string_view name) { return symbols_->named(view_.raw(), str(name)); }
  tn_value input(std::string_view name, tn_dtype dtype, const std::vector<tn_dim>& dims) {
    tn_type type{};
    type.kind = TN_KIND_TENSOR;
    type.dtype = dtype;
    type.rank = static_cast<int32_t>(dims.size());
    type.dims = dims.data();
    return region_input(view_.main(), name, type);
  }
  /// One node of one result.
  tn_value node(std::string_view op, std::vector<tn_value> inputs, std::vector<AttrValue> attrs = {},
                std::string_view name = {}) {
    NodeSpec spec;
    spec.op = op;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.name = name;
    spec.region = view_.main();
    return create(spec).output(0);
  }
  /// The model's results, all at once, in their order.
  void outputs(Span<const tn_value> values, Span<const std::string> names) {
    region_outputs(view_.main(), values);
    for (uint32_t i = 0; i < names.size(); ++i)
      check(api_->region_output_name(edit_, view_.main(), i, str(names[i])), "naming an output");
  }

 private:
  const tn_symbols_api* symbols_;
  const tn_host* host_;
};

/// A frontend's record. Lives as long as the plugin.
class FrontendBuilder {
 public:
  /// Texts must be literals or outlive the plugin.
  FrontendBuilder(const char* id, const char* summary) {
    r_.size = sizeof r_;
    r_.id = str(id);
    r_.summary = str(summary);
  }
  FrontendBuilder(const FrontendBuilder&) = delete;
  FrontendBuilder& operator=(const FrontendBuilder&) = delete;
  FrontendBuilder& suffix(const char* s) {
    suffixes_.push_back(str(s));
    return *this;
  }
  /// 0..100: how sure the file is ours. `path` is its name, `head` its first bytes, at most 4096. [any]
  template <int (*F)(std::string_view path, std::string_view head)>
  FrontendBuilder& probe() {
    r_.probe = [](void*, tn_str path, const uint8_t* bytes, uint64_t count) noexcept -> int {
      try {
        return F(view(path), {reinterpret_cast<const char*>(bytes), static_cast<size_t>(count)});
      } catch (...) {
        return 0;
      }
    };
    return *this;
  }
  /// Fills the model; throws Failure where the file is wrong, with the place in it. [main]
  template <void (*F)(ModelBuilder& model, const File& file)>
  FrontendBuilder& load() {
    r_.load = [](void*, const tn_host* host, tn_str path, tn_graph* graph, tn_edit* edit,
                 const tn_diag* diag) noexcept {
      return guarded(diag, [&] {
        const File file(host, view(path));
        ModelBuilder model(host, graph, edit);
        F(model, file);
      });
    };
    return *this;
  }
  const tn_frontend_record* record() {
    r_.suffixes = suffixes_.data();
    r_.suffix_count = static_cast<uint32_t>(suffixes_.size());
    return &r_;
  }

 private:
  tn_frontend_record r_{};
  std::vector<tn_str> suffixes_;
};

}  // namespace tenon::sdk
