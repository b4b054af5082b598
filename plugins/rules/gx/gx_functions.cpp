// The functions of gx. The enum has the order of functions() in gx_parse.cpp.
#include <algorithm>
#include <cmath>

#include "gx/gx_eval.hpp"

namespace tenon::rules::gx {
namespace {

enum Id : uint16_t {
  Shape,
  Rank,
  Numel,
  Bytes,
  Dtype,
  Const,
  Axes,
  SuffixAxes,
  First,
  SwapsLast2,
  Broadcastable,
  Present,
  Opname,
  Attr,
  Default,
  Item,
  All,
  Any,
  IsFinite,
  Min,
  Max,
  Sum,
  Sqrt,
  Exp,
  Log,
  Abs,
  Reshape,
  Transpose,
  Concat,
  Split,
  Slice_,
  Pad,
  Cast,
  Full,
  Matmul,
  Len,
  Copies,
  Same
};

bool integers(const Value& v, std::vector<int64_t>* out) {
  out->clear();
  if (v.is_number() && v.is_int) {
    out->push_back(static_cast<int64_t>(v.number));
    return true;
  }
  if (v.kind == Value::List) {
    for (const auto& i : v.list) {
      if (!i.is_number() || i.number != std::floor(i.number) || std::fabs(i.number) > 9e15) return false;
      out->push_back(static_cast<int64_t>(i.number));
    }
    return true;
  }
  if (v.kind == Value::Tensor) {
    for (double d : *v.tensor.data) {
      if (d != std::floor(d) || std::fabs(d) > 9e15) return false;
      out->push_back(static_cast<int64_t>(d));
    }
    return true;
  }
  return false;
}

Value reshape(Tensor t, std::vector<int64_t> dims) {
  int64_t known = 1, holes = 0;
  for (int64_t d : dims) {
    if (d == -1)
      ++holes;
    else if (d < 0)
      return Value::unknown("reshape: dimension " + std::to_string(d));
    else
      known = sdk::checked_mul(known, d);
  }
  for (auto& d : dims)
    if (d == -1 && holes == 1 && known > 0 && t.count() % known == 0)
      d = t.count() / known, known *= d, holes = 0;
  if (holes || known != t.count())
    return Value::unknown("reshape: " + sdk::dims_text(t.dims) + " does not fit " + sdk::dims_text(dims));
  t.dims = std::move(dims);
  return Value::of(std::move(t));
}

Value transpose(const Tensor& t, const std::vector<int64_t>& perm) {
  const size_t rank = t.dims.size();
  std::vector<bool> seen(rank);
  bool ok = perm.size() == rank;
  for (size_t i = 0; ok && i < rank; ++i) {
    ok = perm[i] >= 0 && perm[i] < static_cast<int64_t>(rank) && !seen[static_cast<size_t>(perm[i])];
    if (ok) seen[static_cast<size_t>(perm[i])] = true;
  }
  if (!ok)
    return Value::unknown("transpose: " + sdk::dims_text(perm) + " is no permutation of rank " +
                          std::to_string(rank));
  std::vector<int64_t> stride(rank, 1), step(rank), at(rank, 0);
  for (size_t i = rank; i-- > 1;) stride[i - 1] = stride[i] * t.dims[i];
  Tensor out;
  out.dtype = t.dtype;
  for (size_t i = 0; i < rank; ++i) {
    out.dims.push_back(t.dims[static_cast<size_t>(perm[i])]);
    step[i] = stride[static_cast<size_t>(perm[i])];
  }
  out.data->resize(t.data->size());
  int64_t from = 0;
  for (auto& d : *out.data) {
    d = (*t.data)[static_cast<size_t>(from)];
    for (size_t i = rank; i-- > 0;) {
      from += step[i];
      if (++at[i] < out.dims[i]) break;
      from -= step[i] * out.dims[i];
      at[i] = 0;
    }
  }
  return Value::of(std::move(out));
}

/// Elements [from, to) along an axis.
Tensor cut(const Tensor& t, size_t axis, int64_t from, int64_t to) {
  int64_t outer = 1, inner = 1;
  for (size_t i = 0; i < axis; ++i) outer *= t.dims[i];
  for (size_t i = axis + 1; i < t.dims.size(); ++i) inner *= t.dims[i];
  Tensor out;
  out.dtype = t.dtype;
  out.dims = t.dims;
  out.dims[axis] = to - from;
  for (int64_t o = 0; o < outer; ++o) {
    const auto begin = t.data->begin() + (o * t.dims[axis] + from) * inner;
    out.data->insert(out.data->end(), begin, begin + (to - from) * inner);
  }
  return out;
}

bool normal_axis(const Value& v, size_t rank, size_t* axis) {
  if (!v.is_number() || !v.is_int) return false;
  const double a = v.number < 0 ? v.number + static_cast<double>(rank) : v.number;
  if (a < 0 || a >= static_cast<double>(rank)) return false;
  *axis = static_cast<size_t>(a);
  return true;
}

Value concat(const std::vector<Tensor>& parts, size_t axis) {
  Tensor out = parts[0];
  out.own();
  out.dims[axis] = 0;
  int64_t outer = 1;
  for (size_t i = 0; i < axis; ++i) outer *= out.dims[i];
  for (const auto& p : parts) {
    auto same = p.dims;
    if (same.size() != out.dims.size()) return Value::unknown("concat: ranks differ");
    same[axis] = out.dims[axis];
    if (same != out.dims) return Value::unknown("concat: shapes differ in another axis");
    out.dims[axis] += p.dims[axis];
  }
  out.data = std::make_shared<std::vector<double>>();
  for (int64_t o = 0; o < outer; ++o)
    for (const auto& p : parts) {
      const int64_t each = outer ? p.count() / outer : 0;
      out.data->insert(out.data->end(), p.data->begin() + o * each, p.data->begin() + (o + 1) * each);
    }
  return Value::of(std::move(out));
}

Value matmul(const Tensor& a, const Tensor& b, int64_t limit) {
  if (a.dims.size() != 2 || b.dims.size() != 2 || a.dims[1] != b.dims[0])
    return Value::unknown("matmul: wants [m,k] and [k,n], found " + sdk::dims_text(a.dims) + " and " +
                          sdk::dims_text(b.dims));
  const int64_t m = a.dims[0], k = a.dims[1], n = b.dims[1];
  if (sdk::checked_mul(sdk::checked_mul(m, k), n) > limit)
    return Value::unknown("matmul: too large to compute");
  Tensor out;
  out.dims = {m, n};
  out.data->assign(static_cast<size_t>(m * n), 0);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t x = 0; x < k; ++x) {
      const double f = (*a.data)[static_cast<size_t>(i * k + x)];
      for (int64_t j = 0; j < n; ++j)
        (*out.data)[static_cast<size_t>(i * n + j)] += f * (*b.data)[static_cast<size_t>(x * n + j)];
    }
  return Value::of(std::move(out));
}

Value pad(const Tensor& t, const std::vector<int64_t>& pads, double with, int64_t limit) {
  const size_t rank = t.dims.size();
  if (pads.size() != 2 * rank) return Value::unknown("pad: wants " + std::to_string(2 * rank) + " amounts");
  Tensor out;
  out.dtype = t.dtype;
  int64_t n = 1;
  for (size_t i = 0; i < rank; ++i) {
    if (pads[i] < 0 || pads[rank + i] < 0) return Value::unknown("pad: a negative amount");
    out.dims.push_back(t.dims[i] + pads[i] + pads[rank + i]);
    n = sdk::checked_mul(n, out.dims[i]);
  }
  if (n > limit) return Value::unknown("pad: too large to compute");
  out.data->assign(static_cast<size_t>(n), with);
  std::vector<int64_t> at(rank, 0);
  for (double d : *t.data) {
    int64_t to = 0;
    for (size_t i = 0; i < rank; ++i) to = to * out.dims[i] + at[i] + pads[i];
    (*out.data)[static_cast<size_t>(to)] = d;
    for (size_t i = rank; i-- > 0;) {
      if (++at[i] < t.dims[i]) break;
      at[i] = 0;
    }
  }
  return Value::of(std::move(out));
}

}  // namespace

