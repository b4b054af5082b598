// Weights of 2, 4 or 8 bits in blocks, each with a scale and perhaps a zero point: MatMulNBits,
// GatherBlockQuantized.
//
// Numbers below 8 bits are packed into bytes, the first in the lowest bits. Without zero points, unsigned
// numbers are centred at 2^(bits - 1).
#include "families.hpp"
#include "microsoft/microsoft.hpp"
#include "support/kernel.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "GatherBlockQuantized", 1, 1, 3, "data:D indices:I scales:T zero_points?:D", "output:T",
     "D:i4,u4,u8 I:i32,i64 T:f16,f32,bf16", "bits=4 block_size=128 gather_axis=0 quantize_axis=1"},
    {domain, "MatMulNBits", 1, 1, 3, "A:T B:=u8 scales:T zero_points?:Z g_idx?:=i32 bias?:T", "Y:T",
     "T:f16,f32,bf16 Z:u8,f16,f32,bf16",
     "K!:int N!:int accuracy_level=0 bits=4 block_size!:int weight_prepacked=0"},
};

void check_bits(int64_t bits) {
  require(bits == 2 || bits == 4 || bits == 8,
          "attribute 'bits' is " + text_of(bits) + "; expected 2, 4 or 8");
}
void check_block(int64_t block) {
  require(block >= 16 && (block & (block - 1)) == 0,
          "attribute 'block_size' is " + text_of(block) + "; expected a power of two of at least 16");
}

void infer_nbits(Infer& c) {
  const Attributes a = c.attrs();
  const int64_t depth = required_int(a, "K"), columns = required_int(a, "N"),
                block = required_int(a, "block_size");
  const int64_t bits = a.get_int("bits", 4);
  check_bits(bits);
  check_block(block);
  require(depth >= 1 && columns >= 1,
          "attributes K and N are " + text_of(depth) + " and " + text_of(columns) + "; expected 1 or more");
  require(a.get_int("weight_prepacked", 0) == 0,
          "attribute 'weight_prepacked' is not 0; export the weights as they are");
  if (!ranked(c, 0, "A", 1)) return c.set_unranked(0, c.dtype(0));
  auto dims = c.dims(0);
  require(!c.differ(dims.back(), depth),
          "operand A has shape " + c.text(dims) + "; expected K = " + text_of(depth) + " columns");
  dims.back() = columns;
  c.set(0, c.dtype(0), dims);
}

void infer_gather_blocks(Infer& c) {
  const tn_dtype dtype = c.dtype(2);
  const int64_t bits = c.dtype(0) == TN_UINT8 ? c.attrs().get_int("bits", 4) : 4;
  check_bits(bits);
  check_block(c.attrs().get_int("block_size", 128));
  if (!ranked(c, 0, "data", 1) || !c.has_rank(1)) return c.set_unranked(0, dtype);
  auto data = c.dims(0);
  if (c.dtype(0) == TN_UINT8) data.back() = c.mul(data.back(), 8 / bits);
  const auto axis =
      static_cast<size_t>(Infer::axis(c.attrs().get_int("gather_axis", 0), c.rank(0), "gather_axis"));
  std::vector<tn_dim> out;
  for (size_t i = 0; i < data.size(); ++i) {
    if (i == axis)
      for (tn_dim d : c.dims(1)) out.push_back(d);
    else
      out.push_back(data[i]);
  }
  c.set(0, dtype, out);
}

// ---- kernels
// -----------------------------------------------------------------------------------------------------------------

using namespace tenon::reference;

int64_t packed_at(const uint8_t* bytes, int64_t bits, int64_t i) noexcept {
  const int64_t each = 8 / bits;
  return bytes[i / each] >> (i % each * bits) & ((1 << bits) - 1);
}

struct NBitsState : Base {
  int64_t depth = 0, columns = 0, bits = 4, block = 0, blocks = 0, lines = 0;
  bool packed_zeros = false;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};

/// Column n of the weights as numbers.
int dequantise(const NBitsState& s, const tn_kernel_args* a, int64_t n, double* to) noexcept {
  const int64_t blob = s.block * s.bits / 8, zero_row = (s.blocks * s.bits + 7) / 8;
  const auto* weights = in<uint8_t>(a, 1) + n * s.blocks * blob;
  const double centre = static_cast<double>(int64_t{1} << (s.bits - 1));
  for (int64_t k = 0; k < s.depth; ++k) {
    int64_t at = k / s.block;
    if (s.has_in(4)) {
      at = in<int32_t>(a, 4)[k];
      if (at < 0 || at >= s.blocks) return index_fail(a, "MatMulNBits: g_idx", at, s.blocks);
    }
    double zero = centre;
    if (s.has_in(3))
      zero = s.packed_zeros ? static_cast<double>(packed_at(in<uint8_t>(a, 3) + n * zero_row, s.bits, at))
                            : real_at(a->inputs[3], s.in[3].dtype, n * s.blocks + at);
    const double scale = real_at(a->inputs[2], s.in[2].dtype, n * s.blocks + at);
    to[k] = (static_cast<double>(packed_at(weights, s.bits, k)) - zero) * scale;
  }
  return run_ok;
}

