// Layers: products, convolutions, pools, normalisations, attention, recurrent and quantised ones.
#include "draw.hpp"

#include <algorithm>

namespace tenon::fuzz {

namespace {

const Dtypes floats = {TN_FLOAT32, TN_FLOAT32, TN_FLOAT32, TN_FLOAT32, TN_FLOAT16, TN_FLOAT64, TN_BFLOAT16};

bool add_matmul(Drawer& d) {
  const Drawn a = d.any(floats, 1, 4);
  const int64_t inner = a.dims.back();
  Dims dims = {inner, d.random.between(1, 6)};
  if (a.rank() > 2 && d.random.chance(0.4)) dims.insert(dims.begin(), a.dims.begin(), a.dims.end() - 2);
  if (d.random.chance(0.1)) dims = {inner};
  const Drawn b = d.operand(a.dtype, dims);
  if (a.rank() == 2 && dims.size() == 2 && d.random.chance(0.4)) {
    const bool turn = d.random.chance(0.5);
    const Drawn w = turn ? d.operand(a.dtype, {dims[1], dims[0]}) : b;
    const Drawn c =
        d.random.chance(0.7) ? d.operand(a.dtype, d.broadcastable({a.dims[0], dims[1]})) : Drawn{};
    Attributes attributes = {{"transB", turn ? 1 : 0}};
    if (d.random.chance(0.3)) attributes.push_back({"alpha", d.random.of({0.5, 2.0, -1.0})});
    if (d.random.chance(0.3)) attributes.push_back({"beta", d.random.of({0.5, 2.0, 0.0})});
    return d.node1("Gemm", {a, w, c}, attributes).id != TN_NONE;
  }
  if (dims.size() == 2 && d.random.chance(0.08))
    return d.node1("Einsum", {a, b}, {{"equation", "...k,kn->...n"}}).id != TN_NONE;
  return d.node1("MatMul", {a, b}).id != TN_NONE;
}

// A value of images [n, c, spatial...]: one that is there, or an input.
Drawn images(Drawer& d, int64_t low_rank = 3, int64_t high_rank = 4) {
  const auto fits = [&](const Drawn& v) {
    return v.kind == TN_KIND_TENSOR && (v.dtype == TN_FLOAT32 || v.dtype == TN_FLOAT16) &&
           v.rank() >= low_rank && v.rank() <= high_rank && v.count() <= 2048 && v.count() > 0;
  };
  if (d.random.chance(0.8))
    if (const auto found = d.existing(fits)) return *found;
  Dims dims = {d.random.between(1, 2), d.random.between(1, 6)};
  const int64_t spatial = std::clamp<int64_t>(d.random.chance(0.8) ? 2 : 1, low_rank - 2, high_rank - 2);
  for (int64_t i = spatial; i > 0; --i) dims.push_back(d.random.between(1, 8));
  return d.input(d.random.chance(0.9) ? TN_FLOAT32 : TN_FLOAT16, dims);
}

struct Window {
  std::vector<int64_t> kernel, strides, dilations, pads;
};
Window window(Drawer& d, const Drawn& x) {
  Window w;
  const auto spatial = static_cast<size_t>(x.rank() - 2);
  w.pads.resize(2 * spatial);
  for (size_t i = 0; i < spatial; ++i) {
    const int64_t size = x.dims[i + 2];
    const int64_t kernel = d.random.between(1, std::min<int64_t>(3, size));
    w.kernel.push_back(kernel);
    w.strides.push_back(d.random.chance(0.7) ? 1 : 2);
    w.dilations.push_back(d.random.chance(0.85) || kernel * 2 > size ? 1 : 2);
    for (const size_t side : {i, i + spatial})
      w.pads[side] = d.random.chance(0.5) ? 0 : d.random.between(0, kernel - 1);
  }
  return w;
}

bool add_conv(Drawer& d) {
  const Drawn x = images(d);
  const Window w = window(d, x);
  const int64_t channels = x.dims[1];
  const int64_t groups = d.random.chance(0.7)   ? 1
                         : d.random.chance(0.5) ? channels
                         : channels % 2 == 0    ? 2
                                                : 1;
  const bool transposed = d.random.chance(0.15);
  const int64_t per_group = d.random.between(1, 3);
  Dims weights = transposed ? Dims{channels, per_group} : Dims{groups * per_group, channels / groups};
  weights.insert(weights.end(), w.kernel.begin(), w.kernel.end());
  Attributes attributes = {{"group", groups}, {"strides", w.strides}, {"dilations", w.dilations}};
  if (d.random.chance(0.8)) attributes.push_back({"kernel_shape", w.kernel});
  if (d.random.chance(0.15))
    attributes.push_back({"auto_pad", d.random.of({"SAME_UPPER", "SAME_LOWER", "VALID"})});
  else
    attributes.push_back({"pads", w.pads});
  const Drawn bias = d.random.chance(0.6) ? d.operand(x.dtype, {groups * per_group}) : Drawn{};
  return d.node1(transposed ? "ConvTranspose" : "Conv", {x, d.weight(x.dtype, weights), bias}, attributes)
             .id != TN_NONE;
}

bool add_pool(Drawer& d) {
  const Drawn x = images(d);
  if (d.random.chance(0.25))
    return d.node1(d.random.of({"GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"}), {x}).id != TN_NONE;
  const Window w = window(d, x);
  const std::string_view op = d.random.of({"MaxPool", "AveragePool", "AveragePool", "LpPool"});
  Attributes attributes = {{"kernel_shape", w.kernel},
                           {"strides", w.strides},
                           {"pads", w.pads},
                           {"ceil_mode", d.random.between(0, 1)},
                           {"dilations", w.dilations}};
  if (op == "AveragePool") attributes.push_back({"count_include_pad", d.random.between(0, 1)});
  return !d.node(op, {x}, attributes, op == "MaxPool" && d.random.chance(0.15) ? 2 : 1).empty();
}

bool add_normalization(Drawer& d) {
  switch (d.random.below(9)) {
    case 0:
    case 1: {
      const Drawn x = images(d, 2, 4);
      const Dims c = {x.dims[1]};
      return d.node1("BatchNormalization",
                     {x, d.operand(x.dtype, c), d.operand(x.dtype, c), d.operand(x.dtype, c),
                      d.weight(x.dtype, c, Fill::positive)},
                     {{"epsilon", d.random.of({1e-5, 1e-3})}})
                 .id != TN_NONE;
    }
    case 2: {
      const Drawn x = images(d, 3, 4);
      const Dims c = {x.dims[1]};
      return d.node1("InstanceNormalization", {x, d.operand(x.dtype, c), d.operand(x.dtype, c)}).id !=
             TN_NONE;
    }
    case 3: {
      const Drawn x = images(d, 3, 4);
      const Dims c = {x.dims[1]};
      return d.node1("GroupNormalization", {x, d.operand(x.dtype, c), d.operand(x.dtype, c)},
                     {{"num_groups", c[0] % 2 == 0 ? 2 : 1}})
                 .id != TN_NONE;
    }
    case 4:
    case 5: {
      const Drawn x = d.any(floats, 1, 4);
      const int64_t axis = d.random.chance(0.7) ? -1 : d.random.between(0, x.rank() - 1);
      const Dims tail(x.dims.begin() + static_cast<ptrdiff_t>(axis < 0 ? axis + x.rank() : axis),
                      x.dims.end());
      if (d.random.chance(0.3))
        return d.node1("RMSNormalization", {x, d.operand(x.dtype, tail)}, {{"axis", axis}}).id != TN_NONE;
      return d.node1("LayerNormalization",
                     {x, d.operand(x.dtype, tail), d.random.chance(0.7) ? d.operand(x.dtype, tail) : Drawn{}},
                     {{"axis", axis}})
                 .id != TN_NONE;
    }
    case 6: {
      const Drawn x = images(d, 3, 4);
      return d.node1("LRN", {x}, {{"size", d.random.of({1, 3})}}).id != TN_NONE;
    }
    case 7: {
      const Drawn x = d.any(floats, 1, 4);
      return d.node1("LpNormalization", {x}, {{"axis", d.axis(x.rank())}, {"p", d.random.between(1, 2)}})
                 .id != TN_NONE;
    }
    default: {
      const Drawn x = d.any(floats, 1, 4);
      return d.node1(d.random.of({"Softmax", "Softmax", "LogSoftmax", "Hardmax"}), {x},
                     {{"axis", d.axis(x.rank())}})
                 .id != TN_NONE;
    }
  }
}

bool add_image_move(Drawer& d) {
  const Drawn x = images(d, 4, 4);
  switch (d.random.below(5)) {
    case 0:
      if (x.dims[2] % 2 != 0 || x.dims[3] % 2 != 0) return false;
      return d.node1("SpaceToDepth", {x}, {{"blocksize", 2}}).id != TN_NONE;
    case 1:
      if (x.dims[1] % 4 != 0) return false;
      return d.node1("DepthToSpace", {x}, {{"blocksize", 2}, {"mode", d.random.of({"DCR", "CRD"})}}).id !=
             TN_NONE;
    case 2: {
      Tensor grid(TN_FLOAT32, {x.dims[0], 3, 2, 2});
      fill(grid, d.random, Fill::tame);
      for (float& at : grid.as<float>()) at *= 0.6f;
      return d.node1(
                  "GridSample", {x, d.constant(grid)},
                  {{"mode", d.random.of({"linear", "nearest"})}, {"align_corners", d.random.between(0, 1)}})
                 .id != TN_NONE;
    }
    default: {
      const char* const mode = d.random.of({"nearest", "linear", "cubic"});
      Attributes attributes = {
          {"mode", mode},
          {"coordinate_transformation_mode",
           d.random.of({"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"})}};
      if (d.random.chance(0.5))
        return d.node1("Resize",
                       {x,
                        {},
                        {},
                        d.ints({x.dims[0], x.dims[1], d.random.between(1, 8), d.random.between(1, 8)})},
                       attributes)
                   .id != TN_NONE;
      Tensor scales = float_tensor(TN_FLOAT32, {4}, 1);
      scales.as<float>()[2] = d.random.of({2.0f, 1.5f, 0.5f});
      scales.as<float>()[3] = d.random.of({2.0f, 1.0f});
      return d.node1("Resize", {x, {}, d.constant(scales)}, attributes).id != TN_NONE;
    }
  }
}

bool add_recurrent(Drawer& d) {
  const int64_t time = d.random.between(1, 4), batch = d.random.between(1, 2), width = d.random.between(1, 3),
                hidden = d.random.between(1, 3);
  const Drawn x = d.operand(TN_FLOAT32, {time, batch, width});
  const std::string_view op = d.random.of({"RNN", "GRU", "LSTM"});
  const int64_t gates = op == "RNN" ? 1 : op == "GRU" ? 3 : 4;
  const char* const direction = d.random.of({"forward", "reverse", "bidirectional"});
  const int64_t directions = direction[0] == 'b' ? 2 : 1;
  std::vector<Drawn> inputs = {x, d.weight(TN_FLOAT32, {directions, gates * hidden, width}),
                               d.weight(TN_FLOAT32, {directions, gates * hidden, hidden})};
  if (d.random.chance(0.5)) inputs.push_back(d.weight(TN_FLOAT32, {directions, 2 * gates * hidden}));
  return !d.node(op, inputs, {{"hidden_size", hidden}, {"direction", direction}}, 2).empty();
}

bool add_attention(Drawer& d) {
  const int64_t batch = d.random.between(1, 2), heads = d.random.between(1, 2),
                queries = d.random.between(1, 4), keys = d.random.between(1, 4),
                width = 2 * d.random.between(1, 2);
  const Drawn q = d.operand(TN_FLOAT32, {batch, heads, queries, width});
  const Drawn k = d.operand(TN_FLOAT32, {batch, heads, keys, width}),
              v = d.operand(TN_FLOAT32, {batch, heads, keys, width});
  if (d.random.chance(0.4)) {
    const Drawn mask = d.random.chance(0.5) ? d.operand(TN_FLOAT32, {queries, keys}) : Drawn{};
    return d.node1("Attention", {q, k, v, mask},
                   {{"is_causal", mask.id == TN_NONE ? d.random.between(0, 1) : 0}})
               .id != TN_NONE;
  }
  // The same in small operators, as exporters write it.
  const Drawn turned = d.node1("Transpose", {k}, {{"perm", std::vector<int64_t>{0, 1, 3, 2}}});
  if (turned.id == TN_NONE) return false;
  Drawn scores = d.node1("MatMul", {q, turned});
  if (scores.id == TN_NONE) return false;
  const bool divide = d.random.chance(0.5);
  scores = d.node1(divide ? "Div" : "Mul",
                   {scores, d.constant(float_tensor(TN_FLOAT32, {}, divide ? 1.4142135623730951 : 0.5))});
  if (d.random.chance(0.5) && scores.id != TN_NONE)
    scores = d.node1("Add", {scores, d.operand(TN_FLOAT32, d.random.chance(0.5) ? Dims{queries, keys}
                                                                                : Dims{batch, 1, 1, keys})});
  if (scores.id == TN_NONE) return false;
  const Drawn shares = d.node1("Softmax", {scores}, {{"axis", -1}});
  return shares.id != TN_NONE && d.node1("MatMul", {shares, v}).id != TN_NONE;
}

Drawn scale(Drawer& d, const Dims& dims) { return d.weight(TN_FLOAT32, dims, Fill::positive); }

bool add_quantized(Drawer& d) {
  const tn_dtype integer = d.random.of({TN_UINT8, TN_INT8});
  switch (d.random.below(6)) {
    case 0:
    case 1: {
      // Quantise and dequantise, with the same or another scale.
      const Drawn x = d.any({TN_FLOAT32}, 0, 4);
      const Drawn s = scale(d, {}),
                  zero = d.random.chance(0.7) ? d.weight(integer, {}, Fill::positive) : Drawn{};
      const Drawn q = d.node1("QuantizeLinear", {x, s, zero});
      if (q.id == TN_NONE) return false;
      return d.node1("DequantizeLinear", {q, d.random.chance(0.8) ? s : scale(d, {}), zero}).id != TN_NONE;
    }
    case 2: {
      const Drawn x = d.any({TN_UINT8, TN_INT8, TN_INT32}, 1, 4);
      const int64_t axis = d.random.between(0, x.rank() - 1);
      return d.node1("DequantizeLinear", {x, scale(d, {x.dims[static_cast<size_t>(axis)]})}, {{"axis", axis}})
                 .id != TN_NONE;
    }
    case 3:
      return !d.node("DynamicQuantizeLinear", {d.any({TN_FLOAT32}, 1, 3)}, {}, 3).empty();
    case 4: {
      const Drawn a = d.operand(integer, {d.random.between(1, 4), d.random.between(1, 5)});
      const Drawn b = d.operand(integer, {a.dims[1], d.random.between(1, 4)});
      if (d.random.chance(0.5))
        return d.node1("MatMulInteger",
                       {a, b, d.random.chance(0.6) ? d.weight(integer, {}, Fill::positive) : Drawn{}, {}})
                   .id != TN_NONE;
      const Drawn zero = d.weight(integer, {}, Fill::positive);
      return d.node1("QLinearMatMul", {a, scale(d, {}), zero, b, scale(d, {}), zero, scale(d, {}), zero})
                 .id != TN_NONE;
    }
    default: {
      const Drawn x = d.operand(integer, {1, 2, d.random.between(2, 5), d.random.between(2, 5)});
      const Drawn w = d.weight(integer, {d.random.between(1, 3), 2, 2, 2});
      const Drawn zero = d.weight(integer, {}, Fill::positive);
      if (d.random.chance(0.5)) return d.node1("ConvInteger", {x, w, zero}).id != TN_NONE;
      return d.node1("QLinearConv", {x, scale(d, {}), zero, w, scale(d, {}), zero, scale(d, {}), zero}).id !=
             TN_NONE;
    }
  }
}

}  // namespace

std::span<const Recipe> network_recipes() {
  static constexpr Recipe recipes[] = {{"matmul", 12, add_matmul},
                                       {"conv", 10, add_conv},
                                       {"pool", 5, add_pool},
                                       {"normalization", 12, add_normalization},
                                       {"image move", 5, add_image_move},
                                       {"recurrent", 2, add_recurrent},
                                       {"attention", 4, add_attention},
                                       {"quantized", 8, add_quantized}};
  return recipes;
}

}  // namespace tenon::fuzz
