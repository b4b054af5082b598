#include "activation.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "activation.cpp"
#include <hwy/foreach_target.h>

#include "vector_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::cpu {
namespace HWY_NAMESPACE {

void apply(const Activation& a, const float* x, float* y, int64_t n) {
  const hn::ScalableTag<float> d;
  with_activation(a.kind, [&]<Act A>() {
    for_vectors(d, n, [&](int64_t i, int64_t c) {
      store_n(d, activate<A>(d, load_n(d, x + i, c), a.alpha, a.beta), y + i, c);
    });
  });
}

void finish_row(const Activation& a, float* y, float bias, const float* r, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto b = hn::Set(d, bias);
  with_activation(a.kind, [&]<Act A>() {
    if (r)
      for_vectors(d, n, [&](int64_t i, int64_t c) {
        store_n(
            d, activate<A>(d, hn::Add(hn::Add(load_n(d, y + i, c), b), load_n(d, r + i, c)), a.alpha, a.beta),
            y + i, c);
      });
    else
      for_vectors(d, n, [&](int64_t i, int64_t c) {
        store_n(d, activate<A>(d, hn::Add(load_n(d, y + i, c), b), a.alpha, a.beta), y + i, c);
      });
  });
}

void finish_columns(const Activation& a, float* y, const float* bias, int64_t n) {
  const hn::ScalableTag<float> d;
  with_activation(a.kind, [&]<Act A>() {
    for_vectors(d, n, [&](int64_t i, int64_t c) {
      auto v = load_n(d, y + i, c);
      if (bias) v = hn::Add(v, load_n(d, bias + i, c));
      store_n(d, activate<A>(d, v, a.alpha, a.beta), y + i, c);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <cmath>
#include <limits>

#include "families.hpp"
#include "simd.hpp"

namespace tenon::cpu {

HWY_EXPORT(apply);
HWY_EXPORT(finish_row);
HWY_EXPORT(finish_columns);
void apply(const Activation& a, const float* x, float* y, int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(apply)(a, x, y, n);
}
void finish_row(const Activation& a, float* y, float bias, const float* r, int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(finish_row)(a, y, bias, r, n);
}
void finish_columns(const Activation& a, float* y, const float* bias, int64_t n) noexcept {
  HWY_DYNAMIC_DISPATCH(finish_columns)(a, y, bias, n);
}

using namespace sdk;

Activation fused_activation(const Attributes& attrs, std::string_view alpha, std::string_view beta) {
  struct Entry {
    const char* name;
    Act act;
    float alpha, beta;
  };
  static constexpr float inf = std::numeric_limits<float>::infinity();
  static constexpr Entry entries[] = {{"", Act::None, 0, 0},
                                      {"Relu", Act::Relu, 0, 0},
                                      {"LeakyRelu", Act::LeakyRelu, 0.01f, 0},
                                      {"Clip", Act::Clip, -inf, inf},
                                      {"Sigmoid", Act::Sigmoid, 0, 0},
                                      {"Tanh", Act::Tanh, 0, 0},
                                      {"HardSigmoid", Act::HardSigmoid, 0.2f, 0.5f},
                                      {"HardSwish", Act::HardSwish, 0, 0},
                                      {"Swish", Act::Swish, 1, 0},
                                      {"Gelu", Act::Gelu, 0, 0},
                                      {"Elu", Act::Elu, 1, 0},
                                      {"Mish", Act::Mish, 0, 0},
                                      {"Softplus", Act::Softplus, 0, 0}};
  const auto name = attrs.get_string("activation", "");
  for (const auto& e : entries)
    if (name == e.name) {
      const Act act =
          e.act == Act::Gelu && attrs.get_string("approximate", "none") == "tanh" ? Act::GeluTanh : e.act;
      return {act, static_cast<float>(attrs.get_float(alpha, e.alpha)),
              static_cast<float>(attrs.get_float(beta, e.beta))};
    }
  decline("activation " + std::string(name) + " is not in this plugin");
}

namespace {

struct State {
  Activation act;
  int64_t count;
  uint32_t tiles;
};

int run(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(a);
  const Range r = tile_range(s.count, s.tiles, tile, 16);
  apply(s.act, in<float>(a, 0) + r.begin, out<float>(a) + r.begin, r.end - r.begin);
  return 0;
}

void set(const PlanView& v, Planned& p, Activation act) {
  allow_simd(v.cpu_features());
  const int64_t n = v.output().count();
  const uint32_t tiles = tiles_for(n, 16384, v.threads());
  p.set(run, std::make_unique<State>(State{act, n, tiles}), tiles);
}

template <Act A>
void plan_plain(const PlanView& v, Planned& p) {
  set(v, p, {A, 0, 0});
}

template <Act A>
void plan_alpha(const PlanView& v, Planned& p) {
  const double alpha = A == Act::LeakyRelu ? 0.01 : A == Act::HardSigmoid ? 0.2 : 1.0;
  set(v, p,
      {A, static_cast<float>(v.attrs().get_float("alpha", alpha)),
       static_cast<float>(v.attrs().get_float("beta", 0.5))});
}

void plan_gelu(const PlanView& v, Planned& p) {
  set(v, p, {v.attrs().get_string("approximate", "none") == "tanh" ? Act::GeluTanh : Act::Gelu, 0, 0});
}

/// The bounds are operands and may come from the run.
int run_clip(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(a);
  const Range r = tile_range(s.count, s.tiles, tile, 16);
  Activation act = s.act;
  if (a->input_count > 1 && a->inputs[1]) act.alpha = *in<float>(a, 1);
  if (a->input_count > 2 && a->inputs[2]) act.beta = *in<float>(a, 2);
  apply(act, in<float>(a, 0) + r.begin, out<float>(a) + r.begin, r.end - r.begin);
  return 0;
}
void plan_clip(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  const int64_t n = v.output().count();
  const uint32_t tiles = tiles_for(n, 16384, v.threads());
  const float inf = std::numeric_limits<float>::infinity();
  p.set(run_clip, std::make_unique<State>(State{{Act::Clip, -inf, inf}, n, tiles}), tiles);
}

}  // namespace

void provide_unary(Plugin& p) {
  const std::vector<tn_dtype> f32{TN_FLOAT32};
  struct Entry {
    const char* op;
    const char* id;
    void (*plan)(KernelBuilder&);
  };
#define TENON_UNARY(op, id, fn)                                      \
  {                                                                  \
    op, "tenon.cpu." id "/1", [](KernelBuilder& k) { k.plan<fn>(); } \
  }
  static const Entry entries[] = {TENON_UNARY("Relu", "relu", plan_plain<Act::Relu>),
                                  TENON_UNARY("Sigmoid", "sigmoid", plan_plain<Act::Sigmoid>),
                                  TENON_UNARY("Tanh", "tanh", plan_plain<Act::Tanh>),
                                  TENON_UNARY("HardSwish", "hard_swish", plan_plain<Act::HardSwish>),
                                  TENON_UNARY("Mish", "mish", plan_plain<Act::Mish>),
                                  TENON_UNARY("Softplus", "softplus", plan_plain<Act::Softplus>),
                                  TENON_UNARY("Exp", "exp", plan_plain<Act::Exp>),
                                  TENON_UNARY("Log", "log", plan_plain<Act::Log>),
                                  TENON_UNARY("Sqrt", "sqrt", plan_plain<Act::Sqrt>),
                                  TENON_UNARY("Reciprocal", "reciprocal", plan_plain<Act::Reciprocal>),
                                  TENON_UNARY("Neg", "neg", plan_plain<Act::Neg>),
                                  TENON_UNARY("Abs", "abs", plan_plain<Act::Abs>),
                                  TENON_UNARY("Erf", "erf", plan_plain<Act::Erf>),
                                  TENON_UNARY("Floor", "floor", plan_plain<Act::Floor>),
                                  TENON_UNARY("Ceil", "ceil", plan_plain<Act::Ceil>),
                                  TENON_UNARY("Round", "round", plan_plain<Act::Round>),
                                  TENON_UNARY("LeakyRelu", "leaky_relu", plan_alpha<Act::LeakyRelu>),
                                  TENON_UNARY("HardSigmoid", "hard_sigmoid", plan_alpha<Act::HardSigmoid>),
                                  TENON_UNARY("Swish", "swish", plan_alpha<Act::Swish>),
                                  TENON_UNARY("Elu", "elu", plan_alpha<Act::Elu>),
                                  TENON_UNARY("Gelu", "gelu", plan_gelu)};
#undef TENON_UNARY
  for (const auto& e : entries)
    e.plan(p.kernel(e.id, e.op).flags(TN_KERNEL_DETERMINISTIC).input(f32).in_place(0, 0));
  p.kernel("tenon.cpu.clip/1", "Clip")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32, TN_OPERAND_SCALAR)
      .input(f32, TN_OPERAND_SCALAR)
      .in_place(0, 0)
      .plan<plan_clip>();
}

}  // namespace tenon::cpu
#endif
