// Normalisations. X is [N, C, ...] where channels matter.
#include "support/define.hpp"

namespace tenon::ops {
namespace {

void check_channels(Infer& c, uint32_t i, const char* name, tn_dim channels) {
  if (!c.has_input(i) || !ranked(c, i, name, 1, 1)) return;
  const auto d = c.dims(i);
  require(!c.differ(d[0], channels), std::string("operand ") + name + " has shape " + c.text(d) +
                                         "; expected one number for each of the " + c.text(channels) +
                                         " channels");
}

void infer_batch_norm(Infer& c) {
  same_type(c, 0, 0);
  constexpr const char* names[] = {"scale", "B", "input_mean", "input_var"};
  if (ranked(c, 0, "X", 1)) {
    const auto x = c.dims(0);
    const tn_dim channels = x.size() > 1 ? x[1] : 1;
    for (uint32_t i = 0; i < 4; ++i) check_channels(c, i + 1, names[i], channels);
    const bool training = c.attrs().get_int("training_mode", 0) != 0;
    require(training || !(c.has_output(1) || c.has_output(2)),
            "results running_mean and running_var exist with training_mode=1 only");
    c.set(1, c.dtype(3), {&channels, 1});
    c.set(2, c.dtype(4), {&channels, 1});
  } else {
    c.set_unranked(1, c.dtype(3));
    c.set_unranked(2, c.dtype(4));
  }
}

void infer_channel_norm(Infer& c) {  // InstanceNormalization, GroupNormalization
  same_type(c, 0, 0);
  if (!ranked(c, 0, "X", 2)) return;
  const tn_dim channels = c.dims(0)[1];
  check_channels(c, 1, "scale", channels);
  check_channels(c, 2, "B", channels);
  if (!c.attrs().has("num_groups")) return;
  const int64_t groups = c.attrs().get_int("num_groups", 1);
  require(groups >= 1, "attribute 'num_groups' is " + text_of(groups) + "; expected 1 or more");
  if (const auto n = c.number(channels))
    require(*n % groups == 0,
            text_of(*n) + " channels cannot be shared among " + text_of(groups) + " groups");
}

void infer_layer_norm(Infer& c) {
  same_type(c, 0, 0);
  const int64_t stash = c.attrs().get_int("stash_type", 1);
  const tn_dtype statistics = dtype_of_onnx(stash, "stash_type");
  if (!ranked(c, 0, "X", 1)) {
    c.set_unranked(1, statistics);
    return c.set_unranked(2, statistics);
  }
  auto dims = c.dims(0);
  const auto axis = static_cast<size_t>(Infer::axis(c.attrs().get_int("axis", -1), c.rank(0)));
  for (uint32_t i = 1; i < 3; ++i) {
    if (!c.has_input(i) || !c.has_rank(i)) continue;
    const auto s = c.dims(i);
    bool good = s.size() <= dims.size();
    for (size_t k = 0; good && k < s.size(); ++k)
      good = s[s.size() - 1 - k] == 1 || !c.differ(s[s.size() - 1 - k], dims[dims.size() - 1 - k]);
    require(good, std::string("operand ") + (i == 1 ? "Scale" : "B") + " has shape " + c.text(s) +
                      ", which does not broadcast to X's " + c.text(dims));
  }
  for (size_t i = axis; i < dims.size(); ++i) dims[i] = 1;
  c.set(1, statistics, dims);
  c.set(2, statistics, dims);
}

void infer_same(Infer& c) { same_type(c, 0, 0); }
void infer_lrn(Infer& c) {
  same_type(c, 0, 0);
  ranked(c, 0, "X", 2);
  const int64_t size = required_int(c.attrs(), "size");
  require(size >= 1, "attribute 'size' is " + text_of(size) + "; expected 1 or more");
}

// ---- upgrades
// -------------------------------------------------------------------------------------------------------

/// spatial=0: one set of statistics an element, [C, D1..Dn], which broadcasting says without an operator of
/// its own.
void upgrade_per_element_batch_norm(Rewrite& w, double epsilon) {
  const tn_value x = w.input(0);
  const tn_value deviation = w.make("Sqrt", {w.make("Add", {w.input(4), w.number_like(epsilon, x)})});
  const tn_value normal = w.make("Div", {w.make("Sub", {x, w.input(3)}), deviation});
  w.become(0, w.make("Add", {w.make("Mul", {normal, w.input(1)}), w.input(2)}));
  w.erase();
}

void upgrade_batch_norm(Editor& e, const Node& n) {
  const Attributes a = n.attrs();
  const double epsilon = a.get_float("epsilon", 1e-5f);
  const bool per_element = n.version() < 9 && a.get_int("spatial", 1) == 0;
  if (n.version() < 7 && a.has("is_test") && a.get_int("is_test", 0) == 0)
    cannot_upgrade(n, "is_test=0 asks for training; export the model for inference");
  Rewrite w(e, n);
  if (n.version() < 14)
    for (size_t i = 1; i < w.output_count(); ++i)
      if (w.used(i))
        cannot_upgrade(n, "result " + text_of(static_cast<int64_t>(i)) +
                              " exists when training only; export the model for inference");
  if (per_element) return upgrade_per_element_batch_norm(w, epsilon);
  if (n.version() < 14 &&
      w.output_count() > 1) {  // unread statistics of training: a node without those results
    const double momentum = a.get_float("momentum", 0.9f);
    w.become(0, w.make("BatchNormalization", w.inputs(),
                       {AttrValue::of("epsilon", epsilon), AttrValue::of("momentum", momentum)}));
    return w.erase();
  }
  for (const char* name : {"spatial", "is_test", "consumed_inputs"})
    drop_attr(e, e.graph().node(w.id()), name);
  w.finish();
}

/// Scale and bias were one number a group before 21, one a channel now.
void upgrade_group_norm(Editor& e, const Node& n) {
  if (n.version() >= 21) return upgrade_version_only(e, n);
  const int64_t groups = n.attrs().get_int("num_groups", 1);
  Rewrite w(e, n);
  const tn_value channels =
      w.make("Shape", {w.input(0)}, {AttrValue::of("start", int64_t{1}), AttrValue::of("end", int64_t{2})});
  const tn_value each = w.make("Concat", {w.ints({groups}), w.make("Div", {channels, w.ints({groups})})},
                               {AttrValue::of("axis", int64_t{0})});
  for (uint32_t i = 1; i < 3; ++i) {
    const tn_value column = w.make("Unsqueeze", {w.input(i), w.ints({1})});
    e.set_input(w.id(), i, w.make("Reshape", {w.make("Expand", {column, each}), w.ints({-1})}));
  }
  w.finish();
}

// ---- bodies
// ---------------------------------------------------------------------------------------------------------

tn_value cast(Rewrite& w, tn_value x, tn_dtype to) {
  return w.dtype(x) == to ? x : w.make("Cast", {x}, {AttrValue::of("to", onnx_of_dtype(to))});
}
int32_t rank_needed(Rewrite& w) {
  const int32_t r = w.rank(w.input(0));
  if (r < 1 || w.dtype(w.input(0)) == TN_DTYPE_NONE)
    decline("the operand's rank or element type is not known");
  return r;
}
/// v of shape [C] as [C, 1, ..], to stand at axis 1 of `rank` axes.
tn_value at_channels(Rewrite& w, tn_value v, int32_t rank) {
  std::vector<int64_t> axes;
  for (int32_t i = 2; i < rank; ++i) axes.push_back(i - 1);
  return axes.empty() ? v : w.make("Unsqueeze", {v, w.ints(axes)});
}
struct Normal {
  tn_value y, mean, inverse_deviation;
};
/// (x - mean) / sqrt(variance + epsilon) over axes.
Normal normalise(Rewrite& w, tn_value x, tn_value axes, double epsilon) {
  Normal r{};
  r.mean = w.make("ReduceMean", {x, axes});
  const tn_value centred = w.make("Sub", {x, r.mean});
  const tn_value variance = w.make("ReduceMean", {w.make("Mul", {centred, centred}), axes});
  r.inverse_deviation =
      w.make("Reciprocal", {w.make("Sqrt", {w.make("Add", {variance, w.number_like(epsilon, x)})})});
  r.y = w.make("Mul", {centred, r.inverse_deviation});
  return r;
}
std::vector<int64_t> axes_from(int64_t axis, int32_t rank) {
  std::vector<int64_t> r;
  for (int64_t i = Infer::axis(axis, rank); i < rank; ++i) r.push_back(i);
  return r;
}

void decompose_batch_norm(Editor& e, const Node& n) {
  if (n.attrs().get_int("training_mode", 0) != 0) decline("training_mode=1 updates statistics");
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  Rewrite w(e, n);
  const int32_t rank = rank_needed(w);
  const tn_dtype dtype = w.dtype(w.input(0));
  const tn_value deviation =
      w.make("Sqrt", {w.make("Add", {w.input(4), w.number_like(epsilon, w.input(4))})});
  const auto spread = [&](tn_value v) { return at_channels(w, cast(w, v, dtype), rank); };
  const tn_value normal = w.make("Div", {w.make("Sub", {w.input(0), spread(w.input(3))}), spread(deviation)});
  w.become(0, w.make("Add", {w.make("Mul", {normal, spread(w.input(1))}), spread(w.input(2))}));
}

void decompose_layer_norm(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  const int64_t axis = n.attrs().get_int("axis", -1);
  const tn_dtype stash = dtype_of_onnx(n.attrs().get_int("stash_type", 1), "stash_type");
  Rewrite w(e, n);
  const int32_t rank = rank_needed(w);
  const tn_dtype dtype = w.dtype(w.input(0));
  const tn_dtype inside = dtype == TN_FLOAT64 ? dtype : stash;
  const Normal r = normalise(w, cast(w, w.input(0), inside), w.ints(axes_from(axis, rank)), epsilon);
  tn_value y = w.make(
      "Mul", {inside == dtype ? r.y : w.make("Cast", {r.y}, {AttrValue::of("to", onnx_of_dtype(dtype))}),
              w.input(1)});
  if (w.input(2) != TN_NONE) y = w.make("Add", {y, w.input(2)});
  w.become(0, y);
  const auto statistic = [&](tn_value v) {
    return inside == stash ? v : w.make("Cast", {v}, {AttrValue::of("to", onnx_of_dtype(stash))});
  };
  if (w.used(1)) w.become(1, statistic(r.mean));
  if (w.used(2)) w.become(2, statistic(r.inverse_deviation));
}

void decompose_rms_norm(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  const int64_t axis = n.attrs().get_int("axis", -1);
  const tn_dtype stash = dtype_of_onnx(n.attrs().get_int("stash_type", 1), "stash_type");
  Rewrite w(e, n);
  const int32_t rank = rank_needed(w);
  const tn_dtype dtype = w.dtype(w.input(0)),
                 scale_type = w.dtype(w.input(1)) != TN_DTYPE_NONE ? w.dtype(w.input(1)) : dtype;
  const tn_dtype inside = dtype == TN_FLOAT64 ? dtype : stash;
  const tn_value x = cast(w, w.input(0), inside);
  const tn_value square = w.make("ReduceMean", {w.make("Mul", {x, x}), w.ints(axes_from(axis, rank))});
  const tn_value deviation = w.make("Sqrt", {w.make("Add", {square, w.number_like(epsilon, x)})});
  tn_value y = w.make("Div", {x, deviation});
  if (inside != scale_type) y = w.make("Cast", {y}, {AttrValue::of("to", onnx_of_dtype(scale_type))});
  w.become(0, w.make("Mul", {y, w.input(1)}));
}

void decompose_instance_norm(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  Rewrite w(e, n);
  const int32_t rank = rank_needed(w);
  if (rank < 3) decline("the operand has no spatial axes");
  const Normal r = normalise(w, w.input(0), w.ints(axes_from(2, rank)), epsilon);
  w.become(0, w.make("Add", {w.make("Mul", {r.y, at_channels(w, w.input(1), rank)}),
                             at_channels(w, w.input(2), rank)}));
}

void decompose_group_norm(Editor& e, const Node& n) {
  const double epsilon = n.attrs().get_float("epsilon", 1e-5f);
  const int64_t groups = required_int(n.attrs(), "num_groups");
  const tn_dtype stash = dtype_of_onnx(n.attrs().get_int("stash_type", 1), "stash_type");
  Rewrite w(e, n);
  const int32_t rank = rank_needed(w);
  const tn_dtype dtype = w.dtype(w.input(0)), inside = dtype == TN_FLOAT64 ? dtype : stash;
  const tn_value grouped = w.make("Reshape", {cast(w, w.input(0), inside), w.ints({0, groups, -1})});
  tn_value y =
      w.make("Reshape", {normalise(w, grouped, w.ints({2}), epsilon).y, w.make("Shape", {w.input(0)})});
  if (inside != dtype) y = w.make("Cast", {y}, {AttrValue::of("to", onnx_of_dtype(dtype))});
  w.become(0, w.make("Add", {w.make("Mul", {y, at_channels(w, w.input(1), rank)}),
                             at_channels(w, w.input(2), rank)}));
}

void decompose_mean_variance(Editor& e, const Node& n) {
  auto axes = n.attrs().get_ints("axes").copy();
  if (axes.empty()) axes = {0, 2, 3};
  Rewrite w(e, n);
  const tn_value x = w.input(0), over = w.ints(axes), mean = w.make("ReduceMean", {x, over});
  const tn_value centred = w.make("Sub", {x, mean});
  const tn_value variance = w.make("ReduceMean", {w.make("Mul", {centred, centred}), over});
  const tn_value deviation = w.make("Add", {w.make("Sqrt", {variance}), w.number_like(1e-9, x)});
  w.become(0, w.make("Div", {centred, deviation}));
}

void decompose_lp_norm(Editor& e, const Node& n) {
  const int64_t p = n.attrs().get_int("p", 2), axis = n.attrs().get_int("axis", -1);
  Rewrite w(e, n);
  // A norm of 0 leaves zeros: dividing by 1 there keeps them.
  const tn_value x = w.input(0), length = w.make(p == 1 ? "ReduceL1" : "ReduceL2", {x, w.ints({axis})});
  const tn_value zero = w.make("Equal", {length, w.number_like(0, x)});
  w.become(0, w.make("Div", {x, w.make("Where", {zero, w.number_like(1, x), length})}));
}

}  // namespace

void add_norm(Plugin& p) {
  define(p, "BatchNormalization")
      .flags(TN_OP_REDUCTION)
      .infer<infer_batch_norm>()
      .upgrade<upgrade_batch_norm>()
      .decompose<decompose_batch_norm>()
      .alias("batchnorm")
      .alias("batch_norm")
      .alias("bn")
      .alias("batch_normalization");
  define(p, "InstanceNormalization")
      .flags(TN_OP_REDUCTION)
      .infer<infer_channel_norm>()
      .decompose<decompose_instance_norm>()
      .alias("instancenorm")
      .alias("instance_norm");
  define(p, "GroupNormalization")
      .flags(TN_OP_REDUCTION)
      .infer<infer_channel_norm>()
      .upgrade<upgrade_group_norm>()
      .decompose<decompose_group_norm>()
      .alias("groupnorm")
      .alias("group_norm");
  define(p, "LayerNormalization")
      .flags(TN_OP_REDUCTION)
      .infer<infer_layer_norm>()
      .decompose<decompose_layer_norm>()
      .alias("layernorm")
      .alias("layer_norm");
  define(p, "RMSNormalization")
      .flags(TN_OP_REDUCTION)
      .infer<infer_layer_norm>()
      .decompose<decompose_rms_norm>()
      .alias("rmsnorm")
      .alias("rms_norm");
  define(p, "LRN").infer<infer_lrn>();
  define(p, "MeanVarianceNormalization").infer<infer_same>().decompose<decompose_mean_variance>();
  define(p, "LpNormalization").infer<infer_same>().decompose<decompose_lp_norm>();
}

}  // namespace tenon::ops
