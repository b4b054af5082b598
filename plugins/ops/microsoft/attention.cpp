// Attention, MultiHeadAttention and QAttention: softmax(Q K^T * scale + mask + bias) V, head by head.
//
// Masks of numbers hide a key softly: mask_filter_value, -10000 unless said, is added to its score.
// unidirectional hides later keys fully. A mask of one number a batch item tells where its keys end; of two,
// where they end and then begin.
#include <cmath>
#include <limits>

#include "microsoft/microsoft.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "Attention", 1, 1, 2,
     "input:T weights:T bias?:T mask_index?:M past?:T attention_bias?:T past_sequence_length?:M",
     "output:T present?:T", "T:@float M:i32",
     "do_rotary=0 mask_filter_value=-10000.0 num_heads!:int past_present_share_buffer=0 "
     "qkv_hidden_sizes:ints "
     "rotary_embedding_dim=0 scale:float unidirectional=0"},
    {domain, "MultiHeadAttention", 1, 1, 1,
     "query:T key?:T value?:T bias?:T key_padding_mask?:M attention_bias?:T past_key?:T past_value?:T "
     "past_sequence_length?:M cache_indirection?:M",
     "output:T present_key?:T present_value?:T qk?:T", "T:@float M:i32",
     "mask_filter_value=-10000.0 num_heads!:int scale:float unidirectional=0"},
    {domain, "QAttention", 1, 1, 5,
     "input:A weight:B bias:T input_scale:T weight_scale:T mask_index?:M input_zero_point?:A "
     "weight_zero_point?:B past?:T",
     "output:T present?:T", "A:i8,u8 B:i8,u8 T:f16,f32 M:i32",
     "do_rotary=0 mask_filter_value=-10000.0 num_heads!:int past_present_share_buffer=0 scale:float "
     "unidirectional=0"},
};

int64_t heads_of(const Attributes& a) {
  const int64_t heads = required_int(a, "num_heads");
  require(heads >= 1, "attribute 'num_heads' is " + text_of(heads) + "; expected 1 or more");
  return heads;
}

// ---- inference
// -----------------------------------------------------------------------------------------------------------------

/// One product makes Q, K and V: result 0 is [batch, length, width of V], present [2, batch, heads, total,
/// head size].
void infer_merged(Infer& c) {
  const bool quantised = c.op_name() == "com.microsoft::QAttention";
  const uint32_t past = quantised ? 8 : 4;
  const tn_dtype dtype = quantised ? c.dtype(3) : c.dtype(0);
  const int64_t heads = heads_of(c.attrs());
  if (!ranked(c, 0, "input", 3, 3) || !ranked(c, 1, "weights", 2, 2)) {
    c.set_unranked(0, dtype);
    return c.set_unranked(1, dtype);
  }
  const auto x = c.dims(0), w = c.dims(1);
  require(!c.differ(x[2], w[0]),
          "the input has " + c.text(x[2]) + " columns, the weights " + c.text(w[0]) + " rows");
  const auto sizes = c.attrs().get_ints("qkv_hidden_sizes");
  require(sizes.empty() || sizes.size() == 3, "attribute 'qkv_hidden_sizes' has " +
                                                  text_of(static_cast<int64_t>(sizes.size())) +
                                                  " numbers; expected 3");
  if (const auto columns = c.number(w[1])) {
    const int64_t total = sizes.empty() ? *columns / 3 * 3 : sizes[0] + sizes[1] + sizes[2];
    require(total == *columns,
            "the weights have " + text_of(*columns) + " columns; expected those of Q, K and V together");
  }
  for (int64_t size : sizes)
    require(size >= 1 && size % heads == 0, "attribute 'qkv_hidden_sizes' holds " + text_of(size) +
                                                "; expected multiples of " + text_of(heads) + " heads");
  const tn_dim width = sizes.empty() ? c.floordiv(w[1], 3) : sizes[2];
  c.set(0, dtype, std::vector<tn_dim>{x[0], x[1], width});
  tn_dim total = x[1];
  if (c.has_input(past)) {
    if (!ranked(c, past, "past", 5, 5)) return c.set_unranked(1, dtype);
    total = c.add(total, c.dims(past)[3]);
  }
  c.set(1, dtype, std::vector<tn_dim>{2, x[0], heads, total, c.floordiv(width, heads)});
}

