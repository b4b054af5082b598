// A 1x1 convolution of stride 1 is a matrix product in the plain layout: Y[m, hw] = W[m, c] * X[c, hw] for
// each image. Bias, residual and activation are applied to a block of columns while it is in the second-level
// cache.
#include <algorithm>

#include "conv.hpp"
#include "onednn.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct State {
  Conv c;
  int64_t pixels;         // oh * ow
  int64_t column_block;   // columns of one product
  uint32_t row_parts;     // tiles of an image along m
  uint32_t column_parts;  // tiles of an image along the pixels
};

int run(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(a);
  const uint32_t parts = s.row_parts * s.column_parts;
  const int64_t image = tile / parts;
  const uint32_t part = tile % parts;
  const Range rows = tile_range(s.c.m, s.row_parts, part / s.column_parts, 8);
  const Range columns = tile_range(s.pixels, s.column_parts, part % s.column_parts, 16);
  const float* x = in<float>(a, 0) + image * s.c.c * s.pixels;
  const float* w = in<float>(a, 1) + rows.begin * s.c.c;
  const float* bias = s.c.bias ? in<float>(a, 2) : nullptr;
  const float* r = s.c.residual ? in<float>(a, 3) + image * s.c.m * s.pixels : nullptr;
  float* y = out<float>(a) + image * s.c.m * s.pixels;
  const bool finish = bias || r || s.c.act.kind != Act::None;
  for (int64_t p = columns.begin; p < columns.end; p += s.column_block) {
    const int64_t n = std::min(s.column_block, columns.end - p);
    sgemm(false, false, rows.end - rows.begin, n, s.c.c, 1.0f, w, s.c.c, x + p, s.pixels, 0.0f,
          y + rows.begin * s.pixels + p, s.pixels);
    if (!finish) continue;
    for (int64_t m = rows.begin; m < rows.end; ++m)
      finish_row(s.c.act, y + m * s.pixels + p, bias ? bias[m] : 0.0f, r ? r + m * s.pixels + p : nullptr, n);
  }
  return 0;
}

}  // namespace

void plan_conv_pointwise(const Conv& c, const PlanView& v, Planned& p) {
  auto s = std::make_unique<State>();
  s->c = c;
  s->pixels = c.oh * c.ow;
  const uint32_t wanted =
      c.multiply_adds() < 200000 ? 1 : static_cast<uint32_t>((v.threads() + c.n - 1) / c.n);
  const bool by_rows =
      s->pixels < 64 * static_cast<int64_t>(wanted) && c.m >= 64 * static_cast<int64_t>(wanted);
  s->row_parts = by_rows ? wanted : 1;
  s->column_parts =
      by_rows ? 1 : std::min<uint32_t>(wanted, static_cast<uint32_t>(std::max<int64_t>(1, s->pixels / 16)));
  const int64_t rows = (c.m + s->row_parts - 1) / s->row_parts;
  s->column_block = std::max<int64_t>(64, (512 * 1024 / 4) / std::max<int64_t>(rows, 1) / 16 * 16);
  const auto tiles = static_cast<uint32_t>(c.n) * s->row_parts * s->column_parts;
  p.set(run, std::move(s), tiles);
}

}  // namespace tenon::cpu
