// GroupQueryAttention: the step of a decoder with a cache, query heads sharing key heads; and
// RotaryEmbedding.
//
// seqlens_k[b] + 1 is how many tokens batch item b has after this step. In a first prompt (the step is as
// long as total_sequence_length) the cache counts as empty; else the step's tokens are the last ones and the
// cache holds those before. Past that many rows, the cache given back holds zeros. Rows of a prompt that is
// padded at its end have no defined result.
#include <cmath>

#include "families.hpp"
#include "microsoft/microsoft.hpp"
#include "support/kernel.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "GroupQueryAttention", 1, 1, 7,
     "query:T key?:T value?:T past_key?:T past_value?:T seqlens_k:M total_sequence_length:M cos_cache?:T "
     "sin_cache?:T "
     "position_ids?:=i64 attention_bias?:T head_sink?:T k_scale?:S v_scale?:S q_norm_weight?:T "
     "k_norm_weight?:T "
     "query_seqlens?:M",
     "output:T present_key?:T present_value?:T output_qk?:T", "T:f16,f32,bf16 M:i32 S:f32",
     "causal=1 do_rotary=0 k_norm_epsilon:float k_quant_type='NONE' kv_cache_bit_width=0 kv_num_heads!:int "
     "local_window_size=-1 num_heads!:int q_norm_epsilon:float qk_norm_epsilon=1e-6 qk_output=0 "
     "rotary_interleaved=0 "
     "scale:float sliding_window_cache=0 smooth_softmax=-1 softcap=0.0 v_quant_type='NONE'"},
    {domain, "RotaryEmbedding", 1, 1, 4, "input:T position_ids:=i64 cos_cache:T sin_cache:T", "output:T",
     "T:f16,f32,bf16", "interleaved=0 is_packed_batching=0 num_heads=0 rotary_embedding_dim=0 scale=1.0"},
};

void infer_group(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const Attributes a = c.attrs();
  const int64_t heads = required_int(a, "num_heads"), shared = required_int(a, "kv_num_heads");
  require(
      heads >= 1 && shared >= 1 && heads % shared == 0,
      text_of(heads) + " query heads cannot share " + text_of(shared) + " key heads; expected a multiple");
  require(!c.has_input(12) && !c.has_input(13) && a.get_int("kv_cache_bit_width", 0) == 0,
          "the cache is quantised; only caches of the query's element type are supported");
  require(!c.has_input(16) && a.get_int("sliding_window_cache", 0) == 0,
          "padded chunks (query_seqlens) and window-sized caches (sliding_window_cache) are not supported");
  require(!c.has_output(3) && a.get_int("qk_output", 0) == 0, "result output_qk is not supported; remove it");
  require(c.has_input(1) == c.has_input(2), "key and value go together; one of them is missing");
  require(c.has_input(3) == c.has_input(4), "past_key and past_value go together; one of them is missing");
  require(a.get_int("do_rotary", 0) == 0 || (c.has_input(7) && c.has_input(8)),
          "do_rotary=1 needs cos_cache and sin_cache");
  if (!ranked(c, 0, "query", 3, 3)) {
    for (uint32_t i = 0; i < 3; ++i) c.set_unranked(i, dtype);
    return;
  }
  const auto q = c.dims(0);
  const tn_dim size = c.floordiv(q[2], c.has_input(1) ? heads : heads + 2 * shared);
  const auto expect = [&](uint32_t i, const char* name, const std::vector<tn_dim>& wanted) {
    const auto found = c.dims(i);
    for (size_t k = 0; k < wanted.size(); ++k)
      require(wanted[k] == -1 || !c.differ(found[k], wanted[k]),
              std::string("operand ") + name + " has shape " + c.text(found) + "; axis " +
                  text_of(static_cast<int64_t>(k)) + " should be " + c.text(wanted[k]));
  };
  if (c.has_input(1) && ranked(c, 1, "key", 3, 3)) expect(1, "key", {q[0], q[1], c.mul(size, shared)});
  if (c.has_input(2) && ranked(c, 2, "value", 3, 3)) expect(2, "value", {q[0], q[1], c.mul(size, shared)});
  c.set(0, dtype, std::vector<tn_dim>{q[0], q[1], c.mul(size, heads)});
  tn_dim total = 0;
  bool found = false;
  if (const auto said = c.elements(6); said && said->size() == 1) {
    total = said->front();
    found = true;
  }
  if (c.has_input(3)) {
    if (!ranked(c, 3, "past_key", 4, 4) || !ranked(c, 4, "past_value", 4, 4)) found = false;
    if (found) {
      expect(3, "past_key", {q[0], shared, -1, size});
      total = c.max(c.dims(3)[2], total);
    }
  }
  if (!found) total = c.data_dependent(1, 2);
  for (uint32_t i = 1; i < 3; ++i) c.set(i, dtype, std::vector<tn_dim>{q[0], shared, total, size});
}

