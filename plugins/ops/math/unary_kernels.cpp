// Element by element functions of one operand: real functions from the activation table, their integer forms,
// Not, BitwiseNot, IsNaN, IsInf, Clip.
#include "families.hpp"
#include "math/activation_kernels.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

/// A function over a block of elements, computed as C.
template <class C, class F>
struct MapState : Base {
  Load<C> load;
  Store<C> store;
  F f;
};
template <class C, class F>
int map_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<MapState<C, F>>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  C x[block];
  for (int64_t i = r.begin; i < r.end; i += block) {
    const int64_t n = std::min(block, r.end - i);
    s.load(a->inputs[0], i, 1, n, x);
    s.f(x, n);
    s.store(x, n, a->outputs[0], i);
  }
  return run_ok;
}

template <class C>
using IntegerBlock = void (*)(C* x, int64_t n);
// Wrapping negation: the lowest number stays itself.
template <class C>
C negate(C x) noexcept {
  return static_cast<C>(0 - static_cast<uint64_t>(x));
}
template <class C>
void abs_block(C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] < 0 ? negate(x[i]) : x[i];
}
template <>
void abs_block(uint64_t*, int64_t) {}
template <class C>
void neg_block(C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = negate(x[i]);
}
template <class C>
void sign_block(C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = static_cast<C>((x[i] > 0) - (x[i] < 0));
}
template <>
void sign_block(uint64_t* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] > 0;
}
template <class C>
void relu_block(C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] > 0 ? x[i] : 0;
}
template <class C>
void bitwise_not_block(C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = ~x[i];
}
template <class C>
void not_block(C* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = x[i] ? 0 : 1;
}
template <class C>
void same_block(C*, int64_t) {}

template <class C>
IntegerBlock<C> integer_function(std::string_view op) {
  if (op == "Abs") return abs_block<C>;
  if (op == "Neg") return neg_block<C>;
  if (op == "Sign") return sign_block<C>;
  if (op == "Relu") return relu_block<C>;
  if (op == "BitwiseNot") return bitwise_not_block<C>;
  if (op == "Not") return not_block<C>;
  if (op == "Floor" || op == "Ceil" || op == "Round") return same_block<C>;
  return nullptr;
}

template <class C>
bool plan_integer(const PlanView& v, Planned& p) {
  const auto f = integer_function<C>(v.op_name());
  if (!f) return false;
  auto s = make_state<MapState<C, IntegerBlock<C>>>(v);
  s->load = loader<C>(s->in[0].dtype);
  s->store = storer<C>(s->out[0].dtype);
  s->f = f;
  const int64_t n = s->out[0].count;
  finish(v, p, map_fn<C, IntegerBlock<C>>, std::move(s), n, n);
  return true;
}

void plan_unary(const PlanView& v, Planned& p) {
  const tn_dtype dtype = v.input(0).dtype();
  const std::string op(v.op_name());
  if (domain_of(dtype) == Domain::signed_integer && plan_integer<int64_t>(v, p)) return;
  if (domain_of(dtype) == Domain::unsigned_integer && plan_integer<uint64_t>(v, p)) return;
  const auto attrs = v.attrs();
  const auto* f =
      find_real_function(op == "Gelu" && attrs.get_string("approximate", "none") == "tanh" ? "GeluTanh" : op);
  if (!f) fail(format("%s does not take elements of type %s", op.c_str(), dtype_name(dtype)));
  auto s = make_state<MapState<double, Activation>>(v);
  s->load = loader<double>(dtype);
  s->store = storer<double>(s->out[0].dtype);
  s->f = {f->apply, f->alpha, f->beta};
  if (op == "Selu")
    s->f = {f->apply, attrs.get_float("alpha", f->alpha), attrs.get_float("gamma", f->beta)};
  else if (op != "Clip")
    s->f = {f->apply, attrs.get_float("alpha", f->alpha), attrs.get_float("beta", f->beta)};
  const int64_t n = s->out[0].count;
  finish(v, p, map_fn<double, Activation>, std::move(s), n, n * 8);
}

