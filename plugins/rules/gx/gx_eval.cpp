#include "gx/gx_eval.hpp"

#include <algorithm>
#include <cmath>

namespace tenon::rules::gx {
namespace {

double apply(Op op, double a, double b) {
  switch (op) {
    case Op::Add:
      return a + b;
    case Op::Sub:
      return a - b;
    case Op::Mul:
      return a * b;
    case Op::Div:
      return a / b;
    case Op::FloorDiv:
      return std::floor(a / b);
    case Op::Mod:
      return a - std::floor(a / b) * b;
    default:
      return std::pow(a, b);
  }
}
double apply(Relation r, double a, double b) {
  switch (r) {
    case Relation::Eq:
      return a == b;
    case Relation::Ne:
      return a != b;
    case Relation::Lt:
      return a < b;
    case Relation::Le:
      return a <= b;
    case Relation::Gt:
      return a > b;
    default:
      return a >= b;
  }
}

/// out[i] = f(a[..], b[..]) with numpy broadcasting; a's memory is used again when nobody else reads it.
template <class F>
Tensor broadcast(Tensor a, const Tensor& b, const std::vector<int64_t>& dims, F&& f) {
  const int64_t n = sdk::element_count(dims);
  const auto left = std::move(a.data);
  const bool in_place = a.dims == dims;
  Tensor out;
  out.dims = dims;
  out.data = in_place && left.use_count() == 1
                 ? left
                 : std::make_shared<std::vector<double>>(static_cast<size_t>(n));
  double* to = out.data->data();
  const double* x = left->data();
  const double* y = b.data->data();
  if (b.count() == 1 && in_place) {
    for (int64_t i = 0; i < n; ++i) to[i] = f(x[i], y[0]);
    return out;
  }
  const size_t rank = dims.size();
  const std::vector<int64_t>& adims = in_place ? dims : a.dims;
  std::vector<int64_t> sa(rank, 0), sb(rank, 0), at(rank, 0);
  const auto strides = [&](const std::vector<int64_t>& d, std::vector<int64_t>& s) {
    int64_t step = 1;
    for (size_t i = d.size(); i-- > 0;) {
      s[rank - d.size() + i] = d[i] == 1 ? 0 : step;
      step *= d[i];
    }
  };
  strides(adims, sa);
  strides(b.dims, sb);
  int64_t ia = 0, ib = 0;
  for (int64_t i = 0; i < n; ++i) {
    to[i] = f(x[ia], y[ib]);
    for (size_t axis = rank; axis-- > 0;) {
      ia += sa[axis];
      ib += sb[axis];
      if (++at[axis] < dims[axis]) break;
      ia -= sa[axis] * dims[axis];
      ib -= sb[axis] * dims[axis];
      at[axis] = 0;
    }
  }
  return out;
}

}  // namespace

bool broadcast_dims(const std::vector<int64_t>& a, const std::vector<int64_t>& b, std::vector<int64_t>* out) {
  const size_t n = std::max(a.size(), b.size());
  out->assign(n, 1);
  for (size_t i = 0; i < n; ++i) {
    const int64_t x = i + a.size() >= n ? a[i + a.size() - n] : 1,
                  y = i + b.size() >= n ? b[i + b.size() - n] : 1;
    if (x != y && x != 1 && y != 1) return false;
    (*out)[i] = x == 1 ? y : x;
  }
  return true;
}

bool Evaluator::spend(int64_t elements) {
  budget_ -= elements;
  return budget_ >= 0;
}

Value Evaluator::run(const Program& program) {
  program_ = &program;
  return eval(program.root);
}

Value Evaluator::tensor(const Value& v) {
  switch (v.kind) {
    case Value::Tensor:
    case Value::Unknown:
      return v;
    case Value::Bool:
    case Value::Number: {
      Tensor t;
      t.data->push_back(v.number);
      if (v.is_int) t.dtype = TN_INT64;
      return Value::of(std::move(t));
    }
    case Value::List: {
      Tensor t;
      bool whole = true;
      for (const auto& i : v.list) {
        if (i.is_unknown()) return i;
        if (!i.is_number()) return Value::unknown("a list with " + i.show() + " is no tensor");
        t.data->push_back(i.number);
        whole = whole && i.is_int;
      }
      if (whole && !v.list.empty()) t.dtype = TN_INT64;
      t.dims = {static_cast<int64_t>(v.list.size())};
      return Value::of(std::move(t));
    }
    case Value::Graph: {
      tn_tensor raw;
      Tensor t;
      if (scope_.constant(v.graph, &raw)) {
        int64_t n = 1;
        for (int32_t i = 0; i < raw.rank; ++i) n = sdk::checked_mul(n, raw.dims[i]);
        if (!spend(n)) return Value::unknown("'" + v.text + "' is too large to compute with");
        if (!load(raw, &t))
          return Value::unknown("'" + v.text + "' has elements of type " + sdk::dtype_name(raw.dtype) +
                                ", which are no numbers");
        return Value::of(std::move(t));
      }
      std::vector<tn_dim> known;
      if (scope_.elements(v.graph, &known)) {
        for (tn_dim d : known) {
          if (d < 0) return Value::unknown("'" + v.text + "' has elements that are not known");
          t.data->push_back(static_cast<double>(d));
        }
        const tn_type ty = scope_.type(v.graph);
        if (ty.rank == 1) t.dims = {t.count()};
        t.dtype = ty.dtype;
        if (ty.rank == 0 || ty.rank == 1) return Value::of(std::move(t));
      }
      return Value::unknown("'" + v.text + "' is not constant");
    }
    case Value::Absent:
      return Value::unknown("it is absent");
    case Value::Dim:
      return Value::unknown("a dimension is not known");
    case Value::Text:
      return Value::unknown("text " + v.show() + " is no number");
  }
  return Value::unknown("no number");
}

Value Evaluator::shape(const Value& v) {
  if (v.kind == Value::Tensor) return Value::ints(v.tensor.dims);
  if (v.is_number()) return Value::items({});
  if (v.kind == Value::List) return Value::items({Value::integer(static_cast<int64_t>(v.list.size()))});
  if (v.kind != Value::Graph) return v.is_unknown() ? v : Value::unknown("shape of " + v.show());
  const tn_type t = scope_.type(v.graph);
  if (t.kind != TN_KIND_TENSOR || t.rank < 0) return Value::unknown("shape of '" + v.text + "'");
  Value r = Value::items({});
  for (tn_dim d : sdk::dims_of(t)) {
    if (d >= 0) {
      r.list.push_back(Value::integer(d));
    } else if (estimate_) {
      r.list.push_back(Value::integer(std::max<int64_t>(1, scope_.least(d))));
    } else {
      Value s;
      s.kind = Value::Dim;
      s.dim = d;
      s.text = v.text;
      r.list.push_back(std::move(s));
    }
  }
  return r;
}

Value Evaluator::truth(const Value& v) {
  switch (v.kind) {
    case Value::Unknown:
      return v;
    case Value::Bool:
    case Value::Number:
      return Value::boolean(v.number != 0);
    case Value::Absent:
      return Value::boolean(false);
    case Value::List:
      return Value::boolean(!v.list.empty());
    case Value::Text:
      return Value::boolean(!v.text.empty());
    case Value::Dim:
      return Value::unknown("a dimension of '" + v.text + "' is not known");
    default:
      break;
  }
  const Value t = tensor(v);
  if (t.is_unknown()) return t;
  if (t.tensor.count() != 1)
    return Value::unknown("a tensor of " + std::to_string(t.tensor.count()) +
                          " elements is neither true nor false; use all() or any()");
  return Value::boolean((*t.tensor.data)[0] != 0);
}

Value Evaluator::equal(const Value& a, const Value& b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (a.kind == Value::Absent || b.kind == Value::Absent) return Value::boolean(a.kind == b.kind);
  if (a.kind == Value::Text || b.kind == Value::Text)
    return Value::boolean(a.kind == b.kind && a.text == b.text);
  const auto is_dim = [](const Value& v) {
    return v.kind == Value::Dim || (v.kind == Value::Number && v.is_int);
  };
  if ((a.kind == Value::Dim || b.kind == Value::Dim) && is_dim(a) && is_dim(b)) {
    const tn_dim x = a.kind == Value::Dim ? a.dim : static_cast<tn_dim>(a.number),
                 y = b.kind == Value::Dim ? b.dim : static_cast<tn_dim>(b.number);
    if (x == y) return Value::boolean(true);
    return Value::truth(
        scope_.compare(TN_DIM_EQ, x, y),
        "whether two dimensions of '" + (a.kind == Value::Dim ? a.text : b.text) + "' are equal");
  }
  if (a.kind == Value::List && b.kind == Value::List) {
    if (a.list.size() != b.list.size()) return Value::boolean(false);
    Value result = Value::boolean(true);
    for (size_t i = 0; i < a.list.size(); ++i) {
      Value e = truth(equal(a.list[i], b.list[i]));
      if (e.is_unknown())
        result = std::move(e);
      else if (e.number == 0)
        return e;
    }
    return result;
  }
  return relate(Relation::Eq, a, b);
}

Value Evaluator::relate(Relation r, const Value& a, const Value& b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (r == Relation::In || r == Relation::NotIn) {
    if (b.kind != Value::List && b.kind != Value::Tensor && b.kind != Value::Graph)
      return Value::unknown("'in' wants a list on its right");
    Value l = b;
    if (b.kind != Value::List) {
      const Value t = tensor(b);
      if (t.is_unknown()) return t;
      l = Value::items({});
      for (double d : *t.tensor.data) l.list.push_back(Value::real(d));
    }
    Value result = Value::boolean(r == Relation::NotIn);
    for (const auto& i : l.list) {
      Value e = truth(equal(a, i));
      if (e.is_unknown())
        result = std::move(e);
      else if (e.number != 0)
        return Value::boolean(r == Relation::In);
    }
    return result;
  }
  const auto plain = [](const Value& v) { return v.is_number(); };
  if (plain(a) && plain(b)) return Value::boolean(apply(r, a.number, b.number) != 0);
  const bool equality = r == Relation::Eq || r == Relation::Ne;
  const auto special = [](const Value& v) {
    return v.kind == Value::Absent || v.kind == Value::Text || v.kind == Value::Dim || v.kind == Value::List;
  };
  if (equality && (special(a) || special(b)) &&
      !(a.kind == Value::Tensor || b.kind == Value::Tensor || a.kind == Value::Graph ||
        b.kind == Value::Graph)) {
    Value e = truth(equal(a, b));
    if (!e.is_unknown() && r == Relation::Ne) e.number = e.number == 0;
    return e;
  }
  if (a.kind == Value::Dim || b.kind == Value::Dim) {
    const tn_dim x = a.kind == Value::Dim ? a.dim : static_cast<tn_dim>(a.number),
                 y = b.kind == Value::Dim ? b.dim : static_cast<tn_dim>(b.number);
    const std::string why = "how a dimension of '" + (a.kind == Value::Dim ? a.text : b.text) + "' compares";
    switch (r) {
      case Relation::Lt:
        return Value::truth(scope_.compare(TN_DIM_LT, x, y), why);
      case Relation::Le:
        return Value::truth(scope_.compare(TN_DIM_LE, x, y), why);
      case Relation::Gt:
        return Value::truth(scope_.compare(TN_DIM_LT, y, x), why);
      default:
        return Value::truth(scope_.compare(TN_DIM_LE, y, x), why);
    }
  }
  if (equality && (a.kind == Value::Absent || b.kind == Value::Absent))
    return Value::boolean((a.kind == b.kind) == (r == Relation::Eq));
  Value x = tensor(a), y = tensor(b);
  if (x.is_unknown()) return x;
  if (y.is_unknown()) return y;
  std::vector<int64_t> dims;
  if (!broadcast_dims(x.tensor.dims, y.tensor.dims, &dims))
    return equality ? Value::boolean(r == Relation::Ne)
                    : Value::unknown("tensors of shapes " + sdk::dims_text(x.tensor.dims) + " and " +
                                     sdk::dims_text(y.tensor.dims) + " do not compare");
  if (!spend(sdk::element_count(dims))) return Value::unknown("too large to compute");
  Tensor t =
      broadcast(std::move(x.tensor), y.tensor, dims, [r](double p, double q) { return apply(r, p, q); });
  t.dtype = TN_BOOL;
  return Value::of(std::move(t));
}

Value Evaluator::compare(const Expr& e) {
  const std::vector<uint32_t> args = e.args;
  const std::vector<Relation> relations = e.relations;
  Value left = eval(args[0]);
  Value result = Value::boolean(true);
  for (size_t i = 0; i < relations.size(); ++i) {
    Value right = eval(args[i + 1]);
    Value r = relate(relations[i], left, right);
    if (relations.size() == 1) return r;
    r = truth(r);
    if (r.is_unknown())
      result = r;
    else if (r.number == 0)
      return r;
    left = std::move(right);
  }
  return result;
}

Value Evaluator::arithmetic(Op op, const Value& a, const Value& b) {
  if (a.is_unknown()) return a;
  if (b.is_unknown()) return b;
  if (a.is_number() && b.is_number()) {
    if ((op == Op::Div || op == Op::FloorDiv || op == Op::Mod) && b.number == 0)
      return Value::unknown("division by zero");
    Value v = Value::real(apply(op, a.number, b.number));
    v.is_int = a.is_int && b.is_int && op != Op::Div && v.number == std::floor(v.number);
    return v;
  }
  if (a.kind == Value::Dim || b.kind == Value::Dim) {
    const auto dim = [&](const Value& v, tn_dim* d) {
      if (v.kind == Value::Dim)
        *d = v.dim;
      else if (v.kind == Value::Number && v.is_int && v.number >= 0)
        *d = static_cast<tn_dim>(v.number);
      else
        return false;
      return true;
    };
    tn_dim x = 0, y = 0;
    tn_dim_op o = TN_DIM_ADD;
    bool ok = dim(a, &x) && dim(b, &y);
    switch (op) {
      case Op::Add:
        break;
      case Op::Sub:
        o = TN_DIM_SUB;
        break;
      case Op::Mul:
        o = TN_DIM_MUL;
        break;
      case Op::FloorDiv:
        o = TN_DIM_FLOORDIV;
        break;
      case Op::Mod:
        o = TN_DIM_MOD;
        break;
      default:
        ok = false;
    }
    if (!ok)
      return Value::unknown("a dimension of '" + (a.kind == Value::Dim ? a.text : b.text) + "' is not known");
    const tn_dim d = scope_.combine(o, x, y);
    if (d >= 0) return Value::integer(d);
    Value v;
    v.kind = Value::Dim;
    v.dim = d;
    v.text = a.kind == Value::Dim ? a.text : b.text;
    return v;
  }
  if (op == Op::Add && a.kind == Value::Text && b.kind == Value::Text) return Value::string(a.text + b.text);
  if (op == Op::Add && a.kind == Value::List && b.kind == Value::List) {
    Value v = a;
    v.list.insert(v.list.end(), b.list.begin(), b.list.end());
    return v;
  }
  if (op == Op::Mul && ((a.kind == Value::List && b.is_number() && b.is_int) ||
                        (b.kind == Value::List && a.is_number() && a.is_int))) {
    const Value& l = a.kind == Value::List ? a : b;
    const double times = a.kind == Value::List ? b.number : a.number;
    if (times * static_cast<double>(l.list.size()) > 4096)
      return Value::unknown("a list of more than 4096 items");
    Value v = Value::items({});
    for (double i = 0; i < times; ++i) v.list.insert(v.list.end(), l.list.begin(), l.list.end());
    return v;
  }
  return elementwise(op, tensor(a), tensor(b));
}

Value Evaluator::elementwise(Op op, Value x, Value y) {
  if (x.is_unknown()) return x;
  if (y.is_unknown()) return y;
  std::vector<int64_t> dims;
  if (!broadcast_dims(x.tensor.dims, y.tensor.dims, &dims))
    return Value::unknown("shapes " + sdk::dims_text(x.tensor.dims) + " and " +
                          sdk::dims_text(y.tensor.dims) + " do not broadcast");
  if (!spend(sdk::element_count(dims))) return Value::unknown("too large to compute");
  const auto run = [&](auto f) { return broadcast(std::move(x.tensor), y.tensor, dims, f); };
  Tensor t;
  switch (op) {  // one loop an operator, so that the common ones are plain
    case Op::Add:
      t = run([](double p, double q) { return p + q; });
      break;
    case Op::Sub:
      t = run([](double p, double q) { return p - q; });
      break;
    case Op::Mul:
      t = run([](double p, double q) { return p * q; });
      break;
    case Op::Div:
      t = run([](double p, double q) { return p / q; });
      break;
    default:
      t = run([op](double p, double q) { return apply(op, p, q); });
  }
  t.dtype = TN_FLOAT64;
  return Value::of(std::move(t));
}

Value Evaluator::index(const Expr& e) {
  const std::vector<uint32_t> args = e.args;
  const Value base = eval(args[0]), at = eval(args[1]);
  if (base.is_unknown()) return base;
  if (at.is_unknown()) return at;
  if (!at.is_number() || !at.is_int) return Value::unknown("an index must be an integer, found " + at.show());
  int64_t i = static_cast<int64_t>(at.number);
  if (base.kind == Value::List) {
    const int64_t n = static_cast<int64_t>(base.list.size());
    if (i < 0) i += n;
    if (i < 0 || i >= n)
      return Value::unknown("index " + at.show() + " is outside a list of " + std::to_string(n));
    return base.list[static_cast<size_t>(i)];
  }
  const Value t = tensor(base);
  if (t.is_unknown()) return t;
  if (t.tensor.dims.empty()) return Value::unknown("a scalar has no elements to index");
  const int64_t n = t.tensor.dims[0];
  if (i < 0) i += n;
  if (i < 0 || i >= n)
    return Value::unknown("index " + at.show() + " is outside [0, " + std::to_string(n) + ")");
  const int64_t each = t.tensor.count() / n;
  if (t.tensor.dims.size() == 1) return Value::real((*t.tensor.data)[static_cast<size_t>(i)]);
  Tensor out;
  out.dims.assign(t.tensor.dims.begin() + 1, t.tensor.dims.end());
  out.data->assign(t.tensor.data->begin() + i * each, t.tensor.data->begin() + (i + 1) * each);
  out.dtype = t.tensor.dtype;
  return Value::of(std::move(out));
}

Value Evaluator::slice(const Expr& e) {
  const std::vector<uint32_t> args = e.args;
  Value base = eval(args[0]);
  if (base.is_unknown()) return base;
  if (base.kind != Value::List) base = tensor(base);
  if (base.is_unknown()) return base;
  if (base.kind == Value::Tensor && base.tensor.dims.empty())
    return Value::unknown("a scalar cannot be sliced");
  const int64_t n = base.kind == Value::List ? static_cast<int64_t>(base.list.size()) : base.tensor.dims[0];
  int64_t bounds[2] = {0, n};
  for (int k = 0; k < 2; ++k) {
    if (args[static_cast<size_t>(k) + 1] == none) continue;
    const Value v = eval(args[static_cast<size_t>(k) + 1]);
    if (v.is_unknown()) return v;
    if (!v.is_number() || !v.is_int)
      return Value::unknown("a bound of a slice must be an integer, found " + v.show());
    int64_t i = static_cast<int64_t>(v.number);
    if (i < 0) i += n;
    bounds[k] = std::clamp<int64_t>(i, 0, n);
  }
  const int64_t from = bounds[0], to = std::max(bounds[0], bounds[1]);
  if (base.kind == Value::List) return Value::items({base.list.begin() + from, base.list.begin() + to});
  const int64_t each = n ? base.tensor.count() / n : 0;
  Tensor out;
  out.dims = base.tensor.dims;
  out.dims[0] = to - from;
  out.data->assign(base.tensor.data->begin() + from * each, base.tensor.data->begin() + to * each);
  out.dtype = base.tensor.dtype;
  return Value::of(std::move(out));
}

Value Evaluator::eval(uint32_t node) {
  const Expr& e = program_->nodes[node];
  switch (e.op) {
    case Op::Number: {
      Value v = Value::real(e.number);
      v.is_int = e.is_int;
      return v;
    }
    case Op::Bool:
      return Value::boolean(e.number != 0);
    case Op::Text:
      return Value::string(e.text);
    case Op::Nothing:
      return Value{};
    case Op::List: {
      Value v = Value::items({});
      for (uint32_t a : e.args) v.list.push_back(eval(a));
      return v;
    }
    case Op::Name:
      return e.ref.kind == Ref::Let ? scope_.let(e.ref.index) : scope_.value(e.ref.index);
    case Op::Attribute: {
      if (!scope_.present(e.ref.index)) return Value{};
      if (e.text == "op") return Value::string(scope_.op(e.ref.index));
      return scope_.attribute(e.ref.index, e.text);
    }
    case Op::Call:
      return call(e);
    case Op::Index:
      return index(e);
    case Op::Slice:
      return slice(e);
    case Op::Negate:
      return arithmetic(Op::Sub, Value::integer(0), eval(e.args[0]));
    case Op::Not: {
      Value v = truth(eval(e.args[0]));
      if (!v.is_unknown()) v.number = v.number == 0;
      return v;
    }
    case Op::And:
    case Op::Or: {
      const double decides = e.op == Op::Or;
      Value a = truth(eval(e.args[0]));
      if (!a.is_unknown() && a.number == decides) return a;
      Value b = truth(eval(e.args[1]));
      if (!b.is_unknown() && b.number == decides) return b;
      return a.is_unknown() ? a : b;
    }
    case Op::Compare:
      return compare(e);
    case Op::If: {
      const Value c = truth(eval(e.args[1]));
      if (c.is_unknown()) return c;
      return eval(e.args[c.number != 0 ? 0 : 2]);
    }
    default: {
      const Value a = eval(e.args[0]);
      return arithmetic(e.op, a, eval(e.args[1]));
    }
  }
}

std::string Evaluator::describe(const Program& program) {
  program_ = &program;
  std::string s;
  std::vector<std::string> told;
  for (uint32_t i = 0; i < program.nodes.size(); ++i) {
    const Expr& e = program.nodes[i];
    std::string name;
    if (e.op == Op::Attribute) {
      name = program.nodes[e.args[0]].text + "." + e.text;
    } else if (e.op == Op::Call && e.args.size() == 1 && program.nodes[e.args[0]].op == Op::Name) {
      name = e.text + "(" + program.nodes[e.args[0]].text + ")";
    } else {
      continue;
    }
    if (std::find(told.begin(), told.end(), name) != told.end()) continue;
    told.push_back(name);
    s += (s.empty() ? "" : ", ") + name + " = " + eval(i).show();
  }
  return s;
}

}  // namespace tenon::rules::gx
