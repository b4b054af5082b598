#include "export_lower.hpp"

#include <algorithm>

namespace tenon::onnx {
namespace {

constexpr int most_rounds = 64;  // decompositions within decompositions

class Lowering {
 public:
  Lowering(const tn_edit_api* api, const sdk::GraphView& graph, Choosing& choosing)
      : api_(api), graph_(graph), choosing_(choosing) {}

  void run() {
    for (int round = 0; round < most_rounds; ++round) {
      const std::vector<tn_node> nodes = to_replace();
      if (nodes.empty() || !replace(nodes)) return;
    }
    throw sdk::Failure(
        TN_ERR_INTERNAL,
        sdk::format("operators still decompose after %d rounds; a decomposition goes in a circle",
                    most_rounds));
  }

 private:
  std::vector<tn_node> to_replace() {
    std::vector<tn_node> found;
    std::vector<tn_region> regions{graph_.main()};
    for (size_t i = 0; i < regions.size(); ++i) {
      for (const tn_node id : graph_.nodes(regions[i])) {
        const sdk::Node node = graph_.node(id);
        const Writing writing = choosing_.choose(graph_, node).writing;
        if (writing == Writing::replaced) {
          found.push_back(id);
          continue;
        }
        for (const tn_region r : node.regions())
          if (is_written(graph_, node, choosing_, writing, r)) regions.push_back(r);
      }
    }
    return found;
  }

  /// False: nothing could be. What an earlier node of the list became has no types until it is committed, and
  /// decompositions may ask for them: a node that declines is asked again after that.
  bool replace(const std::vector<tn_node>& nodes) {
    bool any = false;
    for (size_t i = 0; i < nodes.size();) {
      sdk::Transaction edit(graph_.api(), api_, graph_.raw(), "export");
      if (!edit.active())
        throw sdk::Failure(
            TN_ERR_LIMIT,
            "the graph holds nodes that must be replaced before it can be written, but the run's "
            "limit of applied rewrites is reached; raise --bisect-limit");
      const size_t first = i;
      while (i < nodes.size() && (inline_body(edit, nodes[i]) || decompose(edit, nodes[i]))) ++i;
      any = any || i > first;
      if (i == first) choosing_.kept.insert(nodes[i++]);
      if (!edit.commit())
        throw sdk::Failure(TN_ERR_INTERNAL, "replacing nodes that the model cannot hold: " + edit.said());
    }
    return any;
  }

  bool inline_body(sdk::Editor& edit, tn_node id) {
    const sdk::Node node = graph_.node(id);
    const tn_region body = body_of(graph_, node, choosing_.definition(node.op()));
    if (body == TN_NONE) return false;
    const tn_region_info info = graph_.region(body);
    const std::vector<tn_value> formals(info.inputs, info.inputs + info.input_count);
    std::vector<tn_value> outputs(info.outputs, info.outputs + info.output_count);
    const std::vector<tn_value> actuals = body_operands(node, formals.size());
    for (tn_value& output : outputs) {
      const auto formal = std::find(formals.begin(), formals.end(), output);
      if (formal != formals.end()) output = actuals[static_cast<size_t>(formal - formals.begin())];
    }
    const std::vector<tn_value> results = node.outputs().copy();
    edit.inline_region(body, actuals, id);
    for (size_t i = 0; i < results.size() && i < outputs.size(); ++i)
      if (results[i] != TN_NONE && outputs[i] != TN_NONE) edit.replace_uses(results[i], outputs[i]);
    edit.erase(id);
    return true;
  }

  bool decompose(sdk::Editor& edit, tn_node id) {
    if (!choosing_.decomposing) return false;
    sdk::DiagBuffer said;
    const std::string label = graph_.node(id).label();
    const tn_status s =
        choosing_.decomposing->decompose(choosing_.host, graph_.raw(), edit.raw(), id, said.raw());
    if (s == TN_DECLINED) return false;
    if (s != TN_OK) throw sdk::Failure(s, "it cannot be decomposed: " + said.text(), "node " + label);
    return true;
  }

  const tn_edit_api* api_;
  const sdk::GraphView& graph_;
  Choosing& choosing_;
};

}  // namespace

void lower(const tn_edit_api* edit, const sdk::GraphView& graph, Choosing& choosing) {
  if (choosing.registry) Lowering(edit, graph, choosing).run();
}

bool is_written(const sdk::GraphView& graph, const sdk::Node& node, const Choosing& choosing, Writing writing,
                tn_region region) {
  const bool body = region == body_of(graph, node, choosing.definition(node.op()));
  return body == (writing == Writing::function);
}

}  // namespace tenon::onnx