/// A tile is some columns; each is unpacked once and multiplied with every row of A.
int nbits_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<NBitsState>(a);
  constexpr int64_t lanes = 8;
  const auto r = tile_range(s.columns, s.tiles, tile);
  double *weights = workspace<double>(a, worker), *x = weights + s.depth;
  for (int64_t n = r.begin; n < r.end; ++n) {
    if (const int bad = dequantise(s, a, n, weights)) return bad;
    const double bias = s.has_in(5) ? real_at(a->inputs[5], s.in[5].dtype, n) : 0;
    for (int64_t m = 0; m < s.lines; ++m) {
      s.load(a->inputs[0], m * s.depth, 1, s.depth, x);
      double sums[lanes] = {};
      int64_t k = 0;
      for (; k + lanes <= s.depth; k += lanes)
        for (int64_t i = 0; i < lanes; ++i) sums[i] += x[k + i] * weights[k + i];
      for (; k < s.depth; ++k) sums[0] += x[k] * weights[k];
      double y = bias;
      for (double sum : sums) y += sum;
      s.store(&y, 1, a->outputs[0], m * s.columns + n);
    }
  }
  return run_ok;
}

void plan_nbits(const PlanView& v, Planned& p) {
  auto s = make_state<NBitsState>(v);
  const auto a = v.attrs();
  s->depth = a.get_int("K", 0);
  s->columns = a.get_int("N", 0);
  s->bits = a.get_int("bits", 4);
  s->block = a.get_int("block_size", 0);
  check_bits(s->bits);
  check_block(s->block);
  s->blocks = (s->depth + s->block - 1) / s->block;
  s->lines = s->out[0].count / std::max<int64_t>(s->columns, 1);
  const int64_t rows_of_blocks = checked_mul(s->columns, s->blocks);
  const auto expect = [&](size_t i, const char* name, int64_t wanted) {
    if (s->has_in(i) && s->in[i].count != wanted)
      fail(format("MatMulNBits' %s %s has %lld numbers; expected %lld", name,
                  dims_text(s->in[i].dims).c_str(), static_cast<long long>(s->in[i].count),
                  static_cast<long long>(wanted)));
  };
  expect(1, "B", checked_mul(rows_of_blocks, s->block * s->bits / 8));
  expect(2, "scales", rows_of_blocks);
  s->packed_zeros = s->in.size() > 3 && s->in[3].dtype == TN_UINT8;
  expect(3, "zero_points",
         s->packed_zeros ? checked_mul(s->columns, (s->blocks * s->bits + 7) / 8) : rows_of_blocks);
  expect(5, "bias", s->columns);
  if (s->has_in(4) && s->in[4].count < s->depth)
    fail("MatMulNBits' g_idx needs one number for each row of the weights");
  if (s->in[0].count != checked_mul(s->lines, s->depth)) fail("MatMulNBits' A does not have K columns");
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t columns = s->columns, work = columns * s->depth * (4 + s->lines),
                doubles = checked_mul(2 * s->depth, sizeof(double));
  finish(v, p, nbits_fn, std::move(s), columns, work, static_cast<uint64_t>(doubles));
}

struct GatherState : Base {
  int64_t outer = 1, inner = 1, size = 1, bits = 4, block = 128, index_count = 0;
  Dims dims, strides, scale_strides;  // of the data, unpacked
  size_t gather_axis = 0, quantize_axis = 0;
  bool bytes = false;
  Load<int64_t> load = nullptr;
  Store<double> store = nullptr;
  int64_t zero_row = 1, zero_bytes = 1;  // numbers and bytes of a row of zero points
  int64_t number(const tn_kernel_args* a, uint32_t operand, int64_t i) const noexcept {
    const auto* packed = static_cast<const uint8_t*>(a->inputs[operand]);
    if (bytes && operand == 3) return packed_at(packed + i / zero_row * zero_bytes, bits, i % zero_row);
    if (bytes) return packed_at(packed, bits, i);
    int64_t x = 0;
    load(a->inputs[operand], i, 1, 1, &x);
    return x;
  }
};

