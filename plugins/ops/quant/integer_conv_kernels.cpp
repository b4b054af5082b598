// ConvInteger, QLinearConv: places of the result are rows of a product, channels its columns. Convolutions of
// few channels a group (depthwise ones) run tap by tap along the places instead.
#include "quant/integer_product.hpp"
#include "spatial/window_kernels.hpp"

namespace tenon::reference {
namespace {

constexpr int64_t few_channels = 3;

struct ConvState : Base {
  Window w;
  int64_t batch = 0, groups = 1, in_channels = 0, out_channels = 0;  // channels of one group
  bool quantized = false;  // QLinearConv: operands x, scale, zero, w, scale, zero, scale, zero, bias
  size_t weights = 1, x_zero = 2, w_zero = 3;
  PackedColumns packed;
  int64_t depth() const noexcept { return in_channels * w.kernel_count(); }
  int64_t row_blocks() const noexcept { return (w.out_count() + integer_rows - 1) / integer_rows; }
  int64_t column_blocks() const noexcept { return (out_channels + integer_columns - 1) / integer_columns; }
};

/// One tap of one channel for places [first, first + count): the operand less its zero point, 0 in the
/// padding.
void load_tap(const ConvState& s, const void* x, int64_t plane, int32_t zero, int64_t k, int64_t first,
              int64_t count, int16_t* to, int64_t to_stride) noexcept {
  const Window& w = s.w;
  const int64_t kw = k % w.kernel[2], kh = k / w.kernel[2] % w.kernel[1],
                kd = k / (w.kernel[2] * w.kernel[1]) % w.kernel[0], channel = k / w.kernel_count();
  const int64_t base = plane + channel * w.in_count();
  int64_t ow = first % w.out[2], oh = first / w.out[2] % w.out[1], od = first / (w.out[2] * w.out[1]);
  const auto clear = [&](int64_t from, int64_t end) {
    for (int64_t i = from; i < end; ++i) to[i * to_stride] = 0;
  };
  while (count > 0) {
    const int64_t n = std::min(count, w.out[2] - ow);
    const int64_t id = od * w.stride[0] - w.pad[0] + kd * w.dilation[0],
                  ih = oh * w.stride[1] - w.pad[1] + kh * w.dilation[1];
    if (id < 0 || id >= w.in[0] || ih < 0 || ih >= w.in[1]) {
      clear(0, n);
    } else {
      const int64_t start = ow * w.stride[2] - w.pad[2] + kw * w.dilation[2], step = w.stride[2];
      const int64_t before = start < 0 ? std::min(n, (-start + step - 1) / step) : 0;
      const int64_t inside = start + before * step < w.in[2]
                                 ? std::min(n - before, (w.in[2] - 1 - start - before * step) / step + 1)
                                 : 0;
      clear(0, before);
      if (inside > 0)
        load_integers(x, s.in[0].dtype, base + (id * w.in[1] + ih) * w.in[2] + start + before * step, step,
                      inside, zero, to + before * to_stride, to_stride);
      clear(before + inside, n);
    }
    to += n * to_stride;
    count -= n;
    ow = 0;
    if (++oh == w.out[1]) {
      oh = 0;
      ++od;
    }
  }
}

int32_t weight_zero(const tn_kernel_args* a, const ConvState& s, int64_t channel) noexcept {
  return zero_point(a, s, s.w_zero, s.has_in(s.w_zero) && s.in[s.w_zero].count > 1 ? channel : 0);
}

/// Sums of `count` places of one channel, `stride` apart, to the result.
void store_places(const tn_kernel_args* a, const ConvState& s, const int32_t* sums, int64_t stride,
                  int64_t image, int64_t channel, int64_t first, int64_t count) noexcept {
  const int64_t at = (image * s.groups * s.out_channels + channel) * s.w.out_count() + first;
  if (!s.quantized) {
    for (int64_t i = 0; i < count; ++i) out<int32_t>(a)[at + i] = sums[i * stride];
    return;
  }
  const float by = *in<float>(a, 1) * in<float>(a, 4)[s.in[4].count > 1 ? channel : 0] / *in<float>(a, 6);
  const uint32_t bias = s.has_in(8) ? static_cast<uint32_t>(in<int32_t>(a, 8)[channel]) : 0;
  const int32_t zero = zero_point(a, s, 7, 0);
  const bool with_sign = s.out[0].dtype == TN_INT8;
  const int32_t low = with_sign ? -128 : 0, high = with_sign ? 127 : 255;
  auto* y = out<uint8_t>(a) + at;
  for (int64_t i = 0; i < count; ++i)
    y[i] = static_cast<uint8_t>(requantized(
        static_cast<int32_t>(static_cast<uint32_t>(sums[i * stride]) + bias), by, zero, low, high));
}

struct Place {
  int64_t image, group, first, count, plane;
};
Place place_of(const ConvState& s, int64_t unit) noexcept {
  const int64_t blocks = s.row_blocks(), first = unit % blocks * integer_rows,
                group = unit / blocks % s.groups, image = unit / (blocks * s.groups);
  return {image, group, first, std::min(integer_rows, s.w.out_count() - first),
          (image * s.groups + group) * s.in_channels * s.w.in_count()};
}

int conv_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<ConvState>(a);
  const int64_t columns = s.column_blocks(), depth = s.depth();
  const auto r = tile_range(s.batch * s.groups * s.row_blocks() * columns, s.tiles, tile);
  const int32_t x_zero = zero_point(a, s, s.x_zero, 0);
  void* scratch = workspace<void>(a, worker);
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const Place at = place_of(s, unit / columns);
    const int64_t j0 = unit % columns * integer_columns, n = std::min(integer_columns, s.out_channels - j0);
    const auto rows_to = [&](int64_t k0, int64_t kc, int16_t* to) {
      for (int64_t k = 0; k < kc; ++k)
        load_tap(s, a->inputs[0], at.plane, x_zero, k0 + k, at.first, at.count, to + k, kc);
    };
    const auto columns_to = [&](int64_t k0, int64_t kc, int16_t* to) -> const int16_t* {
      if (s.packed.data) return s.packed.at(at.group, j0, k0);
      for (int64_t j = 0; j < n; ++j) {
        const int64_t channel = at.group * s.out_channels + j0 + j;
        load_integers(a->inputs[s.weights], s.in[s.weights].dtype, channel * depth + k0, 1, kc,
                      weight_zero(a, s, channel), to + j * kc);
      }
      return to;
    };
    const int32_t* sums = multiply_block(at.count, n, depth, scratch, rows_to, columns_to);
    for (int64_t j = 0; j < n; ++j)
      store_places(a, s, sums + j, integer_columns, at.image, at.group * s.out_channels + j0 + j, at.first,
                   at.count);
  }
  return run_ok;
}

