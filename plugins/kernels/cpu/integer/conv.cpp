// ConvInteger, QLinearConv, tenon::QuantizedConv with constant weights.
//
// A piece of the image is copied, unsigned, padded with its zero point and split by the strides into
// `phases`, such that a tap of the kernel is a shift: position q = row * width + column of the result needs
// place q + the tap's offset of each tap, and 32 positions in a row make a panel without any gathering. A row
// has places past the piece's last column; what is computed there is thrown away. The weights are the
// product's rows. Groups, depthwise ones too, are products of few rows.
#include <algorithm>

#include "conv.hpp"
#include "families.hpp"
#include "integer/product.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

constexpr int64_t channel_block = 64;
constexpr int64_t piece_bytes = 256 * 1024;  // of phases at once, so that they stay in the second-level cache

struct ConvState {
  Conv c;
  int64_t depth = 0, stride = 0;                    // of a group's product; bytes between rows of weights
  int64_t rows = 1, columns = 1;                    // of the result, in a piece
  int64_t width = 0, plane = 0, image = 0;          // places in a row, one channel of a phase, all
  std::vector<std::pair<int64_t, int64_t>> phases;  // first row, first column
  std::vector<int64_t> taps;                        // offset of each element of the depth, to whole quads
  uint32_t unit_parts = 1, row_parts = 1, column_parts = 1, channel_parts = 1;  // of the tiles
  tn_dtype x = TN_UINT8, w = TN_INT8, y = TN_INT32;
  uint32_t weights_at = 1;  // the operand
  ZeroPoint x_zero, w_zero, y_zero;
  bool quantised = false, bias = false, real_bias = false, w_scale_a_channel = false;
  const uint8_t* weights = nullptr;      // [m][stride], signed, then a row of ones
  const int32_t* weight_sums = nullptr;  // a channel each
  MultiplyPanel multiply = nullptr;
  int64_t in_group() const noexcept { return c.c / c.group; }
  int64_t out_group() const noexcept { return c.m / c.group; }
  int64_t zero_of_weights(const tn_kernel_args* a, int64_t m) const noexcept {
    return shifted_zero(w_zero.at(a, m), false, w);
  }
};

/// In a worker's workspace.
struct Scratch {
  uint8_t *image, *panel;
  int32_t *products, *position_sums, *adds, *factors;
  float* by;
  uint8_t* bytes;
  static int64_t image_room(const ConvState& s) { return (s.image + 2 * panel_columns + 63) / 64 * 64; }
  static uint64_t size(const ConvState& s) {
    return static_cast<uint64_t>(image_room(s) + s.stride * panel_columns + channel_block * panel_columns) +
           static_cast<uint64_t>((channel_block + 1) * panel_columns + 3 * s.out_group()) * sizeof(int32_t);
  }
  Scratch(const ConvState& s, void* base) noexcept
      : image(static_cast<uint8_t*>(base)),
        panel(image + image_room(s)),
        products(reinterpret_cast<int32_t*>(panel + s.stride * panel_columns)),
        position_sums(products + channel_block * panel_columns),
        adds(position_sums + panel_columns),
        factors(adds + s.out_group()),
        by(reinterpret_cast<float*>(factors + s.out_group())),
        bytes(reinterpret_cast<uint8_t*>(by + s.out_group())) {}
};

/// Channels [first, end) of one group, a rectangle of the result.
struct Piece {
  int64_t image, group, first, end, row, rows, column, columns;
};

/// One row of a phase: columns first + x * step of a row of the image.
void copy_row(const uint8_t* from, int64_t first, int64_t step, int64_t size, int64_t count, uint8_t flip,
              uint8_t outside, uint8_t* to) noexcept {
  const int64_t begin = first >= 0 ? 0 : std::min(count, (-first + step - 1) / step);
  const int64_t end = std::clamp<int64_t>(first >= size ? 0 : (size - 1 - first) / step + 1, begin, count);
  std::fill(to, to + begin, outside);
  if (step == 1 && flip == 0)
    std::copy_n(from + first + begin, end - begin, to + begin);
  else if (step == 1)
    flip_row(from + first + begin, end - begin, flip, to + begin);
  else
    for (int64_t x = begin; x < end; ++x) to[x] = static_cast<uint8_t>(from[first + x * step] ^ flip);
  std::fill(to + end, to + count, outside);
}

void lay_out(const ConvState& s, const uint8_t* x, const Piece& p, uint8_t outside, uint8_t* to) noexcept {
  const Conv& c = s.c;
  const uint8_t flip = flip_to(true, s.x);
  const int64_t height = p.rows + (c.kh - 1) * c.dh / c.sh;
  for (const auto& [first_row, first_column] : s.phases)
    for (int64_t channel = 0; channel < s.in_group(); ++channel, to += s.plane)
      for (int64_t y = 0; y < height; ++y) {
        const int64_t from = (p.row + y) * c.sh + first_row - c.top;
        uint8_t* row = to + y * s.width;
        if (from < 0 || from >= c.h)
          std::fill(row, row + s.width, outside);
        else
          copy_row(x + (channel * c.h + from) * c.w, p.column * c.sw + first_column - c.left, c.sw, c.w,
                   s.width, flip, outside, row);
      }
}

