// Common subexpressions: equal operator, version, attributes (defaults filled in) and operands, in one
// region; shape arithmetic known to be equal; and constants with equal type, shape and bytes. Random,
// stateful and region-owning nodes are never merged.
#include <algorithm>
#include <unordered_map>

#include "passes.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

class Hash {
 public:
  void add(uint64_t x) noexcept {
    h_ ^= x + 0x9e3779b97f4a7c15ull + (h_ << 6) + (h_ >> 2);
    h_ *= 0xff51afd7ed558ccdull;
    h_ ^= h_ >> 32;
  }
  void add_bytes(const void* p, size_t n) noexcept {
    const auto* b = static_cast<const unsigned char*>(p);
    for (; n >= 8; n -= 8, b += 8) {
      uint64_t x;
      std::memcpy(&x, b, 8);
      add(x);
    }
    uint64_t tail = n;
    for (size_t i = 0; i < n; ++i) tail = tail << 8 | b[i];
    add(tail);
  }
  uint64_t value() const noexcept { return h_; }

 private:
  uint64_t h_ = 0x2545f4914f6cdd1dull;
};

// One attribute as bytes that are equal exactly when the attributes are.
void append(std::string& key, const void* p, size_t n) { key.append(static_cast<const char*>(p), n); }
template <class T>
void append(std::string& key, const T& v) {
  append(key, &v, sizeof v);
}
void append_text(std::string& key, tn_str s) {
  append(key, static_cast<uint64_t>(s.size));
  append(key, s.data, s.size);
}
void append_attr(std::string& key, const tn_attr& a) {
  append(key, a.name);
  append(key, a.kind);
  switch (a.kind) {
    case TN_ATTR_INT:
      append(key, a.u.i);
      break;
    case TN_ATTR_FLOAT:
      append(key, static_cast<float>(a.u.f));
      break;  // what ONNX can hold
    case TN_ATTR_STRING:
      append_text(key, a.u.s);
      break;
    case TN_ATTR_INTS:
      append(key, a.count);
      append(key, a.u.ints, a.count * sizeof(int64_t));
      break;
    case TN_ATTR_FLOATS:
      append(key, a.count);
      append(key, a.u.floats, a.count * sizeof(double));
      break;
    case TN_ATTR_STRINGS:
      append(key, a.count);
      for (uint64_t i = 0; i < a.count; ++i) append_text(key, a.u.strings[i]);
      break;
    case TN_ATTR_TENSOR: {
      const tn_tensor& t = *a.u.tensor;
      append(key, t.dtype);
      append(key, t.rank);
      append(key, t.dims, static_cast<size_t>(t.rank) * sizeof(int64_t));
      if (t.dtype == TN_STRING) {
        for (int64_t i = 0, n = element_count({t.dims, static_cast<size_t>(t.rank)}); i < n; ++i)
          append_text(key, static_cast<const tn_str*>(t.data)[i]);
      } else {
        append(key, t.data, t.bytes);
      }
      break;
    }
    case TN_ATTR_TYPE:
      append(key, a.u.type->kind);
      append(key, a.u.type->dtype);
      append(key, a.u.type->rank);
      append(key, a.u.type->dims,
             a.u.type->rank > 0 ? static_cast<size_t>(a.u.type->rank) * sizeof(tn_dim) : 0);
      break;
    default:
      break;
  }
}

// The attribute that stands for a default, so that "absent" and "given as the default" are one key.
bool default_attr(const tn_graph_api* api, const tn_attr_def& d, tn_attr* out) {
  if (!d.has_default) return false;
  *out = tn_attr{};
  out->name = api->symbol(d.name);
  out->kind = d.kind;
  out->count = d.count;
  switch (d.kind) {
    case TN_ATTR_INT:
      out->u.i = d.default_int;
      return true;
    case TN_ATTR_FLOAT:
      out->u.f = d.default_float;
      return true;
    case TN_ATTR_STRING:
      out->u.s = d.default_string;
      return true;
    case TN_ATTR_INTS:
      out->u.ints = d.default_ints;
      return true;
    default:
      return false;
  }
}

