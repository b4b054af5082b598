// Attention (opset 25) and tenon's SDPA and MultiHeadSDPA: rows of queries by blocks, scores in full,
// softmax, the product with the values. A row of Attention whose every key is masked yields zeros, as defined
// there; in the others it yields what Softmax yields.
#include "families.hpp"
#include "nn/rounding.hpp"
#include "support/blocked.hpp"
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

/// A matrix [rows][columns] of each batch inside an operand.
struct Matrices {
  std::vector<int64_t> at;
  int64_t row = 0, column = 1;
  Load<double> load = nullptr;
};
struct AttentionState : Base {
  int64_t batches = 0, heads = 1, queries = 0, keys = 0, depth = 0, value_depth = 0, past = 0;
  double scale = 1, softcap = 0;
  double root_q = 1, root_k = 1;  // roots of the scale as the element type has them, where steps round
  Round round = nullptr, round_softmax = nullptr;
  bool causal = false, boolean_mask = false, zero_masked = false;
  int64_t left = -1, right = -1, mode = 0, mask_keys = 0;
  int64_t repeat = 1;  // query heads that share one key head
  Matrices q, k, v, past_k, past_v, mask;
  std::vector<int64_t> y_at;
  int64_t y_row = 0;
  Store<double> store = nullptr, store_scores = nullptr;
};

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// bias[t] for query s of batch b; true when every key is masked.
bool bias_row(const AttentionState& s, const tn_kernel_args* a, int64_t b, int64_t query,
              double* bias) noexcept {
  if (s.mask.load) {
    s.mask.load(a->inputs[3], s.mask.at[static_cast<size_t>(b)] + query * s.mask.row, s.mask.column,
                s.mask_keys, bias);
    if (s.boolean_mask)
      for (int64_t t = 0; t < s.mask_keys; ++t) bias[t] = bias[t] != 0 ? 0 : minus_infinity;
    std::fill(bias + s.mask_keys, bias + s.keys, minus_infinity);
  } else {
    std::fill(bias, bias + s.keys, 0.0);
  }
  const bool has_length = s.zero_masked && s.has_in(6);
  const int64_t length = has_length ? integer_at(a->inputs[6], s.in[6].dtype, b / s.heads) : s.keys;
  const int64_t place = query + (s.past == 0 && has_length ? length - s.queries : s.past);
  bool all = true;
  for (int64_t t = 0; t < s.keys; ++t) {
    if ((s.causal && t > place) || (s.left >= 0 && place - t > s.left) ||
        (s.right >= 0 && t - place > s.right) || t >= length)
      bias[t] = minus_infinity;
    all = all && bias[t] == minus_infinity;
  }
  return all;
}

/// Rows past, then new: keys or values of the cache and of this step.
void load_row(const AttentionState& s, const tn_kernel_args* a, const Matrices& before, size_t before_operand,
              const Matrices& now, size_t operand, int64_t b, int64_t row, int64_t first, int64_t count,
              double* to) noexcept {
  if (row < s.past)
    before.load(a->inputs[before_operand], before.at[static_cast<size_t>(b)] + row * before.row + first, 1,
                count, to);
  else
    now.load(a->inputs[operand],
             now.at[static_cast<size_t>(b)] + (row - s.past) * now.row + first * now.column, now.column,
             count, to);
}

/// Present keys and values: the cache with this step's rows behind.
void write_present(const AttentionState& s, const tn_kernel_args* a, int64_t b) noexcept {
  double x[block];
  for (size_t which = 0; which < 2; ++which) {
    if (!s.has_out(1 + which)) continue;
    const int64_t width = which ? s.value_depth : s.depth;
    const auto store = s.store;
    for (int64_t t = 0; t < s.keys; ++t)
      for (int64_t i = 0; i < width; i += block) {
        const int64_t n = std::min(block, width - i);
        load_row(s, a, which ? s.past_v : s.past_k, 4 + which, which ? s.v : s.k, 1 + which, b, t, i, n, x);
        store(x, n, a->outputs[1 + which], (b / s.repeat * s.keys + t) * width + i);
      }
  }
}

void scale_by(double factor, double* x, int64_t count, Round round) noexcept {
  for (int64_t i = 0; i < count; ++i) x[i] *= factor;
  round(x, count);
}