void infer_multi_head(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const int64_t heads = heads_of(c.attrs());
  const auto unknown = [&] {
    for (uint32_t i = 0; i < 4; ++i) c.set_unranked(i, dtype);
  };
  if (!ranked(c, 0, "query", 3, 5)) return unknown();
  const auto q = c.dims(0);
  tn_dim keys = q[1], width = 0, depth = 0;
  if (q.size() == 5) {  // Q, K and V packed
    depth = q[4];
    width = c.mul(heads, depth);
  } else {
    depth = c.floordiv(q[2], heads);
    if (!ranked(c, 1, "key", 3, 5)) return unknown();
    const auto k = c.dims(1);
    if (k.size() == 5) {
      keys = k[1];
      width = c.mul(heads, k[4]);
    } else {
      if (!ranked(c, 2, "value", 3, 4)) return unknown();
      const auto v = c.dims(2);
      require(v.size() == k.size(),
              "key has shape " + c.text(k) + " and value " + c.text(v) + "; expected equal ranks");
      keys = k.size() == 4 ? k[2] : k[1];
      width = v.size() == 4 ? c.mul(heads, v[3]) : v[2];
      require(k.size() == 4 || !c.differ(k[2], q[2]),
              "query has " + c.text(q[2]) + " columns, key " + c.text(k[2]) + "; expected as many");
    }
  }
  tn_dim total = keys;
  if (c.has_input(6)) {
    if (!ranked(c, 6, "past_key", 4, 4)) return unknown();
    total = c.add(keys, c.dims(6)[2]);
  }
  c.set(0, dtype, std::vector<tn_dim>{q[0], q[1], width});
  c.set(1, dtype, std::vector<tn_dim>{q[0], heads, total, depth});
  c.set(2, dtype, std::vector<tn_dim>{q[0], heads, total, c.floordiv(width, heads)});
  c.set(3, dtype, std::vector<tn_dim>{q[0], heads, q[1], total});
}

// ---- bodies
// -----------------------------------------------------------------------------------------------------------------

const Dims swap_heads{0, 2, 1, 3};

/// [batch, length, heads * size] as [batch, heads, length, size], and back.
tn_value split_heads(Rewrite& w, tn_value x, int64_t heads) {
  return transpose(w, w.make("Reshape", {x, w.ints({0, 0, heads, -1})}), swap_heads);
}
tn_value join_heads(Rewrite& w, tn_value x) {
  return w.make("Reshape", {transpose(w, x, swap_heads), w.ints({0, 0, -1})});
}

struct Scores {
  double scale = 0, filter = -10000;
  bool scaled = false, causal = false;
  tn_value mask = TN_NONE, bias = TN_NONE, like = TN_NONE;  // `like` has the element type
  int32_t mask_rank = -1;
  explicit Scores(const Attributes& a)
      : scale(a.get_float("scale", 0)),
        filter(a.get_float("mask_filter_value", -10000)),
        scaled(a.has("scale") && scale != 0),
        causal(a.get_int("unidirectional", 0) != 0) {}
};

/// What the mask adds to the scores [batch, heads, queries, keys].
tn_value soft_mask(Rewrite& w, const Scores& s, tn_value q, tn_value k) {
  tn_value seen = TN_NONE;
  if (s.mask_rank == 2 || s.mask_rank == 3) {
    seen = w.make("Greater", {s.mask, w.editor().scalar<int32_t>(0)});
    seen = w.make("Unsqueeze", {seen, s.mask_rank == 2 ? w.ints({1, 2}) : w.ints({1})});
  } else if (s.mask_rank == 1) {
    // Ends, then perhaps begins; what is not there begins at 0.
    const tn_value batch = size_of(w, q, 0);
    const tn_value nothing = w.make("Sub", {s.mask, s.mask});
    const tn_value all = concat(w, {s.mask, nothing}, 0);
    const auto column = [&](tn_value from, tn_value to) {
      return w.make("Unsqueeze", {cast(w, w.make("Slice", {all, from, to}), TN_INT64), w.ints({1, 2, 3})});
    };
    const tn_value place = count_to(w, size_of(w, k, 2));
    const tn_value ends = column(w.ints({0}), batch), begins = column(batch, w.make("Add", {batch, batch}));
    seen = w.make("And", {w.make("Less", {place, ends}), w.make("GreaterOrEqual", {place, begins})});
  } else {
    decline("a mask of that rank has no simpler form");
  }
  return w.make("Where", {seen, w.number_like(0, s.like), w.number_like(s.filter, s.like)});
}