struct Merger {
  Pass& pass;
  GraphView graph;
  uint64_t merged = 0;
  bool stop = false;

  std::string key_of(const Node& node, const tn_op_def& op) const {
    std::string key;
    append(key, node.op());
    append(key, node.version());
    append(key, static_cast<uint32_t>(node.outputs().size()));
    for (tn_value v : node.outputs()) append(key, static_cast<char>(v != TN_NONE));
    std::vector<tn_value> inputs = node.inputs().copy();
    while (!inputs.empty() && inputs.back() == TN_NONE) inputs.pop_back();
    if ((op.flags & TN_OP_COMMUTATIVE) && inputs.size() == 2 && inputs[0] > inputs[1])
      std::swap(inputs[0], inputs[1]);
    append(key, static_cast<uint32_t>(inputs.size()));
    append(key, inputs.data(), inputs.size() * sizeof(tn_value));
    // By name order, with defaults, so that order and spelling do not matter.
    std::vector<tn_attr> attrs;
    const char* p = reinterpret_cast<const char*>(node.raw().attrs);
    for (uint32_t i = 0; i < node.raw().attr_count; ++i, p += node.raw().attr_stride)
      attrs.push_back(*reinterpret_cast<const tn_attr*>(p));
    for (uint32_t i = 0; i < op.attr_count; ++i) {
      tn_attr d;
      if (default_attr(graph.api(), op.attrs[i], &d) && !find_attr(node.raw(), d.name)) attrs.push_back(d);
    }
    std::sort(attrs.begin(), attrs.end(), [](const tn_attr& a, const tn_attr& b) { return a.name < b.name; });
    for (const auto& a : attrs) append_attr(key, a);
    return key;
  }

  void merge_node(const Node& node, tn_node first) {
    const Node kept = graph.node(first);
    Transaction edit = pass.edit("cse");
    if (!edit.active()) {
      stop = true;
      return;
    }
    for (uint32_t i = 0; i < node.outputs().size(); ++i)
      if (node.output(i) != TN_NONE) edit.replace_uses(node.output(i), kept.output(i));
    const tn_node id = node.id();
    edit.erase(id);
    if (edit.commit()) {
      pass.explain(TN_REASON_APPLIED, "cse", id);
      ++merged;
    } else {
      pass.explain(TN_REASON_ROLLBACK, "cse", id, edit.said());
    }
  }

  // Shape arithmetic whose elements are all known is equal where those are, whatever works them out: the
  // first of a region stands for all. (What is known as numbers only is left to fold.)
  void merge_known(tn_region region) {
    std::unordered_map<std::string, tn_value> seen;
    for (tn_node id : node_list(graph, region)) {
      const Node node = graph.node(id);
      if (node.outputs().size() != 1 || node.output(0) == TN_NONE || !node.regions().empty()) continue;
      const tn_value v = node.output(0);
      const auto type = graph.value(v).type;
      if (type.kind != TN_KIND_TENSOR || type.dtype != TN_INT64 || type.rank < 0 || type.rank > 1) continue;
      bool known = false;
      const auto elements = graph.known_elements(v, &known);
      if (!known || elements.empty() || graph.value(v).use_count == 0 || !is_pure(pass.op(node.op())))
        continue;
      if (std::none_of(elements.begin(), elements.end(), [](tn_dim d) { return d < 0; })) continue;
      std::string key(1, static_cast<char>(type.rank));
      append(key, elements.data(), elements.size() * sizeof(tn_dim));
      const auto [at, fresh] = seen.emplace(key, v);
      if (fresh) continue;
      Transaction edit = pass.edit("cse");
      if (!edit.active()) {
        stop = true;
        return;
      }
      edit.replace_uses(v, at->second);
      edit.erase(id);
      if (edit.commit()) {
        pass.explain(TN_REASON_APPLIED, "cse", id);
        ++merged;
      } else {
        pass.explain(TN_REASON_ROLLBACK, "cse", id, edit.said());
      }
      if (pass.cancelled()) return;
    }
  }