/// An index outside yields zeros.
int gather_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<GatherState>(a);
  const auto r = tile_range(s.outer * s.index_count, s.tiles, tile);
  const size_t rank = s.dims.size();
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    int64_t index = integer_at(a->inputs[1], s.in[1].dtype, unit % s.index_count);
    if (index < 0) index += s.size;
    const bool inside = index >= 0 && index < s.size;
    const int64_t first = (unit / s.index_count * s.size + index) * s.inner;
    for (int64_t i = 0; i < s.inner; ++i) {
      double y = 0;
      if (inside) {
        int64_t rest = first + i, at = 0;
        for (size_t k = 0; k < rank; ++k) {
          const int64_t place = rest / s.strides[k];
          rest %= s.strides[k];
          at += (k == s.quantize_axis ? place / s.block : place) * s.scale_strides[k];
        }
        double zero = s.bytes ? static_cast<double>(int64_t{1} << (s.bits - 1)) : 0;
        if (s.has_in(3)) zero = static_cast<double>(s.number(a, 3, at));
        y = (static_cast<double>(s.number(a, 0, first + i)) - zero) *
            real_at(a->inputs[2], s.in[2].dtype, at);
      }
      s.store(&y, 1, a->outputs[0], unit * s.inner + i);
    }
  }
  return run_ok;
}

void plan_gather(const PlanView& v, Planned& p) {
  auto s = make_state<GatherState>(v);
  const auto a = v.attrs();
  s->bytes = s->in[0].dtype == TN_UINT8;
  s->bits = s->bytes ? a.get_int("bits", 4) : 4;
  s->block = a.get_int("block_size", 128);
  check_bits(s->bits);
  check_block(s->block);
  s->dims = s->in[0].dims;
  if (s->bytes) s->dims.back() = checked_mul(s->dims.back(), 8 / s->bits);
  const int64_t rank = static_cast<int64_t>(s->dims.size());
  s->gather_axis = static_cast<size_t>(axis_of(a.get_int("gather_axis", 0), rank, "gather_axis"));
  s->quantize_axis = static_cast<size_t>(axis_of(a.get_int("quantize_axis", 1), rank, "quantize_axis"));
  if (s->bytes && s->bits < 8 && (s->gather_axis + 1 == s->dims.size() || s->block % (8 / s->bits) != 0))
    fail("GatherBlockQuantized cannot gather along the axis that is packed into bytes");
  Dims scales = s->dims;
  scales[s->quantize_axis] = (scales[s->quantize_axis] + s->block - 1) / s->block;
  if (s->in[2].dims != scales)
    fail(format("GatherBlockQuantized's scales are %s; expected %s", dims_text(s->in[2].dims).c_str(),
                dims_text(scales).c_str()));
  if (s->has_in(3)) {  // packed as the data is, row by row
    const int64_t each = s->bytes ? 8 / s->bits : 1;
    s->zero_row = std::max<int64_t>(scales.back(), 1);
    s->zero_bytes = (s->zero_row + each - 1) / each;
    if (s->in[3].count != element_count(scales) / s->zero_row * s->zero_bytes)
      fail(format("GatherBlockQuantized's zero_points %s do not fit scales %s",
                  dims_text(s->in[3].dims).c_str(), dims_text(scales).c_str()));
  }
  for (size_t k = 0; k < s->dims.size(); ++k) {
    s->strides.push_back(std::max<int64_t>(1, product(s->dims, k + 1, s->dims.size())));
    s->scale_strides.push_back(product(scales, k + 1, scales.size()));
  }
  s->outer = product(s->dims, 0, s->gather_axis);
  s->inner = product(s->dims, s->gather_axis + 1, s->dims.size());
  s->size = s->dims[s->gather_axis];
  s->index_count = s->in[1].count;
  if (!s->bytes) s->load = loader<int64_t>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t units = s->outer * s->index_count, work = units * s->inner * 16;
  finish(v, p, gather_fn, std::move(s), std::max<int64_t>(units, 1), work);
}

}  // namespace

void add_microsoft_blocks(Plugin& p) {
  define_row(p, rows, "MatMulNBits", "A times weights of few bits, dequantised block by block, plus bias.")
      .infer<infer_nbits>();
  reference_kernel(p, "com.microsoft::MatMulNBits").plan<plan_nbits>();
  define_row(p, rows, "GatherBlockQuantized", "Gather from a table of few bits, dequantised block by block.")
      .infer<infer_gather_blocks>();
  reference_kernel(p, "com.microsoft::GatherBlockQuantized").plan<plan_gather>();
}

}  // namespace tenon::ops