/// Only a name to befriend; holds what needs the evaluator's private parts.
struct Library {
  static Value number(Evaluator& e, const Value& v, const char* who) {
    const Value t = e.tensor(v);
    if (t.is_unknown()) return t;
    if (t.tensor.count() != 1)
      return Value::unknown(std::string(who) + ": wants one number, found " +
                            std::to_string(t.tensor.count()) + " elements");
    Value r = Value::real((*t.tensor.data)[0]);
    r.is_int = sdk::is_integer(t.tensor.dtype) && r.number == std::floor(r.number);
    return r;
  }

  /// Applies f to each element.
  template <class F>
  static Value map(Evaluator& e, const Value& v, F&& f, tn_dtype dtype = TN_FLOAT64) {
    if (v.is_number()) {
      Value r = Value::real(f(v.number));
      return dtype == TN_BOOL ? Value::boolean(r.number != 0) : r;
    }
    Value t = e.tensor(v);
    if (t.is_unknown()) return t;
    if (!e.spend(t.tensor.count())) return Value::unknown("too large to compute");
    for (double& d : t.tensor.own()) d = f(d);
    t.tensor.dtype = dtype;
    return t;
  }

  static Value extreme(Evaluator& e, const std::vector<Value>& args, bool least) {
    std::vector<double> all;
    bool whole = true;
    for (const auto& a : args) {
      const Value t = e.tensor(a);
      if (t.is_unknown()) return t;
      whole = whole && sdk::is_integer(t.tensor.dtype);
      all.insert(all.end(), t.tensor.data->begin(), t.tensor.data->end());
    }
    if (all.empty()) return Value::unknown("min or max of nothing");
    Value r = Value::real(least ? *std::min_element(all.begin(), all.end())
                                : *std::max_element(all.begin(), all.end()));
    r.is_int = whole;
    return r;
  }

