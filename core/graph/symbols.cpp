// Canonical sums of products, and what is simplified when they are divided, compared and bounded.
#include "core/graph/symbols.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <set>

#include "core/graph/symbol_sums.hpp"

namespace tenon {

using namespace sums;

namespace {
// Beyond these an expression becomes a fresh symbol: models do not write such, and what is bounded may
// recurse.
constexpr size_t max_terms = 64, max_factors = 12;
constexpr uint32_t max_depth = 48;
constexpr size_t max_text_bytes = 4096;

void append_int(std::string& key, uint64_t value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}
}  // namespace

bool SymbolTable::is_known_handle(tn_dim dim) const {
  return dim >= 0 || static_cast<uint64_t>(-(dim + 1)) < expressions_.size();
}

SymbolTable::Sum SymbolTable::sum_of(tn_dim dim) const {
  if (dim < 0) return is_known_handle(dim) ? expressions_[static_cast<size_t>(-(dim + 1))].sum : Sum();
  if (dim == 0) return {};
  return {Term{dim, {}}};
}

tn_dim SymbolTable::intern(Sum sum) {
  int64_t value = 0;
  if (sum_number(sum, &value) && value >= 0) return value;
  std::string key;
  for (const Term& term : sum) {
    append_int(key, static_cast<uint64_t>(term.coefficient));
    append_int(key, term.factors.size());
    for (const uint32_t factor : term.factors) append_int(key, factor);
  }
  if (const auto found = by_key_.find(key); found != by_key_.end()) return found->second;
  Expression expression;
  range_of(sum, &expression.lo, &expression.hi);
  expression.sum = std::move(sum);
  expressions_.push_back(std::move(expression));
  const tn_dim handle = -static_cast<tn_dim>(expressions_.size());
  by_key_.emplace(std::move(key), handle);
  return handle;
}

tn_dim SymbolTable::atom_dim(uint32_t atom) { return intern({Term{1, {atom}}}); }

tn_dim SymbolTable::number(int64_t value) {
  if (value >= 0) return value;
  return intern({Term{value, {}}});
}

std::optional<int64_t> SymbolTable::as_number(tn_dim dim) const {
  if (dim >= 0) return dim;
  int64_t value = 0;
  if (is_known_handle(dim) && sum_number(expressions_[static_cast<size_t>(-(dim + 1))].sum, &value))
    return value;
  return std::nullopt;
}

tn_dim SymbolTable::named(std::string_view name) {
  const std::string key(name);
  if (const auto found = by_name_.find(key); found != by_name_.end()) return atom_dim(found->second);
  const auto atom = static_cast<uint32_t>(atoms_.size());
  atoms_.push_back(Atom{AtomKind::symbol, 0, key, 0, 0, 0, TN_DIM_MAX});
  by_name_.emplace(key, atom);
  return atom_dim(atom);
}

tn_dim SymbolTable::fresh(std::string_view hint, int64_t lo, int64_t hi) {
  if (lo == hi) return number(lo);
  std::string base(hint.empty() ? std::string_view("unknown") : hint);
  if (const size_t mark = base.rfind('#'); mark != std::string::npos && mark != 0) base.resize(mark);
  std::string name;
  do name = base + "#" + std::to_string(++hint_count_[base]);
  while (by_name_.count(name) != 0);
  const tn_dim dim = named(name);
  set_range(dim, lo, hi);
  return dim;
}

void SymbolTable::set_range(tn_dim symbol, int64_t lo, int64_t hi) {
  if (!is_symbol(symbol, nullptr)) return;
  Expression& expression = expressions_[static_cast<size_t>(-(symbol + 1))];
  Atom& atom = atoms_[expression.sum[0].factors[0]];
  atom.lo = expression.lo = lo;
  atom.hi = expression.hi = hi;
}

bool SymbolTable::is_symbol(tn_dim dim, std::string_view* name) const {
  if (dim >= 0 || !is_known_handle(dim)) return false;
  const Sum& sum = expressions_[static_cast<size_t>(-(dim + 1))].sum;
  if (sum.size() != 1 || sum[0].coefficient != 1 || sum[0].factors.size() != 1) return false;
  const Atom& atom = atoms_[sum[0].factors[0]];
  if (atom.kind != AtomKind::symbol) return false;
  if (name) *name = atom.name;
  return true;
}

std::vector<std::string> SymbolTable::symbols_of(tn_dim dim) const {
  std::set<uint32_t> seen;
  std::vector<uint32_t> open;
  const auto add_sum = [&](const Sum& sum) {
    for (const Term& term : sum)
      for (const uint32_t factor : term.factors)
        if (seen.insert(factor).second) open.push_back(factor);
  };
  add_sum(sum_of(dim));
  while (!open.empty()) {
    const Atom& atom = atoms_[open.back()];
    open.pop_back();
    if (atom.kind == AtomKind::symbol) continue;
    add_sum(sum_of(atom.a));
    add_sum(sum_of(atom.b));
  }
  std::vector<std::string> names;
  for (const uint32_t atom : seen)
    if (atoms_[atom].kind == AtomKind::symbol) names.push_back(atoms_[atom].name);
  return names;
}

std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>> SymbolTable::bounded_symbols() const {
  std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>> found;
  for (const Atom& atom : atoms_)
    if (atom.kind == AtomKind::symbol && (atom.lo != 0 || atom.hi != TN_DIM_MAX))
      found.emplace_back(atom.name, std::pair(atom.lo, atom.hi));
  return found;
}

uint32_t SymbolTable::depth_of(const Sum& sum) const {
  uint32_t depth = 0;
  for (const Term& term : sum)
    for (const uint32_t factor : term.factors) depth = std::max<uint32_t>(depth, atoms_[factor].depth);
  return depth;
}

void SymbolTable::range_of(const Sum& sum, int64_t* lo, int64_t* hi) const {
  int64_t low = 0, high = 0;
  for (const Term& term : sum) {
    Interval product{term.coefficient, term.coefficient};
    for (const uint32_t factor : term.factors)
      product = times(product, {atoms_[factor].lo, atoms_[factor].hi});
    low = bound_add(low, product.lo);
    high = bound_add(high, product.hi);
  }
  *lo = low;
  *hi = high;
}

void SymbolTable::range(tn_dim dim, int64_t* lo, int64_t* hi) const {
  if (dim >= 0) {
    *lo = *hi = dim;
  } else if (is_known_handle(dim)) {
    const Expression& expression = expressions_[static_cast<size_t>(-(dim + 1))];
    *lo = expression.lo;
    *hi = expression.hi;
  } else {
    *lo = 0;
    *hi = TN_DIM_MAX;
  }
}

tn_truth SymbolTable::compare(tn_dim_relation relation, tn_dim a, tn_dim b) const {
  if (a == b) return relation == TN_DIM_LT ? TN_NO : TN_YES;
  if (!is_known_handle(a) || !is_known_handle(b)) return TN_UNKNOWN;
  const Sum difference = add(sum_of(a), sum_of(b), -1);
  int64_t lo = 0, hi = 0;
  range_of(difference, &lo, &hi);
  if (relation == TN_DIM_EQ) {
    if (difference.empty()) return TN_YES;
    if (lo > 0 || hi < 0) return TN_NO;
    // 2*N and 2*M + 1 are never equal: the symbolic part is a multiple of the coefficients' divisor.
    int64_t divisor = 0, constant = 0;
    for (const Term& term : difference)
      if (term.factors.empty())
        constant = term.coefficient;
      else
        divisor = std::gcd(divisor, term.coefficient);
    if (divisor > 1 && constant % divisor != 0) return TN_NO;
    return TN_UNKNOWN;
  }
  const int64_t limit = relation == TN_DIM_LT ? -1 : 0;  // of the difference, for a yes
  if (hi <= limit) return TN_YES;
  if (lo > limit) return TN_NO;
  return TN_UNKNOWN;
}

// Kept by combine's memo, so that one question has one answer.
tn_dim SymbolTable::unknown(tn_dim_op op, int64_t lo, int64_t hi) {
  static constexpr const char* hints[] = {"sum",      "difference", "product", "quotient",
                                          "quotient", "remainder",  "min",     "max"};
  return fresh(hints[op], lo, hi);
}

tn_dim SymbolTable::combine(tn_dim_op op, tn_dim a, tn_dim b) {
  if (!is_known_handle(a) || !is_known_handle(b) || op < TN_DIM_ADD || op > TN_DIM_MAX_OF)
    return fresh("invalid", INT64_MIN, TN_DIM_MAX);
  if (a >= 0 && b >= 0) {  // most shapes are numbers: no need of sums
    switch (op) {
      case TN_DIM_ADD:
        return saturating_add(a, b);
      case TN_DIM_SUB:
        return number(a - b);
      case TN_DIM_MUL:
        return saturating_multiply(a, b);
      case TN_DIM_MIN:
        return std::min(a, b);
      case TN_DIM_MAX_OF:
        return std::max(a, b);
      default:
        if (b == 0) break;
        return op == TN_DIM_FLOORDIV ? a / b : op == TN_DIM_MOD ? a % b : a / b + (a % b != 0);
    }
  }
  std::string key;
  append_int(key, static_cast<uint64_t>(op));
  append_int(key, static_cast<uint64_t>(a));
  append_int(key, static_cast<uint64_t>(b));
  if (const auto found = operations_.find(key); found != operations_.end()) return found->second;
  const tn_dim result = simplified(op, a, b);
  operations_.emplace(std::move(key), result);
  return result;
}

tn_dim SymbolTable::simplified(tn_dim_op op, tn_dim a, tn_dim b) {
  int64_t value = 0;
  switch (op) {
    case TN_DIM_ADD:
    case TN_DIM_SUB: {
      Sum sum = add(sum_of(a), sum_of(b), op == TN_DIM_ADD ? 1 : -1);
      if (sum.size() > max_terms) {
        int64_t lo = 0, hi = 0;
        range_of(sum, &lo, &hi);
        return unknown(op, lo, hi);
      }
      return intern(std::move(sum));
    }
    case TN_DIM_MUL: {
      const Sum left = sum_of(a), right = sum_of(b);
      size_t longest_left = 0, longest_right = 0;
      for (const Term& term : left) longest_left = std::max(longest_left, term.factors.size());
      for (const Term& term : right) longest_right = std::max(longest_right, term.factors.size());
      if (left.size() * right.size() > max_terms || longest_left + longest_right > max_factors) {
        Interval l, r;
        range(a, &l.lo, &l.hi);
        range(b, &r.lo, &r.hi);
        const Interval product = times(l, r);
        return unknown(op, product.lo, product.hi);
      }
      return intern(multiply(left, right));
    }
    case TN_DIM_FLOORDIV:
      return divide(a, b, false);
    case TN_DIM_MOD:
      return divide(a, b, true);
    case TN_DIM_CEILDIV: {
      if (sum_number(sum_of(b), &value) && value < 0)
        return combine(TN_DIM_SUB, 0,
                       combine(TN_DIM_FLOORDIV, a, number(value == INT64_MIN ? INT64_MAX : -value)));
      Sum quotient;
      if (divides(sum_of(b), sum_of(a), &quotient)) return intern(std::move(quotient));
      int64_t lo = 0, hi = 0;
      range(b, &lo, &hi);
      if (lo < 1)
        return divide(a, b, false);  // an unknown of its own: floor and ceiling differ only where known
      return divide(combine(TN_DIM_ADD, a, combine(TN_DIM_SUB, b, 1)), b, false);
    }
    case TN_DIM_MIN:
      return extreme(false, a, b);
    case TN_DIM_MAX_OF:
      return extreme(true, a, b);
  }
  return unknown(op, INT64_MIN, TN_DIM_MAX);
}

tn_dim SymbolTable::operation(AtomKind kind, tn_dim a, tn_dim b, int64_t lo, int64_t hi) {
  std::string key = "atom";
  append_int(key, static_cast<uint64_t>(kind));
  append_int(key, static_cast<uint64_t>(a));
  append_int(key, static_cast<uint64_t>(b));
  if (const auto found = operations_.find(key); found != operations_.end()) return found->second;
  const uint32_t depth = 1 + std::max(depth_of(sum_of(a)), depth_of(sum_of(b)));
  tn_dim dim = 0;
  if (lo == hi) {
    dim = number(lo);
  } else if (depth > max_depth) {
    dim = fresh("deep", lo, hi);
  } else {
    atoms_.push_back(Atom{kind, static_cast<uint8_t>(depth), {}, a, b, lo, hi});
    dim = atom_dim(static_cast<uint32_t>(atoms_.size() - 1));
  }
  operations_.emplace(std::move(key), dim);
  return dim;
}

tn_dim SymbolTable::extreme(bool largest, tn_dim a, tn_dim b) {
  if (compare(TN_DIM_LE, a, b) == TN_YES) return largest ? b : a;
  if (compare(TN_DIM_LE, b, a) == TN_YES) return largest ? a : b;
  const AtomKind kind = largest ? AtomKind::max : AtomKind::min;
  // max(max(x, y), x) is max(x, y), and max(min(x, y), x) is x.
  for (const auto& [whole, part] : {std::pair(a, b), std::pair(b, a)}) {
    const Sum sum = sum_of(whole);
    if (sum.size() != 1 || sum[0].coefficient != 1 || sum[0].factors.size() != 1) continue;
    const Atom& atom = atoms_[sum[0].factors[0]];
    if (atom.a != part && atom.b != part) continue;
    if (atom.kind == kind) return whole;
    if (atom.kind == AtomKind::min || atom.kind == AtomKind::max) return part;
  }
  if (a < b) std::swap(a, b);  // numbers and older handles first
  int64_t alo = 0, ahi = 0, blo = 0, bhi = 0;
  range(a, &alo, &ahi);
  range(b, &blo, &bhi);
  return largest ? operation(kind, a, b, std::max(alo, blo), std::max(ahi, bhi))
                 : operation(kind, a, b, std::min(alo, blo), std::min(ahi, bhi));
}

tn_dim SymbolTable::divide(tn_dim a, tn_dim b, bool remainder) {
  const Sum dividend = sum_of(a);
  int64_t value = 0;
  if (sum_number(sum_of(b), &value) && value != 0) return divide_by_number(dividend, value, remainder);
  return divide_by_symbol(dividend, b, remainder);
}

tn_dim SymbolTable::divide_by_number(const Sum& a, int64_t b, bool remainder) {
  int64_t value = 0;
  if (sum_number(a, &value)) return number(remainder ? floor_mod(value, b) : floor_div(value, b));
  Sum quotient, rest;
  for (const Term& term : a) {
    if (const int64_t q = floor_div(term.coefficient, b)) quotient.push_back({q, term.factors});
    if (const int64_t r = floor_mod(term.coefficient, b)) rest.push_back({r, term.factors});
  }
  if (rest.empty()) return remainder ? 0 : intern(std::move(quotient));
  if (b < 0) {
    // Nobody divides shapes by negative numbers; kept opaque, exact division apart.
    int64_t lo = 0, hi = 0;
    range_of(a, &lo, &hi);
    const tn_dim whole = intern(a);
    return remainder ? operation(AtomKind::mod, whole, number(b), b + 1, 0)
                     : operation(AtomKind::floordiv, whole, number(b),
                                 hi == TN_DIM_MAX ? INT64_MIN : floor_div(hi, b),
                                 lo == INT64_MIN ? TN_DIM_MAX : floor_div(lo, b));
  }
  int64_t lo = 0, hi = 0;
  range_of(rest, &lo, &hi);
  if (lo >= 0 && hi < b) return intern(remainder ? std::move(rest) : std::move(quotient));
  if (sum_number(rest, &value)) return remainder ? number(value) : intern(std::move(quotient));

  // floor((g*X + c) / (g*n)) = floor((X + floor(c/g)) / n).
  int64_t divisor = b, constant = 0;
  for (const Term& term : rest)
    if (term.factors.empty())
      constant = term.coefficient;
    else
      divisor = std::gcd(divisor, term.coefficient);
  if (divisor > 1) {
    Sum smaller;
    for (const Term& term : rest)
      if (!term.factors.empty()) smaller.push_back({term.coefficient / divisor, term.factors});
    if (constant / divisor != 0) smaller.push_back({constant / divisor, {}});
    const tn_dim inner = divide_by_number(smaller, b / divisor, remainder);
    if (!remainder) return intern(add(quotient, sum_of(inner), 1));
    Sum result = add({}, sum_of(inner), divisor);
    return intern(add(result, sum_of(constant % divisor), 1));
  }

  // One factor alone, perhaps with a constant: floor(floor(x/m) + k)/n) = floor((x + k*m) / (m*n)), and (x
  // mod m) mod n.
  const size_t symbolic = rest.size() - (constant != 0 ? 1 : 0);
  if (symbolic == 1 && rest[0].coefficient == 1 && rest[0].factors.size() == 1) {
    const Atom atom = atoms_[rest[0].factors[0]];
    int64_t inner = 0, product = 0, shift = 0;
    if (atom.kind == AtomKind::floordiv && !remainder && sum_number(sum_of(atom.b), &inner) && inner > 0 &&
        !__builtin_mul_overflow(inner, b, &product) && !__builtin_mul_overflow(inner, constant, &shift)) {
      const Sum shifted = add(sum_of(atom.a), sum_of(number(shift)), 1);
      return intern(add(quotient, sum_of(divide_by_number(shifted, product, false)), 1));
    }
    if (atom.kind == AtomKind::mod && remainder && sum_number(sum_of(atom.b), &inner) && inner % b == 0)
      return divide_by_number(add(sum_of(atom.a), sum_of(number(constant)), 1), b, true);
  }
  const tn_dim numerator = intern(rest);
  if (remainder) return operation(AtomKind::mod, numerator, b, 0, lo >= 0 ? std::min(b - 1, hi) : b - 1);
  const tn_dim atom = operation(AtomKind::floordiv, numerator, b, lo == INT64_MIN ? lo : floor_div(lo, b),
                                hi == TN_DIM_MAX ? hi : floor_div(hi, b));
  return intern(add(quotient, sum_of(atom), 1));
}

tn_dim SymbolTable::divide_by_symbol(const Sum& a, tn_dim b, bool remainder) {
  const Sum divisor = sum_of(b);
  if (a.empty()) return 0;
  Sum quotient, rest;
  if (divides(divisor, a, &quotient)) return remainder ? 0 : intern(std::move(quotient));
  quotient.clear();
  int64_t lo = 0, hi = 0, divisor_lo = 0, divisor_hi = 0;
  range_of(a, &lo, &hi);
  range(b, &divisor_lo, &divisor_hi);
  const tn_dim_op op = remainder ? TN_DIM_MOD : TN_DIM_FLOORDIV;
  if (divisor_lo < 1) {
    if (lo >= 0 && divisor_lo >= 0) return unknown(op, 0, hi);
    return unknown(op, INT64_MIN, TN_DIM_MAX);
  }
  // Multiples of a divisor of one term leave the division.
  if (divisor.size() == 1) {
    for (const Term& term : a) {
      Sum part;
      if (divides(divisor, {term}, &part))
        quotient = add(quotient, part, 1);
      else
        rest.push_back(term);
    }
  } else {
    rest = a;
  }
  range_of(rest, &lo, &hi);
  const Sum below = add(rest, divisor, -1);  // rest - b
  int64_t below_lo = 0, below_hi = 0;
  range_of(below, &below_lo, &below_hi);
  if (lo >= 0 && below_hi < 0) return intern(remainder ? std::move(rest) : std::move(quotient));
  const Sum above = add(rest, divisor, 1);  // rest + b
  int64_t above_lo = 0, above_hi = 0;
  range_of(above, &above_lo, &above_hi);
  if (hi < 0 && above_lo >= 0) return intern(remainder ? above : add(quotient, sum_of(number(-1)), 1));
  const tn_dim numerator = intern(rest);
  if (remainder) {
    const int64_t largest = divisor_hi == TN_DIM_MAX ? TN_DIM_MAX : divisor_hi - 1;
    return operation(AtomKind::mod, numerator, b, 0, lo >= 0 ? std::min(largest, hi) : largest);
  }
  const int64_t low = lo == INT64_MIN ? lo
                      : lo >= 0       ? (divisor_hi == TN_DIM_MAX ? 0 : lo / divisor_hi)
                                      : floor_div(lo, divisor_lo);
  const int64_t high = hi == TN_DIM_MAX           ? hi
                       : hi >= 0                  ? hi / divisor_lo
                       : divisor_hi == TN_DIM_MAX ? -1
                                                  : floor_div(hi, divisor_hi);
  const tn_dim atom = operation(AtomKind::floordiv, numerator, b, low, high);
  return intern(add(quotient, sum_of(atom), 1));
}

namespace {
bool is_plain_symbol_name(std::string_view name) {
  if (name.empty() || name == "floordiv" || name == "mod" || name == "min" || name == "max") return false;
  if (name[0] >= '0' && name[0] <= '9') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '#';
  });
}
}  // namespace

