// Activations before the data movement between a product and them, so that the product can take them in. The
// same elements are computed in another order: exact.
#include <algorithm>
#include <iterator>

#include "motion/motion.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

bool is_product(const Node& n) {
  const std::string_view op = n.op_name();
  return op == "Conv" || op == "MatMul" || op == "Gemm" || op == "ConvTranspose";
}

tn_value to_product(Context& c, const Node& n, bool* done) {
  c.step = "activate before data movement";
  if (!n.regions().empty() || n.outputs().size() != 1) return TN_NONE;
  std::vector<tn_node> moves;  // from the activation up
  tn_value at = n.input(0);
  constexpr size_t longest = 4;
  while (moves.size() <= longest) {
    const auto p = c.producer(at);
    if (!p || p->region() != n.region() || !c.single_use(at)) return TN_NONE;
    if (is_product(*p)) break;
    if (!c.ops.keeps_order(p->op()) && p->op() != c.ops.transpose) return TN_NONE;
    moves.push_back(p->id());
    at = p->input(0);
  }
  if (moves.empty() || moves.size() > longest) return TN_NONE;
  Transaction edit = c.pass.edit(c.step);
  if (!edit.active()) return TN_NONE;
  std::vector<tn_value> inputs = n.inputs().copy();
  inputs[0] = at;
  tn_value x = copy_node(edit, n, inputs, n.id());
  for (size_t i = moves.size(); i-- > 0;) {
    const Node move = c.graph.node(moves[i]);
    inputs = move.inputs().copy();
    inputs[0] = x;
    x = copy_node(edit, move, inputs, n.id());
  }
  edit.replace_uses(n.output(0), x);
  edit.erase(n.id());
  for (const tn_node move : moves) edit.erase(move);
  *done = c.commit(edit, n.id());
  return TN_NONE;
}

// What products take in (rules ConvAct, MatMulBiasAct, GemmAct).
constexpr SimplifierEntry entries[] = {
    {"Relu", to_product},  {"LeakyRelu", to_product},   {"Sigmoid", to_product},
    {"Swish", to_product}, {"HardSwish", to_product},   {"Tanh", to_product},
    {"Gelu", to_product},  {"HardSigmoid", to_product}, {"Clip", to_product}};

}  // namespace

Table activation_motion() { return {entries, std::size(entries)}; }

}  // namespace tenon::fusion
