// Elementwise operators, pools and joins on 8-bit integers with a scale: dequantised, computed in float32,
// quantised again.
#include "microsoft/microsoft.hpp"
#include "spatial/conv.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr const char* unary = "X:T X_scale:=f32 X_zero_point?:T Y_scale:=f32 Y_zero_point?:T";
constexpr const char* binary =
    "A:T A_scale:=f32 A_zero_point?:T B:T B_scale:=f32 B_zero_point?:T C_scale:=f32 C_zero_point?:T";
constexpr const char* bytes = "T:i8,u8";

constexpr Schema rows[] = {
    {domain, "DequantizeLinear", 1, 1, 2, "x:T x_scale:S x_zero_point?:T", "y:S",
     "T:i4,i8,i16,i32,u4,u8,u16 S:f16,f32", "axis:int"},
    {domain, "NhwcMaxPool", 1, 1, 1, "x:T", "y:T", bytes,
     "auto_pad='NOTSET' ceil_mode=0 dilations:ints kernel_shape!:ints pads:ints strides:ints"},
    {domain, "QLinearAdd", 1, 1, 7, binary, "C:T", bytes, ""},
    {domain, "QLinearAveragePool", 1, 1, 4, unary, "Y:T", bytes,
     "auto_pad='NOTSET' ceil_mode=0 channels_last=0 count_include_pad=0 kernel_shape!:ints pads:ints "
     "strides:ints"},
    {domain, "QLinearConcat", 1, 1, 3, "Y_scale:=f32 Y_zero_point:T inputs**:V", "Y:T", "T:i8,u8 V:i8,u8,f32",
     "axis!:int"},
    {domain, "QLinearConv", 1, 1, 8,
     "x:A x_scale:=f32 x_zero_point:A w:B w_scale:=f32 w_zero_point:B y_scale:=f32 y_zero_point:T B?:=i32",
     "y:T", "A:i8,u8 B:i8,u8 T:i8,u8",
     "auto_pad='NOTSET' channels_last=0 dilations:ints group=1 kernel_shape:ints pads:ints strides:ints"},
    {domain, "QLinearGlobalAveragePool", 1, 1, 4, unary, "Y:T", bytes, "channels_last=0"},
    {domain, "QLinearLeakyRelu", 1, 1, 4, unary, "Y:T", bytes, "alpha=0.01"},
    {domain, "QLinearMul", 1, 1, 7, binary, "C:T", bytes, ""},
    {domain, "QLinearReduceMean", 1, 1, 4, unary, "Y:T", bytes, "axes!:ints keepdims!:int"},
    {domain, "QLinearSigmoid", 1, 1, 4, unary, "Y:T", bytes, ""},
    {domain, "QLinearSoftmax", 1, 1, 4, unary, "Y:T", bytes, "axis=-1 opset!:int"},
    {domain, "QLinearWhere", 1, 1, 9,
     "condition:=bool X:T x_scale:=f32 x_zero_point:T Y:T y_scale:=f32 y_zero_point:T z_scale:=f32 "
     "z_zero_point:T",
     "Z:T", bytes, ""},
    {domain, "QuantizeLinear", 1, 1, 2, "x:S y_scale:S y_zero_point?:T", "y:T",
     "S:f16,f32 T:i4,i8,i16,u4,u8,u16", "axis:int"},
};

bool channels_last(const Attributes& a) { return a.get_int("channels_last", 0) != 0; }

// ---- inference
// -----------------------------------------------------------------------------------------------------------------

