// Depthwise convolution in the plain layout: a plane at a time, one multiply-add of a row by a weight for
// each kernel element; strided columns are gathered into the worker's buffer once a row.
#include <algorithm>

#include "conv.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct State {
  Conv c;
  uint32_t tiles;
};

/// First and end output column whose input column x0 + ox * stride lies inside [0, w).
Range inside(int64_t x0, int64_t stride, int64_t w, int64_t ow) noexcept {
  const int64_t b = x0 >= 0 ? 0 : (-x0 + stride - 1) / stride;
  const int64_t e = x0 >= w ? 0 : (w - 1 - x0) / stride + 1;
  return {std::min(b, ow), std::max(std::min(b, ow), std::min(e, ow))};
}

void plane(const Conv& c, const float* x, const float* w, float* y, float* gathered) noexcept {
  for (int64_t oy = 0; oy < c.oh; ++oy) {
    float* row = y + oy * c.ow;
    std::fill_n(row, c.ow, 0.0f);
    for (int64_t ky = 0; ky < c.kh; ++ky) {
      const int64_t iy = oy * c.sh - c.top + ky * c.dh;
      if (iy < 0 || iy >= c.h) continue;
      const float* source = x + iy * c.w;
      for (int64_t kx = 0; kx < c.kw; ++kx) {
        const int64_t x0 = kx * c.dw - c.left;
        const Range r = inside(x0, c.sw, c.w, c.ow);
        if (r.begin >= r.end) continue;
        const float* from = source + x0 + r.begin * c.sw;
        const int64_t n = r.end - r.begin;
        if (c.sw != 1) {
          for (int64_t i = 0; i < n; ++i) gathered[i] = from[i * c.sw];
          from = gathered;
        }
        multiply_add_row(row + r.begin, w[ky * c.kw + kx], from, n);
      }
    }
  }
}

int run(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<State>(a);
  const Conv& c = s.c;
  const Range r = tile_range(c.n * c.m, s.tiles, tile);
  const int64_t pixels = c.oh * c.ow;
  for (int64_t i = r.begin; i < r.end; ++i) {
    const int64_t channel = i % c.m;
    float* y = out<float>(a) + i * pixels;
    plane(c, in<float>(a, 0) + i * c.h * c.w, in<float>(a, 1) + channel * c.kh * c.kw, y,
          workspace<float>(a, worker));
    if (c.bias || c.residual || c.act.kind != Act::None)
      finish_row(c.act, y, c.bias ? in<float>(a, 2)[channel] : 0.0f,
                 c.residual ? in<float>(a, 3) + i * pixels : nullptr, pixels);
  }
  return 0;
}

}  // namespace

void plan_conv_depthwise(const Conv& c, const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  const auto tiles = static_cast<uint32_t>(
      std::min<int64_t>(tiles_for(c.multiply_adds(), 65536, v.threads(), 4), c.n * c.m));
  p.set(run, std::make_unique<State>(State{c, tiles}), tiles, static_cast<uint64_t>(c.ow) * sizeof(float));
}

}  // namespace tenon::cpu
