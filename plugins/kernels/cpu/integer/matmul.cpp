// MatMulInteger, QLinearMatMul, tenon::QuantizedGemm with a constant matrix on the right: its columns lie in
// panels of signed bytes, the rows on the left are copied, unsigned, to whole quads.
#include <algorithm>

#include "families.hpp"
#include "integer/product.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

constexpr int64_t row_block = 64;

struct MatmulState {
  int64_t m = 0, k = 0, n = 0;
  uint32_t row_parts = 1, column_parts = 1;
  tn_dtype a = TN_UINT8, b = TN_INT8, y = TN_INT32;
  uint32_t b_at = 1;  // the operand
  ZeroPoint a_zero, b_zero, y_zero;
  bool quantised = false, gemm = false, bias = false, b_scale_a_column = false;
  PackedPanels panels;
  MultiplyPanel multiply = nullptr;
};

/// In a worker's workspace: rows, their sums, sums of products, and what a panel's columns add.
struct Scratch {
  uint8_t* rows;
  int32_t *row_sums, *products, *adds, *factors;
  float *by, *bias;
  static uint64_t bytes(const MatmulState& s) {
    return static_cast<uint64_t>(row_block * whole_quads(s.k) + 64) +
           static_cast<uint64_t>(row_block + (row_block + 4) * panel_columns) * sizeof(int32_t);
  }
  Scratch(const MatmulState& s, void* base) noexcept
      : rows(static_cast<uint8_t*>(base)),
        row_sums(reinterpret_cast<int32_t*>(rows + (row_block * whole_quads(s.k) + 63) / 64 * 64)),
        products(row_sums + row_block),
        adds(products + row_block * panel_columns),
        factors(adds + panel_columns),
        by(reinterpret_cast<float*>(factors + panel_columns)),
        bias(by + panel_columns) {}
};

uint32_t wrapped(int64_t x) noexcept { return static_cast<uint32_t>(static_cast<uint64_t>(x)); }

/// For columns [j0, j0 + n): adds = depth za zb - za sum b, factors = -zb. False where all factors are 0.
bool column_terms(const MatmulState& s, const tn_kernel_args* args, int64_t j0, int64_t n, int64_t a_zero,
                  const Scratch& t) noexcept {
  bool any = false;
  for (int64_t j = 0; j < n; ++j) {
    const int64_t b_zero = shifted_zero(s.b_zero.at(args, j0 + j), false, s.b);
    t.factors[j] = static_cast<int32_t>(-b_zero);
    t.adds[j] = static_cast<int32_t>(wrapped(a_zero * (s.k * b_zero - s.panels.sums[j0 + j])));
    any |= b_zero != 0;
  }
  return any;
}

int run(const tn_kernel_args* args, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<MatmulState>(args);
  const Range rows = tile_range(s.m, s.row_parts, tile / s.column_parts);
  const Range panels = tile_range(panels_of(s.n), s.column_parts, tile % s.column_parts);
  const Scratch t(s, workspace<void>(args, worker));
  const int64_t stride = whole_quads(s.k), a_zero = shifted_zero(s.a_zero.at(args), true, s.a);
  const uint8_t flip = flip_to(true, s.a);
  const auto* a = in<uint8_t>(args, 0);
  const float* b_scale = s.quantised ? in<float>(args, 4) : nullptr;
  const float y_scale = s.quantised ? *in<float>(args, 6) : 1.0f;
  const int32_t y_zero = s.y_zero.at(args);
  for (int64_t i0 = rows.begin; i0 < rows.end; i0 += row_block) {
    const int64_t count = std::min(row_block, rows.end - i0);
    for (int64_t i = 0; i < count; ++i) {
      uint8_t* to = t.rows + i * stride;
      flip_row(a + (i0 + i) * s.k, s.k, flip, to);
      std::fill(to + s.k, to + stride, uint8_t{0});
      t.row_sums[i] = sum_row(to, s.k);
    }
    for (int64_t p = panels.begin; p < panels.end; ++p) {
      const int64_t j0 = p * panel_columns, n = std::min(panel_columns, s.n - j0);
      s.multiply(s.panels.panel(p), t.rows, stride, count, s.panels.quads, t.products);
      const bool factors = column_terms(s, args, j0, n, a_zero, t);
      for (int64_t j = 0; s.quantised && j < n; ++j) {
        t.by[j] = *in<float>(args, 1) * b_scale[s.b_scale_a_column ? j0 + j : 0];
        if (!s.gemm) t.by[j] /= y_scale;
        t.bias[j] = s.bias ? in<float>(args, 8)[j0 + j] : 0.0f;
      }
      for (int64_t i = 0; i < count; ++i) {
        int32_t* sums = t.products + i * panel_columns;
        adjust_sums(sums, n, 0, t.adds, t.row_sums[i], factors ? t.factors : nullptr);
        const int64_t at = (i0 + i) * s.n + j0;
        if (s.gemm)
          quantise_sums(sums, n, t.by, t.bias, 1, y_scale, y_zero, s.y == TN_INT8, out<uint8_t>(args) + at);
        else if (s.quantised)
          requantise_row(sums, n, t.by, 1, y_zero, s.y == TN_INT8, out<uint8_t>(args) + at);
        else
          std::copy(sums, sums + n, out<int32_t>(args) + at);
      }
    }
  }
  return 0;
}

