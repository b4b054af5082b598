// Products of 8-bit integers that yield floats: DynamicQuantizeMatMul, MatMulIntegerToFloat, QGemm. The sums
// are exact.
#include "microsoft/microsoft.hpp"
#include "nn/matmul.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "DynamicQuantizeMatMul", 1, 1, 3, "A:T B:B b_scale:T b_zero_point?:B bias?:T", "Y:T",
     "T:f32 B:i8,u8", ""},
    {domain, "MatMulIntegerToFloat", 1, 1, 4,
     "A:A B:B a_scale:T b_scale:T a_zero_point?:A b_zero_point?:B bias?:T", "Y:T",
     "A:i8,u8 B:i8,u8 T:f16,f32", ""},
    {domain, "QGemm", 1, 1, 6,
     "A:A a_scale:=f32 a_zero_point:A B:B b_scale:=f32 b_zero_point:B C?:=i32 y_scale?:=f32 y_zero_point?:Z",
     "Y:Y", "A:i8,u8 B:i8,u8 Z:i8,u8 Y:i8,u8,f32", "alpha=1.0 transA=0 transB=0"},
};

void infer_product(Infer& c) {
  const tn_dtype dtype = c.dtype(2);
  if (!c.has_rank(0) || !c.has_rank(1)) return c.set_unranked(0, dtype);
  c.set(0, dtype, matmul_dims(c, c.dims(0), c.dims(1)));
}
void infer_qgemm(Infer& c) {
  infer_gemm_like(c, 0, 3, 6);
  const tn_dtype dtype = !c.has_input(7) ? TN_FLOAT32 : c.has_input(8) ? c.dtype(8) : TN_UINT8;
  if (!c.has_rank(0) || !c.has_rank(3)) return c.set_unranked(0, dtype);
  const bool ta = c.attrs().get_int("transA", 0) != 0, tb = c.attrs().get_int("transB", 0) != 0;
  const std::vector<tn_dim> out{c.dims(0)[ta ? 1 : 0], c.dims(3)[tb ? 0 : 1]};
  c.set(0, dtype, out);
}

/// The integers' product with zero points taken off, times the product of the scales, plus bias.
tn_value scaled_product(Rewrite& w, const std::vector<tn_value>& product, tn_value a_scale, tn_value b_scale,
                        tn_value bias) {
  tn_value y = w.make(
      "Mul", {cast(w, w.make("MatMulInteger", product), TN_FLOAT32), w.make("Mul", {a_scale, b_scale})});
  return bias == TN_NONE ? y : w.make("Add", {y, bias});
}

void decompose_dynamic(Editor& e, const Node& n) {
  Rewrite w(e, n);
  const auto a = w.make_many("DynamicQuantizeLinear", {w.input(0)}, {}, 3);
  w.become(0, scaled_product(w, {a[0], w.input(1), a[2], w.input(3)}, a[1], w.input(2), w.input(4)));
}
void decompose_to_float(Editor& e, const Node& n) {
  Rewrite w(e, n);
  const tn_dtype dtype = w.dtype(w.input(2));
  if (dtype == TN_DTYPE_NONE) decline("the element type of the scales is not known");
  const auto wide = [&](tn_value v) {
    return v == TN_NONE || dtype == TN_FLOAT32 ? v : cast(w, v, TN_FLOAT32);
  };
  const tn_value y = scaled_product(w, {w.input(0), w.input(1), w.input(4), w.input(5)}, wide(w.input(2)),
                                    wide(w.input(3)), wide(w.input(6)));
  w.become(0, dtype == TN_FLOAT32 ? y : cast(w, y, dtype));
}
void decompose_qgemm(Editor& e, const Node& n) {
  const bool ta = n.attrs().get_int("transA", 0) != 0, tb = n.attrs().get_int("transB", 0) != 0;
  const double alpha = n.attrs().get_float("alpha", 1);
  Rewrite w(e, n);
  const auto turned = [&](size_t i, bool yes) { return yes ? transpose(w, w.input(i), {1, 0}) : w.input(i); };
  tn_value sums = w.make("MatMulInteger", {turned(0, ta), turned(3, tb), w.input(2), w.input(5)});
  if (w.input(6) != TN_NONE) sums = w.make("Add", {sums, w.input(6)});
  tn_value scale = w.make("Mul", {w.input(1), w.input(4)});
  if (alpha != 1) scale = w.make("Mul", {scale, w.number_like(alpha, w.input(1))});
  const tn_value y = w.make("Mul", {cast(w, sums, TN_FLOAT32), scale});
  w.become(0, w.input(7) == TN_NONE ? y : w.make("QuantizeLinear", {y, w.input(7), w.input(8)}));
}

}  // namespace

void add_microsoft_integer(Plugin& p) {
  define_row(p, rows, "DynamicQuantizeMatMul",
             "A, quantised as its range asks, times B, dequantised, plus bias.")
      .infer<infer_product>()
      .decompose<decompose_dynamic>();
  define_row(p, rows, "MatMulIntegerToFloat", "MatMulInteger, times both scales, plus bias.")
      .infer<infer_product>()
      .decompose<decompose_to_float>();
  define_row(p, rows, "QGemm", "alpha * (A B + C), dequantised, perhaps quantised again.")
      .infer<infer_qgemm>()
      .decompose<decompose_qgemm>();
}

}  // namespace tenon::ops
