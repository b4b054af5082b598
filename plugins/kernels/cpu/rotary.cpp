// RotaryEmbedding of ai.onnx with tables of one row a position, and tenon::GatedActivation.
#include "activation.hpp"
#include "families.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct Rotary {
  int64_t heads, length, size,
      half;  // X is [batch, heads, length, size]; `half` numbers are turned with `half`
  int64_t rows;
  bool interleaved;
  uint32_t tiles;
};

int run_rotary(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<Rotary>(a);
  const Range r = tile_range(s.rows, s.tiles, tile);
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t batch = row / (s.heads * s.length), at = row % s.length;
    const float* c = in<float>(a, 1) + (batch * s.length + at) * s.half;
    const float* n = in<float>(a, 2) + (batch * s.length + at) * s.half;
    const float* x = in<float>(a, 0) + row * s.size;
    float* y = out<float>(a) + row * s.size;
    if (s.interleaved) {
      for (int64_t i = 0; i < s.half; ++i) {
        const float real = x[2 * i], imaginary = x[2 * i + 1];
        y[2 * i] = real * c[i] - imaginary * n[i];
        y[2 * i + 1] = real * n[i] + imaginary * c[i];
      }
    } else {
      for (int64_t i = 0; i < s.half; ++i) {
        const float real = x[i], imaginary = x[i + s.half];
        y[i] = real * c[i] - imaginary * n[i];
        y[i + s.half] = real * n[i] + imaginary * c[i];
      }
    }
    for (int64_t i = 2 * s.half; i < s.size; ++i) y[i] = x[i];
  }
  return 0;
}

void plan_rotary(const PlanView& v, Planned& p) {
  const auto x = v.input(0), c = v.input(1), n = v.input(2);
  if (x.rank() != 4) decline("X is not [batch, heads, sequence, size]");
  if (v.has_input(3)) decline("the tables' rows are picked by position_ids");
  const int64_t rotated = v.attrs().get_int("rotary_embedding_dim", 0);
  auto s = std::make_unique<Rotary>();
  s->heads = x.dim(1), s->length = x.dim(2), s->size = x.dim(3);
  s->half = (rotated ? rotated : s->size) / 2;
  s->rows = x.dim(0) * s->heads * s->length;
  s->interleaved = v.attrs().get_int("interleaved", 0) != 0;
  for (const auto& t : {c, n})
    if (t.rank() != 3 || t.dim(0) != x.dim(0) || t.dim(1) != s->length || t.dim(2) != s->half)
      decline("a table is not [batch, sequence, half of the turned part]");
  if (2 * s->half > s->size) decline("the rotated part is larger than a head");
  s->tiles = static_cast<uint32_t>(
      std::min<int64_t>(tiles_for(s->rows * s->size, 8192, v.threads()), std::max<int64_t>(s->rows, 1)));
  const uint32_t tiles = s->tiles;
  p.set(run_rotary, std::move(s), tiles);
}

struct Gated {
  Activation act;
  int64_t count;
  uint32_t tiles;
};

int run_gated(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  constexpr int64_t block = 2048;  // stays in the first-level cache between the two steps
  const auto& s = state<Gated>(a);
  const Range r = tile_range(s.count, s.tiles, tile, 16);
  float gate[block];
  for (int64_t i = r.begin; i < r.end; i += block) {
    const int64_t n = std::min(block, r.end - i);
    apply(s.act, in<float>(a, 0) + i, gate, n);
    binary_row(Binary::Mul, gate, 1, in<float>(a, 1) + i, 1, out<float>(a) + i, n);
  }
  return 0;
}

void plan_gated(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  const int64_t n = v.output().count();
  if (v.input(0).count() != n || v.input(1).count() != n) decline("the two factors differ in shape");
  const uint32_t tiles = tiles_for(n, 16384, v.threads());
  p.set(run_gated, std::make_unique<Gated>(Gated{fused_activation(v.attrs()), n, tiles}), tiles);
}

}  // namespace

void provide_rotary(Plugin& p) {
  const std::vector<tn_dtype> f32{TN_FLOAT32};
  p.kernel("tenon.cpu.rotary_embedding/1", "RotaryEmbedding")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .input(f32)
      .plan<plan_rotary>();
  p.kernel("tenon.cpu.gated_activation/1", "tenon::GatedActivation")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .in_place(0, 0)
      .plan<plan_gated>();
}

}  // namespace tenon::cpu
