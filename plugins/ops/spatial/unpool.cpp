// What undoes windows: MaxUnpool puts elements back where MaxPool found them; Col2Im adds columns of blocks
// back into an image.
#include "families.hpp"
#include "spatial/window_kernels.hpp"
#include "support/define.hpp"
#include "support/run_errors.hpp"

namespace tenon::reference {
namespace {

// MaxUnpool: indices count elements of the pooled image's own size; a larger output_shape holds that image at
// its beginning. Where an index is named twice, the last element stays.
struct UnpoolState : Base {
  Dims image;  // the size that kernel, strides and pads give
  int64_t count = 0, bytes = 0;
};
int unpool_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<UnpoolState>(a);
  std::memset(a->outputs[0], 0, static_cast<size_t>(s.out[0].count * s.bytes));
  const auto* indices = in<int64_t>(a, 1);
  const int rank = s.out[0].rank();
  for (int64_t i = 0; i < s.in[0].count; ++i) {
    int64_t rest = indices[i], place = 0, stride = 1;
    if (rest < 0 || rest >= s.count) return value_fail(a, "MaxUnpool: operand I", rest, 0, s.count - 1);
    for (int k = rank; k-- > 0; stride *= s.out[0].dim(k)) {
      const int64_t size = s.image[static_cast<size_t>(k)];
      place += rest % size * stride;
      rest /= size;
    }
    std::memcpy(out<char>(a) + place * s.bytes, in<char>(a, 0) + i * s.bytes, static_cast<size_t>(s.bytes));
  }
  return run_ok;
}
void plan_unpool(const PlanView& v, Planned& p) {
  auto s = make_state<UnpoolState>(v);
  const auto &x = s->in[0].dims, &y = s->out[0].dims;
  if (x.size() < 3 || s->in[1].dims != x || y.size() != x.size())
    fail("MaxUnpool: operand I has shape " + dims_text(s->in[1].dims) + "; expected that of X, " +
         dims_text(x));
  const size_t axes = x.size() - 2;
  const Dims kernel = window_list(v, "kernel_shape", axes, 1, 1),
             strides = window_list(v, "strides", axes, 1, 1), pads = window_list(v, "pads", 2 * axes, 0, 0);
  s->image = {x[0], x[1]};
  for (size_t i = 0; i < axes; ++i)
    s->image.push_back(checked_mul(x[i + 2] - 1, strides[i]) + kernel[i] - pads[i] - pads[i + axes]);
  for (size_t i = 0; i < y.size(); ++i)
    if (y[i] < s->image[i])
      fail("MaxUnpool: operand output_shape " + dims_text(y) + " is smaller than the image " +
           dims_text(s->image));
  s->count = element_count(s->image);
  s->bytes = element_bytes(s->in[0].dtype);
  finish(v, p, unpool_fn, std::move(s), 1, 1);
}

// Col2Im: each element of the image is the sum of its appearances in the blocks; integers wrap, bool is their
// "or".
struct ColumnsState : Base {
  size_t axes = 0;
  int64_t lanes = 1;
  Dims strides, dilations, pads;
  tn_dtype part = TN_FLOAT32;
};
template <class C>
C plus(C a, C b) noexcept {
  if constexpr (std::is_same_v<C, double>)
    return a + b;
  else
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
template <class C>
int columns_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ColumnsState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile);
  const auto load = loader<C>(s.part);
  const auto store = storer<C>(s.part);
  const size_t axes = s.axes;
  int64_t block_dims[max_rank], grid[max_rank], taps = 1, blocks = 1;
  for (size_t k = 0; k < axes; ++k) {
    block_dims[k] = integer_at(a->inputs[2], s.in[2].dtype, static_cast<int64_t>(k));
    const int64_t image = s.out[0].dims[k + 2];
    if (block_dims[k] < 1 || block_dims[k] > (int64_t{1} << 40) ||
        integer_at(a->inputs[1], s.in[1].dtype, static_cast<int64_t>(k)) != image)
      return run_fail(a, run_bad_operand,
                      "Col2Im: operands image_shape and block_shape must hold sizes of 1 or more");
    const int64_t reach = s.dilations[k] * (block_dims[k] - 1) + 1,
                  room = image + s.pads[k] + s.pads[k + axes] - reach;
    grid[k] = room < 0 ? 0 : room / s.strides[k] + 1;
    if (__builtin_mul_overflow(taps, block_dims[k], &taps) ||
        __builtin_mul_overflow(blocks, grid[k], &blocks))
      return run_fail(a, run_bad_operand, "Col2Im: operand block_shape holds sizes that are too large");
  }
  int64_t wanted;
  if (__builtin_mul_overflow(taps, s.out[0].dims[1], &wanted) || wanted != s.in[0].dims[1] ||
      blocks != s.in[0].dims[2]) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "Col2Im: operand input has %lld rows of %lld blocks; operands image_shape and block_shape "
                  "give blocks of "
                  "%lld elements, %lld of them",
                  static_cast<long long>(s.in[0].dims[1]), static_cast<long long>(s.in[0].dims[2]),
                  static_cast<long long>(taps), static_cast<long long>(blocks));
    return run_fail(a, run_bad_operand, text);
  }
  for (int64_t at = r.begin; at < r.end; ++at) {
    int64_t index[max_rank], rest = at;
    for (size_t k = axes; k-- > 0; rest /= s.out[0].dims[k + 2]) index[k] = rest % s.out[0].dims[k + 2];
    const int64_t first = rest * taps * blocks;  // rest: image and channel
    for (int64_t lane = 0; lane < s.lanes; ++lane) {
      C sum{}, x;
      for (int64_t tap = 0; tap < taps; ++tap) {
        int64_t left = tap, column = 0, stride = 1;
        bool inside = true;
        for (size_t k = axes; k-- > 0 && inside; left /= block_dims[k]) {
          const int64_t start = index[k] + s.pads[k] - left % block_dims[k] * s.dilations[k];
          inside = start >= 0 && start % s.strides[k] == 0 && start / s.strides[k] < grid[k];
          column += start / s.strides[k] * stride;
          stride *= grid[k];
        }
        if (!inside) continue;
        load(a->inputs[0], (first + tap * blocks + column) * s.lanes + lane, 1, 1, &x);
        sum = plus(sum, x);
      }
      store(&sum, 1, a->outputs[0], at * s.lanes + lane);
    }
  }
  return run_ok;
}
void plan_columns(const PlanView& v, Planned& p) {
  auto s = make_state<ColumnsState>(v);
  const auto &x = s->in[0].dims, &y = s->out[0].dims;
  s->axes = static_cast<size_t>(s->in[1].count);
  if (x.size() != 3 || y.size() != s->axes + 2 || s->in[2].count != s->in[1].count || y[0] != x[0])
    fail("Col2Im: operands have shapes " + dims_text(x) + ", " + dims_text(s->in[1].dims) + " and " +
         dims_text(s->in[2].dims) + "; expected [N, C * block, L] and two lists of one length");
  s->strides = window_list(v, "strides", s->axes, 1, 1);
  s->dilations = window_list(v, "dilations", s->axes, 1, 1);
  s->pads = window_list(v, "pads", 2 * s->axes, 0, 0);
  s->part = s->in[0].dtype;
  if (s->part == TN_COMPLEX64 || s->part == TN_COMPLEX128) {
    s->lanes = 2;
    s->part = s->part == TN_COMPLEX64 ? TN_FLOAT32 : TN_FLOAT64;
  }
  const int64_t n = s->out[0].count, work = n * 64;
  visit_domain(s->part, [&](auto c) {
    using C = decltype(c);
    (void)loader<C>(s->part);
    finish(v, p, columns_fn<C>, std::move(s), n, work);
  });
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void infer_unpool(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  if (!ranked(c, 0, "X", 3)) return c.set_unranked(0, dtype);
  const auto x = c.dims(0);
  const size_t axes = x.size() - 2;
  require(c.attrs().has("kernel_shape"), "attribute 'kernel_shape' is missing");
  const Dims kernel = list_attr(c, "kernel_shape", axes, 1, 1), strides = list_attr(c, "strides", axes, 1, 1),
             pads = list_attr(c, "pads", 2 * axes, 0, 0);
  if (ranked(c, 1, "I", 3))
    require(c.rank(1) == c.rank(0),
            "operand I has shape " + c.text(c.dims(1)) + "; expected that of X, " + c.text(x));
  std::vector<tn_dim> out{x[0], x[1]};
  for (size_t i = 0; i < axes; ++i) {
    const tn_dim full = c.add(c.mul(c.sub(x[i + 2], 1), strides[i]), kernel[i]);
    out.push_back(c.sub(full, pads[i] + pads[i + axes]));
    if (const auto v = c.number(out.back()))
      require(*v >= 0, "axis " + text_of(static_cast<int64_t>(i) + 2) + " would have " + text_of(*v) +
                           " elements: the pads take more than there is");
  }
  if (!c.has_input(2)) return c.set(0, dtype, out);
  ranked(c, 2, "output_shape", 1, 1);
  const auto said = c.elements(2);
  if (!said) return c.set_unknown_dims(0, dtype, static_cast<uint32_t>(out.size()));
  require(said->size() == out.size(), "operand output_shape has " +
                                          text_of(static_cast<int64_t>(said->size())) +
                                          " numbers; expected " + text_of(c.rank(0)));
  for (size_t i = 0; i < out.size(); ++i) {
    const auto wanted = c.number((*said)[i]), least_size = c.number(out[i]);
    require(!wanted || *wanted >= 0,
            "operand output_shape is " + c.text(*said) + "; expected sizes of 0 or more");
    require(!(wanted && least_size && *wanted < *least_size),
            "operand output_shape is " + c.text(*said) + "; the image alone is " + c.text(out));
  }
  c.set(0, dtype, *said);
}

void infer_col2im(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  require(dtype != TN_STRING, "operand input holds text, which cannot be added");
  const bool has_x = ranked(c, 0, "input", 3, 3);
  ranked(c, 1, "image_shape", 1, 1);
  ranked(c, 2, "block_shape", 1, 1);
  const auto image = c.elements(1), block = c.elements(2);
  std::optional<int64_t> axes;
  for (uint32_t i = 1; i < 3 && !axes; ++i)
    if (const auto e = c.elements(i))
      axes = static_cast<int64_t>(e->size());
    else if (c.has_rank(i))
      axes = c.number(c.dims(i)[0]);
  if (!axes) return c.set_unranked(0, dtype);
  require(*axes >= 1 && *axes <= 14,
          "operand image_shape has " + text_of(*axes) + " numbers; expected 1 to 14");
  const auto n = static_cast<size_t>(*axes);
  require((!image || image->size() == n) && (!block || block->size() == n),
          "operands image_shape and block_shape have different lengths");
  const Dims strides = list_attr(c, "strides", n, 1, 1), dilations = list_attr(c, "dilations", n, 1, 1),
             pads = list_attr(c, "pads", 2 * n, 0, 0);
  std::vector<tn_dim> out{has_x ? c.dims(0)[0] : c.data_dependent(0, 0), 0};
  const auto block_sizes = block ? numbers(c, *block) : std::nullopt;
  const auto taps = block_sizes ? count_up_to(*block_sizes, int64_t{1} << 40) : std::nullopt;
  if (block_sizes)
    require(taps && *taps >= 1, "operand block_shape is " + c.text(*block) + "; expected sizes of 1 or more");
  if (has_x && taps) {
    const tn_dim rows = c.dims(0)[1];
    if (const auto v = c.number(rows))
      require(*v % *taps == 0, "operand input has " + text_of(*v) + " rows, which blocks of " +
                                   text_of(*taps) + " elements do not divide");
    out[1] = c.floordiv(rows, *taps);
  } else {
    out[1] = c.data_dependent(0, 1);
  }
  tn_dim blocks = 1;
  for (size_t i = 0; i < n; ++i) {
    out.push_back(image ? (*image)[i] : c.data_dependent(0, static_cast<uint32_t>(i) + 2));
    if (!image || !block_sizes) continue;
    if (const auto v = c.number(out.back())) {
      const int64_t reach = dilations[i] * ((*block_sizes)[i] - 1) + 1,
                    room = *v + pads[i] + pads[i + n] - reach;
      require(*v >= 0 && room >= 0, "operand image_shape is " + c.text(*image) + ", in which no block of " +
                                        c.text(*block) + " fits");
      blocks = c.mul(blocks, room / strides[i] + 1);
    } else {
      blocks = c.data_dependent(0, static_cast<uint32_t>(i) + 2);
    }
  }
  if (has_x && image && block_sizes)
    require(!c.number(blocks) || !c.differ(c.dims(0)[2], blocks),
            "operand input has shape " + c.text(c.dims(0)) + "; operands image_shape and block_shape give " +
                c.text(blocks) + " blocks");
  c.set(0, dtype, out);
}

}  // namespace

void add_unpool(Plugin& p) {
  define(p, "MaxUnpool").infer<infer_unpool>();
  reference::reference_kernel(p, "MaxUnpool").plan<reference::plan_unpool>();
  define(p, "Col2Im").infer<infer_col2im>();
  reference::reference_kernel(p, "Col2Im").plan<reference::plan_columns>();
}

}  // namespace tenon::ops
