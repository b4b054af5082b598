// The pass @NAME@: Relu(Relu(x)) is Relu(x). Exact, also for NaN and the sign of zero.
#include "tenon/sdk/pass_services.hpp"
#include "tenon/sdk/plugin.hpp"
#include "tenon/sdk/pass.hpp"

namespace {

using namespace tenon::sdk;

constexpr const char* pass_name = "@NAME@";

// The main graph, and the bodies of If, Loop and fused nodes.
std::vector<tn_region> all_regions(const GraphView& graph) {
  std::vector<tn_region> regions{graph.main()};
  for (size_t i = 0; i < regions.size(); ++i)
    for (const tn_node id : graph.nodes(regions[i]))
      for (const tn_region inner : graph.node(id).regions()) regions.push_back(inner);
  return regions;
}

/// False when the limit of applied rewrites (--bisect-limit) is reached.
bool visit(Pass& pass, const Node& relu, uint64_t& matched, uint64_t& applied) {
  const GraphView graph = pass.graph();
  const tn_node before = graph.producer(relu.input(0));
  if (before == TN_NONE || graph.node(before).op() != relu.op()) return true;
  ++matched;
  Transaction edit = pass.edit(pass_name);
  if (!edit.active()) return false;
  edit.replace_uses(relu.output(0), relu.input(0));
  edit.erase(relu.id());
  if (edit.commit()) {
    ++applied;
    pass.explain(TN_REASON_APPLIED, pass_name, relu.id());
  } else {  // the graph is as it was
    pass.explain(TN_REASON_ROLLBACK, pass_name, relu.id(), edit.said());
  }
  return true;
}

void run(Pass& pass) {
  const GraphView graph = pass.graph();
  const tn_sym relu = graph.symbol("Relu");
  uint64_t matched = 0, applied = 0;
  bool more = true;
  for (const tn_region region : all_regions(graph))
    for (const tn_node id : graph.nodes(region).copy()) {  // a copy: an edit ends what the list points to
      const Node node = graph.node(id);
      if (more && node.op() == relu) more = visit(pass, node, matched, applied);
    }
  if (matched) pass.count(pass_name, matched, applied);
}

void provide(Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("@VENDOR@").license("Apache-2.0").summary("the pass @NAME@");
  plugin.instance<PassServices>();  // a host without graphs is told so when it opens the plugin
  plugin.pass(pass_name)
      .summary("remove a Relu behind a Relu")
      .doc("Needs nothing before it. Exact.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .run<run>();
}

}  // namespace

TENON_PLUGIN(provide)