int attention_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<AttentionState>(a);
  const int64_t blocks = std::max<int64_t>(1, (s.queries + tile_m - 1) / tile_m);
  const auto r = tile_range(s.batches * blocks, s.tiles, tile);
  double* scratch = workspace<double>(a, worker);
  double* scores = scratch + multiply_doubles;
  double* bias = scores + tile_m * s.keys;
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const int64_t b = unit / blocks, i0 = unit % blocks * tile_m, m = std::min(tile_m, s.queries - i0);
    if (i0 == 0 && b % s.repeat == 0) write_present(s, a, b);
    const auto at = static_cast<size_t>(b);
    const auto load_q = [&](int64_t i, int64_t k0, int64_t kc, double* to) {
      s.q.load(a->inputs[0], s.q.at[at] + (i0 + i) * s.q.row + k0, 1, kc, to);
      if (s.round) scale_by(s.root_q, to, kc, s.round);
    };
    for (int64_t t0 = 0; t0 < s.keys; t0 += tile_n) {
      const int64_t n = std::min(tile_n, s.keys - t0);
      const double* c =
          multiply<true>(m, n, s.depth, scratch, load_q, [&](int64_t j, int64_t k0, int64_t kc, double* to) {
            load_row(s, a, s.past_k, 4, s.k, 1, b, t0 + j, k0, kc, to);
            if (s.round) scale_by(s.root_k, to, kc, s.round);
          });
      const double scale = s.round ? 1 : s.scale;
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) scores[i * s.keys + t0 + j] = c[i * tile_n + j] * scale;
    }
    for (int64_t i = 0; i < m; ++i) {
      double* row = scores + i * s.keys;
      const int64_t scores_at = (b * s.queries + i0 + i) * s.keys;
      const bool wanted = s.store_scores != nullptr;
      const auto round = [&] {
        if (s.round) s.round(row, s.keys);
      };
      round();
      if (wanted && s.mode == 0) s.store_scores(row, s.keys, a->outputs[3], scores_at);
      if (s.softcap > 0) {
        for (int64_t t = 0; t < s.keys; ++t) row[t] /= s.softcap;
        round();
        for (int64_t t = 0; t < s.keys; ++t) row[t] = std::tanh(row[t]);
        round();
        for (int64_t t = 0; t < s.keys; ++t) row[t] *= s.softcap;
        round();
      }
      if (wanted && s.mode == 1) s.store_scores(row, s.keys, a->outputs[3], scores_at);
      const bool masked = bias_row(s, a, b, i0 + i, bias);
      for (int64_t t = 0; t < s.keys; ++t) row[t] += bias[t];
      round();
      if (wanted && s.mode == 2) s.store_scores(row, s.keys, a->outputs[3], scores_at);
      if (masked && s.zero_masked) {
        std::fill(row, row + s.keys, 0.0);
      } else if (s.keys > 0) {
        softmax_row(row, s.keys, s.round_softmax);
        round();
      }
      if (wanted && s.mode == 3) s.store_scores(row, s.keys, a->outputs[3], scores_at);
    }
    const auto load_p = [&](int64_t i, int64_t k0, int64_t kc, double* to) {
      std::memcpy(to, scores + i * s.keys + k0, static_cast<size_t>(kc) * sizeof(double));
    };
    for (int64_t j0 = 0; j0 < s.value_depth; j0 += tile_n) {
      const int64_t n = std::min(tile_n, s.value_depth - j0);
      const double* c = multiply<false>(m, n, s.keys, scratch, load_p, [&](int64_t t, double* to) {
        load_row(s, a, s.past_v, 5, s.v, 2, b, t, j0, n, to);
      });
      for (int64_t i = 0; i < m; ++i)
        s.store(c + i * tile_n, n, a->outputs[0], s.y_at[at] + (i0 + i) * s.y_row + j0);
    }
  }
  return run_ok;
}

