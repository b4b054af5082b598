// Arithmetic on dimensions that may be unknown.
//
// Semantics. An expression is a sum of products with integer coefficients, kept in one canonical order, so
// that equal sums get equal handles. Factors are symbols (named by the model, or fresh) and opaque operations
// (floordiv, mod, min, max) whose operands are canonical too. Division rounds down and mod takes the
// divisor's sign; ceildiv(a, b) is floordiv(a + b - 1, b). Numbers saturate at the ends of int64. A quotient
// that is exact by form, (a*b)//b, is a, also where b might be 0: there it has no value that could differ.
// Any other division by what may be 0 is a fresh symbol. Ranges follow from intervals; comparisons answer
// from the range of the difference, and "unknown" otherwise. Deterministic: the same calls give the same
// handles. Copies are independent. [main]
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/graph/symbol_sums.hpp"
#include "tenon/abi/symbols.h"

namespace tenon {

class SymbolTable {
 public:
  tn_dim combine(tn_dim_op op, tn_dim a, tn_dim b);
  tn_dim number(int64_t value);
  std::optional<int64_t> as_number(tn_dim dim) const;
  tn_dim named(std::string_view name);
  tn_dim fresh(std::string_view hint, int64_t lo, int64_t hi);
  void range(tn_dim dim, int64_t* lo, int64_t* hi) const;
  tn_truth compare(tn_dim_relation relation, tn_dim a, tn_dim b) const;
  std::string text(tn_dim dim) const;
  // Reads what text() writes; symbols by name. Empty when it is malformed.
  std::optional<tn_dim> parse(std::string_view text);

  // True for a plain symbol (a name, not an expression); *name valid until the next call that makes a symbol.
  bool is_symbol(tn_dim dim, std::string_view* name) const;
  // The names of plain symbols that `dim` depends on, each once, in the order they were made.
  std::vector<std::string> symbols_of(tn_dim dim) const;
  void set_range(tn_dim symbol, int64_t lo, int64_t hi);  // of a plain symbol; nothing else is updated
  // Plain symbols whose range is not [0, TN_DIM_MAX], in the order they were made.
  std::vector<std::pair<std::string, std::pair<int64_t, int64_t>>> bounded_symbols() const;
  bool is_known_handle(tn_dim dim) const;  // a number, or a handle this table gave out

  // The number that `dim` is once every symbol it depends on is known. Empty: some symbol is not known, or a
  // division by zero.
  using Lookup = std::function<std::optional<int64_t>(std::string_view symbol)>;
  std::optional<int64_t> evaluate(tn_dim dim, const Lookup& lookup) const;

 private:
  // A factor: a symbol, or an operation on two dims.
  enum class AtomKind : uint8_t { symbol, floordiv, mod, min, max };
  struct Atom {
    AtomKind kind = AtomKind::symbol;
    uint8_t depth = 0;  // nesting of operations; bounded, so that walking an expression may recurse
    std::string name;
    tn_dim a = 0, b = 0;
    int64_t lo = 0, hi = TN_DIM_MAX;
  };
  using Term = sums::Term;
  using Sum = sums::Sum;
  struct Expression {
    Sum sum;
    int64_t lo = 0, hi = TN_DIM_MAX;
  };

  Sum sum_of(tn_dim dim) const;
  tn_dim intern(Sum sum);
  tn_dim atom_dim(uint32_t atom);
  tn_dim operation(AtomKind kind, tn_dim a, tn_dim b, int64_t lo, int64_t hi);
  tn_dim unknown(tn_dim_op op, int64_t lo, int64_t hi);
  tn_dim simplified(tn_dim_op op, tn_dim a, tn_dim b);
  tn_dim divide(tn_dim a, tn_dim b, bool remainder);
  tn_dim divide_by_number(const Sum& a, int64_t b, bool remainder);
  tn_dim divide_by_symbol(const Sum& a, tn_dim b, bool remainder);
  tn_dim extreme(bool largest, tn_dim a, tn_dim b);
  uint32_t depth_of(const Sum& sum) const;
  void range_of(const Sum& sum, int64_t* lo, int64_t* hi) const;
  void append_text(const Sum& sum, std::string& out) const;
  void append_atom_text(const Atom& atom, std::string& out) const;
  using Memo = std::unordered_map<uint32_t, std::optional<int64_t>>;
  std::optional<int64_t> evaluate_sum(const Sum& sum, const Lookup& lookup, Memo& memo) const;
  std::optional<int64_t> evaluate_atom(uint32_t atom, const Lookup& lookup, Memo& memo) const;
  friend class SymbolParser;

  std::vector<Expression> expressions_;  // handle -1 - i
  std::vector<Atom> atoms_;
  std::unordered_map<std::string, tn_dim> by_key_;      // canonical form -> handle
  std::unordered_map<std::string, uint32_t> by_name_;   // symbol -> atom
  std::unordered_map<std::string, tn_dim> operations_;  // memo of combine
  std::unordered_map<std::string, uint32_t> hint_count_;
};

}  // namespace tenon