void one_number(const PlanView& v, uint32_t i, const char* what) {
  if (v.has_input(i) && v.input(i).count() != 1) decline(format("%s is not one number", what));
}
bool a_column(const PlanView& v, uint32_t i, int64_t n, const char* what) {
  if (!v.has_input(i) || v.input(i).count() == 1) return false;
  if (v.input(i).count() != n) decline(format("%s is neither one number nor one a column", what));
  return true;
}

void plan(const PlanView& v, Planned& p) {
  auto s = std::make_unique<MatmulState>();
  s->gemm = v.op_name() == "tenon::QuantizedGemm";
  s->quantised = s->gemm || v.op_name() == "QLinearMatMul";
  const bool turned = s->gemm && v.attrs().get_int("transB", 0) != 0;
  if (s->quantised) s->b_at = 3;
  const uint32_t b_zero = s->quantised ? 5 : 3;
  const auto a = v.input(0), b = v.input(s->b_at), y = v.output();
  if (!a.is_static() || !y.is_static()) decline("its shape is not known");
  if (a.rank() < 2 || b.rank() != 2) decline("an operand of other than two dimensions");
  if (y.count() == 0 || a.count() == 0) decline("a tensor without elements");
  s->k = b.dim(turned ? 1 : 0), s->n = b.dim(turned ? 0 : 1), s->m = y.count() / s->n;
  if (a.dim(-1) != s->k || s->m * s->k != a.count()) decline("the operands' shapes do not fit");
  s->a = a.dtype(), s->b = b.dtype(), s->y = y.dtype();
  one_number(v, 2, "the zero point of A");
  s->a_zero = ZeroPoint(v, 2, false);
  s->b_zero = ZeroPoint(v, b_zero, a_column(v, b_zero, s->n, "the zero point of B"));
  if (s->quantised) {
    one_number(v, 1, "the scale of A");
    one_number(v, 6, "the scale of Y");
    one_number(v, 7, "the zero point of Y");
    s->y_zero = ZeroPoint(v, 7, false);
    s->bias = v.has_input(8);
    if (s->bias && (v.input(8).rank() > 2 || v.input(8).count() != s->n ||
                    (v.input(8).rank() == 2 && v.input(8).dim(1) != s->n)))
      decline("the bias is not one number a column");
    s->b_scale_a_column = a_column(v, 4, s->n, "the scale of B");
  }
  s->panels = pack_panels(v, s->b_at, 0, s->k, s->n, turned ? 1 : s->n, turned ? s->k : 1);
  s->multiply = panel_multiplier(v.cpu_features(), false);
  const auto wanted = s->m * s->k * s->n < 400000 ? 1 : static_cast<int64_t>(v.threads());
  // By columns each thread streams its own weights once; by rows only when there are too few columns.
  const bool by_rows = panels_of(s->n) < 2 * wanted && s->m >= 8 * wanted;
  (by_rows ? s->row_parts : s->column_parts) =
      static_cast<uint32_t>(by_rows ? wanted : std::min(wanted, panels_of(s->n)));
  const uint32_t tiles = s->row_parts * s->column_parts;
  const uint64_t bytes = Scratch::bytes(*s);
  p.set(run, std::move(s), tiles, bytes);
}

}  // namespace

void provide_integer_matmul(Plugin& p) {
  const std::vector<tn_dtype> byte{TN_UINT8, TN_INT8}, f32{TN_FLOAT32};
  p.kernel("tenon.cpu.matmul_integer/1", "MatMulInteger")
      .flags(TN_KERNEL_DETERMINISTIC)
      .cpu(TN_CPU_AVX2)
      .input(byte, 0, 2)
      .input(byte, TN_OPERAND_CONSTANT, 2, 2)
      .input(byte)
      .input(byte)
      .plan<plan>();
  for (const auto& [id, op] : {std::pair{"tenon.cpu.qlinear_matmul/1", "QLinearMatMul"},
                               std::pair{"tenon.cpu.quantized_gemm/1", "tenon::QuantizedGemm"}})
    p.kernel(id, op)
        .flags(TN_KERNEL_DETERMINISTIC)
        .cpu(TN_CPU_AVX2)
        .input(byte, 0, 2)
        .input(f32)
        .input(byte)
        .input(byte, TN_OPERAND_CONSTANT, 2, 2)
        .input(f32)
        .input(byte)
        .input(f32)
        .input(byte)
        .input(f32)
        .output(byte)
        .plan<plan>();
}

}  // namespace tenon::cpu
