// Layer normalisations with what stands before them in transformers: a residual, a bias, embeddings. 16-bit
// floats are summed and normalised in float32.
#include "microsoft/microsoft.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "EmbedLayerNormalization", 1, 1, 7,
     "input_ids:I segment_ids?:I word_embedding:T position_embedding:T segment_embedding?:T gamma:T beta:T "
     "mask?:I "
     "position_ids?:I",
     "output:T mask_index?:I embedding_sum?:T", "T:@float I:i32,i64", "epsilon=1e-12 mask_index_type=1"},
    {"", "SimplifiedLayerNormalization", 1, 1, 2, "X:T scale:V", "Y:V inv_std_var?:U",
     "T:@float V:@float U:f32,f64", "axis=-1 epsilon=1e-5 stash_type=1"},
    {domain, "SkipLayerNormalization", 1, 1, 3, "input:T skip:T gamma:T beta?:T bias?:T",
     "output:T mean?:U inv_std_var?:U input_skip_bias_sum?:T", "T:@float U:f32", "epsilon=1e-12"},
    {domain, "SkipSimplifiedLayerNormalization", 1, 1, 3, "input:T skip:T gamma:T bias?:T",
     "output:T mean?:U inv_std_var?:U input_skip_bias_sum?:T", "T:@float U:f32", "epsilon=1e-12"},
};

void check_row(Infer& c, uint32_t i, const char* name, tn_dim width) {
  if (!c.has_input(i) || !ranked(c, i, name, 1, 1)) return;
  require(!c.differ(c.dims(i)[0], width), std::string("operand ") + name + " has shape " + c.text(c.dims(i)) +
                                              "; expected one number for each of the " + c.text(width) +
                                              " columns");
}

void infer_skip(Infer& c) {
  same_type(c, 0, 0);
  same_type(c, 3, 0);
  if (!ranked(c, 0, "input", 2, 3)) {
    c.set_unranked(1, TN_FLOAT32);
    return c.set_unranked(2, TN_FLOAT32);
  }
  auto dims = c.dims(0);
  if (c.has_rank(1)) {
    const auto all = c.broadcast(dims, c.dims(1));
    bool same = all.size() == dims.size();
    for (size_t i = 0; same && i < all.size(); ++i) same = !c.differ(all[i], dims[i]);
    require(same, "operand skip has shape " + c.text(c.dims(1)) + ", which does not broadcast to input's " +
                      c.text(dims));
  }
  const bool simplified = c.op_name() == "com.microsoft::SkipSimplifiedLayerNormalization";
  check_row(c, 2, "gamma", dims.back());
  if (!simplified) check_row(c, 3, "beta", dims.back());
  check_row(c, simplified ? 3 : 4, "bias", dims.back());
  dims.back() = 1;
  c.set(1, TN_FLOAT32, dims);
  c.set(2, TN_FLOAT32, dims);
}

void infer_simplified(Infer& c) {
  const tn_dtype dtype = c.dtype(1),
                 statistics = dtype_of_onnx(c.attrs().get_int("stash_type", 1), "stash_type");
  same_shape(c, 0, 0, dtype);
  if (!ranked(c, 0, "X", 1)) return c.set_unranked(1, statistics);
  auto dims = c.dims(0);
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", -1), c.rank(0)));
  for (size_t i = axis; i < dims.size(); ++i) dims[i] = 1;
  c.set(1, statistics, dims);
}

void infer_embed(Infer& c) {
  const tn_dtype dtype = c.dtype(2), index = c.dtype(0);
  if (!ranked(c, 0, "input_ids", 2, 2) || !ranked(c, 2, "word_embedding", 2, 2)) {
    c.set_unranked(0, dtype);
    c.set_unranked(1, index);
    return c.set_unranked(2, dtype);
  }
  const auto ids = c.dims(0);
  const tn_dim width = c.dims(2)[1];
  check_row(c, 5, "gamma", width);
  check_row(c, 6, "beta", width);
  const std::vector<tn_dim> all{ids[0], ids[1], width};
  c.set(0, dtype, all);
  c.set(1, index, Span<const tn_dim>(all.data(), 1));
  c.set(2, dtype, all);
}

// ---- bodies
// -----------------------------------------------------------------------------------------------------------------

/// Computes in float32 where the element type has 16 bits.
struct Wide {
  Rewrite& w;
  tn_dtype dtype;
  bool wider;
  Wide(Rewrite& rewrite, tn_value like) : w(rewrite), dtype(w.dtype(like)), wider(false) {
    if (dtype == TN_DTYPE_NONE) decline("the element type is not known");
    wider = dtype == TN_FLOAT16 || dtype == TN_BFLOAT16;
  }
  tn_value in(tn_value x) { return wider ? cast(w, x, TN_FLOAT32) : x; }
  tn_value out(tn_value x) { return wider ? cast(w, x, dtype) : x; }
};

tn_value inverse_deviation(Rewrite& w, tn_value x, const std::vector<int64_t>& axes, double epsilon) {
  const tn_value square = w.make("ReduceMean", {w.make("Mul", {x, x}), w.ints(axes)});
  return w.make("Reciprocal", {w.make("Sqrt", {w.make("Add", {square, w.number_like(epsilon, x)})})});
}

