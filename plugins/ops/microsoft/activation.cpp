// GELU in its variants: x * Phi(x) exactly, by tanh, or by a sigmoid; with a bias added first.
#include "microsoft/microsoft.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "BiasGelu", 1, 1, 2, "A:T B:T", "C:T", "T:@float", ""},
    {domain, "FastGelu", 1, 1, 1, "X:T bias?:T", "Y:T", "T:@float", ""},
    {domain, "Gelu", 1, 1, 1, "X:T", "Y:T", "T:@float", ""},
    {domain, "QuickGelu", 1, 1, 1, "X:T", "Y:T", "T:@float", "alpha=1.702"},
};

/// The bias, operand 1, has one number for each index of the last axis.
void infer_activation(Infer& c) {
  same_type(c, 0, 0);
  if (!c.has_input(1) || !ranked(c, 1, "bias", 1, 1) || !ranked(c, 0, "X", 1)) return;
  const tn_dim width = c.dims(0).back();
  require(!c.differ(c.dims(1)[0], width), "operand bias has shape " + c.text(c.dims(1)) +
                                              "; expected one number for each of the " + c.text(width) +
                                              " columns");
}

void decompose_gelu(Editor& e, const Node& n) {
  const bool by_tanh = n.op_name() == "com.microsoft::FastGelu";
  Rewrite w(e, n);
  const tn_value x = w.input(1) == TN_NONE ? w.input(0) : w.make("Add", {w.input(0), w.input(1)});
  w.become(0, w.make("Gelu", {x}, {AttrValue::of("approximate", by_tanh ? "tanh" : "none")}));
}
void decompose_quick_gelu(Editor& e, const Node& n) {
  const double alpha = n.attrs().get_float("alpha", static_cast<double>(1.702f));
  Rewrite w(e, n);
  w.become(0, w.make("Swish", {w.input(0)}, {AttrValue::of("alpha", alpha)}));
}

}  // namespace

void add_microsoft_activation(Plugin& p) {
  define_row(p, rows, "BiasGelu", "Gelu(A + B), by Erf.")
      .infer<infer_activation>()
      .decompose<decompose_gelu>();
  define_row(p, rows, "FastGelu", "Gelu(X + bias), by Tanh.")
      .infer<infer_activation>()
      .decompose<decompose_gelu>();
  define_row(p, rows, "Gelu", "Gelu(X), by Erf.")
      .flags(TN_OP_ELEMENTWISE)
      .infer<infer_activation>()
      .decompose<decompose_gelu>();
  define_row(p, rows, "QuickGelu", "X * sigmoid(alpha * X).")
      .flags(TN_OP_ELEMENTWISE)
      .infer<infer_activation>()
      .decompose<decompose_quick_gelu>();
}

}  // namespace tenon::ops
