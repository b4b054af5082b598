// Spellings of normalisations and softmax.
#include "spellings.hpp"

namespace tenon::test {
namespace {

/// Axes as an operand, or as the attribute they were in an older version of the operator.
std::string reduce(const char* op, const char* x, bool attribute, const char* axes_input, const char* axes) {
  return std::string(op) + "(%" + x +
         (attribute ? ") {axes = [" + std::string(axes) + "]} version 11"
                    : ", %" + std::string(axes_input) + ")");
}

struct Norm {
  bool pow = false, reciprocal = false, swapped = false, attribute = false, affine = true;
  double eps = 1e-5;
  const char* axes = "-1";
  bool escape = false;
};

std::string layer_norm(const Norm& n) {
  Draft d;
  d.number("two", 2).number("eps", n.eps).ints("ax", {std::stoll(n.axes)});
  if (n.affine) d.weights("g", "6", 0.5, 1).weights("h", "6");
  d.input("x", "2,6,6");
  d.node("mu = " + reduce("ReduceMean", "x", n.attribute, "ax", n.axes)).node("d = Sub(%x, %mu)");
  d.node(n.pow ? "sq = Pow(%d, %two)" : "sq = Mul(%d, %d)");
  d.node("va = " + reduce("ReduceMean", "sq", n.attribute, "ax", n.axes))
      .node("ve = " + call("Add", "va", "eps", n.swapped));
  d.node("sd = Sqrt(%ve)");
  const std::string last = n.affine ? "nm" : "z";
  if (n.reciprocal)
    d.node("rs = Reciprocal(%sd)").node(last + " = " + call("Mul", "d", "rs", n.swapped));
  else
    d.node(last + " = Div(%d, %sd)");
  if (n.affine)
    d.node("gm = " + call("Mul", "nm", "g", n.swapped)).node("z = " + call("Add", "gm", "h", n.swapped));
  return n.escape ? d.finish({"z", "d"}) : d.finish();
}

std::string rms_norm(const Norm& n, unsigned root) {
  Draft d;
  d.number("two", 2).number("eps", n.eps).number("one", 1).ints("ax", {std::stoll(n.axes)});
  if (n.affine) d.weights("g", "6", 0.5, 1);
  d.input("x", "2,6,6");
  d.node(n.pow ? "sq = Pow(%x, %two)" : "sq = Mul(%x, %x)");
  d.node("va = " + reduce("ReduceMean", "sq", n.attribute, "ax", n.axes))
      .node("ve = " + call("Add", "va", "eps", n.swapped));
  d.node("sd = Sqrt(%ve)");
  const std::string last = n.affine ? "nm" : "z";
  if (root == 0)
    d.node(last + " = Div(%x, %sd)");
  else
    d.node(root == 1 ? "rs = Reciprocal(%sd)" : "rs = Div(%one, %sd)")
        .node(last + " = " + call("Mul", "x", "rs", n.swapped));
  if (n.affine) d.node("z = " + call("Mul", "nm", "g", n.swapped));
  return n.escape ? d.finish({"z", "va"}) : d.finish();
}

std::string named(const Norm& n) {
  return std::string(n.pow ? "Pow" : "Mul") + (n.reciprocal ? ", Reciprocal" : ", Div") +
         (n.swapped ? ", swapped" : "") + (n.attribute ? ", axes as attribute" : "");
}

}  // namespace

Family layer_norm_family() {
  Family f{"LayerNorm", "LayerNormalization", 1, 18, {}, {}};
  for (unsigned i = 0; i < 16; ++i) {
    const Norm n{(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0};
    f.spellings.push_back({named(n), layer_norm(n)});
  }
  for (const bool swapped : {false, true}) {  // as TensorFlow folds it
    Draft d;
    d.number("two", 2)
        .number("eps", 1e-5)
        .ints("ax", {-1})
        .weights("g", "6", 0.5, 1)
        .weights("h", "6")
        .input("x", "2,6,6");
    d.node("mu = ReduceMean(%x, %ax)")
        .node("d = Sub(%x, %mu)")
        .node("sq = Mul(%d, %d)")
        .node("va = ReduceMean(%sq, %ax)");
    d.node("ve = Add(%va, %eps)").node("sd = Sqrt(%ve)").node("rs = Reciprocal(%sd)");
    d.node("k = " + call("Mul", "rs", "g", swapped))
        .node("xk = " + call("Mul", "x", "k", swapped))
        .node("mk = " + call("Mul", "mu", "k", swapped));
    d.node("t = Sub(%h, %mk)").node("z = " + call("Add", "xk", "t", swapped));
    f.spellings.push_back({std::string("folded") + (swapped ? ", swapped" : ""), d.finish()});
  }
  Norm wrong_axis, large, read;
  wrong_axis.axes = "1";
  large.eps = 1;
  read.escape = true;
  f.look_alikes = {{"over axis 1", layer_norm(wrong_axis)},
                   {"epsilon is 1", layer_norm(large)},
                   {"the deviation is read outside", layer_norm(read)}};
  return f;
}

Family layer_norm_plain_family() {
  Family f{"LayerNorm without scale", "LayerNormalization", 1, 16, {}, {}};
  for (unsigned i = 0; i < 16; ++i) {
    const Norm n{(i & 1) != 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0, false};
    f.spellings.push_back({named(n), layer_norm(n)});
  }
  Norm wrong_axis;
  wrong_axis.affine = false;
  wrong_axis.axes = "1";
  f.look_alikes = {{"over axis 1", layer_norm(wrong_axis)}};
  return f;
}

Family rms_norm_family() {
  Family f{"RMSNorm", "RMSNormalization", 1, 48, {}, {}};
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned root = 0; root < 3; ++root) {
      const Norm n{(i & 1) != 0, root > 0, (i & 2) != 0, (i & 4) != 0, (i & 8) != 0};
      f.spellings.push_back(
          {named(n) + ", root " + std::to_string(root) + (n.affine ? "" : ", plain"), rms_norm(n, root)});
    }
  Norm wrong_axis, large, read;
  wrong_axis.axes = "1";
  large.eps = 1;
  read.escape = true;
  f.look_alikes = {{"over axis 1", rms_norm(wrong_axis, 0)},
                   {"epsilon is 1", rms_norm(large, 1)},
                   {"the mean is read outside", rms_norm(read, 2)}};
  return f;
}

Family group_norm_family() {
  Family f{"GroupNorm", "GroupNormalization", 1, 16, {}, {}};
  const auto make = [](bool instance, bool swapped, bool wide, const std::string& affine) {
    Draft d;
    d.ints("s2", {2, 6, 3, 4}).weights("g", affine, 0.5, 1).weights("h", affine).number("eps", 1e-5);
    if (wide && !instance)
      d.ints("s1", {2, 3, 2, 3, 4}).ints("ax", {2, 3, 4});
    else
      d.ints("s1", {wide ? 0 : 2, 3, -1}).ints("ax", {2});
    d.weights("one", "3", 0, 1).weights("zero", "3", 0, 0).input("x", "2,6,3,4").node("a = Reshape(%x, %s1)");
    if (instance) {
      d.node("n = InstanceNormalization(%a, %one, %zero) {epsilon = 0.00001}");
    } else {
      d.node("mu = ReduceMean(%a, %ax)")
          .node("d = Sub(%a, %mu)")
          .node("sq = Mul(%d, %d)")
          .node("va = ReduceMean(%sq, %ax)");
      d.node("ve = " + call("Add", "va", "eps", swapped)).node("sd = Sqrt(%ve)").node("n = Div(%d, %sd)");
    }
    d.node("y = Reshape(%n, %s2)")
        .node("gm = " + call("Mul", "y", "g", swapped))
        .node("z = " + call("Add", "gm", "h", swapped));
    return d.finish();
  };
  for (const bool instance : {false, true})
    for (const bool swapped : {false, true})
      for (const bool full_rank : {false, true})
        for (const bool wide : {false, true})
          f.spellings.push_back({std::string(instance ? "InstanceNormalization" : "means") +
                                     (swapped ? ", swapped" : "") +
                                     (full_rank ? ", [1,C,1,1]" : ", [C,1,1]") + (wide ? ", wide" : ""),
                                 make(instance, swapped, wide, full_rank ? "1,6,1,1" : "6,1,1")});
  f.look_alikes = {{"the scale lies along the columns", make(true, false, false, "4")}};
  return f;
}

namespace {
std::string skip_norm(bool rms, bool bias, unsigned order, bool read, const char* skip_shape = "2,5,6") {
  Draft d;
  d.weights("c", "6").weights("g", "6", 0.5, 1).weights("h", "6").input("x", "2,5,6").input("s", skip_shape);
  if (bias) d.node("t = " + call("Add", "x", "c", order & 1));
  d.node("u = " + call("Add", bias ? "t" : "x", "s", order & 2));
  d.node(rms ? "z = RMSNormalization(%u, %g) {axis = -1}" : "z = LayerNormalization(%u, %g, %h) {axis = -1}");
  return read ? d.finish({"z", "u"}) : d.finish();
}
Family skip_family(bool rms) {
  Family f{rms ? "skip + RMSNorm" : "skip + LayerNorm",
           rms ? "tenon::SkipRmsNorm" : "tenon::SkipLayerNorm",
           1,
           12,
           {},
           {}};
  for (const bool bias : {false, true})
    for (unsigned order = 0; order < 4; ++order)
      for (const bool read : {false, true})
        if (bias || order % 2 == 0)
          f.spellings.push_back({std::string(bias ? "bias, " : "") + "operands " + std::to_string(order) +
                                     (read ? ", the sum is read" : ""),
                                 skip_norm(rms, bias, order, read)});
  f.look_alikes = {{"a summand is broadcast", skip_norm(rms, false, 0, false, "6")}};
  return f;
}
}  // namespace

Family skip_layer_norm_family() { return skip_family(false); }
Family skip_rms_norm_family() { return skip_family(true); }

Family softmax_family() {
  Family f{"Softmax", "Softmax", 1, 12, {}, {}};
  const auto make = [](unsigned form, bool attribute, bool middle, bool two_axes) {
    Draft d;
    const char* const axis = two_axes ? "1,2" : middle ? "1" : "-1";
    if (two_axes)
      d.ints("ax", {1, 2});
    else
      d.ints("ax", {middle ? 1 : -1});
    d.input("x", "2,5,4");
    if (form < 2) d.node("m = " + reduce("ReduceMax", "x", attribute, "ax", axis)).node("d = Sub(%x, %m)");
    d.node(form < 2 ? "e = Exp(%d)" : "e = Exp(%x)")
        .node("t = " + reduce("ReduceSum", "e", attribute, "ax", axis));
    if (form == 1)
      d.node("r = Reciprocal(%t)").node("z = Mul(%e, %r)");
    else
      d.node("z = Div(%e, %t)");
    return d.finish();
  };
  for (unsigned form = 0; form < 3; ++form)
    for (const bool attribute : {false, true})
      for (const bool middle : {false, true})
        f.spellings.push_back({"form " + std::to_string(form) + (attribute ? ", axes as attribute" : "") +
                                   (middle ? ", axis 1" : ""),
                               make(form, attribute, middle, false)});
  f.look_alikes = {{"over two axes", make(0, false, false, true)}};
  return f;
}

Family log_softmax_family() {
  Family f{"LogSoftmax", "LogSoftmax", 1, 3, {}, {}};
  f.spellings = {
      {"Log of Softmax",
       Draft().input("x", "2,5").node("s = Softmax(%x) {axis = -1}").node("z = Log(%s)").finish()},
      {"axis 0", Draft().input("x", "2,5").node("s = Softmax(%x) {axis = 0}").node("z = Log(%s)").finish()},
      {"decomposed", Draft()
                         .ints("ax", {1})
                         .input("x", "2,5")
                         .node("m = ReduceMax(%x, %ax)")
                         .node("d = Sub(%x, %m)")
                         .node("e = Exp(%d)")
                         .node("t = ReduceSum(%e, %ax)")
                         .node("s = Div(%e, %t)")
                         .node("z = Log(%s)")
                         .finish()}};
  f.look_alikes = {
      {"the probabilities are read",
       Draft().input("x", "2,5").node("s = Softmax(%x) {axis = -1}").node("z = Log(%s)").finish({"z", "s"})}};
  return f;
}

Family reduce_l2_family() {
  Family f{"ReduceL2", "ReduceL2", 1, 4, {}, {}};
  const auto make = [](bool pow, bool keep, bool read) {
    Draft d;
    d.number("two", 2)
        .ints("ax", {1})
        .input("x", "2,5,4")
        .node(pow ? "q = Pow(%x, %two)" : "q = Mul(%x, %x)");
    d.node(std::string("t = ReduceSum(%q, %ax) {keepdims = ") + (keep ? "1}" : "0}")).node("z = Sqrt(%t)");
    return read ? d.finish({"z", "q"}) : d.finish();
  };
  for (const bool pow : {false, true})
    for (const bool keep : {false, true})
      f.spellings.push_back(
          {std::string(pow ? "Pow" : "Mul") + (keep ? ", keepdims" : ""), make(pow, keep, false)});
  f.look_alikes = {{"the squares are read", make(false, true, true)}};
  return f;
}

Family normalize_l2_family() {
  Family f{"NormalizeL2", "tenon::NormalizeL2", 1, 8, {}, {}};
  const auto make = [](bool decomposed, bool clip, bool expand, double eps) {
    Draft d;
    d.number("eps", eps).number("two", 2).ints("ax", {1}).ints("s", {2, 5, 4}).input("x", "2,5,4");
    if (decomposed)
      d.node("q = Mul(%x, %x)").node("t = ReduceSum(%q, %ax)").node("n = Sqrt(%t)");
    else
      d.node("n = ReduceL2(%x, %ax)");
    d.node(clip ? "c = Clip(%n, %eps)" : "c = Max(%n, %eps)");
    if (expand) d.node("w = Expand(%c, %s)");
    d.node(std::string("z = Div(%x, %") + (expand ? "w)" : "c)"));
    return d.finish();
  };
  for (const bool decomposed : {false, true})
    for (const bool clip : {false, true})
      for (const bool expand : {false, true})
        f.spellings.push_back({std::string(decomposed ? "decomposed" : "ReduceL2") +
                                   (clip ? ", Clip" : ", Max") + (expand ? ", Expand" : ""),
                               make(decomposed, clip, expand, 1e-12)});
  f.look_alikes = {{"epsilon is negative", make(false, false, false, -1)}};
  return f;
}

}  // namespace tenon::test
