#include "learn/draft.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace tenon::rules {
namespace {

constexpr int64_t longest_literal = 16;
constexpr size_t most_nodes = 64;

/// A number that reads back as it is.
std::string number(double d) {
  for (const char* format : {"%.6g", "%.9g", "%.17g"}) {
    const std::string text = sdk::format(format, d);
    if (std::strtod(text.c_str(), nullptr) == d) return text;
  }
  return sdk::format("%.17g", d);
}

std::string plain_name(std::string_view op) {
  const auto colon = op.rfind("::");
  return std::string(colon == std::string_view::npos ? op : op.substr(colon + 2));
}

const tn_attr& attribute(const tn_node_info& info, uint32_t i) {
  return *reinterpret_cast<const tn_attr*>(reinterpret_cast<const uint8_t*>(info.attrs) +
                                           static_cast<size_t>(i) * info.attr_stride);
}

std::string attribute_text(const tn_attr& a) {
  switch (a.kind) {
    case TN_ATTR_INT:
      return std::to_string(a.u.i);
    case TN_ATTR_FLOAT:
      return number(a.u.f);
    case TN_ATTR_STRING:
      return quoted(sdk::view(a.u.s));
    default: {
      std::string s = "[";
      for (uint64_t i = 0; i < a.count; ++i)
        s += (i ? ", " : "") + (a.kind == TN_ATTR_INTS ? std::to_string(a.u.ints[i]) : number(a.u.floats[i]));
      return s + "]";
    }
  }
}

}  // namespace

std::string quoted(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      s += '\\', s += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      s += sdk::format("\\u%04x", static_cast<unsigned>(static_cast<unsigned char>(c)));
    else
      s += c;
  }
  return s + "\"";
}

std::string literal_text(const tn_tensor& tensor) {
  const sdk::TensorView view(tensor);
  std::string s;
  for (int64_t i = 0; i < view.count(); ++i) s += (i ? ", " : "") + number(view.float_at(i));
  // Found as it was stored, so its own type's rounding is all the tolerance it needs.
  return view.count() == 1 && tensor.rank == 0 ? s : "{\"const\": [" + s + "]}";
}

bool DraftWriter::is_small(tn_value value, tn_tensor* tensor) const {
  const tn_value_info info = graph_.value(value);
  if (info.kind != TN_VALUE_CONSTANT || info.type.rank > 1 || info.type.dtype == TN_STRING) return false;
  int64_t n = 1;
  for (int32_t i = 0; i < info.type.rank; ++i) n *= info.type.dims[i];
  if (n < 1 || n > longest_literal || !graph_.constant(value, tensor)) return false;
  if (n > 1 && sdk::is_float(tensor->dtype)) return false;
  const sdk::TensorView view(*tensor);
  bool numbers = sdk::visit_number(tensor->dtype, [](auto) {});
  for (int64_t i = 0; numbers && i < n; ++i)
    numbers = std::isfinite(view.float_at(i)) && std::fabs(view.float_at(i)) < 9007199254740992.0;
  return numbers;
}

std::string DraftWriter::refusal(tn_node node) const {
  const tn_node_info info = graph_.node(node);
  if (!info.alive) return "it is no node of the graph";
  const std::string name = "'" + graph_.node_name(node) + "' (" + std::string(graph_.op_name(info.op)) + ")";
  if (info.region_count != 0) return name + " has a body";
  const tn_op_def* def = ops_.find(info.op);
  if (!def) return "no plugin defines the operator of " + name;
  if (def->flags & (TN_OP_NONDETERMINISTIC | TN_OP_SIDE_EFFECT))
    return name + " gives another result each time";
  for (uint32_t i = 0; i < info.attr_count; ++i) {
    const tn_attr& a = attribute(info, i);
    const bool writable = (a.kind >= TN_ATTR_INT && a.kind <= TN_ATTR_FLOATS) &&
                          (a.count > 0 || a.kind == TN_ATTR_INT || a.kind == TN_ATTR_FLOAT ||
                           (a.kind == TN_ATTR_STRING && a.u.s.size > 0));
    if (!writable)
      return "attribute '" + std::string(graph_.op_name(a.name)) + "' of " + name +
             " is of a kind that a pattern cannot ask for";
    if (a.kind == TN_ATTR_FLOAT && !std::isfinite(a.u.f)) return "an attribute of " + name + " is not finite";
  }
  for (uint32_t i = 0; i < info.output_count; ++i)
    if (info.outputs[i] != TN_NONE && graph_.value(info.outputs[i]).type.kind != TN_KIND_TENSOR)
      return name + " yields no tensor of known type";
  return {};
}

