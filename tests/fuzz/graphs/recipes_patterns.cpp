// The chains that rules and passes look for, with what makes them look twice: another reader in the middle, a
// middle that is an output, a constant that is no constant, an order of operands.
#include "draw.hpp"

namespace tenon::fuzz {

namespace {

// A reader beside the chain, some of the time.
void disturb(Drawer& d, const Drawn& x) {
  if (x.id != TN_NONE && d.random.chance(0.2))
    d.node1(d.random.of({"Relu", "Neg", "Identity", "Sigmoid"}), {x});
}

Drawn activation(Drawer& d, const Drawn& x) {
  if (x.id == TN_NONE) return x;
  disturb(d, x);
  switch (d.random.below(7)) {
    case 0:
      return d.node1("Clip",
                     {x, d.constant(float_tensor(x.dtype, {}, 0)), d.constant(float_tensor(x.dtype, {}, 6))});
    case 1: {
      const Drawn gate = d.node1("Sigmoid", {x});
      return gate.id == TN_NONE
                 ? gate
                 : d.node1("Mul", d.random.chance(0.5) ? std::vector{x, gate} : std::vector{gate, x});
    }
    case 2:
      return d.node1("LeakyRelu", {x}, {{"alpha", 0.1}});
    case 3:
      return d.node1(d.random.of({"HardSwish", "Sigmoid", "Tanh", "Elu"}), {x});
    default:
      return d.node1("Relu", {x});
  }
}

bool add_conv_chain(Drawer& d) {
  const Drawn x = d.operand(TN_FLOAT32, {d.random.between(1, 2), d.random.between(1, 4),
                                         d.random.between(2, 6), d.random.between(2, 6)});
  const int64_t out = d.random.chance(0.4) ? x.dims[1] : d.random.between(1, 5);
  const int64_t k = d.random.of({1, 1, 3});
  const int64_t pad = k == 3 ? 1 : 0;
  Drawn y = d.node1("Conv",
                    {x, d.weight(TN_FLOAT32, {out, x.dims[1], k, k}),
                     d.random.chance(0.5) ? d.weight(TN_FLOAT32, {out}) : Drawn{}},
                    {{"pads", std::vector<int64_t>{pad, pad, pad, pad}}});
  if (y.id == TN_NONE) return false;
  disturb(d, y);
  const Dims c = {out};
  switch (d.random.below(4)) {
    case 0:
    case 1:
      y = d.node1("BatchNormalization", {y, d.weight(TN_FLOAT32, c), d.weight(TN_FLOAT32, c),
                                         d.weight(TN_FLOAT32, c), d.weight(TN_FLOAT32, c, Fill::positive)});
      break;
    case 2:
      y = d.node1("Mul", {y, d.weight(TN_FLOAT32, d.random.chance(0.7) ? Dims{1, out, 1, 1} : Dims{})});
      if (y.id != TN_NONE)
        y = d.node1("Add", {y, d.weight(TN_FLOAT32,
                                        d.random.chance(0.7) ? Dims{out, 1, 1} : Dims{1, 1, 1, y.dims[3]})});
      break;
    default:
      break;
  }
  if (y.id == TN_NONE) return false;
  if (d.random.chance(0.4)) {
    disturb(d, y);
    const Drawn other =
        y.dims == x.dims && d.random.chance(0.6) ? x : d.operand(TN_FLOAT32, d.broadcastable(y.dims));
    y = d.node1("Add", d.random.chance(0.5) ? std::vector{y, other} : std::vector{other, y});
  }
  return activation(d, y).id != TN_NONE;
}

bool add_matmul_chain(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32, TN_FLOAT32, TN_FLOAT16}, 2, 3);
  const int64_t out = d.random.between(1, 6);
  Drawn y = d.node1("MatMul", {x, d.weight(x.dtype, {x.dims.back(), out})});
  if (y.id == TN_NONE) return false;
  disturb(d, y);
  const Drawn bias = d.operand(x.dtype, d.random.chance(0.8) ? Dims{out} : d.broadcastable(y.dims));
  y = d.node1("Add", d.random.chance(0.5) ? std::vector{y, bias} : std::vector{bias, y});
  return activation(d, y).id != TN_NONE;
}

Drawn constant_of(Drawer& d, const Drawn& like, double value) {
  return d.constant(float_tensor(like.dtype, {}, value));
}

bool add_gelu(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32, TN_FLOAT32, TN_FLOAT64, TN_FLOAT16}, 1, 3);
  const bool exact = d.random.chance(0.6);
  Drawn inner;
  if (exact) {
    const double root = d.random.chance(0.85) ? 1.4142135623730951 : 1.5;  // the last is no Gelu
    inner = d.random.chance(0.5) ? d.node1("Div", {x, constant_of(d, x, root)})
                                 : d.node1("Mul", {x, constant_of(d, x, 1 / root)});
    if (inner.id != TN_NONE) inner = d.node1("Erf", {inner});
  } else {
    const Drawn cube = d.node1("Pow", {x, constant_of(d, x, 3)});
    if (cube.id == TN_NONE) return false;
    Drawn sum = d.node1("Mul", {cube, constant_of(d, x, 0.044715)});
    if (sum.id != TN_NONE) sum = d.node1("Add", {x, sum});
    if (sum.id != TN_NONE) sum = d.node1("Mul", {sum, constant_of(d, x, 0.7978845608028654)});
    if (sum.id != TN_NONE) inner = d.node1("Tanh", {sum});
  }
  if (inner.id == TN_NONE) return false;
  disturb(d, inner);
  const Drawn plus = d.node1("Add", {inner, constant_of(d, x, 1)});
  if (plus.id == TN_NONE) return false;
  if (d.random.chance(0.5)) {
    const Drawn half = d.node1("Mul", {x, constant_of(d, x, 0.5)});
    return half.id != TN_NONE && d.node1("Mul", {half, plus}).id != TN_NONE;
  }
  const Drawn product = d.node1("Mul", {x, plus});
  return product.id != TN_NONE && d.node1("Mul", {product, constant_of(d, x, 0.5)}).id != TN_NONE;
}

