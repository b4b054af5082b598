#include "opset_forms.hpp"

#include <unordered_map>
#include <vector>

namespace tenon::onnx {
namespace {

struct Form {
  const char* op;
  char kind;  // see tools/make_opset_forms.py
  const char* attribute;
  uint32_t number;  // operand position, or element type
  int32_t since;
};
constexpr Form forms[] = {
#include "opset_forms.inc"
};
/// Meanings that hang on an attribute's value.
struct ValueForm {
  const char* op;
  const char* attribute;
  const char* value;
  int32_t since;
};
constexpr ValueForm value_forms[] = {
    {"Pad", "mode", "wrap", 19},
    {"Resize", "coordinate_transformation_mode", "half_pixel_symmetric", 19},
    {"ScatterElements", "reduction", "max", 18},
    {"ScatterElements", "reduction", "min", 18},
    {"ScatterND", "reduction", "max", 18},
    {"ScatterND", "reduction", "min", 18},
};

struct Range {
  const Form* first = nullptr;
  const Form* last = nullptr;
  const Form* begin() const { return first; }
  const Form* end() const { return last; }
};
Range forms_of(std::string_view op) {
  static const auto* index = [] {
    auto* made = new std::unordered_map<std::string_view, Range>;  // lives as long as the library
    for (const Form& f : forms) {
      Range& r = (*made)[f.op];
      if (!r.first) r.first = &f;
      r.last = &f + 1;
    }
    return made;
  }();
  const auto at = index->find(op);
  return at == index->end() ? Range{} : at->second;
}

}  // namespace

int32_t attribute_since(std::string_view op, std::string_view attribute) {
  for (const Form& f : forms_of(op))
    if (f.kind == 'a' && attribute == f.attribute) return f.since;
  return 0;
}

bool is_default(const tn_attr& a, const tn_op_def* definition, std::string_view name) {
  if (!definition) return false;
  for (uint32_t i = 0; i < definition->attr_count; ++i) {
    const tn_attr_def& d = definition->attrs[i];
    if (sdk::view(d.name) != name) continue;
    if (!d.has_default || d.kind != a.kind) return false;
    switch (a.kind) {
      case TN_ATTR_INT:
        return a.u.i == d.default_int;
      case TN_ATTR_FLOAT:
        return a.u.f == d.default_float;
      case TN_ATTR_STRING:
        return sdk::view(a.u.s) == sdk::view(d.default_string);
      case TN_ATTR_INTS:
        return a.count == d.count && std::equal(a.u.ints, a.u.ints + a.count, d.default_ints);
      default:
        return false;
    }
  }
  return false;
}

bool same_definition(std::string_view op, int32_t one, int32_t other) {
  const auto in_force = [&](int32_t opset) {
    int32_t version = 0;
    for (const Form& f : forms_of(op))
      if (f.kind == 'v' && f.since <= opset && f.since > version) version = f.since;
    return version;
  };
  return in_force(one) == in_force(other);
}

int32_t identity_since(uint32_t kind) {
  if (kind == TN_KIND_OPTIONAL || kind == TN_KIND_OPTIONAL_SEQUENCE) return 16;
  return kind == TN_KIND_SEQUENCE ? 14 : oldest_written;
}

Requirement required_opset(const sdk::GraphView& graph, const sdk::Node& node, const tn_op_def* definition) {
  Requirement r;
  const std::string_view op = node.op_name();
  const auto need = [&](int32_t since, auto&& why) {
    if (since > r.opset) r = {since, why()};
  };
  if (!definition) {
    need(node.version(),
         [] { return "it is of an operator without a definition here, so it is kept as it was"; });
    return r;
  }
  const Range known = forms_of(op);
  if (!known.first) {
    need(definition->since_version, [] { return "its definition"; });
    return r;
  }
  const tn_value typed = !node.inputs().empty() ? node.input(0) : node.output(0);
  const tn_dtype dtype = typed == TN_NONE ? TN_DTYPE_NONE : graph.value(typed).type.dtype;
  for (const Form& f : known) {
    switch (f.kind) {
      case 'b':
        need(f.since, [] { return "the operator"; });
        break;
      case 'i':
        if (node.input(f.number) != TN_NONE)
          need(f.since, [&] { return "its operand " + std::to_string(f.number); });
        break;
      case 't':
        if (dtype == f.number)
          need(f.since, [&] { return std::string("element type ") + sdk::dtype_name(dtype); });
        break;
      case 'a':
        if (const tn_attr* a = node.attrs().find(f.attribute))
          if (!is_default(*a, definition, f.attribute))
            need(f.since, [&] { return "attribute '" + std::string(f.attribute) + "'"; });
        break;
      default:
        break;
    }
  }
  if (op == "Identity" || op == "If" || op == "Loop") {
    for (tn_value v : node.outputs()) {
      if (v == TN_NONE) continue;
      const uint32_t kind = graph.value(v).type.kind;
      if (op == "Identity" || kind != TN_KIND_SEQUENCE)
        need(identity_since(kind), [] { return "a result that is no tensor"; });
    }
  }
  for (const ValueForm& f : value_forms)
    if (op == f.op && node.attrs().get_string(f.attribute, "") == f.value)
      need(f.since, [&] { return std::string(f.attribute) + " '" + f.value + "'"; });
  return r;
}

int32_t ir_version_of(int32_t opset) {
  constexpr struct {
    int32_t opset, ir;
  } table[] = {{28, 14}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9}, {15, 8}};
  for (const auto& row : table)
    if (opset >= row.opset) return row.ir;
  return 7;
}

}  // namespace tenon::onnx
