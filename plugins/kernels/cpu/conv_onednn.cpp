// All other convolutions: oneDNN in its blocked layout, single-threaded on a slice of the output; the slice's
// input is reordered into the worker's workspace before and its output out of it after. 3x3 of stride 1 run
// by Winograd F(2,3) where the precision mode allows another order of summation.
#include <algorithm>

#include "conv.hpp"
#include "onednn.hpp"

namespace tenon::cpu {

using namespace sdk;
using dnnl::memory;

namespace {

/// One slice of an image's output: rows [row, row + rows) and channels [channel, channel + channels).
struct Slice {
  int64_t row, rows, channel, channels, in_row, in_rows;
  dnnl::convolution_forward primitive;
  memory::desc src_plain, src_blocked, dst_plain, dst_blocked, weights, bias, scratchpad;
  dnnl::reorder src_in, dst_in, dst_out;  // dst_in: the residual, when the primitive adds it
  bool reorder_src, reorder_dst;
  const void* packed;
  uint64_t src_offset, dst_offset, scratchpad_offset;  // in the workspace
};

struct State {
  Conv c;
  std::vector<Slice> slices;
  bool residual_inside = false, act_inside = false;
};

memory::desc plain(int64_t n, int64_t c, int64_t h, int64_t w, int64_t channel_stride) {
  return memory::desc({n, c, h, w}, memory::data_type::f32,
                      memory::dims{c * channel_stride, channel_stride, w, 1});
}

/// oneDNN's form of the activation; false when it has none that post-operations take.
bool post_activation(const Activation& a, dnnl::post_ops& ops) {
  using dnnl::algorithm;
  switch (a.kind) {
    case Act::None:
      return true;
    case Act::Relu:
      ops.append_eltwise(1, algorithm::eltwise_relu, 0, 0);
      return true;
    case Act::LeakyRelu:
      ops.append_eltwise(1, algorithm::eltwise_relu, a.alpha, 0);
      return true;
    case Act::Clip:
      ops.append_eltwise(1, algorithm::eltwise_clip, a.alpha, a.beta);
      return true;
    case Act::Sigmoid:
      ops.append_eltwise(1, algorithm::eltwise_logistic, 0, 0);
      return true;
    case Act::Swish:
      ops.append_eltwise(1, algorithm::eltwise_swish, a.alpha, 0);
      return true;
    case Act::HardSwish:
      ops.append_eltwise(1, algorithm::eltwise_hardswish, 0, 0);
      return true;
    default:
      return false;
  }
}

/// Fills primitive and descriptors of the slice; false when oneDNN has no such implementation.
bool make_primitive(const Conv& c, Slice& s, dnnl::algorithm algorithm, bool residual, bool act) {
  const int64_t per_group = c.c / c.group;
  const auto f32 = memory::data_type::f32;
  const auto any = memory::format_tag::any;
  const memory::dims src{1, c.c, s.in_rows, c.w}, dst{1, s.channels, s.rows, c.ow};
  const memory::dims weights = c.group == 1 ? memory::dims{s.channels, per_group, c.kh, c.kw}
                                            : memory::dims{c.group, c.m / c.group, per_group, c.kh, c.kw};
  const int64_t first = s.row * c.sh - c.top, last = (s.row + s.rows - 1) * c.sh + (c.kh - 1) * c.dh - c.top;
  const memory::dims before{std::max<int64_t>(0, -first), c.left};
  const memory::dims after{std::max<int64_t>(0, last + 1 - c.h),
                           (c.ow - 1) * c.sw + (c.kw - 1) * c.dw + 1 - c.w - c.left};
  try {
    dnnl::primitive_attr attr;
    attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    dnnl::post_ops ops;
    if (residual) ops.append_sum(1.0f);
    if (act && !post_activation(c.act, ops)) return false;
    attr.set_post_ops(ops);
    const memory::desc bias(memory::dims{s.channels}, f32, memory::format_tag::a);
    const memory::dims strides{c.sh, c.sw}, dilations{c.dh - 1, c.dw - 1};
    const auto desc =
        c.bias ? dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, algorithm,
                                                 {src, f32, any}, {weights, f32, any}, bias, {dst, f32, any},
                                                 strides, dilations, before, after)
               : dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, algorithm,
                                                 {src, f32, any}, {weights, f32, any}, {dst, f32, any},
                                                 strides, dilations, before, after);
    const dnnl::convolution_forward::primitive_desc pd(desc, attr, engine());
    s.primitive = dnnl::convolution_forward(pd);
    s.src_blocked = pd.src_desc();
    s.dst_blocked = pd.dst_desc();
    s.weights = pd.weights_desc();
    s.bias = bias;
    s.scratchpad = pd.scratchpad_desc();
    return true;
  } catch (const dnnl::error&) {
    return false;
  }
}