  static Value dtype_of(Evaluator& e, const Value& v) {
    if (v.kind == Value::Graph) {
      const tn_type t = e.scope_.type(v.graph);
      if (t.dtype == TN_DTYPE_NONE) return Value::unknown("dtype of '" + v.text + "'");
      return Value::string(sdk::dtype_name(t.dtype));
    }
    const Value t = e.tensor(v);
    return t.is_unknown() ? t : Value::string(sdk::dtype_name(t.tensor.dtype));
  }

  /// A list of operands of the pattern, not a list of numbers.
  static bool operands(const Value& v) {
    return v.kind == Value::List && std::any_of(v.list.begin(), v.list.end(), [](const Value& i) {
             return i.kind == Value::Graph || i.kind == Value::Absent;
           });
  }

  /// The sum of f over the operands of a list.
  template <class F>
  static Value total(Evaluator& e, const Value& v, F&& f) {
    Value n = Value::integer(0);
    for (const auto& i : v.list)
      if (i.kind != Value::Absent) n = e.arithmetic(Op::Add, n, f(i));
    return n;
  }

  static Value bytes(Evaluator& e, const Value& v) {
    if (operands(v)) return total(e, v, [&](const Value& i) { return bytes(e, i); });
    tn_dtype d = v.kind == Value::Tensor ? v.tensor.dtype : TN_FLOAT32;
    if (v.kind == Value::Graph) {
      d = e.scope_.type(v.graph).dtype;
      if (d == TN_DTYPE_NONE) {
        if (!e.estimate_) return Value::unknown("dtype of '" + v.text + "'");
        d = TN_FLOAT32;
      }
    }
    return e.arithmetic(Op::Mul, numel(e, v), Value::real(TN_DTYPE_BITS(d) / 8.0));
  }

  static Value numel(Evaluator& e, const Value& v) {
    if (operands(v)) return total(e, v, [&](const Value& i) { return numel(e, i); });
    const Value s = e.shape(v);
    if (s.is_unknown()) return e.estimate_ ? Value::integer(1) : s;
    Value n = Value::integer(1);
    for (const auto& d : s.list) n = e.arithmetic(Op::Mul, n, d);
    return n;
  }

