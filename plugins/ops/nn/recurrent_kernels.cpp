// RNN, GRU, LSTM: one tile is one direction of one batch item, step after step.
#include "families.hpp"
#include "math/activation_kernels.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

enum class Cell { rnn, gru, lstm };
struct RecurrentState : Base {
  Cell cell = Cell::rnn;
  int64_t gates = 1, steps = 0, batch = 0, inputs = 0, hidden = 0, directions = 1;
  bool backward_only = false, batch_first = false, linear_before_reset = false, input_forget = false;
  double clip = 0;                      // 0: none
  std::vector<Activation> activations;  // of each direction in turn
  std::vector<Load<double>> load;       // of each operand
  Store<double> store = nullptr;
  int64_t row() const noexcept { return std::max(inputs, hidden); }
};

/// gate += matrix[rows first..first+hidden][width] * x
void accumulate(const RecurrentState& s, const tn_kernel_args* a, size_t operand, int64_t first_row,
                int64_t width, const double* x, double* gate, double* line) noexcept {
  for (int64_t i = 0; i < s.hidden; ++i) {
    s.load[operand](a->inputs[operand], (first_row + i) * width, 1, width, line);
    double sum = 0;
    for (int64_t k = 0; k < width; ++k) sum += line[k] * x[k];
    gate[i] += sum;
  }
}

