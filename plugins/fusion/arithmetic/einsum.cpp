// Einsum of one or two operands by the operators it is made of: ReduceSum, Transpose, Reshape, MatMul, Mul.
// Those have fast kernels; the sum has one, plain and slow. Another order of summation: not under "strict".
#include <algorithm>
#include <iterator>
#include <string>

#include "data/transposes.hpp"
#include "sweep.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

/// The letters of a term; none for what is not taken apart: an ellipsis, a diagonal.
std::optional<std::string> letters(std::string_view term) {
  std::string r;
  for (char l : term) {
    if (l == ' ') continue;
    if (l == '.' || r.find(l) != std::string::npos) return std::nullopt;
    r += l;
  }
  return r;
}

struct Equation {
  std::vector<std::string> terms;
  std::string result;
};

std::optional<Equation> parse(std::string_view text) {
  Equation e;
  const size_t arrow = text.find("->");
  const std::string_view left = text.substr(0, arrow);
  for (size_t from = 0; from <= left.size();) {
    const size_t comma = std::min(left.find(',', from), left.size());
    const auto term = letters(left.substr(from, comma - from));
    if (!term) return std::nullopt;
    e.terms.push_back(*term);
    from = comma + 1;
  }
  if (arrow != std::string_view::npos) {
    const auto result = letters(text.substr(arrow + 2));
    if (!result) return std::nullopt;
    e.result = *result;
    return e;
  }
  // Implicit: the letters that occur once, in alphabetic order.
  std::string all;
  for (const auto& t : e.terms) all += t;
  std::sort(all.begin(), all.end());
  for (char l : all)
    if (std::count(all.begin(), all.end(), l) == 1) e.result += l;
  return e;
}

bool in(const std::string& s, char l) { return s.find(l) != std::string::npos; }

/// One operand on its way, with the letters of its axes.
struct Term {
  tn_value value;
  std::string axes;
};

class Builder {
 public:
  Builder(const Context& c, Transaction& edit, const Node& n) : c_(c), edit_(edit), n_(n) {}

  /// False: two operands give one letter different lengths (one of them 1, that stretches): not taken apart.
  bool learn(const std::string& axes, const tn_type& t) {
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto l = static_cast<unsigned char>(axes[i]);
      if (seen_[l] && !c_.same_dim(dims_[l], t.dims[i])) return false;
      dims_[l] = t.dims[i];
      seen_[l] = true;
    }
    return true;
  }

  /// Sums over the axes that are in none of these.
  void sum_out(Term& t, const std::string& wanted) {
    std::vector<int64_t> axes;
    std::string left;
    for (size_t i = 0; i < t.axes.size(); ++i) {
      if (in(wanted, t.axes[i]))
        left += t.axes[i];
      else
        axes.push_back(static_cast<int64_t>(i));
    }
    if (axes.empty()) return;
    t = {create("ReduceSum", {t.value, edit_.vector(axes)}, {AttrValue::of("keepdims", int64_t{0})}), left};
  }
  void transpose(Term& t, const std::string& order) {
    if (t.axes == order) return;
    Dims perm;
    for (char l : order) perm.push_back(static_cast<int64_t>(t.axes.find(l)));
    t = {create("Transpose", {t.value}, {AttrValue::of("perm", Span<const int64_t>(perm))}), order};
  }
  /// Axes in groups, each one axis afterwards (1 for an empty one). False: two of them are no numbers.
  bool reshape(Term& t, const std::vector<std::string>& groups) {
    std::vector<int64_t> target;
    bool unknown = false;
    for (const auto& g : groups) {
      tn_dim product = 1;
      for (char l : g)
        product =
            c_.symbols->combine(c_.graph.raw(), TN_DIM_MUL, product, dims_[static_cast<unsigned char>(l)]);
      const auto number = c_.number(product);
      if (number == 0 || (!number && std::exchange(unknown, true))) return false;
      target.push_back(number.value_or(-1));
    }
    t.value = create("Reshape", {t.value, edit_.vector(target)});
    return true;
  }
  tn_value create(std::string_view op, std::vector<tn_value> inputs, std::vector<AttrValue> attrs = {}) {
    return edit_
        .create({op, std::move(inputs), 1, std::move(attrs), n_.region(), n_.id(), n_.name(), {n_.id()}})
        .output(0);
  }

 private:
  const Context& c_;
  Transaction& edit_;
  const Node& n_;
  tn_dim dims_[256] = {};
  bool seen_[256] = {};
};

