// The tables of tenon.graph/1 and tenon.symbols/1.
#include <new>

#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/graph/interner.hpp"

namespace tenon {

namespace {
template <class R, class F>
R guarded(R otherwise, F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    return otherwise;
  }
}
template <class F>
tn_status guarded_status(F&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return TN_ERR_MEMORY;
  } catch (...) {
    return TN_ERR_INTERNAL;
  }
}

// Copies as much of a struct as the caller's own definition of it has room for.
template <class T>
void hand_out(const T& from, T* out) {
  const uint32_t size = std::min<uint32_t>(out->size, sizeof(T));
  std::memcpy(out, &from, size);
  out->size = size;
}

tn_sym symbol(tn_str text) {
  return guarded<tn_sym>(0, [&] { return intern(view(text)); });
}
tn_str symbol_text_of(tn_sym symbol) {
  return guarded<tn_str>({nullptr, 0}, [&] { return to_abi(symbol_text(symbol)); });
}

tn_status node(tn_graph* handle, tn_node id, tn_node_info* out) {
  return guarded_status([&]() -> tn_status {
    Graph& graph = Graph::from(handle);
    if (id >= graph.node_bound()) return TN_ERR_NOT_FOUND;
    const Node& n = graph.node(id);
    const tn_node_info info{
        sizeof(tn_node_info), n.op,          n.op_version,   n.region_id,     to_abi(graph.node_name(id)),
        n.input_data,         n.output_data, n.attr_data,    n.region_data,   n.input_count,
        n.output_count,       n.attr_count,  n.region_count, sizeof(tn_attr), n.alive ? 1u : 0u};
    hand_out(info, out);
    return TN_OK;
  });
}
tn_status value(tn_graph* handle, tn_value id, tn_value_info* out) {
  return guarded_status([&]() -> tn_status {
    Graph& graph = Graph::from(handle);
    if (id >= graph.value_bound()) return TN_ERR_NOT_FOUND;
    const Value& v = graph.value(id);
    const tn_value_info info{
        sizeof(tn_value_info),  v.kind,        v.producer, v.index, v.region, v.uses.size(),
        to_abi(graph.name(id)), graph.type(id)};
    hand_out(info, out);
    return TN_OK;
  });
}
tn_status region(tn_graph* handle, tn_region id, tn_region_info* out) {
  return guarded_status([&]() -> tn_status {
    Graph& graph = Graph::from(handle);
    if (id >= graph.region_bound()) return TN_ERR_NOT_FOUND;
    const Region& r = graph.region(id);
    const tn_region_info info{sizeof(tn_region_info),
                              r.parent,
                              to_abi(graph.region_name(id)),
                              r.inputs.data(),
                              r.outputs.data(),
                              static_cast<uint32_t>(r.inputs.size()),
                              static_cast<uint32_t>(r.outputs.size()),
                              r.node_count,
                              0};
    hand_out(info, out);
    return TN_OK;
  });
}
tn_status nodes(tn_graph* handle, tn_region id, const tn_node** ids, uint32_t* count) {
  return guarded_status([&]() -> tn_status {
    Graph& graph = Graph::from(handle);
    if (id >= graph.region_bound()) return TN_ERR_NOT_FOUND;
    const auto all = graph.nodes(id);
    *ids = all.data();
    *count = static_cast<uint32_t>(all.size());
    return TN_OK;
  });
}
tn_status users(tn_graph* handle, tn_value id, const tn_use** uses, uint32_t* count) {
  Graph& graph = Graph::from(handle);
  if (id >= graph.value_bound()) return TN_ERR_NOT_FOUND;
  *uses = graph.users(id).data();
  *count = graph.value(id).uses.size();
  return TN_OK;
}
tn_status constant(tn_graph* handle, tn_value id, tn_tensor* out) {
  return guarded_status([&]() -> tn_status {
    Graph& graph = Graph::from(handle);
    return id < graph.value_bound() && graph.constant(id, out) ? TN_OK : TN_ERR_NOT_FOUND;
  });
}
int uniform(tn_graph* handle, tn_value id, const void** element) {
  return guarded<int>(0, [&] {
    Graph& graph = Graph::from(handle);
    *element = id < graph.value_bound() ? graph.uniform_element(id) : nullptr;
    return *element ? 1 : 0;
  });
}
tn_status known_elements(tn_graph* handle, tn_value id, const tn_dim** elements, uint32_t* count) {
  return guarded_status([&]() -> tn_status {
    Graph& graph = Graph::from(handle);
    return id < graph.value_bound() && graph.known_elements(id, elements, count) ? TN_OK : TN_ERR_NOT_FOUND;
  });
}
tn_status origins(tn_graph* handle, tn_node id, const tn_str** names, uint32_t* count) {
  return guarded_status([&]() -> tn_status {
    Graph& graph = Graph::from(handle);
    if (id >= graph.node_bound()) return TN_ERR_NOT_FOUND;
    thread_local std::vector<tn_str>
        found;  // "valid until the next edit": and the next such call of this thread
    found.clear();
    for (const std::string_view name : graph.origins(id)) found.push_back(to_abi(name));
    *names = found.data();
    *count = static_cast<uint32_t>(found.size());
    return TN_OK;
  });
}
uint32_t node_bound(tn_graph* handle) { return Graph::from(handle).node_bound(); }
uint32_t value_bound(tn_graph* handle) { return Graph::from(handle).value_bound(); }
uint32_t region_bound(tn_graph* handle) { return Graph::from(handle).region_bound(); }
int32_t opset(tn_graph* handle, tn_str domain) {
  return guarded<int32_t>(0, [&] {
    const auto& all = Graph::from(handle).opsets();
    const auto found = all.find(view(domain) == "ai.onnx" ? std::string_view() : view(domain));
    return found == all.end() ? 0 : found->second;
  });
}
tn_str metadata(tn_graph* handle, tn_str key) {
  return guarded<tn_str>({nullptr, 0}, [&] {
    if (view(key) == Graph::name_key) return to_abi(Graph::from(handle).region_name(Graph::main_region));
    const auto& all = Graph::from(handle).metadata();
    const auto found = all.find(view(key));
    return found == all.end() ? tn_str{nullptr, 0} : to_abi(found->second);
  });
}
uint64_t version(tn_graph* handle) { return Graph::from(handle).version(); }
tn_str output_name(tn_graph* handle, tn_region id, uint32_t index) {
  Graph& graph = Graph::from(handle);
  if (id >= graph.region_bound() || index >= graph.region(id).outputs.size()) return {nullptr, 0};
  return to_abi(graph.output_name(id, index));
}
tn_value default_of(tn_graph* handle, tn_value id) { return Graph::from(handle).default_of(id); }

