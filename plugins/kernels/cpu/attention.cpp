// tenon::SDPA: softmax(Q K^T * scale + M) V, and Attention of ai.onnx and tenon::MultiHeadSDPA, which split
// heads and keep a cache. One tile is a block of query rows of one head; the scores of the block live in the
// worker's workspace and never see memory. Heads that lie beside each other in a row ([batch, sequence, heads
// * size]) are read in place, by their stride; keys and values of the cache and of this step are read where
// each lies, so that a cache nobody wants grown is never copied.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "batch.hpp"
#include "families.hpp"
#include "onednn.hpp"
#include "rows.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

constexpr int64_t block_rows = 64;

constexpr float lowest = -std::numeric_limits<float>::infinity();

struct State {
  int64_t queries, keys, width, value_width, blocks;  // keys: those of the cache too
  int64_t q_row, k_row, v_row, y_row;                 // from one position to the next
  float scale;
  bool k_transposed;
  std::vector<int64_t> q, k, v, m, y;  // offset of each head's matrix, in elements
  int64_t past = 0;                    // keys in the cache; its rows lie one behind the other
  std::vector<int64_t> shared;         // the head of K and V that each head of Q reads
  int64_t sharers = 1;                 // heads of Q that read one head of K and V
  bool present_k = false, present_v = false;
  int64_t mask_row;           // stride of the mask's rows; 0: one row for all
  bool mask_repeats = false;  // the mask has one column only
  bool boolean_mask = false;  // true where a key may be seen
  bool causal = false;        // a query sees no key behind its own place
  bool zero_hidden = false;   // a query that may see no key yields zeros, not NaN
};

/// The cache with this step's rows behind it.
void write_present(const float* past, int64_t past_rows, const float* now, int64_t row, int64_t rows,
                   int64_t width, float* to) noexcept {
  const auto bytes = [&](int64_t n) { return static_cast<size_t>(n * width) * sizeof(float); };
  if (past_rows) std::memcpy(to, past, bytes(past_rows));
  to += past_rows * width;
  if (row == width) {
    std::memcpy(to, now, bytes(rows));
    return;
  }
  for (int64_t i = 0; i < rows; ++i) std::memcpy(to + i * width, now + i * row, bytes(1));
}

/// Scales a row of scores and adds its mask; false when the mask lets no key be seen.
bool mask_row(const State& s, float* row, const void* mask, int64_t at, int64_t keys) noexcept {
  if (!mask) {
    scale_row(row, s.scale, nullptr, keys);
    return true;
  }
  bool seen = false;
  if (s.boolean_mask) {
    const auto* m = static_cast<const uint8_t*>(mask) + at;
    for (int64_t i = 0; i < keys; ++i) {
      const bool on = m[s.mask_repeats ? 0 : i] != 0;
      row[i] = on ? row[i] * s.scale : lowest;
      seen |= on;
    }
    return seen;
  }
  const float* m = static_cast<const float*>(mask) + at;
  scale_row(row, s.scale, s.mask_repeats ? nullptr : m, keys);
  if (s.mask_repeats) binary_row(Binary::Add, row, 1, m, 0, row, keys);
  const int64_t columns = s.mask_repeats ? 1 : keys;
  for (int64_t i = 0; i < columns && !seen; ++i) seen = m[i] != lowest;
  return seen;
}

