// Between real numbers and integers with a scale: y = saturate(round(x / scale) + zero_point).
#include "nn/matmul.hpp"
#include "quant/quantised_products.hpp"
#include "spatial/conv.hpp"

namespace tenon::ops {
namespace {

/// scale: one number, one an index of `axis`, or (block_size > 0) one a block of that many along it.
void check_scale(Infer& c, const char* names) {
  if (!c.has_rank(0) || !c.has_rank(1)) return;
  const auto x = c.dims(0), scale = c.dims(1);
  const int64_t block = c.attrs().get_int("block_size", 0);
  require(block >= 0, "attribute 'block_size' is " + text_of(block) + "; expected 0 or more");
  if (c.has_input(2) && c.has_rank(2)) {
    const auto zero = c.dims(2);
    bool same = zero.size() == scale.size();
    for (size_t i = 0; same && i < zero.size(); ++i) same = !c.differ(zero[i], scale[i]);
    require(same || (zero.size() <= 1 && scale.size() <= 1 && c.product(zero) == 1 && c.product(scale) == 1),
            std::string("operands ") + names + " have shapes " + c.text(scale) + " and " + c.text(zero) +
                "; expected equal ones");
  }
  if (scale.empty() || (scale.size() == 1 && scale[0] == 1)) return;
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", 1), std::max(c.rank(0), 1)));
  if (block == 0) {
    require(scale.size() == 1 && axis < x.size() && !c.differ(scale[0], x[axis]),
            "the scale has shape " + c.text(scale) + "; expected one number, or one for each index of axis " +
                text_of(static_cast<int64_t>(axis)) + " of " + c.text(x));
    return;
  }
  bool good = scale.size() == x.size();
  for (size_t i = 0; good && i < x.size(); ++i)
    good = !c.differ(scale[i], i == axis ? c.ceildiv(x[i], block) : x[i]);
  require(good, "the scale has shape " + c.text(scale) + "; expected that of x, " + c.text(x) +
                    ", with one number for each " + text_of(block) + " along axis " +
                    text_of(static_cast<int64_t>(axis)));
}

void infer_quantize(Infer& c) {
  const int64_t said = c.attrs().get_int("output_dtype", 0);
  tn_dtype dtype = TN_UINT8;
  if (c.has_input(2)) {
    dtype = c.dtype(2);
    require(said == 0 || dtype == TN_DTYPE_NONE || dtype_of_onnx(said, "output_dtype") == dtype,
            std::string("attribute 'output_dtype' differs from the zero point's type, ") + dtype_name(dtype));
  } else if (said != 0) {
    dtype = dtype_of_onnx(said, "output_dtype");
  }
  check_scale(c, "y_scale and y_zero_point");
  same_shape(c, 0, 0, dtype);
}

void infer_dequantize(Infer& c) {
  const int64_t said = c.attrs().get_int("output_dtype", 0);
  check_scale(c, "x_scale and x_zero_point");
  same_shape(c, 0, 0, said != 0 ? dtype_of_onnx(said, "output_dtype") : c.dtype(1));
}

void infer_dynamic_quantize(Infer& c) {
  same_shape(c, 0, 0, TN_UINT8);
  c.set(1, TN_FLOAT32, Span<const tn_dim>());
  c.set(2, TN_UINT8, Span<const tn_dim>());
}

/// (x - zero_point) * scale, in the scale's type.
void decompose_dequantize(Editor& e, const Node& n) {
  const int64_t axis = n.attrs().get_int("axis", 1);
  if (n.attrs().get_int("block_size", 0) != 0) decline("scales of blocks have no simpler form");
  Rewrite w(e, n);
  const tn_dtype real = w.dtype(w.input(1)), stored = w.dtype(w.input(0));
  if (n.attrs().get_int("output_dtype", 0) != 0 &&
      dtype_of_onnx(n.attrs().get_int("output_dtype", 0), "output_dtype") != real)
    decline("the result has another type than the scale");
  if (real != TN_FLOAT32 || TN_DTYPE_BITS(stored) > 16 || !is_integer(stored))
    decline("only integers of up to 16 bits with a float32 scale are exact in float32");
  const int32_t rank = w.rank(w.input(0)), scale_rank = w.rank(w.input(1));
  if (rank < 0 || scale_rank < 0) decline("ranks are not known");
  const auto spread = [&](tn_value v) {
    std::vector<int64_t> axes;
    if (w.rank(w.input(1)) == 1 && rank > 1)
      for (int64_t i = Infer::axis(axis, rank) + 1; i < rank; ++i)
        axes.push_back(i - Infer::axis(axis, rank));
    return axes.empty() ? v : w.make("Unsqueeze", {v, w.ints(axes)});
  };
  const auto as_float = [&](tn_value v) {
    return w.make("Cast", {v}, {AttrValue::of("to", onnx_of_dtype(TN_FLOAT32))});
  };
  tn_value y = as_float(w.input(0));
  if (w.input(2) != TN_NONE) y = w.make("Sub", {y, spread(as_float(w.input(2)))});
  w.become(0, w.make("Mul", {y, spread(w.input(1))}));
}

void infer_qlinear_conv(Infer& c) {
  infer_convolution(c, 0, 3, c.has_input(8) ? std::optional<uint32_t>(8) : std::nullopt, c.dtype(7));
}
void infer_qlinear_matmul(Infer& c) {
  if (!c.has_rank(0) || !c.has_rank(3)) return c.set_unranked(0, c.dtype(7));
  c.set(0, c.dtype(7), matmul_dims(c, c.dims(0), c.dims(3)));
}

/// Sums of products in int32, exact, then one multiplication by a_scale * b_scale / y_scale: operands are
/// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero. `spread` shapes b's scale for the result.
template <class Product, class Spread>
void decompose_qlinear(Rewrite& w, Product product, Spread spread) {
  for (size_t i : {size_t{0}, size_t{3}, size_t{7}})
    if (const tn_dtype d = w.dtype(w.input(i)); d != TN_INT8 && d != TN_UINT8)
      decline("only int8 and uint8 have integer products");
  if (w.dtype(w.input(1)) != TN_FLOAT32) decline("the scales are not float32");
  const tn_value sums = w.make("Cast", {product()}, {AttrValue::of("to", onnx_of_dtype(TN_FLOAT32))});
  const tn_value scale = w.make("Div", {w.make("Mul", {w.input(1), spread(w.input(4))}), w.input(6)});
  w.become(0, w.make("QuantizeLinear",
                     {w.make("Mul", {sums, scale}), w.editor().scalar<float>(1.0f), w.input(7)}));
}
void decompose_qlinear_matmul(Editor& e, const Node& n) {
  Rewrite w(e, n);
  for (size_t i : {size_t{1}, size_t{6}})
    if (w.rank(w.input(i)) != 0) decline("a scale of a row has no simpler form");
  decompose_qlinear(
      w,
      [&] {
        return w.make("MatMulInteger", {w.input(0), w.input(3), w.input(2), w.input(5)});
      },
      [](tn_value scale) { return scale; });
}
void decompose_qlinear_conv(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  const Dims dilations = a.get_ints("dilations").copy(), kernel = a.get_ints("kernel_shape").copy(),
             pads = a.get_ints("pads").copy(), strides = a.get_ints("strides").copy();
  const std::string auto_pad(a.get_string("auto_pad", "NOTSET"));
  const int64_t group = a.get_int("group", 1);
  Rewrite w(e, n);
  const int32_t rank = w.rank(w.input(0)), scale_rank = w.rank(w.input(4));
  if (rank < 3 || scale_rank < 0 || w.rank(w.input(6)) != 0)
    decline("the ranks are not known, or the result has a scale a channel");
  std::vector<int64_t> axes;
  for (int32_t i = 1; i < rank - 1; ++i) axes.push_back(i);
  const auto at_channels = [&](tn_value v) { return w.make("Unsqueeze", {v, w.ints(axes)}); };
  decompose_qlinear(
      w,
      [&] {
        std::vector<AttrValue> attrs{AttrValue::of("group", group),
                                     AttrValue::of("auto_pad", std::string_view(auto_pad))};
        const auto add = [&](const char* name, const Dims& list) {
          if (!list.empty()) attrs.push_back(AttrValue::of(name, Span<const int64_t>(list)));
        };
        add("dilations", dilations);
        add("kernel_shape", kernel);
        add("pads", pads);
        add("strides", strides);
        const tn_value sums =
            w.make("ConvInteger", {w.input(0), w.input(3), w.input(2), w.input(5)}, std::move(attrs));
        return w.input(8) == TN_NONE ? sums : w.make("Add", {sums, at_channels(w.input(8))});
      },
      [&](tn_value scale) { return scale_rank == 0 ? scale : at_channels(scale); });
}

}  // namespace

void add_quantize(Plugin& p) {
  define(p, "QuantizeLinear").infer<infer_quantize>().alias("quantize");
  define(p, "DequantizeLinear")
      .infer<infer_dequantize>()
      .decompose<decompose_dequantize>()
      .alias("dequantize");
  define(p, "QLinearConv").infer<infer_qlinear_conv>().decompose<decompose_qlinear_conv>();
  define(p, "QLinearMatMul").infer<infer_qlinear_matmul>().decompose<decompose_qlinear_matmul>();
  define(p, "DynamicQuantizeLinear").infer<infer_dynamic_quantize>();
  add_quantised_products(p);
}

}  // namespace tenon::ops
