// FlexAttention of ai.onnx.preview: attention whose scores and probabilities pass through graphs of the
// model's own (score_mod, prob_mod). It decomposes into plain operators with those graphs in between, so that
// passes see all of it.
//
// Both factors of the scores carry the root of the scale in the operands' type; from the scores to the
// product with V everything has the type of softmax_precision.
#include <cmath>

#include "support/define.hpp"

namespace tenon::ops {
namespace {

/// The node's graph of that name; -1 when it has none.
int32_t region_named(const GraphView& g, Span<const tn_region> regions, std::string_view name) {
  for (size_t r = 0; r < regions.size(); ++r)
    if (view(g.region(regions[r]).name) == name) return static_cast<int32_t>(r);
  return -1;
}
/// The type between the scores and the result.
tn_dtype inner_type(const Attributes& a, tn_dtype operands) {
  if (!a.has("softmax_precision")) return operands == TN_FLOAT64 ? TN_FLOAT64 : TN_FLOAT32;
  const tn_dtype r = dtype_of_onnx(a.get_int("softmax_precision", 1), "softmax_precision");
  require(r == TN_FLOAT16 || r == TN_BFLOAT16 || r == TN_FLOAT32 || r == TN_FLOAT64,
          std::string("attribute 'softmax_precision' says ") + dtype_name(r) +
              "; expected a float of 16 to 64 bits");
  return r;
}

void infer_flex_attention(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const bool known = ranked(c, 0, "Q", 4, 4) & ranked(c, 1, "K", 4, 4) & ranked(c, 2, "V", 4, 4);
  if (!known) return c.set_unranked(0, dtype);
  const auto q = c.dims(0), k = c.dims(1), v = c.dims(2);
  const auto shapes = " (Q " + c.text(q) + ", K " + c.text(k) + ", V " + c.text(v) + ")";
  require(!c.differ(q[0], k[0]) && !c.differ(q[0], v[0]), "Q, K and V have different batches" + shapes);
  require(!c.differ(k[1], v[1]) && !c.differ(k[2], v[2]), "K and V differ in heads or positions" + shapes);
  require(!c.differ(q[3], k[3]), "heads of Q and K differ in size" + shapes);
  const auto heads = c.number(q[1]), shared = c.number(k[1]);
  require(!heads || !shared || (*shared >= 1 && *heads % *shared == 0),
          "the heads of Q are no multiple of those of K" + shapes);
  const std::vector<tn_dim> scores{q[0], q[1], q[2], k[2]};
  const GraphView g(c.api()->graph_api, c.graph());
  const Span<const tn_region> regions(c.node().regions, c.node().region_count);
  for (const char* name : {"score_mod", "prob_mod"}) {
    const int32_t r = region_named(g, regions, name);
    if (r < 0) continue;
    const tn_dtype inner = dtype == TN_DTYPE_NONE ? TN_DTYPE_NONE : inner_type(c.attrs(), dtype);
    const tn_type in = tensor_type(inner, scores);
    const auto out = c.region(static_cast<uint32_t>(r), Span<const tn_type>(&in, 1));
    require(out.size() == 1, format("graph '%s' yields %zu values; expected 1", name, out.size()));
    const tn_type& t = out[0];
    if (t.kind != TN_KIND_TENSOR || t.rank < 0) continue;
    bool same = t.rank == 4;
    for (size_t i = 0; same && i < 4; ++i) same = !c.differ(t.dims[i], scores[i]);
    require(same, format("graph '%s' yields shape ", name) + c.text(dims_of(t)) +
                      "; expected that of the scores, " + c.text(scores));
    require(t.dtype == TN_DTYPE_NONE || inner == TN_DTYPE_NONE || t.dtype == inner,
            format("graph '%s' yields %s; expected %s", name, dtype_name(t.dtype), dtype_name(inner)));
  }
  c.set(0, dtype, std::vector<tn_dim>{q[0], q[1], q[2], v[3]});
}

tn_value part_of_shape(Rewrite& w, tn_value x, int64_t begin, int64_t end) {
  return w.make("Shape", {x}, {AttrValue::of("start", begin), AttrValue::of("end", end)});
}
tn_value joined(Rewrite& w, std::vector<tn_value> parts) {
  return w.make("Concat", std::move(parts), {AttrValue::of("axis", int64_t{0})});
}
/// Puts the nodes of the graph before the node, reading x; what it yields.
tn_value through(Rewrite& w, tn_region region, tn_value x) {
  const tn_region_info info = w.editor().graph().region(region);
  if (info.input_count != 1 || info.output_count != 1)
    decline(format("graph '%s' has %u inputs and %u outputs; expected one of each",
                   std::string(view(info.name)).c_str(), info.input_count, info.output_count));
  const tn_value input = info.inputs[0], output = info.outputs[0];
  w.editor().inline_region(region, Span<const tn_value>(&x, 1), w.id());
  return output == input ? x : output;
}

void decompose_flex_attention(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  const bool scale_said = a.has("scale");
  const double said = a.get_float("scale", 0);
  const auto regions = n.regions().copy();
  const int32_t score_mod = region_named(e.graph(), regions, "score_mod"),
                prob_mod = region_named(e.graph(), regions, "prob_mod");
  Rewrite w(e, n);
  const tn_value q = w.input(0), k = w.input(1), v = w.input(2);
  const tn_dtype dtype = w.dtype(q);
  if (dtype == TN_DTYPE_NONE) decline("the element type of Q is not known");
  const tn_dtype inner = inner_type(a, dtype);
  const auto cast = [&](tn_value x, tn_dtype from, tn_dtype to) {
    return from == to ? x : w.make("Cast", {x}, {AttrValue::of("to", onnx_of_dtype(to))});
  };
  const auto known = [&](tn_value x, int axis) {
    const tn_type t = e.graph().value(x).type;
    return t.kind == TN_KIND_TENSOR && t.rank == 4 && t.dims[axis] >= 0 ? t.dims[axis] : int64_t{-1};
  };
  tn_value root_q, root_k;
  if (const int64_t size = known(q, 3); scale_said || size > 0) {
    const double scale = scale_said ? said : 1 / std::sqrt(static_cast<double>(size));
    const double root = std::sqrt(std::fabs(scale));
    root_q = w.number_like(scale < 0 ? -root : root, q);
    root_k = w.number_like(root, k);
  } else {  // size ^ (-1/4)
    const tn_value number = w.make("Cast", {part_of_shape(w, q, 3, 4)}, {AttrValue::of("to", int64_t{1})});
    root_q = root_k = w.make("CastLike", {w.make("Pow", {number, w.number_like(-0.25, number)}), q});
  }
  // Where heads are shared, those of a group stand on an axis of their own.
  const int64_t heads = known(q, 1), shared = known(k, 1);
  const bool grouped = heads < 0 || heads != shared;
  tn_value left = w.make("Mul", {q, root_q}), right = w.make("Mul", {k, root_k}),
           values = cast(v, dtype, inner);
  if (grouped) {
    left = w.make("Reshape",
                  {left, joined(w, {part_of_shape(w, k, 0, 2), w.ints({-1}), part_of_shape(w, q, 2, 4)})});
    right = w.make("Unsqueeze", {right, w.ints({2})});
    values = w.make("Unsqueeze", {values, w.ints({2})});
  }
  const Dims turn4{0, 1, 3, 2}, turn5{0, 1, 2, 4, 3};
  right = w.make("Transpose", {right}, {AttrValue::of("perm", Span<const int64_t>(grouped ? turn5 : turn4))});
  tn_value score = cast(w.make("MatMul", {left, right}), dtype, inner);
  const tn_value by_group = score;
  if (grouped)
    score = w.make("Reshape", {score, joined(w, {part_of_shape(w, q, 0, 3), part_of_shape(w, k, 2, 3)})});
  if (score_mod >= 0) score = through(w, regions[static_cast<size_t>(score_mod)], score);
  tn_value weight = w.make("Softmax", {score}, {AttrValue::of("axis", int64_t{-1})});
  if (prob_mod >= 0) weight = through(w, regions[static_cast<size_t>(prob_mod)], weight);
  if (grouped) weight = w.make("Reshape", {weight, w.make("Shape", {by_group})});
  tn_value y = w.make("MatMul", {weight, values});
  if (grouped) y = w.make("Reshape", {y, joined(w, {part_of_shape(w, q, 0, 3), part_of_shape(w, v, 3, 4)})});
  w.become(0, cast(y, inner, dtype));
}

}  // namespace

void add_flex_attention(Plugin& p) {
  define(p, "FlexAttention", "ai.onnx.preview")
      .flags(TN_OP_CONTROL_FLOW)
      .infer<infer_flex_attention>()
      .decompose<decompose_flex_attention>();
}

}  // namespace tenon::ops
