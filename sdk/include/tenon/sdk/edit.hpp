// Changing a graph: a transaction that rolls back unless committed, and a builder for nodes.
#pragma once
#include "graph.hpp"
#include "tenon/abi/graph_edit.h"

namespace tenon::sdk {

/// An attribute value for a node to be made. Text and arrays are borrowed until the call that takes them.
struct AttrValue {
  std::string_view name;
  tn_attr a{};
  static AttrValue of(std::string_view n, int64_t v) {
    AttrValue r{n};
    r.a.kind = TN_ATTR_INT;
    r.a.u.i = v;
    return r;
  }
  static AttrValue of(std::string_view n, double v) {
    AttrValue r{n};
    r.a.kind = TN_ATTR_FLOAT;
    r.a.u.f = v;
    return r;
  }
  static AttrValue of(std::string_view n, std::string_view v) {
    AttrValue r{n};
    r.a.kind = TN_ATTR_STRING;
    r.a.u.s = str(v);
    return r;
  }
  static AttrValue of(std::string_view n, const char* v) { return of(n, std::string_view(v)); }
  static AttrValue of(std::string_view n, Span<const int64_t> v) {
    AttrValue r{n};
    r.a.kind = TN_ATTR_INTS;
    r.a.u.ints = v.data();
    r.a.count = v.size();
    return r;
  }
  static AttrValue of(std::string_view n, Span<const double> v) {
    AttrValue r{n};
    r.a.kind = TN_ATTR_FLOATS;
    r.a.u.floats = v.data();
    r.a.count = v.size();
    return r;
  }
  static AttrValue of(std::string_view n, const tn_tensor& v) {
    AttrValue r{n};
    r.a.kind = TN_ATTR_TENSOR;
    r.a.u.tensor = &v;
    return r;
  }
};

struct NodeSpec {
  std::string_view op;                // "Conv", "tenon::SDPA"
  std::vector<tn_value> inputs = {};  // TN_NONE: omitted
  uint32_t output_count = 1;
  std::vector<AttrValue> attrs = {};
  tn_region region = 0;
  tn_node before = TN_NONE;
  std::string_view name = {};
  std::vector<tn_node> origins = {};
  int32_t version = 0;
  std::vector<tn_attr> raw_attrs = {};  // copied as they are (of another node)
  std::vector<tn_str> output_names = {};
};

/// Edits within an open tn_edit. Does not own it.
class Editor {
 public:
  Editor(const tn_graph_api* graph_api, const tn_edit_api* api, tn_graph* graph, tn_edit* edit) noexcept
      : view_(graph_api, graph), api_(api), edit_(edit) {}
  const GraphView& graph() const noexcept { return view_; }
  tn_edit* raw() const noexcept { return edit_; }
  const tn_edit_api* api() const noexcept { return api_; }