/// Where positions of one panel go that the piece has: runs of places in the result's channel and in the
/// panel.
struct Runs {
  struct One {
    int64_t to, from, count;
  } runs[panel_columns];
  int count = 0;
};
Runs runs_of(const ConvState& s, const Piece& p, int64_t q, int64_t count) noexcept {
  Runs r;
  int64_t y = q / s.width, x = q % s.width;
  for (int64_t at = 0; at < count; ++y, x = 0) {
    const int64_t n = std::min(count - at, s.width - x), inside = std::min(n, p.columns - x);
    if (inside > 0) r.runs[r.count++] = {(p.row + y) * s.c.ow + p.column + x, at, inside};
    at += n;
  }
  return r;
}

/// What the channels of a piece add, and are multiplied by.
void read_channels(const ConvState& s, const tn_kernel_args* a, const Piece& p, int64_t x_zero,
                   const Scratch& t) noexcept {
  for (int64_t i = p.first; i < p.end; ++i) {
    const int64_t m = p.group * s.out_group() + i, w_zero = s.zero_of_weights(a, m), at = i - p.first;
    auto add = static_cast<uint32_t>(static_cast<uint64_t>(x_zero * (s.depth * w_zero - s.weight_sums[m])));
    if (s.bias) add += static_cast<uint32_t>(in<int32_t>(a, 8)[m]);
    t.adds[at] = static_cast<int32_t>(add);
    t.factors[at] = static_cast<int32_t>(-w_zero);
    if (!s.quantised) continue;
    t.by[at] = *in<float>(a, 1) * in<float>(a, 4)[s.w_scale_a_channel ? m : 0];
    if (!s.real_bias) t.by[at] /= *in<float>(a, 6);
  }
}

/// The sums of one panel's positions, of channels [first, first + channels) of the group, become the result.
void finish_channels(const ConvState& s, const tn_kernel_args* a, const Piece& p, const Runs& runs,
                     int64_t first, int64_t channels, bool factors, const Scratch& t) noexcept {
  const int64_t at = first - p.first, m = p.group * s.out_group() + first, pixels = s.c.oh * s.c.ow;
  const int64_t channel = (p.image * s.c.m + m) * pixels;
  const PanelRows rows{channels,       t.adds + at,
                       t.factors + at, factors ? t.position_sums : nullptr,
                       t.by + at,      s.real_bias ? in<float>(a, 8) + m : nullptr};
  const auto copy = [&](const auto* from, auto* to) {
    for (int64_t j = 0; j < channels; ++j, from += panel_columns, to += pixels)
      for (int i = 0; i < runs.count; ++i)
        std::copy_n(from + runs.runs[i].from, runs.runs[i].count, to + runs.runs[i].to);
  };
  if (!s.quantised) {
    finish_panel(t.products, rows);
    return copy(t.products, out<int32_t>(a) + channel);
  }
  uint8_t* to = out<uint8_t>(a) + channel;
  const bool whole = runs.count == 1 && runs.runs[0].count == panel_columns;
  finish_panel(t.products, rows, *in<float>(a, 6), s.y_zero.at(a), s.y == TN_INT8,
               whole ? to + runs.runs[0].to : t.bytes, whole ? pixels : panel_columns);
  if (!whole) copy(t.bytes, to);
}

/// Some channel has a zero point, so that the sums of positions are needed.
bool has_zero_points(const ConvState& s, const tn_kernel_args* a, const Piece& p) noexcept {
  for (int64_t m = p.first; m < (s.w_zero.many ? p.end : p.first + 1); ++m)
    if (s.zero_of_weights(a, p.group * s.out_group() + m) != 0) return true;
  return false;
}

