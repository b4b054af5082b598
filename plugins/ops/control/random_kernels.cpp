// RandomNormal, RandomUniform, their Like forms, Bernoulli, Multinomial, and Dropout where it is more than a
// view. With a `seed` attribute the numbers are the same in every run; without one the run gives a fresh
// seed.
#include "control/random_kernels.hpp"

#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct RandomState {
  bool seeded = false, normal = false;
  uint64_t seed = 0;
  double a = 0, b = 1;  // mean and deviation, or low and high
  tn_dtype dtype = TN_FLOAT32;
  bool like = false;
  Dims shape;
};
uint64_t seed_of(const PlanView& v, bool* seeded) {
  *seeded = v.attrs().has("seed");
  uint64_t bits = 0;
  if (const auto* attribute = v.attrs().find("seed")) {
    const double value =
        attribute->kind == TN_ATTR_INT ? static_cast<double>(attribute->u.i) : v.attrs().get_float("seed", 0);
    std::memcpy(&bits, &value, sizeof bits);
  }
  return bits;
}
void draw(Run& run, const tn_kernel_args* a) {
  const auto& s = state<RandomState>(a);
  Dims dims = s.shape;
  if (s.like) dims = run.input(0).dims().copy();
  void* y = run.output(0, s.dtype, dims);
  const uint64_t seed = s.seeded ? s.seed : run.api->random_seed(run.run);
  const auto store = storer<double>(s.dtype);
  const int64_t n = element_count(dims);
  double x[block];
  for (int64_t i = 0; i < n; i += block) {
    const int64_t k = std::min(block, n - i);
    for (int64_t q = 0; q < k; ++q) {
      const auto at = static_cast<uint64_t>(i + q);
      x[q] = s.normal ? s.a + s.b * normal_at(seed, at) : s.a + (s.b - s.a) * uniform_at(seed, at);
    }
    store(x, k, y, i);
  }
}
void plan_random(const PlanView& v, Planned& p) {
  auto s = std::make_unique<RandomState>();
  const auto op = v.op_name();
  s->normal = op.find("Normal") != std::string_view::npos;
  s->like = op.find("Like") != std::string_view::npos;
  s->seed = seed_of(v, &s->seeded);
  s->a = s->normal ? v.attrs().get_float("mean", 0) : v.attrs().get_float("low", 0);
  s->b = s->normal ? v.attrs().get_float("scale", 1) : v.attrs().get_float("high", 1);
  s->shape = v.attrs().get_ints("shape").copy();
  s->dtype = v.output(0).dtype();
  (void)storer<double>(s->dtype);
  p.set(dynamic_kernel<draw>, std::move(s));
}

void bernoulli(Run& run, const tn_kernel_args* a) {
  const auto& s = state<RandomState>(a);
  const auto x = run.input(0);
  void* y = run.output(0, s.dtype, x.dims());
  const uint64_t seed = s.seeded ? s.seed : run.api->random_seed(run.run);
  const auto store = storer<double>(s.dtype);
  const auto load = loader<double>(x.dtype());
  for (int64_t i = 0, n = x.count(); i < n; ++i) {
    double chance;
    load(x.raw().data, i, 1, 1, &chance);
    const double drawn = uniform_at(seed, static_cast<uint64_t>(i)) < chance ? 1 : 0;
    store(&drawn, 1, y, i);
  }
}
void plan_bernoulli(const PlanView& v, Planned& p) {
  auto s = std::make_unique<RandomState>();
  s->seed = seed_of(v, &s->seeded);
  s->dtype = v.output(0).dtype();
  (void)storer<double>(s->dtype);
  (void)loader<double>(v.input(0).dtype());
  p.set(dynamic_kernel<bernoulli>, std::move(s));
}

