// Products between DequantizeLinear and QuantizeLinear, with a bias of real numbers, domain "tenon".
#include "quant/quantised_products.hpp"

#include "nn/matmul.hpp"
#include "spatial/conv.hpp"
#include "support/define.hpp"
#include "support/own_attributes.hpp"

namespace tenon::ops {
namespace {

constexpr Schema rows[] = {
    {"tenon", "QuantizedConv", 1, 1, 8,
     "X:Q X_scale:T X_zero_point:Q W:R W_scale:T W_zero_point:R Y_scale:T Y_zero_point:S B?:T", "Y:S",
     "T:f32 Q:i8,u8 R:i8,u8 S:i8,u8",
     "auto_pad='NOTSET' dilations:ints group=1 kernel_shape:ints pads:ints strides:ints"},
    {"tenon", "QuantizedGemm", 1, 1, 8,
     "A:Q A_scale:T A_zero_point:Q B:R B_scale:T B_zero_point:R Y_scale:T Y_zero_point:S C?:T", "Y:S",
     "T:f32 Q:i8,u8 R:i8,u8 S:i8,u8", "transB=0"}};

void infer_quantised_conv(Infer& c) {
  infer_convolution(c, 0, 3, c.has_input(8) ? std::optional<uint32_t>(8) : std::nullopt, c.dtype(7));
}
void infer_quantised_gemm(Infer& c) {
  if (!ranked(c, 0, "A", 2, 2) || !ranked(c, 3, "B", 2, 2)) return c.set_unranked(0, c.dtype(7));
  const bool turned = c.attrs().get_int("transB", 0) != 0;
  require(!c.differ(c.dims(0)[1], c.dims(3)[turned ? 1 : 0]),
          "A has shape " + c.text(c.dims(0)) + " and B " + c.text(c.dims(3)) + "; their depths differ");
  c.set(0, c.dtype(7), std::vector<tn_dim>{c.dims(0)[0], c.dims(3)[turned ? 0 : 1]});
}

/// QuantizeLinear of product(first, second), both dequantised; the second's scales lie along `axis`.
template <class Product>
void decompose_quantised(Rewrite& w, int64_t axis, Product&& product) {
  const tn_value x = w.make("DequantizeLinear", {w.input(0), w.input(1), w.input(2)});
  const tn_value y =
      w.make("DequantizeLinear", {w.input(3), w.input(4), w.input(5)}, {AttrValue::of("axis", axis)});
  w.become(0, w.make("QuantizeLinear", {product(x, y), w.input(6), w.input(7)}));
}
void decompose_quantised_conv(Editor& e, const Node& n) {
  const OwnAttributes own(n, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  Rewrite w(e, n);
  decompose_quantised(w, 0, [&](tn_value x, tn_value f) {
    return w.make("Conv", {x, f, w.input(8)}, own.values);
  });
}
void decompose_quantised_gemm(Editor& e, const Node& n) {
  const int64_t turned = n.attrs().get_int("transB", 0);
  Rewrite w(e, n);
  decompose_quantised(w, turned ? 0 : 1, [&](tn_value a, tn_value b) {
    return w.make("Gemm", {a, b, w.input(8)}, {AttrValue::of("transB", turned)});
  });
}

}  // namespace

void add_quantised_products(Plugin& p) {
  const auto& [conv, gemm] = rows;
  define(p, conv)
      .doc("Conv of dequantised operands, quantised.")
      .infer<infer_quantised_conv>()
      .decompose<decompose_quantised_conv>();
  define(p, gemm)
      .doc("A B + C of dequantised operands, quantised.")
      .infer<infer_quantised_gemm>()
      .decompose<decompose_quantised_gemm>();
}

}  // namespace tenon::ops
