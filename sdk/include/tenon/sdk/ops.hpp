// Operator definitions: inference context and builder.
#pragma once
#include <deque>

#include "edit.hpp"
#include "tenon/abi/ops.h"

namespace tenon::sdk {

/// Inference of one node. Dimensions are tn_dim: numbers >= 0, or handles of expressions; combine them with
/// the functions here, never with C++ operators, unless both are known numbers.
class Infer {
 public:
  Infer(const tn_infer_api* api, tn_infer* infer) noexcept
      : api_(api), infer_(infer), node_(api->node(infer)) {}

  const tn_node_info& node() const noexcept { return *node_; }
  Attributes attrs() const noexcept { return Attributes(api_->graph_api, *node_); }
  std::string_view op_name() const { return sdk::view(api_->graph_api->symbol_text(node_->op)); }
  uint32_t input_count() const noexcept { return node_->input_count; }
  uint32_t output_count() const noexcept { return node_->output_count; }
  /// The result is wanted.
  bool has_output(uint32_t i) const noexcept {
    return i < node_->output_count && node_->outputs[i] != TN_NONE;
  }
  bool has_input(uint32_t i) const noexcept {
    return i < node_->input_count && api_->input_type(infer_, i) != nullptr;
  }
  /// Kind TN_KIND_NONE when omitted or unknown.
  tn_type type(uint32_t i) const noexcept {
    const tn_type* t = i < node_->input_count ? api_->input_type(infer_, i) : nullptr;
    return t ? *t : tn_type{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr};
  }
  tn_dtype dtype(uint32_t i) const noexcept { return type(i).dtype; }
  bool has_rank(uint32_t i) const noexcept { return type(i).kind == TN_KIND_TENSOR && type(i).rank >= 0; }
  int32_t rank(uint32_t i) const noexcept { return type(i).kind == TN_KIND_TENSOR ? type(i).rank : -1; }
  /// Dims of a ranked input (a copy).
  std::vector<tn_dim> dims(uint32_t i) const { return dims_of(type(i)).copy(); }

  /// Known contents of an integer input as dims.
  std::optional<std::vector<tn_dim>> elements(uint32_t i) const {
    const tn_dim* e = nullptr;
    uint32_t n = 0;
    if (i >= node_->input_count || !api_->input_elements(infer_, i, &e, &n)) return std::nullopt;
    return std::vector<tn_dim>(e, e + n);
  }
  /// The same, when all elements are known numbers.
  std::optional<Dims> integers(uint32_t i) const {
    const auto e = elements(i);
    if (!e) return std::nullopt;
    Dims r;
    for (tn_dim d : *e) {
      const auto v = number(d);
      if (!v) return std::nullopt;
      r.push_back(*v);
    }
    return r;
  }
  /// Bytes of a constant or already computed input.
  std::optional<TensorView> data(uint32_t i) const {
    tn_tensor t;
    if (i >= node_->input_count || !api_->input_data(infer_, i, &t)) return std::nullopt;
    return TensorView(t);
  }

  void set(uint32_t i, const tn_type& t) {
    if (has_output(i)) check(api_->set_output(infer_, i, &t), "setting a result's type");
  }
  void set(uint32_t i, tn_dtype dtype, Span<const tn_dim> dims) { set(i, tensor_type(dtype, dims)); }
  void set_unranked(uint32_t i, tn_dtype dtype) { set(i, unranked_type(dtype)); }
  void set_elements(uint32_t i, Span<const tn_dim> e) {
    if (has_output(i))
      check(api_->set_output_elements(infer_, i, e.data(), static_cast<uint32_t>(e.size())),
            "setting a result's elements");
  }
  /// A dim that is known only when the node has run.
  tn_dim data_dependent(uint32_t output, uint32_t axis, int64_t lo = 0, int64_t hi = TN_DIM_MAX) {
    return api_->data_dependent(infer_, output, axis, lo, hi);
  }
  /// A ranked result whose dims nobody knows yet.
  void set_unknown_dims(uint32_t i, tn_dtype dtype, uint32_t rank) {
    std::vector<tn_dim> d;
    for (uint32_t a = 0; a < rank; ++a) d.push_back(data_dependent(i, a));
    set(i, dtype, d);
  }

