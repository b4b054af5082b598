// A copy of a whole graph: ids and order are kept; what never changes (attributes, names' texts, constants)
// is shared.
#include <algorithm>

#include "core/graph/edit.hpp"
#include "core/graph/graph.hpp"

namespace tenon {

std::unique_ptr<Graph> Graph::clone() const {
  auto copy = std::make_unique<Graph>();
  copy->nodes_ = nodes_;
  copy->values_ = values_;
  copy->regions_ = regions_;
  copy->constants_ = constants_;
  copy->types_ = types_;
  copy->type_index_ = type_index_;
  copy->elements_ = elements_;
  copy->element_index_ = element_index_;
  copy->attr_index_ = attr_index_;
  copy->origins_ = origins_;
  copy->origin_index_ = origin_index_;
  copy->data_dependent_ = data_dependent_;
  copy->names_.share(names_);
  copy->immutable_.share(immutable_);
  copy->symbols_ = symbols_;
  copy->opsets_ = opsets_;
  copy->metadata_ = metadata_;
  copy->defaults_ = defaults_;
  copy->live_nodes_ = live_nodes_;
  copy->registry_ = registry_;
  copy->version_ = version_;
  copy->highest_version_ = highest_version_;
  // Operands change in place, so they are the copy's own.
  for (uint32_t id = 0; id < copy->nodes_.size(); ++id) {
    Node& node = copy->nodes_[id];
    const Node& from = nodes_[id];
    node.input_data =
        copy->operands_.allocate_array<tn_value>(size_t(from.input_capacity) * 2 + from.output_count);
    node.output_data = node.input_data + size_t(from.input_capacity) * 2;
    std::copy_n(from.input_data, from.input_count, node.input_data);
    std::copy_n(from.input_data + from.input_capacity, from.input_count,
                node.input_data + from.input_capacity);
    std::copy_n(from.output_data, from.output_count, node.output_data);
  }
  return copy;
}

}  // namespace tenon