void run_piece(const ConvState& s, const tn_kernel_args* a, const Piece& p, const Scratch& t) noexcept {
  const Conv& c = s.c;
  const int32_t x_zero = shifted_zero(s.x_zero.at(a), true, s.x);
  const bool factors = has_zero_points(s, a, p);
  read_channels(s, a, p, x_zero, t);
  const int64_t quads = s.stride / quad, places = (p.rows - 1) * s.width + p.columns;
  lay_out(s, in<uint8_t>(a, 0) + (p.image * c.c + p.group * s.in_group()) * c.h * c.w, p,
          static_cast<uint8_t>(x_zero), t.image);
  for (int64_t q = 0; q < places; q += panel_columns) {
    const Runs runs = runs_of(s, p, q, std::min(panel_columns, places - q));
    const uint8_t* at = t.image + q;
    const int64_t* tap = s.taps.data();
    for (int64_t i = 0; i < quads; ++i, tap += quad)
      interleave_quad(at + tap[0], at + tap[1], at + tap[2], at + tap[3], t.panel + i * quad * panel_columns);
    if (factors) s.multiply(t.panel, s.weights + c.m * s.stride, s.stride, 1, quads, t.position_sums);
    for (int64_t m = p.first; m < p.end; m += channel_block) {
      const int64_t channels = std::min(channel_block, p.end - m);
      s.multiply(t.panel, s.weights + (p.group * s.out_group() + m) * s.stride, s.stride, channels, quads,
                 t.products);
      finish_channels(s, a, p, runs, m, channels, factors, t);
    }
  }
}

int run(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<ConvState>(a);
  const Scratch t(s, workspace<void>(a, worker));
  const Range channels = tile_range(s.out_group(), s.channel_parts, tile % s.channel_parts, 8);
  tile /= s.channel_parts;
  const Range columns = tile_range(s.c.ow, s.column_parts, tile % s.column_parts, panel_columns);
  tile /= s.column_parts;
  const Range rows = tile_range(s.c.oh, s.row_parts, tile % s.row_parts);
  const Range units = tile_range(s.c.n * s.c.group, s.unit_parts, tile / s.row_parts);
  for (int64_t unit = units.begin; unit < units.end; ++unit)
    for (int64_t y = rows.begin; y < rows.end; y += s.rows)
      for (int64_t x = columns.begin; x < columns.end; x += s.columns)
        run_piece(s, a,
                  {unit / s.c.group, unit % s.c.group, channels.begin, channels.end, y,
                   std::min(s.rows, rows.end - y), x, std::min(s.columns, columns.end - x)},
                  t);
  return 0;
}

/// The rows of the product, whole quads of signed bytes, a row of ones behind them, and the sums of the rows.
void pack_weights(const PlanView& v, ConvState& s) {
  const uint8_t flip = flip_to(false, s.w);
  const int64_t m = s.c.m, ones = m * s.stride, sums_at = (ones + s.stride + 63) / 64 * 64;
  const auto bytes = static_cast<uint64_t>(sums_at) + static_cast<uint64_t>(m) * sizeof(int32_t);
  const auto key = format("tenon.cpu.integer-filters/1 %02x %lld x %lld", flip, static_cast<long long>(m),
                          static_cast<long long>(s.depth));
  s.weights = v.packed<uint8_t>(s.weights_at, key, bytes, [&](const TensorView& source, void* to) {
    const auto* from = source.data<uint8_t>();
    auto* row = static_cast<uint8_t*>(to);
    auto* sums = reinterpret_cast<int32_t*>(row + sums_at);
    for (int64_t i = 0; i < m; ++i, from += s.depth, row += s.stride) {
      flip_row(from, s.depth, flip, row);
      for (int64_t k = 0; k < s.depth; ++k) sums[i] += static_cast<int8_t>(row[k]);
    }
    std::fill(row, row + s.depth, uint8_t{1});
  });
  s.weight_sums = reinterpret_cast<const int32_t*>(s.weights + sums_at);
}

/// How large the pieces are, where the taps lie in them, and how the work is cut into tiles.
void place_taps(ConvState& s, int64_t threads) {
  const Conv& c = s.c;
  for (int64_t i = 0; i < c.kh; ++i)
    for (int64_t j = 0; j < c.kw; ++j) {
      const std::pair<int64_t, int64_t> phase{i * c.dh % c.sh, j * c.dw % c.sw};
      if (std::find(s.phases.begin(), s.phases.end(), phase) == s.phases.end()) s.phases.push_back(phase);
    }
  const int64_t more_rows = (c.kh - 1) * c.dh / c.sh, more_columns = (c.kw - 1) * c.dw / c.sw;
  const int64_t planes = static_cast<int64_t>(s.phases.size()) * s.in_group();
  const int64_t wanted = c.multiply_adds() < 400000 ? 1 : threads, units = c.n * c.group;
  if (units >= 2 * wanted || units % wanted == 0)
    s.unit_parts = static_cast<uint32_t>(std::min(units, wanted));
  else if (c.oh >= 2 * wanted)
    s.row_parts = static_cast<uint32_t>(wanted), s.unit_parts = static_cast<uint32_t>(units);
  else if (c.ow >= 2 * panel_columns * wanted)
    s.column_parts = static_cast<uint32_t>(wanted), s.unit_parts = static_cast<uint32_t>(units);
  else
    s.channel_parts = static_cast<uint32_t>(std::clamp<int64_t>(s.out_group() / 8, 1, wanted)),
    s.unit_parts = static_cast<uint32_t>(units);
  const int64_t rows = (c.oh + s.row_parts - 1) / s.row_parts;
  // Whole rows if some fit, else one row in parts.
  s.columns = std::clamp<int64_t>(piece_bytes / (planes * (1 + more_rows)) - more_columns, 8 * panel_columns,
                                  std::max<int64_t>(c.ow, 8 * panel_columns));
  s.columns = std::min(s.columns, c.ow);
  s.width = s.columns + more_columns;
  s.rows = std::clamp<int64_t>(piece_bytes / (planes * s.width) - more_rows, 1, rows);
  s.plane = (s.rows + more_rows) * s.width;
  s.image = planes * s.plane;
  s.depth = s.in_group() * c.kh * c.kw;
  s.stride = whole_quads(s.depth);
  s.taps.assign(static_cast<size_t>(s.stride), 0);
  size_t k = 0;
  for (int64_t channel = 0; channel < s.in_group(); ++channel)
    for (int64_t i = 0; i < c.kh; ++i)
      for (int64_t j = 0; j < c.kw; ++j) {
        const std::pair<int64_t, int64_t> phase{i * c.dh % c.sh, j * c.dw % c.sw};
        const auto at = std::find(s.phases.begin(), s.phases.end(), phase) - s.phases.begin();
        s.taps[k++] = (at * s.in_group() + channel) * s.plane + i * c.dh / c.sh * s.width + j * c.dw / c.sw;
      }
}

