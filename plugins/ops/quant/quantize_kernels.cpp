// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: one scale a tensor, an index of one axis, or a
// block of it.
#include "families.hpp"
#include "quant/integer_product.hpp"
#include "support/clones.hpp"

namespace tenon::reference {
namespace {

constexpr int64_t grain = 64;  // whole bytes of packed types

struct QuantizeState : Base {
  int64_t axis_size = 1, inner = 1, block_size = 0, blocks = 0;
  bool per_tensor = true;
  double lowest = 0, highest = 0;
  bool clamp = false;               // to an integer type
  tn_dtype precision = TN_FLOAT32;  // of the division
  Load<double> load = nullptr, load_scale = nullptr, load_zero = nullptr;
  Store<double> store = nullptr;

  int64_t scale_index(int64_t i) const noexcept {
    if (per_tensor) return 0;
    const int64_t a = i / inner % axis_size;
    if (!block_size) return a;
    return (i / (inner * axis_size) * blocks + a / block_size) * inner + i % inner;
  }
};

/// The quotient as the standard's division in that type gives it.
double rounded_to(tn_dtype type, double x) noexcept {
  switch (type) {
    case TN_FLOAT32:
      return static_cast<float>(x);
    case TN_FLOAT16:
      return static_cast<float>(Float16(round_to_odd(x)));
    case TN_BFLOAT16:
      return static_cast<float>(BFloat16(round_to_odd(x)));
    default:
      return x;
  }
}

template <bool Quantize>
int quantize_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<QuantizeState>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile, grain);
  double x[block];
  for (int64_t i = r.begin; i < r.end; i += block) {
    const int64_t n = std::min(block, r.end - i);
    s.load(a->inputs[0], i, 1, n, x);
    int64_t known = -1;
    double scale = 1, zero = 0;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t at = s.scale_index(i + k);
      if (at != known) {
        s.load_scale(a->inputs[1], at, 1, 1, &scale);
        if (s.load_zero) s.load_zero(a->inputs[2], at, 1, 1, &zero);
        known = at;
      }
      if constexpr (Quantize) {
        x[k] = rounded_to(s.precision, x[k] / scale);
        if (s.clamp) {
          const double y = std::nearbyint(x[k]) + zero;
          x[k] = y != y ? 0 : std::min(std::max(y, s.lowest), s.highest);
        }
      } else {
        x[k] = (x[k] - zero) * scale;
      }
    }
    s.store(x, n, a->outputs[0], i);
  }
  return run_ok;
}

/// One float32 scale for all, to 8 bits: what quantised networks do most.
template <class T>
TENON_CLONES void quantize_all(const float* x, int64_t n, float scale, float zero, T* y) noexcept {
  constexpr float low = std::numeric_limits<T>::min(), high = std::numeric_limits<T>::max();
  for (int64_t i = 0; i < n; ++i) {
    const float v = std::nearbyint(x[i] / scale) + zero;
    y[i] = static_cast<T>(static_cast<int32_t>(v > low    ? v < high ? v : high
                                               : v <= low ? low
                                                          : 0.0f));  // NaN is 0
  }
}
template <class T>
TENON_CLONES void dequantize_all(const T* x, int64_t n, float scale, int32_t zero, float* y) noexcept {
  for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i] - zero) * scale;
}
template <class T>
int quantize_all_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<Base>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile, grain);
  const float zero = s.has_in(2) ? static_cast<float>(*in<T>(a, 2)) : 0.0f;
  quantize_all(in<float>(a, 0) + r.begin, r.end - r.begin, *in<float>(a, 1), zero, out<T>(a) + r.begin);
  return run_ok;
}
template <class T>
int dequantize_all_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<Base>(a);
  const auto r = tile_range(s.out[0].count, s.tiles, tile, grain);
  dequantize_all(in<T>(a, 0) + r.begin, r.end - r.begin, *in<float>(a, 1), s.has_in(2) ? *in<T>(a, 2) : 0,
                 out<float>(a) + r.begin);
  return run_ok;
}
/// The function for one float32 scale between float32 and 8 bits, or null.
tn_kernel_fn plain_function(const QuantizeState& s, bool quantize) noexcept {
  if (!s.per_tensor || s.in[1].dtype != TN_FLOAT32 || s.in[quantize ? 0 : 1].dtype != TN_FLOAT32)
    return nullptr;
  if (quantize && s.precision != TN_FLOAT32) return nullptr;
  if (!quantize && s.out[0].dtype != TN_FLOAT32) return nullptr;
  const tn_dtype narrow = quantize ? s.out[0].dtype : s.in[0].dtype;
  if (narrow == TN_INT8) return quantize ? quantize_all_fn<int8_t> : dequantize_all_fn<int8_t>;
  if (narrow == TN_UINT8) return quantize ? quantize_all_fn<uint8_t> : dequantize_all_fn<uint8_t>;
  return nullptr;
}

