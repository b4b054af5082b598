// Kernels: what a plan sees, what it returns, and the builder of records.
#pragma once
#include <algorithm>
#include <deque>
#include <memory>

#include "graph.hpp"
#include "tenon/abi/kernels.h"

namespace tenon::sdk {

class OperandView {
 public:
  explicit OperandView(const tn_operand& o) noexcept : o_(&o) {}
  explicit operator bool() const noexcept { return o_->present != 0; }
  tn_dtype dtype() const noexcept { return o_->type.dtype; }
  int32_t rank() const noexcept { return o_->type.rank; }
  Span<const int64_t> dims() const noexcept { return dims_of(o_->type); }
  int64_t dim(int i) const noexcept { return o_->type.dims[i < 0 ? i + o_->type.rank : i]; }
  /// All dims are numbers.
  bool is_static() const noexcept {
    if (o_->type.rank < 0) return false;
    for (int64_t d : dims())
      if (d < 0) return false;
    return true;
  }
  int64_t count() const { return element_count(dims()); }
  bool constant() const noexcept { return o_->constant != 0; }
  template <class T>
  const T* data() const noexcept {
    return static_cast<const T*>(o_->data);
  }
  TensorView tensor() const {
    return tn_tensor{dtype(), rank(), o_->type.dims, const_cast<void*>(o_->data),
                     packed_bytes(dtype(), count())};
  }
  const tn_operand& raw() const noexcept { return *o_; }

 private:
  const tn_operand* o_;
};

class PlanView {
 public:
  explicit PlanView(const tn_plan_view* v) noexcept : v_(v) {}
  uint32_t input_count() const noexcept { return v_->input_count; }
  uint32_t output_count() const noexcept { return v_->output_count; }
  bool has_input(uint32_t i) const noexcept { return i < v_->input_count && v_->inputs[i].present; }
  bool has_output(uint32_t i) const noexcept { return i < v_->output_count && v_->outputs[i].present; }
  OperandView input(uint32_t i) const {
    if (i >= v_->input_count) fail(format("operand %u is needed", i));
    return OperandView(v_->inputs[i]);
  }
  OperandView output(uint32_t i = 0) const {
    if (i >= v_->output_count) fail(format("result %u is needed", i));
    return OperandView(v_->outputs[i]);
  }
  Attributes attrs() const noexcept { return Attributes(v_->graph_api, *v_->node); }
  std::string_view op_name() const { return sdk::view(v_->graph_api->symbol_text(v_->node->op)); }
  /// The graph that holds the node, for the bodies of fused nodes. Throws where the host is too old to give
  /// it.
  GraphView graph() const {
    if (!TN_HAS(v_, graph) || !v_->graph) fail("the host does not hand out the graph");
    return GraphView(v_->graph_api, v_->graph);
  }
  Span<const tn_region> regions() const noexcept { return {v_->node->regions, v_->node->region_count}; }
  uint32_t threads() const noexcept { return v_->thread_count ? v_->thread_count : 1; }
  uint64_t cpu_features() const noexcept { return v_->cpu_features; }
  std::string_view precision() const noexcept { return sdk::view(v_->precision_mode); }
  /// Runs f(i, worker) for i in [0, n) on the host's pool (while planning only).
  template <class F>
  void parallel(uint32_t n, F&& f) const {
    if (v_->parallel)
      v_->parallel(
          v_->context, n,
          [](void* c, uint32_t i, uint32_t w) { (*static_cast<std::remove_reference_t<F>*>(c))(i, w); }, &f);
    else
      for (uint32_t i = 0; i < n; ++i) f(i, 0u);
  }
  /// fill(source, dst) makes the packed form of constant input i, once for all plans that use this key.
  template <class T = void, class F>
  const T* packed(uint32_t i, std::string_view key, uint64_t bytes, F&& fill) const {
    struct Call {
      std::remove_reference_t<F>* f;
      DiagBuffer said;
    } call{&fill, {}};
    const void* blob = nullptr;
    const tn_status s = v_->packed(
        v_->context, i, str(key), bytes,
        [](void* c, const tn_tensor* source, void* dst) -> tn_status {
          auto* self = static_cast<Call*>(c);
          return guarded(self->said.raw(), [&] { (*self->f)(TensorView(*source), dst); });
        },
        &call, &blob);
    check(s, "packing a constant", &call.said);
    return static_cast<const T*>(blob);
  }
  const tn_plan_view& raw() const noexcept { return *v_; }