int run(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<State>(a);
  const auto head = static_cast<size_t>(tile / s.blocks);
  const int64_t first = tile % s.blocks * block_rows, rows = std::min(block_rows, s.queries - first);
  float* scores = workspace<float>(a, worker);
  const float* q = in<float>(a, 0) + s.q[head] + first * s.q_row;
  const float *k = in<float>(a, 1) + s.k[head], *v = in<float>(a, 2) + s.v[head], *past_k = nullptr,
              *past_v = nullptr;
  int64_t past = s.past, k_row = s.k_row, v_row = s.v_row;
  if (past) {
    past_k = in<float>(a, 4) + s.shared[head] * past * s.width;
    past_v = in<float>(a, 5) + s.shared[head] * past * s.value_width;
  }
  // The first block of the first head that reads them copies keys and values; a block that is alone in that
  // reads the copy, whose rows lie together.
  if (first == 0 && static_cast<int64_t>(head) % s.sharers == 0) {
    const bool alone = s.blocks == 1 && s.sharers == 1 && s.present_k && s.present_v;
    const int64_t fresh = s.keys - past;
    if (s.present_k) {
      float* to = out<float>(a, 1) + s.shared[head] * s.keys * s.width;
      write_present(past_k, past, k, k_row, fresh, s.width, to);
      if (alone) k = to, k_row = s.width;
    }
    if (s.present_v) {
      float* to = out<float>(a, 2) + s.shared[head] * s.keys * s.value_width;
      write_present(past_v, past, v, v_row, fresh, s.value_width, to);
      if (alone) v = to, v_row = s.value_width;
    }
    if (alone) past = 0;
  }
  const int64_t keys = s.causal ? std::min(s.keys, first + rows + s.past) : s.keys;
  const int64_t cached = std::min(past, keys), fresh = keys - cached;
  if (cached)
    sgemm(false, true, rows, cached, s.width, 1.0f, q, s.q_row, past_k, s.width, 0.0f, scores, keys);
  if (fresh)
    sgemm(false, !s.k_transposed, rows, fresh, s.width, 1.0f, q, s.q_row, k, k_row, 0.0f, scores + cached,
          keys);
  const void* mask = a->input_count > 3 ? a->inputs[3] : nullptr;
  for (int64_t i = 0; i < rows; ++i) {
    float* row = scores + i * keys;
    const int64_t visible = s.causal ? std::min(keys, first + i + s.past + 1) : keys;
    const bool seen = mask_row(s, row, mask, mask ? s.m[head] + (first + i) * s.mask_row : 0, visible);
    if (!seen && s.zero_hidden)
      std::fill_n(row, visible, 0.0f);
    else
      softmax_row(row, row, visible, false);
    std::fill(row + visible, row + keys, 0.0f);
  }
  float* y = out<float>(a) + s.y[head] + first * s.y_row;
  if (cached)
    sgemm(false, false, rows, s.value_width, cached, 1.0f, scores, keys, past_v, s.value_width, 0.0f, y,
          s.y_row);
  if (fresh)
    sgemm(false, false, rows, s.value_width, fresh, 1.0f, scores + cached, keys, v, v_row,
          cached ? 1.0f : 0.0f, y, s.y_row);
  return 0;
}

/// The mask broadcast to [batch.., queries, keys].
void take_mask(const PlanView& v, State& s, Span<const int64_t> batch) {
  if (!v.has_input(3)) return;
  const auto m = v.input(3);
  const int64_t columns = m.rank() >= 1 ? m.dim(-1) : 1, rows = m.rank() >= 2 ? m.dim(-2) : 1;
  if ((columns != 1 && columns != s.keys) || (rows != 1 && rows != s.queries))
    decline("the mask does not broadcast to the scores");
  s.boolean_mask = m.dtype() == TN_BOOL;
  s.mask_repeats = columns == 1 && s.keys != 1;
  s.mask_row = rows == 1 ? 0 : columns;
  s.m = batch_offsets(m.rank() > 2 ? m.dims().subspan(0, m.dims().size() - 2) : Span<const int64_t>(), batch,
                      rows * columns);
}

void set(Planned& p, std::unique_ptr<State> s) {
  s->blocks = (s->queries + block_rows - 1) / block_rows;
  const auto tiles = static_cast<uint32_t>(static_cast<int64_t>(s->q.size()) * s->blocks);
  const auto bytes = static_cast<uint64_t>(std::min(block_rows, s->queries) * s->keys) * sizeof(float);
  p.set(run, std::move(s), tiles, bytes);
}

void plan(const PlanView& v, Planned& p) {
  allow_isa(v.cpu_features());
  allow_simd(v.cpu_features());
  const auto q = v.input(0), k = v.input(1), val = v.input(2), y = v.output();
  if (q.rank() < 2 || k.rank() < 2 || val.rank() < 2) decline("an operand of less than two dimensions");
  if (y.count() == 0) decline("a tensor without elements");
  auto s = std::make_unique<State>();
  s->k_transposed = v.attrs().get_int("k_is_transposed", 0) != 0;
  s->scale = static_cast<float>(v.attrs().get_float("scale", 1.0));
  s->queries = q.dim(-2), s->width = q.dim(-1), s->keys = k.dim(s->k_transposed ? -1 : -2),
  s->value_width = val.dim(-1);
  if (s->keys == 0 || s->width == 0) decline("no keys");
  if (k.dim(s->k_transposed ? -2 : -1) != s->width || val.dim(-2) != s->keys)
    fail("the shapes of Q, K and V do not fit");
  const auto batch = y.dims().subspan(0, y.dims().size() - 2);
  const auto lead = [](const OperandView& o) { return o.dims().subspan(0, o.dims().size() - 2); };
  s->q = batch_offsets(lead(q), batch, s->queries * s->width);
  s->k = batch_offsets(lead(k), batch, s->keys * s->width);
  s->v = batch_offsets(lead(val), batch, s->keys * s->value_width);
  s->y = batch_offsets(batch, batch, s->queries * s->value_width);
  s->q_row = s->width, s->k_row = s->k_transposed ? s->keys : s->width, s->v_row = s->y_row = s->value_width;
  take_mask(v, *s, batch);
  set(p, std::move(s));
}