std::vector<std::string> singles(const std::string& axes) {
  std::vector<std::string> r;
  for (char l : axes) r.emplace_back(1, l);
  return r;
}

/// a and b with the letters that count, each its axis or missing. None: it would need a shape that is not
/// known.
std::optional<Term> product(Builder& b, Term x, Term y, const std::string& result) {
  std::string batch, left, right, summed;
  for (char l : result) (in(x.axes, l) ? in(y.axes, l) ? batch : left : right) += l;
  for (char l : x.axes)
    if (in(y.axes, l) && !in(result, l)) summed += l;
  const auto groups = [&](const std::string& first, const std::string& second) {
    auto g = singles(batch);
    g.push_back(first);
    g.push_back(second);
    return g;
  };
  b.transpose(x, batch + left + summed);
  b.transpose(y, batch + summed + right);
  if (summed.empty() && left.empty() && right.empty())
    return Term{b.create("Mul", {x.value, y.value}), batch};
  // Where only the first operand has rows, these need not be one axis.
  const bool fits = summed.size() == 1, rows = batch.empty() && !left.empty() && fits;
  if (!rows && (!fits || left.size() != 1) && !b.reshape(x, groups(left, summed))) return std::nullopt;
  if ((!fits || right.size() != 1) && !b.reshape(y, groups(summed, right))) return std::nullopt;
  Term r{b.create("MatMul", {x.value, y.value}), batch + left + right};
  if (((!rows && left.size() != 1) || right.size() != 1) && !b.reshape(r, singles(r.axes)))
    return std::nullopt;
  return r;
}

tn_value einsum(Context& c, const Node& n, bool* done) {
  c.step = "take an Einsum apart";
  // In bfloat16 nothing is won, and what reads a written model often has Einsum alone.
  if (c.exact || !c.is_float(n.output(0)) || c.type(n.output(0)).dtype == TN_BFLOAT16 ||
      n.inputs().size() > 2)
    return TN_NONE;
  const auto e = parse(n.attrs().get_string("equation", ""));
  if (!e || e->terms.size() != n.inputs().size()) return TN_NONE;
  std::string all;
  for (uint32_t i = 0; i < n.inputs().size(); ++i) {
    if (c.type(n.input(i)).rank != static_cast<int32_t>(e->terms[i].size())) return TN_NONE;
    all += e->terms[i];
  }
  for (char l : e->result)
    if (!in(all, l)) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  Builder b(c, edit, n);
  std::vector<Term> terms;
  for (uint32_t i = 0; i < n.inputs().size(); ++i) {
    if (!b.learn(e->terms[i], c.type(n.input(i)))) return TN_NONE;
    terms.push_back({n.input(i), e->terms[i]});
  }
  for (uint32_t i = 0; i < terms.size(); ++i)
    b.sum_out(terms[i], e->result + (terms.size() == 2 ? e->terms[1 - i] : std::string()));
  Term r = terms[0];
  if (terms.size() == 2) {
    const auto made = product(b, terms[0], terms[1], e->result);
    if (!made) return TN_NONE;
    r = *made;
  }
  b.transpose(r, e->result);
  if (r.value == n.input(0)) {
    edit.rollback();
    return r.value;
  }
  edit.replace_uses(n.output(0), r.value);
  edit.erase(n.id());
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

constexpr SimplifierEntry entries[] = {{"Einsum", einsum}};

}  // namespace

Table einsum_simplifiers() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