void plan_quantize(const PlanView& v, Planned& p) {
  auto s = make_state<QuantizeState>(v);
  const bool quantize = v.op_name() == "QuantizeLinear";
  const auto &x = s->in[0].dims, &scale = s->in[1].dims;
  s->per_tensor = s->in[1].count == 1 && (scale.size() <= 1);
  s->block_size = v.attrs().get_int("block_size", 0);
  if (!s->per_tensor) {
    const auto axis = static_cast<size_t>(axis_of(v.attrs().get_int("axis", 1), s->in[0].rank()));
    s->axis_size = x[axis];
    s->inner = product(x, axis + 1, x.size());
    if (s->block_size > 0) {
      s->blocks = (x[axis] + s->block_size - 1) / s->block_size;
      Dims wanted = x;
      wanted[axis] = s->blocks;
      if (scale != wanted)
        fail(format("scales %s do not fit operand %s in blocks of %lld along axis %zu; expected %s",
                    dims_text(scale).c_str(), dims_text(x).c_str(), static_cast<long long>(s->block_size),
                    axis, dims_text(wanted).c_str()));
    } else if (s->in[1].count != x[axis]) {
      fail(format("there are %lld scales; axis %zu needs %lld", static_cast<long long>(s->in[1].count), axis,
                  static_cast<long long>(x[axis])));
    }
  }
  if (s->has_in(2) && s->in[2].count != s->in[1].count) fail("zero points and scales must have one shape");
  s->load = loader<double>(s->in[0].dtype);
  s->load_scale = loader<double>(s->in[1].dtype);
  if (s->has_in(2)) s->load_zero = loader<double>(s->in[2].dtype);
  const tn_dtype to = s->out[0].dtype;
  s->store = storer<double>(to, v.attrs().get_int("saturate", 1) != 0);
  s->precision = s->in[1].dtype;
  switch (v.attrs().get_int("precision", 0)) {  // numbers of ONNX's TensorProto.DataType
    case 0:
      break;
    case 1:
      s->precision = TN_FLOAT32;
      break;
    case 10:
      s->precision = TN_FLOAT16;
      break;
    case 11:
      s->precision = TN_FLOAT64;
      break;
    case 16:
      s->precision = TN_BFLOAT16;
      break;
    default:
      fail("QuantizeLinear's precision must be a float type");
  }
  if (is_integer(to)) {
    const int bits = static_cast<int>(TN_DTYPE_BITS(to));
    s->clamp = quantize;
    s->lowest = is_signed_integer(to) ? -std::ldexp(1.0, bits - 1) : 0;
    s->highest = std::ldexp(1.0, is_signed_integer(to) ? bits - 1 : bits) - 1;
  }
  const int64_t n = s->out[0].count;
  if (const tn_kernel_fn plain = plain_function(*s, quantize)) {
    auto base = std::make_unique<Base>(std::move(static_cast<Base&>(*s)));
    return finish(v, p, plain, std::move(base), (n + grain - 1) / grain, n / 4);
  }
  finish(v, p, quantize ? quantize_fn<true> : quantize_fn<false>, std::move(s), (n + grain - 1) / grain,
         n * 4);
}

// DynamicQuantizeLinear: scale and zero point from the range of x, which always holds 0. float32 throughout,
// as defined.
TENON_CLONES void range_of(const float* x, int64_t n, float* lowest, float* highest) noexcept {
  constexpr int64_t lanes = 32;  // minima and maxima do not depend on their order; NaN is passed over
  float low[lanes] = {}, high[lanes] = {};
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int64_t k = 0; k < lanes; ++k) {
      low[k] = x[i + k] < low[k] ? x[i + k] : low[k];
      high[k] = x[i + k] > high[k] ? x[i + k] : high[k];
    }
  for (; i < n; ++i) {
    low[0] = x[i] < low[0] ? x[i] : low[0];
    high[0] = x[i] > high[0] ? x[i] : high[0];
  }
  *lowest = *std::min_element(low, low + lanes);
  *highest = *std::max_element(high, high + lanes);
}
int dynamic_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<Base>(a);
  const float* x = in<float>(a, 0);
  float low = 0, high = 0;
  range_of(x, s.in[0].count, &low, &high);
  const float range = (high - low) / 255.0f, scale = range == 0 ? 1.0f : range;
  const float lowest = -low / scale;
  const float zero = std::nearbyint(lowest != lowest ? 0.0f : std::min(std::max(lowest, 0.0f), 255.0f));
  if (s.has_out(0)) quantize_all(x, s.in[0].count, scale, zero, out<uint8_t>(a));
  if (s.has_out(1)) *out<float>(a, 1) = scale;
  if (s.has_out(2)) *out<uint8_t>(a, 2) = static_cast<uint8_t>(zero);
  return run_ok;
}
void plan_dynamic(const PlanView& v, Planned& p) { finish(v, p, dynamic_fn, make_state<Base>(v), 1, 1); }

}  // namespace

void provide_quantize(Plugin& p) {
  reference_kernel(p, "QuantizeLinear").plan<plan_quantize>();
  reference_kernel(p, "DequantizeLinear").plan<plan_quantize>();
  reference_kernel(p, "DynamicQuantizeLinear").input({TN_FLOAT32}).plan<plan_dynamic>();
  provide_integer_matmul(p);
  provide_integer_conv(p);
}

}  // namespace tenon::reference
