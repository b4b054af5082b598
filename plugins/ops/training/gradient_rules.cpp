// The derivative of each operator that Gradient can pass through. Where a function has a kink the derivative
// is that of training frameworks: 0 for Relu and Abs at 0, the slope below for LeakyRelu.
#include <algorithm>
#include <cmath>

#include "gradient.hpp"

namespace tenon::ops {

void Tape::add(tn_value v, tn_value gradient) {
  if (!wants(v)) return;
  const auto [at, fresh] = gradients_.emplace(v, gradient);
  if (!fresh) at->second = w_.make("Add", {at->second, gradient});
}

std::string named_node(const Node& n) {
  return std::string(n.op_name()) + (n.name().empty() ? "" : " '" + std::string(n.name()) + "'");
}
void Step::refuse(const std::string& why) {
  throw Failure(TN_ERR_UNSUPPORTED, named_node(graph().node(node_)) + " cannot be differentiated: " + why);
}

tn_value Step::reduced(tn_value gradient, tn_value from, tn_value to, size_t kept) {
  const auto dims = [&](tn_value v) {
    rank(v);
    return dims_of(graph().value(v).type).copy();
  };
  const auto large = dims(from), small = dims(to);
  if (large.size() < small.size()) refuse("its shapes do not fit");
  const size_t more = large.size() - small.size();
  Dims axes, leading;
  bool open = false;  // whether an axis was broadcast is known when running only
  for (size_t i = 0; i + kept < large.size(); ++i) {
    if (i < more) leading.push_back(static_cast<int64_t>(i));
    const tn_dim own = i < more ? 1 : small[i - more];
    if (own == 1 && large[i] != 1) axes.push_back(static_cast<int64_t>(i));
    open = open || (own != 1 && own != large[i]);
  }
  const std::vector<AttrValue> keep{AttrValue::of("keepdims", int64_t{1}),
                                    AttrValue::of("noop_with_empty_axes", int64_t{1})};
  if (open) {
    tn_value shape = shape_of(to);
    if (more)
      shape = op("Concat", {rewrite().ints(std::vector<int64_t>(more, 1)), shape},
                 {AttrValue::of("axis", int64_t{0})});
    const tn_value ones = op("NonZero", {op("Equal", {shape, rewrite().one_int(1)})});
    const tn_value chosen = op("Squeeze", {ones, rewrite().ints({0})});
    return shaped_as(op("ReduceSum", {gradient, chosen}, keep), to);
  }
  if (!axes.empty()) gradient = op("ReduceSum", {gradient, rewrite().ints(axes)}, keep);
  if (!leading.empty()) gradient = op("Squeeze", {gradient, rewrite().ints(leading)});
  return gradient;
}

namespace {

// ---- element by element

void add(Step& s) {
  for (size_t i = 0; i < s.x.size(); ++i)
    if (s.wants(i)) s.give_broadcast(i, s.g);
}
void sub(Step& s) {
  if (s.wants(0)) s.give_broadcast(0, s.g);
  if (s.wants(1)) s.give_broadcast(1, s.op("Neg", {s.g}));
}
void mul(Step& s) {
  for (size_t i = 0; i < 2; ++i)
    if (s.wants(i)) s.give_broadcast(i, s.op("Mul", {s.g, s.x[1 - i]}));
}
void div(Step& s) {
  if (s.wants(0)) s.give_broadcast(0, s.op("Div", {s.g, s.x[1]}));
  if (s.wants(1)) s.give_broadcast(1, s.op("Neg", {s.op("Div", {s.op("Mul", {s.g, s.y}), s.x[1]})}));
}
void pow(Step& s) {
  const tn_value zero = s.number(0), base = s.x[0];
  const tn_value exponent = s.op("CastLike", {s.x[1], base});
  if (s.wants(0)) {  // e * b ^ (e - 1); 0 where e is 0, of any b
    const tn_value less = s.op("Pow", {base, s.op("Sub", {exponent, s.number(1)})});
    const tn_value slope =
        s.op("Where", {s.op("Equal", {exponent, zero}), zero, s.op("Mul", {exponent, less})});
    s.give_broadcast(0, s.op("Mul", {s.g, slope}));
  }
  if (s.wants(1)) {  // y * log(b); 0 where b is 0
    const tn_value slope =
        s.op("Where", {s.op("Equal", {base, zero}), zero, s.op("Mul", {s.y, s.op("Log", {base})})});
    const tn_value through = s.op("Mul", {s.g, slope});
    s.give_broadcast(1, s.op("CastLike", {through, s.x[1]}));
  }
}
void where(Step& s) {
  const tn_value zero = s.number(0);
  if (s.wants(1)) s.give_broadcast(1, s.op("Where", {s.x[0], s.g, zero}));
  if (s.wants(2)) s.give_broadcast(2, s.op("Where", {s.x[0], zero, s.g}));
}

void times(Step& s, tn_value slope) { s.give(0, s.op("Mul", {s.g, slope})); }
void identity(Step& s) { s.give(0, s.g); }
void nothing(Step&) {}  // constant but for jumps
void cast(Step& s) { s.give(0, s.op("CastLike", {s.g, s.x[0]})); }
void neg(Step& s) { s.give(0, s.op("Neg", {s.g})); }
void exp(Step& s) { times(s, s.y); }
void log(Step& s) { s.give(0, s.op("Div", {s.g, s.x[0]})); }
void sqrt(Step& s) { s.give(0, s.op("Div", {s.op("Mul", {s.g, s.number(0.5)}), s.y})); }
void reciprocal(Step& s) { times(s, s.op("Neg", {s.op("Mul", {s.y, s.y})})); }
void tanh(Step& s) { times(s, s.op("Sub", {s.number(1), s.op("Mul", {s.y, s.y})})); }
void sigmoid(Step& s) { times(s, s.op("Mul", {s.y, s.op("Sub", {s.number(1), s.y})})); }
void relu(Step& s) {
  const tn_value zero = s.number(0);
  s.give(0, s.op("Where", {s.op("Greater", {s.x[0], zero}), s.g, zero}));
}
void leaky_relu(Step& s) {
  const tn_value below = s.op("Mul", {s.g, s.number(s.real("alpha", static_cast<double>(0.01f)))});
  s.give(0, s.op("Where", {s.op("Greater", {s.x[0], s.number(0)}), s.g, below}));
}
void abs(Step& s) { times(s, s.op("Sign", {s.x[0]})); }
void sin(Step& s) { times(s, s.op("Cos", {s.x[0]})); }
void cos(Step& s) { times(s, s.op("Neg", {s.op("Sin", {s.x[0]})})); }
void softplus(Step& s) { times(s, s.op("Sigmoid", {s.x[0]})); }
void erf(Step& s) {
  const tn_value bell = s.op("Exp", {s.op("Neg", {s.op("Mul", {s.x[0], s.x[0]})})});
  times(s, s.op("Mul", {s.number(2 / std::sqrt(std::acos(-1.0))), bell}));
}

// ---- products

tn_value turned(Step& s, tn_value matrices, int32_t rank) {
  Dims perm;
  for (int32_t i = 0; i < rank; ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return s.op("Transpose", {matrices}, {AttrValue::of("perm", Span<const int64_t>(perm))});
}
/// A vector on the left is a row and one on the right a column; the result has no axis for either.
void matmul(Step& s) {
  const int32_t ranks[2] = {s.rank(s.x[0]), s.rank(s.x[1])};
  tn_value matrices[2] = {s.x[0], s.x[1]}, g = s.g;
  if (ranks[1] == 1) {
    matrices[1] = s.op("Unsqueeze", {s.x[1], s.rewrite().ints({1})});
    g = s.op("Unsqueeze", {g, s.rewrite().ints({-1})});
  }
  if (ranks[0] == 1) {
    matrices[0] = s.op("Unsqueeze", {s.x[0], s.rewrite().ints({0})});
    g = s.op("Unsqueeze", {g, s.rewrite().ints({-2})});
  }
  for (size_t i = 0; i < 2; ++i) {
    if (!s.wants(i)) continue;
    const tn_value other = turned(s, matrices[1 - i], std::max(ranks[1 - i], 2));
    tn_value product =
        s.op("MatMul", i == 0 ? std::vector<tn_value>{g, other} : std::vector<tn_value>{other, g});
    if (ranks[i] == 1) {  // the same for all matrices of the other
      const int32_t rank = std::max(ranks[1 - i], 2);
      Dims batch;
      for (int32_t k = 0; k + 2 < rank; ++k) batch.push_back(k);
      if (!batch.empty())
        product =
            s.op("ReduceSum", {product, s.rewrite().ints(batch)}, {AttrValue::of("keepdims", int64_t{0})});
      s.give(i, s.shaped_as(product, s.x[i]));
    } else if (ranks[1 - i] == 1) {
      s.give(i, product);
    } else {
      s.give(i, s.reduced(product, s.y, s.x[i], 2));
    }
  }
}
void gemm(Step& s) {
  const int64_t a = s.integer("transA", 0), b = s.integer("transB", 0);
  const double alpha = s.real("alpha", 1), beta = s.real("beta", 1);
  const auto product = [&](tn_value left, int64_t turn_left, tn_value right, int64_t turn_right) {
    return s.op("Gemm", {left, right},
                {AttrValue::of("transA", turn_left), AttrValue::of("transB", turn_right),
                 AttrValue::of("alpha", alpha)});
  };
  if (s.wants(0)) s.give(0, a ? product(s.x[1], b, s.g, 1) : product(s.g, 0, s.x[1], !b));
  if (s.wants(1)) s.give(1, b ? product(s.g, 1, s.x[0], a) : product(s.x[0], !a, s.g, 0));
  if (s.wants(2)) s.give_broadcast(2, beta == 1 ? s.g : s.op("Mul", {s.g, s.number(beta)}));
}

// ---- shapes

void transpose(Step& s) {
  const Dims perm = s.integers("perm");
  if (perm.empty()) return s.give(0, s.op("Transpose", {s.g}));
  Dims back(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] < 0 || static_cast<size_t>(perm[i]) >= back.size()) s.refuse("its perm is no permutation");
    back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  s.give(0, s.op("Transpose", {s.g}, {AttrValue::of("perm", Span<const int64_t>(back))}));
}
void reshape(Step& s) { s.give(0, s.shaped_as(s.g, s.x[0])); }
void expand(Step& s) { s.give_broadcast(0, s.g); }
void concat(Step& s) {
  const int64_t axis = s.integer("axis", 0);
  std::vector<tn_value> sizes;
  for (const tn_value x : s.x) sizes.push_back(s.op("Gather", {s.shape_of(x), s.rewrite().ints({axis})}));
  const tn_value split =
      sizes.size() == 1 ? sizes[0] : s.op("Concat", sizes, {AttrValue::of("axis", int64_t{0})});
  const auto parts = s.rewrite().make_many("Split", {s.g, split}, {AttrValue::of("axis", axis)},
                                           static_cast<uint32_t>(s.x.size()));
  for (size_t i = 0; i < s.x.size(); ++i) s.give(i, parts[i]);
}

// ---- reductions

/// g with the axes of the operand again, each of size 1 where it was summed over.
tn_value with_summed_axes(Step& s, tn_value g) {
  if (s.integer("keepdims", 1)) return g;
  const tn_value axes = s.x.size() > 1 ? s.x[1] : tn_value{TN_NONE};
  const auto known = s.graph().constant(axes);
  if (axes != TN_NONE && !known) s.refuse("its axes are not constant");
  if (known && known->count() > 0) return s.op("Unsqueeze", {g, axes});
  if (s.integer("noop_with_empty_axes", 0)) return g;
  const std::vector<int64_t> ones(static_cast<size_t>(s.rank(s.x[0])), 1);
  return s.op("Reshape", {g, s.rewrite().ints(ones)});
}
void reduce_sum(Step& s) { s.give(0, s.op("Expand", {with_summed_axes(s, s.g), s.shape_of(s.x[0])})); }
void reduce_mean(Step& s) {
  // The sizes as float32: as integers their quotient does not exist for an empty operand.
  const auto size = [&](tn_value v) {
    return s.op("Cast", {s.op("Size", {v})}, {AttrValue::of("to", int64_t{1})});
  };
  const tn_value count = s.op("CastLike", {s.op("Div", {size(s.x[0]), size(s.y)}), s.g});
  const tn_value spread = s.op("Expand", {with_summed_axes(s, s.g), s.shape_of(s.x[0])});
  s.give(0, s.op("Div", {spread, count}));
}
tn_value summed(Step& s, tn_value v) {
  return s.op("ReduceSum", {v, s.rewrite().ints({s.integer("axis", -1)})},
              {AttrValue::of("keepdims", int64_t{1})});
}
void softmax(Step& s) {
  const tn_value weighted = s.op("Mul", {s.g, s.y});
  s.give(0, s.op("Sub", {weighted, s.op("Mul", {s.y, summed(s, weighted)})}));
}
void log_softmax(Step& s) {
  s.give(0, s.op("Sub", {s.g, s.op("Mul", {s.op("Exp", {s.y}), summed(s, s.g)})}));
}

struct Entry {
  const char* op;
  GradientRule rule;
};
constexpr Entry rules[] = {
    {"Abs", abs},
    {"Add", add},
    {"Cast", cast},
    {"CastLike", cast},
    {"Ceil", nothing},
    {"Concat", concat},
    {"Cos", cos},
    {"Div", div},
    {"Erf", erf},
    {"Exp", exp},
    {"Expand", expand},
    {"Flatten", reshape},
    {"Floor", nothing},
    {"Gemm", gemm},
    {"Identity", identity},
    {"LeakyRelu", leaky_relu},
    {"Log", log},
    {"LogSoftmax", log_softmax},
    {"MatMul", matmul},
    {"Mul", mul},
    {"Neg", neg},
    {"Pow", pow},
    {"Reciprocal", reciprocal},
    {"ReduceMean", reduce_mean},
    {"ReduceSum", reduce_sum},
    {"Relu", relu},
    {"Reshape", reshape},
    {"Round", nothing},
    {"Sigmoid", sigmoid},
    {"Sign", nothing},
    {"Sin", sin},
    {"Softmax", softmax},
    {"Softplus", softplus},
    {"Sqrt", sqrt},
    {"Squeeze", reshape},
    {"Sub", sub},
    {"Sum", add},
    {"Tanh", tanh},
    {"Transpose", transpose},
    {"Unsqueeze", reshape},
    {"Where", where},
};

}  // namespace

GradientRule gradient_rule(std::string_view op) {
  for (const Entry& e : rules)
    if (op == e.op) return e.rule;
  return nullptr;
}
std::string differentiable_operators() {
  std::string all;
  for (const Entry& e : rules) all += (all.empty() ? "" : ", ") + std::string(e.op);
  return all;
}

}  // namespace tenon::ops
