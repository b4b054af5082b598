#include "prove/measure.hpp"

#include <algorithm>

namespace tenon::rules {
namespace {

constexpr uint64_t budget = 20'000'000;  // nanoseconds a side

std::string time_text(uint64_t nanoseconds) {
  const auto n = static_cast<double>(nanoseconds);
  return n < 1e6 ? sdk::format("%.1f us", n / 1e3) : sdk::format("%.2f ms", n / 1e6);
}

std::string type_text(const GraphAccess& graph, tn_value v) {
  if (v == TN_NONE) return "-";
  const tn_value_info info = graph.value(v);
  std::string text = info.kind == TN_VALUE_CONSTANT ? "const " : "";
  text += sdk::dtype_name(info.type.dtype);
  if (info.type.rank < 0) return text + "[?]";
  text += "[";
  const std::vector<tn_dim> dims(info.type.dims, info.type.dims + info.type.rank);
  for (size_t i = 0; i < dims.size(); ++i)
    text += (i ? "," : "") +
            (dims[i] >= 0 ? std::to_string(dims[i]) : sdk::text(graph.symbols()->text(graph.raw(), dims[i])));
  return text + "]";
}

uint64_t digest(std::string_view text, uint64_t h = 1469598103934665603u) {  // FNV-1a
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

std::string attributes_text(const GraphAccess& graph, const tn_node_info& info) {
  std::string text;
  for (uint32_t i = 0; i < info.attr_count; ++i) {
    const auto& a = *reinterpret_cast<const tn_attr*>(reinterpret_cast<const uint8_t*>(info.attrs) +
                                                      static_cast<size_t>(i) * info.attr_stride);
    text += (text.empty() ? "" : ",") + sdk::text(graph.api()->symbol_text(a.name)) + "=";
    if (a.kind == TN_ATTR_TENSOR && a.u.tensor)
      text += sdk::format(
          "tensor %016llx",
          static_cast<unsigned long long>(
              digest({static_cast<const char*>(a.u.tensor->data),
                      a.u.tensor->dtype == TN_STRING ? 0 : static_cast<size_t>(a.u.tensor->bytes)})));
    else
      text += attribute_value(a).show();
  }
  return text.empty() ? text : "{" + text + "}";
}

}  // namespace

/// All that decides which kernels run, and on what: equal matches are one question.
std::string Measurer::question(const GraphAccess& graph, const Match& match, const OpCatalog& ops,
                               const std::string& precision) {
  const Rule& rule = *match.variant->rule;
  std::string text =
      rule.name + sdk::format("@%016llx", static_cast<unsigned long long>(digest(rule.source->text)));
  if (const std::string form = variant_text(*match.variant, ops); !form.empty()) text += " [" + form + "]";
  text += " " + precision + ":";
  std::vector<tn_node> nodes = match.nodes;
  nodes.insert(nodes.end(), match.inner.begin(), match.inner.end());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const tn_node_info info = graph.node(nodes[i]);
    text += (i ? "; " : " ") + std::string(graph.op_name(info.op)) + attributes_text(graph, info) + "(";
    for (uint32_t k = 0; k < info.input_count; ++k)
      text += (k ? ", " : "") + type_text(graph, info.inputs[k]);
    text += ")";
  }
  return text;
}

Measured Measurer::time(const GraphAccess& graph, const Match& match) {
  if (!services_.eval || !TN_HAS(services_.eval, time)) return {Measured::Unknown, "the host cannot measure"};
  MatchCopy plain(services_), rewritten(services_);
  DimNumbers numbers(0);
  if (auto why = plain.build(graph, match, ops_, samples_, numbers); !why.empty())
    return {Measured::Unknown, why};
  // What a made-up size says of the real one is nothing.
  if (numbers.used()) return {Measured::Unknown, "its shapes are open; give --inputs, or model.shapes"};
  if (auto why = rewritten.build_like(graph, match, ops_, plain); !why.empty())
    return {Measured::Unknown, why};
  if (!rewritten.rewrite(match, ops_, rules_))
    return {Measured::Unknown, "it does not fire on these nodes alone"};
  tn_graph* const graphs[2] = {plain.raw(), rewritten.raw()};
  const std::vector<tn_tensor> in = plain.inputs();
  uint64_t took[2] = {0, 0};
  sdk::DiagBuffer said;
  if (services_.eval->time(services_.host, graphs, 2, in.data(), static_cast<uint32_t>(in.size()), budget,
                           took, said.raw()) != TN_OK)
    return {Measured::Unknown, said.text().empty() ? "the host could not run it" : said.text()};
  return {took[1] < took[0] ? Measured::Rewrite : Measured::Keep,
          "measured " + time_text(took[0]) + " as it is, " + time_text(took[1]) + " rewritten"};
}

Measured Measurer::ask(const GraphAccess& graph, const Match& match) {
  if (!choices_) return {};
  const std::string key = question(graph, match, ops_, precision_);
  tn_str chosen{}, note{};
  const tn_choice_origin origin = choices_->find(services_.host, sdk::str(key), &chosen, &note);
  const tn_choice_origin wanted =
      match.variant->rule->measure == Rule::MeasureAlways ? TN_CHOICE_THIS_RUN : TN_CHOICE_OWN;
  if (choices_->may_measure(services_.host) && origin < wanted) {
    const auto failed =
        std::find_if(failed_.begin(), failed_.end(), [&](const auto& f) { return f.first == key; });
    Measured answer;
    if (failed != failed_.end()) {
      answer.text = failed->second;
    } else {
      try {
        answer = time(graph, match);
      } catch (const sdk::Failure& e) {
        answer = {Measured::Unknown, e.what()};
      }
      if (answer.choice != Measured::Unknown) {
        choices_->keep(services_.host, sdk::str(key),
                       sdk::str(answer.choice == Measured::Rewrite ? "rewrite" : "keep"),
                       sdk::str(answer.text));
        return answer;
      }
      failed_.emplace_back(key, answer.text);
    }
    if (origin == TN_CHOICE_NONE) return answer;
  }
  if (origin == TN_CHOICE_NONE) return {};
  return {sdk::view(chosen) == "rewrite" ? Measured::Rewrite : Measured::Keep, sdk::text(note)};
}

}  // namespace tenon::rules
