// Adagrad, Adam and Momentum of ai.onnx.preview.training: one step of an optimiser for n tensors at once.
//
// Operands are the learning rate R, the number of updates T, then n tensors each of X (what is trained), its
// gradient G, and the states; results are the new X and the new states, each group in the order of the
// operands. Everything is computed in float64 and rounded once.
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::reference;

enum class Rule { adagrad, adam, momentum, nesterov };

/// Tensors of operands for each one trained: X, G and the states.
uint32_t group_size(std::string_view op) { return op.find("Adam") != std::string_view::npos ? 4 : 3; }

void infer_step(Infer& c) {
  const uint32_t groups = group_size(c.op_name()), operands = c.input_count() - std::min(c.input_count(), 2u);
  require(operands > 0 && operands % groups == 0,
          format("the node has %u operands behind R and T; expected a multiple of %u", operands, groups));
  const uint32_t n = operands / groups;
  require(c.output_count() == n * (groups - 1),
          format("the node has %u results; expected %u", c.output_count(), n * (groups - 1)));
  for (uint32_t k = 0; k < n; ++k) {
    for (uint32_t g = 1; g < groups; ++g) {
      const tn_type x = c.type(2 + k), other = c.type(2 + g * n + k);
      if (x.kind != TN_KIND_TENSOR || other.kind != TN_KIND_TENSOR) continue;
      require(x.dtype == TN_DTYPE_NONE || other.dtype == TN_DTYPE_NONE || x.dtype == other.dtype,
              format("operands %u and %u are %s and %s; expected one type", 2 + k, 2 + g * n + k,
                     dtype_name(x.dtype), dtype_name(other.dtype)));
      if (x.rank < 0 || other.rank < 0) continue;
      const auto a = c.dims(2 + k), b = c.dims(2 + g * n + k);
      bool same = a.size() == b.size();
      for (size_t i = 0; same && i < a.size(); ++i) same = !c.differ(a[i], b[i]);
      require(same, format("operands %u and %u have shapes ", 2 + k, 2 + g * n + k) + c.text(a) + " and " +
                        c.text(b) + "; expected one shape");
    }
    for (uint32_t g = 0; g + 1 < groups; ++g) same_type(c, g * n + k, 2 + (g ? g + 1 : 0) * n + k);
  }
}