/// Whether operand i has one number a channel; declines what is neither that nor one number.
bool a_channel(const PlanView& v, uint32_t i, int64_t channels, const char* what) {
  if (!v.has_input(i) || v.input(i).count() == 1) return false;
  if (channels == 1 || v.input(i).count() != channels) decline(format("%s has another count", what));
  return true;
}

void plan(const PlanView& v, Planned& p) {
  auto s = std::make_unique<ConvState>();
  s->quantised = v.op_name() != "ConvInteger";
  if (s->quantised) s->weights_at = 3;
  const uint32_t w_zero = s->quantised ? 5 : 3;
  s->c = read_conv_shape(v, s->weights_at);
  s->x = v.input(0).dtype(), s->w = v.input(s->weights_at).dtype(), s->y = v.output().dtype();
  a_channel(v, 2, 1, "the zero point of X");
  s->x_zero = ZeroPoint(v, 2, false);
  s->w_zero = ZeroPoint(v, w_zero, a_channel(v, w_zero, s->c.m, "the zero point of W"));
  if (s->quantised) {
    a_channel(v, 1, 1, "the scale of X");
    s->w_scale_a_channel = a_channel(v, 4, s->c.m, "the scale of W");
    a_channel(v, 6, 1, "the scale of Y");
    a_channel(v, 7, 1, "the zero point of Y");
    s->y_zero = ZeroPoint(v, 7, false);
    s->real_bias = v.has_input(8) && v.input(8).dtype() == TN_FLOAT32;
    s->bias = v.has_input(8) && !s->real_bias;
    if (v.has_input(8) && v.input(8).count() != s->c.m) decline("the bias is not one number a channel");
  }
  place_taps(*s, v.threads());
  pack_weights(v, *s);
  s->multiply = panel_multiplier(v.cpu_features(), true);
  const uint32_t tiles = s->unit_parts * s->row_parts * s->column_parts * s->channel_parts;
  const uint64_t bytes = Scratch::size(*s);
  p.set(run, std::move(s), tiles, bytes);
}

}  // namespace

void provide_integer_conv(Plugin& p) {
  const std::vector<tn_dtype> byte{TN_UINT8, TN_INT8}, f32{TN_FLOAT32};
  p.kernel("tenon.cpu.conv_integer/1", "ConvInteger")
      .flags(TN_KERNEL_DETERMINISTIC)
      .cpu(TN_CPU_AVX2)
      .input(byte, 0, 3, 4)
      .input(byte, TN_OPERAND_CONSTANT, 3, 4)
      .input(byte)
      .input(byte)
      .plan<plan>();
  for (const auto& [id, op, bias] :
       {std::tuple{"tenon.cpu.qlinear_conv/1", "QLinearConv", TN_INT32},
        std::tuple{"tenon.cpu.quantized_conv/1", "tenon::QuantizedConv", TN_FLOAT32}})
    p.kernel(id, op)
        .flags(TN_KERNEL_DETERMINISTIC)
        .cpu(TN_CPU_AVX2)
        .input(byte, 0, 3, 4)
        .input(f32)
        .input(byte)
        .input(byte, TN_OPERAND_CONSTANT, 3, 4)
        .input(f32)
        .input(byte)
        .input(f32)
        .input(byte)
        .input({bias})
        .output(byte)
        .plan<plan>();
}

}  // namespace tenon::cpu
