// Operators that only move bytes, for every element of whole bytes: Concat, Split, Slice with step 1 on the
// last moved axis, Gather along an axis.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "families.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

const std::vector<tn_dtype> any_width{TN_FLOAT32, TN_FLOAT64, TN_FLOAT16, TN_BFLOAT16, TN_INT8,
                                      TN_INT16,   TN_INT32,   TN_INT64,   TN_UINT8,    TN_UINT16,
                                      TN_UINT32,  TN_UINT64,  TN_BOOL};

// ---------------------------------------------------------------- Concat, Split: `outer` rows cut into parts
struct Parts {
  int64_t outer, total;  // bytes of a whole row
  std::vector<int64_t> offset, bytes;
  uint32_t tiles;
};

template <bool Join>
int run_parts(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<Parts>(a);
  const Range r = tile_range(s.outer, s.tiles, tile);
  for (size_t i = 0; i < s.bytes.size(); ++i) {
    const auto n = static_cast<size_t>(s.bytes[i]);
    char* part = static_cast<char*>(Join ? a->inputs[i] : a->outputs[i]);
    char* whole = static_cast<char*>(Join ? a->outputs[0] : a->inputs[0]) + s.offset[i];
    if (n == 0 || !part) continue;
    for (int64_t o = r.begin; o < r.end; ++o) {
      if constexpr (Join)
        std::memcpy(whole + o * s.total, part + o * s.bytes[i], n);
      else
        std::memcpy(part + o * s.bytes[i], whole + o * s.total, n);
    }
  }
  return 0;
}

template <bool Join>
void plan_parts(const PlanView& v, Planned& p) {
  const auto whole = Join ? v.output(0) : v.input(0);
  const int64_t axis_attr = v.attrs().get_int("axis", 0),
                axis = axis_attr < 0 ? axis_attr + whole.rank() : axis_attr;
  if (axis < 0 || axis >= whole.rank()) fail("the axis is outside the operand's rank");
  auto s = std::make_unique<Parts>();
  int64_t inner = dtype_bytes(whole.dtype());
  s->outer = 1;
  for (int i = 0; i < whole.rank(); ++i) {
    if (i < axis)
      s->outer *= whole.dim(i);
    else if (i > axis)
      inner *= whole.dim(i);
  }
  const uint32_t count = Join ? v.input_count() : v.output_count();
  int64_t at = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const bool there = Join ? v.has_input(i) : v.has_output(i);
    if (!there && !Join) decline("a part that nobody reads");
    const int64_t n = there ? (Join ? v.input(i) : v.output(i)).dim(static_cast<int>(axis)) * inner : 0;
    s->offset.push_back(at);
    s->bytes.push_back(n);
    at += n;
  }
  s->total = at;
  s->tiles = static_cast<uint32_t>(
      std::min<int64_t>(tiles_for(s->outer * s->total, 65536, v.threads()), std::max<int64_t>(1, s->outer)));
  const uint32_t tiles = s->tiles;
  p.set(run_parts<Join>, std::move(s), tiles);
}

// ---------------------------------------------------------------- Slice
struct Cut {
  struct Axis {
    int64_t size, stride, start;
  };  // of the result; strides in bytes in the operand, steps included
  std::vector<Axis> outer;
  int64_t rows = 1, row_bytes = 0, base = 0;
  uint32_t tiles = 1;
};

int run_slice(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<Cut>(a);
  const char* x = in<char>(a, 0) + s.base;
  char* y = out<char>(a);
  const Range r = tile_range(s.rows, s.tiles, tile);
  for (int64_t row = r.begin; row < r.end; ++row) {
    int64_t rest = row, from = 0;
    for (size_t i = s.outer.size(); i-- > 0;) {
      from += rest % s.outer[i].size * s.outer[i].stride;
      rest /= s.outer[i].size;
    }
    std::memcpy(y + row * s.row_bytes, x + from, static_cast<size_t>(s.row_bytes));
  }
  return 0;
}

std::vector<int64_t> numbers(const PlanView& v, uint32_t i) {
  const auto o = v.input(i);
  if (!o.raw().data) decline("starts, ends, axes or steps are not known while planning");
  std::vector<int64_t> r;
  const auto t = o.tensor();
  for (int64_t k = 0, n = t.count(); k < n; ++k) r.push_back(t.int_at(k));
  return r;
}

