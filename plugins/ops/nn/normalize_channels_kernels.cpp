// Normalisation by channel: BatchNormalization, InstanceNormalization, GroupNormalization.
#include "families.hpp"
#include "support/kernel.hpp"

namespace tenon::reference {
namespace {

struct ChannelState : Base {
  int64_t batch = 1, channels = 1, inner = 1, groups = 1;
  double epsilon = 1e-5, momentum = 0.9;
  Load<double> load = nullptr, load_scale = nullptr, load_bias = nullptr, load_mean = nullptr,
               load_variance = nullptr;
  Store<double> store = nullptr, store_mean = nullptr, store_variance = nullptr;
};

double one(Load<double> load, const void* data, int64_t i) noexcept {
  double x;
  load(data, i, 1, 1, &x);
  return x;
}
/// y = (x - mean) * factor + bias over one plane.
void affine_plane(const ChannelState& s, const tn_kernel_args* a, int64_t plane, double mean, double factor,
                  double bias) noexcept {
  double x[block];
  for (int64_t i = 0; i < s.inner; i += block) {
    const int64_t n = std::min(block, s.inner - i);
    s.load(a->inputs[0], plane * s.inner + i, 1, n, x);
    for (int64_t k = 0; k < n; ++k) x[k] = (x[k] - mean) * factor + bias;
    s.store(x, n, a->outputs[0], plane * s.inner + i);
  }
}
/// Mean and population variance of `planes` planes, `step` planes apart.
void moments(const ChannelState& s, const tn_kernel_args* a, int64_t first, int64_t planes, int64_t step,
             double* mean, double* variance) noexcept {
  double x[block], sum = 0, square = 0;
  const auto each = [&](auto&& f) {
    for (int64_t q = 0; q < planes; ++q)
      for (int64_t i = 0; i < s.inner; i += block) {
        const int64_t n = std::min(block, s.inner - i);
        s.load(a->inputs[0], (first + q * step) * s.inner + i, 1, n, x);
        for (int64_t k = 0; k < n; ++k) f(x[k]);
      }
  };
  const auto count = static_cast<double>(planes * s.inner);
  each([&](double value) { sum += value; });
  const double m = sum / count;
  each([&](double value) { square += (value - m) * (value - m); });
  *mean = m;
  *variance = square / count;
}

int batch_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ChannelState>(a);
  const auto r = tile_range(s.batch * s.channels, s.tiles, tile);
  for (int64_t plane = r.begin; plane < r.end; ++plane) {
    const int64_t c = plane % s.channels;
    const double factor =
        one(s.load_scale, a->inputs[1], c) / std::sqrt(one(s.load_variance, a->inputs[4], c) + s.epsilon);
    affine_plane(s, a, plane, one(s.load_mean, a->inputs[3], c), factor, one(s.load_bias, a->inputs[2], c));
  }
  return run_ok;
}
int batch_training_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ChannelState>(a);
  const auto r = tile_range(s.channels, s.tiles, tile);
  for (int64_t c = r.begin; c < r.end; ++c) {
    double mean, variance;
    moments(s, a, c, s.batch, s.channels, &mean, &variance);
    const double factor = one(s.load_scale, a->inputs[1], c) / std::sqrt(variance + s.epsilon),
                 bias = one(s.load_bias, a->inputs[2], c);
    for (int64_t n = 0; n < s.batch; ++n) affine_plane(s, a, n * s.channels + c, mean, factor, bias);
    if (s.store_mean) {
      const double running = one(s.load_mean, a->inputs[3], c) * s.momentum + mean * (1 - s.momentum);
      s.store_mean(&running, 1, a->outputs[1], c);
    }
    if (s.store_variance) {
      const double running = one(s.load_variance, a->inputs[4], c) * s.momentum + variance * (1 - s.momentum);
      s.store_variance(&running, 1, a->outputs[2], c);
    }
  }
  return run_ok;
}
/// InstanceNormalization is one group a channel.
int group_fn(const tn_kernel_args* a, uint32_t tile, uint32_t) {
  const auto& s = state<ChannelState>(a);
  const int64_t per = s.channels / s.groups;
  const auto r = tile_range(s.batch * s.groups, s.tiles, tile);
  for (int64_t g = r.begin; g < r.end; ++g) {
    double mean, variance;
    moments(s, a, g * per, per, 1, &mean, &variance);
    const double inverse = 1 / std::sqrt(variance + s.epsilon);
    for (int64_t k = 0; k < per; ++k) {
      const int64_t c = g % s.groups * per + k;
      affine_plane(s, a, g * per + k, mean, inverse * one(s.load_scale, a->inputs[1], c),
                   one(s.load_bias, a->inputs[2], c));
    }
  }
  return run_ok;
}

void plan_channels(const PlanView& v, Planned& p) {
  auto s = make_state<ChannelState>(v);
  const std::string op(v.op_name());
  const auto& x = s->in[0].dims;
  if (x.empty() || (x.size() < 2 && op != "BatchNormalization")) fail(op + " needs an operand [N, C, ...]");
  s->batch = x[0];
  s->channels = x.size() > 1 ? x[1] : 1;
  s->inner = x.size() > 1 ? product(x, 2, x.size()) : 1;
  s->epsilon = v.attrs().get_float("epsilon", 1e-5f);
  s->momentum = v.attrs().get_float("momentum", 0.9f);
  for (size_t i = 1; i < s->in.size(); ++i)
    if (s->in[i].count != s->channels)
      fail(format("%s's operand %zu has %lld elements; expected %lld, one a channel", op.c_str(), i,
                  static_cast<long long>(s->in[i].count), static_cast<long long>(s->channels)));
  s->load = loader<double>(s->in[0].dtype);
  s->load_scale = loader<double>(v.input(1).dtype());
  s->load_bias = loader<double>(v.input(2).dtype());
  s->store = storer<double>(s->out[0].dtype);
  const int64_t work = s->out[0].count * 2;
  if (op == "BatchNormalization") {
    s->load_mean = loader<double>(v.input(3).dtype());
    s->load_variance = loader<double>(v.input(4).dtype());
    const bool training = v.attrs().get_int("training_mode", 0) != 0;
    if (training && s->has_out(1)) s->store_mean = storer<double>(s->out[1].dtype);
    if (training && s->has_out(2)) s->store_variance = storer<double>(s->out[2].dtype);
    const int64_t units = training ? s->channels : s->batch * s->channels;
    finish(v, p, training ? batch_training_fn : batch_fn, std::move(s), units, work);
    return;
  }
  s->groups = op == "GroupNormalization" ? v.attrs().get_int("num_groups", 0) : s->channels;
  if (s->channels == 0) s->groups = 1;
  if (s->groups < 1 || s->channels % s->groups)
    fail(format("GroupNormalization's num_groups %lld must divide %lld channels",
                static_cast<long long>(s->groups), static_cast<long long>(s->channels)));
  const int64_t units = s->batch * s->groups;
  finish(v, p, group_fn, std::move(s), units, work);
}

}  // namespace

void provide_normalize_channels(Plugin& p) {
  for (const char* op : {"BatchNormalization", "InstanceNormalization", "GroupNormalization"})
    reference_kernel(p, op).plan<plan_channels>();
}

}  // namespace tenon::reference
