// CausalConvWithState: each channel of past_state and input, end to end, is convolved with a filter of its
// own; the last positions are the state that the next call continues from. The activation sees the sum
// rounded to the element type, as it would behind a Conv.
#include "support/define.hpp"
#include "support/kernel.hpp"

namespace tenon::ops {
namespace {

using namespace tenon::reference;

bool activates(const Attributes& a) {
  const auto name = a.get_string("activation", "none");
  if (name != "none" && name != "silu" && name != "swish")
    fail("attribute 'activation' is '" + std::string(name) + "'; expected none, silu or swish");
  return name != "none";
}
void infer_causal_conv(Infer& c) {
  activates(c.attrs());
  const tn_dtype dtype = c.dtype(0);
  same_type(c, 0, 0);
  const bool known = ranked(c, 0, "input", 3, 3) & ranked(c, 1, "weight", 3, 3);
  ranked(c, 2, "bias", 1, 1);
  if (!known) return c.set_unranked(1, dtype);
  const auto x = c.dims(0), w = c.dims(1);
  require(!c.differ(x[1], w[0]) && !c.differ(w[1], 1), "operand weight has shape " + c.text(w) +
                                                           "; expected [" + c.text(x[1]) +
                                                           ",1,k] for input " + c.text(x));
  const auto taps = c.number(w[2]);
  require(!taps || *taps >= 1, "operand weight has a filter of no taps");
  const tn_dim kept = c.sub(w[2], 1);
  if (ranked(c, 3, "past_state", 3, 3)) {
    const auto past = c.dims(3);
    require(!c.differ(past[0], x[0]) && !c.differ(past[1], x[1]) && !c.differ(past[2], kept),
            "operand past_state has shape " + c.text(past) + "; expected [" + c.text(x[0]) + "," +
                c.text(x[1]) + "," + c.text(kept) + "]");
  }
  c.set(1, dtype, std::vector<tn_dim>{x[0], x[1], kept});
}

struct CausalConvState : Base {
  int64_t channels = 0, length = 0, taps = 1;
  bool activate = false;
  Load<double> load = nullptr;
  Store<double> store = nullptr;
};
int run_causal_conv(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& s = state<CausalConvState>(a);
  const int64_t kept = s.taps - 1;
  double *w = workspace<double>(a, worker), *x = w + s.taps, *y = x + kept + s.length;
  const Range range = tile_range(s.in[0].dim(0) * s.channels, s.tiles, tile);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const int64_t channel = row % s.channels;
    s.load(a->inputs[1], channel * s.taps, 1, s.taps, w);
    if (s.has_in(3))
      s.load(a->inputs[3], row * kept, 1, kept, x);
    else
      std::fill(x, x + kept, 0.0);
    s.load(a->inputs[0], row * s.length, 1, s.length, x + kept);
    double bias = 0;
    if (s.has_in(2)) s.load(a->inputs[2], channel, 1, 1, &bias);
    if (a->outputs[0]) {
      for (int64_t i = 0; i < s.length; ++i) {
        double sum = bias;
        for (int64_t k = 0; k < s.taps; ++k) sum += x[i + k] * w[k];
        y[i] = sum;
      }
      s.store(y, s.length, a->outputs[0], row * s.length);
      if (s.activate) {
        s.load(a->outputs[0], row * s.length, 1, s.length, y);
        for (int64_t i = 0; i < s.length; ++i) y[i] /= 1 + std::exp(-y[i]);
        s.store(y, s.length, a->outputs[0], row * s.length);
      }
    }
    if (a->outputs[1]) s.store(x + s.length, kept, a->outputs[1], row * kept);
  }
  return run_ok;
}
void plan_causal_conv(const PlanView& v, Planned& p) {
  auto s = make_state<CausalConvState>(v);
  s->activate = activates(v.attrs());
  const Shape &x = s->in[0], &w = s->in[1];
  if (x.rank() != 3 || w.rank() != 3 || w.dim(0) != x.dim(1) || w.dim(1) != 1 || w.dim(2) < 1)
    fail(format("input has shape %s and weight %s; expected [batch, channels, length] and [channels, 1, k]",
                dims_text(x.dims).c_str(), dims_text(w.dims).c_str()));
  s->channels = x.dim(1);
  s->length = x.dim(2);
  s->taps = w.dim(2);
  if (s->has_in(2) && s->in[2].dims != Dims{s->channels})
    fail(format("operand bias has shape %s; expected [%lld]", dims_text(s->in[2].dims).c_str(),
                static_cast<long long>(s->channels)));
  const Dims past{x.dim(0), s->channels, s->taps - 1};
  if (s->has_in(3) && s->in[3].dims != past)
    fail(format("operand past_state has shape %s; expected %s", dims_text(s->in[3].dims).c_str(),
                dims_text(past).c_str()));
  s->load = loader<double>(x.dtype);
  s->store = storer<double>(x.dtype);
  const int64_t rows = x.dim(0) * s->channels, work = checked_mul(x.count, s->taps);
  const uint64_t bytes = static_cast<uint64_t>(2 * s->taps + 2 * s->length) * sizeof(double);
  finish(v, p, run_causal_conv, std::move(s), rows, work, bytes);
}

}  // namespace

void add_causal_conv(Plugin& p) {
  define(p, "CausalConvWithState").infer<infer_causal_conv>();
  reference_kernel(p, "CausalConvWithState").plan<plan_causal_conv>();
}

}  // namespace tenon::ops
