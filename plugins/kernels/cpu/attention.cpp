// tenon::SDPA: softmax(Q K^T * scale + M) V, and Attention of ai.onnx where it is that. One tile is a block
// of query rows of one head; the scores of the block live in the worker's workspace and never see memory.
// Heads that lie beside each other in a row ([batch, sequence, heads * size]) are read in place, by their
// stride.
#include <algorithm>
#include <cmath>
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

struct State {
  int64_t queries, keys, width, value_width, blocks;
  int64_t q_row, k_row, v_row, y_row;  // from one position to the next
  float scale;
  bool k_transposed;
  std::vector<int64_t> q, k, v, m, y;  // offset of each head's matrix, in elements
  int64_t mask_row;                    // stride of the mask's rows; 0: one row for all
  bool mask_repeats;                   // the mask has one column only
  bool zero_hidden;                    // a query that may see no key yields zeros, not NaN
};

int run(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<State>(a);
  const auto head = static_cast<size_t>(tile / s.blocks);
  const int64_t first = tile % s.blocks * block_rows, rows = std::min(block_rows, s.queries - first);
  float* scores = workspace<float>(a, worker);
  const float* q = in<float>(a, 0) + s.q[head] + first * s.q_row;
  const float* k = in<float>(a, 1) + s.k[head];
  sgemm(false, !s.k_transposed, rows, s.keys, s.width, 1.0f, q, s.q_row, k, s.k_row, 0.0f, scores, s.keys);
  const float* mask = a->input_count > 3 ? in<float>(a, 3) : nullptr;
  for (int64_t i = 0; i < rows; ++i) {
    float* row = scores + i * s.keys;
    const float* m = mask ? mask + s.m[head] + (first + i) * s.mask_row : nullptr;
    scale_row(row, s.scale, m && !s.mask_repeats ? m : nullptr, s.keys);
    if (m && s.mask_repeats) binary_row(Binary::Add, row, 1, m, 0, row, s.keys);
    if (m && s.zero_hidden &&
        std::all_of(row, row + s.keys, [](float x) { return x == -std::numeric_limits<float>::infinity(); }))
      std::fill_n(row, s.keys, 0.0f);
    else
      softmax_row(row, row, s.keys, false);
  }
  sgemm(false, false, rows, s.value_width, s.keys, 1.0f, scores, s.keys, in<float>(a, 2) + s.v[head], s.v_row,
        0.0f, out<float>(a) + s.y[head] + first * s.y_row, s.y_row);
  return 0;
}

/// The mask broadcast to [batch.., queries, keys].
void take_mask(const PlanView& v, State& s, Span<const int64_t> batch) {
  if (!v.has_input(3)) return;
  const auto m = v.input(3);
  const int64_t columns = m.rank() >= 1 ? m.dim(-1) : 1, rows = m.rank() >= 2 ? m.dim(-2) : 1;
  if ((columns != 1 && columns != s.keys) || (rows != 1 && rows != s.queries))
    decline("the mask does not broadcast to the scores");
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
  const auto q = v.input(0), k = v.input(1), val = v.input(2), y = v.output();
  for (uint32_t i = 4; i < 7; ++i)
    if (v.has_input(i)) decline("past keys and lengths are left to the reference");
  for (uint32_t i = 1; i < 4; ++i)
    if (v.has_output(i)) decline("present keys and scores are left to the reference");
  if (attrs.get_int("is_causal", 0) || attrs.get_int("left_window_size", -1) >= 0 ||
      attrs.get_int("right_window_size", -1) >= 0 || attrs.get_float("softcap", 0) != 0)
    decline("windows and caps of scores are left to the reference");
  if (y.count() == 0) decline("a tensor without elements");
  auto s = std::make_unique<State>();
  const bool flat = q.rank() == 3;
  if (k.rank() != q.rank() || val.rank() != q.rank()) decline("Q, K and V differ in rank");
  const int64_t heads = flat ? attrs.get_int("q_num_heads", 0) : q.dim(1),
                shared = flat ? attrs.get_int("kv_num_heads", 0) : k.dim(1), batch = q.dim(0);
  if (heads < 1 || shared < 1 || heads % shared != 0 || k.dim(0) != batch || val.dim(0) != batch)
    fail("the heads of Q, K and V do not fit");
  s->queries = q.dim(-2), s->keys = k.dim(-2);
  s->width = flat ? q.dim(2) / heads : q.dim(3);
  s->value_width = flat ? val.dim(2) / shared : val.dim(3);
  if (s->keys == 0 || s->width == 0) decline("no keys");
  if ((flat ? k.dim(2) / shared : k.dim(3)) != s->width || val.dim(-2) != s->keys)
    fail("the shapes of Q, K and V do not fit");
  s->scale = static_cast<float>(attrs.has("scale") ? attrs.get_float("scale", 1)
                                                   : 1 / std::sqrt(static_cast<double>(s->width)));
  s->zero_hidden = true;
  // From one head to the next, and from one position to the next.
  const auto place = [&](std::vector<int64_t>& offsets, int64_t& row, int64_t count, int64_t repeat,
                         int64_t length, int64_t width) {
    row = flat ? count * width : width;
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        offsets.push_back(b * count * length * width + h / repeat * (flat ? width : length * width));
  };
  place(s->q, s->q_row, heads, 1, s->queries, s->width);
  place(s->k, s->k_row, shared, heads / shared, s->keys, s->width);
  place(s->v, s->v_row, shared, heads / shared, s->keys, s->value_width);
  place(s->y, s->y_row, heads, 1, s->queries, s->value_width);
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
  p.kernel("tenon.cpu.attention/1", "Attention")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32)
      .input(f32)
      .input(f32)
      .input(f32)
      .plan<plan_attention>();
}

}  // namespace tenon::cpu
