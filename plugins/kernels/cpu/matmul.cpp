// Matrix products in float32.
//
// A constant second operand is packed once, in one piece a thread (its columns), in oneDNN's own layout; each
// tile is one single-threaded product with bias and activation. Other products go to sgemm, one tile a matrix
// or a slice of it.
#include <algorithm>

#include "activation.hpp"
#include "batch.hpp"
#include "families.hpp"
#include "onednn.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;
using dnnl::memory;

namespace {

// ---------------------------------------------------------------- packed weights
struct Part {
  int64_t column, columns, row, rows;
  dnnl::matmul primitive;
  memory::desc a, b, c, scratchpad;
  const void* packed;
};
struct Packed {
  int64_t m, k, n;
  Activation act;
  bool bias;
  std::vector<Part> parts;
};

int run_packed(const tn_kernel_args* args, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<Packed>(args);
  const Part& p = s.parts[tile];
  const SingleThread one;
  float* c = out<float>(args) + p.row * s.n + p.column;
  const float* bias = s.bias ? in<float>(args, 2) + p.column : nullptr;
  try {
    const auto& e = engine();
    std::unordered_map<int, memory> a{
        {DNNL_ARG_SRC, memory(p.a, e, const_cast<float*>(in<float>(args, 0) + p.row * s.k))},
        {DNNL_ARG_WEIGHTS, memory(p.b, e, const_cast<void*>(p.packed))},
        {DNNL_ARG_DST, memory(p.c, e, c)},
        {DNNL_ARG_SCRATCHPAD, memory(p.scratchpad, e, workspace<char>(args, worker))}};
    p.primitive.execute(stream(), a);
    stream().wait();
  } catch (...) {
    return TN_ERR_INTERNAL;
  }
  if (!bias && s.act.kind == Act::None) return 0;
  for (int64_t r = 0; r < p.rows; ++r) finish_columns(s.act, c + r * s.n, bias, p.columns);
  return 0;
}

/// b is [k, n], or [n, k] when transposed.
void plan_packed(const PlanView& v, Planned& out, int64_t m, int64_t k, int64_t n, bool transposed, bool bias,
                 const Activation& act) {
  const SingleThread one;
  auto s = std::make_unique<Packed>();
  s->m = m, s->k = k, s->n = n, s->bias = bias, s->act = act;
  const auto f32 = memory::data_type::f32;
  const uint32_t wanted = m * k * n < 100000 ? 1 : v.threads();
  // By columns each thread streams its own weights once; by rows only when there are too few columns.
  const bool by_rows = n < 64 * static_cast<int64_t>(wanted) && m >= 16 * static_cast<int64_t>(wanted);
  const uint32_t columns =
      by_rows ? 1 : static_cast<uint32_t>(std::min<int64_t>(wanted, std::max<int64_t>(1, n / 16)));
  const uint32_t rows = by_rows ? wanted : 1;
  uint64_t scratch = 0;
  for (uint32_t t = 0; t < rows * columns; ++t) {
    const Range cr = tile_range(n, columns, t % columns, 16), rr = tile_range(m, rows, t / columns, 4);
    Part p{};
    p.column = cr.begin, p.columns = cr.end - cr.begin, p.row = rr.begin, p.rows = rr.end - rr.begin;
    if (p.columns == 0 || p.rows == 0) continue;
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    p.a = memory::desc({p.rows, k}, f32, memory::dims{k, 1});
    p.c = memory::desc({p.rows, p.columns}, f32, memory::dims{n, 1});
    // Few rows: reading the weights is all the work, and the plain layout reads best when it is the layout
    // they have.
    const memory::desc any({k, p.columns}, f32, memory::format_tag::any);
    const dnnl::matmul::primitive_desc pd(dnnl::matmul::desc(p.a, any, p.c), attr, engine());
    p.primitive = dnnl::matmul(pd);
    p.b = pd.weights_desc();
    p.scratchpad = pd.scratchpad_desc();
    scratch = std::max<uint64_t>(scratch, p.scratchpad.get_size());
    const memory::desc plain({k, p.columns}, f32, transposed ? memory::dims{1, k} : memory::dims{n, 1});
    p.packed =
        v.packed(1,
                 layout_key(transposed ? "matmul-t" : "matmul", p.b) +
                     format("/%lld", static_cast<long long>(p.column)),
                 p.b.get_size(), [&](TensorView source, void* dst) {
                   reorder(plain, source.data<float>() + (transposed ? p.column * k : p.column), p.b, dst);
                 });
    s->parts.push_back(std::move(p));
  }
  const auto tiles = static_cast<uint32_t>(s->parts.size());
  out.set(run_packed, std::move(s), tiles, scratch);
}

// ---------------------------------------------------------------- products of two run-time matrices
struct Batched {
  int64_t m, k, n;
  int64_t row_parts;
  std::vector<int64_t> a_offset, b_offset;  // of each matrix, in elements
};

int run_batched(const tn_kernel_args* args, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<Batched>(args);
  const int64_t i = tile / s.row_parts;
  const Range r =
      tile_range(s.m, static_cast<uint32_t>(s.row_parts), static_cast<uint32_t>(tile % s.row_parts), 4);
  if (r.begin == r.end) return 0;
  sgemm(false, false, r.end - r.begin, s.n, s.k, 1.0f,
        in<float>(args, 0) + s.a_offset[static_cast<size_t>(i)] + r.begin * s.k, s.k,
        in<float>(args, 1) + s.b_offset[static_cast<size_t>(i)], s.n, 0.0f,
        out<float>(args) + (i * s.m + r.begin) * s.n, s.n);
  return 0;
}

void match_matmul(const PlanView& v) {
  for (uint32_t i = 0; i < 2; ++i)
    if (v.input(i).rank() == 1) decline("an operand of one dimension");
  if (v.has_input(2) && v.input(2).rank() > 1) decline("the bias has more than one dimension");
  fused_activation(v.attrs());
}

void plan_matmul(const PlanView& v, Planned& p) {
  allow_isa(v.cpu_features());
  allow_simd(v.cpu_features());
  const auto a = v.input(0), b = v.input(1), y = v.output();
  if (a.rank() < 2 || b.rank() < 2) decline("an operand of less than two dimensions");
  if (y.count() == 0 || a.count() == 0) decline("a tensor without elements");
  const int64_t m = a.dim(-2), k = a.dim(-1), n = b.dim(-1);
  const Activation act = fused_activation(v.attrs());
  if (v.has_input(2) && v.input(2).count() != n) decline("the bias is not one number a column");
  if (b.constant() && b.rank() == 2)
    return plan_packed(v, p, y.count() / n, k, n, false, v.has_input(2), act);
  if (v.has_input(2) || act.kind != Act::None)
    decline("a fused product whose second operand is not a constant matrix");
  auto s = std::make_unique<Batched>();
  s->m = m, s->k = k, s->n = n;
  const auto batch = y.dims().subspan(0, y.dims().size() - 2);
  s->a_offset = batch_offsets(a.dims().subspan(0, a.dims().size() - 2), batch, m * k);
  s->b_offset = batch_offsets(b.dims().subspan(0, b.dims().size() - 2), batch, k * n);
  const auto count = static_cast<int64_t>(s->a_offset.size());
  s->row_parts = count * m * k * n < 50000
                     ? 1
                     : std::clamp<int64_t>((v.threads() + count - 1) / count, 1, std::max<int64_t>(1, m / 4));
  const auto tiles = static_cast<uint32_t>(count * s->row_parts);
  p.set(run_batched, std::move(s), tiles);
}

// ---------------------------------------------------------------- Gemm
struct Gemm {
  int64_t m, k, n;
  bool ta, tb;
  float alpha, beta;
  Activation act;
  int64_t c_row, c_column;  // strides of C; 0: broadcast
  uint32_t parts;
};

int run_gemm(const tn_kernel_args* args, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<Gemm>(args);
  const Range r = tile_range(s.m, s.parts, tile, 4);
  if (r.begin == r.end) return 0;
  float* y = out<float>(args) + r.begin * s.n;
  const bool has_c = args->input_count > 2 && args->inputs[2] && s.beta != 0;
  sgemm(s.ta, s.tb, r.end - r.begin, s.n, s.k, s.alpha, in<float>(args, 0) + (s.ta ? r.begin : r.begin * s.k),
        s.ta ? s.m : s.k, in<float>(args, 1), s.tb ? s.k : s.n, 0.0f, y, s.n);
  for (int64_t i = r.begin; i < r.end; ++i, y += s.n) {
    if (has_c) {
      const float* c = in<float>(args, 2) + i * s.c_row;
      for (int64_t j = 0; j < s.n; ++j) y[j] += s.beta * c[j * s.c_column];
    }
    if (s.act.kind != Act::None) apply(s.act, y, y, s.n);
  }
  return 0;
}

void match_gemm(const PlanView& v) { fused_activation(v.attrs(), "activation_alpha", "activation_beta"); }

void plan_gemm(const PlanView& v, Planned& p) {
  allow_isa(v.cpu_features());
  allow_simd(v.cpu_features());
  const auto attrs = v.attrs();
  const auto a = v.input(0), b = v.input(1), y = v.output();
  if (a.rank() != 2 || b.rank() != 2) decline("an operand that is not a matrix");
  if (y.count() == 0 || a.count() == 0) decline("a tensor without elements");
  auto s = std::make_unique<Gemm>();
  s->ta = attrs.get_int("transA", 0) != 0, s->tb = attrs.get_int("transB", 0) != 0;
  s->m = y.dim(0), s->n = y.dim(1), s->k = a.dim(s->ta ? 0 : 1);
  s->act = fused_activation(attrs, "activation_alpha", "activation_beta");
  s->alpha = static_cast<float>(attrs.get_float("alpha", 1.0));
  s->beta = static_cast<float>(attrs.get_float("beta", 1.0));
  const bool has_c = v.has_input(2);
  int64_t c_rows = 1, c_columns = 1;
  if (has_c) {
    const auto c = v.input(2);
    if (c.rank() > 2) decline("C has more than two dimensions");
    if (c.rank() >= 1) c_columns = c.dim(-1);
    if (c.rank() == 2) c_rows = c.dim(0);
    s->c_column = c_columns > 1 ? 1 : 0;
    s->c_row = c_rows > 1 ? c_columns : 0;
  }
  if (b.constant() && !s->ta && s->alpha == 1.0f &&
      (!has_c || (s->beta == 1.0f && c_rows == 1 && c_columns == s->n)))
    return plan_packed(v, p, s->m, s->k, s->n, s->tb, has_c, s->act);
  s->parts =
      s->m * s->k * s->n < 100000 ? 1 : static_cast<uint32_t>(std::clamp<int64_t>(s->m / 4, 1, v.threads()));
  const uint32_t tiles = s->parts;
  p.set(run_gemm, std::move(s), tiles);
}

}  // namespace

void provide_matmul(Plugin& p) {
  const std::vector<tn_dtype> f32{TN_FLOAT32};
  p.kernel("tenon.cpu.matmul/1", "MatMul")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32, 0, 2)
      .input(f32, 0, 2)
      .match<match_matmul>()
      .plan<plan_matmul>();
  p.kernel("tenon.cpu.fused_matmul/1", "tenon::FusedMatMul")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32, 0, 2)
      .input(f32, TN_OPERAND_CONSTANT, 2, 2)
      .input(f32, 0, 0, 1)
      .match<match_matmul>()
      .plan<plan_matmul>();
  p.kernel("tenon.cpu.gemm/1", "Gemm")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32, 0, 2, 2)
      .input(f32, 0, 2, 2)
      .input(f32, 0, 0, 2)
      .plan<plan_gemm>();
  p.kernel("tenon.cpu.fused_gemm/1", "tenon::FusedGemm")
      .flags(TN_KERNEL_DETERMINISTIC)
      .input(f32, 0, 2, 2)
      .input(f32, 0, 2, 2)
      .input(f32, 0, 0, 2)
      .match<match_gemm>()
      .plan<plan_gemm>();
}

}  // namespace tenon::cpu
