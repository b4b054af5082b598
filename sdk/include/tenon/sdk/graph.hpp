// Reading a graph: thin views over tenon.graph. Everything is borrowed from the graph, valid until its next
// edit.
#pragma once
#include <optional>

#include "tenon/abi/graph.h"
#include "tenon/abi/symbols.h"
#include "tensor.hpp"

namespace tenon::sdk {

/// One attribute by name; NULL when the node has none.
inline const tn_attr* find_attr(const tn_node_info& n, tn_sym name) noexcept {
  const char* p = reinterpret_cast<const char*>(n.attrs);
  for (uint32_t i = 0; i < n.attr_count; ++i, p += n.attr_stride) {
    const auto* a = reinterpret_cast<const tn_attr*>(p);
    if (a->name == name) return a;
  }
  return nullptr;
}

/// Attributes of a node, by text. For hot loops over whole graphs resolve symbols once and use find_attr.
class Attributes {
 public:
  Attributes(const tn_graph_api* api, const tn_node_info& node) noexcept : api_(api), node_(&node) {}
  const tn_attr* find(std::string_view name) const { return find_attr(*node_, api_->symbol(str(name))); }
  bool has(std::string_view name) const { return find(name) != nullptr; }
  int64_t get_int(std::string_view name, int64_t otherwise) const {
    const auto* a = typed(name, TN_ATTR_INT, "an integer");
    return a ? a->u.i : otherwise;
  }
  double get_float(std::string_view name, double otherwise) const {
    const auto* a = typed(name, TN_ATTR_FLOAT, "a float");
    return a ? a->u.f : otherwise;
  }
  std::string_view get_string(std::string_view name, std::string_view otherwise) const {
    const auto* a = typed(name, TN_ATTR_STRING, "a string");
    return a ? sdk::view(a->u.s) : otherwise;
  }
  Span<const int64_t> get_ints(std::string_view name) const {
    const auto* a = typed(name, TN_ATTR_INTS, "a list of integers");
    return a ? Span<const int64_t>(a->u.ints, a->count) : Span<const int64_t>();
  }
  Span<const double> get_floats(std::string_view name) const {
    const auto* a = typed(name, TN_ATTR_FLOATS, "a list of floats");
    return a ? Span<const double>(a->u.floats, a->count) : Span<const double>();
  }
  Span<const tn_str> get_strings(std::string_view name) const {
    const auto* a = typed(name, TN_ATTR_STRINGS, "a list of strings");
    return a ? Span<const tn_str>(a->u.strings, a->count) : Span<const tn_str>();
  }
  const tn_tensor* get_tensor(std::string_view name) const {
    const auto* a = typed(name, TN_ATTR_TENSOR, "a tensor");
    return a ? a->u.tensor : nullptr;
  }

 private:
  const tn_attr* typed(std::string_view name, uint32_t kind, const char* wanted) const {
    const auto* a = find(name);
    if (a && a->kind != kind) fail("attribute '" + std::string(name) + "' must be " + wanted);
    return a;
  }
  const tn_graph_api* api_;
  const tn_node_info* node_;
};

class Node {
 public:
  Node(const tn_graph_api* api, tn_node id, const tn_node_info& info) noexcept
      : api_(api), id_(id), info_(info) {}
  tn_node id() const noexcept { return id_; }
  bool alive() const noexcept { return info_.alive != 0; }
  tn_sym op() const noexcept { return info_.op; }
  std::string_view op_name() const { return sdk::view(api_->symbol_text(info_.op)); }
  std::string_view name() const noexcept { return sdk::view(info_.name); }
  int32_t version() const noexcept { return info_.op_version; }
  tn_region region() const noexcept { return info_.region; }
  Span<const tn_value> inputs() const noexcept { return {info_.inputs, info_.input_count}; }
  Span<const tn_value> outputs() const noexcept { return {info_.outputs, info_.output_count}; }
  Span<const tn_region> regions() const noexcept { return {info_.regions, info_.region_count}; }
  /// TN_NONE when omitted or past the end.
  tn_value input(uint32_t i) const noexcept { return i < info_.input_count ? info_.inputs[i] : TN_NONE; }
  tn_value output(uint32_t i) const noexcept { return i < info_.output_count ? info_.outputs[i] : TN_NONE; }
  Attributes attrs() const noexcept { return Attributes(api_, info_); }
  const tn_node_info& raw() const noexcept { return info_; }
  /// For messages: the node's name, or its operator when it has none.
  std::string label() const {
    return info_.name.size ? std::string(name()) : "(unnamed " + std::string(op_name()) + ")";
  }