void SymbolTable::append_atom_text(const Atom& atom, std::string& out) const {
  if (atom.kind == AtomKind::symbol) {
    if (is_plain_symbol_name(atom.name)) {
      out += atom.name;
      return;
    }
    out += '\'';
    for (const char c : atom.name) {
      if (c == '\'' || c == '\\') out += '\\';
      out += c;
    }
    out += '\'';
    return;
  }
  static constexpr const char* names[] = {"", "floordiv(", "mod(", "min(", "max("};
  out += names[static_cast<size_t>(atom.kind)];
  append_text(sum_of(atom.a), out);
  out += ", ";
  append_text(sum_of(atom.b), out);
  out += ')';
}

void SymbolTable::append_text(const Sum& sum, std::string& out) const {
  if (sum.empty()) out += '0';
  bool first = true;
  for (const Term& term : sum) {
    if (out.size() > max_text_bytes) {  // shared parts can make the text exponentially longer than the table
      out += "...";
      return;
    }
    const bool negative = term.coefficient < 0;
    if (first)
      out += negative ? "-" : "";
    else
      out += negative ? " - " : " + ";
    first = false;
    const std::string digits = std::to_string(term.coefficient).substr(negative ? 1 : 0);
    if (term.factors.empty())
      out += digits;
    else if (digits != "1")
      out += digits + "*";
    for (size_t i = 0; i < term.factors.size(); ++i) {
      if (i != 0) out += '*';
      append_atom_text(atoms_[term.factors[i]], out);
    }
  }
}

