// MaxPool and AveragePool of images in the plain layout: for each output row, kernel rows are folded into a
// row buffer first and columns after, so that the inner loops run along contiguous memory.
#include <algorithm>
#include <limits>

#include "families.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct State {
  int64_t planes, h, w, oh, ow, kh, kw, sh, sw, dh, dw, top, left;
  int64_t bottom_limit, right_limit;  // ends of the padded image, for divisors that count padding
  bool average, count_padding;
  uint32_t tiles;
};

void pool_plane(const State& s, const float* x, float* y, float* buffer) noexcept {
  const float start = s.average ? 0.0f : -std::numeric_limits<float>::infinity();
  for (int64_t oy = 0; oy < s.oh; ++oy, y += s.ow) {
    const int64_t y0 = oy * s.sh - s.top;
    std::fill_n(buffer, s.w, start);
    int64_t rows = 0;
    for (int64_t k = 0; k < s.kh; ++k) {
      const int64_t iy = y0 + k * s.dh;
      if (iy < 0 || iy >= s.h) continue;
      ++rows;
      if (s.average)
        add_row(buffer, x + iy * s.w, s.w);
      else
        max_row(buffer, x + iy * s.w, s.w);
    }
    int64_t padded_rows = 0;
    for (int64_t k = 0; k < s.kh; ++k) padded_rows += y0 + k * s.dh < s.bottom_limit;
    for (int64_t ox = 0; ox < s.ow; ++ox) {
      const int64_t x0 = ox * s.sw - s.left;
      float r = start;
      int64_t columns = 0, padded_columns = 0;
      for (int64_t k = 0; k < s.kw; ++k) {
        const int64_t ix = x0 + k * s.dw;
        padded_columns += ix < s.right_limit;
        if (ix < 0 || ix >= s.w) continue;
        ++columns;
        const float v = buffer[ix];
        if (s.average)
          r += v;
        else if (v > r || v != v)
          r = v;
      }
      if (s.average) {
        const int64_t n = s.count_padding ? padded_rows * padded_columns : rows * columns;
        r = n ? r / static_cast<float>(n) : 0.0f;
      }
      y[ox] = r;
    }
  }
}

int run(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<State>(a);
  const Range r = tile_range(s.planes, s.tiles, tile);
  for (int64_t i = r.begin; i < r.end; ++i)
    pool_plane(s, in<float>(a, 0) + i * s.h * s.w, out<float>(a) + i * s.oh * s.ow,
               workspace<float>(a, worker));
  return 0;
}

/// Only NOTSET and VALID: SAME_* leaves to the reference what is rare.
void match(const PlanView& v) {
  if (v.input(0).rank() != 4) decline("not an image of four dimensions");
  if (v.has_output(1)) decline("Indices are wanted");
  const auto pad = v.attrs().get_string("auto_pad", "NOTSET");
  if (pad != "NOTSET" && pad != "VALID") decline("auto_pad SAME");
}

template <bool Average>
void plan(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  match(v);
  const auto x = v.input(0), y = v.output();
  const auto attrs = v.attrs();
  const auto kernel = attrs.get_ints("kernel_shape"), strides = attrs.get_ints("strides"),
             dilations = attrs.get_ints("dilations"), pads = attrs.get_ints("pads");
  if (kernel.size() != 2) fail("kernel_shape must have two entries");
  auto s = std::make_unique<State>();
  s->planes = x.dim(0) * x.dim(1), s->h = x.dim(2), s->w = x.dim(3), s->oh = y.dim(2), s->ow = y.dim(3);
  s->kh = kernel[0], s->kw = kernel[1];
  s->sh = strides.size() == 2 ? strides[0] : 1, s->sw = strides.size() == 2 ? strides[1] : 1;
  s->dh = dilations.size() == 2 ? dilations[0] : 1, s->dw = dilations.size() == 2 ? dilations[1] : 1;
  const bool padded = pads.size() == 4 && attrs.get_string("auto_pad", "NOTSET") == "NOTSET";
  s->top = padded ? pads[0] : 0, s->left = padded ? pads[1] : 0;
  s->bottom_limit = s->h + (padded ? pads[2] : 0), s->right_limit = s->w + (padded ? pads[3] : 0);
  s->average = Average;
  s->count_padding = attrs.get_int("count_include_pad", 0) != 0;
  if (y.count() == 0) s->planes = 0;
  s->tiles = static_cast<uint32_t>(
      std::min<int64_t>(tiles_for(x.count(), 16384, v.threads()), std::max<int64_t>(1, s->planes)));
  const uint32_t tiles = s->tiles;
  const auto bytes = static_cast<uint64_t>(s->w) * sizeof(float);
  p.set(run, std::move(s), tiles, bytes);
}

}  // namespace

void provide_pool(Plugin& p) {
  p.kernel("tenon.cpu.max_pool/1", "MaxPool")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input({TN_FLOAT32}, 0, 4, 4)
      .match<match>()
      .plan<plan<false>>();
  p.kernel("tenon.cpu.average_pool/1", "AveragePool")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input({TN_FLOAT32}, 0, 4, 4)
      .match<match>()
      .plan<plan<true>>();
}

}  // namespace tenon::cpu
