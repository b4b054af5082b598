// The plugin tenon.elementwise: pass fuse_elementwise and the operator tenon::FusedElementwise.
#include "tenon/sdk/pass_services.hpp"

#include <algorithm>
#include <unordered_map>

#include "groups.hpp"

namespace tenon::elementwise {

using namespace sdk;

namespace {

constexpr const char* fused_op = "tenon::FusedElementwise";
constexpr const char* who = "fuse_elementwise";

/// The type of a value with memory of its own: what the graph hands out may move when it is edited.
struct HeldType {
  explicit HeldType(const tn_type& t) : type(t), dims(dims_of(t).copy()) { type.dims = dims.data(); }
  tn_type type;
  std::vector<tn_dim> dims;
};

/// The axes of a reduction and such: its body reads the constants where they are, since its result's shape
/// hangs on them.
bool stays_outside(const GraphView& graph, const Group& group, tn_node n, uint32_t slot) {
  return n == group.nodes.back() && slot > 0 && group.computed != graph.node(n).output(0);
}

/// What the group reads, in the order of nodes, then operands; each value once.
std::vector<tn_value> operands_of(const GraphView& graph, const Group& group) {
  std::vector<tn_value> operands, inside;
  for (const tn_node n : group.nodes) {
    const auto inputs = graph.node(n).inputs();
    for (uint32_t i = 0; i < inputs.size(); ++i) {
      const tn_value v = inputs[i];
      if (v != TN_NONE && !stays_outside(graph, group, n, i) &&
          std::find(inside.begin(), inside.end(), v) == inside.end() &&
          std::find(operands.begin(), operands.end(), v) == operands.end())
        operands.push_back(v);
    }
    inside.push_back(graph.node(n).output(0));
  }
  return operands;
}

std::string names_of(const GraphView& graph, const Group& group) {
  std::string names;
  for (const tn_node n : group.nodes) names += (names.empty() ? "" : ", ") + graph.node(n).label();
  return names;
}

enum class Outcome { fused, refused, limit };

Outcome fuse(Pass& pass, const GraphView& graph, const Group& group) {
  const std::string names = pass.detailed() ? names_of(graph, group) : std::string();
  const tn_node last = group.nodes.back();
  const std::vector<tn_value> operands = operands_of(graph, group);
  Transaction edit = pass.edit(who);
  if (!edit.active()) return Outcome::limit;
  NodeSpec spec;
  spec.op = fused_op;
  spec.inputs = operands;
  spec.region = graph.node(last).region();
  spec.before = last;
  spec.origins = group.nodes;
  const tn_node fused = edit.create(spec).id();
  const tn_region body = edit.create_region(fused, "body");
  std::unordered_map<tn_value, tn_value> inner;
  for (size_t i = 0; i < operands.size(); ++i) {
    const HeldType type(graph.value(operands[i]).type);
    inner[operands[i]] = edit.region_input(body, "x" + std::to_string(i), type.type);
  }
  for (const tn_node n : group.nodes) {
    std::vector<tn_value> inputs;
    const auto read = graph.node(n).inputs();
    for (uint32_t i = 0; i < read.size(); ++i)
      inputs.push_back(read[i] == TN_NONE || stays_outside(graph, group, n, i) ? read[i] : inner.at(read[i]));
    const tn_value result = graph.node(n).output(0);
    inner[result] = graph.node(edit.clone(n, body, TN_NONE, inputs)).output(0);
  }
  const tn_value result = graph.node(last).output(0);
  const tn_value yielded = inner.at(result);
  edit.region_outputs(body, Span<const tn_value>(&yielded, 1));
  edit.replace_uses(result, graph.node(fused).output(0));
  for (size_t i = group.nodes.size(); i-- > 0;) edit.erase(group.nodes[i]);
  if (!edit.commit()) {
    pass.explain(TN_REASON_ROLLBACK, who, last, edit.said());
    return Outcome::refused;
  }
  pass.explain(TN_REASON_APPLIED, who, fused, names);
  return Outcome::fused;
}

void run(Pass& pass) {
  const GraphView graph = pass.graph();
  const auto max_nodes = static_cast<size_t>(pass.option_int("max_nodes"));
  uint64_t matched = 0, applied = 0;
  bool limit = false;
  std::vector<tn_region> regions{graph.main()};
  GroupFinder finder(pass, graph, max_nodes);
  for (size_t r = 0; r < regions.size() && !limit; ++r) {
    // Bodies of control flow run; those that fused nodes keep are looked at no more.
    for (const tn_node n : graph.nodes(regions[r])) {
      const Node node = graph.node(n);
      if (node.regions().empty()) continue;
      const tn_op_def* op = pass.op(node.op());
      if (op && (op->flags & TN_OP_CONTROL_FLOW))
        for (const tn_region inner : node.regions()) regions.push_back(inner);
    }
    const Found found = finder.look(regions[r]);
    for (const Refusal& refusal : found.refusals)
      pass.explain(refusal.reason, who, refusal.node, refusal.text);
    for (const Group& group : found.groups) {
      if (pass.cancelled()) return;
      const Outcome outcome = fuse(pass, graph, group);
      limit = outcome == Outcome::limit;
      if (limit) break;
      ++matched;
      applied += outcome == Outcome::fused;
    }
  }
  if (matched) pass.count(who, matched, applied);
}

void infer(Infer& c) {
  if (c.node().region_count != 1)
    fail("it has " + std::to_string(c.node().region_count) + " bodies; expected one");
  std::vector<tn_type> types;
  for (uint32_t i = 0; i < c.input_count(); ++i) types.push_back(c.type(i));
  std::vector<HeldType> results;
  for (const tn_type& t : c.region(0, types)) results.emplace_back(t);
  if (results.size() != c.output_count())
    fail(format("its body has %zu results, the node %u", results.size(), c.output_count()));
  for (uint32_t i = 0; i < c.output_count(); ++i) c.set(i, results[i].type);
}

void provide(Plugin& p) {
  p.instance<PassServices>()
      .id(TENON_PLUGIN_ID)
      .name(TENON_PLUGIN_NAME)
      .version(TENON_PLUGIN_VERSION)
      .vendor("Tenon")
      .summary("fusion of element-wise operators into one loop");
  p.op("tenon", "FusedElementwise", 1, 1)
      .doc(
          "What its body says, element by element: the nodes of the body are element-wise and of one shape, "
          "into which the operands broadcast. The last one may be a reduction over the last axes. Element "
          "types are the body's.")
      .input("X", "T1", TN_PARAM_VARIADIC | TN_PARAM_HETEROGENEOUS)
      .output("Y", "T2")
      .type_var("T1")
      .type_var("T2")
      .min_inputs(1)
      .infer<infer>();
  p.pass(who)
      .summary("one node for each group of element-wise nodes that one loop can compute")
      .doc(
          "A group has one result; its nodes are element-wise by their operators' definitions and of one "
          "shape, whatever their element types; a reduction over the last axes may end it; nothing else "
          "reads what is inside. What only shapes tell stays apart. The fused node keeps the nodes as its "
          "body, so the results are the same bit for bit, and where no kernel takes it the body runs. Run it "
          "after fuse, which gives element-wise nodes to the operators before them.")
      .level(3)
      .flags(TN_PASS_IDEMPOTENT)
      .after("fuse")
      .option_int("max_nodes", 32, 2, 1000, "largest number of nodes in a group")
      .run<run>();
}

}  // namespace
}  // namespace tenon::elementwise

TENON_PLUGIN(tenon::elementwise::provide)