void plan_slice(const PlanView& v, Planned& p) {
  const auto x = v.input(0), y = v.output();
  const auto rank = static_cast<size_t>(x.rank());
  Dims start(rank, 0), step(rank, 1);
  const auto starts = numbers(v, 1);
  const auto axes = v.has_input(3) ? numbers(v, 3) : std::vector<int64_t>();
  const auto steps = v.has_input(4) ? numbers(v, 4) : std::vector<int64_t>();
  for (size_t i = 0; i < starts.size(); ++i) {
    int64_t axis = v.has_input(3) && i < axes.size() ? axes[i] : static_cast<int64_t>(i);
    axis += axis < 0 ? static_cast<int64_t>(rank) : 0;
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) fail("an axis is outside the operand's rank");
    const auto at = static_cast<size_t>(axis);
    const int64_t d = x.dims()[at], by = i < steps.size() ? steps[i] : 1;
    int64_t from = starts[i] < 0 ? starts[i] + d : starts[i];
    from = d == 0 ? 0 : std::clamp<int64_t>(from, 0, by > 0 ? d : d - 1);
    start[at] = from, step[at] = by;
  }
  auto s = std::make_unique<Cut>();
  const int64_t element = dtype_bytes(x.dtype());
  Dims stride(rank, element);
  for (size_t i = rank; i-- > 1;) stride[i - 1] = stride[i] * x.dims()[i];
  // The innermost run of whole axes, and the axis before it when its step is 1, is one copy.
  s->row_bytes = element;
  size_t inner = rank;
  while (inner > 0 && step[inner - 1] == 1) {
    --inner;
    s->row_bytes *= y.dims()[inner];
    if (start[inner] != 0 || y.dims()[inner] != x.dims()[inner]) break;
  }
  for (size_t i = 0; i < rank; ++i) s->base += start[i] * stride[i];
  for (size_t i = 0; i < inner; ++i) {
    s->outer.push_back({y.dims()[i], stride[i] * step[i], 0});
    s->rows *= y.dims()[i];
  }
  if (y.count() == 0) s->rows = 0;
  s->tiles = static_cast<uint32_t>(std::min<int64_t>(tiles_for(s->rows * s->row_bytes, 65536, v.threads()),
                                                     std::max<int64_t>(1, s->rows)));
  const uint32_t tiles = s->tiles;
  p.set(run_slice, std::move(s), tiles);
}

// ---------------------------------------------------------------- Gather
struct Rows {
  int64_t outer, axis, count, bytes;  // result [outer, count, bytes] from operand [outer, axis, bytes]
  bool wide;                          // int64 indices
  uint32_t tiles;
};

int outside(const tn_kernel_args* a, int64_t index, int64_t size) noexcept {
  char text[160];
  std::snprintf(text, sizeof text, "Gather: index %lld is outside [%lld, %lld); correct the indices",
                static_cast<long long>(index), static_cast<long long>(-size), static_cast<long long>(size));
  if (a->api) a->api->fail(a->run, {text, std::strlen(text)});
  return 1;
}

int run_gather(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<Rows>(a);
  const Range r = tile_range(s.outer * s.count, s.tiles, tile);
  for (int64_t i = r.begin; i < r.end; ++i) {
    const int64_t j = i % s.count;
    const int64_t given = s.wide ? in<int64_t>(a, 1)[j] : in<int32_t>(a, 1)[j];
    const int64_t at = given < 0 ? given + s.axis : given;
    if (at < 0 || at >= s.axis) return outside(a, given, s.axis);
    std::memcpy(out<char>(a) + i * s.bytes, in<char>(a, 0) + (i / s.count * s.axis + at) * s.bytes,
                static_cast<size_t>(s.bytes));
  }
  return 0;
}

void plan_gather(const PlanView& v, Planned& p) {
  const auto x = v.input(0), index = v.input(1);
  const int64_t axis_attr = v.attrs().get_int("axis", 0),
                axis = axis_attr < 0 ? axis_attr + x.rank() : axis_attr;
  if (axis < 0 || axis >= x.rank()) fail("the axis is outside the operand's rank");
  auto s = std::make_unique<Rows>();
  s->outer = 1;
  s->bytes = dtype_bytes(x.dtype());
  for (int i = 0; i < x.rank(); ++i) {
    if (i < axis)
      s->outer *= x.dim(i);
    else if (i > axis)
      s->bytes *= x.dim(i);
  }
  s->axis = x.dim(static_cast<int>(axis));
  s->count = index.count();
  s->wide = index.dtype() == TN_INT64;
  s->tiles = tiles_for(s->outer * s->count * s->bytes, 65536, v.threads());
  const uint32_t tiles = s->tiles;
  p.set(run_gather, std::move(s), tiles);
}

}  // namespace

void provide_movement(Plugin& p) {
  p.kernel("tenon.cpu.concat/1", "Concat")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(any_width)
      .plan<plan_parts<true>>();
  p.kernel("tenon.cpu.split/1", "Split")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(any_width)
      .plan<plan_parts<false>>();
  p.kernel("tenon.cpu.slice/1", "Slice").flags(TN_KERNEL_DETERMINISTIC).input(any_width).plan<plan_slice>();
  p.kernel("tenon.cpu.gather/1", "Gather")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(any_width)
      .input({TN_INT64, TN_INT32})
      .plan<plan_gather>();
}

}  // namespace tenon::cpu
