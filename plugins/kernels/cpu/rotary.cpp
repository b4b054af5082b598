// RotaryEmbedding of ai.onnx, and tenon::GatedActivation.
#include <cstdio>
#include <cstring>

#include "activation.hpp"
#include "families.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct Rotary {
  int64_t heads, length, size, half;  // `half` numbers of a head are turned with `half`
  int64_t rows;                       // of `size` numbers, in the order in which X has them
  int64_t limit;                      // rows of the tables; with positions they are picked by these
  bool flat;                          // X is [batch, length, heads * size], else [batch, heads, length, size]
  bool interleaved, picked;
  uint32_t tiles;
};

int outside(const tn_kernel_args* a, int64_t position, int64_t limit) noexcept {
  char text[160];
  std::snprintf(text, sizeof text,
                "RotaryEmbedding: position %lld is outside [0, %lld); correct position_ids",
                static_cast<long long>(position), static_cast<long long>(limit));
  if (a->api) a->api->fail(a->run, {text, std::strlen(text)});
  return 1;
}

int run_rotary(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<Rotary>(a);
  const Range r = tile_range(s.rows, s.tiles, tile);
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t place = s.flat
                              ? row / s.heads
                              : row / (s.heads * s.length) * s.length + row % s.length;  // in [batch, length]
    const int64_t at = s.picked ? in<int64_t>(a, 3)[place] : place;
    if (at < 0 || at >= s.limit) return outside(a, at, s.limit);
    const float* c = in<float>(a, 1) + at * s.half;
    const float* n = in<float>(a, 2) + at * s.half;
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
  const auto x = v.input(0);
  if (x.rank() != 3 && x.rank() != 4) decline("X has neither three dimensions nor four");
  const int64_t rotated = v.attrs().get_int("rotary_embedding_dim", 0);
  auto s = std::make_unique<Rotary>();
  s->flat = x.rank() == 3;
  s->heads = s->flat ? v.attrs().get_int("num_heads", 0) : x.dim(1);
  if (s->heads < 1 || (s->flat && x.dim(2) % s->heads != 0)) decline("the heads do not share the last axis");
  s->length = s->flat ? x.dim(1) : x.dim(2);
  s->size = s->flat ? x.dim(2) / s->heads : x.dim(3);
  s->half = (rotated ? rotated : s->size) / 2;
  s->rows = x.dim(0) * s->heads * s->length;
  s->interleaved = v.attrs().get_int("interleaved", 0) != 0;
  s->picked = v.has_input(3);
  s->limit = s->picked ? v.input(1).dim(0) : x.dim(0) * s->length;
  for (const auto& t : {v.input(1), v.input(2)}) {
    if (t.dim(-1) != s->half || t.count() != s->limit * s->half || t.rank() != (s->picked ? 2 : 3) ||
        (!s->picked && t.dim(0) != x.dim(0)))
      decline("a table does not have one row a position, of half of the turned part");
  }
  if (s->picked && v.input(3).count() != x.dim(0) * s->length) decline("not one position a row");
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
      .input({TN_INT64})
      .plan<plan_rotary>();
  p.kernel("tenon.cpu.gated_activation/1", "tenon::GatedActivation")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .in_place(0, 0)
      .plan<plan_gated>();
}

}  // namespace tenon::cpu
