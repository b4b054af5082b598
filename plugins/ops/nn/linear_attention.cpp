// LinearAttention: a recurrence over positions whose state is one matrix S for each key head.
//
// At each position S is decayed by exp(g) (gated), the key's present answer is taken from the value and the
// rest scaled by beta (delta), k v^T is added, and each query head of the group reads scale * q^T S. All of
// it runs in float64; results are rounded once.
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::reference;

struct RuleOf {
  bool gated = false, delta = false;
};
RuleOf rule_of(const Attributes& a) {
  const auto name = a.get_string("update_rule", "gated_delta");
  if (name != "linear" && name != "gated" && name != "delta" && name != "gated_delta")
    fail("attribute 'update_rule' is '" + std::string(name) +
         "'; expected linear, gated, delta or gated_delta");
  return {name == "gated" || name == "gated_delta", name == "delta" || name == "gated_delta"};
}
/// Operands decay and beta are there exactly where the rule reads them.
void check_operands(const Attributes& a, bool decay, bool beta) {
  const RuleOf rule = rule_of(a);
  const std::string name(a.get_string("update_rule", "gated_delta"));
  if (rule.gated != decay)
    fail("operand decay is " + std::string(decay ? "given" : "missing") + "; update_rule '" + name +
         (decay ? "' does not read it" : "' needs it"));
  if (rule.delta != beta)
    fail("operand beta is " + std::string(beta ? "given" : "missing") + "; update_rule '" + name +
         (beta ? "' does not read it" : "' needs it"));
}
std::pair<int64_t, int64_t> heads_of(const Attributes& a) {
  const int64_t q = required_int(a, "q_num_heads"), kv = required_int(a, "kv_num_heads");
  if (q < 1 || kv < 1 || q % kv != 0)
    fail(format(
        "q_num_heads is %lld and kv_num_heads %lld; expected a multiple of the second, which is 1 or more",
        static_cast<long long>(q), static_cast<long long>(kv)));
  return {q, kv};
}

void infer_linear_attention(Infer& c) {
  check_operands(c.attrs(), c.has_input(4), c.has_input(5));
  const auto [q_heads, kv_heads] = heads_of(c.attrs());
  const tn_dtype dtype = c.dtype(0), state = c.has_input(3) ? c.dtype(3) : dtype;
  const bool known = ranked(c, 0, "query", 3, 3) & ranked(c, 1, "key", 3, 3) & ranked(c, 2, "value", 3, 3);
  ranked(c, 3, "past_state", 4, 4);
  ranked(c, 4, "decay", 3, 3);
  ranked(c, 5, "beta", 3, 3);
  if (!known) {
    c.set_unranked(0, dtype);
    return c.set_unranked(1, state);
  }
  const auto q = c.dims(0), k = c.dims(1), v = c.dims(2);
  const auto per_head = [&](tn_dim whole, int64_t heads, const char* name) {
    const auto n = c.number(whole);
    require(!n || *n % heads == 0, std::string("operand ") + name + " has " + c.text(whole) +
                                       " channels, which " + text_of(heads) + " heads cannot share");
    return c.floordiv(whole, heads);
  };
  const tn_dim depth = per_head(q[2], q_heads, "query"), key_depth = per_head(k[2], kv_heads, "key"),
               width = per_head(v[2], kv_heads, "value");
  require(!c.differ(depth, key_depth),
          "heads of query have " + c.text(depth) + " numbers, those of key " + c.text(key_depth));
  require(!c.differ(q[1], k[1]) && !c.differ(q[1], v[1]), "query, key and value have " + c.text(q[1]) + ", " +
                                                              c.text(k[1]) + " and " + c.text(v[1]) +
                                                              " positions");
  c.set(0, dtype, std::vector<tn_dim>{q[0], q[1], c.mul(q_heads, width)});
  c.set(1, state, std::vector<tn_dim>{q[0], kv_heads, key_depth, width});
}

