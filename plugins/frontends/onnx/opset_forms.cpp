#include "opset_forms.hpp"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "tenon/sdk/attribute_default.hpp"

namespace tenon::onnx {
namespace {

struct FormRow {
  const char* op;
  char kind;  // see tools/make_opset_forms.py
  const char* attribute;
  uint32_t place;  // of an operand; of a result: first_result more
  tn_dtype dtype;
  int32_t since;
};
constexpr FormRow forms[] = {
#include "opset_forms.inc"
};
struct OlderAttribute {
  const char* op;
  const char* name;
  int32_t last;  // version of the operator
};
constexpr OlderAttribute gone_attributes[] = {
#include "older_attributes.inc"
};
/// Meanings that hang on an attribute's value.
struct ValueForm {
  const char* op;
  const char* attribute;
  const char* value;
  int32_t since;
};
constexpr ValueForm value_forms[] = {
    {"DepthToSpace", "mode", "CRD", 11},
    {"Pad", "mode", "wrap", 19},
    {"Resize", "coordinate_transformation_mode", "half_pixel_symmetric", 19},
    {"ScatterElements", "reduction", "max", 18},
    {"ScatterElements", "reduction", "min", 18},
    {"ScatterND", "reduction", "max", 18},
    {"ScatterND", "reduction", "min", 18},
};

constexpr uint32_t first_result = 100;

struct Range {
  const FormRow* first = nullptr;
  const FormRow* last = nullptr;
  const FormRow* begin() const { return first; }
  const FormRow* end() const { return last; }
};
Range forms_of(std::string_view op) {
  static const auto* index = [] {
    auto* made = new std::unordered_map<std::string_view, Range>;  // lives as long as the library
    for (const FormRow& f : forms) {
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
  for (const FormRow& f : forms_of(op))
    if (f.kind == 'a' && attribute == f.attribute) return f.since;
  return 0;
}

bool is_default(const tn_attr& a, const tn_op_def* definition, std::string_view name) {
  if (!definition) return false;
  for (uint32_t i = 0; i < definition->attr_count; ++i) {
    const tn_attr_def& d = definition->attrs[i];
    if (sdk::view(d.name) == name) return sdk::is_default(a, d);
  }
  return false;
}

static int32_t in_force(std::string_view op, int32_t opset) {
  int32_t version = 0;
  for (const FormRow& f : forms_of(op))
    if (f.kind == 'v' && f.since <= opset && f.since > version) version = f.since;
  return version;
}

std::vector<std::string_view> older_attributes(std::string_view op, int32_t opset) {
  std::vector<std::string_view> names;
  for (const OlderAttribute& a : gone_attributes)
    if (op == a.op && in_force(op, opset) <= a.last) names.emplace_back(a.name);
  return names;
}

bool same_definition(std::string_view op, int32_t one, int32_t other) {
  return in_force(op, one) == in_force(op, other);
}

int32_t identity_since(uint32_t kind) {
  if (kind == TN_KIND_OPTIONAL || kind == TN_KIND_OPTIONAL_SEQUENCE) return 16;
  return kind == TN_KIND_SEQUENCE ? 14 : oldest_written;
}

namespace {

/// What the two sources of a form have in common.
struct NodeForm {
  const sdk::GraphView& graph;
  const sdk::Node& node;
  std::string_view op() const { return op_; }
  bool has(uint32_t input) const { return node.input(input) != TN_NONE; }
  tn_value input(uint32_t i) const { return node.input(i); }
  tn_value output(uint32_t i) const { return node.output(i); }
  size_t input_count() const { return node.inputs().size(); }
  size_t output_count() const { return node.outputs().size(); }
  bool has_attributes() const { return node.raw().attr_count != 0; }
  const tn_attr* attribute(std::string_view name) const { return node.attrs().find(name); }
  bool old_meaning() const { return false; }
  std::string_view op_ = node.op_name();
};
struct StepForm {
  const sdk::GraphView& graph;
  const Step& step;
  std::string_view op() const { return step.op; }
  static tn_value at(const std::vector<Place>& list, uint32_t i) {
    return i < list.size() && list[i].kind == Place::value ? list[i].id : TN_NONE;
  }
  bool has(uint32_t i) const { return i < step.inputs.size() && step.inputs[i].present(); }
  tn_value input(uint32_t i) const { return at(step.inputs, i); }
  tn_value output(uint32_t i) const { return at(step.outputs, i); }
  size_t input_count() const { return step.inputs.size(); }
  size_t output_count() const { return step.outputs.size(); }
  bool has_attributes() const { return !step.attrs.empty(); }
  const tn_attr* attribute(std::string_view name) const {
    for (const StepAttribute& a : step.attrs) {
      if (a.name != name) continue;
      found = a.resolved();
      return &found;
    }
    return nullptr;
  }
  bool old_meaning() const { return true; }
  mutable tn_attr found{};
};

/// Operators whose `axis` counts from the back since opset 11 only.
bool has_plain_axis(std::string_view op) {
  for (const char* name : {"ArgMax", "ArgMin", "Compress", "Concat", "Flatten", "Gather", "Hardmax",
                           "LogSoftmax", "Softmax", "Split"})
    if (op == name) return true;
  return false;
}

bool differ(const sdk::GraphView& graph, tn_value a, tn_value b) {
  const tn_type x = graph.value(a).type, y = graph.value(b).type;
  if (x.rank < 0 || x.rank != y.rank) return true;
  return !std::equal(x.dims, x.dims + x.rank, y.dims);
}

/// Until 22 a last window that begins in the padding after the input counted, where sizes were rounded up;
/// says the standard, and no runtime did it. So older operator sets are not chosen for it, but written when
/// asked for.
template <class Form>
bool counts_padding(const Form& form) {
  const auto ints = [&](std::string_view name, size_t i, int64_t otherwise) {
    const tn_attr* a = form.attribute(name);
    return a && a->kind == TN_ATTR_INTS && i < a->count ? a->u.ints[i] : otherwise;
  };
  const tn_attr* ceil = form.attribute("ceil_mode");
  if (!ceil || ceil->u.i == 0 || form.input(0) == TN_NONE) return false;
  const tn_type x = form.graph.value(form.input(0)).type;
  for (int32_t axis = 2; axis < x.rank; ++axis) {
    const auto i = static_cast<size_t>(axis - 2), spatial = static_cast<size_t>(x.rank - 2);
    const int64_t stride = ints("strides", i, 1), before = ints("pads", i, 0),
                  after = ints("pads", spatial + i, 0);
    const int64_t window = (ints("kernel_shape", i, 1) - 1) * ints("dilations", i, 1) + 1;
    if (x.dims[axis] < 0 || stride < 1) continue;  // a size that is not known: it rarely matters
    const int64_t windows = (x.dims[axis] + before + after - window + stride - 1) / stride + 1;
    if ((windows - 1) * stride >= x.dims[axis] + before) return true;
  }
  return false;
}

bool is_one_number(const tn_type& t) {
  return t.rank >= 0 && std::all_of(t.dims, t.dims + t.rank, [](tn_dim d) { return d == 1; });
}

/// What neither names, types nor counts of operands show.
template <class Form, class Need>
void need_by_meaning(const Form& form, Need&& need) {
  const std::string_view op = form.op();
  const sdk::GraphView& graph = form.graph;
  const auto dtype = [&](uint32_t i) {
    const tn_value v = form.input(i);
    return v == TN_NONE ? tn_dtype{TN_DTYPE_NONE} : graph.value(v).type.dtype;
  };
  if (op == "Identity" || op == "If" || op == "Loop") {
    for (uint32_t i = 0; i < form.output_count(); ++i) {
      if (form.output(i) == TN_NONE) continue;
      const uint32_t kind = graph.value(form.output(i)).type.kind;
      const int32_t since = op != "Identity" && kind == TN_KIND_SEQUENCE ? 13 : identity_since(kind);
      need(since, [] { return std::string("a result that is no tensor"); });
    }
  } else if (op == "Max" || op == "Min" || op == "Sum" || op == "Mean") {
    for (uint32_t i = 1; i < form.input_count(); ++i)
      if (form.input(i) != TN_NONE && form.input(0) != TN_NONE && differ(graph, form.input(0), form.input(i)))
        need(8, [] { return std::string("operands of several shapes"); });
  } else if (op == "AveragePool" || op == "MaxPool" || op == "LpPool") {
    if (!form.old_meaning() && counts_padding(form))
      need(22, [] { return std::string("a last window that begins in the padding"); });
  } else if (op == "Pow" && dtype(1) != TN_DTYPE_NONE && dtype(0) != dtype(1)) {
    need(12, [] { return std::string("an exponent of another element type"); });
  } else if (op == "Mod" && (TN_DTYPE_CODE(dtype(0)) == 2 || TN_DTYPE_CODE(dtype(0)) == 4)) {
    const tn_attr* fmod = form.attribute("fmod");
    if (!fmod || fmod->u.i == 0)
      need(28, [] { return std::string("the remainder of reals that is not fmod"); });
  } else if (op == "QuantizeLinear" || op == "DequantizeLinear") {
    const tn_value scale = form.input(1);
    if (scale != TN_NONE && !is_one_number(graph.value(scale).type))
      need(13, [] { return std::string("a scale for each slice"); });
  } else if (op == "BatchNormalization") {
    if (dtype(1) != dtype(0)) need(15, [] { return std::string("a scale of another element type"); });
    if (dtype(3) != dtype(0)) need(14, [] { return std::string("a mean of another element type"); });
  } else if (op == "Dropout" && form.output(1) != TN_NONE && !graph.users(form.output(1)).empty()) {
    need(10, [] { return std::string("its mask"); });
  }
  const bool last_only = op == "TopK";  // -1, and no other
  const tn_attr* axis = has_plain_axis(op) || last_only ? form.attribute("axis") : nullptr;
  if (axis && axis->u.i < (last_only ? -1 : 0)) need(11, [] { return std::string("an axis below zero"); });
  for (const ValueForm& f : value_forms) {
    if (op != f.op) continue;
    const tn_attr* a = form.attribute(f.attribute);
    if (a && a->kind == TN_ATTR_STRING && sdk::view(a->u.s) == f.value)
      need(f.since, [&] { return std::string(f.attribute) + " '" + f.value + "'"; });
  }
}

template <class Form>
Requirement required(const Form& form, const tn_op_def* definition) {
  Requirement r;
  const auto need = [&](int32_t since, auto&& why) {
    if (since > r.opset) r = {since, why()};
  };
  const Range known = forms_of(form.op());
  if (!known.first) {
    if (!form.old_meaning()) need(definition->since_version, [] { return std::string("its definition"); });
    return r;
  }
  const auto dtype_at = [&](uint32_t place) {
    const tn_value v = place < first_result ? form.input(place) : form.output(place - first_result);
    if (v == TN_NONE) return tn_dtype{TN_DTYPE_NONE};
    const tn_type type = form.graph.value(v).type;
    return type.kind == TN_KIND_TENSOR ? type.dtype : tn_dtype{TN_DTYPE_NONE};
  };
  for (const FormRow& f : known) {
    if (f.since <= r.opset) continue;
    switch (f.kind) {
      case 'b':
        if (form.old_meaning()) break;
        [[fallthrough]];
      case 'e':
        need(f.since, [] { return std::string("the operator"); });
        break;
      case 'i':
        if (form.has(f.place)) need(f.since, [&] { return "its operand " + std::to_string(f.place); });
        break;
      case 't':
        if (dtype_at(f.place) == f.dtype)
          need(f.since, [&] { return std::string("element type ") + sdk::dtype_name(f.dtype); });
        break;
      case 'a':
        if (!form.has_attributes()) break;
        if (const tn_attr* a = form.attribute(f.attribute))
          if (!is_default(*a, definition, f.attribute))
            need(f.since, [&] { return "attribute '" + std::string(f.attribute) + "'"; });
        break;
      default:
        break;
    }
  }
  need_by_meaning(form, need);
  return r;
}

}  // namespace

Requirement required_opset(const sdk::GraphView& graph, const sdk::Node& node, const tn_op_def* definition) {
  if (!definition)
    return {node.version(), "it is of an operator without a definition here, so it is kept as it was"};
  return required(NodeForm{graph, node}, definition);
}

Requirement required_opset(const sdk::GraphView& graph, const Step& step, const tn_op_def* definition) {
  return required(StepForm{graph, step}, definition);
}

int32_t ir_version_of(int32_t opset) {
  constexpr struct {
    int32_t opset, ir;
  } table[] = {{28, 14}, {25, 13}, {24, 12}, {23, 11}, {21, 10}, {19, 9},
               {15, 8},  {12, 7},  {11, 6},  {10, 5},  {9, 4}};
  for (const auto& row : table)
    if (opset >= row.opset) return row.ir;
  return 3;
}

}  // namespace tenon::onnx