  // Arithmetic on dims.
  std::optional<int64_t> number(tn_dim d) const {
    if (d >= 0) return d;
    int64_t v = 0;
    if (api_->symbols->as_number(graph(), d, &v)) return v;
    return std::nullopt;
  }
  tn_dim make(int64_t v) { return v >= 0 ? v : api_->symbols->number(graph(), v); }
  tn_dim add(tn_dim a, tn_dim b) { return combine(TN_DIM_ADD, a, b); }
  tn_dim sub(tn_dim a, tn_dim b) { return combine(TN_DIM_SUB, a, b); }
  tn_dim mul(tn_dim a, tn_dim b) { return combine(TN_DIM_MUL, a, b); }
  tn_dim floordiv(tn_dim a, tn_dim b) { return combine(TN_DIM_FLOORDIV, a, b); }
  tn_dim ceildiv(tn_dim a, tn_dim b) { return combine(TN_DIM_CEILDIV, a, b); }
  tn_dim mod(tn_dim a, tn_dim b) { return combine(TN_DIM_MOD, a, b); }
  tn_dim min(tn_dim a, tn_dim b) { return combine(TN_DIM_MIN, a, b); }
  tn_dim max(tn_dim a, tn_dim b) { return combine(TN_DIM_MAX_OF, a, b); }
  tn_dim combine(tn_dim_op op, tn_dim a, tn_dim b) { return api_->symbols->combine(graph(), op, a, b); }
  tn_dim product(Span<const tn_dim> dims) {
    tn_dim p = 1;
    for (tn_dim d : dims) p = mul(p, d);
    return p;
  }
  tn_truth compare(tn_dim_relation r, tn_dim a, tn_dim b) const {
    return api_->symbols->compare(graph(), r, a, b);
  }
  bool equal(tn_dim a, tn_dim b) const { return a == b || compare(TN_DIM_EQ, a, b) == TN_YES; }
  bool differ(tn_dim a, tn_dim b) const { return a != b && compare(TN_DIM_EQ, a, b) == TN_NO; }
  std::string text(tn_dim d) const { return std::string(sdk::view(api_->symbols->text(graph(), d))); }
  std::string text(Span<const tn_dim> dims) const {
    std::string s = "[";
    for (size_t i = 0; i < dims.size(); ++i) s += (i ? "," : "") + text(dims[i]);
    return s + "]";
  }

  /// Numpy broadcasting of one axis: numbers must agree or be 1; an unknown against a number > 1 is that
  /// number.
  tn_dim broadcast_dim(tn_dim a, tn_dim b) {
    if (a == b || b == 1) return a;
    if (a == 1) return b;
    if (a >= 0 && b >= 0)
      fail("cannot broadcast: dimensions " + std::to_string(a) + " and " + std::to_string(b) +
           " differ and neither is 1");
    if (a >= 0 || b >= 0)
      return a >= 0 ? a : b;  // the unknown one is 1 or equal; a number of 0 or more than 1 wins
    if (equal(a, b)) return a;
    int64_t lo = 0, hi = 0;
    api_->symbols->range(graph(), a, &lo, &hi);
    if (lo > 1) return a;
    api_->symbols->range(graph(), b, &lo, &hi);
    if (lo > 1) return b;
    return max(a, b);
  }
  std::vector<tn_dim> broadcast(Span<const tn_dim> a, Span<const tn_dim> b) {
    const size_t n = a.size() > b.size() ? a.size() : b.size();
    std::vector<tn_dim> r(n);
    for (size_t i = 0; i < n; ++i) {
      const tn_dim x = i + a.size() >= n ? a[i + a.size() - n] : 1,
                   y = i + b.size() >= n ? b[i + b.size() - n] : 1;
      r[i] = broadcast_dim(x, y);
    }
    return r;
  }
  /// axis in [-rank, rank) made non-negative; Failure naming both otherwise.
  static int64_t axis(int64_t a, int64_t rank, const char* what = "axis") {
    if (a < -rank || a >= rank)
      sdk::fail(format("%s %lld is outside [%lld, %lld)", what, static_cast<long long>(a),
                       static_cast<long long>(-rank), static_cast<long long>(rank)));
    return a < 0 ? a + rank : a;
  }

  /// Types of the outputs of region r for these input types; valid until the next call.
  Span<const tn_type> region(uint32_t r, Span<const tn_type> inputs) {
    const tn_type* out = nullptr;
    uint32_t n = 0;
    const tn_status s =
        api_->infer_region(infer_, r, inputs.data(), static_cast<uint32_t>(inputs.size()), &out, &n);
    if (s != TN_OK) throw Failure(s, "its body could not be inferred");
    return {out, n};
  }
  std::optional<std::vector<tn_dim>> region_elements(uint32_t r, uint32_t i) const {
    const tn_dim* e = nullptr;
    uint32_t n = 0;
    if (!api_->region_elements(infer_, r, i, &e, &n)) return std::nullopt;
    return std::vector<tn_dim>(e, e + n);
  }
  tn_graph* graph() const { return api_->graph(infer_); }
  const tn_infer_api* api() const noexcept { return api_; }
  tn_infer* raw() const noexcept { return infer_; }