void infer_rotary(Infer& c) {
  same_type(c, 0, 0);
  ranked(c, 0, "input", 3, 4);
  ranked(c, 1, "position_ids", 1, 2);
  ranked(c, 2, "cos_cache", 2, 2);
  ranked(c, 3, "sin_cache", 2, 2);
}

/// The operator of ai.onnx takes positions for every token; here one number may tell where they begin.
void decompose_rotary(Editor& e, const Node& n) {
  const OwnAttributes own(n, {"interleaved", "rotary_embedding_dim"});
  if (n.attrs().get_int("is_packed_batching", 0) != 0) decline("is_packed_batching=1 has no simpler form");
  int64_t heads = n.attrs().get_int("num_heads", 0);
  Rewrite w(e, n);
  const int32_t rank = rank_needed(w, 0, "input");
  std::vector<AttrValue> attrs = own.values;
  if (rank == 3) {
    if (heads == 0)
      heads = size_needed(w, 0, 2, "the hidden size") / (2 * size_needed(w, 2, 1, "the width of cos_cache"));
    attrs.push_back(AttrValue::of("num_heads", heads));
  }
  tn_value places = w.input(1);
  if (rank_needed(w, 1, "position_ids") == 1) {
    const tn_value length = size_of(w, w.input(0), rank == 3 ? 1 : 2);
    const tn_value line = w.make("Add", {count_to(w, length), places});
    places = w.make("Expand", {line, concat(w, {size_of(w, w.input(0), 0), length}, 0)});
  }
  w.become(0, w.make("RotaryEmbedding", {w.input(0), w.input(2), w.input(3), places}, std::move(attrs)));
}

// ---- the kernel: a tile is some key heads of some batch items
// -----------------------------------------------------------------------------------------------------------------

using namespace tenon::reference;

enum Operand : size_t {
  query,
  key,
  value,
  past_key,
  past_value,
  seqlens,
  total_length,
  cosine,
  sine,
  positions,
  bias,
  sink,
  q_norm = 14,
  k_norm = 15
};

struct GroupState : Base {
  int64_t heads = 1, shared = 1, size = 0, length = 0, cached = 0, rows = 0, half = 0, window = -1;
  double scale = 1, softcap = 0, epsilon = 0;
  bool causal = true, rotary = false, interleaved = false, smooth = false;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
  int64_t bias_batch = 0, bias_head = 0, bias_row = 0;
  int64_t group() const noexcept { return heads / shared; }
};

/// One head of one token of the step: its numbers, normalised and turned as the node asks.
int load_head(const GroupState& s, const tn_kernel_args* a, size_t which, int64_t b, int64_t t, int64_t head,
              int64_t place, double* x) noexcept {
  const bool packed = !s.has_in(key);
  const int64_t own = which == query ? s.heads : s.shared;
  const int64_t before = !packed || which == query ? 0 : which == key ? s.heads : s.heads + s.shared;
  const int64_t row = packed ? s.heads + 2 * s.shared : own;
  s.load(a->inputs[packed ? query : which], ((b * s.length + t) * row + before + head) * s.size, 1, s.size,
         x);
  const size_t norm = which == query ? q_norm : k_norm;
  if (which != value && s.has_in(norm)) {
    double sum = 0;
    for (int64_t i = 0; i < s.size; ++i) sum += x[i] * x[i];
    const double by = 1 / std::sqrt(sum / static_cast<double>(s.size) + s.epsilon);
    for (int64_t i = 0; i < s.size; ++i) x[i] *= by * real_at(a->inputs[norm], s.in[norm].dtype, i);
  }
  if (which == value || !s.rotary) return run_ok;
  const int64_t at =
      s.has_in(positions) ? integer_at(a->inputs[positions], TN_INT64, b * s.length + t) : place;
  if (at < 0 || at >= s.in[cosine].dim(0))
    return index_fail(a, "a position in the rotary tables", at, s.in[cosine].dim(0));
  for (int64_t i = 0; i < s.half; ++i) {
    const double c = real_at(a->inputs[cosine], s.in[cosine].dtype, at * s.half + i),
                 d = real_at(a->inputs[sine], s.in[sine].dtype, at * s.half + i);
    double &u = x[s.interleaved ? 2 * i : i], &v = x[s.interleaved ? 2 * i + 1 : s.half + i];
    const double turned = u * c - v * d;
    v = v * c + u * d;
    u = turned;
  }
  return run_ok;
}