struct LinearAttentionState : Base {
  RuleOf rule;
  int64_t length = 0, q_heads = 1, kv_heads = 1, depth = 0, width = 0;
  int64_t decays = 0, betas = 0;  // numbers a position has in those operands
  double scale = 1;
  Load<double> load = nullptr, load_past = nullptr;
  Store<double> store = nullptr, store_state = nullptr;
  int64_t numbers_needed() const { return depth * width + 3 * depth + 2 * width; }
};
/// One head of keys of one batch.
void run_head(const LinearAttentionState& s, const tn_kernel_args* a, int64_t batch, int64_t head,
              double* memory) {
  const int64_t depth = s.depth, width = s.width, group = s.q_heads / s.kv_heads;
  double *state = memory, *k = state + depth * width, *q = k + depth, *decay = q + depth, *v = decay + depth,
         *y = v + width;
  const int64_t state_at = (batch * s.kv_heads + head) * depth * width;
  if (s.load_past)
    s.load_past(a->inputs[3], state_at, 1, depth * width, state);
  else
    std::fill(state, state + depth * width, 0.0);
  for (int64_t t = 0; t < s.length; ++t) {
    const int64_t position = batch * s.length + t;
    s.load(a->inputs[1], (position * s.kv_heads + head) * depth, 1, depth, k);
    s.load(a->inputs[2], (position * s.kv_heads + head) * width, 1, width, v);
    if (s.rule.gated) {
      const bool each = s.decays != s.kv_heads;
      s.load(a->inputs[4], position * s.decays + head * (each ? depth : 1), each ? 1 : 0, depth, decay);
      for (int64_t d = 0; d < depth; ++d) {
        const double by = std::exp(decay[d]);
        for (int64_t m = 0; m < width; ++m) state[d * width + m] *= by;
      }
    }
    if (s.rule.delta) {
      double beta = 0;
      s.load(a->inputs[5], position * s.betas + (s.betas == 1 ? 0 : head), 1, 1, &beta);
      std::fill(y, y + width, 0.0);
      for (int64_t d = 0; d < depth; ++d)
        for (int64_t m = 0; m < width; ++m) y[m] += state[d * width + m] * k[d];
      for (int64_t m = 0; m < width; ++m) v[m] = beta * (v[m] - y[m]);
    }
    for (int64_t d = 0; d < depth; ++d)
      for (int64_t m = 0; m < width; ++m) state[d * width + m] += k[d] * v[m];
    if (!a->outputs[0]) continue;
    for (int64_t h = head * group; h < (head + 1) * group; ++h) {
      s.load(a->inputs[0], (position * s.q_heads + h) * depth, 1, depth, q);
      std::fill(y, y + width, 0.0);
      for (int64_t d = 0; d < depth; ++d)
        for (int64_t m = 0; m < width; ++m) y[m] += q[d] * state[d * width + m];
      for (int64_t m = 0; m < width; ++m) y[m] *= s.scale;
      s.store(y, width, a->outputs[0], (position * s.q_heads + h) * width);
    }
  }
  if (a->outputs[1]) s.store_state(state, depth * width, a->outputs[1], state_at);
}
int run_linear_attention(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<LinearAttentionState>(a);
  const Range range = tile_range(s.in[0].dim(0) * s.kv_heads, s.tiles, tile);
  for (int64_t i = range.begin; i < range.end; ++i)
    run_head(s, a, i / s.kv_heads, i % s.kv_heads, workspace<double>(a, worker));
  return run_ok;
}
void plan_linear_attention(const PlanView& v, Planned& p) {
  auto s = make_state<LinearAttentionState>(v);
  const auto a = v.attrs();
  check_operands(a, s->has_in(4), s->has_in(5));
  s->rule = rule_of(a);
  std::tie(s->q_heads, s->kv_heads) = heads_of(a);
  const Shape &q = s->in[0], &k = s->in[1], &values = s->in[2];
  for (const Shape* x : {&q, &k, &values})
    if (x->rank() != 3)
      fail(format("query, key or value has shape %s; expected [batch, positions, heads * size]",
                  dims_text(x->dims).c_str()));
  const int64_t batch = q.dim(0);
  s->length = q.dim(1);
  s->depth = q.dim(2) / s->q_heads;
  s->width = values.dim(2) / s->kv_heads;
  const auto expect = [&](size_t i, const char* name, const Dims& wanted) {
    if (s->in[i].dims != wanted)
      fail(format("operand %s has shape %s; expected %s", name, dims_text(s->in[i].dims).c_str(),
                  dims_text(wanted).c_str()));
  };
  expect(0, "query", {batch, s->length, s->q_heads * s->depth});
  expect(1, "key", {batch, s->length, s->kv_heads * s->depth});
  expect(2, "value", {batch, s->length, s->kv_heads * s->width});
  if (s->has_in(3)) expect(3, "past_state", {batch, s->kv_heads, s->depth, s->width});
  if (s->has_in(4)) {
    s->decays = s->in[4].rank() == 3 ? s->in[4].dim(2) : 0;
    const bool each = s->decays == s->kv_heads * s->depth;
    expect(4, "decay", {batch, s->length, each ? s->decays : s->kv_heads});
  }
  if (s->has_in(5)) {
    s->betas = s->in[5].rank() == 3 && s->in[5].dim(2) == 1 ? 1 : s->kv_heads;
    expect(5, "beta", {batch, s->length, s->betas});
  }
  const double scale = a.get_float("scale", 0);
  s->scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(std::max<int64_t>(s->depth, 1)));
  s->load = loader<double>(q.dtype);
  if (s->has_in(3)) s->load_past = loader<double>(s->in[3].dtype);
  if (s->has_out(0)) s->store = storer<double>(s->out[0].dtype);
  if (s->has_out(1)) s->store_state = storer<double>(s->out[1].dtype);
  const int64_t units = batch * s->kv_heads;
  const int64_t work = checked_mul(checked_mul(units, s->length), checked_mul(4 * s->depth, s->width));
  const uint64_t bytes = static_cast<uint64_t>(s->numbers_needed()) * sizeof(double);
  finish(v, p, run_linear_attention, std::move(s), units, work, bytes);
}

}  // namespace

void add_linear_attention(Plugin& p) {
  define(p, "LinearAttention").infer<infer_linear_attention>();
  reference_kernel(p, "LinearAttention").plan<plan_linear_attention>();
}

}  // namespace tenon::ops