bool add_layer_normalization(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32, TN_FLOAT32, TN_FLOAT64, TN_FLOAT16}, 2, 4);
  const Drawn axes = d.ints({d.random.chance(0.85) ? -1 : 0});
  const bool rms = d.random.chance(0.3);
  Drawn centred = x;
  if (!rms) {
    const Drawn mean = d.node1("ReduceMean", {x, axes});
    if (mean.id == TN_NONE) return false;
    disturb(d, mean);
    centred = d.node1("Sub", {x, mean});
    if (centred.id == TN_NONE) return false;
  }
  const Drawn square = d.random.chance(0.6) ? d.node1("Pow", {centred, constant_of(d, x, 2)})
                                            : d.node1("Mul", {centred, centred});
  if (square.id == TN_NONE) return false;
  Drawn variance = d.node1("ReduceMean", {square, axes});
  if (variance.id == TN_NONE) return false;
  variance = d.node1("Add", {variance, constant_of(d, x, d.random.of({1e-5, 1e-3}))});
  if (variance.id == TN_NONE) return false;
  const Drawn deviation = d.node1("Sqrt", {variance});
  if (deviation.id == TN_NONE) return false;
  Drawn y = d.node1("Div", {centred, deviation});
  if (y.id == TN_NONE) return false;
  disturb(d, y);
  const Dims width = {x.dims.back()};
  y = d.node1("Mul", {y, d.weight(x.dtype, d.random.chance(0.85) ? width : Dims{})});
  return y.id != TN_NONE && d.node1("Add", {y, d.weight(x.dtype, width)}).id != TN_NONE;
}

bool add_quantized_chain(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32}, 2, 2);
  if (x.count() == 0) return false;
  const tn_dtype integer = d.random.of({TN_UINT8, TN_INT8});
  const auto there_and_back = [&](const Drawn& v) {
    const Drawn scale = d.weight(TN_FLOAT32, {}, Fill::positive),
                zero = d.weight(integer, {}, Fill::positive);
    const Drawn q = d.node1("QuantizeLinear", {v, scale, zero});
    return q.id == TN_NONE ? q : d.node1("DequantizeLinear", {q, scale, zero});
  };
  const Drawn a = there_and_back(x);
  const Drawn w = d.weight(TN_INT8, {x.dims[1], d.random.between(1, 4)});
  if (a.id == TN_NONE) return false;
  const Drawn b = d.node1("DequantizeLinear", {w, d.weight(TN_FLOAT32, {}, Fill::positive)});
  if (b.id == TN_NONE) return false;
  const Drawn y = d.node1("MatMul", {a, b});
  return y.id != TN_NONE && there_and_back(y).id != TN_NONE;
}

// What cleaning passes take out, or must not: neutral elements, inverse pairs, the same node twice.
bool add_redundant(Drawer& d) {
  const Drawn x = d.any({TN_FLOAT32, TN_FLOAT32, TN_FLOAT16, TN_INT32, TN_INT64}, 0, 4);
  switch (d.random.below(8)) {
    case 0:
      return d.node1(d.random.of({"Add", "Sub"}),
                     {x, d.constant(float_tensor(x.dtype, d.broadcastable(x.dims), 0))})
                 .id != TN_NONE;
    case 1:
      return d.node1(d.random.of({"Mul", "Div"}),
                     {x, d.constant(float_tensor(x.dtype, d.broadcastable(x.dims), 1))})
                 .id != TN_NONE;
    case 2:
      return d.node1("Pow", {x, d.constant(float_tensor(x.dtype, {}, d.random.of({1.0, 2.0, 0.5})))}).id !=
             TN_NONE;
    case 3: {
      const Drawn y = d.node1("Neg", {x});
      return y.id != TN_NONE && d.node1("Neg", {y}).id != TN_NONE;
    }
    case 4: {
      const char* const op = d.random.of({"Abs", "Neg", "Identity"});
      const Drawn a = d.node1(op, {x}), b = d.node1(op, {x});
      return a.id != TN_NONE && b.id != TN_NONE && d.node1("Add", {a, b}).id != TN_NONE;
    }
    case 5: {
      const Drawn y = d.node1("Mul", {x, d.constant(float_tensor(x.dtype, {}, 2))});
      return y.id != TN_NONE && d.node1("Mul", {y, d.constant(float_tensor(x.dtype, {}, 3))}).id != TN_NONE;
    }
    case 6: {
      const Drawn y = d.node1("Add", {x, d.weight(x.dtype, d.broadcastable(x.dims))});
      return y.id != TN_NONE && d.node1("Add", {y, d.weight(x.dtype, d.broadcastable(x.dims))}).id != TN_NONE;
    }
    default: {
      const Drawn y = d.node1("Dropout", {x});
      return y.id != TN_NONE && d.node1("Identity", {y}).id != TN_NONE;
    }
  }
}

}  // namespace

std::span<const Recipe> pattern_recipes() {
  static constexpr Recipe recipes[] = {{"conv chain", 8, add_conv_chain},
                                       {"matmul chain", 6, add_matmul_chain},
                                       {"gelu", 4, add_gelu},
                                       {"layer normalization", 4, add_layer_normalization},
                                       {"quantized chain", 3, add_quantized_chain},
                                       {"redundant", 10, add_redundant}};
  return recipes;
}

}  // namespace tenon::fuzz
