// Gradient of ai.onnx.preview.training: the derivative of one value of the graph around it by others.
//
// Attributes name those values (xs: by them; zs: held; y: of it), and names do not outlive passes, so the
// ONNX frontend makes operands of them: behind the n values at which to differentiate stand the n values
// that xs and zs name, then y. The node is replaced by the reverse pass while the model is loaded, before
// any pass could fold or merge what lies between the variables and y; for that the host must see it as of an
// older version than this definition's 2, which ONNX does not have.
//
// Where the node's values are the named ones, the nodes of the graph serve; elsewhere those that depend on
// the named values are cloned first. y counts with the sum of its elements. A variable that y does not depend
// on has the gradient 0.
#include <algorithm>

#include "gradient.hpp"

namespace tenon::ops {
namespace {

// Gradients of gradients could make any number of nodes: each order has a few times those of the one before.
constexpr size_t most_nodes = 200'000, most_nodes_a_rule = 16;
constexpr const char* gradient_op = "ai.onnx.preview.training::Gradient";

void infer_gradient(Infer&) { fail("it is of a version that is not known; expected 1"); }

/// What lies between the variables and y.
struct Between {
  std::vector<tn_node> nodes;              // in order, those only that depend on a variable
  std::unordered_set<tn_value> dependent;  // their results, and the variables
};

/// What a node reads, in its regions too.
std::vector<tn_value> read_by(const GraphView& g, tn_node id) {
  std::vector<tn_value> all;
  std::vector<tn_node> nodes{id};
  while (!nodes.empty()) {
    const Node n = g.node(nodes.back());
    nodes.pop_back();
    for (const tn_value v : n.inputs())
      if (v != TN_NONE) all.push_back(v);
    for (const tn_region r : n.regions()) {
      const tn_region_info info = g.region(r);
      all.insert(all.end(), info.outputs, info.outputs + info.output_count);
      for (const tn_node inner : g.nodes(r)) nodes.push_back(inner);
    }
  }
  return all;
}

Between between(const GraphView& g, Span<const tn_value> variables, tn_value y) {
  Between b;
  const std::unordered_set<tn_value> ends(variables.begin(), variables.end());
  b.dependent = ends;
  struct Visit {
    tn_node node;
    std::vector<tn_value> reads;
    size_t next = 0;
  };
  std::vector<Visit> stack;
  std::unordered_set<tn_node> seen;
  const auto enter = [&](tn_value v) {
    if (v == TN_NONE || ends.count(v)) return;
    const tn_node producer = g.producer(v);
    if (producer != TN_NONE && seen.insert(producer).second)
      stack.push_back({producer, read_by(g, producer)});
  };
  enter(y);
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.next < top.reads.size()) {
      enter(top.reads[top.next++]);  // may move `top`
      continue;
    }
    const bool depends = std::any_of(top.reads.begin(), top.reads.end(),
                                     [&](tn_value v) { return b.dependent.count(v) != 0; });
    if (depends) {
      b.nodes.push_back(top.node);
      for (const tn_value v : g.node(top.node).outputs())
        if (v != TN_NONE) b.dependent.insert(v);
    }
    stack.pop_back();
  }
  return b;
}

[[noreturn]] void cannot_differentiate(const Node& n) {
  throw Failure(TN_ERR_UNSUPPORTED,
                "between its variables and y stands " + named_node(n) +
                    ", which cannot be differentiated; what can: " + differentiable_operators());
}

/// Makes the node's values the named ones: of clones that read the given values.
void clone_for_values(Rewrite& w, const Between& b, size_t n) {
  Editor& e = w.editor();
  const tn_region region = e.graph().node(w.id()).region();
  std::unordered_map<tn_value, tn_value> clone_of;
  std::vector<tn_value> values;
  for (size_t i = 0; i < n; ++i) {
    // A value of its own: the given one may also be read between, where it is no variable.
    values.push_back(w.make("Identity", {w.input(i)}));
    clone_of.emplace(w.input(n + i), values.back());
  }
  const auto cloned = [&](tn_value v) {
    const auto at = clone_of.find(v);
    return at == clone_of.end() ? v : at->second;
  };
  for (const tn_node id : b.nodes) {
    std::vector<tn_value> inputs;
    for (const tn_value v : e.graph().node(id).inputs()) inputs.push_back(cloned(v));
    const auto old = e.graph().node(id).outputs().copy();
    const auto fresh = e.graph().node(e.clone(id, region, w.id(), inputs)).outputs().copy();
    for (size_t i = 0; i < old.size() && i < fresh.size(); ++i) clone_of.emplace(old[i], fresh[i]);
  }
  for (size_t i = 0; i < n; ++i) {
    e.set_input(w.id(), static_cast<uint32_t>(i), values[i]);
    e.set_input(w.id(), static_cast<uint32_t>(n + i), values[i]);
  }
  e.set_input(w.id(), static_cast<uint32_t>(2 * n), cloned(w.input(2 * n)));
}

