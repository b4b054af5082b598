#include "older_forms.hpp"

#include <algorithm>
#include <cstring>

#include "older_form.hpp"

namespace tenon::onnx {

namespace {
bool is_whole(tn_dtype d) {
  return TN_DTYPE_BITS(d) >= 8 && (TN_DTYPE_CODE(d) == 0 || TN_DTYPE_CODE(d) == 1 || d == TN_BOOL);
}
}  // namespace

std::optional<std::vector<int64_t>> OlderForm::integers(uint32_t i) const {
  const tn_value v = node.input(i);
  std::vector<int64_t> values;
  if (const auto t = graph.constant(v)) {
    if (!is_whole(t->dtype())) return std::nullopt;
    for (int64_t k = 0; k < t->count(); ++k) values.push_back(t->int_at(k));
    return values;
  }
  bool known = false;
  for (const tn_dim d : graph.known_elements(v, &known)) {
    if (d < 0) return std::nullopt;
    values.push_back(d);
  }
  if (!known) return std::nullopt;
  return values;
}

std::optional<std::vector<double>> OlderForm::numbers(uint32_t i) const {
  const auto t = graph.constant(node.input(i));
  if (!t || t->dtype() == TN_STRING) return std::nullopt;
  std::vector<double> values;
  for (int64_t k = 0; k < t->count(); ++k) values.push_back(t->float_at(k));
  return values;
}

void OlderForm::remove(std::string_view attribute) {
  auto& list = itself.attrs;
  list.erase(std::remove_if(list.begin(), list.end(), [&](const auto& a) { return a.name == attribute; }),
             list.end());
}
StepAttribute& OlderForm::fresh(std::string_view attribute, uint32_t kind) {
  remove(attribute);
  StepAttribute& a = itself.attrs.emplace_back();
  a.name = std::string(attribute);
  a.attr.kind = kind;
  return a;
}
void OlderForm::set(std::string_view attribute, int64_t value) {
  fresh(attribute, TN_ATTR_INT).attr.u.i = value;
}
void OlderForm::set(std::string_view attribute, double value) {
  fresh(attribute, TN_ATTR_FLOAT).attr.u.f = value;
}
void OlderForm::set(std::string_view attribute, std::vector<int64_t> values) {
  fresh(attribute, TN_ATTR_INTS).ints = std::move(values);
}
void OlderForm::set(std::string_view attribute, std::vector<double> values) {
  fresh(attribute, TN_ATTR_FLOATS).floats = std::move(values);
}
void OlderForm::set(std::string_view attribute, std::string_view text) {
  fresh(attribute, TN_ATTR_STRING).text = std::string(text);
}
Place OlderForm::integers_constant(const std::vector<int64_t>& values) {
  sdk::OwnedTensor t(TN_INT64, {static_cast<int64_t>(values.size())});
  if (!values.empty()) std::memcpy(t.data<int64_t>(), values.data(), values.size() * sizeof(int64_t));
  return before.constant(std::move(t));
}
Step& OlderForm::then(std::string op, std::vector<Place> more) {
  const Place result = itself.outputs.at(0);
  itself.outputs[0] = before.fresh();
  more.insert(more.begin(), itself.outputs[0]);
  after.push_back({std::move(op), std::move(more), {result}, {}, false});
  return after.back();
}

bool from_the_front(std::vector<int64_t>& axes, int32_t rank) {
  for (int64_t& a : axes) {
    if (a >= 0) continue;
    if (rank < 0) return false;
    a += rank;
  }
  return true;
}

std::optional<Steps> older_form(const sdk::GraphView& graph, const sdk::Node& node,
                                const tn_op_def* definition, int32_t opset, std::string& why) {
  OlderForm form(graph, node, opset);
  bool any = false;
  for (const OlderMaker* table : {axis_makers, operand_makers, sampling_makers})
    for (const OlderMaker* m = table; m->op; ++m) {
      if (node.op_name() != m->op || opset >= m->below) continue;
      any = true;
      if (!m->make(form)) {
        why = form.why;
        return std::nullopt;
      }
    }
  if (!any || required_opset(graph, form.itself, definition).opset > opset) return std::nullopt;
  Steps all = std::move(form.before);
  all.list.push_back(std::move(form.itself));
  for (Step& s : form.after) all.list.push_back(std::move(s));
  return all;
}

}  // namespace tenon::onnx
