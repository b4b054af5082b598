// For unit tests: a host with just enough of a graph to record what a frontend builds and to let an exporter
// read it.
#pragma once
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "fake_files.hpp"
#include "tenon/sdk/plugin.hpp"

namespace tenon::onnx::testing {

struct FakeAttr {
  tn_attr attr{};
  std::string text;
  std::vector<int64_t> ints, dims;
  std::vector<double> floats;
  std::vector<std::string> strings;
  std::vector<tn_str> string_views;
  std::vector<char> bytes;
  tn_tensor tensor{};
};
struct FakeNode {
  tn_sym op = 0;
  int32_t version = 0;
  tn_region region = 0;
  std::string name;
  std::vector<tn_value> inputs, outputs;
  std::vector<tn_attr> attrs;
  std::deque<FakeAttr> owned;
  std::vector<tn_region> regions;
  int64_t int_attr(std::string_view name) const;
  const tn_attr* attr(std::string_view name) const;
};
struct FakeValue {
  uint32_t kind = TN_VALUE_RESULT;
  tn_node producer = TN_NONE;
  uint32_t index = 0;
  tn_region region = 0;
  std::string name;
  tn_type type{};
  std::vector<tn_dim> dims;
  std::vector<char> bytes;  // of constants made by copy
  std::vector<std::string> texts;
  std::vector<tn_str> text_views;
  tn_tensor tensor{};  // of constants
  bool sliced = false;
  tn_value fallback = TN_NONE;  // of inputs with a default
};
struct FakeRegion {
  tn_node parent = TN_NONE;
  std::string name;
  std::vector<tn_value> inputs, outputs;
  std::vector<tn_node> nodes;
  std::vector<std::string> output_names;
};

inline std::deque<std::string>& symbol_table() {  // texts never move
  static std::deque<std::string> table;
  return table;
}
inline tn_sym symbol_of(std::string_view s) {
  static std::unordered_map<std::string, tn_sym> index;
  const auto [at, fresh] = index.emplace(std::string(s), static_cast<tn_sym>(symbol_table().size()));
  if (fresh) symbol_table().emplace_back(s);
  return at->second;
}

class FakeGraph {
 public:
  std::deque<FakeNode> nodes;
  std::deque<FakeValue> values;
  std::deque<FakeRegion> regions{FakeRegion{}};
  std::map<std::string, int32_t> opsets;
  std::map<std::string, std::string> metadata;
  std::vector<std::string> dim_names;
  std::deque<std::vector<uint8_t>> kept;

  tn_graph* handle() { return reinterpret_cast<tn_graph*>(this); }
  tn_edit* edit() { return reinterpret_cast<tn_edit*>(this); }
  static FakeGraph& of(void* p) { return *static_cast<FakeGraph*>(p); }

  tn_value add_value(FakeValue v) {
    values.push_back(std::move(v));
    return static_cast<tn_value>(values.size() - 1);
  }
  tn_value by_name(std::string_view name) const {
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].name == name) return static_cast<tn_value>(i);
    return TN_NONE;
  }
  std::string op(size_t node) const { return symbol_table()[nodes.at(node).op]; }
  template <class T>
  std::vector<T> elements(tn_value v) const {
    const tn_tensor& t = values.at(v).tensor;
    std::vector<T> out(t.bytes / sizeof(T));
    if (t.bytes) std::memcpy(out.data(), t.data, out.size() * sizeof(T));
    return out;
  }
};

inline const tn_attr* FakeNode::attr(std::string_view wanted) const {
  for (const auto& a : attrs)
    if (symbol_table()[a.name] == wanted) return &a;
  return nullptr;
}
inline int64_t FakeNode::int_attr(std::string_view wanted) const {
  const auto* a = attr(wanted);
  return a ? a->u.i : INT64_MIN;
}

// The tables
// -----------------------------------------------------------------------------------------------------