std::string SymbolTable::text(tn_dim dim) const {
  if (dim >= 0) return std::to_string(dim);
  if (!is_known_handle(dim)) return "?";
  std::string out;
  append_text(expressions_[static_cast<size_t>(-(dim + 1))].sum, out);
  return out;
}

std::optional<int64_t> SymbolTable::evaluate(tn_dim dim, const Lookup& lookup) const {
  if (dim >= 0) return dim;
  if (!is_known_handle(dim)) return std::nullopt;
  Memo memo;
  return evaluate_sum(expressions_[static_cast<size_t>(-(dim + 1))].sum, lookup, memo);
}

std::optional<int64_t> SymbolTable::evaluate_sum(const Sum& sum, const Lookup& lookup, Memo& memo) const {
  int64_t total = 0;
  for (const Term& term : sum) {
    int64_t product = term.coefficient;
    for (const uint32_t factor : term.factors) {
      const auto value = evaluate_atom(factor, lookup, memo);
      if (!value) return std::nullopt;
      product = saturating_multiply(product, *value);
    }
    total = saturating_add(total, product);
  }
  return total;
}

// Recursion is bounded by max_depth, repetition by the memo.
std::optional<int64_t> SymbolTable::evaluate_atom(uint32_t id, const Lookup& lookup, Memo& memo) const {
  if (const auto found = memo.find(id); found != memo.end()) return found->second;
  const Atom& atom = atoms_[id];
  std::optional<int64_t> result;
  if (atom.kind == AtomKind::symbol) {
    result = lookup(atom.name);
  } else {
    const auto a = evaluate_sum(sum_of(atom.a), lookup, memo), b = evaluate_sum(sum_of(atom.b), lookup, memo);
    if (a && b) {
      switch (atom.kind) {
        case AtomKind::floordiv:
          if (*b != 0) result = floor_div(*a, *b);
          break;
        case AtomKind::mod:
          if (*b != 0) result = floor_mod(*a, *b);
          break;
        case AtomKind::min:
          result = std::min(*a, *b);
          break;
        case AtomKind::max:
          result = std::max(*a, *b);
          break;
        case AtomKind::symbol:
          break;
      }
    }
  }
  memo.emplace(id, result);
  return result;
}

}  // namespace tenon
