// The pass drop_redundant_clip: a Clip behind an operator that keeps within its bounds anyway cuts nothing
// off and goes. Neither Clip nor those operators change a NaN.
//
// Needs constant bounds, so `fold` comes before. The operator before it may have further readers; it is not
// changed.
#include <limits>

#include "tenon/sdk/pass.hpp"
#include "tenon/sdk/pass_services.hpp"
#include "tenon/sdk/plugin.hpp"

namespace {

using namespace tenon::sdk;

constexpr const char* pass_name = "drop_redundant_clip";

struct Bounded {
  const char* op;
  double least, greatest;
};
constexpr Bounded bounded[] = {
    {"Tanh", -1, 1}, {"Sigmoid", 0, 1}, {"Softmax", 0, 1}, {"Sin", -1, 1}, {"Cos", -1, 1}};

// A bound of Clip: absent is no bound; nothing when it is not one known number.
std::optional<double> bound(const GraphView& graph, tn_value value, double absent) {
  if (value == TN_NONE) return absent;
  return graph.uniform_number(value);
}

// The main graph, the bodies of If and Loop, and the bodies that fused nodes carry.
std::vector<tn_region> all_regions(const GraphView& graph) {
  std::vector<tn_region> regions{graph.main()};
  for (size_t i = 0; i < regions.size(); ++i)
    for (const tn_node id : graph.nodes(regions[i]))
      for (const tn_region inner : graph.node(id).regions()) regions.push_back(inner);
  return regions;
}

enum class Outcome { no_match, kept, removed, limit_reached };

Outcome visit(Pass& pass, const GraphView& graph, const Node& clip) {
  const tn_node producer = graph.producer(clip.input(0));
  if (producer == TN_NONE) return Outcome::no_match;
  const Bounded* range = nullptr;
  for (const Bounded& candidate : bounded)
    if (graph.node(producer).op_name() == candidate.op) range = &candidate;
  if (range == nullptr) return Outcome::no_match;
  const auto low = bound(graph, clip.input(1), -std::numeric_limits<double>::infinity());
  const auto high = bound(graph, clip.input(2), std::numeric_limits<double>::infinity());
  if (!low || !high) {
    pass.explain(TN_REASON_CONST, pass_name, clip.id(), "a bound of the Clip is no constant", {},
                 "run fold before this pass");
    return Outcome::kept;
  }
  // A kernel may round past the last value by a bit, which `strict` keeps as it is.
  const bool strict = pass.precision() == "strict";
  const bool holds =
      strict ? *low<range->least&& * high> range->greatest : *low <= range->least && *high >= range->greatest;
  if (!holds) {
    pass.explain(TN_REASON_GUARD, pass_name, clip.id(),
                 format("the bounds are [%g, %g], %s is within [%g, %g]", *low, *high, range->op,
                        range->least, range->greatest),
                 strict ? "min < least and max > greatest" : "min <= least and max >= greatest");
    return Outcome::kept;
  }
  Transaction edit = pass.edit(pass_name);
  if (!edit.active()) return Outcome::limit_reached;  // of applied rewrites, --bisect-limit
  edit.replace_uses(clip.output(0), clip.input(0));
  edit.erase(clip.id());
  if (!edit.commit()) {  // the graph is as it was
    pass.explain(TN_REASON_ROLLBACK, pass_name, clip.id(), edit.said());
    return Outcome::kept;
  }
  pass.explain(TN_REASON_APPLIED, pass_name, clip.id());
  return Outcome::removed;
}

void run(Pass& pass) {
  const GraphView graph = pass.graph();
  const tn_sym clip = graph.symbol("Clip");
  uint64_t matched = 0, applied = 0;
  bool more = true;
  for (const tn_region region : all_regions(graph)) {
    for (const tn_node id : graph.nodes(region).copy()) {  // a copy: an edit ends what the list points to
      const Node node = graph.node(id);
      if (!more || node.op() != clip) continue;
      const Outcome outcome = visit(pass, graph, node);
      more = outcome != Outcome::limit_reached;
      matched += outcome == Outcome::kept || outcome == Outcome::removed;
      applied += outcome == Outcome::removed;
    }
  }
  if (matched) pass.count(pass_name, matched, applied);
}

void provide(Plugin& plugin) {
  plugin.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION);
  plugin.vendor("Acme").license("Apache-2.0").summary("the pass drop_redundant_clip");
  plugin.instance<PassServices>();  // a host without graphs is told so when it opens the plugin
  plugin.pass(pass_name)
      .summary("remove a Clip that cuts nothing off")
      .doc(
          "Run it after fold, as bounds must be constants. Exact, but for a last bit where a bound is the "
          "range's end.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .after("fold")
      .run<run>();
}

}  // namespace

TENON_PLUGIN(provide)