void plan_attention(const PlanView& v, Planned& p) {
  allow_isa(v.cpu_features());
  allow_simd(v.cpu_features());
  const auto attrs = v.attrs();
  const bool standard = v.op_name() == "Attention";
  const auto q = v.input(0), k = v.input(1), val = v.input(2), y = v.output();
  if (v.has_input(6)) decline("lengths of keys are left to the reference");
  if (v.has_output(3)) decline("scores are left to the reference");
  if (attrs.get_int("left_window_size", -1) >= 0 || attrs.get_int("right_window_size", -1) >= 0 ||
      attrs.get_float("softcap", 0) != 0)
    decline("windows and caps of scores are left to the reference");
  if (y.count() == 0) decline("a tensor without elements");
  auto s = std::make_unique<State>();
  const bool flat = q.rank() == 3;
  if (k.rank() != q.rank() || val.rank() != q.rank()) decline("Q, K and V differ in rank");
  const int64_t heads = flat ? attrs.get_int("q_num_heads", 0) : q.dim(1),
                shared = flat ? attrs.get_int("kv_num_heads", 0) : k.dim(1), batch = q.dim(0);
  if (heads < 1 || shared < 1 || heads % shared != 0 || k.dim(0) != batch || val.dim(0) != batch)
    fail("the heads of Q, K and V do not fit");
  const int64_t fresh = k.dim(-2);
  s->width = flat ? q.dim(2) / heads : q.dim(3);
  s->value_width = flat ? val.dim(2) / shared : val.dim(3);
  if (v.has_input(4) != v.has_input(5)) fail("past_key and past_value are given together or not at all");
  if (v.has_input(4)) {
    const auto pk = v.input(4), pv = v.input(5);
    s->past = pk.rank() == 4 ? pk.dim(2) : -1;
    const auto fits = [&](const OperandView& o, int64_t width) {
      return o.rank() == 4 && o.dim(0) == batch && o.dim(1) == shared && o.dim(2) == s->past &&
             o.dim(3) == width;
    };
    if (!fits(pk, s->width) || !fits(pv, s->value_width)) fail("the cache does not fit K and V");
  }
  s->queries = q.dim(-2), s->keys = s->past + fresh;
  if (s->keys == 0 || s->width == 0) decline("no keys");
  if ((flat ? k.dim(2) / shared : k.dim(3)) != s->width || val.dim(-2) != fresh)
    fail("the shapes of Q, K and V do not fit");
  const double scale = attrs.get_float("scale", standard ? 0 : 1);
  s->scale =
      static_cast<float>(scale != 0 || !standard ? scale : 1 / std::sqrt(static_cast<double>(s->width)));
  s->zero_hidden = standard;
  s->causal = attrs.get_int("is_causal", 0) != 0;
  s->k_transposed = false;
  s->present_k = v.has_output(1), s->present_v = v.has_output(2);
  s->sharers = heads / shared;
  // From one head to the next, and from one position to the next.
  const auto place = [&](std::vector<int64_t>& offsets, int64_t& row, int64_t count, int64_t repeat,
                         int64_t length, int64_t width) {
    row = flat ? count * width : width;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        offsets.push_back(b * count * length * width + h / repeat * (flat ? width : length * width));
  };
  place(s->q, s->q_row, heads, 1, s->queries, s->width);
  place(s->k, s->k_row, shared, s->sharers, fresh, s->width);
  place(s->v, s->v_row, shared, s->sharers, fresh, s->value_width);
  place(s->y, s->y_row, heads, 1, s->queries, s->value_width);
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h) s->shared.push_back(b * shared + h / s->sharers);
  if (v.has_input(3) && v.input(3).dim(-1) != s->keys) decline("the mask is shorter than the keys");
  const Dims over{batch, heads};
  take_mask(v, *s, over);
  set(p, std::move(s));
}

}  // namespace

void provide_attention(Plugin& p) {
  const std::vector<tn_dtype> f32{TN_FLOAT32};
  p.kernel("tenon.cpu.sdpa/1", "tenon::SDPA")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .input(f32)
      .input(f32)
      .plan<plan>();
  const std::vector<tn_dtype> masks{TN_FLOAT32, TN_BOOL};
  for (const auto& [id, op] : {std::pair("tenon.cpu.attention/1", "Attention"),
                               std::pair("tenon.cpu.multi_head_sdpa/1", "tenon::MultiHeadSDPA")})
    p.kernel(id, op)
        .flags(TN_KERNEL_DETERMINISTIC)
        .input(f32)
        .input(f32)
        .input(f32)
        .input(masks)
        .input(f32)
        .input(f32)
        .plan<plan_attention>();
}

}  // namespace tenon::cpu
