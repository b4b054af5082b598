// MatMul, Gemm and the fused forms of the two: one batched product with an epilogue.
#include "families.hpp"
#include "math/activation_kernels.hpp"
#include "support/blocked.hpp"
#include "support/product_shape.hpp"

namespace tenon::reference {
namespace {

// result[batch][i][j] = activation(alpha * sum_k a * b + beta * c)
struct ProductState : Base {
  int64_t m = 0, n = 0, k = 0, a_row = 0, a_column = 0, b_row = 0, b_column = 0;
  std::vector<int64_t> a_at, b_at;  // element offset of each batch's matrix
  Load<double> load_a = nullptr, load_b = nullptr, load_c = nullptr;
  Store<double> store = nullptr;
  bool has_c = false;
  int64_t c_row = 0, c_column = 0;
  double alpha = 1, beta = 1;
  Activation activation;
};

int product_fn(const tn_kernel_args* args, uint32_t tile, uint32_t worker) {
  const auto& s = state<ProductState>(args);
  const int64_t rows = (s.m + tile_m - 1) / tile_m, columns = (s.n + tile_n - 1) / tile_n;
  const auto r = tile_range(static_cast<int64_t>(s.a_at.size()) * rows * columns, s.tiles, tile);
  double* scratch = workspace<double>(args, worker);
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const int64_t j0 = unit % columns * tile_n, i0 = unit / columns % rows * tile_m,
                  batch = unit / (columns * rows);
    const int64_t m = std::min(tile_m, s.m - i0), n = std::min(tile_n, s.n - j0);
    const int64_t a_at = s.a_at[static_cast<size_t>(batch)], b_at = s.b_at[static_cast<size_t>(batch)];
    const auto load_a = [&](int64_t i, int64_t k0, int64_t kc, double* to) {
      s.load_a(args->inputs[0], a_at + (i0 + i) * s.a_row + k0 * s.a_column, s.a_column, kc, to);
    };
    double* c;
    if (s.b_column == 1 || s.n == 1) {
      c = multiply<false>(m, n, s.k, scratch, load_a, [&](int64_t k, double* to) {
        s.load_b(args->inputs[1], b_at + k * s.b_row + j0 * s.b_column, s.b_column, n, to);
      });
    } else {
      c = multiply<true>(m, n, s.k, scratch, load_a, [&](int64_t j, int64_t k0, int64_t kc, double* to) {
        s.load_b(args->inputs[1], b_at + k0 * s.b_row + (j0 + j) * s.b_column, s.b_row, kc, to);
      });
    }
    double bias[tile_n];
    for (int64_t i = 0; i < m; ++i) {
      double* row = c + i * tile_n;
      if (s.alpha != 1)
        for (int64_t j = 0; j < n; ++j) row[j] *= s.alpha;
      if (s.has_c) {
        s.load_c(args->inputs[2], (i0 + i) * s.c_row + j0 * s.c_column, s.c_column, n, bias);
        for (int64_t j = 0; j < n; ++j) row[j] += s.beta * bias[j];
      }
      s.activation(row, n);
      s.store(row, n, args->outputs[0], (batch * s.m + i0 + i) * s.n + j0);
    }
  }
  return run_ok;
}

/// Integers wider than 8 bits: sums modulo 2^64, then cut to the type.
int integer_product_fn(const tn_kernel_args* args, uint32_t tile, uint32_t) {
  const auto& s = state<ProductState>(args);
  const auto r = tile_range(static_cast<int64_t>(s.a_at.size()) * s.m, s.tiles, tile);
  const auto load = loader<uint64_t>(s.in[0].dtype);
  const auto store = storer<uint64_t>(s.out[0].dtype);
  const auto read = [&](size_t i, int64_t at) {
    uint64_t x;
    load(args->inputs[i], at, 1, 1, &x);
    return x;
  };
  for (int64_t row = r.begin; row < r.end; ++row) {
    const int64_t a_at = s.a_at[static_cast<size_t>(row / s.m)] + row % s.m * s.a_row,
                  b_at = s.b_at[static_cast<size_t>(row / s.m)];
    for (int64_t j = 0; j < s.n; ++j) {
      uint64_t sum = 0;
      for (int64_t k = 0; k < s.k; ++k)
        sum += read(0, a_at + k * s.a_column) * read(1, b_at + k * s.b_row + j * s.b_column);
      sum *= static_cast<uint64_t>(static_cast<int64_t>(s.alpha));
      if (s.has_c)
        sum += read(2, row % s.m * s.c_row + j * s.c_column) *
               static_cast<uint64_t>(static_cast<int64_t>(s.beta));
      store(&sum, 1, args->outputs[0], row * s.n + j);
    }
  }
  return run_ok;
}

void finish_product(const PlanView& v, Planned& p, std::unique_ptr<ProductState> s) {
  const int64_t batches = static_cast<int64_t>(s->a_at.size());
  if (checked_mul(checked_mul(batches, s->m), s->n) != s->out[0].count)
    fail(format("%s of %s and %s does not yield %s", std::string(v.op_name()).c_str(),
                dims_text(s->in[0].dims).c_str(), dims_text(s->in[1].dims).c_str(),
                dims_text(s->out[0].dims).c_str()));
  const int64_t work = s->out[0].count * std::max<int64_t>(s->k / 4, 1);
  if (is_integer(s->in[0].dtype)) {
    const int64_t units = batches * s->m;
    finish(v, p, integer_product_fn, std::move(s), units, work);
    return;
  }
  s->load_a = loader<double>(s->in[0].dtype);
  s->load_b = loader<double>(s->in[1].dtype);
  if (s->has_c) s->load_c = loader<double>(s->in[2].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t units = batches * ((s->m + tile_m - 1) / tile_m) * ((s->n + tile_n - 1) / tile_n);
  finish(v, p, product_fn, std::move(s), units, work, multiply_bytes);
}

void shapes_of_matmul(ProductState& s) {
  ProductShape shape = product_shape(s.in[0].dims, s.in[1].dims);
  s.m = shape.m;
  s.k = shape.k;
  s.n = shape.n;
  s.a_row = s.k;
  s.a_column = 1;
  s.b_row = s.n;
  s.b_column = 1;
  for (int64_t& at : shape.a_at) at *= s.m * s.k;
  for (int64_t& at : shape.b_at) at *= s.k * s.n;
  s.a_at = std::move(shape.a_at);
  s.b_at = std::move(shape.b_at);
}

void plan_matmul(const PlanView& v, Planned& p) {
  auto s = make_state<ProductState>(v);
  shapes_of_matmul(*s);
  // One matrix on the right: the batches of the left are rows of one product, and blocks are filled.
  if (s->in[1].rank() <= 2 && !s->a_at.empty()) {
    s->m *= static_cast<int64_t>(s->a_at.size());
    s->a_at = s->b_at = {0};
  }
  if (v.op_name() == "tenon::FusedMatMul") {
    s->activation = fused_activation(v);
    s->has_c = s->has_in(2);
    if (s->has_c && s->in[2].count != s->n && s->in[2].count != 1)
      fail(format("FusedMatMul's bias %s does not fit %lld columns", dims_text(s->in[2].dims).c_str(),
                  static_cast<long long>(s->n)));
    s->c_column = s->has_c && s->in[2].count > 1 ? 1 : 0;
  }
  finish_product(v, p, std::move(s));
}

void plan_gemm(const PlanView& v, Planned& p) {
  auto s = make_state<ProductState>(v);
  if (s->in[0].rank() != 2 || s->in[1].rank() != 2) fail("Gemm needs matrices");
  const bool ta = v.attrs().get_int("transA", 0) != 0, tb = v.attrs().get_int("transB", 0) != 0;
  const auto &a = s->in[0].dims, &b = s->in[1].dims;
  s->m = a[ta];
  s->k = a[!ta];
  s->n = b[!tb];
  if (b[tb] != s->k)
    fail(
        format("Gemm of %s and %s: the inner dimensions differ", dims_text(a).c_str(), dims_text(b).c_str()));
  s->a_row = ta ? 1 : s->k;
  s->a_column = ta ? s->m : 1;
  s->b_row = tb ? 1 : s->n;
  s->b_column = tb ? s->k : 1;
  s->a_at = s->b_at = {0};
  s->alpha = v.attrs().get_float("alpha", 1);
  s->beta = v.attrs().get_float("beta", 1);
  s->has_c = s->has_in(2);
  if (s->has_c) {
    int64_t strides[max_rank] = {};
    broadcast_strides(s->in[2].dims, {s->m, s->n}, strides);
    s->c_row = strides[0];
    s->c_column = strides[1];
  }
  if (v.op_name() == "tenon::FusedGemm") s->activation = fused_activation(v);
  finish_product(v, p, std::move(s));
}

}  // namespace

void provide_matmul(Plugin& p) {
  reference_kernel(p, "MatMul").plan<plan_matmul>();
  reference_kernel(p, "Gemm").plan<plan_gemm>();
  reference_kernel(p, "tenon::FusedMatMul").plan<plan_matmul>();
  reference_kernel(p, "tenon::FusedGemm").plan<plan_gemm>();
}

}  // namespace tenon::reference
