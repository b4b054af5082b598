// Control flow that need not be: one rewrite a function. True: the graph changed.
#pragma once
#include "sweep.hpp"

namespace tenon::fusion {

/// A condition, or any tensor of one whole number, when it is known.
std::optional<int64_t> known_number(const Context& c, tn_value v);

/// An If on a constant is the branch it takes.
bool inline_constant_if(Context& c, const sdk::Node& node);
/// An If whose branches are cheap and cannot fail: both, and a Where for each result.
bool if_to_where(Context& c, const sdk::Node& node);
/// A Loop that does not run, runs once, or a few times over little: its body, so often.
bool unroll_loop(Context& c, const sdk::Node& node, int64_t max_added_nodes);
/// What a Loop hands from turn to turn and never changes is what it was given.
bool forward_unchanged_state(Context& c, const sdk::Node& node);
/// Nodes of a body that read nothing of it, and cannot fail, are computed once, before.
bool hoist_invariants(Context& c, const sdk::Node& node);
/// Results that nobody reads, and state that serves only itself, are not computed.
bool drop_unused_results(Context& c, const sdk::Node& node);

/// Defined, whatever its operands hold: may run where it would not have.
bool cannot_fail(const Context& c, const sdk::Node& n);

}  // namespace tenon::fusion