inline void copy_type(FakeValue& v, const tn_type& t) {
  v.type = t;
  v.dims.assign(t.dims, t.dims + (t.rank > 0 ? t.rank : 0));
  v.type.dims = v.dims.data();
}
inline void set_constant_type(FakeValue& v, const tn_tensor& t) {
  v.kind = TN_VALUE_CONSTANT;
  v.tensor = t;
  copy_type(v, tn_type{TN_KIND_TENSOR, t.dtype, t.rank, 0, t.dims});
  v.tensor.dims = v.dims.data();
}
inline tn_value settle(FakeGraph& g, FakeValue v) {  // pointers into the value are set where it rests
  const tn_value id = g.add_value(std::move(v));
  FakeValue& at = g.values[id];
  at.type.dims = at.dims.data();
  at.tensor.dims = at.dims.data();
  if (at.tensor.dtype == TN_STRING) {
    at.text_views.clear();
    for (const auto& s : at.texts) at.text_views.push_back(sdk::str(s));
    at.tensor.data = at.text_views.data();
  } else if (!at.sliced) {
    at.tensor.data = at.bytes.data();
  }
  return id;
}
inline tn_value copy_constant(FakeGraph& g, std::string_view name, const tn_tensor& t) {
  FakeValue v;
  v.name = name;
  set_constant_type(v, t);
  if (t.dtype == TN_STRING)
    for (uint64_t i = 0; i < t.bytes / sizeof(tn_str); ++i)
      v.texts.push_back(sdk::text(static_cast<const tn_str*>(t.data)[i]));
  else if (t.bytes)
    v.bytes.assign(static_cast<const char*>(t.data), static_cast<const char*>(t.data) + t.bytes);
  return settle(g, std::move(v));
}
inline tn_attr copy_attr(std::deque<FakeAttr>& owned, const tn_attr& a) {
  FakeAttr& k = owned.emplace_back();
  k.attr = a;
  switch (a.kind) {
    case TN_ATTR_STRING:
      k.text = sdk::text(a.u.s);
      k.attr.u.s = sdk::str(k.text);
      break;
    case TN_ATTR_INTS:
      k.ints.assign(a.u.ints, a.u.ints + a.count);
      k.attr.u.ints = k.ints.data();
      break;
    case TN_ATTR_FLOATS:
      k.floats.assign(a.u.floats, a.u.floats + a.count);
      k.attr.u.floats = k.floats.data();
      break;
    case TN_ATTR_STRINGS:
      for (uint64_t i = 0; i < a.count; ++i) k.strings.push_back(sdk::text(a.u.strings[i]));
      for (const auto& s : k.strings) k.string_views.push_back(sdk::str(s));
      k.attr.u.strings = k.string_views.data();
      break;
    case TN_ATTR_TENSOR:
      k.tensor = *a.u.tensor;
      k.dims.assign(a.u.tensor->dims, a.u.tensor->dims + a.u.tensor->rank);
      k.bytes.assign(static_cast<const char*>(a.u.tensor->data),
                     static_cast<const char*>(a.u.tensor->data) + a.u.tensor->bytes);
      k.tensor.dims = k.dims.data();
      k.tensor.data = k.bytes.data();
      k.attr.u.tensor = &k.tensor;
      break;
    default:
      break;
  }
  return k.attr;
}

