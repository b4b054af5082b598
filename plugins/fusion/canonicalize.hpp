// One table entry an operator: what it may be simplified to. All rewrites are bit-exact.
#pragma once
#include "passes.hpp"

namespace tenon::fusion {

struct Context {
  sdk::Pass& pass;
  sdk::GraphView graph;
  const tn_symbols_api* symbols;
  tn_sym transpose, reshape, cast, squeeze, unsqueeze, concat, split, identity;  // resolved once
  const char* step = "";  // name of the rewrite, set by a simplifier before it commits or returns

  tn_type type(tn_value v) const {
    return v == TN_NONE ? tn_type{TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr} : graph.value(v).type;
  }
  bool same_dim(tn_dim a, tn_dim b) const {
    return a == b || symbols->compare(graph.raw(), TN_DIM_EQ, a, b) == TN_YES;
  }
  /// Same element type and provably the same shape.
  bool same_type(tn_value a, tn_value b) const;
  /// All known elements as numbers.
  std::optional<sdk::Dims> integers(tn_value v) const;
  /// The node that yields v, when it is this operator.
  std::optional<sdk::Node> producer(tn_value v, tn_sym op) const;
  /// Commits; explains either way. True when it went through.
  bool commit(sdk::Transaction& edit, tn_node root);
  uint64_t applied = 0;
};

/// Gives a value that result 0 equals (TN_NONE: nothing found), or rewrites the node itself and sets *done.
using Simplifier = tn_value (*)(Context&, const sdk::Node&, bool* done);

struct SimplifierEntry {
  const char* op;
  Simplifier simplify;
};
sdk::Span<const SimplifierEntry> no_op_simplifiers();
sdk::Span<const SimplifierEntry> chain_simplifiers();
/// An If whose condition is a constant becomes the branch it takes.
bool inline_constant_if(Context& c, const sdk::Node& node);

}  // namespace tenon::fusion