/// True if some window along an axis meets padding only: its `taps` all fall outside [0, size).
bool misses_input(int64_t outputs, int64_t stride, int64_t taps, int64_t dilation, int64_t before,
                  int64_t size) {
  for (int64_t o = 0; o < outputs; ++o) {
    bool inside = false;
    for (int64_t t = 0; t < taps && !inside; ++t) {
      const int64_t at = o * stride + t * dilation - before;
      inside = at >= 0 && at < size;
    }
    if (!inside) return true;
  }
  return false;
}

struct Choice {
  dnnl::algorithm algorithm;
  bool residual, act;
};

/// The first of the wanted forms that oneDNN has for this slice.
bool choose(const Conv& c, Slice& s, bool winograd, Choice* chosen) {
  using dnnl::algorithm;
  std::vector<Choice> tries;
  // oneDNN's code (seen in 2.6) takes a short cut where a window meets padding only, past the set-up of its
  // post-operations: a residual is lost there, or the process with it. Ours follow in the plain layout then.
  const bool bare =
      misses_input(c.oh, c.sh, c.kh, c.dh, c.top, c.h) || misses_input(c.ow, c.sw, c.kw, c.dw, c.left, c.w);
  for (auto a : {algorithm::convolution_winograd, algorithm::convolution_direct}) {
    if (a == algorithm::convolution_winograd && !winograd) continue;
    if (!bare) tries.push_back({a, c.residual, true});
    if (!bare)
      tries.push_back(
          {a, false, !c.residual});  // bias (and activation) only; the rest follows in the plain layout
    tries.push_back({a, false, false});
  }
  for (const auto& t : tries) {
    if (!make_primitive(c, s, t.algorithm, t.residual, t.act)) continue;
    *chosen = t;
    return true;
  }
  return false;
}

uint64_t place(uint64_t& total, uint64_t bytes) {
  const uint64_t at = total;
  total += (bytes + 63) / 64 * 64 + 64;  // the gap keeps 4 KiB aliases apart
  return at;
}

int run(const tn_kernel_args* a, uint32_t tile, uint32_t worker) noexcept {
  const auto& st = state<State>(a);
  const Conv& c = st.c;
  const auto count = static_cast<uint32_t>(st.slices.size());
  const int64_t image = tile / count;
  const Slice& s = st.slices[tile % count];
  char* scratch = workspace<char>(a, worker);
  const float* x = in<float>(a, 0) + (image * c.c * c.h + s.in_row) * c.w;
  const int64_t out_at = ((image * c.m + s.channel) * c.oh + s.row) * c.ow;
  float* y = out<float>(a) + out_at;
  const float* r = c.residual ? in<float>(a, 3) + out_at : nullptr;
  const SingleThread one;
  try {
    dnnl::stream& q = stream();
    const dnnl::engine& e = engine();
    memory src(s.src_plain, e, const_cast<float*>(x)), dst(s.dst_plain, e, y);
    memory src_blocked = src, dst_blocked = dst;
    if (s.reorder_src) {
      src_blocked = memory(s.src_blocked, e, scratch + s.src_offset);
      s.src_in.execute(q, src, src_blocked);
    }
    if (s.reorder_dst) dst_blocked = memory(s.dst_blocked, e, scratch + s.dst_offset);
    if (st.residual_inside) {
      memory residual(s.dst_plain, e, const_cast<float*>(r));
      s.dst_in.execute(q, residual, dst_blocked);
    }
    std::unordered_map<int, memory> args{
        {DNNL_ARG_SRC, src_blocked},
        {DNNL_ARG_WEIGHTS, memory(s.weights, e, const_cast<void*>(s.packed))},
        {DNNL_ARG_DST, dst_blocked},
        {DNNL_ARG_SCRATCHPAD, memory(s.scratchpad, e, scratch + s.scratchpad_offset)}};
    if (c.bias)
      args.emplace(DNNL_ARG_BIAS, memory(s.bias, e, const_cast<float*>(in<float>(a, 2) + s.channel)));
    s.primitive.execute(q, args);
    if (s.reorder_dst) s.dst_out.execute(q, dst_blocked, dst);
    q.wait();
  } catch (...) {
    return TN_ERR_INTERNAL;
  }
  const bool residual_left = c.residual && !st.residual_inside,
             act_left = c.act.kind != Act::None && !st.act_inside;
  if (residual_left || act_left) {
    const Activation act = act_left ? c.act : Activation{};
    const int64_t plane = c.oh * c.ow, n = s.rows * c.ow;
    for (int64_t m = 0; m < s.channels; ++m)
      finish_row(act, y + m * plane, 0.0f, residual_left ? r + m * plane : nullptr, n);
  }
  return 0;
}

}  // namespace