inline const tn_graph_api* graph_table() {
  static const tn_graph_api table = [] {
    tn_graph_api t{};
    t.size = sizeof t;
    t.main_region = 0;
    t.symbol = [](tn_str s) { return symbol_of(sdk::view(s)); };
    t.symbol_text = [](tn_sym s) { return sdk::str(symbol_table().at(s)); };
    t.node = [](tn_graph* g, tn_node id, tn_node_info* out) -> tn_status {
      const FakeNode& n = FakeGraph::of(g).nodes.at(id);
      *out = {};
      out->size = sizeof *out;
      out->op = n.op;
      out->op_version = n.version;
      out->region = n.region;
      out->name = sdk::str(n.name);
      out->inputs = n.inputs.data();
      out->input_count = static_cast<uint32_t>(n.inputs.size());
      out->outputs = n.outputs.data();
      out->output_count = static_cast<uint32_t>(n.outputs.size());
      out->attrs = n.attrs.data();
      out->attr_count = static_cast<uint32_t>(n.attrs.size());
      out->attr_stride = sizeof(tn_attr);
      out->regions = n.regions.data();
      out->region_count = static_cast<uint32_t>(n.regions.size());
      out->alive = 1;
      return TN_OK;
    };
    t.value = [](tn_graph* g, tn_value id, tn_value_info* out) -> tn_status {
      const FakeValue& v = FakeGraph::of(g).values.at(id);
      *out = {sizeof *out, v.kind, v.producer, v.index, v.region, 0, sdk::str(v.name), v.type};
      return TN_OK;
    };
    t.region = [](tn_graph* g, tn_region id, tn_region_info* out) -> tn_status {
      const FakeRegion& r = FakeGraph::of(g).regions.at(id);
      *out = {sizeof *out,
              r.parent,
              sdk::str(r.name),
              r.inputs.data(),
              r.outputs.data(),
              static_cast<uint32_t>(r.inputs.size()),
              static_cast<uint32_t>(r.outputs.size()),
              static_cast<uint32_t>(r.nodes.size()),
              0};
      return TN_OK;
    };
    t.nodes = [](tn_graph* g, tn_region id, const tn_node** ids, uint32_t* count) -> tn_status {
      const auto& list = FakeGraph::of(g).regions.at(id).nodes;
      *ids = list.data();
      *count = static_cast<uint32_t>(list.size());
      return TN_OK;
    };
    t.constant = [](tn_graph* g, tn_value id, tn_tensor* out) -> tn_status {
      const FakeValue& v = FakeGraph::of(g).values.at(id);
      *out = v.tensor;
      return v.kind == TN_VALUE_CONSTANT ? TN_OK : TN_ERR_NOT_FOUND;
    };
    t.node_bound = [](tn_graph* g) { return static_cast<uint32_t>(FakeGraph::of(g).nodes.size()); };
    t.value_bound = [](tn_graph* g) { return static_cast<uint32_t>(FakeGraph::of(g).values.size()); };
    t.region_bound = [](tn_graph* g) { return static_cast<uint32_t>(FakeGraph::of(g).regions.size()); };
    t.opset = [](tn_graph* g, tn_str d) -> int32_t {
      const auto& o = FakeGraph::of(g).opsets;
      const auto at = o.find(sdk::text(d));
      return at == o.end() ? 0 : at->second;
    };
    t.metadata = [](tn_graph* g, tn_str key) -> tn_str {
      const auto& m = FakeGraph::of(g).metadata;
      const auto at = m.find(sdk::text(key));
      return at == m.end() ? tn_str{nullptr, 0} : sdk::str(at->second);
    };
    t.output_name = [](tn_graph* g, tn_region r, uint32_t i) -> tn_str {
      return sdk::str(FakeGraph::of(g).regions.at(r).output_names.at(i));
    };
    t.default_of = [](tn_graph* g, tn_value v) { return FakeGraph::of(g).values.at(v).fallback; };
    return t;
  }();
  return &table;
}

