// DynamicQuantizeLSTM: an LSTM whose products are ones of 8-bit integers.
//
// W and R are [directions, input or hidden, 4 * hidden], gates in the order i o f c, with one scale and zero
// point a direction or a column. X is quantised once as its whole range asks, the hidden state before every
// step over all of the batch.
#include <cmath>

#include "families.hpp"
#include "math/activation_kernels.hpp"
#include "microsoft/microsoft.hpp"
#include "support/clones.hpp"
#include "support/kernel.hpp"

namespace tenon::ops {
namespace {

using namespace microsoft;

constexpr Schema rows[] = {
    {domain, "DynamicQuantizeLSTM", 1, 1, 12,
     "X:T W:Q R:Q B?:T sequence_lens?:=i32 initial_h?:T initial_c?:T P?:T W_scale:T W_zero_point:Q R_scale:T "
     "R_zero_point:Q",
     "Y?:T Y_h?:T Y_c?:T", "T:f32 Q:i8,u8",
     "activation_alpha:floats activation_beta:floats activations:strings clip:float direction='forward' "
     "hidden_size:int "
     "input_forget=0"},
};

void infer_lstm(Infer& c) {
  const auto direction = c.attrs().get_string("direction", "forward");
  require(direction == "forward" || direction == "reverse" || direction == "bidirectional",
          "attribute 'direction' is '" + std::string(direction) +
              "'; expected forward, reverse or bidirectional");
  const tn_dim directions = direction == "bidirectional" ? 2 : 1;
  if (!ranked(c, 0, "X", 3, 3) || !ranked(c, 1, "W", 3, 3) || !ranked(c, 2, "R", 3, 3)) {
    for (uint32_t i = 0; i < 3; ++i) c.set_unranked(i, TN_FLOAT32);
    return;
  }
  const auto x = c.dims(0);
  const tn_dim hidden = c.dims(2)[1], columns = c.mul(hidden, 4);
  const auto expect = [&](uint32_t i, const char* name, const std::vector<tn_dim>& wanted) {
    if (!c.has_input(i) ||
        !ranked(c, i, name, static_cast<int32_t>(wanted.size()), static_cast<int32_t>(wanted.size())))
      return;
    for (size_t k = 0; k < wanted.size(); ++k)
      require(!c.differ(c.dims(i)[k], wanted[k]), std::string("operand ") + name + " has shape " +
                                                      c.text(c.dims(i)) + "; expected " + c.text(wanted));
  };
  expect(1, "W", {directions, x[2], columns});
  expect(2, "R", {directions, hidden, columns});
  expect(3, "B", {directions, c.mul(columns, 2)});
  expect(4, "sequence_lens", {x[1]});
  expect(5, "initial_h", {directions, x[1], hidden});
  expect(6, "initial_c", {directions, x[1], hidden});
  expect(7, "P", {directions, c.mul(hidden, 3)});
  if (c.attrs().has("hidden_size"))
    require(!c.differ(hidden, c.make(c.attrs().get_int("hidden_size", 0))),
            "attribute 'hidden_size' is " + text_of(c.attrs().get_int("hidden_size", 0)) +
                ", but R has shape " + c.text(c.dims(2)));
  c.set(0, TN_FLOAT32, std::vector<tn_dim>{x[0], directions, x[1], hidden});
  c.set(1, TN_FLOAT32, std::vector<tn_dim>{directions, x[1], hidden});
  c.set(2, TN_FLOAT32, std::vector<tn_dim>{directions, x[1], hidden});
}

// ---- the kernel: a tile is a direction
// -----------------------------------------------------------------------------------------------------------------

using namespace tenon::reference;

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

struct LstmState : Base {
  int64_t steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  bool backward_only = false, input_forget = false, with_sign = false;
  double clip = 0;
  std::vector<Activation> activations;  // three a direction
};

/// DynamicQuantizeLinear of `count` numbers; the scale.
float quantise(const float* x, int64_t count, uint8_t* to, int32_t* zero_point) noexcept {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  const float range = (high - low) / 255.0f, scale = range == 0 ? 1.0f : range;
  const auto byte = [](float v) { return v == v ? std::min(std::max(v, 0.0f), 255.0f) : 0.0f; };
  const float zero = std::nearbyint(byte(-low / scale));
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<uint8_t>(byte(std::nearbyint(x[i] / scale) + zero));
  *zero_point = static_cast<int32_t>(zero);
  return scale;
}

/// sums[n] += (x - zero) w, four rows of w at a time; answers the sum of x - zero.
template <class Q>
TENON_CLONES int32_t add_rows(const uint8_t* x, int32_t zero, const Q* w, int64_t depth, int64_t n,
                              int32_t* sums) noexcept {
  int32_t total = 0;
  int64_t k = 0;
  const auto shifted = [&](int64_t i) { return static_cast<int16_t>(int32_t{x[i]} - zero); };
  for (; k + 4 <= depth; k += 4) {
    const int16_t a = shifted(k), b = shifted(k + 1), c = shifted(k + 2), d = shifted(k + 3);
    const Q* row = w + k * n;
    total += a + b + c + d;
    for (int64_t j = 0; j < n; ++j)
      sums[j] += a * static_cast<int16_t>(row[j]) + b * static_cast<int16_t>(row[n + j]) +
                 c * static_cast<int16_t>(row[2 * n + j]) + d * static_cast<int16_t>(row[3 * n + j]);
  }
  for (; k < depth; ++k) {
    const int16_t a = shifted(k);
    total += a;
    for (int64_t j = 0; j < n; ++j) sums[j] += a * static_cast<int16_t>(w[k * n + j]);
  }
  return total;
}

/// gates[n] += (x - zero) (w - its zero) * scale * its scale, for one row x of `depth` numbers and n columns.
template <class Q>
void add_product(const LstmState& s, const tn_kernel_args* a, int64_t direction, const uint8_t* x,
                 int64_t depth, float scale, int32_t zero, uint32_t weights, uint32_t scales, uint32_t zeros,
                 int32_t* sums, float* gates) noexcept {
  const int64_t n = 4 * s.hidden;
  const Q* w = in<Q>(a, weights) + direction * depth * n;
  std::fill(sums, sums + n, 0);
  const int32_t total = add_rows(x, zero, w, depth, n, sums);
  const bool scale_a_column = s.in[scales].count != s.directions,
             zero_a_column = s.in[zeros].count != s.directions;
  const float* by = in<float>(a, scales) + (scale_a_column ? direction * n : direction);
  const Q* centre = in<Q>(a, zeros) + (zero_a_column ? direction * n : direction);
  for (int64_t j = 0; j < n; ++j) {
    const int32_t exact = sums[j] - total * int32_t{centre[zero_a_column ? j : 0]};
    gates[j] += static_cast<float>(exact) * (scale * by[scale_a_column ? j : 0]);
  }
}

/// One step of one batch item: gates i o f c with biases in, hidden state and cell c are brought up.
void step(const LstmState& s, const tn_kernel_args* a, int64_t direction, float* gates, float* hidden,
          float* cell, double* wide) noexcept {
  const int64_t H = s.hidden;
  const float* peep = s.has_in(peepholes) ? in<float>(a, peepholes) + direction * 3 * H : nullptr;
  const Activation* f = s.activations.data() + 3 * direction;
  const auto apply = [&](const Activation& act, float* x, bool limited) {
    for (int64_t i = 0; i < H; ++i) {
      wide[i] = x[i];
      if (limited && s.clip > 0) wide[i] = std::min(std::max(wide[i], -s.clip), s.clip);
    }
    act(wide, H);
    for (int64_t i = 0; i < H; ++i) x[i] = static_cast<float>(wide[i]);
  };
  float *in_gate = gates, *out_gate = gates + H, *forget = gates + 2 * H, *fresh = gates + 3 * H;
  for (int64_t i = 0; peep && i < H; ++i) {
    in_gate[i] += peep[i] * cell[i];
    forget[i] += peep[2 * H + i] * cell[i];
  }
  apply(f[0], in_gate, true);
  apply(f[0], forget, true);
  apply(f[1], fresh, true);
  for (int64_t i = 0; i < H; ++i) {
    if (s.input_forget) forget[i] = 1 - in_gate[i];
    cell[i] = forget[i] * cell[i] + in_gate[i] * fresh[i];
    if (peep) out_gate[i] += peep[H + i] * cell[i];
  }
  apply(f[0], out_gate, true);
  std::memcpy(hidden, cell, static_cast<size_t>(H) * sizeof(float));
  apply(f[2], hidden, false);
  for (int64_t i = 0; i < H; ++i) hidden[i] *= out_gate[i];
}

struct Scratch {
  uint8_t *x = nullptr, *h = nullptr;
  float *hidden = nullptr, *cell = nullptr, *gates = nullptr;
  int32_t* sums = nullptr;
  double* wide = nullptr;
  /// Bytes needed; with `base` the pointers are set too.
  int64_t lay_out(const LstmState& s, char* base) {
    int64_t at = 0;
    const auto take = [&](auto*& pointer, int64_t count) {
      using T = std::remove_reference_t<decltype(*pointer)>;
      if (base) pointer = reinterpret_cast<T*>(base + at);
      at += (checked_mul(count, sizeof(T)) + 63) / 64 * 64;
    };
    const int64_t state_count = checked_mul(s.batch, s.hidden);
    take(wide, s.hidden);
    take(hidden, state_count);
    take(cell, state_count);
    take(gates, checked_mul(4, s.hidden));
    take(sums, checked_mul(4, s.hidden));
    take(h, state_count);
    take(x, checked_mul(checked_mul(s.steps, s.batch), s.inputs));
    return at;
  }
};

template <class Q>
int run_direction(const LstmState& s, const tn_kernel_args* a, int64_t direction, const Scratch& m) noexcept {
  const int64_t H = s.hidden, B = s.batch, n = 4 * H;
  const bool backward = s.backward_only || direction == 1;
  const auto start = [&](uint32_t operand, float* to) {
    if (s.has_in(operand))
      std::memcpy(to, in<float>(a, operand) + direction * B * H, static_cast<size_t>(B * H) * sizeof(float));
    else
      std::fill(to, to + B * H, 0.0f);
  };
  start(initial_hidden, m.hidden);
  start(initial_cell, m.cell);
  int32_t x_zero = 0, h_zero = 0;
  const float x_scale = quantise(in<float>(a, input), s.steps * B * s.inputs, m.x, &x_zero);
  float* y = s.has_out(0) ? out<float>(a, 0) : nullptr;
  for (int64_t t = 0; t < s.steps; ++t) {
    const float h_scale = quantise(m.hidden, B * H, m.h, &h_zero);
    for (int64_t b = 0; b < B; ++b) {
      int64_t length = s.steps;
      if (s.has_in(lengths)) {
        length = in<int32_t>(a, lengths)[b];
        if (length < 0 || length > s.steps)
          return index_fail(a, "DynamicQuantizeLSTM: a sequence length", length, s.steps + 1);
      }
      if (t >= length) {
        if (y) std::fill_n(y + ((t * s.directions + direction) * B + b) * H, H, 0.0f);
        continue;
      }
      const int64_t at = backward ? length - 1 - t : t;
      if (s.has_in(biases)) {
        const float* bias = in<float>(a, biases) + direction * 2 * n;
        for (int64_t j = 0; j < n; ++j) m.gates[j] = bias[j] + bias[n + j];
      } else {
        std::fill(m.gates, m.gates + n, 0.0f);
      }
      add_product<Q>(s, a, direction, m.x + (at * B + b) * s.inputs, s.inputs, x_scale, x_zero, input_weights,
                     input_scale, input_zero, m.sums, m.gates);
      add_product<Q>(s, a, direction, m.h + b * H, H, h_scale, h_zero, hidden_weights, hidden_scale,
                     hidden_zero, m.sums, m.gates);
      step(s, a, direction, m.gates, m.hidden + b * H, m.cell + b * H, m.wide);
      if (y)
        std::memcpy(y + ((at * s.directions + direction) * B + b) * H, m.hidden + b * H,
                    static_cast<size_t>(H) * sizeof(float));
    }
  }
  for (uint32_t i = 1; i < 3; ++i)
    if (s.has_out(i))
      std::memcpy(out<float>(a, i) + direction * B * H, i == 1 ? m.hidden : m.cell,
                  static_cast<size_t>(B * H) * sizeof(float));
  return run_ok;
}

int lstm_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<LstmState>(a);
  Scratch m;
  m.lay_out(s, workspace<char>(a, worker));
  const auto r = tile_range(s.directions, s.tiles, tile);
  for (int64_t d = r.begin; d < r.end; ++d)
    if (const int bad = s.with_sign ? run_direction<int8_t>(s, a, d, m) : run_direction<uint8_t>(s, a, d, m))
      return bad;
  return run_ok;
}

void plan_lstm(const PlanView& v, Planned& p) {
  auto s = make_state<LstmState>(v);
  const auto a = v.attrs();
  const auto direction = a.get_string("direction", "forward");
  s->directions = direction == "bidirectional" ? 2 : 1;
  s->backward_only = direction == "reverse";
  s->input_forget = a.get_int("input_forget", 0) != 0;
  s->clip = a.get_float("clip", 0);
  s->steps = s->in[input].dim(0);
  s->batch = s->in[input].dim(1);
  s->inputs = s->in[input].dim(2);
  s->hidden = s->in[hidden_weights].dim(1);
  s->with_sign = s->in[input_weights].dtype == TN_INT8;
  if (s->in[input_weights].dims != Dims{s->directions, s->inputs, 4 * s->hidden} ||
      s->in[hidden_weights].dims != Dims{s->directions, s->hidden, 4 * s->hidden})
    fail(format("DynamicQuantizeLSTM's W %s and R %s do not fit X %s",
                dims_text(s->in[input_weights].dims).c_str(), dims_text(s->in[hidden_weights].dims).c_str(),
                dims_text(s->in[input].dims).c_str()));
  for (uint32_t i : {input_scale, input_zero, hidden_scale, hidden_zero})
    if (s->in[i].count != s->directions && s->in[i].count != s->directions * 4 * s->hidden)
      fail(
          format("DynamicQuantizeLSTM's operand %u is %s; expected one number a direction or a column of its "
                 "weights",
                 i, dims_text(s->in[i].dims).c_str()));
  const int64_t states = s->directions * s->batch * s->hidden;
  const auto expect = [&](uint32_t i, int64_t count) {
    if (s->has_in(i) && s->in[i].count != count)
      fail(format("DynamicQuantizeLSTM's operand %u is %s; expected %lld numbers", i,
                  dims_text(s->in[i].dims).c_str(), static_cast<long long>(count)));
  };
  expect(biases, s->directions * 8 * s->hidden);
  expect(lengths, s->batch);
  expect(initial_hidden, states);
  expect(initial_cell, states);
  expect(peepholes, s->directions * 3 * s->hidden);
  s->activations = recurrent_activations(v, {"Sigmoid", "Tanh", "Tanh"}, s->directions);
  const int64_t directions = s->directions, work = states * s->steps * (s->inputs + s->hidden);
  const auto bytes = static_cast<uint64_t>(Scratch().lay_out(*s, nullptr));
  finish(v, p, lstm_fn, std::move(s), directions, work, bytes);
}

}  // namespace

void add_microsoft_lstm(Plugin& p) {
  define_row(p, rows, "DynamicQuantizeLSTM",
             "LSTM with weights of 8 bits; what they multiply is quantised as its range asks.")
      .infer<infer_lstm>();
  reference_kernel(p, "com.microsoft::DynamicQuantizeLSTM").plan<plan_lstm>();
}

}  // namespace tenon::ops
