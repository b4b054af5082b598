// DynamicQuantizeLSTM without peepholes, sequence lengths and clipping: a tile is a direction.
//
// The products of X are made for many steps at once; a step then multiplies the hidden state, quantised over
// the whole batch, and the gates i o f c of each item go through the activations in float32.
#include <algorithm>
#include <cstring>

#include "families.hpp"
#include "integer/product.hpp"
#include "simd.hpp"

namespace tenon::cpu {

using namespace sdk;

namespace {

constexpr int64_t row_block = 64;

enum Operand : uint32_t {
  input,
  input_weights,
  hidden_weights,
  biases,
  lengths,
  initial_hidden,
  initial_cell,
  peepholes,
  input_scale,
  input_zero,
  hidden_scale,
  hidden_zero
};

/// The weights of one operand, and how their scales and zero points are found.
struct Weights {
  std::vector<PackedPanels> panels;  // a direction each
  uint32_t scale = 0;                // the operand
  ZeroPoint zero;
  tn_dtype dtype = TN_INT8;
  bool scale_a_column = false, zero_a_column = false;
  int64_t depth = 0;
};

struct LstmState {
  int64_t steps = 0, batch = 0, hidden = 0, directions = 1, chunk = 1;
  bool backward_only = false, bias = false, first_hidden = false, first_cell = false, has_y[3] = {};
  Weights x, h;
  Act activations[6] = {};  // three a direction
  MultiplyPanel multiply = nullptr;
  int64_t columns() const noexcept { return panels_of(4 * hidden) * panel_columns; }  // to whole panels
};

/// A direction's scale and zero point of each column.
struct Columns {
  float* scales = nullptr;
  int32_t* zeros = nullptr;
  bool any_zero = false;
};

struct Scratch {
  uint8_t* rows = nullptr;
  int32_t *row_sums = nullptr, *products = nullptr;
  float *gates = nullptr, *hidden = nullptr, *cell = nullptr, *bias = nullptr;
  Columns x, h;
  /// Bytes needed; with `base` the pointers are set too.
  uint64_t lay_out(const LstmState& s, char* base) noexcept {
    int64_t at = 0;
    const auto take = [&](auto*& pointer, int64_t count) {
      using T = std::remove_reference_t<decltype(*pointer)>;
      if (base) pointer = reinterpret_cast<T*>(base + at);
      at += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    };
    take(rows, row_block * whole_quads(std::max(s.x.depth, s.h.depth)));
    take(row_sums, row_block);
    take(products, row_block * panel_columns);
    take(gates, s.chunk * s.batch * s.columns());
    take(hidden, s.batch * s.hidden);
    take(cell, s.batch * s.hidden);
    take(bias, s.columns());
    for (Columns* c : {&x, &h}) take(c->scales, s.columns()), take(c->zeros, s.columns());
    return static_cast<uint64_t>(at);
  }
};

void read_columns(const LstmState& s, const tn_kernel_args* a, const Weights& w, int64_t direction,
                  Columns& to) noexcept {
  const int64_t n = 4 * s.hidden;
  to.any_zero = false;
  for (int64_t j = 0; j < s.columns(); ++j) {
    const int64_t column = direction * n + std::min(j, n - 1);
    to.scales[j] = in<float>(a, w.scale)[w.scale_a_column ? column : direction];
    to.zeros[j] = shifted_zero(w.zero.at(a, w.zero_a_column ? column : direction), false, w.dtype);
    to.any_zero |= to.zeros[j] != 0;
  }
}

/// gates[r][j] += the product of quantised row r and column j, for rows that `row(r)` finds.
template <class Row>
void add_products(const LstmState& s, const Weights& w, int64_t direction, const Columns& columns,
                  int64_t count, const Quantisation& q, Row&& row, const Scratch& m, float* gates) noexcept {
  const PackedPanels& panels = w.panels[static_cast<size_t>(direction)];
  const int64_t stride = whole_quads(w.depth);
  for (int64_t r0 = 0; r0 < count; r0 += row_block, gates += row_block * s.columns()) {
    const int64_t rows = std::min(row_block, count - r0);
    for (int64_t r = 0; r < rows; ++r) {
      uint8_t* to = m.rows + r * stride;
      quantise_row(row(r0 + r), w.depth, q, to);
      std::fill(to + w.depth, to + stride, uint8_t{0});
      // (x - zx)(w - zw) summed: what zw of a column is taken times.
      m.row_sums[r] = static_cast<int32_t>(w.depth) * q.zero - sum_row(to, w.depth);
    }
    for (int64_t j = 0; j < s.columns(); j += panel_columns) {
      s.multiply(panels.panel(j / panel_columns), m.rows, stride, rows, panels.quads, m.products);
      for (int64_t r = 0; r < rows; ++r)
        add_scaled(m.products + r * panel_columns, panel_columns, -q.zero, panels.sums + j, m.row_sums[r],
                   columns.any_zero ? columns.zeros + j : nullptr, q.scale, columns.scales + j,
                   gates + r * s.columns() + j);
    }
  }
}

/// One step of one batch item: its hidden state and cell are brought up.
void step(const LstmState& s, const Act* f, float* gates, float* hidden, float* cell) noexcept {
  const int64_t H = s.hidden;
  float *in_gate = gates, *out_gate = gates + H, *forget = gates + 2 * H, *fresh = gates + 3 * H;
  apply_precisely(f[0], in_gate, in_gate, 3 * H);
  apply_precisely(f[1], fresh, fresh, H);
  for (int64_t i = 0; i < H; ++i) cell[i] = forget[i] * cell[i] + in_gate[i] * fresh[i];
  apply_precisely(f[2], cell, hidden, H);
  for (int64_t i = 0; i < H; ++i) hidden[i] *= out_gate[i];
}

int run(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<LstmState>(a);
  Scratch m;
  m.lay_out(s, workspace<char>(a, worker));
  const int64_t d = tile, B = s.batch, H = s.hidden, n = 4 * H;
  const bool backward = s.backward_only || d == 1;
  const auto start = [&](bool given, uint32_t operand, float* to) {
    if (given)
      std::copy_n(in<float>(a, operand) + d * B * H, B * H, to);
    else
      std::fill_n(to, B * H, 0.0f);
  };
  start(s.first_hidden, initial_hidden, m.hidden);
  start(s.first_cell, initial_cell, m.cell);
  read_columns(s, a, s.x, d, m.x);
  read_columns(s, a, s.h, d, m.h);
  std::fill_n(m.bias, s.columns(), 0.0f);
  if (s.bias) {
    const float* both = in<float>(a, biases) + d * 2 * n;
    for (int64_t j = 0; j < n; ++j) m.bias[j] = both[j] + both[n + j];
  }
  const auto* x = in<float>(a, input);
  float low = 0, high = 0;
  widen_range(x, s.steps * B * s.x.depth, &low, &high);
  const Quantisation x_form = quantisation_of(low, high);
  for (int64_t t0 = 0; t0 < s.steps; t0 += s.chunk) {
    const int64_t chunk = std::min(s.chunk, s.steps - t0);
    const auto place = [&](int64_t t) { return backward ? s.steps - 1 - t : t; };
    for (int64_t r = 0; r < chunk * B; ++r) std::copy_n(m.bias, s.columns(), m.gates + r * s.columns());
    add_products(
        s, s.x, d, m.x, chunk * B, x_form,
        [&](int64_t r) { return x + (place(t0 + r / B) * B + r % B) * s.x.depth; }, m, m.gates);
    for (int64_t t = t0; t < t0 + chunk; ++t) {
      float* gates = m.gates + (t - t0) * B * s.columns();
      low = high = 0;
      widen_range(m.hidden, B * H, &low, &high);
      add_products(
          s, s.h, d, m.h, B, quantisation_of(low, high), [&](int64_t b) { return m.hidden + b * H; }, m,
          gates);
      for (int64_t b = 0; b < B; ++b)
        step(s, s.activations + 3 * d, gates + b * s.columns(), m.hidden + b * H, m.cell + b * H);
      if (s.has_y[0]) std::copy_n(m.hidden, B * H, out<float>(a, 0) + (place(t) * s.directions + d) * B * H);
    }
  }
  if (s.has_y[1]) std::copy_n(m.hidden, B * H, out<float>(a, 1) + d * B * H);
  if (s.has_y[2]) std::copy_n(m.cell, B * H, out<float>(a, 2) + d * B * H);
  return 0;
}

Weights read_weights(const PlanView& v, uint32_t operand, uint32_t scale, int64_t depth, int64_t directions,
                     int64_t columns) {
  Weights w;
  const auto dims = v.input(operand).dims();
  if (dims.size() != 3 || dims[0] != directions || dims[1] != depth || dims[2] != columns)
    decline("the weights do not fit the input");
  for (uint32_t i : {scale, scale + 1})
    if (v.input(i).count() != directions && v.input(i).count() != directions * columns)
      decline("a scale or zero point is neither one a direction nor one a column");
  w.scale = scale, w.depth = depth, w.dtype = v.input(operand).dtype();
  w.scale_a_column = v.input(scale).count() != directions;
  w.zero_a_column = v.input(scale + 1).count() != directions;
  w.zero = ZeroPoint(v, scale + 1, true);
  for (int64_t d = 0; d < directions; ++d)
    w.panels.push_back(pack_panels(v, operand, d * depth * columns, depth, columns, columns, 1));
  return w;
}

void match(const PlanView& v) {
  if (v.has_input(lengths)) decline("sequences of different lengths");
  if (v.has_input(peepholes)) decline("peepholes");
  const auto attrs = v.attrs();
  if (attrs.get_int("input_forget", 0) != 0) decline("input and forget gate are coupled");
  if (attrs.get_float("clip", 0) > 0) decline("gates are clipped");
  for (const tn_str& name : attrs.get_strings("activations"))
    if (const auto text = sdk::view(name); text != "Sigmoid" && text != "Tanh" && text != "Relu")
      decline("activations other than Sigmoid, Tanh and Relu");
}

void plan(const PlanView& v, Planned& p) {
  allow_simd(v.cpu_features());
  match(v);
  auto s = std::make_unique<LstmState>();
  const auto direction = v.attrs().get_string("direction", "forward");
  s->directions = direction == "bidirectional" ? 2 : 1;
  s->backward_only = direction == "reverse";
  const auto x = v.input(input), r = v.input(hidden_weights);
  if (!x.is_static() || x.rank() != 3 || r.rank() != 3) decline("its shape is not known");
  if (x.count() == 0 || r.count() == 0) decline("a tensor without elements");
  s->steps = x.dim(0), s->batch = x.dim(1), s->hidden = r.dim(1);
  s->x = read_weights(v, input_weights, input_scale, x.dim(2), s->directions, 4 * s->hidden);
  s->h = read_weights(v, hidden_weights, hidden_scale, s->hidden, s->directions, 4 * s->hidden);
  const auto given = [&](uint32_t i, int64_t count) {
    if (v.has_input(i) && v.input(i).count() != count) decline("a bias or first state has another size");
    return v.has_input(i);
  };
  const int64_t states = s->directions * s->batch * s->hidden;
  s->bias = given(biases, s->directions * 8 * s->hidden);
  s->first_hidden = given(initial_hidden, states);
  s->first_cell = given(initial_cell, states);
  for (uint32_t i = 0; i < 3; ++i) s->has_y[i] = v.has_output(i);
  const auto names = v.attrs().get_strings("activations");
  if (!names.empty() && names.size() != static_cast<size_t>(3 * s->directions))
    decline("the activations are not three a direction");
  for (size_t i = 0; i < static_cast<size_t>(3 * s->directions); ++i) {
    const auto name = names.empty() ? std::string_view(i % 3 == 0 ? "Sigmoid" : "Tanh") : sdk::view(names[i]);
    s->activations[i] = name == "Sigmoid" ? Act::Sigmoid : name == "Tanh" ? Act::Tanh : Act::Relu;
  }
  s->multiply = panel_multiplier(v.cpu_features(), false);
  s->chunk = std::clamp<int64_t>(row_block / s->batch, 1, s->steps);
  const auto tiles = static_cast<uint32_t>(s->directions);
  const uint64_t bytes = Scratch().lay_out(*s, nullptr);
  p.set(run, std::move(s), tiles, bytes);
}

}  // namespace

void provide_quantised_lstm(Plugin& p) {
  const std::vector<tn_dtype> byte{TN_UINT8, TN_INT8}, f32{TN_FLOAT32};
  p.kernel("tenon.cpu.dynamic_quantize_lstm/1", "com.microsoft::DynamicQuantizeLSTM")
      .flags(TN_KERNEL_DETERMINISTIC)
      .cpu(TN_CPU_AVX2)
      .input(f32, 0, 3, 3)
      .input(byte, TN_OPERAND_CONSTANT, 3, 3)
      .input(byte, TN_OPERAND_CONSTANT, 3, 3)
      .match<match>()
      .plan<plan>();
}

}  // namespace tenon::cpu
