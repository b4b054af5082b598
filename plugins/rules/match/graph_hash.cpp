#include "match/graph_hash.hpp"

#include <cstring>

namespace tenon::rules {
namespace {

constexpr uint64_t whole_constant = 4096;  // bytes; larger ones count by their id, as nobody makes them anew

uint64_t mix(uint64_t h, uint64_t v) {
  h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
  h *= 0xff51afd7ed558ccdu;
  return h ^ (h >> 33);
}

uint64_t bytes(uint64_t h, const void* data, uint64_t size) {
  const auto* p = static_cast<const unsigned char*>(data);
  uint64_t word = 0;
  for (; size >= 8; size -= 8, p += 8) {
    std::memcpy(&word, p, 8);
    h = mix(h, word);
  }
  word = size;
  for (; size > 0; --size) word = word << 8 | *p++;
  return mix(h, word);
}

uint64_t tensor(uint64_t h, const tn_tensor& t) {
  h = mix(h, static_cast<uint64_t>(t.dtype));
  for (int32_t i = 0; i < t.rank; ++i) h = mix(h, static_cast<uint64_t>(t.dims[i]));
  return bytes(h, t.data, t.bytes);
}

uint64_t attribute(uint64_t h, const tn_attr& a) {
  h = mix(mix(h, a.name), a.kind);
  switch (a.kind) {
    case TN_ATTR_INT:
      return mix(h, static_cast<uint64_t>(a.u.i));
    case TN_ATTR_FLOAT:
      return bytes(h, &a.u.f, sizeof a.u.f);
    case TN_ATTR_STRING:
      return bytes(h, a.u.s.data, a.u.s.size);
    case TN_ATTR_INTS:
      return bytes(h, a.u.ints, a.count * sizeof *a.u.ints);
    case TN_ATTR_FLOATS:
      return bytes(h, a.u.floats, a.count * sizeof *a.u.floats);
    case TN_ATTR_STRINGS:
      for (uint64_t i = 0; i < a.count; ++i) h = bytes(h, a.u.strings[i].data, a.u.strings[i].size);
      return h;
    case TN_ATTR_TENSOR:
      return a.u.tensor ? tensor(h, *a.u.tensor) : h;
    default:
      return h;
  }
}

class Hash {
 public:
  explicit Hash(const GraphAccess& graph)
      : graph_(graph), values_(graph.api()->value_bound(graph.raw()), 0) {}

  uint64_t run() {
    uint64_t h = 1;
    for (tn_region r = 0; r < graph_.api()->region_bound(graph_.raw()); ++r) {
      tn_region_info info{};
      info.size = sizeof info;
      if (graph_.api()->region(graph_.raw(), r, &info) != TN_OK) continue;
      h = mix(h, info.parent == TN_NONE ? 0 : graph_.node(info.parent).op);
      const tn_node* ids = nullptr;
      uint32_t count = 0;
      if (graph_.api()->nodes(graph_.raw(), r, &ids, &count) != TN_OK) continue;
      // Nodes in any order that their operands allow give one sum.
      uint64_t sum = 0;
      for (uint32_t i = 0; i < count; ++i) sum += node(ids[i]);
      h = mix(h, sum);
      for (uint32_t i = 0; i < info.output_count; ++i) h = mix(h, value(info.outputs[i]));
    }
    return h;
  }

 private:
  uint64_t node(tn_node id) {
    const tn_node_info n = graph_.node(id);
    uint64_t h = mix(n.op, n.input_count);
    for (uint32_t i = 0; i < n.input_count; ++i) h = mix(h, n.inputs[i] == TN_NONE ? 2 : value(n.inputs[i]));
    const char* p = reinterpret_cast<const char*>(n.attrs);
    uint64_t attributes = 0;
    for (uint32_t i = 0; i < n.attr_count; ++i, p += n.attr_stride)
      attributes += attribute(3, *reinterpret_cast<const tn_attr*>(p));
    h = mix(h, attributes);
    for (uint32_t k = 0; k < n.output_count; ++k)
      if (n.outputs[k] != TN_NONE) values_[n.outputs[k]] = mix(h, k + 1);
    return h;
  }

  uint64_t value(tn_value v) {
    uint64_t& h = values_[v];
    if (h) return h;
    const auto info = graph_.value(v);
    tn_tensor t;
    uint64_t size = 0;
    if (info.kind == TN_VALUE_CONSTANT && info.type.rank >= 0) {
      size = TN_DTYPE_BITS(info.type.dtype) / 8;
      for (int32_t i = 0; i < info.type.rank; ++i)
        size = info.type.dims[i] > 0 && size < whole_constant * 8
                   ? size * static_cast<uint64_t>(info.type.dims[i])
                   : whole_constant * 8;
    }
    if (info.kind == TN_VALUE_CONSTANT && info.type.dtype != TN_STRING && size <= whole_constant &&
        graph_.constant(v, &t))
      h = tensor(5, t);
    else
      h = mix(7, v);
    return h |= 1;
  }

  const GraphAccess& graph_;
  std::vector<uint64_t> values_;
};

}  // namespace

uint64_t graph_hash(const GraphAccess& graph) { return Hash(graph).run(); }

}  // namespace tenon::rules
