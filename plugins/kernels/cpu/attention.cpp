// tenon::SDPA: softmax(Q K^T * scale + M) V. One tile is a block of query rows of one head; the scores of the
// block live in the worker's workspace and never see memory.
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
  float scale;
  bool k_transposed;
  std::vector<int64_t> q, k, v, m;  // offset of each head's matrix, in elements
  int64_t mask_row;                 // stride of the mask's rows; 0: one row for all
  bool mask_repeats;                // the mask has one column only
};

int run(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<State>(a);
  const auto head = static_cast<size_t>(tile / s.blocks);
  const int64_t first = tile % s.blocks * block_rows, rows = std::min(block_rows, s.queries - first);
  float* scores = workspace<float>(a, worker);
  const float* q = in<float>(a, 0) + s.q[head] + first * s.width;
  const float* k = in<float>(a, 1) + s.k[head];
  sgemm(false, !s.k_transposed, rows, s.keys, s.width, 1.0f, q, s.width, k, s.k_transposed ? s.keys : s.width,
        0.0f, scores, s.keys);
  const float* mask = a->input_count > 3 ? in<float>(a, 3) : nullptr;
  for (int64_t i = 0; i < rows; ++i) {
    float* row = scores + i * s.keys;
    const float* m = mask ? mask + s.m[head] + (first + i) * s.mask_row : nullptr;
    scale_row(row, s.scale, m && !s.mask_repeats ? m : nullptr, s.keys);
    if (m && s.mask_repeats) binary_row(Binary::Add, row, 1, m, 0, row, s.keys);
    softmax_row(row, row, s.keys, false);
  }
  sgemm(false, false, rows, s.value_width, s.keys, 1.0f, scores, s.keys, in<float>(a, 2) + s.v[head],
        s.value_width, 0.0f, out<float>(a) + (static_cast<int64_t>(head) * s.queries + first) * s.value_width,
        s.value_width);
  return 0;
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
  if (v.has_input(3)) {
    const auto m = v.input(3);
    const int64_t columns = m.rank() >= 1 ? m.dim(-1) : 1, rows = m.rank() >= 2 ? m.dim(-2) : 1;
    if ((columns != 1 && columns != s->keys) || (rows != 1 && rows != s->queries))
      decline("the mask does not broadcast to the scores");
    s->mask_repeats = columns == 1 && s->keys != 1;
    s->mask_row = rows == 1 ? 0 : columns;
    s->m = batch_offsets(m.rank() > 2 ? lead(m) : Span<const int64_t>(), batch, rows * columns);
  }
  s->blocks = (s->queries + block_rows - 1) / block_rows;
  const auto tiles = static_cast<uint32_t>(static_cast<int64_t>(s->q.size()) * s->blocks);
  const auto bytes = static_cast<uint64_t>(std::min(block_rows, s->queries) * s->keys) * sizeof(float);
  p.set(run, std::move(s), tiles, bytes);
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
}

}  // namespace tenon::cpu