// IsNaN, IsInf: bool from reals.
struct TestState : Base {
  Load<double> load;
  bool nan = false, positive = true, negative = true;
};
int test_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<TestState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  bool* y = out<bool>(a);
  double x[block];
  for (int64_t i = r.begin; i < r.end; i += block) {
    const int64_t n = std::min(block, r.end - i);
    s.load(a->inputs[0], i, 1, n, x);
    for (int64_t k = 0; k < n; ++k)
      y[i + k] = s.nan ? std::isnan(x[k]) : std::isinf(x[k]) && (x[k] > 0 ? s.positive : s.negative);
  }
  return run_ok;
}
void plan_test(const PlanView& v, Planned& p) {
  auto s = make_state<TestState>(v);
  s->load = loader<double>(s->in[0].dtype);
  s->nan = v.op_name() == "IsNaN";
  s->positive = v.attrs().get_int("detect_positive", 1) != 0;
  s->negative = v.attrs().get_int("detect_negative", 1) != 0;
  const int64_t n = s->out[0].count;
  finish(v, p, test_fn, std::move(s), n, n);
}

// Clip(x, min?, max?): min(max(x, min), max); NaN stays.
template <class C>
struct ClipState : Base {
  Load<C> load;
  Store<C> store;
};
template <class C>
int clip_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ClipState<C>>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  C low{}, high{};
  const bool has_low = s.has_in(1), has_high = s.has_in(2);
  if (has_low) s.load(a->inputs[1], 0, 1, 1, &low);
  if (has_high) s.load(a->inputs[2], 0, 1, 1, &high);
  C x[block];
  for (int64_t i = r.begin; i < r.end; i += block) {
    const int64_t n = std::min(block, r.end - i);
    s.load(a->inputs[0], i, 1, n, x);
    if (has_low)
      for (int64_t k = 0; k < n; ++k) x[k] = x[k] < low ? low : x[k];
    if (has_high)
      for (int64_t k = 0; k < n; ++k) x[k] = x[k] > high ? high : x[k];
    s.store(x, n, a->outputs[0], i);
  }
  return run_ok;
}
void plan_clip(const PlanView& v, Planned& p) {
  visit_domain(v.input(0).dtype(), [&](auto c) {
    using C = decltype(c);
    auto s = make_state<ClipState<C>>(v);
    for (size_t i = 1; i < 3; ++i)
      if (s->has_in(i) && s->in[i].count != 1)
        fail(format("Clip's bound %zu has shape %s; expected one number", i,
                    dims_text(s->in[i].dims).c_str()));
    s->load = loader<C>(s->in[0].dtype);
    s->store = storer<C>(s->out[0].dtype);
    const int64_t n = s->out[0].count;
    finish(v, p, clip_fn<C>, std::move(s), n, n);
  });
}

}  // namespace

void provide_unary(Plugin& p) {
  for (const char* op : {"Abs",
                         "Neg",
                         "Exp",
                         "Log",
                         "Sqrt",
                         "Reciprocal",
                         "Floor",
                         "Ceil",
                         "Round",
                         "Sign",
                         "Sin",
                         "Cos",
                         "Tan",
                         "Asin",
                         "Acos",
                         "Atan",
                         "Sinh",
                         "Cosh",
                         "Tanh",
                         "Asinh",
                         "Acosh",
                         "Atanh",
                         "Erf",
                         "Sigmoid",
                         "Softplus",
                         "Softsign",
                         "Relu",
                         "LeakyRelu",
                         "ThresholdedRelu",
                         "Elu",
                         "Selu",
                         "Celu",
                         "HardSigmoid",
                         "HardSwish",
                         "Swish",
                         "Mish",
                         "Gelu",
                         "Not",
                         "BitwiseNot"})
    reference_kernel(p, op).in_place(0, 0).plan<plan_unary>();
  reference_kernel(p, "IsNaN").plan<plan_test>();
  reference_kernel(p, "IsInf").plan<plan_test>();
  reference_kernel(p, "Clip").in_place(0, 0).plan<plan_clip>();
}

}  // namespace tenon::reference
