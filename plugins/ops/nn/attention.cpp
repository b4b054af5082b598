// Attention and RotaryEmbedding of ai.onnx, with bodies of simpler operators, and tenon's MultiHeadSDPA.
//
// MultiHeadSDPA is Attention without windows, caps and lengths, and with the softmax of the formula: a query
// that may see no key yields NaN, where Attention is defined to yield zeros. So it stands for what exporters
// spell out whatever the mask holds.
//
// Q, K, V are [batch, heads, sequence, size], or [batch, sequence, heads * size] with the numbers of heads as
// attributes.
#include <cmath>
#include <limits>

#include "support/define.hpp"

namespace tenon::ops {
namespace {

constexpr Schema multi_head_row = {"tenon",
                                   "MultiHeadSDPA",
                                   1,
                                   1,
                                   3,
                                   "Q:T K:T V:T attn_mask?:T past_key?:T past_value?:T",
                                   "Y:T present_key?:T present_value?:T",
                                   "T:@float",
                                   "kv_num_heads:int q_num_heads:int scale=1.0"};

bool zeroes_hidden(const Node& n) { return n.op_name() == "Attention"; }

struct Heads {
  tn_dim batch, heads, length, size;
};

/// Operand i of rank 3 or 4 in parts.
std::optional<Heads> heads_of(Infer& c, uint32_t i, const char* name, const char* count_attribute) {
  if (!ranked(c, i, name, 3, 4)) return std::nullopt;
  const auto d = c.dims(i);
  if (d.size() == 4) return Heads{d[0], d[1], d[2], d[3]};
  const int64_t count = required_int(c.attrs(), count_attribute);
  require(count >= 1,
          std::string("attribute '") + count_attribute + "' is " + text_of(count) + "; expected 1 or more");
  if (const auto n = c.number(d[2]))
    require(*n % count == 0, std::string("operand ") + name + " has shape " + c.text(d) + ", which " +
                                 text_of(count) + " heads cannot share");
  return Heads{d[0], count, d[1], c.floordiv(d[2], count)};
}

void infer_attention(Infer& c) {
  const tn_dtype type_q = c.dtype(0), type_v = c.dtype(2);
  const auto q = heads_of(c, 0, "Q", "q_num_heads"), k = heads_of(c, 1, "K", "kv_num_heads"),
             v = heads_of(c, 2, "V", "kv_num_heads");
  if (!q || !k || !v) {
    c.set_unranked(0, type_q);
    c.set_unranked(1, type_q);
    c.set_unranked(2, type_v);
    return c.set_unranked(3, type_q);
  }
  require(!c.differ(q->size, k->size),
          "heads of Q have " + c.text(q->size) + " numbers, those of K " + c.text(k->size));
  require(!c.differ(k->length, v->length),
          "K has " + c.text(k->length) + " positions, V has " + c.text(v->length));
  const auto hq = c.number(q->heads), hk = c.number(k->heads);
  if (hq && hk)
    require(*hk >= 1 && *hq % *hk == 0,
            text_of(*hq) + " heads of Q cannot be shared by " + text_of(*hk) + " of K");
  tn_dim total = k->length;
  if (c.has_input(4))
    total = ranked(c, 4, "past_key", 4, 4) ? c.add(total, c.dims(4)[2]) : c.data_dependent(1, 2);
  if (c.rank(0) == 3)
    c.set(0, type_q, std::vector<tn_dim>{q->batch, q->length, c.mul(q->heads, v->size)});
  else
    c.set(0, type_q, std::vector<tn_dim>{q->batch, q->heads, q->length, v->size});
  c.set(1, type_q, std::vector<tn_dim>{k->batch, k->heads, total, k->size});
  c.set(2, type_v, std::vector<tn_dim>{v->batch, v->heads, total, v->size});
  c.set(3, type_q, std::vector<tn_dim>{q->batch, q->heads, q->length, total});
}

void infer_rotary(Infer& c) {
  same_type(c, 0, 0);
  ranked(c, 0, "X", 3, 4);
  ranked(c, 1, "cos_cache", 2, 3);
  ranked(c, 2, "sin_cache", 2, 3);
}

// ---- bodies
// ---------------------------------------------------------------------------------------------------------

const Dims swap_heads{0, 2, 1, 3};

/// [batch, sequence, heads * size] as [batch, heads, sequence, size].
tn_value split_heads(Rewrite& w, tn_value x, int64_t heads) {
  return w.make("Transpose", {w.make("Reshape", {x, w.ints({0, 0, heads, -1})})},
                {AttrValue::of("perm", Span<const int64_t>(swap_heads))});
}
tn_value join_heads(Rewrite& w, tn_value x) {
  return w.make("Reshape",
                {w.make("Transpose", {x}, {AttrValue::of("perm", Span<const int64_t>(swap_heads))}),
                 w.ints({0, 0, -1})});
}
int64_t number_at(Rewrite& w, tn_value v, int32_t axis, const char* what) {
  const tn_type t = w.editor().graph().value(v).type;
  if (t.kind != TN_KIND_TENSOR || t.rank <= axis || t.dims[axis] < 0)
    decline(std::string(what) + " is not a known number");
  return t.dims[axis];
}
tn_value length_of(Rewrite& w, tn_value x, int64_t axis) {  // a scalar
  const tn_value one = w.make("Shape", {x}, {AttrValue::of("start", axis), AttrValue::of("end", axis + 1)});
  return w.make("Squeeze", {one, w.ints({0})});
}

struct Bias {
  tn_value allowed = TN_NONE;  // bool, true where a key may be attended
  tn_value added = TN_NONE;
};

/// Which keys a query may see by position: its own position plus the offset is compared with the key's.
void allow_by_position(Rewrite& w, Bias& bias, tn_value q, tn_value k, tn_value past, bool causal,
                       int64_t left, int64_t right) {
  if (!causal && left < 0 && right < 0) return;
  const auto count = [&](tn_value n) { return w.make("Range", {w.one_int(0), n, w.one_int(1)}); };
  tn_value row = count(length_of(w, q, 2));
  if (past != TN_NONE) row = w.make("Add", {row, length_of(w, past, 2)});
  row = w.make("Unsqueeze", {row, w.ints({1})});
  const tn_value key = count(length_of(w, k, 2));
  const auto also = [&](tn_value rule) {
    bias.allowed = bias.allowed == TN_NONE ? rule : w.make("And", {bias.allowed, rule});
  };
  if (causal) also(w.make("LessOrEqual", {key, row}));
  if (left >= 0) also(w.make("GreaterOrEqual", {key, w.make("Sub", {row, w.one_int(left)})}));
  if (right >= 0) also(w.make("LessOrEqual", {key, w.make("Add", {row, w.one_int(right)})}));
}

void decompose_attention(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  const bool causal = a.get_int("is_causal", 0) != 0;
  const int64_t left = a.get_int("left_window_size", -1), right = a.get_int("right_window_size", -1);
  const int64_t q_heads = a.get_int("q_num_heads", 0), kv_heads = a.get_int("kv_num_heads", 0),
                mode = a.get_int("qk_matmul_output_mode", 0);
  const int64_t precision = a.get_int("softmax_precision", 0);
  const double softcap = a.get_float("softcap", 0);
  const bool zeroes = zeroes_hidden(n), scale_said = a.has("scale") || !zeroes;
  const double said = a.get_float("scale", 1);
  Rewrite w(e, n);
  if (zeroes && w.input(6) != TN_NONE) decline("nonpad_kv_seqlen has no simpler form");
  const bool flat = w.rank(w.input(0)) == 3;
  if (!flat && w.rank(w.input(0)) != 4) decline("the rank of Q is not known");
  const int64_t heads = flat ? q_heads : number_at(w, w.input(0), 1, "the number of heads of Q");
  const int64_t shared = flat ? kv_heads : number_at(w, w.input(1), 1, "the number of heads of K");
  if (heads < 1 || shared < 1 || heads % shared != 0) decline("the numbers of heads do not divide");
  const int64_t size = flat ? number_at(w, w.input(0), 2, "the hidden size") / heads
                            : number_at(w, w.input(0), 3, "the head size");
  const tn_dtype dtype = w.dtype(w.input(0));
  if (dtype == TN_DTYPE_NONE || size < 1) decline("the element type of Q is not known");
  if (w.input(3) != TN_NONE) {  // a short mask would have to be padded
    const tn_type t = e.graph().value(w.input(3)).type, keys = e.graph().value(w.input(1)).type;
    if (t.rank < 1 || keys.rank < 3) decline("the shape of attn_mask is not known");
    const tn_dim last = t.dims[t.rank - 1];
    if (w.input(4) == TN_NONE ? last != keys.dims[flat ? 1 : 2] : last == 1)
      decline("attn_mask may be shorter than the keys");
  }
  const tn_dtype mask_type = w.dtype(w.input(3));
  tn_value q = w.input(0), k = w.input(1), v = w.input(2);
  if (flat) {
    q = split_heads(w, q, heads);
    k = split_heads(w, k, shared);
    v = split_heads(w, v, shared);
  }
  const tn_value past = w.input(4);
  if (past != TN_NONE) {
    k = w.make("Concat", {past, k}, {AttrValue::of("axis", int64_t{2})});
    v = w.make("Concat", {w.input(5), v}, {AttrValue::of("axis", int64_t{2})});
  }
  if (w.used(1)) w.become(1, k);
  if (w.used(2)) w.become(2, v);
  const auto repeat = [&](tn_value x) {  // every head of K and V serves heads / shared of Q
    if (heads == shared) return x;
    const tn_value many =
        w.make("Expand", {w.make("Unsqueeze", {x, w.ints({2})}), w.ints({1, 1, heads / shared, 1, 1})});
    const tn_value shape = w.make("Shape", {x});
    const tn_value rest = w.make("Slice", {shape, w.ints({2}), w.ints({4})});
    const tn_value first = w.make("Slice", {shape, w.ints({0}), w.ints({1})});
    return w.make("Reshape", {many, w.make("Concat", {first, w.ints({heads}), rest},
                                           {AttrValue::of("axis", int64_t{0})})});
  };
  const tn_value keys = repeat(k);
  // Both factors carry the root of the scale, as the definition asks, so that float16 does not overflow.
  const double scale = scale_said ? said : 1 / std::sqrt(static_cast<double>(size));
  const double root = std::sqrt(std::fabs(scale));
  const tn_value q_scaled = w.make("Mul", {q, w.number_like(scale < 0 ? -root : root, q)}),
                 k_scaled = w.make("Mul", {keys, w.number_like(root, keys)});
  const Dims turn{0, 1, 3, 2};
  tn_value score =
      w.make("MatMul",
             {q_scaled, w.make("Transpose", {k_scaled}, {AttrValue::of("perm", Span<const int64_t>(turn))})});
  const tn_value raw = score;
  if (softcap != 0)
    score = w.make("Mul", {w.make("Tanh", {w.make("Div", {score, w.number_like(softcap, q)})}),
                           w.number_like(softcap, q)});
  const tn_value capped = score;
  Bias bias;
  if (w.input(3) != TN_NONE) {
    if (mask_type == TN_BOOL)
      bias.allowed = w.input(3);
    else
      bias.added = mask_type == dtype ? w.input(3) : w.make("CastLike", {w.input(3), q});
  }
  allow_by_position(w, bias, q, k, past, causal, left, right);
  if (bias.added != TN_NONE) score = w.make("Add", {score, bias.added});
  if (bias.allowed != TN_NONE) {
    const double lowest = -std::numeric_limits<double>::infinity();
    score = w.make("Where", {bias.allowed, score, w.number_like(lowest, q)});
  }
  const tn_value biased = score;
  const bool cast = precision != 0 && dtype_of_onnx(precision, "softmax_precision") != dtype;
  if (cast) score = w.make("Cast", {score}, {AttrValue::of("to", precision)});
  tn_value weight = w.make("Softmax", {score}, {AttrValue::of("axis", int64_t{-1})});
  if (cast) weight = w.make("Cast", {weight}, {AttrValue::of("to", onnx_of_dtype(dtype))});
  if (zeroes &&
      (w.input(3) != TN_NONE || left >= 0 || right >= 0)) {  // a row that may see no key yields zeros
    const tn_value lowest = w.number_like(-std::numeric_limits<double>::infinity(), q);
    const tn_value none = w.make("Equal", {w.make("ReduceMax", {biased, w.ints({-1})}), lowest});
    weight = w.make("Where", {none, w.number_like(0, q), weight});
  }
  if (w.used(3)) w.become(3, mode == 0 ? raw : mode == 1 ? capped : mode == 2 ? biased : weight);
  const tn_value y = w.make("MatMul", {weight, repeat(v)});
  w.become(0, flat ? join_heads(w, y) : y);
}

void decompose_rotary(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  const bool interleaved = a.get_int("interleaved", 0) != 0;
  int64_t rotated = a.get_int("rotary_embedding_dim", 0);
  const int64_t heads = a.get_int("num_heads", 0);
  Rewrite w(e, n);
  const bool flat = w.rank(w.input(0)) == 3;
  if (!flat && w.rank(w.input(0)) != 4) decline("the rank of X is not known");
  if (flat && heads < 1) decline("attribute 'num_heads' is missing");
  const int64_t size = flat ? number_at(w, w.input(0), 2, "the hidden size") / heads
                            : number_at(w, w.input(0), 3, "the head size");
  if (rotated == 0) rotated = size;
  if (rotated < 2 || rotated % 2 != 0 || rotated > size)
    decline("the rotated part is no even number of the head's");
  tn_value x = flat ? split_heads(w, w.input(0), heads) : w.input(0), rest = TN_NONE;
  if (rotated < size) {
    const auto parts =
        w.make_many("Split", {x, w.ints({rotated, size - rotated})}, {AttrValue::of("axis", int64_t{3})}, 2);
    x = parts[0];
    rest = parts[1];
  }
  const auto table = [&](size_t i) {  // [batch, 1, sequence, rotated / 2]
    const tn_value rows = w.input(3) != TN_NONE ? w.make("Gather", {w.input(i), w.input(3)},
                                                         {AttrValue::of("axis", int64_t{0})})
                                                : w.input(i);
    return w.make("Unsqueeze", {rows, w.ints({1})});
  };
  const tn_value cosine = table(1), sine = table(2);
  tn_value x1 = TN_NONE, x2 = TN_NONE;
  if (interleaved) {
    const auto every_second = [&](int64_t from) {
      return w.make("Slice", {x, w.ints({from}), w.ints({INT64_MAX}), w.ints({3}), w.ints({2})});
    };
    x1 = every_second(0);
    x2 = every_second(1);
  } else {
    const auto halves = w.make_many(
        "Split", {x}, {AttrValue::of("axis", int64_t{3}), AttrValue::of("num_outputs", int64_t{2})}, 2);
    x1 = halves[0];
    x2 = halves[1];
  }
  const auto times = [&](tn_value p, tn_value q) { return w.make("Mul", {p, q}); };
  tn_value real = w.make("Sub", {times(cosine, x1), times(sine, x2)}),
           imaginary = w.make("Add", {times(sine, x1), times(cosine, x2)});
  tn_value y = TN_NONE;
  if (interleaved) {
    real = w.make("Unsqueeze", {real, w.ints({4})});
    imaginary = w.make("Unsqueeze", {imaginary, w.ints({4})});
    y = w.make("Reshape", {w.make("Concat", {real, imaginary}, {AttrValue::of("axis", int64_t{4})}),
                           w.ints({0, 0, 0, rotated})});
  } else {
    y = w.make("Concat", {real, imaginary}, {AttrValue::of("axis", int64_t{3})});
  }
  if (rest != TN_NONE) y = w.make("Concat", {y, rest}, {AttrValue::of("axis", int64_t{3})});
  w.become(0, flat ? join_heads(w, y) : y);
}

}  // namespace

void add_attention(Plugin& p) {
  define(p, "Attention").infer<infer_attention>().decompose<decompose_attention>();
  define(p, multi_head_row)
      .doc("Attention whose softmax is the formula's: a query that may see no key yields NaN, not zeros.")
      .infer<infer_attention>()
      .decompose<decompose_attention>();
  define(p, "RotaryEmbedding")
      .infer<infer_rotary>()
      .decompose<decompose_rotary>()
      .alias("rotary_embedding")
      .alias("rope");
}

}  // namespace tenon::ops
