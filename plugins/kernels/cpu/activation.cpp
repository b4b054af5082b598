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
#include <optional>
#include <string>

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

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Operators of one operand, with the defaults of alpha and beta.
struct Entry {
  const char* op;
  const char* id;  // of the kernel
  Act act;
  float alpha, beta;
};
constexpr Entry entries[] = {{"Relu", "relu", Act::Relu, 0, 0},
                             {"Sigmoid", "sigmoid", Act::Sigmoid, 0, 0},
                             {"Tanh", "tanh", Act::Tanh, 0, 0},
                             {"HardSwish", "hard_swish", Act::HardSwish, 0, 0},
                             {"Mish", "mish", Act::Mish, 0, 0},
                             {"Softplus", "softplus", Act::Softplus, 0, 0},
                             {"Exp", "exp", Act::Exp, 0, 0},
                             {"Log", "log", Act::Log, 0, 0},
                             {"Sqrt", "sqrt", Act::Sqrt, 0, 0},
                             {"Reciprocal", "reciprocal", Act::Reciprocal, 0, 0},
                             {"Neg", "neg", Act::Neg, 0, 0},
                             {"Abs", "abs", Act::Abs, 0, 0},
                             {"Erf", "erf", Act::Erf, 0, 0},
                             {"Floor", "floor", Act::Floor, 0, 0},
                             {"Ceil", "ceil", Act::Ceil, 0, 0},
                             {"Round", "round", Act::Round, 0, 0},
                             {"LeakyRelu", "leaky_relu", Act::LeakyRelu, 0.01f, 0},
                             {"HardSigmoid", "hard_sigmoid", Act::HardSigmoid, 0.2f, 0.5f},
                             {"Swish", "swish", Act::Swish, 1, 0},
                             {"Elu", "elu", Act::Elu, 1, 0},
                             {"Gelu", "gelu", Act::Gelu, 0, 0}};

std::optional<Activation> activation(std::string_view op, const Attributes& attrs, std::string_view alpha,
                                     std::string_view beta) {
  for (const Entry& e : entries) {
    if (op != e.op) continue;
    const bool by_tanh = e.act == Act::Gelu && attrs.get_string("approximate", "none") == "tanh";
    return Activation{by_tanh ? Act::GeluTanh : e.act, static_cast<float>(attrs.get_float(alpha, e.alpha)),
                      static_cast<float>(attrs.get_float(beta, e.beta))};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Activation> activation_of(std::string_view op, const Attributes& attrs) {
  return activation(op, attrs, "alpha", "beta");
}

Activation fused_activation(const Attributes& attrs, std::string_view alpha, std::string_view beta) {
  const auto name = attrs.get_string("activation", "");
  if (name.empty()) return {};
  if (name == "Clip")
    return {Act::Clip, static_cast<float>(attrs.get_float(alpha, -infinity)),
            static_cast<float>(attrs.get_float(beta, infinity))};
  if (const auto act = activation(name, attrs, alpha, beta)) return *act;
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

void plan(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  const auto act = activation_of(v.op_name(), v.attrs());
  if (!act) decline("this kernel has no " + std::string(v.op_name()));
  const int64_t n = v.output().count();
  const uint32_t tiles = tiles_for(n, 16384, v.threads());
  p.set(run, std::make_unique<State>(State{*act, n, tiles}), tiles);
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
  p.set(run_clip, std::make_unique<State>(State{{Act::Clip, -infinity, infinity}, n, tiles}), tiles);
}

}  // namespace

void provide_unary(Plugin& p) {
  const std::vector<tn_dtype> f32{TN_FLOAT32};
  for (const Entry& e : entries)
    p.kernel("tenon.cpu." + std::string(e.id) + "/1", e.op)
        .flags(TN_KERNEL_DETERMINISTIC)
        .input(f32)
        .in_place(0, 0)
        .plan<plan>();
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
