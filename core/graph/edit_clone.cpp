// clone_node: a node with everything its regions hold. An explicit stack of regions, as they may nest.
#include <unordered_map>

#include "core/base/text.hpp"
#include "core/graph/edit.hpp"
#include "core/graph/infer.hpp"

using namespace tenon;

tn_node tn_edit::clone_one(tn_node source, tn_region region, tn_node before,
                           std::span<const tn_value> inputs) {
  const std::string name(graph.node_name(source));
  const uint32_t given = name.empty() ? uint32_t(NamePool::none) : graph.unique_name(name, true);
  std::vector<uint32_t> output_names;
  for (const tn_value output : graph.node(source).outputs())
    output_names.push_back(output == TN_NONE ? TN_NONE
                                             : graph.unique_name(std::string(graph.name(output)), false));
  const Node from = graph.node(source);
  const tn_node copy = graph.create_node(from.op, from.op_version, region, before, given, inputs,
                                         from.attr_data, from.attr_count, output_names, from.origin);
  if (!is_build()) created_.push_back(copy);
  for (uint32_t i = 0; i < inputs.size(); ++i) note_use({copy, i, region});
  return copy;
}

tn_status tn_edit::clone_node(tn_node node, tn_region region, tn_node before, const tn_value* inputs,
                              uint32_t count, tn_node* clone) {
  *clone = TN_NONE;
  if (!is_live_node(node))
    return refuse(fmt::format("node {} cloned, which does not exist or was erased", node));
  if (!is_live_region(region))
    return refuse(
        fmt::format("{} cloned into region {}, which does not exist", node_place(graph, node), region));
  if (before != TN_NONE && (!is_live_node(before) || graph.node(before).region_id != region))
    return refuse(fmt::format("{} cloned before node {}, which is not a live node of region {}",
                              node_place(graph, node), before, region));
  if (const tn_status status = check_values(inputs, count, true, "operands of a clone"); status != TN_OK)
    return status;
  if (graph.owner_within(graph.node(node).region_id, region) == node)
    return refuse(fmt::format("{} cloned into one of its own regions", node_place(graph, node)));

  std::unordered_map<tn_value, tn_value> copies;  // of what is defined inside the clone
  const auto copied = [&](tn_value value) {
    const auto found = copies.find(value);
    return found == copies.end() ? value : found->second;
  };
  struct Job {
    tn_region from, to;
    tn_node next;
  };
  std::vector<Job> open;
  // Regions are made with their inputs at once; their nodes follow from the stack, so that inner ones see the
  // outer copies.
  const auto make_regions = [&](tn_node source, tn_node copy) -> tn_status {
    const std::vector<tn_region> regions(graph.node(source).regions().begin(),
                                         graph.node(source).regions().end());
    for (size_t i = regions.size(); i-- > 0;)
      open.push_back({regions[i], TN_NONE, graph.first_node(regions[i])});
    const size_t first = open.size() - regions.size();
    for (size_t i = 0; i < regions.size(); ++i) {
      tn_region made = TN_NONE;
      if (const tn_status status = create_region(copy, std::string(graph.region_name(regions[i])), &made);
          status != TN_OK)
        return status;
      open[first + (regions.size() - 1 - i)].to = made;
      for (const tn_value input : std::vector<tn_value>(graph.region(regions[i]).inputs)) {
        const uint32_t name = graph.unique_name(std::string(graph.name(input)), false);
        copies[input] = graph.add_region_input(made, name, graph.value(input).type);
      }
    }
    return TN_OK;
  };

  const tn_node top = clone_one(node, region, before, {inputs, count});
  if (const tn_status status = make_regions(node, top); status != TN_OK) return status;
  std::vector<tn_value> operands;
  while (!open.empty()) {
    Job& job = open.back();
    if (job.next == TN_NONE) {
      const Job done = job;
      open.pop_back();
      std::vector<tn_value> outputs;
      for (const tn_value output : graph.region(done.from).outputs) outputs.push_back(copied(output));
      graph.set_region_outputs(done.to, outputs);
      for (uint32_t i = 0; i < outputs.size(); ++i) {
        graph.record(Graph::Op::region_output_renamed, done.to, i, graph.region(done.to).output_names[i]);
        graph.regions_[done.to].output_names[i] = graph.region(done.from).output_names[i];
      }
      continue;
    }
    const tn_node source = job.next;
    const tn_region to = job.to;
    job.next = graph.next_node(source);
    operands.clear();
    for (const tn_value input : graph.node(source).inputs())
      operands.push_back(input == TN_NONE ? TN_NONE : copied(input));
    const tn_node copy = clone_one(source, to, TN_NONE, operands);
    for (uint32_t i = 0; i < graph.node(source).output_count; ++i) {
      const tn_value from = graph.node(source).output(i), made = graph.node(copy).output(i);
      if (from == TN_NONE) continue;
      copies[from] = made;
      graph.set_type(made, graph.value(from).type, false);
    }
    if (const tn_status status = make_regions(source, copy); status != TN_OK) return status;
  }
  *clone = top;
  return TN_OK;
}