  /// One-directional: a broadcasts to b without changing b's shape.
  static Value broadcastable(Evaluator& e, const Value& a, const Value& b) {
    const Value x = e.shape(a), y = e.shape(b);
    if (x.is_unknown()) return x;
    if (y.is_unknown()) return y;
    if (x.list.size() > y.list.size()) return Value::boolean(false);
    Value result = Value::boolean(true);
    for (size_t i = 0; i < x.list.size(); ++i) {
      const Value& d = x.list[i];
      if (d.kind == Value::Number && d.number == 1) continue;
      Value same = e.truth(e.equal(d, y.list[y.list.size() - x.list.size() + i]));
      if (same.is_unknown())
        result = std::move(same);
      else if (same.number == 0)
        return same;
    }
    return result;
  }
};

Value Evaluator::call(const Expr& call_expr) {
  const Expr e = call_expr;  // the program's nodes stay, but their vector is read through other calls
  const Id id = static_cast<Id>(e.function);
  const Expr& a0 = program_->nodes[e.args[0]];
  // Functions of nodes do not evaluate their first argument.
  switch (id) {
    case Present: {
      if (a0.ref.kind == Ref::Node) return Value::boolean(scope_.present(a0.ref.index));
      const Value v = eval(e.args[0]);
      return Value::boolean(v.kind != Value::Absent && (v.kind != Value::List || !v.list.empty()));
    }
    case Copies:
      return Value::integer(scope_.copies(a0.ref.index));
    case Opname:
      return scope_.present(a0.ref.index) ? Value::string(scope_.op(a0.ref.index)) : Value{};
    case Axes:
      return scope_.present(a0.ref.index) ? scope_.axes(a0.ref.index) : Value{};
    case Attr: {
      const Value name = eval(e.args[1]);
      if (name.kind != Value::Text) return Value::unknown("attr: its second argument must be text");
      Value v = scope_.present(a0.ref.index) ? scope_.attribute(a0.ref.index, name.text) : Value{};
      return v.kind == Value::Absent && e.args.size() > 2 ? eval(e.args[2]) : v;
    }
    default:
      break;
  }
  std::vector<Value> a;
  for (uint32_t i : e.args) a.push_back(eval(i));
  if (id == Default) return a[0].kind == Value::Absent ? a[1] : a[0];
  if (id == Same)
    return Value::boolean(
        a[0].kind == a[1].kind &&
        (a[0].kind == Value::Absent || (a[0].kind == Value::Graph && a[0].graph == a[1].graph)));
  for (const auto& v : a)
    if (v.is_unknown() && !(id == Bytes && estimate_)) return v;
  if (a[0].kind == Value::Absent) {
    if (id == Const) return Value::boolean(false);
    if (id == Bytes || id == Numel) return Value::integer(0);
    return Value::unknown("'" + program_->nodes[e.args[0]].text + "' is absent");
  }
  std::vector<int64_t> ints;
  switch (id) {
    case Shape:
      return shape(a[0]);
    case Rank: {
      const Value s = shape(a[0]);
      if (s.is_unknown()) return Value::unknown("rank of " + a[0].show());
      return Value::integer(static_cast<int64_t>(s.list.size()));
    }
    case Len: {
      const Value s = a[0].kind == Value::List ? a[0] : shape(a[0]);
      if (s.is_unknown()) return s;
      if (a[0].kind == Value::List) return Value::integer(static_cast<int64_t>(s.list.size()));
      return s.list.empty() ? Value::unknown("len: a scalar has none") : s.list[0];
    }
    case Numel:
      return Library::numel(*this, a[0]);
    case Bytes:
      return Library::bytes(*this, a[0]);
    case Dtype:
      return Library::dtype_of(*this, a[0]);
    case Const:
      if (Library::operands(a[0]))
        return Value::boolean(std::all_of(a[0].list.begin(), a[0].list.end(), [&](const Value& i) {
          return i.kind == Value::Absent || (i.kind == Value::Graph && scope_.is_constant(i.graph));
        }));
      return Value::boolean(a[0].kind != Value::Graph || scope_.is_constant(a[0].graph));
    case SuffixAxes: {
      if (!a[1].is_number()) return Value::unknown("suffix_axes: the rank is not known");
      if (!integers(a[0], &ints)) return Value::unknown("suffix_axes: the axes are not known");
      for (auto& i : ints) i = i < 0 ? i + static_cast<int64_t>(a[1].number) : i;
      std::sort(ints.begin(), ints.end());
      const int64_t rank = static_cast<int64_t>(a[1].number), n = static_cast<int64_t>(ints.size());
      bool ok = n > 0;
      for (int64_t i = 0; i < n; ++i) ok = ok && ints[static_cast<size_t>(i)] == rank - n + i;
      return Value::boolean(ok);
    }
    case First: {
      if (!integers(a[0], &ints) || ints.empty())
        return Value::unknown("first: wants a list of axes, found " + a[0].show());
      if (a.size() == 2 && !a[1].is_number()) return Value::unknown("first: the rank is not known");
      if (a.size() == 2)
        for (auto& i : ints) i = i < 0 ? i + static_cast<int64_t>(a[1].number) : i;
      return Value::integer(*std::min_element(ints.begin(), ints.end()));
    }
    case SwapsLast2: {
      if (!a[1].is_number()) return Value::unknown("swaps_last2: the rank is not known");
      const int64_t rank = static_cast<int64_t>(a[1].number);
      if (!integers(a[0], &ints))
        return Value::unknown("swaps_last2: wants a permutation, found " + a[0].show());
      bool ok = rank >= 2 && static_cast<int64_t>(ints.size()) == rank;
      for (int64_t i = 0; ok && i < rank; ++i)
        ok = ints[static_cast<size_t>(i)] == (i == rank - 1 ? rank - 2 : i == rank - 2 ? rank - 1 : i);
      return Value::boolean(ok);
    }
    case Broadcastable:
      return Library::broadcastable(*this, a[0], a[1]);
    case Item:
      return Library::number(*this, a[0], "item");
    case All:
    case Any: {
      Value t = a[0].kind == Value::List ? a[0] : tensor(a[0]);
      if (t.is_unknown()) return t;
      bool all = true, any = false;
      if (t.kind == Value::List) {
        for (const auto& i : t.list) {
          const Value v = truth(i);
          if (v.is_unknown()) return v;
          all = all && v.number != 0;
          any = any || v.number != 0;
        }
      } else {
        for (double d : *t.tensor.data) {
          all = all && d != 0;
          any = any || d != 0;
        }
      }
      return Value::boolean(id == All ? all : any);
    }
    case IsFinite:
      return Library::map(
          *this, a[0], [](double d) { return std::isfinite(d) ? 1.0 : 0.0; }, TN_BOOL);
    case Min:
      return Library::extreme(*this, a, true);
    case Max:
      return Library::extreme(*this, a, false);
    case Sum: {
      const Value t = tensor(a[0]);
      if (t.is_unknown()) return t;
      double s = 0;
      for (double d : *t.tensor.data) s += d;
      Value r = Value::real(s);
      r.is_int = sdk::is_integer(t.tensor.dtype);
      return r;
    }
    case Sqrt:
      return Library::map(*this, a[0], [](double d) { return std::sqrt(d); });
    case Exp:
      return Library::map(*this, a[0], [](double d) { return std::exp(d); });
    case Log:
      return Library::map(*this, a[0], [](double d) { return std::log(d); });
    case Abs:
      return Library::map(*this, a[0], [](double d) { return std::fabs(d); });
    default:
      break;
  }

  // What is left works on tensors.
  const auto need_ints = [&](size_t i) {
    return integers(a[i].kind == Value::Graph ? tensor(a[i]) : a[i], &ints);
  };
  if (id == Full) {
    if (!need_ints(0)) return Value::unknown("full: wants a list of dimensions, found " + a[0].show());
    const Value v = Library::number(*this, a[1], "full");
    if (v.is_unknown()) return v;
    const int64_t n = sdk::element_count(ints);
    if (!spend(n)) return Value::unknown("too large to compute");
    Tensor t;
    t.dims = ints;
    t.data->assign(static_cast<size_t>(n), v.number);
    return Value::of(std::move(t));
  }
  if (id == Concat) {
    if (a[0].kind != Value::List || a[0].list.empty())
      return Value::unknown("concat: wants a list of tensors, found " + a[0].show());
    std::vector<Tensor> parts;
    for (const auto& i : a[0].list) {
      Value t = tensor(i);
      if (t.is_unknown()) return t;
      if (!spend(t.tensor.count())) return Value::unknown("too large to compute");
      parts.push_back(std::move(t.tensor));
    }
    size_t axis = 0;
    if (!normal_axis(a.size() > 1 ? a[1] : Value::integer(0), parts[0].dims.size(), &axis))
      return Value::unknown("concat: no such axis");
    return concat(parts, axis);
  }
  Value t = tensor(a[0]);
  if (t.is_unknown()) return t;
  if (!spend(t.tensor.count())) return Value::unknown("too large to compute");
  switch (id) {
    case Reshape:
      if (!need_ints(1)) return Value::unknown("reshape: wants a list of dimensions, found " + a[1].show());
      return reshape(std::move(t.tensor), ints);
    case Transpose: {
      if (a.size() > 1) {
        if (!need_ints(1)) return Value::unknown("transpose: wants a permutation, found " + a[1].show());
      } else {
        for (size_t i = t.tensor.dims.size(); i-- > 0;) ints.push_back(static_cast<int64_t>(i));
      }
      return transpose(t.tensor, ints);
    }
    case Split: {
      size_t axis = 0;
      if (!normal_axis(a.size() > 2 ? a[2] : Value::integer(0), t.tensor.dims.size(), &axis))
        return Value::unknown("split: no such axis");
      if (!need_ints(1)) return Value::unknown("split: wants a number of parts or their sizes");
      const int64_t n = t.tensor.dims[axis];
      if (a[1].is_number()) {
        const int64_t parts = ints[0];
        if (parts < 1 || parts > 4096 || n % parts)
          return Value::unknown("split: " + std::to_string(n) + " into " + std::to_string(parts) +
                                " equal parts");
        ints.assign(static_cast<size_t>(parts), n / parts);
      }
      int64_t at = 0;
      Value r = Value::items({});
      for (int64_t size : ints) {
        if (size < 0 || size > n - at) return Value::unknown("split: the sizes exceed " + std::to_string(n));
        r.list.push_back(Value::of(cut(t.tensor, axis, at, at + size)));
        at += size;
      }
      return at == n ? r : Value::unknown("split: the sizes do not add up to " + std::to_string(n));
    }
    case Slice_: {
      size_t axis = 0;
      if (!normal_axis(a[1], t.tensor.dims.size(), &axis) || !a[2].is_number() || !a[3].is_number())
        return Value::unknown("slice: wants (tensor, axis, from, to)");
      const double n = static_cast<double>(t.tensor.dims[axis]);
      const auto bound = [n](double d) {
        return static_cast<int64_t>(std::clamp(d < 0 ? d + n : d, 0.0, n));
      };
      const int64_t from = bound(a[2].number);
      return Value::of(cut(t.tensor, axis, from, std::max(from, bound(a[3].number))));
    }
    case Pad: {
      if (!need_ints(1)) return Value::unknown("pad: wants a list of amounts");
      const Value with = a.size() > 2 ? Library::number(*this, a[2], "pad") : Value::real(0);
      return with.is_unknown() ? with : pad(t.tensor, ints, with.number, budget_);
    }
    case Cast: {
      const tn_dtype d = a[1].kind == Value::Text ? sdk::dtype_from_name(a[1].text) : TN_DTYPE_NONE;
      if (d == TN_DTYPE_NONE) return Value::unknown("cast: unknown type " + a[1].show());
      t.tensor.dtype = d;
      if (sdk::is_integer(d))
        for (double& x : t.tensor.own()) x = std::trunc(x);
      return t;
    }
    case Matmul: {
      const Value b = tensor(a[1]);
      return b.is_unknown() ? b : matmul(t.tensor, b.tensor, budget_);
    }
    default:
      return Value::unknown("not a function");
  }
}

}  // namespace tenon::rules::gx