/// Q, K, V are [batch, heads, length, size]; `past` is the length of the cache in front of the keys, if there
/// is one.
tn_value attend(Rewrite& w, const Scores& s, tn_value q, tn_value k, tn_value v, tn_value past,
                int64_t size) {
  tn_value added = s.mask == TN_NONE ? TN_NONE : soft_mask(w, s, q, k);
  const auto add = [&](tn_value x) { added = added == TN_NONE ? x : w.make("Add", {added, x}); };
  if (s.bias != TN_NONE) add(s.bias);
  if (s.causal) {
    tn_value row = count_to(w, size_of(w, q, 2));
    if (past != TN_NONE) row = w.make("Add", {row, past});
    const tn_value seen =
        w.make("LessOrEqual", {count_to(w, size_of(w, k, 2)), w.make("Unsqueeze", {row, w.ints({1})})});
    add(w.make("Where", {seen, w.number_like(0, s.like),
                         w.number_like(-std::numeric_limits<double>::infinity(), s.like)}));
  }
  const double scale = s.scaled ? s.scale : 1 / std::sqrt(static_cast<double>(size));
  return join_heads(w, w.make("tenon::SDPA", {q, k, v, added}, {AttrValue::of("scale", scale)}));
}

/// From the product of input and weights, bias added, to the results.
void merged_attention(Rewrite& w, Scores& s, tn_value product, tn_value past, const Dims& sizes,
                      int64_t heads) {
  const auto parts = w.make_many("Split", {product, w.ints(sizes)}, {AttrValue::of("axis", int64_t{2})}, 3);
  const tn_value q = split_heads(w, parts[0], heads);
  tn_value k = split_heads(w, parts[1], heads), v = split_heads(w, parts[2], heads), length = TN_NONE;
  if (past != TN_NONE) {
    const auto cache = [&](int64_t i) {
      return w.make("Gather", {past, w.one_int(i)}, {AttrValue::of("axis", int64_t{0})});
    };
    k = concat(w, {cache(0), k}, 2);
    v = concat(w, {cache(1), v}, 2);
    length = size_of(w, past, 3);
  }
  if (w.used(1))
    w.become(1, concat(w, {w.make("Unsqueeze", {k, w.ints({0})}), w.make("Unsqueeze", {v, w.ints({0})})}, 0));
  w.become(0, attend(w, s, q, k, v, length, sizes[0] / heads));
}

void refuse_what_no_cpu_has(const Attributes& a) {
  if (a.get_int("do_rotary", 0) != 0) decline("do_rotary=1 has no simpler form");
  if (a.get_int("past_present_share_buffer", 0) != 0)
    decline("a cache shared by past and present has no simpler form");
}

void decompose_attention(Editor& e, const Node& n) {
  refuse_what_no_cpu_has(n.attrs());
  Scores s(n.attrs());
  const int64_t heads = heads_of(n.attrs());
  Dims sizes = n.attrs().get_ints("qkv_hidden_sizes").copy();
  Rewrite w(e, n);
  if (w.dtype(w.input(0)) == TN_DTYPE_NONE) decline("the element type is not known");
  if (sizes.empty()) sizes.assign(3, size_needed(w, 1, 1, "the number of columns of the weights") / 3);
  s.like = w.input(0);
  s.mask = w.input(3);
  s.bias = w.input(5);
  if (s.mask != TN_NONE) s.mask_rank = rank_needed(w, 3, "mask_index");
  tn_value product = w.make("MatMul", {w.input(0), w.input(1)});
  if (w.input(2) != TN_NONE) product = w.make("Add", {product, w.input(2)});
  merged_attention(w, s, product, w.input(4), sizes, heads);
}

void decompose_qattention(Editor& e, const Node& n) {
  refuse_what_no_cpu_has(n.attrs());
  Scores s(n.attrs());
  const int64_t heads = heads_of(n.attrs());
  Rewrite w(e, n);
  const tn_dtype dtype = w.dtype(w.input(3));
  if (dtype == TN_DTYPE_NONE) decline("the element type is not known");
  if (dtype != TN_FLOAT32) decline("the scales are not float32");
  const Dims sizes(3, size_needed(w, 1, 1, "the number of columns of the weights") / 3);
  s.like = w.input(3);
  s.mask = w.input(5);
  if (s.mask != TN_NONE) s.mask_rank = rank_needed(w, 5, "mask_index");
  const tn_value sums =
      cast(w, w.make("MatMulInteger", {w.input(0), w.input(1), w.input(6), w.input(7)}), TN_FLOAT32);
  const tn_value scaled = w.make("Mul", {sums, w.make("Mul", {w.input(3), w.input(4)})});
  merged_attention(w, s, w.make("Add", {scaled, w.input(2)}), w.input(8), sizes, heads);
}