inline const tn_edit_api* edit_table() {
  static const tn_edit_api table = [] {
    tn_edit_api t{};
    t.size = sizeof t;
    t.create_node = [](tn_edit* e, const tn_node_desc* d, tn_node* out) -> tn_status {
      FakeGraph& g = FakeGraph::of(e);
      *out = static_cast<tn_node>(g.nodes.size());
      FakeNode& n = g.nodes.emplace_back();
      n.op = d->op;
      n.version = d->op_version;
      n.region = d->region;
      n.name = sdk::text(d->name);
      n.inputs.assign(d->inputs, d->inputs + d->input_count);
      for (uint32_t i = 0; i < d->attr_count; ++i) n.attrs.push_back(copy_attr(n.owned, d->attrs[i]));
      for (uint32_t i = 0; i < d->output_count; ++i) {
        if (d->output_names && !d->output_names[i].data) {
          n.outputs.push_back(TN_NONE);
          continue;
        }
        FakeValue v;
        v.producer = *out;
        v.index = i;
        v.region = d->region;
        v.type.rank = -1;
        if (d->output_names) v.name = sdk::text(d->output_names[i]);
        n.outputs.push_back(g.add_value(std::move(v)));
      }
      g.regions.at(d->region).nodes.push_back(*out);
      return TN_OK;
    };
    t.create_region = [](tn_edit* e, tn_node parent, tn_str name, tn_region* out) -> tn_status {
      FakeGraph& g = FakeGraph::of(e);
      *out = static_cast<tn_region>(g.regions.size());
      FakeRegion& r = g.regions.emplace_back();
      r.parent = parent;
      r.name = sdk::text(name);
      g.nodes.at(parent).regions.push_back(*out);
      return TN_OK;
    };
    t.region_input = [](tn_edit* e, tn_region r, tn_str name, const tn_type* type,
                        tn_value* out) -> tn_status {
      FakeGraph& g = FakeGraph::of(e);
      FakeValue v;
      v.kind = TN_VALUE_REGION_INPUT;
      v.region = r;
      v.index = static_cast<uint32_t>(g.regions.at(r).inputs.size());
      v.name = sdk::text(name);
      copy_type(v, *type);
      *out = settle(g, std::move(v));
      g.regions.at(r).inputs.push_back(*out);
      return TN_OK;
    };
    t.region_outputs = [](tn_edit* e, tn_region r, const tn_value* v, uint32_t n) -> tn_status {
      FakeGraph& g = FakeGraph::of(e);
      FakeRegion& region = g.regions.at(r);
      region.outputs.assign(v, v + n);
      region.output_names.clear();
      for (uint32_t i = 0; i < n; ++i) region.output_names.push_back(g.values.at(v[i]).name);
      return TN_OK;
    };
    t.region_output_name = [](tn_edit* e, tn_region r, uint32_t i, tn_str name) -> tn_status {
      FakeGraph::of(e).regions.at(r).output_names.at(i) = sdk::text(name);
      return TN_OK;
    };
    t.constant_copy = [](tn_edit* e, tn_str name, const tn_tensor* tensor, tn_value* out) -> tn_status {
      *out = copy_constant(FakeGraph::of(e), sdk::view(name), *tensor);
      return TN_OK;
    };
    t.constant_adopt = [](tn_edit* e, tn_str name, const tn_tensor* tensor, void (*release)(void*),
                          void* context, tn_value* out) -> tn_status {
      *out = copy_constant(FakeGraph::of(e), sdk::view(name), *tensor);
      release(context);
      return TN_OK;
    };
    t.constant_slice = [](tn_edit* e, tn_str name, const tn_tensor* tensor, tn_file* file, uint64_t offset,
                          tn_value* out) -> tn_status {
      if (offset > file->size || tensor->bytes > file->size - offset) return TN_ERR_INVALID;
      tn_tensor there = *tensor;
      there.data = reinterpret_cast<char*>(file->storage.data()) + offset;
      *out = copy_constant(FakeGraph::of(e), sdk::view(name), there);
      FakeGraph::of(e).values[*out].sliced = true;
      return TN_OK;
    };
    t.input_default = [](tn_edit* e, tn_value input, tn_value constant) -> tn_status {
      FakeGraph::of(e).values.at(input).fallback = constant;
      return TN_OK;
    };
    t.set_type = [](tn_edit* e, tn_value v, const tn_type* type) -> tn_status {
      copy_type(FakeGraph::of(e).values.at(v), *type);
      return TN_OK;
    };
    t.set_opset = [](tn_edit* e, tn_str domain, int32_t version) -> tn_status {
      FakeGraph::of(e).opsets[sdk::text(domain)] = version;
      return TN_OK;
    };
    t.set_metadata = [](tn_edit* e, tn_str key, tn_str text) -> tn_status {
      FakeGraph::of(e).metadata[sdk::text(key)] = sdk::text(text);
      return TN_OK;
    };
    return t;
  }();
  return &table;
}

/// Named dimensions are -2, -3, ...; -1 never occurs.
inline const tn_symbols_api* symbols_table() {
  static const tn_symbols_api table = [] {
    tn_symbols_api t{};
    t.size = sizeof t;
    t.named = [](tn_graph* g, tn_str name) -> tn_dim {
      auto& names = FakeGraph::of(g).dim_names;
      for (size_t i = 0; i < names.size(); ++i)
        if (names[i] == sdk::view(name)) return -2 - static_cast<tn_dim>(i);
      names.push_back(sdk::text(name));
      return -1 - static_cast<tn_dim>(names.size());
    };
    t.fresh = [](tn_graph* g, tn_str hint, int64_t, int64_t) -> tn_dim {
      auto& names = FakeGraph::of(g).dim_names;
      names.push_back("~" + sdk::text(hint));
      return -1 - static_cast<tn_dim>(names.size());
    };
    t.as_number = [](tn_graph*, tn_dim d, int64_t* v) -> int { return d >= 0 ? (*v = d, 1) : 0; };
    t.text = [](tn_graph* g, tn_dim d) -> tn_str {
      return sdk::str(FakeGraph::of(g).dim_names.at(static_cast<size_t>(-2 - d)));
    };
    return t;
  }();
  return &table;
}

inline const tn_host* fake_host() {
  static const tn_host host = [] {
    tn_host h{};
    h.size = sizeof h;
    h.abi_major = TN_ABI_MAJOR;
    h.abi_minor = TN_ABI_MINOR;
    h.get_interface = [](const tn_host*, const char* id) -> const void* {
      const std::string_view s = id;
      if (s == TN_GRAPH_ID) return graph_table();
      if (s == TN_GRAPH_EDIT_ID) return edit_table();
      if (s == TN_SYMBOLS_ID) return symbols_table();
      if (s == TN_FILES_ID) return files_table();
      return nullptr;
    };
    return h;
  }();
  return &host;
}

}  // namespace tenon::onnx::testing