  void merge_region(tn_region region) {
    std::unordered_map<std::string, tn_node> seen;
    for (tn_node id : node_list(graph, region)) {
      const Node node = graph.node(id);
      const tn_op_def* op = pass.op(node.op());
      if (!is_pure(op) || !node.regions().empty()) continue;
      const auto [at, fresh] = seen.emplace(key_of(node, *op), id);
      if (!fresh) merge_node(node, at->second);
      if (stop || pass.cancelled()) return;
    }
  }

  // Constants: candidates share type, shape and a hash of their ends; bytes decide.
  void merge_constants() {
    std::unordered_map<uint64_t, std::vector<tn_value>> buckets;
    std::vector<std::pair<tn_value, tn_value>> pairs;
    // The main region's first: they are seen everywhere, so those of bodies may give way to them.
    std::vector<tn_value> candidates, inner;
    for (tn_value v = 0, n = graph.value_bound(); v < n; ++v) {
      const auto info = graph.value(v);
      if (info.kind != TN_VALUE_CONSTANT || info.use_count == 0 || info.type.dtype == TN_STRING) continue;
      (info.region == graph.main() ? candidates : inner).push_back(v);
    }
    candidates.insert(candidates.end(), inner.begin(), inner.end());
    for (tn_value v : candidates) {
      const auto info = graph.value(v);
      Hash h;
      h.add(info.type.dtype);
      for (tn_dim d : dims_of(info.type)) h.add(static_cast<uint64_t>(d));
      const void* element = nullptr;
      const bool uniform = graph.api()->uniform(graph.raw(), v, &element) != 0;
      h.add(uniform);
      const size_t width = dtype_bytes(info.type.dtype);
      if (uniform) {
        h.add_bytes(element, width ? width : 1);
      } else {
        const auto t = graph.constant(v);
        if (!t) continue;
        const size_t ends = std::min<size_t>(t->bytes(), 64);
        h.add_bytes(t->data<char>(), ends);
        h.add_bytes(t->data<char>() + t->bytes() - ends, ends);
      }
      auto& bucket = buckets[h.value()];
      bool found = false;
      for (tn_value other : bucket) {
        if (!same_constant(v, other)) continue;
        pairs.emplace_back(v, other);
        found = true;
        break;
      }
      if (!found && info.region == graph.main()) bucket.push_back(v);
    }
    if (pairs.empty()) return;
    Transaction edit = pass.edit("cse");
    if (!edit.active()) return;
    for (const auto& [from, to] : pairs) edit.replace_uses(from, to);
    if (!edit.commit())
      pass.explain(TN_REASON_ROLLBACK, "cse", TN_NONE, edit.said());
    else
      pass.count("cse.constants", pairs.size(), pairs.size());
  }

  bool same_constant(tn_value a, tn_value b) const {
    const auto x = graph.value(a).type, y = graph.value(b).type;
    if (x.dtype != y.dtype || x.rank != y.rank || x.encoding != y.encoding) return false;
    for (int32_t i = 0; i < x.rank; ++i)
      if (x.dims[i] != y.dims[i]) return false;
    const void *ea = nullptr, *eb = nullptr;
    const bool ua = graph.api()->uniform(graph.raw(), a, &ea) != 0,
               ub = graph.api()->uniform(graph.raw(), b, &eb) != 0;
    if (ua != ub) return false;
    if (ua) return std::memcmp(ea, eb, std::max<uint32_t>(1, dtype_bytes(x.dtype))) == 0;
    const auto ta = graph.constant(a), tb = graph.constant(b);
    if (!ta || !tb || ta->bytes() != tb->bytes()) return false;
    return ta->data<char>() == tb->data<char>() ||
           std::memcmp(ta->data<char>(), tb->data<char>(), ta->bytes()) == 0;
  }
};

}  // namespace

void run_cse(Pass& pass) {
  Merger m{pass, pass.graph()};
  m.merge_constants();
  for (tn_region region : regions_outer_first(m.graph)) {
    m.merge_known(region);
    if (!m.stop) m.merge_region(region);
    if (m.stop) break;
  }
  if (m.merged) pass.count("cse", m.merged, m.merged);
}

}  // namespace tenon::fusion
