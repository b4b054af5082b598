// The pass drop_redundant_clip: a Clip right behind a SoftClamp whose bounds lie outside [-limit, limit] cuts
// nothing off and goes. Exact: tanh is within [-1, 1], and neither operator changes a NaN.
//
// Needs constant bounds (so `fold` comes before) and finds more after `fuse` has made SoftClamps. The
// SoftClamp may have further readers; it is not changed.
#include <limits>

#include "acme.hpp"

namespace acme {

using namespace tenon::sdk;

namespace {

constexpr const char* pass_name = "drop_redundant_clip";

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
  if (producer == TN_NONE || graph.node(producer).op_name() != "com.acme::SoftClamp")
    return Outcome::no_match;
  const double limit = graph.node(producer).attrs().get_float("limit", 0);
  const auto low = bound(graph, clip.input(1), -std::numeric_limits<double>::infinity());
  const auto high = bound(graph, clip.input(2), std::numeric_limits<double>::infinity());
  if (!low || !high) {
    pass.explain(TN_REASON_CONST, pass_name, clip.id(), "a bound of the Clip is no constant", {},
                 "run fold before this pass");
    return Outcome::kept;
  }
  if (*low > -limit || *high < limit) {
    pass.explain(TN_REASON_GUARD, pass_name, clip.id(),
                 format("the bounds are [%g, %g], limit is %g", *low, *high, limit),
                 "min <= -limit and max >= limit");
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

}  // namespace

void add_redundant_clip_pass(Plugin& plugin) {
  plugin.pass(pass_name)
      .summary("remove a Clip whose bounds a SoftClamp keeps anyway")
      .doc("Run it after fold (bounds must be constants) and after fuse (which makes SoftClamps). Exact.")
      .level(1)
      .flags(TN_PASS_IDEMPOTENT)
      .after("fuse")
      .run<run>();
}

}  // namespace acme