int recurrent_fn(const tn_kernel_args* a, uint32_t tile, uint32_t worker) {
  const auto& s = state<RecurrentState>(a);
  const int64_t H = s.hidden, G = s.gates;
  const auto r = tile_range(s.directions * s.batch, s.tiles, tile);
  double* x = workspace<double>(a, worker);
  double* line = x + s.row();
  double* gate = line + std::max(s.row(), 2 * G * H);
  double* h = gate + (G + 1) * H;
  double* c = h + H;
  double* bias = c + H;
  double* peephole = bias + 2 * G * H;
  for (int64_t unit = r.begin; unit < r.end; ++unit) {
    const int64_t d = unit / s.batch, b = unit % s.batch;
    const int64_t state_at = (s.batch_first ? b * s.directions + d : d * s.batch + b) * H;
    const Activation* f = s.activations.data() + d * (s.cell == Cell::rnn ? 1 : s.cell == Cell::gru ? 2 : 3);
    std::fill(bias, bias + 2 * G * H, 0.0);
    if (s.has_in(3)) s.load[3](a->inputs[3], d * 2 * G * H, 1, 2 * G * H, bias);
    std::fill(h, h + H, 0.0);
    if (s.has_in(5)) s.load[5](a->inputs[5], state_at, 1, H, h);
    std::fill(c, c + H, 0.0);
    if (s.cell == Cell::lstm && s.has_in(6)) s.load[6](a->inputs[6], state_at, 1, H, c);
    std::fill(peephole, peephole + 3 * H, 0.0);
    if (s.cell == Cell::lstm && s.has_in(7)) s.load[7](a->inputs[7], d * 3 * H, 1, 3 * H, peephole);
    int64_t length = s.steps;
    if (s.has_in(4)) {
      length = integer_at(a->inputs[4], s.in[4].dtype, b);
      if (length < 0 || length > s.steps)
        return index_fail(a, "a recurrent cell's sequence length", length, s.steps + 1);
    }
    const bool backward = s.backward_only || d == 1;
    const auto y_at = [&](int64_t t) {
      return (s.batch_first ? (b * s.steps + t) * s.directions + d : (t * s.directions + d) * s.batch + b) *
             H;
    };
    const auto limit = [&](double* v, int64_t n) {
      if (s.clip > 0)
        for (int64_t i = 0; i < n; ++i) v[i] = std::min(std::max(v[i], -s.clip), s.clip);
    };
    for (int64_t step = 0; step < length; ++step) {
      const int64_t t = backward ? length - 1 - step : step;
      s.load[0](a->inputs[0], (s.batch_first ? b * s.steps + t : t * s.batch + b) * s.inputs, 1, s.inputs, x);
      for (int64_t g = 0; g < G; ++g) {
        double* v = gate + g * H;
        std::memcpy(v, bias + g * H, static_cast<size_t>(H) * sizeof(double));
        accumulate(s, a, 1, (d * G + g) * H, s.inputs, x, v, line);
      }
      const double* recurrent_bias = bias + G * H;
      const auto recur = [&](int64_t g, const double* from, double* to) {
        for (int64_t i = 0; i < H; ++i) to[i] += recurrent_bias[g * H + i];
        accumulate(s, a, 2, (d * G + g) * H, H, from, to, line);
      };
      if (s.cell == Cell::rnn) {
        recur(0, h, gate);
        limit(gate, H);
        f[0](gate, H);
        std::memcpy(h, gate, static_cast<size_t>(H) * sizeof(double));
      } else if (s.cell == Cell::gru) {  // gates z r h
        recur(0, h, gate);
        recur(1, h, gate + H);
        limit(gate, 2 * H);
        f[0](gate, 2 * H);
        double *reset = gate + H, *fresh = gate + 2 * H, *other = gate + 3 * H;
        if (s.linear_before_reset) {
          std::fill(other, other + H, 0.0);
          recur(2, h, other);
          for (int64_t i = 0; i < H; ++i) fresh[i] += reset[i] * other[i];
        } else {
          for (int64_t i = 0; i < H; ++i) other[i] = reset[i] * h[i];
          recur(2, other, fresh);
        }
        limit(fresh, H);
        f[1](fresh, H);
        for (int64_t i = 0; i < H; ++i) h[i] = (1 - gate[i]) * fresh[i] + gate[i] * h[i];
      } else {  // gates i o f c, peepholes i o f
        for (int64_t g = 0; g < 4; ++g) recur(g, h, gate + g * H);
        double *in_gate = gate, *out_gate = gate + H, *forget = gate + 2 * H, *fresh = gate + 3 * H;
        for (int64_t i = 0; i < H; ++i) {
          in_gate[i] += peephole[i] * c[i];
          forget[i] += peephole[2 * H + i] * c[i];
        }
        limit(in_gate, H);
        limit(forget, 2 * H);
        f[0](in_gate, H);
        f[0](forget, H);
        f[1](fresh, H);
        if (s.input_forget)
          for (int64_t i = 0; i < H; ++i) forget[i] = 1 - in_gate[i];
        for (int64_t i = 0; i < H; ++i) {
          c[i] = forget[i] * c[i] + in_gate[i] * fresh[i];
          out_gate[i] += peephole[H + i] * c[i];
        }
        limit(out_gate, H);
        f[0](out_gate, H);
        std::memcpy(fresh, c, static_cast<size_t>(H) * sizeof(double));
        f[2](fresh, H);
        for (int64_t i = 0; i < H; ++i) h[i] = out_gate[i] * fresh[i];
      }
      if (s.has_out(0)) s.store(h, H, a->outputs[0], y_at(t));
    }
    std::fill(gate, gate + H, 0.0);
    for (int64_t t = length; s.has_out(0) && t < s.steps; ++t) s.store(gate, H, a->outputs[0], y_at(t));
    if (s.has_out(1)) s.store(h, H, a->outputs[1], state_at);
    if (s.cell == Cell::lstm && s.has_out(2)) s.store(c, H, a->outputs[2], state_at);
  }
  return run_ok;
}