void infer_quantize(Infer& c) { same_shape(c, 0, 0, c.has_input(2) ? c.dtype(2) : TN_UINT8); }
void infer_dequantize(Infer& c) { same_shape(c, 0, 0, c.dtype(1)); }
void infer_unary(Infer& c) { same_type(c, 0, 0); }
void infer_binary(Infer& c) {
  if (!c.has_rank(0) || !c.has_rank(3)) return c.set_unranked(0, c.dtype(0));
  c.set(0, c.dtype(0), c.broadcast(c.dims(0), c.dims(3)));
}
void infer_where(Infer& c) {
  if (!c.has_rank(0) || !c.has_rank(1) || !c.has_rank(4)) return c.set_unranked(0, c.dtype(1));
  c.set(0, c.dtype(1), c.broadcast(c.broadcast(c.dims(0), c.dims(1)), c.dims(4)));
}
void infer_concat(Infer& c) {
  const tn_dtype dtype = c.dtype(1);
  require(c.input_count() >= 5 && (c.input_count() - 2) % 3 == 0,
          "has " + text_of(c.input_count()) +
              " operands; expected Y_scale, Y_zero_point, and a tensor, a scale and a zero "
              "point for each part");
  std::vector<tn_dim> out;
  for (uint32_t i = 2; i < c.input_count(); i += 3) {
    if (!ranked(c, i, "of a part", 1)) return c.set_unranked(0, dtype);
    const auto dims = c.dims(i);
    const auto axis = static_cast<size_t>(Infer::axis(required_int(c.attrs(), "axis"), c.rank(i)));
    if (i == 2) {
      out = dims;
      continue;
    }
    bool good = dims.size() == out.size();
    for (size_t k = 0; good && k < out.size(); ++k) good = k == axis || !c.differ(out[k], dims[k]);
    require(good, "parts have shapes " + c.text(out) + " and " + c.text(dims) +
                      "; expected equal ones but for axis " + text_of(static_cast<int64_t>(axis)));
    out[axis] = c.add(out[axis], dims[axis]);
  }
  c.set(0, dtype, out);
}
void infer_global_pool(Infer& c) {
  if (!ranked(c, 0, "X", 3)) return c.set_unranked(0, c.dtype(0));
  auto out = c.dims(0);
  const size_t first = channels_last(c.attrs()) ? 1 : 2;
  for (size_t i = 0; i + 2 < out.size(); ++i) out[first + i] = 1;
  c.set(0, c.dtype(0), out);
}
void infer_pool(Infer& c) {
  if (!ranked(c, 0, "X", 3)) return c.set_unranked(0, c.dtype(0));
  auto out = c.dims(0);
  const auto kernel = kernel_shape(c, out.size() - 2);
  require(kernel.has_value(), "attribute 'kernel_shape' is missing");
  const Window w = read_window(c, *kernel);
  const bool round_up = c.attrs().get_int("ceil_mode", 0) != 0;
  const size_t first = channels_last(c.attrs()) || c.op_name() == "com.microsoft::NhwcMaxPool" ? 1 : 2;
  for (size_t i = 0; i < w.axes(); ++i) out[first + i] = window_count(c, w, i, out[first + i], round_up);
  c.set(0, c.dtype(0), out);
}
void infer_reduce_mean(Infer& c) {
  if (!c.has_rank(0)) return c.set_unranked(0, c.dtype(0));
  const auto x = c.dims(0);
  std::vector<bool> gone(x.size(), false);
  for (int64_t axis : c.attrs().get_ints("axes"))
    gone[static_cast<size_t>(Infer::axis(axis, c.rank(0)))] = true;
  const bool keep = c.attrs().get_int("keepdims", 1) != 0;
  std::vector<tn_dim> out;
  for (size_t i = 0; i < x.size(); ++i)
    if (!gone[i])
      out.push_back(x[i]);
    else if (keep)
      out.push_back(1);
  c.set(0, c.dtype(0), out);
}
/// With the channels last the window is not looked at here: the decomposition's own nodes are inferred.
void infer_conv(Infer& c) {
  const tn_dtype dtype = c.dtype(7);
  if (!channels_last(c.attrs()))
    return infer_convolution(c, 0, 3, c.has_input(8) ? std::optional<uint32_t>(8) : std::nullopt, dtype);
  if (!ranked(c, 0, "x", 3) || !c.has_rank(3)) return c.set_unranked(0, dtype);
  auto out = c.dims(0);
  const auto weights = c.dims(3);
  require(weights.size() == out.size(),
          "x has shape " + c.text(out) + " and w " + c.text(weights) + "; expected equal ranks");
  const Window w = read_window(c, std::vector<tn_dim>(weights.begin() + 2, weights.end()));
  for (size_t i = 0; i < w.axes(); ++i) out[1 + i] = window_count(c, w, i, out[1 + i], false);
  out.back() = weights[0];
  c.set(0, dtype, out);
}