// Multinomial: classes drawn with probabilities that are exp(x) / sum exp(x) of each row.
struct MultinomialState : RandomState {
  int64_t samples = 1;
};
void multinomial(Run& run, const tn_kernel_args* a) {
  const auto& s = state<MultinomialState>(a);
  const auto x = run.input(0);
  if (x.dims().size() != 2)
    fail("Multinomial: operand input has shape " + dims_text(x.dims()) + "; expected [batch, classes]");
  const int64_t batch = x.dims()[0], classes = x.dims()[1];
  void* y = run.output(0, s.dtype, Dims{batch, s.samples});
  const uint64_t seed = s.seeded ? s.seed : run.api->random_seed(run.run);
  const auto load = loader<double>(x.dtype());
  const auto store = storer<int64_t>(s.dtype);
  if (s.samples == 0) return;
  std::vector<double> upto(static_cast<size_t>(classes));
  for (int64_t row = 0; row < batch; ++row) {
    load(x.raw().data, row * classes, 1, classes, upto.data());
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (double v : upto) most = v > most || v != v ? v : most;
    if (!std::isfinite(most))
      fail(
          format("Multinomial: row %lld of operand input holds no probabilities; expected finite numbers or "
                 "-inf, and "
                 "one of them finite",
                 static_cast<long long>(row)));
    for (double& v : upto) v = sum += std::exp(v - most);
    for (int64_t i = 0; i < s.samples; ++i) {
      const double at = uniform_at(seed, static_cast<uint64_t>(row * s.samples + i)) * sum;
      const auto found = std::upper_bound(upto.begin(), upto.end(), at);
      // Rounded up to the whole sum, the place is that of the last class that has a probability.
      const int64_t drawn = found != upto.end()
                                ? found - upto.begin()
                                : std::lower_bound(upto.begin(), upto.end(), sum) - upto.begin();
      store(&drawn, 1, y, row * s.samples + i);
    }
  }
}
void plan_multinomial(const PlanView& v, Planned& p) {
  auto s = std::make_unique<MultinomialState>();
  s->seed = seed_of(v, &s->seeded);
  s->dtype = v.output(0).dtype();
  s->samples = v.attrs().get_int("sample_size", 1);
  (void)loader<double>(v.input(0).dtype());
  p.set(dynamic_kernel<multinomial>, std::move(s));
}

// Dropout(data, ratio?, training_mode?) -> output, mask?: a copy and a mask of ones, unless training.
void dropout(Run& run, const tn_kernel_args* a) {
  const auto& s = state<RandomState>(a);
  const auto x = run.input(0);
  const bool training = run.has_input(2) && run.input(2).int_at(0) != 0;
  double ratio = 0.5;
  if (run.has_input(1)) loader<double>(run.input(1).dtype())(run.input(1).raw().data, 0, 1, 1, &ratio);
  void* y = run.output(0, x.dtype(), x.dims());
  bool* mask = a->output_count > 1 && s.like ? static_cast<bool*>(run.output(1, TN_BOOL, x.dims())) : nullptr;
  const int64_t n = x.count();
  if (!training || ratio == 0) {
    if (x.bytes()) std::memcpy(y, x.raw().data, x.bytes());
    if (mask) std::fill(mask, mask + n, true);
    return;
  }
  if (!(ratio >= 0 && ratio < 1)) fail(format("Dropout's ratio is %g; expected a number in [0, 1)", ratio));
  const uint64_t seed = s.seeded ? s.seed : run.api->random_seed(run.run);
  const auto load = loader<double>(x.dtype());
  const auto store = storer<double>(x.dtype());
  for (int64_t i = 0; i < n; ++i) {
    double value;
    load(x.raw().data, i, 1, 1, &value);
    const bool keep = uniform_at(seed, static_cast<uint64_t>(i)) >= ratio;
    value = keep ? value / (1 - ratio) : 0;
    store(&value, 1, y, i);
    if (mask) mask[i] = keep;
  }
}
void plan_dropout(const PlanView& v, Planned& p) {
  auto s = std::make_unique<RandomState>();
  s->seed = seed_of(v, &s->seeded);
  s->like = v.has_output(1);
  p.set(dynamic_kernel<dropout>, std::move(s));
}

}  // namespace

void provide_random(Plugin& p) {
  constexpr uint32_t dynamic = TN_KERNEL_DYNAMIC_OUTPUT | TN_KERNEL_DYNAMIC_INPUT;
  for (const char* op : {"RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike"})
    reference_kernel(p, op).flags(dynamic).plan<plan_random>();
  reference_kernel(p, "Bernoulli").flags(dynamic).plan<plan_bernoulli>();
  reference_kernel(p, "Multinomial").flags(dynamic).plan<plan_multinomial>();
  reference_kernel(p, "Dropout", "_run").flags(dynamic).plan<plan_dropout>();
}

}  // namespace tenon::reference