constexpr tn_graph_api table = {sizeof(tn_graph_api),
                                Graph::main_region,
                                symbol,
                                symbol_text_of,
                                node,
                                value,
                                region,
                                nodes,
                                users,
                                constant,
                                uniform,
                                known_elements,
                                origins,
                                node_bound,
                                value_bound,
                                region_bound,
                                opset,
                                metadata,
                                version,
                                output_name,
                                default_of};

// --- symbols

SymbolTable& symbols_of(tn_graph* handle) { return Graph::from(handle).symbols(); }
// What cannot be computed for want of memory is a number no shape has: readers see an absurd size, not a
// wrong one.
constexpr tn_dim no_dim = TN_DIM_MAX;

tn_dim combine(tn_graph* graph, tn_dim_op op, tn_dim a, tn_dim b) {
  return guarded<tn_dim>(no_dim, [&] { return symbols_of(graph).combine(op, a, b); });
}
tn_dim number(tn_graph* graph, int64_t value_of) {
  return guarded<tn_dim>(no_dim, [&] { return symbols_of(graph).number(value_of); });
}
int as_number(tn_graph* graph, tn_dim dim, int64_t* out) {
  const auto found = symbols_of(graph).as_number(dim);
  if (found) *out = *found;
  return found ? 1 : 0;
}
tn_dim named(tn_graph* graph, tn_str name) {
  return guarded<tn_dim>(no_dim, [&] { return symbols_of(graph).named(view(name)); });
}
tn_dim fresh(tn_graph* graph, tn_str hint, int64_t lo, int64_t hi) {
  return guarded<tn_dim>(no_dim, [&] { return symbols_of(graph).fresh(view(hint), lo, hi); });
}
void range(tn_graph* graph, tn_dim dim, int64_t* lo, int64_t* hi) { symbols_of(graph).range(dim, lo, hi); }
tn_truth compare(tn_graph* graph, tn_dim_relation relation, tn_dim a, tn_dim b) {
  return guarded<tn_truth>(TN_UNKNOWN, [&] { return symbols_of(graph).compare(relation, a, b); });
}
tn_str text(tn_graph* graph, tn_dim dim) {
  return guarded<tn_str>({nullptr, 0}, [&] {
    thread_local std::string kept;
    kept = symbols_of(graph).text(dim);
    return to_abi(kept);
  });
}
int evaluate(tn_graph* graph, tn_dim dim, int (*lookup)(void*, tn_str, int64_t*), void* context,
             int64_t* out) {
  return guarded<int>(0, [&] {
    const auto found = symbols_of(graph).evaluate(dim, [&](std::string_view name) -> std::optional<int64_t> {
      int64_t number_of = 0;
      if (lookup(context, to_abi(name), &number_of) == 0) return std::nullopt;
      return number_of;
    });
    if (found) *out = *found;
    return found ? 1 : 0;
  });
}
constexpr tn_symbols_api symbol_table = {
    sizeof(tn_symbols_api), 0, combine, number, as_number, named, fresh, range, compare, text, evaluate};
}  // namespace

const tn_graph_api* graph_api() { return &table; }
const tn_symbols_api* symbols_api() { return &symbol_table; }

}  // namespace tenon