// ---- bodies
// -----------------------------------------------------------------------------------------------------------------

tn_value real(Rewrite& w, size_t x) {
  return w.make("DequantizeLinear", {w.input(x), w.input(x + 1), w.input(x + 2)});
}
/// Result 0 is y, quantised by the operands `scale` and the next; a zero point that is not given is 0 in the
/// type of x.
void become_quantised(Rewrite& w, tn_value y, size_t scale, size_t like) {
  const tn_value zero = w.input(scale + 1) != TN_NONE ? w.input(scale + 1) : w.number_like(0, w.input(like));
  w.become(0, w.make("QuantizeLinear", {y, w.input(scale), zero}));
}

void decompose_binary(Editor& e, const Node& n) {
  const char* op = n.op_name() == "com.microsoft::QLinearAdd" ? "Add" : "Mul";
  Rewrite w(e, n);
  become_quantised(w, w.make(op, {real(w, 0), real(w, 3)}), 6, 0);
}
void decompose_activation(Editor& e, const Node& n) {
  const bool leaky = n.op_name() == "com.microsoft::QLinearLeakyRelu";
  const double alpha = n.attrs().get_float("alpha", static_cast<double>(0.01f));
  Rewrite w(e, n);
  const tn_value x = real(w, 0);
  become_quantised(
      w, leaky ? w.make("LeakyRelu", {x}, {AttrValue::of("alpha", alpha)}) : w.make("Sigmoid", {x}), 3, 0);
}
void decompose_softmax(Editor& e, const Node& n) {
  const int64_t said = n.attrs().get_int("axis", -1);
  const bool over_all_behind = required_int(n.attrs(), "opset") < 13;
  Rewrite w(e, n);
  const tn_value x = real(w, 0);
  if (!over_all_behind)
    return become_quantised(w, w.make("Softmax", {x}, {AttrValue::of("axis", said)}), 3, 0);
  const int32_t rank = rank_needed(w, 0, "X");
  const int64_t axis = Infer::axis(said, std::max(rank, 1));
  const tn_value flat = w.make("Flatten", {x}, {AttrValue::of("axis", axis)});
  const tn_value y = w.make("Softmax", {flat}, {AttrValue::of("axis", int64_t{1})});
  become_quantised(w, w.make("Reshape", {y, w.make("Shape", {x})}), 3, 0);
}
void decompose_where(Editor& e, const Node& n) {
  Rewrite w(e, n);
  become_quantised(w, w.make("Where", {w.input(0), real(w, 1), real(w, 4)}), 7, 1);
}
void decompose_concat(Editor& e, const Node& n) {
  const int64_t axis = required_int(n.attrs(), "axis");
  Rewrite w(e, n);
  std::vector<tn_value> parts;
  for (size_t i = 2; i + 2 < w.inputs().size(); i += 3) parts.push_back(real(w, i));
  become_quantised(w, concat(w, parts, axis), 0, 1);
}
void decompose_reduce_mean(Editor& e, const Node& n) {
  const Dims axes = n.attrs().get_ints("axes").copy();
  const int64_t keep = n.attrs().get_int("keepdims", 1);
  Rewrite w(e, n);
  const tn_value y = w.make("ReduceMean", {real(w, 0), w.ints(axes)}, {AttrValue::of("keepdims", keep)});
  become_quantised(w, y, 3, 0);
}

/// Images with the channels last, turned to where ONNX has them and back.
struct ChannelsLast {
  Dims to_first, to_last;
  bool wanted = false;
  ChannelsLast(Rewrite& w, bool last, const char* name) : wanted(last) {
    if (!last) return;
    const int64_t rank = rank_needed(w, 0, name);
    if (rank < 3) decline("the operand has no spatial axes");
    to_first = {0, rank - 1};
    to_last = {0};
    for (int64_t i = 1; i + 1 < rank; ++i) {
      to_first.push_back(i);
      to_last.push_back(i + 1);
    }
    to_last.push_back(1);
  }
  tn_value in(Rewrite& w, tn_value x) const { return wanted ? transpose(w, x, to_first) : x; }
  tn_value out(Rewrite& w, tn_value y) const { return wanted ? transpose(w, y, to_last) : y; }
};

