// Normalisation over trailing axes.
#include "families.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct State {
  int64_t rows, n;
  float epsilon;
  uint32_t tiles;
};

uint32_t row_tiles(int64_t rows, int64_t n, uint32_t threads) {
  return static_cast<uint32_t>(
      std::min<int64_t>(tiles_for(rows * n, 8192, threads), std::max<int64_t>(rows, 1)));
}

/// Rows and length of the normalised part from attribute `axis`; the scale must cover exactly that part.
State normalised(const PlanView& v, uint32_t scale_input) {
  allow_simd(v.cpu_features());
  const auto x = v.input(0);
  const int64_t axis = v.attrs().get_int("axis", -1);
  State s{1, 1, static_cast<float>(v.attrs().get_float("epsilon", 1e-5)), 1};
  const int64_t first = axis < 0 ? axis + x.rank() : axis;
  if (first < 0 || first >= x.rank()) fail("the axis is outside the operand's rank");
  for (int i = 0; i < x.rank(); ++i) (i < first ? s.rows : s.n) *= x.dim(i);
  if (v.input(scale_input).count() != s.n) decline("the scale does not cover exactly the normalised axes");
  if (s.n == 0) decline("a tensor without elements");
  s.tiles = row_tiles(s.rows, s.n, v.threads());
  return s;
}

int run_layer_norm(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(a);
  const Range r = tile_range(s.rows, s.tiles, tile);
  const float* bias = a->input_count > 2 ? in<float>(a, 2) : nullptr;
  float* mean = a->output_count > 1 ? out<float>(a, 1) : nullptr;
  float* inv = a->output_count > 2 ? out<float>(a, 2) : nullptr;
  for (int64_t i = r.begin; i < r.end; ++i)
    layer_norm_row(in<float>(a, 0) + i * s.n, in<float>(a, 1), bias, out<float>(a) + i * s.n, s.n, s.epsilon,
                   mean ? mean + i : nullptr, inv ? inv + i : nullptr);
  return 0;
}
void plan_layer_norm(const PlanView& v, Planned& p) {
  const State s = normalised(v, 1);
  if (v.has_input(2) && v.input(2).count() != s.n)
    decline("the bias does not cover exactly the normalised axes");
  p.set(run_layer_norm, std::make_unique<State>(s), s.tiles);
}

int run_rms_norm(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(a);
  const Range r = tile_range(s.rows, s.tiles, tile);
  for (int64_t i = r.begin; i < r.end; ++i)
    rms_norm_row(in<float>(a, 0) + i * s.n, in<float>(a, 1), out<float>(a) + i * s.n, s.n, s.epsilon);
  return 0;
}
void plan_rms_norm(const PlanView& v, Planned& p) {
  const State s = normalised(v, 1);
  p.set(run_rms_norm, std::make_unique<State>(s), s.tiles);
}

// tenon::SkipLayerNorm: U = X + C + S, Y = LayerNormalization(U, G, B?). tenon::SkipRmsNorm: the same with
// RMSNormalization, which has no B. U may be unwanted, C missing.
template <bool Rms>
int run_skip_norm(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  constexpr uint32_t shift = Rms ? 3 : 4;  // where C stands
  const auto& s = state<State>(a);
  const Range r = tile_range(s.rows, s.tiles, tile);
  const float* bias = !Rms && a->input_count > 3 ? in<float>(a, 3) : nullptr;
  const float* row = a->input_count > shift ? in<float>(a, shift) : nullptr;
  float* sum = a->output_count > 1 ? out<float>(a, 1) : nullptr;
  for (int64_t i = r.begin; i < r.end; ++i) {
    const float* x = in<float>(a, 0) + i * s.n;
    float* y = out<float>(a) + i * s.n;
    float* u = sum ? sum + i * s.n : y;
    if (row) binary_row(Binary::Add, x, 1, row, 1, u, s.n);
    binary_row(Binary::Add, row ? u : x, 1, in<float>(a, 1) + i * s.n, 1, u, s.n);
    if (Rms)
      rms_norm_row(u, in<float>(a, 2), y, s.n, s.epsilon);
    else
      layer_norm_row(u, in<float>(a, 2), bias, y, s.n, s.epsilon, nullptr, nullptr);
  }
  return 0;
}
template <bool Rms>
void plan_skip_norm(const PlanView& v, Planned& p) {
  const State s = normalised(v, 2);
  if (v.input(1).count() != v.input(0).count()) decline("the two summands differ in shape");
  for (uint32_t i = 3; i < (Rms ? 4u : 5u); ++i)
    if (v.has_input(i) && v.input(i).count() != s.n)
      decline("the bias does not cover exactly the normalised axes");
  p.set(run_skip_norm<Rms>, std::make_unique<State>(s), s.tiles);
}

}  // namespace

void provide_norm(Plugin& p) {
  const std::vector<tn_dtype> f32{TN_FLOAT32};
  p.kernel("tenon.cpu.layer_normalization/1", "LayerNormalization")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .input(f32)
      .in_place(0, 0)
      .plan<plan_layer_norm>();
  p.kernel("tenon.cpu.rms_normalization/1", "RMSNormalization")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .in_place(0, 0)
      .plan<plan_rms_norm>();
  p.kernel("tenon.cpu.skip_layer_norm/1", "tenon::SkipLayerNorm")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .input(f32)
      .input(f32)
      .input(f32)
      .plan<plan_skip_norm<false>>();
  p.kernel("tenon.cpu.skip_rms_norm/1", "tenon::SkipRmsNorm")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .input(f32)
      .input(f32)
      .plan<plan_skip_norm<true>>();
}

}  // namespace tenon::cpu