struct StepState : Base {
  Rule rule = Rule::adagrad;
  uint32_t count = 0, groups = 3;
  double decay = 0, epsilon = 0, alpha = 0, beta = 0, norm = 0, norm_after = 0;
};
/// What depends on R and T only.
struct Rates {
  double rate, gradient;
};
Rates rates(const StepState& s, double r, int64_t t) noexcept {
  const auto updates = static_cast<double>(t);
  switch (s.rule) {
    case Rule::adagrad:
      return {r / (1 + updates * s.decay), 1};
    case Rule::adam:
      return {t > 0 ? r * std::sqrt(1 - std::pow(s.beta, updates)) / (1 - std::pow(s.alpha, updates)) : r, 1};
    default:
      return {r, t > 0 ? s.beta : 1};
  }
}
/// One element: x and the states are replaced.
void step(const StepState& s, const Rates& by, double g, double& x, double& v, double& h) noexcept {
  g += s.norm * x;
  switch (s.rule) {
    case Rule::adagrad:
      v += g * g;
      x -= by.rate * g / (std::sqrt(v) + s.epsilon);
      break;
    case Rule::adam:
      v = s.alpha * v + (1 - s.alpha) * g;
      h = s.beta * h + (1 - s.beta) * g * g;
      x = (1 - s.norm_after) * (x - by.rate * (v / (std::sqrt(h) + s.epsilon)));
      break;
    case Rule::momentum:
    case Rule::nesterov:
      v = s.alpha * v + by.gradient * g;
      x -= by.rate * (s.rule == Rule::momentum ? v : g + s.alpha * v);
      break;
  }
}
int run_step(const tn_kernel_args* a, uint32_t tile, uint32_t) noexcept {
  const auto& s = state<StepState>(a);
  const Rates by = rates(s, real_at(a->inputs[0], s.in[0].dtype, 0), integer_at(a->inputs[1], TN_INT64, 0));
  constexpr int64_t part = block / 4;
  double x[part], g[part], v[part], h[part];
  for (uint32_t k = 0; k < s.count; ++k) {
    const auto operand = [&](uint32_t group) { return 2 + group * s.count + k; };
    const auto result = [&](uint32_t group) { return group * s.count + k; };
    const tn_dtype dtype = s.in[operand(0)].dtype;
    const auto load = [&](uint32_t group, int64_t at, int64_t n, double* to) {
      visit_number(dtype, [&](auto type) {
        const auto* from = in<decltype(type)>(a, operand(group)) + at;
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<double>(from[i]);
      });
    };
    const auto store = [&](uint32_t group, int64_t at, int64_t n, const double* from) {
      if (!a->outputs[result(group)]) return;
      if (dtype == TN_FLOAT32)
        for (int64_t i = 0; i < n; ++i) out<float>(a, result(group))[at + i] = static_cast<float>(from[i]);
      else
        std::memcpy(out<double>(a, result(group)) + at, from, static_cast<size_t>(n) * sizeof(double));
    };
    const Range range = tile_range(s.in[operand(0)].count, s.tiles, tile, 16);
    for (int64_t at = range.begin; at < range.end; at += part) {
      const int64_t n = std::min(part, range.end - at);
      load(0, at, n, x);
      load(1, at, n, g);
      load(2, at, n, v);
      if (s.groups == 4)
        load(3, at, n, h);
      else
        std::fill(h, h + n, 0.0);
      for (int64_t i = 0; i < n; ++i) step(s, by, g[i], x[i], v[i], h[i]);
      store(0, at, n, x);
      store(1, at, n, v);
      if (s.groups == 4) store(2, at, n, h);
    }
  }
  return run_ok;
}
void plan_step(const PlanView& view, Planned& p) {
  auto s = make_state<StepState>(view);
  const auto a = view.attrs();
  const auto op = view.op_name();
  s->groups = group_size(op);
  const auto operands = static_cast<uint32_t>(s->in.size());
  if (operands < 2 + s->groups || (operands - 2) % s->groups != 0)
    fail(format("the node has %u operands; expected R, T and a multiple of %u", operands, s->groups));
  s->count = (operands - 2) / s->groups;
  for (uint32_t i = 0; i < 2; ++i)
    if (s->in[i].count != 1)
      fail(format("operand %s has shape %s; expected one element", i ? "T" : "R",
                  dims_text(s->in[i].dims).c_str()));
  int64_t most = 0, work = 0;
  for (uint32_t i = 2; i < operands; ++i) {
    const Shape &x = s->in[2 + (i - 2) % s->count], &other = s->in[i];
    if (x.dims != other.dims || x.dtype != other.dtype)
      fail(format("operand %u is %s%s; expected %s%s as the tensor that is trained", i,
                  dtype_name(other.dtype), dims_text(other.dims).c_str(), dtype_name(x.dtype),
                  dims_text(x.dims).c_str()));
    most = std::max(most, other.count);
    work += other.count;
  }
  const bool adam = op.find("Adam") != std::string_view::npos;
  if (op.find("Momentum") != std::string_view::npos) {
    const auto mode = a.get_string("mode", "");
    if (mode != "standard" && mode != "nesterov")
      fail("attribute 'mode' is '" + std::string(mode) + "'; expected standard or nesterov");
    s->rule = mode == "standard" ? Rule::momentum : Rule::nesterov;
  } else {
    s->rule = adam ? Rule::adam : Rule::adagrad;
  }
  s->decay = a.get_float("decay_factor", 0);
  s->epsilon = a.get_float("epsilon", static_cast<double>(1e-6f));
  s->alpha = a.get_float("alpha", static_cast<double>(0.9f));
  s->beta = a.get_float("beta", static_cast<double>(0.999f));
  s->norm = a.get_float("norm_coefficient", 0);
  s->norm_after = a.get_float("norm_coefficient_post", 0);
  finish(view, p, run_step, std::move(s), most, work);
}

}  // namespace

void add_optimizers(Plugin& p) {
  for (const char* name : {"Adagrad", "Adam", "Momentum"}) {
    define(p, name, "ai.onnx.preview.training").infer<infer_step>();
    reference_kernel(p, ("ai.onnx.preview.training::" + std::string(name)).c_str()).plan<plan_step>();
  }
}

}  // namespace tenon::ops