 private:
  const tn_graph_api* api_;
  tn_node id_;
  tn_node_info info_;
};

class GraphView {
 public:
  GraphView(const tn_graph_api* api, tn_graph* graph) noexcept : api_(api), graph_(graph) {}
  tn_graph* raw() const noexcept { return graph_; }
  const tn_graph_api* api() const noexcept { return api_; }
  tn_region main() const noexcept { return api_->main_region; }
  tn_sym symbol(std::string_view s) const { return api_->symbol(str(s)); }
  std::string_view symbol_text(tn_sym s) const { return sdk::view(api_->symbol_text(s)); }
  Node node(tn_node id) const {
    tn_node_info i{};
    i.size = sizeof i;
    check(api_->node(graph_, id, &i), "reading a node");
    return Node(api_, id, i);
  }
  tn_value_info value(tn_value id) const {
    tn_value_info v{};
    v.size = sizeof v;
    check(api_->value(graph_, id, &v), "reading a value");
    return v;
  }
  tn_region_info region(tn_region id) const {
    tn_region_info r{};
    r.size = sizeof r;
    check(api_->region(graph_, id, &r), "reading a region");
    return r;
  }
  /// Live nodes in topological order.
  Span<const tn_node> nodes(tn_region region) const {
    const tn_node* ids = nullptr;
    uint32_t n = 0;
    check(api_->nodes(graph_, region, &ids, &n), "listing nodes");
    return {ids, n};
  }
  Span<const tn_use> users(tn_value v) const {
    const tn_use* u = nullptr;
    uint32_t n = 0;
    check(api_->users(graph_, v, &u, &n), "listing users");
    return {u, n};
  }
  /// The node that yields v; TN_NONE for inputs, constants and omitted operands.
  tn_node producer(tn_value v) const {
    if (v == TN_NONE) return TN_NONE;
    const auto i = value(v);
    return i.kind == TN_VALUE_RESULT ? i.producer : TN_NONE;
  }
  bool is_constant(tn_value v) const { return v != TN_NONE && value(v).kind == TN_VALUE_CONSTANT; }
  std::optional<TensorView> constant(tn_value v) const {
    tn_tensor t;
    if (v == TN_NONE || api_->constant(graph_, v, &t) != TN_OK) return std::nullopt;
    return TensorView(t);
  }
  /// The first element of a constant whose elements are all equal, as a number.
  std::optional<double> uniform_number(tn_value v) const {
    const void* e = nullptr;
    if (v == TN_NONE || !api_->uniform(graph_, v, &e)) return std::nullopt;
    std::optional<double> r;
    visit_number(value(v).type.dtype, [&](auto x) {
      std::memcpy(&x, e, sizeof x);
      r = static_cast<double>(x);
    });
    return r;
  }
  Span<const tn_dim> known_elements(tn_value v, bool* known) const {
    const tn_dim* e = nullptr;
    uint32_t n = 0;
    *known = v != TN_NONE && api_->known_elements(graph_, v, &e, &n) == TN_OK;
    return *known ? Span<const tn_dim>(e, n) : Span<const tn_dim>();
  }
  uint32_t node_bound() const { return api_->node_bound(graph_); }
  uint32_t value_bound() const { return api_->value_bound(graph_); }
  uint32_t region_bound() const { return api_->region_bound(graph_); }

 private:
  const tn_graph_api* api_;
  tn_graph* graph_;
};

inline Span<const tn_dim> dims_of(const tn_type& t) noexcept {
  return {t.dims, t.rank > 0 ? static_cast<size_t>(t.rank) : 0};
}
inline tn_type tensor_type(tn_dtype dtype, Span<const tn_dim> dims) noexcept {
  return {TN_KIND_TENSOR, dtype, static_cast<int32_t>(dims.size()), 0, dims.data()};
}
inline tn_type unranked_type(tn_dtype dtype) noexcept { return {TN_KIND_TENSOR, dtype, -1, 0, nullptr}; }

}  // namespace tenon::sdk