uint64_t DraftWriter::bytes(tn_value value) const {
  const tn_type t = graph_.value(value).type;
  if (t.kind != TN_KIND_TENSOR || t.rank < 0) return 0;
  double n = 1;
  for (int32_t i = 0; i < t.rank; ++i) {
    int64_t lo = t.dims[i], hi = 0;
    if (lo < 0) graph_.symbols()->range(graph_.raw(), t.dims[i], &lo, &hi);
    n *= static_cast<double>(std::max<int64_t>(lo, t.dims[i] < 0 ? 1 : 0));
  }
  return static_cast<uint64_t>(std::min(n * TN_DTYPE_BITS(t.dtype) / 8, 1e18));
}

/// Topological order of a few nodes.
void DraftWriter::order(std::vector<tn_node>* nodes) const {
  std::sort(nodes->begin(), nodes->end());
  nodes->erase(std::unique(nodes->begin(), nodes->end()), nodes->end());
  std::vector<tn_node> left = *nodes, sorted;
  while (!left.empty()) {
    const size_t before = left.size();
    for (size_t k = 0; k < left.size();) {
      const tn_node_info info = graph_.node(left[k]);
      bool ready = true;
      for (uint32_t i = 0; i < info.input_count && ready; ++i) {
        const tn_value_info v = info.inputs[i] == TN_NONE ? tn_value_info{} : graph_.value(info.inputs[i]);
        ready = v.kind != TN_VALUE_RESULT || std::find(left.begin(), left.end(), v.producer) == left.end();
      }
      if (!ready) {
        ++k;
        continue;
      }
      sorted.push_back(left[k]);
      left.erase(left.begin() + static_cast<ptrdiff_t>(k));
    }
    if (left.size() == before) sdk::fail("the nodes cannot be put in order");
  }
  *nodes = std::move(sorted);
}

std::string DraftWriter::rule_text(const std::vector<tn_node>& nodes, const std::string& name,
                                   const std::string& doc, int64_t shrink_above, Draft* draft) const {
  std::map<tn_value, std::string> names;
  std::vector<tn_value> outer, inner, results;
  std::map<int64_t, int64_t> extents;
  std::string pattern, summary;
  bool rigid = false;  // numbers in it speak of extents
  const auto inside = [&](tn_node n) { return std::find(nodes.begin(), nodes.end(), n) != nodes.end(); };
  for (size_t k = 0; k < nodes.size(); ++k) {
    const tn_node_info info = graph_.node(nodes[k]);
    const std::string op(graph_.op_name(info.op));
    summary += (k ? ", " : "") + plain_name(op);
    std::string in, out, attrs;
    for (uint32_t i = 0; i < info.input_count; ++i) {
      std::string word;
      tn_tensor literal{};
      const tn_value v = info.inputs[i];
      if (v == TN_NONE) {
        word = "\"absent" + std::to_string(k) + "_" + std::to_string(i) + "?\"";
      } else if (is_small(v, &literal)) {
        word = literal_text(literal);
        rigid = rigid || !sdk::is_float(literal.dtype);
      } else {
        auto& known = names[v];
        if (known.empty()) {
          known = "x" + std::to_string(outer.size());
          outer.push_back(v);
        }
        word = quoted(known);
      }
      in += (i ? ", " : "") + word;
    }
    for (uint32_t i = 0; i < info.output_count; ++i) {
      const tn_value v = info.outputs[i];
      std::string word = "\"_\"";
      if (v != TN_NONE && !graph_.users(v).empty()) {
        names[v] = "v" + std::to_string(inner.size() + results.size());
        word = quoted(names[v]);
        const auto users = graph_.users(v);
        const bool escapes = std::any_of(users.begin(), users.end(), [&](const tn_use& u) {
          return u.node == TN_NONE || !inside(u.node);
        });
        (escapes ? results : inner).push_back(v);
      }
      out += (i ? ", " : "") + word;
    }
    for (uint32_t i = 0; i < info.attr_count; ++i) {
      const tn_attr& a = attribute(info, i);
      attrs += (i ? ", " : "") + quoted(graph_.op_name(a.name)) + ": " + attribute_text(a);
      rigid = rigid || (a.kind == TN_ATTR_INTS &&
                        std::any_of(a.u.ints, a.u.ints + a.count, [](int64_t x) { return x > 8; }));
    }
    pattern += (k ? ",\n      " : "") + quoted("n" + std::to_string(k)) + ": {\"op\": " + quoted(op) +
               ", \"in\": [" + in + "], \"out\": [" + out + "]" +
               (attrs.empty() ? "" : ", \"attrs\": {" + attrs + "}") + "}";
  }
  if (results.empty()) sdk::fail("nobody reads what the nodes yield");
  std::string wishes, operands, outputs, gain, shapes, check;
  for (const tn_value v : outer) {
    const tn_type t = graph_.value(v).type;
    if (t.kind != TN_KIND_TENSOR || t.rank < 0 || t.dtype == TN_DTYPE_NONE)
      sdk::fail("the type of '" + graph_.value_name(v) + "' is not known");
    wishes += (wishes.empty() ? "" : ", ") + quoted(names[v]) +
              ": {\"dtype\": " + quoted(sdk::dtype_name(t.dtype)) + "}";
    operands += (operands.empty() ? "" : ", ") + quoted(names[v]);
    std::string dims;
    for (int32_t i = 0; i < t.rank; ++i) {
      int64_t d = t.dims[i], hi = 0;
      if (d < 0) {
        graph_.symbols()->range(graph_.raw(), t.dims[i], &d, &hi);
        d = std::max<int64_t>(d, 1);
      }
      if (!rigid && shrink_above > 0 && d > shrink_above)
        d = extents.emplace(d, shrink_above + 1 + static_cast<int64_t>(extents.size())).first->second;
      dims += (i ? ", " : "") + std::to_string(d);
    }
    shapes += (shapes.empty() ? "" : ", ") + quoted(names[v]) + ": [" + dims + "]";
  }
  for (const tn_value v : results) outputs += (outputs.empty() ? "" : ", ") + quoted(names[v]);
  draft->bytes_saved = 0;
  for (const tn_value v : inner) {
    gain += (gain.empty() ? "" : " + ") + std::string("2 * bytes(") + names[v] + ")";
    draft->bytes_saved += 2 * bytes(v);
  }
  if (!inner.empty() && sdk::is_float(graph_.value(inner[0]).type.dtype))
    check = ",\n    \"must_not_fire\": [{\"why\": \"" + names[inner[0]] +
            " is a graph output\", \"graph_output\": [" + quoted(names[inner[0]]) + "]}, {\"why\": \"" +
            names[inner[0]] + " is read outside\", \"extra_user\": [" + quoted(names[inner[0]]) + "]}]";
  draft->name = name;
  draft->summary = summary;
  draft->nodes = static_cast<uint32_t>(nodes.size());
  std::string op;
  for (const char c : name) op += std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  return "{\"rule\": " + quoted(name) + ", \"doc\": " + quoted(doc) +
         ",\n  \"stage\": \"fuse\", \"level\": 2, \"precision\": \"exact\",\n" +
         "  \"pattern\": {\"nodes\": {\n      " + pattern + "},\n    \"values\": {" + wishes +
         "}, \"outputs\": [" + outputs +
         "]},\n  \"replace\": {\"nodes\": {\"fused\": {\"op\": " + quoted(op) +
         ", \"domain\": \"learned\", \"in\": [" + operands + "], \"out\": [" + outputs +
         "]}}, \"body\": \"origin\"},\n" +
         (gain.empty() ? "" : "  \"cost\": {\"gain\": " + quoted(gain) + "},\n") +
         "  \"verify\": {\"trials\": 2, \"cases\": [{" + shapes + "}]" + check + "}}\n";
}