void decompose_pool(Editor& e, const Node& n) {
  const bool global = n.op_name() == "com.microsoft::QLinearGlobalAveragePool",
             last = channels_last(n.attrs());
  const OwnAttributes own(n,
                          {"auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides"});
  Rewrite w(e, n);
  const ChannelsLast turn(w, last, "X");
  const tn_value x = turn.in(w, real(w, 0));
  become_quantised(w, turn.out(w, w.make(global ? "GlobalAveragePool" : "AveragePool", {x}, own.values)), 3,
                   0);
}
void decompose_max_pool(Editor& e, const Node& n) {
  const OwnAttributes own(n, {"auto_pad", "ceil_mode", "dilations", "kernel_shape", "pads", "strides"});
  Rewrite w(e, n);
  const ChannelsLast turn(w, true, "x");
  w.become(0, turn.out(w, w.make("MaxPool", {turn.in(w, w.input(0))}, own.values)));
}
void decompose_conv(Editor& e, const Node& n) {
  const OwnAttributes own(n, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"});
  const bool last = channels_last(n.attrs());
  Rewrite w(e, n);
  const ChannelsLast turn(w, last, "x");
  std::vector<tn_value> inputs = w.inputs();
  inputs[0] = turn.in(w, inputs[0]);
  w.become(0, turn.out(w, w.make("QLinearConv", inputs, own.values)));
}
void decompose_linear(Editor& e, const Node& n) {  // the operators of ai.onnx by other names
  const char* op = n.op_name() == "com.microsoft::QuantizeLinear" ? "QuantizeLinear" : "DequantizeLinear";
  const OwnAttributes own(n, {"axis"});
  Rewrite w(e, n);
  w.become(0, w.make(op, w.inputs(), own.values));
}

}  // namespace

void add_microsoft_qlinear(Plugin& p) {
  const auto row = [&](const char* name, const char* doc) -> OpBuilder& {
    return define_row(p, rows, name, doc);
  };
  row("QuantizeLinear", "QuantizeLinear of ai.onnx.").infer<infer_quantize>().decompose<decompose_linear>();
  row("DequantizeLinear", "DequantizeLinear of ai.onnx.")
      .infer<infer_dequantize>()
      .decompose<decompose_linear>();
  for (const char* name : {"QLinearAdd", "QLinearMul"})
    row(name, "A and B dequantised, added or multiplied, quantised.")
        .infer<infer_binary>()
        .decompose<decompose_binary>();
  for (const char* name : {"QLinearSigmoid", "QLinearLeakyRelu"})
    row(name, "X dequantised, activated, quantised.").infer<infer_unary>().decompose<decompose_activation>();
  row("QLinearSoftmax", "X dequantised, Softmax as that opset has it, quantised.")
      .infer<infer_unary>()
      .decompose<decompose_softmax>();
  row("QLinearWhere", "X where the condition holds, else Y, both dequantised; quantised.")
      .infer<infer_where>()
      .decompose<decompose_where>();
  row("QLinearConcat", "Parts of scales of their own, dequantised, joined, quantised.")
      .infer<infer_concat>()
      .decompose<decompose_concat>();
  row("QLinearReduceMean", "X dequantised, ReduceMean, quantised.")
      .infer<infer_reduce_mean>()
      .decompose<decompose_reduce_mean>();
  row("QLinearGlobalAveragePool", "X dequantised, GlobalAveragePool, quantised.")
      .infer<infer_global_pool>()
      .decompose<decompose_pool>();
  row("QLinearAveragePool", "X dequantised, AveragePool, quantised.")
      .infer<infer_pool>()
      .decompose<decompose_pool>();
  row("NhwcMaxPool", "MaxPool with the channels last.").infer<infer_pool>().decompose<decompose_max_pool>();
  row("QLinearConv", "QLinearConv of ai.onnx, perhaps with the channels last.")
      .infer<infer_conv>()
      .decompose<decompose_conv>();
}

}  // namespace tenon::ops
