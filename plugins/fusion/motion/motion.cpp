#include "motion/motion.hpp"

namespace tenon::fusion {

using namespace sdk;

bool elementwise_link(const Context& c, const Node& n, uint32_t slot) {
  const tn_op_def* op = c.pass.op(n.op());
  if (!op || !(op->flags & TN_OP_ELEMENTWISE) || !is_pure(op)) return false;
  for (uint32_t i = 0; i < n.inputs().size(); ++i)
    if (i != slot && n.input(i) != TN_NONE && !c.graph.is_constant(n.input(i))) return false;
  return true;
}

bool single_element_operands(const Context& c, const Node& n, uint32_t slot, int64_t rank) {
  for (uint32_t i = 0; i < n.inputs().size(); ++i) {
    if (i == slot || n.input(i) == TN_NONE) continue;
    const tn_type t = c.type(n.input(i));
    if (t.rank < 0 || t.rank > rank) return false;
    for (tn_dim d : dims_of(t))
      if (d != 1) return false;
  }
  return true;
}

bool replace_chain(Context& c, Transaction& edit, const Node& n, const std::vector<Link>& links, tn_value x) {
  edit.replace_uses(c.graph.node(links.back().node).output(0), x);
  for (size_t i = links.size(); i-- > 0;) edit.erase(links[i].node);
  edit.erase(n.id());
  return c.commit(edit, n.id());
}

tn_value copy_node(Transaction& edit, const Node& n, std::vector<tn_value> inputs, tn_node before) {
  NodeSpec s{n.op_name(), std::move(inputs), 1, {}, n.region(), before, n.name(), {n.id()}};
  s.raw_attrs = attrs_of(n);
  s.version = n.version();
  return edit.create(s).output(0);
}

// Flat pools last: a Reshape behind one may have met another by then.
void run_move(Pass& pass) {
  sweep(pass, "move",
        {transpose_motion(), reshape_motion(), row_motion(), quantize_motion(), selection_motion(),
         activation_motion(), transpose_simplifiers(), reshape_simplifiers(), flat_pool_simplifiers()});
}

}  // namespace tenon::fusion