void decompose_skip(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-12f);
  const bool simplified = n.op_name() == "com.microsoft::SkipSimplifiedLayerNormalization";
  Rewrite w(e, n);
  Wide wide(w, w.input(0));
  tn_value sum = w.make("Add", {wide.in(w.input(0)), wide.in(w.input(1))});
  const tn_value bias = w.input(simplified ? 3 : 4);
  if (bias != TN_NONE) sum = w.make("Add", {sum, wide.in(bias)});
  const std::vector<AttrValue> attrs{AttrValue::of("axis", int64_t{-1}), AttrValue::of("epsilon", epsilon)};
  const tn_value gamma = wide.in(w.input(2));
  const auto single = [&](tn_value v) { return wide.dtype == TN_FLOAT64 ? cast(w, v, TN_FLOAT32) : v; };
  if (simplified) {
    w.become(0, wide.out(w.make("RMSNormalization", {sum, gamma}, attrs)));
    if (w.used(1) || w.used(2)) {
      const tn_value inverse = single(inverse_deviation(w, sum, {-1}, epsilon));
      w.become(1, w.make("Mul", {inverse, w.number_like(0, inverse)}));  // no mean is taken: it counts as 0
      w.become(2, inverse);
    }
  } else {
    const tn_value beta = w.input(3) == TN_NONE ? TN_NONE : wide.in(w.input(3));
    const auto results =
        w.make_many("LayerNormalization", {sum, gamma, beta}, attrs, w.used(1) || w.used(2) ? 3 : 1);
    w.become(0, wide.out(results[0]));
    for (size_t i = 1; i < results.size(); ++i) w.become(i, results[i]);
  }
  w.become(3, wide.out(sum));
}

void decompose_simplified(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  const int64_t axis = n.attrs().get_int("axis", -1);
  const OwnAttributes own(n, {"axis", "epsilon", "stash_type"});
  const tn_dtype statistics = dtype_of_onnx(n.attrs().get_int("stash_type", 1), "stash_type");
  Rewrite w(e, n);
  w.become(0, w.make("RMSNormalization", {w.input(0), w.input(1)}, own.values));
  if (!w.used(1)) return;
  std::vector<int64_t> axes;
  const int32_t rank = rank_needed(w, 0, "X");
  for (int64_t i = Infer::axis(axis, rank); i < rank; ++i) axes.push_back(i);
  const tn_value x = w.dtype(w.input(0)) == statistics ? w.input(0) : cast(w, w.input(0), statistics);
  w.become(1, inverse_deviation(w, x, axes, epsilon));
}

void decompose_embed(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-12f);
  Rewrite w(e, n);
  Wide wide(w, w.input(2));
  const tn_value ids = w.input(0);
  const auto rows_of = [&](tn_value table, tn_value at) {
    return wide.in(w.make("Gather", {table, at}, {AttrValue::of("axis", int64_t{0})}));
  };
  const tn_value places =
      w.input(8) != TN_NONE
          ? rows_of(w.input(3), w.input(8))
          : wide.in(w.make("Slice", {w.input(3), w.ints({0}), size_of(w, ids, 1), w.ints({0})}));
  tn_value sum = w.make("Add", {rows_of(w.input(2), ids), places});
  if (w.input(1) != TN_NONE && w.input(4) != TN_NONE)
    sum = w.make("Add", {sum, rows_of(w.input(4), w.input(1))});
  w.become(0, wide.out(w.make("LayerNormalization", {sum, wide.in(w.input(5)), wide.in(w.input(6))},
                              {AttrValue::of("axis", int64_t{-1}), AttrValue::of("epsilon", epsilon)})));
  if (w.used(1)) {  // how many words count: the ones of the mask
    const tn_value ones = w.input(7) != TN_NONE ? w.make("Equal", {w.input(7), w.number_like(1, ids)})
                                                : w.make("Less", {ids, ids});
    const tn_value marks = cast(w, ones, w.dtype(ids) == TN_INT64 ? TN_INT64 : TN_INT32);
    w.become(1, w.make("ReduceSum", {marks, w.ints({1})}, {AttrValue::of("keepdims", int64_t{0})}));
  }
  w.become(2, wide.out(sum));
}

}  // namespace

void add_microsoft_norm(Plugin& p) {
  define_row(p, rows, "EmbedLayerNormalization",
             "LayerNormalization of words' embeddings, by number, place and segment.")
      .infer<infer_embed>()
      .decompose<decompose_embed>();
  define_row(p, rows, "SimplifiedLayerNormalization",
             "RMSNormalization under its older name, with what it divided by.")
      .infer<infer_simplified>()
      .decompose<decompose_simplified>();
  define_row(p, rows, "SkipLayerNormalization", "LayerNormalization(input + skip + bias) over the last axis.")
      .infer<infer_skip>()
      .decompose<decompose_skip>();
  define_row(p, rows, "SkipSimplifiedLayerNormalization",
             "RMSNormalization(input + skip + bias) over the last axis.")
      .infer<infer_skip>()
      .decompose<decompose_skip>();
}

}  // namespace tenon::ops