void plan_conv_onednn(const Conv& c, const PlanView& v, Planned& p) {
  const SingleThread one;
  auto st = std::make_unique<State>();
  st->c = c;
  const auto parts = c.multiply_adds() < 200000 ? 1 : std::max<int64_t>(1, (v.threads() + c.n - 1) / c.n);
  const bool by_channels = c.group == 1 && c.oh < 14 && c.m >= 32 * parts;
  const int64_t slices = by_channels ? parts : std::min(parts, std::max<int64_t>(1, c.oh / 2));
  const auto precision = v.precision();
  const bool winograd = c.kh == 3 && c.kw == 3 && c.sh == 1 && c.sw == 1 && c.dh == 1 && c.dw == 1 &&
                        c.group == 1 && precision != "strict" && precision != "exact";
  uint64_t workspace_bytes = 0;
  for (int64_t i = 0; i < slices; ++i) {
    const auto part = static_cast<uint32_t>(i);
    const Range rows =
        by_channels ? Range{0, c.oh}
                    : tile_range(c.oh, static_cast<uint32_t>(slices), part, c.oh >= 4 * slices ? 2 : 1);
    const Range channels =
        by_channels ? tile_range(c.m, static_cast<uint32_t>(slices), part, 16) : Range{0, c.m};
    Slice s{};
    s.row = rows.begin, s.rows = rows.end - rows.begin, s.channel = channels.begin,
    s.channels = channels.end - channels.begin;
    if (s.rows == 0 || s.channels == 0) continue;
    s.in_row = std::clamp<int64_t>(s.row * c.sh - c.top, 0, c.h - 1);
    const int64_t in_end =
        std::clamp<int64_t>((s.row + s.rows - 1) * c.sh + (c.kh - 1) * c.dh + 1 - c.top, s.in_row + 1, c.h);
    s.in_rows = in_end - s.in_row;
    Choice chosen{};
    if (!choose(c, s, winograd, &chosen)) decline("oneDNN has no convolution for these numbers");
    if (i == 0) {
      st->residual_inside = chosen.residual;
      st->act_inside = chosen.act;
    } else if (st->residual_inside != chosen.residual || st->act_inside != chosen.act) {
      if (!make_primitive(c, s, chosen.algorithm, st->residual_inside, st->act_inside))
        decline("oneDNN takes this convolution in parts only");
    }
    s.src_plain = plain(1, c.c, s.in_rows, c.w, c.h * c.w);
    s.dst_plain = plain(1, s.channels, s.rows, c.ow, c.oh * c.ow);
    s.reorder_src = s.src_plain != s.src_blocked;
    s.reorder_dst = s.dst_plain != s.dst_blocked;
    uint64_t bytes = 0;
    if (s.reorder_src) {
      s.src_offset = place(bytes, s.src_blocked.get_size());
      s.src_in = dnnl::reorder(dnnl::reorder::primitive_desc(engine(), s.src_plain, engine(), s.src_blocked));
    }
    if (s.reorder_dst) {
      s.dst_offset = place(bytes, s.dst_blocked.get_size());
      s.dst_out =
          dnnl::reorder(dnnl::reorder::primitive_desc(engine(), s.dst_blocked, engine(), s.dst_plain));
    }
    if (st->residual_inside)
      s.dst_in = dnnl::reorder(dnnl::reorder::primitive_desc(engine(), s.dst_plain, engine(), s.dst_blocked));
    s.scratchpad_offset = place(bytes, s.scratchpad.get_size());
    workspace_bytes = std::max(workspace_bytes, bytes);
    const int64_t per_filter = (c.c / c.group) * c.kh * c.kw;
    const memory::dims wd = s.weights.dims();
    const memory::desc wplain(wd, memory::data_type::f32,
                              wd.size() == 5 ? memory::format_tag::abcde : memory::format_tag::abcd);
    s.packed = v.packed(1, layout_key("conv", s.weights) + format("/%lld", static_cast<long long>(s.channel)),
                        s.weights.get_size(), [&](TensorView source, void* dst) {
                          reorder(wplain, source.data<float>() + s.channel * per_filter, s.weights, dst);
                        });
    st->slices.push_back(std::move(s));
  }
  const auto tiles = static_cast<uint32_t>(c.n) * static_cast<uint32_t>(st->slices.size());
  p.set(run, std::move(st), tiles, workspace_bytes);
}

}  // namespace tenon::cpu