/// softmax(row) with what sink and smooth softmax add to its divisor.
void weigh(const GroupState& s, const tn_kernel_args* a, int64_t head, double* row, int64_t count) noexcept {
  double largest = row[0], sum = 0;
  for (int64_t t = 1; t < count; ++t) largest = std::max(largest, row[t]);
  const bool sunk = s.has_in(sink);
  const double extra = sunk ? real_at(a->inputs[sink], s.in[sink].dtype, head) : 0;
  if (sunk || s.smooth) largest = std::max(largest, extra);
  for (int64_t t = 0; t < count; ++t) sum += row[t] = std::exp(row[t] - largest);
  if (sunk || s.smooth) sum += std::exp(extra - largest);
  for (int64_t t = 0; t < count; ++t) row[t] /= sum;
}

int group_unit(const GroupState& s, const tn_kernel_args* a, int64_t b, int64_t g, double* scratch) noexcept {
  const int64_t total = integer_at(a->inputs[total_length], TN_INT32, 0),
                filled = int64_t{integer_at(a->inputs[seqlens], TN_INT32, b)} + 1;
  const bool prompt = s.length == total;
  const int64_t before = prompt ? 0 : filled - s.length, count = before + s.length;
  if (filled < 1 || before < 0 || before > s.cached || count > s.rows)
    return run_fail(a, run_bad_operand,
                    "GroupQueryAttention: seqlens_k and total_sequence_length do not fit the lengths of "
                    "query and past_key");
  const int64_t D = s.size;
  double *keys = scratch, *values = keys + s.rows * D, *q = values + s.rows * D, *scores = q + D;
  for (int64_t t = 0; t < before; ++t) {
    const int64_t at = ((b * s.shared + g) * s.cached + t) * D;
    s.load(a->inputs[past_key], at, 1, D, keys + t * D);
    s.load(a->inputs[past_value], at, 1, D, values + t * D);
  }
  for (int64_t t = 0; t < s.length; ++t) {
    if (const int bad = load_head(s, a, key, b, t, g, before + t, keys + (before + t) * D)) return bad;
    load_head(s, a, value, b, t, g, 0, values + (before + t) * D);
  }
  for (size_t which = 1; which < 3; ++which) {
    if (!s.has_out(which)) continue;
    double* from = which == 1 ? keys : values;
    std::fill(from + count * D, from + s.rows * D, 0.0);
    const int64_t present = s.out[which].dim(2);
    s.store(from, std::min(present, s.rows) * D, a->outputs[which], (b * s.shared + g) * present * D);
  }
  for (int64_t h = g * s.group(); h < (g + 1) * s.group(); ++h)
    for (int64_t t = 0; t < s.length; ++t) {
      if (const int bad = load_head(s, a, query, b, t, h, before + t, q)) return bad;
      const int64_t place = before + t, end = s.causal ? place + 1 : count;
      const int64_t begin = s.window > 0 ? std::max<int64_t>(0, place + 1 - s.window) : 0;
      for (int64_t k = begin; k < end; ++k) {
        double sum = 0;
        for (int64_t i = 0; i < D; ++i) sum += q[i] * keys[k * D + i];
        sum *= s.scale;
        if (s.softcap > 0) sum = std::tanh(sum / s.softcap) * s.softcap;
        if (s.has_in(bias))
          sum += real_at(a->inputs[bias], s.in[bias].dtype,
                         b * s.bias_batch + h * s.bias_head + t * s.bias_row + k);
        scores[k - begin] = sum;
      }
      weigh(s, a, h, scores, end - begin);
      std::fill(q, q + D, 0.0);
      for (int64_t k = begin; k < end; ++k)
        for (int64_t i = 0; i < D; ++i) q[i] += scores[k - begin] * values[k * D + i];
      s.store(q, D, a->outputs[0], ((b * s.length + t) * s.heads + h) * D);
    }
  return run_ok;
}