void decompose_multi_head(Editor& e, const Node& n) {
  Scores s(n.attrs());
  const int64_t heads = heads_of(n.attrs());
  Rewrite w(e, n);
  if (w.dtype(w.input(0)) == TN_DTYPE_NONE) decline("the element type is not known");
  if (w.input(8) != TN_NONE || w.input(9) != TN_NONE)
    decline("a cache shared by past and present has no simpler form");
  if (w.used(3)) decline("result qk has no simpler form");
  const int32_t q_rank = rank_needed(w, 0, "query"),
                k_rank = w.input(1) == TN_NONE ? 0 : rank_needed(w, 1, "key");
  const auto unpack = [&](size_t operand, int64_t parts) {  // [batch, length, heads, parts, size]
    auto split = w.make_many("Split", {w.input(operand)},
                             {AttrValue::of("axis", int64_t{3}), AttrValue::of("num_outputs", parts)},
                             static_cast<uint32_t>(parts));
    for (tn_value& v : split) v = transpose(w, w.make("Squeeze", {v, w.ints({3})}), swap_heads);
    return split;
  };
  tn_value q = TN_NONE, k = TN_NONE, v = TN_NONE;
  int64_t size = 0;
  if (q_rank == 5 || k_rank == 5) {
    if (w.input(3) != TN_NONE) decline("a bias with packed operands has no simpler form");
    size =
        q_rank == 5 ? size_needed(w, 0, 4, "the head size") : size_needed(w, 0, 2, "the hidden size") / heads;
    if (q_rank == 5) {
      const auto parts = unpack(0, 3);
      q = parts[0], k = parts[1], v = parts[2];
    } else {
      const auto parts = unpack(1, 2);
      q = split_heads(w, w.input(0), heads), k = parts[0], v = parts[1];
    }
  } else {
    if (k_rank == 0 || w.input(2) == TN_NONE) decline("key or value is missing");
    const int64_t hidden = size_needed(w, 0, 2, "the hidden size");
    size = hidden / heads;
    q = w.input(0), k = w.input(1), v = w.input(2);
    if (w.input(3) != TN_NONE) {
      const auto part = [&](int64_t from, int64_t to) {
        return w.make("Slice", {w.input(3), w.ints({from}), w.ints({to}), w.ints({0})});
      };
      q = w.make("Add", {q, part(0, hidden)});
      if (k_rank == 3) {  // of rank 4 they are a cache, with the bias in it
        k = w.make("Add", {k, part(hidden, 2 * hidden)});
        v = w.make("Add", {v, part(2 * hidden, INT64_MAX)});
      }
    }
    q = split_heads(w, q, heads);
    if (k_rank == 3) {
      k = split_heads(w, k, heads);
      v = split_heads(w, v, heads);
    }
  }
  tn_value length = TN_NONE;
  if (w.input(6) != TN_NONE) {
    k = concat(w, {w.input(6), k}, 2);
    v = concat(w, {w.input(7), v}, 2);
    length = size_of(w, w.input(6), 2);
  }
  w.become(1, k);
  w.become(2, v);
  s.like = w.input(0);
  s.mask = w.input(4);
  s.bias = w.input(5);
  if (s.mask != TN_NONE) s.mask_rank = rank_needed(w, 4, "key_padding_mask");
  w.become(0, attend(w, s, q, k, v, length, size));
}

}  // namespace

void add_microsoft_attention(Plugin& p) {
  define_row(p, rows, "Attention", "Attention over Q, K, V = input * weights + bias.")
      .infer<infer_merged>()
      .decompose<decompose_attention>();
  define_row(p, rows, "QAttention", "Attention whose product of input and weights is one of integers.")
      .infer<infer_merged>()
      .decompose<decompose_qattention>();
  define_row(p, rows, "MultiHeadAttention", "Attention over Q, K, V + bias.")
      .infer<infer_multi_head>()
      .decompose<decompose_multi_head>();
}

}  // namespace tenon::ops