/// Fails unless the type of all that matters is known, and each node that a gradient reaches has a rule.
void check_path(const GraphView& g, const Between& b, Span<const tn_value> variables, tn_value y) {
  const auto real = [&](tn_value v) {
    const tn_type t = g.value(v).type;
    if (t.kind == TN_KIND_NONE || (t.kind == TN_KIND_TENSOR && t.dtype == TN_DTYPE_NONE))
      decline("the type of '" + text(g.value(v).name) + "' is not known");
    return t.kind == TN_KIND_TENSOR && is_real(t.dtype);
  };
  for (const tn_value v : variables)
    if (!real(v))
      fail("'" + text(g.value(v).name) + "' is no tensor of floats; only such a one is a variable");
  if (!real(y))
    fail("y, '" + text(g.value(y).name) + "', is no tensor of floats; only such a one has a gradient");
  const std::unordered_set<tn_value> ends(variables.begin(), variables.end());
  std::unordered_set<tn_value> reached{y};
  for (auto id = b.nodes.rbegin(); id != b.nodes.rend(); ++id) {
    const Node n = g.node(*id);
    bool any = false;
    for (uint32_t i = 0; i < n.outputs().size(); ++i) {
      const tn_value v = n.output(i);
      if (v == TN_NONE || ends.count(v) || !reached.count(v)) continue;
      any = true;
      if (i > 0) cannot_differentiate(n);
    }
    if (!any) continue;
    if (n.op_name() == gradient_op) decline("it waits for another Gradient");
    if (!n.regions().empty() || !gradient_rule(n.op_name())) cannot_differentiate(n);
    for (const tn_value v : n.inputs())
      if (v != TN_NONE && b.dependent.count(v) && real(v)) reached.insert(v);
  }
}

void expand_gradient(Editor& e, const Node& node) {
  const Attributes a = node.attrs();
  const size_t xs = a.get_strings("xs").size(), n = xs + a.get_strings("zs").size();
  if (xs == 0) fail("attribute 'xs' names no value; expected at least one to differentiate by");
  const size_t operands = node.inputs().size();
  if (!a.has("y")) fail("attribute 'y', the value to differentiate, is missing");
  if (operands != 2 * n + 1)
    fail(
        format("it has %zu values to differentiate at; expected %zu, one for each that attributes 'xs' and "
               "'zs' name",
               operands - std::min(operands, n + 1), n));
  if (node.outputs().size() > xs)
    fail(format("it has %zu results; attribute 'xs' names %zu values to differentiate by",
                node.outputs().size(), xs));
  Rewrite w(e, node);
  for (const tn_value v : w.inputs())
    if (v == TN_NONE) fail("an operand is missing; each value that xs and zs name needs one");
  const Span<const tn_value> given(w.inputs().data(), n), named(w.inputs().data() + n, n);
  const tn_value y = w.input(2 * n);
  const Between b = between(e.graph(), named, y);
  if (e.graph().node_bound() + most_nodes_a_rule * b.nodes.size() > most_nodes)
    throw Failure(TN_ERR_LIMIT,
                  format("differentiating the %zu nodes between its variables and y makes a graph "
                         "of more than %zu nodes; differentiate fewer times, or a smaller graph",
                         b.nodes.size(), most_nodes));
  if (!std::equal(given.begin(), given.end(), named.begin())) {
    for (const tn_node id : b.nodes)
      if (const Node passed = e.graph().node(id); !passed.regions().empty()) cannot_differentiate(passed);
    clone_for_values(w, b, n);
    decline("the types between its variables and y are not known");
  }
  check_path(e.graph(), b, named, y);

  Tape tape(w, b.dependent);
  const auto filled = [&](double value, tn_value like) {
    return w.make("Expand", {w.number_like(value, like), w.make("Shape", {like})});
  };
  tape.add(y, b.dependent.count(y) ? filled(1, y) : tn_value{TN_NONE});
  const std::unordered_set<tn_value> ends(named.begin(), named.end());
  for (auto id = b.nodes.rbegin(); id != b.nodes.rend(); ++id) {
    const Node passed = e.graph().node(*id);
    const tn_value result = passed.output(0);
    if (result == TN_NONE || ends.count(result)) continue;
    const tn_value g = tape.gradient(result);
    if (g == TN_NONE) continue;
    const GradientRule rule = gradient_rule(passed.op_name());
    Step s(tape, passed, g);
    rule(s);
  }
  for (size_t i = 0; i < w.output_count(); ++i) {
    if (w.output(i) == TN_NONE) continue;
    const tn_value g = tape.gradient(named[i]);
    w.become(i, g == TN_NONE ? filled(0, named[i]) : g);
  }
  w.erase();
}

}  // namespace

void add_gradient(Plugin& p) {
  p.op("ai.onnx.preview.training", "Gradient", 1, 2)
      .doc("The derivative of one value of the graph by others.")
      .input("Inputs", "T1", TN_PARAM_VARIADIC)
      .output("Outputs", "T2", TN_PARAM_VARIADIC)
      .type_var("T1")
      .type_var("T2")
      .attr("xs", TN_ATTR_STRINGS, true)
      .attr("y", TN_ATTR_STRING, true)
      .attr("zs", TN_ATTR_STRINGS)
      .infer<infer_gradient>()
      .upgrade<expand_gradient>();
}

}  // namespace tenon::ops