/// Loads and proves the text as `tenon rules check` and `tenon rules test` would.
bool DraftWriter::accepted(const std::string& text, std::string* why) const {
  static const std::string path = "draft";
  const tn_rule_source source{sdk::str(path), sdk::str(text), 0, 0};
  sdk::DiagBuffer said;
  const RuleSet rules(&source, 1, ops_, sdk::Diag(said.raw()));
  if (!rules.ok() || rules.entries().empty()) {
    *why = said.text();
    return false;
  }
  if (!services_.eval) return true;  // nothing can be computed here
  RuleTester tester(services_, ops_, rules, 1);
  return tester.test(*rules.entries()[0].rule,
                     [&](const std::string& name, bool passed, const std::string& what) {
                       if (!passed) *why = name + ": " + what;
                     });
}

Draft DraftWriter::write(std::vector<tn_node> nodes, const std::string& name, const std::string& doc) const {
  if (nodes.size() < 2) sdk::fail("a rule needs at least two nodes");
  if (nodes.size() > most_nodes)
    sdk::fail("a rule of " + std::to_string(nodes.size()) + " nodes is too large; at most " +
              std::to_string(most_nodes));
  order(&nodes);
  for (const tn_node n : nodes) {
    if (auto why = refusal(n); !why.empty()) sdk::fail(why);
    if (graph_.node(n).region != graph_.node(nodes[0]).region)
      sdk::fail("'" + graph_.node_name(n) + "' lies in another region than '" + graph_.node_name(nodes[0]) +
                "'");
  }
  Draft draft;
  std::string why;
  // Small extents first, which prove fast; the model's own where numbers of the pattern depend on them.
  for (const int64_t shrink_above : {int64_t{8}, int64_t{0}}) {
    draft.text = rule_text(nodes, name, doc, shrink_above, &draft);
    if (accepted(draft.text, &why)) return draft;
  }
  sdk::fail("the rule could not be proved: " + why);
}

}  // namespace tenon::rules
