// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear: one scale a tensor, an index of one axis, or a
// block of it.
#include "families.hpp"
#include "quant/integer_product.hpp"

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
  finish(v, p, quantize ? quantize_fn<true> : quantize_fn<false>, std::move(s), (n + grain - 1) / grain,
         n * 4);
}

// DynamicQuantizeLinear: scale and zero point from the range of x, which always holds 0. float32 throughout,
// as defined.
int dynamic_fn(const tn_kernel_args* a, uint32_t, uint32_t) {
  const auto& s = state<Base>(a);
  const float* x = in<float>(a, 0);
  float low = 0, high = 0;
  for (int64_t i = 0; i < s.in[0].count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  const float range = (high - low) / 255.0f, scale = range == 0 ? 1.0f : range;
  const auto byte = [](float v) { return v != v ? 0.0f : std::min(std::max(v, 0.0f), 255.0f); };
  const float zero = std::nearbyint(byte(-low / scale));
  for (int64_t i = 0; s.has_out(0) && i < s.in[0].count; ++i)
    out<uint8_t>(a)[i] = static_cast<uint8_t>(byte(std::nearbyint(x[i] / scale) + zero));
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
