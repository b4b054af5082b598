// Rewrites that look at one node and what feeds it: a table entry an operator. One driver sweeps them.
#pragma once
#include <unordered_map>

#include "passes.hpp"

namespace tenon::fusion {

/// Operators that rewrites compare with, resolved once.
struct Ops {
  explicit Ops(const sdk::GraphView& g)
      : transpose(g.symbol("Transpose")),
        reshape(g.symbol("Reshape")),
        flatten(g.symbol("Flatten")),
        squeeze(g.symbol("Squeeze")),
        unsqueeze(g.symbol("Unsqueeze")),
        cast(g.symbol("Cast")),
        concat(g.symbol("Concat")),
        split(g.symbol("Split")),
        slice(g.symbol("Slice")),
        pad(g.symbol("Pad")),
        expand(g.symbol("Expand")),
        if_op(g.symbol("If")),
        loop(g.symbol("Loop")) {}
  tn_sym transpose, reshape, flatten, squeeze, unsqueeze, cast, concat, split, slice, pad, expand, if_op,
      loop;
  /// Same elements in the same order, other dims.
  bool keeps_order(tn_sym op) const {
    return op == reshape || op == squeeze || op == unsqueeze || op == flatten;
  }
};

struct Context {
  sdk::Pass& pass;
  sdk::GraphView graph;
  const tn_symbols_api* symbols;
  Ops ops;
  bool exact;             // precision "strict": nothing may change a bit
  const char* step = "";  // name of the rewrite, set by a simplifier before it commits or returns
  uint64_t applied = 0;

  explicit Context(sdk::Pass& p);

  tn_type type(tn_value v) const {
    return v == TN_NONE ? tn_type{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr} : graph.value(v).type;
  }
  bool same_dim(tn_dim a, tn_dim b) const {
    return a == b || symbols->compare(graph.raw(), TN_DIM_EQ, a, b) == TN_YES;
  }
  /// The dim as a number.
  std::optional<int64_t> number(tn_dim d) const;
  /// Same element type and provably the same shape.
  bool same_type(tn_value a, tn_value b) const;
  bool same_dims(const tn_type& a, const tn_type& b) const;
  /// All known elements as numbers.
  std::optional<sdk::Dims> integers(tn_value v) const;
  /// Axes in an operand (or attribute "axes") as numbers in [0, rank); none when unknown or wrong.
  std::optional<sdk::Dims> axes(const sdk::Node& n, uint32_t operand, int64_t rank) const;
  /// The node that yields v as its result 0, when it is this operator.
  std::optional<sdk::Node> producer(tn_value v, tn_sym op) const;
  std::optional<sdk::Node> producer(tn_value v) const;
  bool single_use(tn_value v) const { return graph.value(v).use_count == 1; }
  bool is_float(tn_value v) const { return sdk::is_float(type(v).dtype); }
  bool is_integer(tn_value v) const { return sdk::is_integer(type(v).dtype); }

  /// Replaces node n by one of operator `op` over these operands, in its place and with its name. `with`:
  /// other nodes it stands for too. True when it went through.
  bool replace(const sdk::Node& n, std::string_view op, std::vector<tn_value> inputs,
               std::vector<sdk::AttrValue> attrs = {}, std::vector<tn_node> with = {});
  /// Commits; explains either way. True when it went through.
  bool commit(sdk::Transaction& edit, tn_node root);
};

/// The types that kernels have everywhere: a rewrite that brings in another operator keeps to them, so that
/// what ran elsewhere still does.
inline bool is_common(tn_dtype d) {
  return d == TN_FLOAT32 || d == TN_FLOAT64 || d == TN_INT32 || d == TN_INT64;
}

/// Attributes of a node as they are, to make another with.
std::vector<tn_attr> attrs_of(const sdk::Node& n);

/// Gives a value that result 0 equals (TN_NONE: nothing found), or rewrites the node itself and sets *done.
using Simplifier = tn_value (*)(Context&, const sdk::Node&, bool* done);

struct SimplifierEntry {
  const char* op;
  Simplifier simplify;
};
using Table = sdk::Span<const SimplifierEntry>;

Table no_op_simplifiers();
Table reshape_simplifiers();
Table transpose_simplifiers();
Table cast_simplifiers();
Table slice_simplifiers();
Table pad_simplifiers();
Table broadcast_simplifiers();
Table logic_simplifiers();
Table gather_simplifiers();

Table arithmetic_simplifiers();
Table clamp_simplifiers();
Table constant_chain_simplifiers();
Table reduction_simplifiers();
Table einsum_simplifiers();
Table pool_simplifiers();
Table flat_pool_simplifiers();
Table product_simplifiers();

/// Sweeps the graph in topological order, regions after the node that owns them. A node is looked at after
/// everything it reads was simplified, so that chains collapse in one sweep; new and changed nodes are looked
/// at again in place. `who` counts what was applied.
void sweep(sdk::Pass& pass, const char* who, std::vector<Table> tables);

}  // namespace tenon::fusion