 private:
  const tn_plan_view* v_;
};

class Planned {
 public:
  explicit Planned(tn_planned* p) noexcept : p_(p) { p_->tiles = 1; }
  /// fn runs once for each tile; it must not throw. state is freed with the plan.
  template <class State>
  void set(tn_kernel_fn fn, std::unique_ptr<State> state, uint32_t tiles = 1, uint64_t workspace_bytes = 0) {
    p_->fn = fn;
    p_->tiles = tiles;
    p_->workspace_bytes = workspace_bytes;
    p_->state = state.release();
    p_->free_state = [](void* s) { delete static_cast<State*>(s); };
  }
  void set(tn_kernel_fn fn, uint32_t tiles = 1) {
    p_->fn = fn;
    p_->tiles = tiles;
  }
  tn_planned& raw() noexcept { return *p_; }

 private:
  tn_planned* p_;
};

// In the hot path.
template <class T>
inline const T* in(const tn_kernel_args* a, uint32_t i) noexcept {
  return static_cast<const T*>(a->inputs[i]);
}
template <class T>
inline T* out(const tn_kernel_args* a, uint32_t i = 0) noexcept {
  return static_cast<T*>(a->outputs[i]);
}
template <class T>
inline const T& state(const tn_kernel_args* a) noexcept {
  return *static_cast<const T*>(a->state);
}
template <class T>
inline T* workspace(const tn_kernel_args* a, uint32_t worker) noexcept {
  return reinterpret_cast<T*>(static_cast<char*>(a->workspace) + worker * a->workspace_stride);
}
/// Half-open range of [0, n) that tile t of `tiles` handles, in multiples of `grain`.
struct Range {
  int64_t begin, end;
};
inline Range tile_range(int64_t n, uint32_t tiles, uint32_t t, int64_t grain = 1) noexcept {
  const int64_t blocks = (n + grain - 1) / grain, per = blocks / tiles, extra = blocks % tiles;
  const int64_t b = per * t + (t < extra ? t : extra), e = b + per + (t < extra ? 1 : 0);
  return {std::min(n, b * grain), std::min(n, e * grain)};
}
/// How many tiles are worth it: one until `work` passes grain units, then up to `per_thread` a thread.
inline uint32_t tiles_for(int64_t work, int64_t grain, uint32_t threads, uint32_t per_thread = 1) noexcept {
  const int64_t n =
      std::min<int64_t>(work / std::max<int64_t>(grain, 1), static_cast<int64_t>(threads) * per_thread);
  return n < 1 ? 1u : static_cast<uint32_t>(n);
}

/// What a dynamic or control-flow kernel may do while it runs.
class Run {
 public:
  explicit Run(const tn_kernel_args* a) noexcept : api(a->api), run(a->run) {}
  const tn_run_api* api;
  tn_run* run;
  bool has_input(uint32_t i) const {
    tn_tensor t;
    return api->input_tensor(run, i, &t) == TN_OK;
  }
  TensorView input(uint32_t i) const {
    tn_tensor t;
    check(api->input_tensor(run, i, &t), format("reading operand %u", i).c_str());
    return TensorView(t);
  }
  void* output(uint32_t i, tn_dtype dtype, Span<const int64_t> dims) const {
    void* p = nullptr;
    check(api->output_tensor(run, i, dtype, static_cast<int32_t>(dims.size()), dims.data(), &p),
          format("allocating result %u of shape %s", i, dims_text(dims).c_str()).c_str());
    return p;
  }
};
/// A tn_kernel_fn from f(Run&, args): exceptions become a failed run with their text.
template <void (*F)(Run&, const tn_kernel_args*)>
int dynamic_kernel(const tn_kernel_args* a, uint32_t, uint32_t) noexcept {
  DiagBuffer said;
  Run run(a);
  const tn_status s = guarded(said.raw(), [&] { F(run, a); });
  if (s != TN_OK) a->api->fail(a->run, str(said.text()));
  return s;
}

class KernelBuilder {
 public:
  KernelBuilder(std::string id, std::string op) : id_(std::move(id)), op_(std::move(op)) {
    r_.size = sizeof r_;
    r_.device = str("cpu");
  }
  KernelBuilder(const KernelBuilder&) = delete;
  KernelBuilder& operator=(const KernelBuilder&) = delete;
  KernelBuilder& flags(uint32_t f) {
    r_.flags |= f;
    return *this;
  }
  KernelBuilder& rank(int32_t k) {
    r_.rank = k;
    return *this;
  }
  KernelBuilder& device(const char* d) {
    r_.device = str(d);
    return *this;
  }
  KernelBuilder& cpu(uint64_t features) {
    r_.cpu_features = features;
    return *this;
  }
  KernelBuilder& versions(int32_t lo, int32_t hi) {
    r_.min_version = lo;
    r_.max_version = hi;
    return *this;
  }
  /// The next operand's rule. {}: anything.
  KernelBuilder& input(std::vector<tn_dtype> dtypes = {}, uint32_t flags = 0, int32_t min_rank = 0,
                       int32_t max_rank = -1, uint32_t same_as = 0, uint32_t kinds = 0) {
    add(inputs_, std::move(dtypes), flags, min_rank, max_rank, same_as, kinds);
    return *this;
  }
  KernelBuilder& output(std::vector<tn_dtype> dtypes = {}, uint32_t flags = 0) {
    add(outputs_, std::move(dtypes), flags, 0, -1, 0, 0);
    return *this;
  }
  KernelBuilder& in_place(uint32_t output, uint32_t input) {
    aliases_.push_back({output, input, TN_ALIAS_IN_PLACE, 0});
    return *this;
  }
  KernelBuilder& view_of(uint32_t output, uint32_t input) {
    aliases_.push_back({output, input, TN_ALIAS_VIEW, 0});
    return *this;
  }
  template <void (*F)(const PlanView&, Planned&)>
  KernelBuilder& plan() {
    r_.plan = [](void*, const tn_plan_view* v, tn_planned* out, const tn_diag* diag) noexcept -> tn_status {
      return guarded(diag, [&] {
        Planned p(out);
        F(PlanView(v), p);
      });
    };
    return *this;
  }
  /// F throws decline(why) when the kernel cannot take the node. Shapes may be unknown still: be tolerant
  /// then.
  template <void (*F)(const PlanView&)>
  KernelBuilder& match() {
    r_.match = [](void*, const tn_plan_view* v, const tn_diag* why) noexcept -> tn_status {
      return guarded(why, [&] { F(PlanView(v)); });
    };
    return *this;
  }
  template <double (*F)(const PlanView&)>
  KernelBuilder& cost() {
    r_.cost = [](void*, const tn_plan_view* v) noexcept -> double {
      double c = -1;
      guarded(nullptr, [&] { c = F(PlanView(v)); });
      return c;
    };
    return *this;
  }
  const tn_kernel_record* finish() {
    r_.id = str(id_);
    r_.op = str(op_);
    r_.input_rules = inputs_.data();
    r_.input_rule_count = static_cast<uint32_t>(inputs_.size());
    r_.output_rules = outputs_.data();
    r_.output_rule_count = static_cast<uint32_t>(outputs_.size());
    r_.aliases = aliases_.data();
    r_.alias_count = static_cast<uint32_t>(aliases_.size());
    return &r_;
  }

 private:
  void add(std::vector<tn_operand_rule>& to, std::vector<tn_dtype> dtypes, uint32_t flags, int32_t lo,
           int32_t hi, uint32_t same, uint32_t kinds) {
    dtypes_.push_back(std::move(dtypes));
    const auto& d = dtypes_.back();
    to.push_back(
        {d.empty() ? nullptr : d.data(), static_cast<uint32_t>(d.size()), flags, lo, hi, same, kinds});
  }
  tn_kernel_record r_{};
  std::string id_, op_;
  std::deque<std::vector<tn_dtype>> dtypes_;
  std::vector<tn_operand_rule> inputs_, outputs_;
  std::vector<tn_alias> aliases_;
};

}  // namespace tenon::sdk