  Node create(const NodeSpec& s) {
    std::vector<tn_attr> attrs = s.raw_attrs;
    for (const auto& v : s.attrs) {
      attrs.push_back(v.a);
      attrs.back().name = view_.symbol(v.name);
    }
    tn_node_desc d{};
    d.size = sizeof d;
    d.op = view_.symbol(s.op);
    d.op_version = s.version;
    d.region = s.region;
    d.before = s.before;
    d.name = str(s.name);
    d.inputs = s.inputs.data();
    d.input_count = static_cast<uint32_t>(s.inputs.size());
    d.attrs = attrs.data();
    d.attr_count = static_cast<uint32_t>(attrs.size());
    d.origins = s.origins.data();
    d.origin_count = static_cast<uint32_t>(s.origins.size());
    d.output_names = s.output_names.empty() ? nullptr : s.output_names.data();
    d.output_count = s.output_names.empty() ? s.output_count : static_cast<uint32_t>(s.output_names.size());
    tn_node n = TN_NONE;
    check(api_->create_node(edit_, &d, &n), ("creating a " + std::string(s.op) + " node").c_str());
    return view_.node(n);
  }
  tn_value constant(const tn_tensor& t, std::string_view name = {}) {
    tn_value v = TN_NONE;
    check(api_->constant_copy(edit_, str(name), &t, &v), "creating a constant");
    return v;
  }
  template <class T>
  tn_value constant(Span<const T> values, Span<const int64_t> dims, std::string_view name = {}) {
    return constant(tn_tensor{dtype_of<T>, static_cast<int32_t>(dims.size()), dims.data(),
                              const_cast<T*>(values.data()), values.size() * sizeof(T)},
                    name);
  }
  template <class T>
  tn_value vector(const std::vector<T>& values, std::string_view name = {}) {
    const int64_t n = static_cast<int64_t>(values.size());
    return constant<T>(values, Span<const int64_t>(&n, 1), name);
  }
  template <class T>
  tn_value scalar(T value, std::string_view name = {}) {
    return constant<T>(Span<const T>(&value, 1), {}, name);
  }
  /// Keeps the tensor's bytes alive instead of copying them.
  tn_value constant(OwnedTensor tensor, std::string_view name = {}) {
    auto* owned = new OwnedTensor(std::move(tensor));
    const tn_tensor t = owned->raw();
    tn_value v = TN_NONE;
    const tn_status s = api_->constant_adopt(
        edit_, str(name), &t, [](void* p) { delete static_cast<OwnedTensor*>(p); }, owned, &v);
    if (s != TN_OK) delete owned;
    check(s, "creating a constant");
    return v;
  }
  void replace_uses(tn_value from, tn_value to) {
    check(api_->replace_uses(edit_, from, to), "replacing uses");
  }
  void set_input(tn_node n, uint32_t i, tn_value v) {
    check(api_->set_input(edit_, n, i, v), "setting an operand");
  }
  void set_attr(tn_node n, AttrValue v) {
    v.a.name = view_.symbol(v.name);
    check(api_->set_attr(edit_, n, &v.a), "setting an attribute");
  }
  void remove_attr(tn_node n, std::string_view name) {
    check(api_->remove_attr(edit_, n, view_.symbol(name)), "removing an attribute");
  }
  void set_version(tn_node n, int32_t v) { check(api_->set_version(edit_, n, v), "setting a version"); }
  void erase(tn_node n) { check(api_->erase(edit_, n), "erasing a node"); }
  tn_region create_region(tn_node parent, std::string_view name) {
    tn_region r = TN_NONE;
    check(api_->create_region(edit_, parent, str(name), &r), "creating a region");
    return r;
  }
  tn_value region_input(tn_region r, std::string_view name, const tn_type& type) {
    tn_value v = TN_NONE;
    check(api_->region_input(edit_, r, str(name), &type, &v), "creating a region input");
    return v;
  }
  void region_outputs(tn_region r, Span<const tn_value> values) {
    check(api_->region_outputs(edit_, r, values.data(), static_cast<uint32_t>(values.size())),
          "setting region outputs");
  }
  void inline_region(tn_region from, Span<const tn_value> inputs, tn_node anchor) {
    check(api_->inline_region(edit_, from, inputs.data(), static_cast<uint32_t>(inputs.size()), anchor),
          "inlining a region");
  }
  tn_node clone(tn_node n, tn_region region, tn_node before, Span<const tn_value> inputs) {
    tn_node c = TN_NONE;
    check(api_->clone_node(edit_, n, region, before, inputs.data(), static_cast<uint32_t>(inputs.size()), &c),
          "cloning a node");
    return c;
  }
  void set_type(tn_value v, const tn_type& t) { check(api_->set_type(edit_, v, &t), "setting a type"); }

 protected:
  GraphView view_;
  const tn_edit_api* api_;
  tn_edit* edit_;
};

/// begin .. commit; rolls back when it goes out of scope before. `active()` is false when the limit of
/// applied rewrites was reached: nothing may be edited then.
class Transaction : public Editor {
 public:
  Transaction(const tn_graph_api* graph_api, const tn_edit_api* api, tn_graph* graph, std::string_view who,
              uint32_t flags = 0)
      : Editor(graph_api, api, graph, nullptr) {
    const tn_status s = api->begin(graph, str(who), flags, &edit_);
    if (s == TN_ERR_LIMIT)
      edit_ = nullptr;
    else
      check(s, "beginning an edit");
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction() {
    if (edit_) api_->rollback(edit_);
  }
  bool active() const noexcept { return edit_ != nullptr; }
  void rollback() {
    if (edit_) api_->rollback(std::exchange(edit_, nullptr));
  }
  /// False: the graph is as it was at begin; said() tells why.
  bool commit() {
    said_.clear();
    return api_->commit(std::exchange(edit_, nullptr), said_.raw()) == TN_OK;
  }
  const std::string& said() const noexcept { return said_.text(); }

 private:
  DiagBuffer said_;
};

}  // namespace tenon::sdk