void finish_attention(const PlanView& v, Planned& p, std::unique_ptr<AttentionState> s) {
  if (checked_mul(checked_mul(s->batches, s->queries), s->value_depth) != s->out[0].count)
    fail(format("%s does not yield %s", std::string(v.op_name()).c_str(), dims_text(s->out[0].dims).c_str()));
  s->q.load = loader<double>(s->in[0].dtype);
  s->k.load = loader<double>(s->in[1].dtype);
  s->v.load = loader<double>(s->in[2].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t units = s->batches * std::max<int64_t>(1, (s->queries + tile_m - 1) / tile_m),
                work = s->batches * s->queries * s->keys * (s->depth + s->value_depth) / 4;
  const auto bytes = multiply_bytes + static_cast<uint64_t>(checked_mul(
                                          (tile_m + 1) * static_cast<int64_t>(sizeof(double)), s->keys));
  finish(v, p, attention_fn, std::move(s), units, work, bytes);
}

// SDPA(Q [..., S, D], K [..., T, D] or transposed, V [..., T, Dv], M?) over any leading axes, with
// broadcasting.
void plan_sdpa(const PlanView& v, Planned& p) {
  auto s = make_state<AttentionState>(v);
  const auto &q = s->in[0].dims, &k = s->in[1].dims, &values = s->in[2].dims, &y = s->out[0].dims;
  if (q.size() < 2 || k.size() < 2 || values.size() < 2 || y.size() < 2)
    fail("SDPA needs operands of rank 2 or more");
  const bool transposed = v.attrs().get_int("k_is_transposed", 0) != 0;
  s->scale = v.attrs().get_float("scale", 1);
  s->queries = q[q.size() - 2];
  s->depth = q.back();
  s->keys = k[k.size() - (transposed ? 1 : 2)];
  s->value_depth = values.back();
  if (k[k.size() - (transposed ? 2 : 1)] != s->depth || values[values.size() - 2] != s->keys)
    fail(format("SDPA's Q %s, K %s and V %s do not fit", dims_text(q).c_str(), dims_text(k).c_str(),
                dims_text(values).c_str()));
  s->q.row = s->depth;
  s->k.row = transposed ? 1 : s->depth;
  s->k.column = transposed ? s->keys : 1;
  s->v.row = s->value_depth;
  s->y_row = s->value_depth;
  const Dims outer(y.begin(), y.end() - 2), q_outer(q.begin(), q.end() - 2), k_outer(k.begin(), k.end() - 2),
      v_outer(values.begin(), values.end() - 2);
  Dims m_outer;
  if (s->has_in(3)) {
    Dims whole = outer;
    whole.insert(whole.end(), {s->queries, s->keys});
    int64_t strides[max_rank] = {};
    broadcast_strides(s->in[3].dims, whole, strides);
    s->mask.row = strides[whole.size() - 2];
    s->mask.column = strides[whole.size() - 1];
    s->mask_keys = s->keys;
    s->mask.load = loader<double>(s->in[3].dtype);
    s->boolean_mask = s->in[3].dtype == TN_BOOL;
    if (s->in[3].rank() > 2) m_outer.assign(s->in[3].dims.begin(), s->in[3].dims.end() - 2);
  }
  const auto walk = broadcast_walk<4>(outer, {&q_outer, &k_outer, &v_outer, &m_outer});
  const int64_t m_size =
      s->has_in(3) ? s->in[3].count / std::max<int64_t>(product(m_outer, 0, m_outer.size()), 1) : 0;
  walk.rows(0, walk.count, [&](int64_t at, const int64_t(&o)[4], int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      s->q.at.push_back((o[0] + i * walk.inner_stride(0)) * s->queries * s->depth);
      s->k.at.push_back((o[1] + i * walk.inner_stride(1)) * s->keys * s->depth);
      s->v.at.push_back((o[2] + i * walk.inner_stride(2)) * s->keys * s->value_depth);
      s->mask.at.push_back((o[3] + i * walk.inner_stride(3)) * m_size);
      s->y_at.push_back((at + i) * s->queries * s->value_depth);
    }
  });
  s->batches = static_cast<int64_t>(s->y_at.size());
  finish_attention(v, p, std::move(s));
}

