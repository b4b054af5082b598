// Transpose of any element of 1, 2, 4 or 8 bytes: axes that stay together are merged; then rows are copied
// whole when the last axis stays, else 8x8 blocks of the two innermost moved axes.
#include "families.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

struct Axis {
  int64_t size, in_stride;
};  // of the result, outermost first; strides in elements

struct State {
  std::vector<Axis> axes;
  int64_t outer = 1;  // product of all axes but the last two (blocked), or but the last (row copies)
  bool rows = false;  // the last axis is contiguous in the operand
  uint32_t tiles = 1;
  uint32_t element_bytes = 4;
};

template <class T>
void copy_blocks(const T* x, T* y, int64_t rows, int64_t columns, int64_t row_stride,
                 int64_t column_stride) noexcept {
  constexpr int64_t block = 16;
  for (int64_t i = 0; i < rows; i += block)
    for (int64_t j = 0; j < columns; j += block) {
      const int64_t ie = std::min(rows, i + block), je = std::min(columns, j + block);
      for (int64_t a = i; a < ie; ++a)
        for (int64_t b = j; b < je; ++b) y[a * columns + b] = x[a * row_stride + b * column_stride];
    }
}

template <class T>
int run(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<State>(a);
  const T* x = in<T>(a, 0);
  T* y = out<T>(a);
  const size_t inner = s.rows ? 1 : std::min<size_t>(2, s.axes.size());
  int64_t block = 1;
  for (size_t i = s.axes.size() - inner; i < s.axes.size(); ++i) block *= s.axes[i].size;
  const Range r = tile_range(s.outer, s.tiles, tile);
  for (int64_t o = r.begin; o < r.end; ++o) {
    int64_t rest = o, from = 0;
    for (size_t i = s.axes.size() - inner; i-- > 0;) {
      from += rest % s.axes[i].size * s.axes[i].in_stride;
      rest /= s.axes[i].size;
    }
    if (s.rows) {
      std::memcpy(y + o * block, x + from, static_cast<size_t>(block) * sizeof(T));
    } else {
      const Axis last = s.axes.back(), before = inner == 2 ? s.axes[s.axes.size() - 2] : Axis{1, 0};
      copy_blocks(x + from, y + o * block, before.size, last.size, before.in_stride, last.in_stride);
    }
  }
  return 0;
}

void plan(const PlanView& v, Planned& p) {
  const auto x = v.input(0);
  const auto rank = static_cast<size_t>(x.rank());
  Dims perm = v.attrs().get_ints("perm").copy();
  if (perm.empty())
    for (size_t i = rank; i-- > 0;) perm.push_back(static_cast<int64_t>(i));
  if (perm.size() != rank) fail(format("perm has %zu entries, the operand %zu axes", perm.size(), rank));
  Dims strides(rank, 1);
  for (size_t i = rank; i-- > 1;) strides[i - 1] = strides[i] * x.dims()[i];
  std::vector<bool> seen(rank, false);
  auto s = std::make_unique<State>();
  for (int64_t axis : perm) {
    if (axis < 0 || axis >= static_cast<int64_t>(rank) || seen[static_cast<size_t>(axis)])
      fail("perm is not a permutation of the operand's axes");
    seen[static_cast<size_t>(axis)] = true;
    const Axis next{x.dims()[static_cast<size_t>(axis)], strides[static_cast<size_t>(axis)]};
    if (next.size == 1) continue;
    if (!s->axes.empty() && s->axes.back().in_stride == next.size * next.in_stride)
      s->axes.back() = {s->axes.back().size * next.size, next.in_stride};
    else
      s->axes.push_back(next);
  }
  if (s->axes.empty()) s->axes.push_back({1, 1});
  s->rows = s->axes.back().in_stride == 1;
  const size_t inner = s->rows ? 1 : std::min<size_t>(2, s->axes.size());
  for (size_t i = 0; i + inner < s->axes.size(); ++i) s->outer *= s->axes[i].size;
  if (v.output().count() == 0) s->outer = 0;
  s->tiles = static_cast<uint32_t>(
      std::min<int64_t>(tiles_for(v.output().count(), 16384, v.threads()), std::max<int64_t>(1, s->outer)));
  const uint32_t tiles = s->tiles;
  switch (dtype_bytes(x.dtype())) {
    case 1:
      return p.set(run<uint8_t>, std::move(s), tiles);
    case 2:
      return p.set(run<uint16_t>, std::move(s), tiles);
    case 4:
      return p.set(run<uint32_t>, std::move(s), tiles);
    case 8:
      return p.set(run<uint64_t>, std::move(s), tiles);
    default:
      decline("elements of this width");
  }
}

}  // namespace

void provide_transpose(Plugin& p) {
  p.kernel("tenon.cpu.transpose/1", "Transpose")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input({TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_BFLOAT16, TN_INT8, TN_INT16, TN_INT32, TN_INT64,
              TN_UINT8, TN_UINT16, TN_UINT32, TN_UINT64, TN_BOOL})
      .plan<plan>();
}

}  // namespace tenon::cpu
