// NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss: scores [N, C, d...], a class for each of the N d...
// samples.
//
// A sample's loss is -weight[class] * log-probability[class]; 0 where the class is ignore_index. The mean is
// weighted: sum of losses / sum of the weights of the samples that are not ignored, 0 / 0 where there are
// none. Sums run in float64 over the samples in order.
#include "families.hpp"
#include "support/define.hpp"
#include "support/run_errors.hpp"

namespace tenon::reference {
namespace {

enum class Reduction { none, sum, mean };

struct LossState : Base {
  bool softmax = false, ignores = false;
  int64_t ignore_index = 0, classes = 0, inner = 1;
  Reduction reduction = Reduction::mean;
  Load<double> load = nullptr, load_weight = nullptr;
  Store<double> store = nullptr;
  int64_t samples() const noexcept { return in[1].count; }
};

/// log of the sum of exponentials of a sample's scores.
double log_sum(const LossState& s, const void* x, int64_t first) noexcept {
  double piece[block], most = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int64_t c = 0; c < s.classes; c += block) {
      const int64_t n = std::min(block, s.classes - c);
      s.load(x, first + c * s.inner, s.inner, n, piece);
      for (int64_t k = 0; k < n; ++k) {
        if (pass == 0)
          most = piece[k] > most || piece[k] != piece[k] ? piece[k] : most;
        else
          sum += std::exp(piece[k] - most);
      }
    }
  return most + std::log(sum);
}

int loss_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<LossState>(a);
  const auto r = tile_range(s.samples(), s.tiles, tile);
  double total = 0, total_weight = 0;
  for (int64_t sample = r.begin; sample < r.end; ++sample) {
    const int64_t first = sample / s.inner * s.classes * s.inner + sample % s.inner;
    const double shift = s.softmax ? log_sum(s, a->inputs[0], first) : 0;
    if (s.has_out(1))
      for (int64_t c = 0; c < s.classes; ++c) {
        double x;
        s.load(a->inputs[0], first + c * s.inner, 1, 1, &x);
        x -= shift;
        s.store(&x, 1, a->outputs[1], first + c * s.inner);
      }
    const int64_t label = integer_at(a->inputs[1], s.in[1].dtype, sample);
    double loss = 0, weight = 0;
    if (!(s.ignores && label == s.ignore_index)) {
      if (label < 0 || label >= s.classes)
        return value_fail(a,
                          s.softmax ? "SoftmaxCrossEntropyLoss: operand labels"
                                    : "NegativeLogLikelihoodLoss: operand target",
                          label, 0, s.classes - 1);
      weight = 1;
      if (s.load_weight) s.load_weight(a->inputs[2], label, 1, 1, &weight);
      s.load(a->inputs[0], first + label * s.inner, 1, 1, &loss);
      loss = -weight * (loss - shift);
    }
    if (s.reduction == Reduction::none) s.store(&loss, 1, a->outputs[0], sample);
    total += loss;
    total_weight += weight;
  }
  if (s.reduction != Reduction::none) {
    const double y = s.reduction == Reduction::mean ? total / total_weight : total;
    s.store(&y, 1, a->outputs[0], 0);
  }
  return run_ok;
}

void plan_loss(const PlanView& v, Planned& p) {
  auto s = make_state<LossState>(v);
  const auto& x = s->in[0].dims;
  const std::string op(v.op_name());
  s->softmax = op == "SoftmaxCrossEntropyLoss";
  s->ignores = v.attrs().has("ignore_index");
  s->ignore_index = v.attrs().get_int("ignore_index", 0);
  const auto reduction = v.attrs().get_string("reduction", "mean");
  s->reduction = reduction == "none"  ? Reduction::none
                 : reduction == "sum" ? Reduction::sum
                                      : Reduction::mean;
  Dims samples = x;
  if (x.size() >= 2) samples.erase(samples.begin() + 1);
  if (x.size() < 2 || s->in[1].dims != samples)
    fail(op + ": classes of shape " + dims_text(s->in[1].dims) + " do not fit scores of shape " +
         dims_text(x));
  s->classes = x[1];
  s->inner = product(x, 2, x.size());
  if (s->has_in(2)) {
    if (s->in[2].dims != Dims{s->classes})
      fail(op + ": weights have shape " + dims_text(s->in[2].dims) +
           "; expected one number for each class of " + dims_text(x));
    s->load_weight = loader<double>(s->in[2].dtype);
  }
  if (s->out[0].count != (s->reduction == Reduction::none ? s->samples() : 1))
    fail(op + "'s result was planned with another shape");
  s->load = loader<double>(s->in[0].dtype);
  s->store = storer<double>(s->out[0].dtype);
  const int64_t n = s->samples(), work = n * (s->softmax ? s->classes * 16 : 8);
  const bool one = s->reduction != Reduction::none;
  finish(v, p, loss_fn, std::move(s), one ? 1 : n, work);
}

}  // namespace
}  // namespace tenon::reference

namespace tenon::ops {
namespace {

void infer_loss(Infer& c) {
  const tn_dtype dtype = c.dtype(0);
  const bool softmax = c.op_name() == "SoftmaxCrossEntropyLoss";
  const std::string scores = softmax ? "scores" : "input", labels = softmax ? "labels" : "target",
                    weights = softmax ? "weights" : "weight";
  const auto reduction = c.attrs().get_string("reduction", "mean");
  require(reduction == "none" || reduction == "sum" || reduction == "mean",
          "attribute 'reduction' is '" + std::string(reduction) + "'; expected none, sum or mean");
  std::optional<std::vector<tn_dim>> samples;
  if (ranked(c, 1, labels.c_str(), 1)) samples = c.dims(1);
  if (ranked(c, 0, scores.c_str(), 2)) {
    const auto x = c.dims(0);
    bool fits = !samples || samples->size() + 1 == x.size();
    for (size_t i = 0; samples && fits && i < samples->size(); ++i)
      fits = !c.differ((*samples)[i], x[i == 0 ? 0 : i + 1]);
    require(fits, "operand " + labels + " has shape " + c.text(samples.value_or(x)) + "; operand " + scores +
                      ", of shape " + c.text(x) + ", wants its dimensions without the second");
    if (c.has_input(2) && ranked(c, 2, weights.c_str(), 1, 1))
      require(!c.differ(c.dims(2)[0], x[1]), "operand " + weights + " has shape " + c.text(c.dims(2)) +
                                                 "; expected one number for each of the " + c.text(x[1]) +
                                                 " classes");
    samples = x;
    samples->erase(samples->begin() + 1);
  }
  same_shape(c, 1, 0, dtype);  // log_prob
  if (reduction != "none") return c.set(0, dtype, Span<const tn_dim>());
  if (samples)
    c.set(0, dtype, *samples);
  else
    c.set_unranked(0, dtype);
}

}  // namespace

void add_loss(Plugin& p) {
  for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    define(p, op).infer<infer_loss>();
    reference::reference_kernel(p, op).plan<reference::plan_loss>();
  }
}

}  // namespace tenon::ops
