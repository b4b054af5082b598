#include "core/runtime/plan_store.hpp"

#include <cstring>

#include "core/base/tensor.hpp"
#include "core/base/text.hpp"

namespace tenon {
namespace {

// Contents beyond this size never decide shapes; comparing them at each run would cost more than planning
// saves.
constexpr uint64_t largest_integer_content_bytes = 65536, largest_other_content_bytes = 1024;

bool may_decide_shapes(tn_dtype dtype, uint64_t bytes) {
  if (dtype == TN_STRING || dtype == TN_DTYPE_NONE) return false;
  return bytes <= (dtype_is_integer(dtype) || dtype == TN_BOOL ? largest_integer_content_bytes
                                                               : largest_other_content_bytes);
}

template <class T>
void append(const void* data, uint64_t count, std::vector<int64_t>* out) {
  const auto* elements = static_cast<const T*>(data);
  for (uint64_t i = 0; i < count; ++i) out->push_back(static_cast<int64_t>(elements[i]));
}

bool integers_of(const tn_tensor& tensor, std::vector<int64_t>* out) {
  uint64_t count = 0;
  if (!element_count({tensor.dims, static_cast<size_t>(tensor.rank)}, &count) || count > max_known_elements)
    return false;
  switch (tensor.dtype) {
    case TN_INT8:
      append<int8_t>(tensor.data, count, out);
      return true;
    case TN_INT16:
      append<int16_t>(tensor.data, count, out);
      return true;
    case TN_INT32:
      append<int32_t>(tensor.data, count, out);
      return true;
    case TN_INT64:
      append<int64_t>(tensor.data, count, out);
      return true;
    case TN_UINT8:
    case TN_BOOL:
      append<uint8_t>(tensor.data, count, out);
      return true;
    case TN_UINT16:
      append<uint16_t>(tensor.data, count, out);
      return true;
    case TN_UINT32:
      append<uint32_t>(tensor.data, count, out);
      return true;
    default:
      return false;
  }
}

}  // namespace

PlanStore::PlanStore(RunGraph& graph, std::span<const Cell> cells, std::span<const tn_value> cell_values)
    : graph_(graph), cells_(cells) {
  for (uint32_t i = 0; i < cell_values.size(); ++i) {
    if (cells[i].kind == TN_KIND_NONE) {
      absent_.insert(cell_values[i]);
      continue;
    }
    Entry& e = entry(cell_values[i]);
    e.kind = cells[i].kind;
    e.cell = i;
    if (e.kind == TN_KIND_TENSOR) {
      e.dtype = cells[i].tensor.dtype;
      e.rank = cells[i].tensor.rank;
      e.dims.assign(cells[i].tensor.dims, cells[i].tensor.dims + e.rank);
    } else {
      // The element type is the graph's to say: an empty sequence does not know it.
      const tn_type& declared = graph.graph->type(cell_values[i]);
      e.dtype = declared.dtype != TN_DTYPE_NONE ? declared.dtype : cells[i].any->dtype;
    }
  }
}

PlanStore::Entry* PlanStore::find(tn_value value) {
  if (!dense_.empty()) {
    const uint32_t index = value < dense_.size() ? dense_[value] : 0;
    return index == 0 ? nullptr : &entries_[index - 1];
  }
  const auto found = sparse_.find(value);
  return found == sparse_.end() ? nullptr : &entries_[found->second];
}

PlanStore::Entry& PlanStore::entry(tn_value value) {
  if (Entry* existing = find(value)) return *existing;
  entries_.emplace_back();
  // Dense as soon as a good part of the graph is looked at.
  if (dense_.empty() && entries_.size() * 8 > graph_.graph->value_bound()) {
    dense_.assign(graph_.graph->value_bound(), 0);
    for (const auto& [known, index] : sparse_) dense_[known] = index + 1;
    sparse_.clear();
  }
  const auto index = static_cast<uint32_t>(entries_.size());
  if (dense_.empty()) {
    sparse_[value] = index - 1;
  } else {
    dense_[value] = index;
  }
  return entries_.back();
}

tn_type PlanStore::type(tn_value value) {
  if (const Entry* e = find(value); e != nullptr && e->kind != TN_KIND_NONE)
    return {e->kind, e->dtype, e->rank, e->encoding, e->dims.data()};
  if (graph_.graph->is_constant(value)) return graph_.graph->type(value);
  return {TN_KIND_NONE, TN_DTYPE_NONE, -1, 0, nullptr};
}

bool PlanStore::data(tn_value value, tn_tensor* out) {
  if (graph_.graph->is_constant(value)) return graph_.graph->constant(value, out);
  const Entry* e = find(value);
  if (e == nullptr) return false;
  if (e->data) {
    *out = e->data->tensor();
    return true;
  }
  if (e->kind != TN_KIND_TENSOR) return false;
  if (e->cell != UINT32_MAX) {
    const tn_tensor& tensor = cells_[e->cell].tensor;
    if (!may_decide_shapes(tensor.dtype, tensor.bytes)) return false;
    if (!allow_cells_) {
      withheld_ = true;
      return false;
    }
    looked_at_.insert(e->cell);
    *out = tensor;
    return true;
  }
  uint64_t bytes = 0;
  if (e->late &&
      (!is_known(value) || (tensor_bytes(e->dtype, e->dims, &bytes) && may_decide_shapes(e->dtype, bytes))))
    late_ = true;
  return false;
}

bool PlanStore::elements_from(const tn_tensor& tensor, std::vector<tn_dim>* out) {
  std::vector<int64_t> numbers;
  if (!integers_of(tensor, &numbers)) return false;
  out->clear();
  for (const int64_t number : numbers)
    out->push_back(number >= 0 ? number : graph_.graph->symbols().number(number));
  return true;
}

bool PlanStore::elements(tn_value value, const tn_dim** elements, uint32_t* count) {
  Entry* e = find(value);
  if (e == nullptr || !e->has_elements) {
    const tn_type known = type(value);
    if (known.dtype != TN_DTYPE_NONE && !dtype_is_integer(known.dtype) && known.dtype != TN_BOOL)
      return false;
    tn_tensor tensor{};
    std::vector<tn_dim> converted;
    if (!data(value, &tensor) || !elements_from(tensor, &converted)) return false;
    e = &entry(value);
    e->elements = std::move(converted);
    e->has_elements = true;
  }
  *elements = e->elements.data();
  *count = static_cast<uint32_t>(e->elements.size());
  return true;
}

void PlanStore::set_type(tn_value value, const tn_type& type) {
  Entry& e = entry(value);
  e.kind = type.kind;
  e.dtype = type.dtype;
  e.rank = type.rank;
  e.encoding = type.encoding;
  std::vector<tn_dim> dims;  // `type` may be what type() handed out
  if (type.rank > 0 && type.dims != nullptr) dims.assign(type.dims, type.dims + type.rank);
  if (type.rank > 0 && type.dims == nullptr) e.rank = -1;
  e.dims = std::move(dims);
}

void PlanStore::set_elements(tn_value value, const tn_dim* elements, uint32_t count) {
  Entry& e = entry(value);
  std::vector<tn_dim> copy(elements, elements + count);
  e.elements = std::move(copy);
  e.has_elements = true;
}

void PlanStore::clear_elements(tn_value value) {
  if (Entry* e = find(value)) e->has_elements = false;
}

tn_dim PlanStore::data_dependent(tn_node node, uint32_t output, uint32_t axis, int64_t lo, int64_t hi) {
  const std::string key = fmt::format("{}.{}.{}.{}.{}", node, output, axis, lo, hi);
  const auto found = graph_.data_dependent.find(key);
  if (found != graph_.data_dependent.end()) return found->second;
  const tn_dim dim = graph_.graph->symbols().fresh("run", lo, hi);
  graph_.data_dependent.emplace(key, dim);
  return dim;
}

void PlanStore::set_data(tn_value value, AnyRef data) { entry(value).data = std::move(data); }

const AnyRef* PlanStore::plan_constant(tn_value value) const {
  const Entry* e = find(value);
  return e != nullptr && e->data ? &e->data : nullptr;
}

bool PlanStore::known_data(tn_value value, tn_tensor* out, bool* constant) {
  *constant = true;
  if (graph_.graph->is_constant(value)) return graph_.graph->constant(value, out);
  const Entry* e = find(value);
  if (e == nullptr) return false;
  if (e->data) {
    *out = e->data->tensor();
    return true;
  }
  *constant = false;
  if (e->cell == UINT32_MAX || looked_at_.count(e->cell) == 0) return false;
  *out = cells_[e->cell].tensor;
  return true;
}

bool PlanStore::number_elements(tn_value value, std::vector<int64_t>* numbers) {
  const Entry* e = find(value);
  if (e == nullptr || !e->has_elements) return false;
  numbers->clear();
  for (const tn_dim element : e->elements) {
    const std::optional<int64_t> number = graph_.graph->symbols().as_number(element);
    if (!number) return false;
    numbers->push_back(*number);
  }
  return true;
}

bool PlanStore::is_known(tn_value value) {
  const tn_type known = type(value);
  if (known.kind == TN_KIND_NONE) return false;
  if (known.kind != TN_KIND_TENSOR) return true;
  if (known.rank < 0 || known.dtype == TN_DTYPE_NONE) return false;
  for (int32_t d = 0; d < known.rank; ++d) {
    if (known.dims[d] < 0) return false;
  }
  return true;
}

void PlanStore::restore(const KnownValue& known) {
  Entry& e = entry(known.value);
  if (e.kind == TN_KIND_NONE) {
    e.kind = known.kind;
    e.dtype = known.dtype;
    e.rank = known.rank;
    e.dims = known.dims;
  }
  e.has_elements = known.has_elements;
  e.elements = known.elements;
  e.data = known.data;
}

bool PlanStore::save(tn_value value, KnownValue* known) {
  const Entry* e = find(value);
  if (e == nullptr) return false;
  *known = {value, e->kind, e->dtype, e->rank, e->dims, e->has_elements, e->elements, e->data};
  return true;
}

}  // namespace tenon