int group_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<GroupState>(a);
  const auto r = tile_range(s.in[query].dim(0) * s.shared, s.tiles, tile);
  for (int64_t unit = r.begin; unit < r.end; ++unit)
    if (const int bad = group_unit(s, a, unit / s.shared, unit % s.shared, workspace<double>(a, worker)))
      return bad;
  return run_ok;
}

void plan_group(const PlanView& v, Planned& p) {
  auto s = make_state<GroupState>(v);
  const auto a = v.attrs();
  s->heads = a.get_int("num_heads", 1);
  s->shared = a.get_int("kv_num_heads", 1);
  s->length = s->in[query].dim(1);
  s->size = s->in[query].dim(2) / (s->has_in(key) ? s->heads : s->heads + 2 * s->shared);
  s->cached = s->has_in(past_key) ? s->in[past_key].dim(2) : 0;
  s->rows = s->cached + s->length;
  for (size_t i = 1; i < 3; ++i)
    if (s->has_out(i)) s->rows = std::max(s->rows, s->out[i].dim(2));
  const int64_t batch = s->in[query].dim(0);
  if (s->size < 1 || s->in[seqlens].count != batch || s->in[total_length].count != 1)
    fail(
        "GroupQueryAttention needs one number of seqlens_k for each batch item and one of "
        "total_sequence_length");
  s->causal = a.get_int("causal", 1) != 0;
  s->window = a.get_int("local_window_size", -1);
  s->scale = a.get_float("scale", 0);
  if (s->scale == 0) s->scale = 1 / std::sqrt(static_cast<double>(s->size));
  s->softcap = a.get_float("softcap", 0);
  s->smooth = a.get_int("smooth_softmax", 0) == 1;
  s->epsilon = a.get_float("qk_norm_epsilon", static_cast<double>(1e-6f));
  s->rotary = a.get_int("do_rotary", 0) != 0;
  s->interleaved = a.get_int("rotary_interleaved", 0) != 0;
  if (s->rotary) {
    if (s->in[cosine].rank() != 2 || s->in[cosine].dims != s->in[sine].dims ||
        2 * s->in[cosine].dim(1) > s->size)
      fail(format("GroupQueryAttention's cos_cache %s and sin_cache %s do not fit heads of %lld numbers",
                  dims_text(s->in[cosine].dims).c_str(), dims_text(s->in[sine].dims).c_str(),
                  static_cast<long long>(s->size)));
    s->half = s->in[cosine].dim(1);
    if (s->has_in(positions) && s->in[positions].count != batch * s->length)
      fail("GroupQueryAttention's position_ids need one number a token");
  }
  if (s->has_in(sink) && s->in[sink].count != s->heads)
    fail("GroupQueryAttention's head_sink needs one number a head");
  for (size_t i : {size_t{q_norm}, size_t{k_norm}})
    if (s->has_in(i) && s->in[i].count != s->size)
      fail("GroupQueryAttention's norm weights need one number an element of a head");
  if (s->has_in(bias)) {
    const auto& d = s->in[bias].dims;
    if (d.size() != 4 || (d[0] != 1 && d[0] != batch) || (d[1] != 1 && d[1] != s->heads) ||
        d[2] != s->length || d[3] < s->rows - (s->has_out(1) ? 0 : s->rows - s->length))
      fail(format("GroupQueryAttention's attention_bias %s does not fit", dims_text(d).c_str()));
    s->bias_row = d[3];
    s->bias_head = d[1] == 1 ? 0 : d[2] * d[3];
    s->bias_batch = d[0] == 1 ? 0 : d[1] * d[2] * d[3];
  }
  s->load = loader<double>(s->in[query].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t doubles = checked_mul(2 * s->rows, s->size) + s->size + s->rows;
  const int64_t units = batch * s->shared, work = batch * s->heads * s->length * s->rows * s->size;
  finish(v, p, group_fn, std::move(s), units, work,
         static_cast<uint64_t>(checked_mul(doubles, sizeof(double))));
}

}  // namespace

void add_microsoft_group_attention(Plugin& p) {
  define_row(p, rows, "GroupQueryAttention",
             "Attention of a decoder's step over a cache; query heads share key heads.")
      .infer<infer_group>();
  reference_kernel(p, "com.microsoft::GroupQueryAttention").plan<plan_group>();
  define_row(p, rows, "RotaryEmbedding",
             "RotaryEmbedding of ai.onnx, positions perhaps given by the first one.")
      .infer<infer_rotary>()
      .decompose<decompose_rotary>();
}

}  // namespace tenon::ops