int few_channels_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ConvState>(a);
  const int64_t depth = s.depth();
  const auto r = tile_range(s.batch * s.groups * s.row_blocks(), s.tiles, tile);
  const int32_t x_zero = zero_point(a, s, s.x_zero, 0);
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const Place at = place_of(s, unit);
    uint32_t sums[few_channels][integer_rows] = {};  // unsigned, so that they wrap
    int16_t tap[integer_rows];
    for (int64_t k = 0; k < depth; ++k) {
      load_tap(s, a->inputs[0], at.plane, x_zero, k, at.first, at.count, tap, 1);
      for (int64_t j = 0; j < s.out_channels; ++j) {
        const int64_t channel = at.group * s.out_channels + j;
        int16_t weight = 0;
        load_integers(a->inputs[s.weights], s.in[s.weights].dtype, channel * depth + k, 1, 1,
                      weight_zero(a, s, channel), &weight);
        for (int64_t i = 0; i < at.count; ++i)
          sums[j][i] += static_cast<uint32_t>(int32_t{weight} * int32_t{tap[i]});
      }
    }
    for (int64_t j = 0; j < s.out_channels; ++j)
      store_places(a, s, reinterpret_cast<const int32_t*>(sums[j]), 1, at.image,
                   at.group * s.out_channels + j, at.first, at.count);
  }
  return run_ok;
}

void plan_integer_conv(const PlanView& v, Planned& p) {
  auto s = make_state<ConvState>(v);
  const std::string op(v.op_name());
  s->quantized = op == "QLinearConv";
  if (s->quantized) {
    s->weights = 3;
    s->w_zero = 5;
  }
  const auto &x = s->in[0].dims, &w = s->in[s->weights].dims, &y = s->out[0].dims;
  if (x.size() < 3 || w.size() != x.size())
    fail(format("%s needs X and W of one rank of at least 3; found %s and %s", op.c_str(),
                dims_text(x).c_str(), dims_text(w).c_str()));
  s->groups = v.attrs().get_int("group", 1);
  if (s->groups < 1 || w[0] % s->groups || x[1] != checked_mul(w[1], s->groups))
    fail(format("%s: X %s, W %s and group %lld do not fit: X must have %lld * group channels", op.c_str(),
                dims_text(x).c_str(), dims_text(w).c_str(), static_cast<long long>(s->groups),
                static_cast<long long>(w[1])));
  s->w = window_of(v, x, y, Span<const int64_t>(w).subspan(2), false);
  s->batch = x[0];
  s->in_channels = w[1];
  s->out_channels = w[0] / s->groups;
  if (y[0] != x[0] || y[1] != w[0]) fail(op + "'s result was planned with another batch or channel count");
  const auto numbers = [&](size_t i, const char* name, bool by_channel) {
    if (!s->has_in(i) || s->in[i].count == 1 || (by_channel && s->in[i].count == w[0])) return;
    fail(format("%s's %s has shape %s; expected one number%s", op.c_str(), name,
                dims_text(s->in[i].dims).c_str(), by_channel ? ", or one for each result channel" : ""));
  };
  numbers(s->x_zero, "zero point of X", false);
  numbers(s->w_zero, "zero point of W", true);
  if (s->quantized) {
    numbers(1, "scale of X", false);
    numbers(4, "scale of W", true);
    numbers(6, "scale of Y", false);
    numbers(7, "zero point of Y", false);
    if (s->has_in(8) && s->in[8].count != w[0])
      fail(format("QLinearConv's bias has shape %s; expected one number for each of %lld channels",
                  dims_text(s->in[8].dims).c_str(), static_cast<long long>(w[0])));
  }
  const int64_t places = s->batch * s->groups * s->row_blocks();
  const int64_t work = checked_mul(s->out[0].count, std::max<int64_t>(s->depth() / 8, 1));
  if (s->out_channels <= few_channels) return finish(v, p, few_channels_fn, std::move(s), places, work);
  const int64_t depth = s->depth();
  s->packed = packed_columns(v, static_cast<uint32_t>(s->weights), static_cast<uint32_t>(s->w_zero),
                             {s->groups, s->out_channels, depth, s->out_channels * depth, depth, 1});
  const int64_t units = places * s->column_blocks();
  finish(v, p, conv_fn, std::move(s), units, work, integer_bytes);
}

}  // namespace

void provide_integer_conv(Plugin& p) {
  reference_kernel(p, "ConvInteger").plan<plan_integer_conv>();
  reference_kernel(p, "QLinearConv").plan<plan_integer_conv>();
}

}  // namespace tenon::reference