void plan_attention(const PlanView& v, Planned& p) {
  auto s = make_state<AttentionState>(v);
  const auto attrs = v.attrs();
  const auto &q = s->in[0].dims, &k = s->in[1].dims, &values = s->in[2].dims;
  const bool flat = q.size() == 3;  // [B, S, heads * D]
  if ((q.size() != 3 && q.size() != 4) || k.size() != q.size() || values.size() != q.size())
    fail("Attention needs Q, K and V of rank 3 or 4");
  const int64_t batch = q[0], heads = flat ? attrs.get_int("q_num_heads", 0) : q[1],
                key_heads = flat ? attrs.get_int("kv_num_heads", 0) : k[1];
  if (heads < 1 || key_heads < 1 || heads % key_heads || k[0] != batch || values[0] != batch)
    fail("Attention's head counts must be positive, and query heads a multiple of key heads");
  s->heads = heads;
  s->repeat = heads / key_heads;
  s->batches = batch * heads;
  const size_t sequence = flat ? 1 : 2;
  s->queries = q[sequence];
  s->depth = flat ? q[2] / heads : q[3];
  s->value_depth = flat ? values[2] / key_heads : values[3];
  const int64_t fresh = k[sequence];
  if ((flat ? k[2] / key_heads : k[3]) != s->depth || values[sequence] != fresh ||
      (flat && (q[2] % heads || k[2] % key_heads || values[2] % key_heads)))
    fail(format("Attention's Q %s, K %s and V %s do not fit", dims_text(q).c_str(), dims_text(k).c_str(),
                dims_text(values).c_str()));
  if (s->has_in(4) != s->has_in(5)) fail("Attention's past_key and past_value must be given together");
  if (s->has_in(4)) {
    s->past = s->in[4].dim(2);
    const Dims want_k = {batch, key_heads, s->past, s->depth},
               want_v = {batch, key_heads, s->past, s->value_depth};
    if (s->in[4].dims != want_k || s->in[5].dims != want_v)
      fail("Attention's past_key or past_value does not fit K and V");
    s->past_k.load = loader<double>(s->in[4].dtype);
    s->past_v.load = loader<double>(s->in[5].dtype);
    s->past_k.row = s->depth;
    s->past_v.row = s->value_depth;
  }
  s->keys = s->past + fresh;
  const bool standard = v.op_name() == "Attention";
  const double scale = attrs.get_float("scale", standard ? 0 : 1);
  s->scale = scale != 0 || !standard ? scale : 1 / std::sqrt(static_cast<double>(s->depth));
  s->softcap = attrs.get_float("softcap", 0);
  if (standard) s->round = step_rounding(s->in[0].dtype);
  if (s->round) {
    s->root_k = std::sqrt(std::fabs(s->scale));
    s->round(&s->root_k, 1);
    s->root_q = s->scale < 0 ? -s->root_k : s->root_k;
    const int64_t precision = attrs.get_int("softmax_precision", 0);
    s->round_softmax =
        precision == 0 ? s->round : step_rounding(ops::dtype_of_onnx(precision, "softmax_precision"));
  }
  s->causal = attrs.get_int("is_causal", 0) != 0;
  s->mode = attrs.get_int("qk_matmul_output_mode", 0);
  s->left = attrs.get_int("left_window_size", -1);
  s->right = attrs.get_int("right_window_size", -1);
  s->zero_masked = standard;
  if (s->has_in(6) && s->in[6].count != batch)
    fail("Attention's nonpad_kv_seqlen must have one number for each batch");
  int64_t strides[max_rank] = {};
  if (s->has_in(3)) {
    if (s->in[3].rank() < 1 || s->in[3].rank() > 4 || s->in[3].dim(-1) > s->keys)
      fail(format("Attention's mask %s does not fit", dims_text(s->in[3].dims).c_str()));
    s->mask_keys = s->in[3].dim(-1);  // a shorter mask masks the keys behind it
    broadcast_strides(s->in[3].dims, {batch, heads, s->queries, s->mask_keys}, strides);
    s->mask.row = strides[2];
    s->mask.column = strides[3];
    s->mask.load = loader<double>(s->in[3].dtype);
    s->boolean_mask = s->in[3].dtype == TN_BOOL;
  }
  s->q.row = flat ? heads * s->depth : s->depth;
  s->k.row = flat ? key_heads * s->depth : s->depth;
  s->v.row = flat ? key_heads * s->value_depth : s->value_depth;
  s->y_row = flat ? heads * s->value_depth : s->value_depth;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) {
      const int64_t g = h / s->repeat;
      s->q.at.push_back(flat ? (b * s->queries * heads + h) * s->depth
                             : (b * heads + h) * s->queries * s->depth);
      s->k.at.push_back(flat ? (b * fresh * key_heads + g) * s->depth
                             : (b * key_heads + g) * fresh * s->depth);
      s->v.at.push_back(flat ? (b * fresh * key_heads + g) * s->value_depth
                             : (b * key_heads + g) * fresh * s->value_depth);
      s->y_at.push_back(flat ? (b * s->queries * heads + h) * s->value_depth
                             : (b * heads + h) * s->queries * s->value_depth);
      s->past_k.at.push_back((b * key_heads + g) * s->past * s->depth);
      s->past_v.at.push_back((b * key_heads + g) * s->past * s->value_depth);
      s->mask.at.push_back(b * strides[0] + h * strides[1]);
    }
  if (s->has_out(3)) s->store_scores = storer<double>(s->out[3].dtype);
  finish_attention(v, p, std::move(s));
}

}  // namespace

void provide_attention(Plugin& p) {
  reference_kernel(p, "Attention").plan<plan_attention>();
  reference_kernel(p, "tenon::MultiHeadSDPA").plan<plan_attention>();
  reference_kernel(p, "tenon::SDPA").plan<plan_sdpa>();
}

}  // namespace tenon::reference
