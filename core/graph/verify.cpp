#include "core/graph/verify.hpp"

#include <algorithm>
#include <set>

#include "core/base/text.hpp"
#include "core/graph/infer.hpp"
#include "core/graph/order.hpp"

namespace tenon {

namespace {
class Verifier {
 public:
  Verifier(const Graph& graph, Diagnostics& diagnostics) : graph_(graph), diagnostics_(diagnostics) {}

  bool run() {
    const size_t before = diagnostics_.error_count();
    for (tn_region region = 0; region < graph_.region_bound(); ++region)
      if (graph_.region(region).alive) check_region(region);
    for (tn_value value = 0; value < graph_.value_bound(); ++value) check_value(value);
    uint32_t listed = 0;
    for (tn_region region = 0; region < graph_.region_bound(); ++region)
      if (graph_.region(region).alive) listed += graph_.region(region).node_count;
    if (listed != graph_.live_node_count())
      wrong("", fmt::format("{} nodes are in regions' lists, {} are counted live", listed,
                            graph_.live_node_count()));
    return diagnostics_.error_count() == before;
  }

 private:
  void wrong(const std::string& where, const std::string& text) {
    if (diagnostics_.error_count() < 100) diagnostics_.add(TN_SEVERITY_HOST_MISBEHAVING, "G390", where, text);
  }

  void check_region(tn_region id) {
    const Region& region = graph_.region(id);
    const std::string place = fmt::format("region {} '{}'", id, graph_.region_name(id));
    if (region.parent != TN_NONE) {
      if (region.parent >= graph_.node_bound() || !graph_.node(region.parent).alive)
        wrong(place, "its owner is no live node");
      else if (const auto owned = graph_.node(region.parent).regions();
               std::find(owned.begin(), owned.end(), id) == owned.end())
        wrong(place, "its owner does not list it");
    } else if (id != Graph::main_region) {
      wrong(place, "has no owner");
    }
    uint32_t count = 0;
    tn_node previous = TN_NONE;
    for (tn_node node = region.first; node != TN_NONE; previous = node, node = graph_.node(node).next) {
      ++count;
      if (count > graph_.node_bound()) return wrong(place, "its list of nodes is circular");
      const Node& n = graph_.node(node);
      if (n.previous != previous) wrong(node_place(graph_, node), "its link back in the order is wrong");
      if (previous != TN_NONE && graph_.node(previous).label >= n.label)
        wrong(node_place(graph_, node), "its order label is not above the one before");
      check_node(node, id);
    }
    if (previous != region.last) wrong(place, "its last node is not the end of its list");
    if (count != region.node_count)
      wrong(place, fmt::format("lists {} nodes and counts {}", count, region.node_count));
    for (uint32_t i = 0; i < region.inputs.size(); ++i) {
      const Value& input = graph_.value(region.inputs[i]);
      if (input.kind != TN_VALUE_REGION_INPUT || input.index != i || input.region != id)
        wrong(place, fmt::format("input {} is not its own", i));
    }
    for (uint32_t i = 0; i < region.outputs.size(); ++i)
      check_use(region.outputs[i], region.output_slots[i], {TN_NONE, i, id},
                fmt::format("output {} of {}", i, place));
  }

  void check_node(tn_node id, tn_region region) {
    const Node& node = graph_.node(id);
    const std::string place = node_place(graph_, id);
    if (!node.alive) wrong(place, "is listed and not alive");
    if (node.region_id != region) wrong(place, "is listed in a region that is not its own");
    for (uint32_t i = 0; i < node.input_count; ++i)
      if (node.input_data[i] != TN_NONE)
        check_use(node.input_data[i], node.input_data[node.input_capacity + i], {id, i, region}, place);
    for (uint32_t i = 0; i < node.output_count; ++i) {
      if (node.output_data[i] == TN_NONE) continue;
      const Value& value = graph_.value(node.output_data[i]);
      if (value.kind != TN_VALUE_RESULT || value.producer != id || value.index != i || value.region != region)
        wrong(place, fmt::format("result {} is not its own", i));
    }
  }

  void check_use(tn_value id, uint32_t slot, const tn_use& use, const std::string& place) {
    if (id >= graph_.value_bound()) return wrong(place, fmt::format("reads value #{}, which never was", id));
    const Value& value = graph_.value(id);
    if (value.kind == TN_VALUE_DEAD)
      return wrong(place, fmt::format("reads {}, which is dead", value_place(graph_, id)));
    const auto uses = graph_.users(id);
    if (slot >= uses.size() || uses[slot].node != use.node || uses[slot].index != use.index ||
        uses[slot].region != use.region)
      wrong(place, fmt::format("its use of {} is not where the use list has it", value_place(graph_, id)));
    if (!graph_.is_visible(value.region, use.region))
      return wrong(place, fmt::format("reads {}, which is not visible", value_place(graph_, id)));
    if (value.kind != TN_VALUE_RESULT) return;
    const tn_node user = user_within(graph_, value.region, use);
    if (user != TN_NONE && !graph_.comes_before(value.producer, user))
      wrong(place, fmt::format("comes before the producer of {}", value_place(graph_, id)));
  }

  void check_value(tn_value id) {
    const Value& value = graph_.value(id);
    for (const tn_use& use : graph_.users(id)) {
      const bool good = use.node == TN_NONE
                            ? use.region < graph_.region_bound() && graph_.region(use.region).alive &&
                                  use.index < graph_.region(use.region).outputs.size() &&
                                  graph_.region(use.region).outputs[use.index] == id
                            : use.node < graph_.node_bound() && graph_.node(use.node).alive &&
                                  graph_.node(use.node).input(use.index) == id;
      if (!good) wrong(value_place(graph_, id), "its use list names a user that does not use it");
    }
    if (value.kind == TN_VALUE_DEAD) {
      if (value.uses.size() != 0) wrong(value_place(graph_, id), "is dead and used");
      return;
    }
    if (value.name != NamePool::none) {
      const std::string_view name = graph_.name(id);
      const tn_value found = graph_.find_value(name, value.region);
      if (found == TN_NONE)
        wrong(value_place(graph_, id), "is not found by its name");
      else if (found != id && graph_.value(found).region == value.region && value.kind != TN_VALUE_CONSTANT)
        wrong(value_place(graph_, id), "shares its name within its region");
    }
  }

  const Graph& graph_;
  Diagnostics& diagnostics_;
};
}  // namespace

bool verify(const Graph& graph, Diagnostics& diagnostics) { return Verifier(graph, diagnostics).run(); }

}  // namespace tenon