void plan_recurrent(const PlanView& v, Planned& p) {
  auto s = make_state<RecurrentState>(v);
  const std::string op(v.op_name());
  const auto attrs = v.attrs();
  s->cell = op == "LSTM" ? Cell::lstm : op == "GRU" ? Cell::gru : Cell::rnn;
  s->gates = s->cell == Cell::lstm ? 4 : s->cell == Cell::gru ? 3 : 1;
  const auto direction = attrs.get_string("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    fail(op + "'s direction is '" + std::string(direction) + "'; expected forward, reverse or bidirectional");
  s->directions = direction == "bidirectional" ? 2 : 1;
  s->backward_only = direction == "reverse";
  s->batch_first = attrs.get_int("layout", 0) != 0;
  s->linear_before_reset = attrs.get_int("linear_before_reset", 0) != 0;
  s->input_forget = attrs.get_int("input_forget", 0) != 0;
  s->clip = attrs.get_float("clip", 0);
  const auto &x = s->in[0].dims, &w = s->in[1].dims, &rec = s->in[2].dims;
  if (x.size() != 3 || w.size() != 3 || rec.size() != 3) fail(op + " needs X, W and R of rank 3");
  s->steps = x[s->batch_first ? 1 : 0];
  s->batch = x[s->batch_first ? 0 : 1];
  s->inputs = x[2];
  s->hidden = rec[2];
  const Dims want_w = {s->directions, s->gates * s->hidden, s->inputs},
             want_r = {s->directions, s->gates * s->hidden, s->hidden};
  if (w != want_w || rec != want_r)
    fail(format("%s's W %s and R %s do not fit; expected %s and %s", op.c_str(), dims_text(w).c_str(),
                dims_text(rec).c_str(), dims_text(want_w).c_str(), dims_text(want_r).c_str()));
  const int64_t state_count = s->directions * s->batch * s->hidden;
  if ((s->has_in(3) && s->in[3].count != s->directions * 2 * s->gates * s->hidden) ||
      (s->has_in(4) && s->in[4].count != s->batch) || (s->has_in(5) && s->in[5].count != state_count) ||
      (s->cell == Cell::lstm && ((s->has_in(6) && s->in[6].count != state_count) ||
                                 (s->has_in(7) && s->in[7].count != s->directions * 3 * s->hidden))))
    fail(op + "'s bias, lengths, initial states or peepholes do not fit its weights");
  const std::vector<const char*> standard =
      s->cell == Cell::lstm  ? std::vector<const char*>{"Sigmoid", "Tanh", "Tanh"}
      : s->cell == Cell::gru ? std::vector<const char*>{"Sigmoid", "Tanh"}
                             : std::vector<const char*>{"Tanh"};
  s->activations = recurrent_activations(v, standard, s->directions);
  for (size_t i = 0; i < s->in.size(); ++i)
    s->load.push_back(s->in[i].present ? loader<double>(s->in[i].dtype) : nullptr);
  s->store = storer<double>(s->in[0].dtype);
  const int64_t H = s->hidden, G = s->gates, row = s->row();
  const auto doubles = row + std::max(row, 2 * G * H) + (G + 1) * H + 2 * H + 2 * G * H + 3 * H;
  const int64_t units = s->directions * s->batch, work = units * s->steps * G * H * (s->inputs + H);
  finish(v, p, recurrent_fn, std::move(s), units, work,
         static_cast<uint64_t>(checked_mul(doubles, sizeof(double))));
}

}  // namespace

std::vector<Activation> recurrent_activations(const PlanView& v, const std::vector<const char*>& standard,
                                              int64_t directions) {
  const std::string op(v.op_name());
  const auto attrs = v.attrs();
  const auto names = attrs.get_strings("activations");
  const auto alphas = attrs.get_floats("activation_alpha"), betas = attrs.get_floats("activation_beta");
  const size_t count = standard.size() * static_cast<size_t>(directions);
  if (!names.empty() && names.size() != count)
    fail(format("%s's activations are %zu; expected %zu", op.c_str(), names.size(), count));
  std::vector<Activation> made;
  size_t next_alpha = 0, next_beta = 0;  // the lists hold numbers for the functions that take one
  for (size_t i = 0; i < count; ++i) {
    const std::string name = names.empty() ? standard[i % standard.size()] : text(names[i]);
    const auto* f = find_real_function(name);
    if (!f) fail(op + "'s activation '" + name + "' is not known");
    const bool two = name == "Affine" || name == "ScaledTanh" || name == "HardSigmoid",
               one = two || name == "LeakyRelu" || name == "ThresholdedRelu" || name == "Elu";
    Activation act{f->apply, f->alpha, f->beta};
    if (one && next_alpha < alphas.size()) act.alpha = alphas[next_alpha++];
    if (two && next_beta < betas.size()) act.beta = betas[next_beta++];
    made.push_back(act);
  }
  return made;
}

void provide_recurrent(Plugin& p) {
  for (const char* op : {"RNN", "GRU", "LSTM"}) reference_kernel(p, op).plan<plan_recurrent>();
}

}  // namespace tenon::reference