 private:
  const tn_infer_api* api_;
  tn_infer* infer_;
  const tn_node_info* node_;
};

/// Describes one operator. Text arguments must be literals or outlive the plugin.
class OpBuilder {
 public:
  OpBuilder(const char* domain, const char* name, int32_t first_version, int32_t since_version) {
    def_.size = sizeof def_;
    def_.domain = str(domain);
    def_.name = str(name);
    def_.first_version = first_version;
    def_.since_version = since_version;
  }
  OpBuilder(const OpBuilder&) = delete;
  OpBuilder& operator=(const OpBuilder&) = delete;
  OpBuilder& doc(const char* d) {
    def_.doc = str(d);
    return *this;
  }
  OpBuilder& flags(uint32_t f) {
    def_.flags |= f;
    return *this;
  }
  OpBuilder& alias(const char* a) {
    aliases_.push_back(str(a));
    return *this;
  }
  OpBuilder& input(const char* name, const char* type, uint32_t flags = 0) {
    inputs_.push_back({str(name), str(type), flags, 0});
    if (!(flags & (TN_PARAM_OPTIONAL | TN_PARAM_VARIADIC)))
      def_.min_inputs = static_cast<uint32_t>(inputs_.size());
    return *this;
  }
  OpBuilder& output(const char* name, const char* type, uint32_t flags = 0) {
    outputs_.push_back({str(name), str(type), flags, 0});
    if (!(flags & TN_PARAM_OPTIONAL)) def_.min_outputs = static_cast<uint32_t>(outputs_.size());
    return *this;
  }
  OpBuilder& min_inputs(uint32_t n) {
    def_.min_inputs = n;
    return *this;
  }
  OpBuilder& type_var(const char* name, std::initializer_list<tn_dtype> dtypes = {}, uint32_t kinds = 0) {
    dtypes_.emplace_back(dtypes);
    vars_.push_back({str(name), dtypes_.back().empty() ? nullptr : dtypes_.back().data(),
                     static_cast<uint32_t>(dtypes_.back().size()), kinds});
    return *this;
  }
  OpBuilder& type_var(const char* name, const std::vector<tn_dtype>& dtypes, uint32_t kinds = 0) {
    dtypes_.push_back(dtypes);
    vars_.push_back({str(name), dtypes_.back().empty() ? nullptr : dtypes_.back().data(),
                     static_cast<uint32_t>(dtypes_.back().size()), kinds});
    return *this;
  }
  OpBuilder& attr(const char* name, tn_attr_kind kind, bool required = false) {
    attr_def(name, kind).required = required;
    return *this;
  }
  OpBuilder& attr_int(const char* name, int64_t value) {
    auto& a = attr_def(name, TN_ATTR_INT);
    a.has_default = 1;
    a.default_int = value;
    return *this;
  }
  OpBuilder& attr_float(const char* name, double value) {
    auto& a = attr_def(name, TN_ATTR_FLOAT);
    a.has_default = 1;
    a.default_float = value;
    return *this;
  }
  OpBuilder& attr_string(const char* name, const char* value) {
    auto& a = attr_def(name, TN_ATTR_STRING);
    a.has_default = 1;
    a.default_string = str(value);
    return *this;
  }
  template <void (*F)(Infer&)>
  OpBuilder& infer() {
    def_.infer = [](void*, const tn_infer_api* api, tn_infer* raw) noexcept -> tn_status {
      DiagBuffer said;
      Infer i(api, raw);
      const tn_status s = guarded(said.raw(), [&] { F(i); });
      if (s != TN_OK) api->fail(raw, str(said.text()));
      return s;
    };
    return *this;
  }
  /// F(editor, node): brings an older node up to since_version; sets the version itself or replaces the node.
  template <void (*F)(Editor&, const Node&)>
  OpBuilder& upgrade() {
    def_.upgrade = &rewrite<F>;
    return *this;
  }
  template <void (*F)(Editor&, const Node&)>
  OpBuilder& decompose() {
    def_.decompose = &rewrite<F>;
    return *this;
  }
  const tn_op_def* finish() {
    def_.inputs = inputs_.data();
    def_.input_count = static_cast<uint32_t>(inputs_.size());
    def_.outputs = outputs_.data();
    def_.output_count = static_cast<uint32_t>(outputs_.size());
    def_.type_vars = vars_.data();
    def_.type_var_count = static_cast<uint32_t>(vars_.size());
    def_.attrs = attrs_.data();
    def_.attr_count = static_cast<uint32_t>(attrs_.size());
    def_.aliases = aliases_.data();
    def_.alias_count = static_cast<uint32_t>(aliases_.size());
    return &def_;
  }

 private:
  template <void (*F)(Editor&, const Node&)>
  static tn_status rewrite(void*, const tn_graph_api* g, const tn_edit_api* e, tn_graph* graph, tn_edit* edit,
                           tn_node node, const tn_diag* diag) noexcept {
    return guarded(diag, [&] {
      Editor editor(g, e, graph, edit);
      F(editor, editor.graph().node(node));
    });
  }
  tn_attr_def& attr_def(const char* name, tn_attr_kind kind) {
    attrs_.push_back({});
    attrs_.back().name = str(name);
    attrs_.back().kind = kind;
    return attrs_.back();
  }
  tn_op_def def_{};
  std::vector<tn_param_def> inputs_, outputs_;
  std::vector<tn_type_var> vars_;
  std::deque<std::vector<tn_dtype>> dtypes_;
  std::vector<tn_attr_def> attrs_;
  std::vector<tn_str> aliases_;
};

}  // namespace tenon::sdk
