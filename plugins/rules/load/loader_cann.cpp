// CANN's rule files, {"Rules": [...]}: two graphs, edges by index. Rewritten to form v1, each part keeping
// its place in the file, and read as that.
#include <algorithm>

#include "load/loader.hpp"

namespace tenon::rules {
namespace {

Json text(std::string t, uint32_t offset) {
  Json j;
  j.kind = Json::String;
  j.text = std::move(t);
  j.offset = j.key_offset = offset;
  return j;
}
Json flag(bool b, uint32_t offset) {
  Json j;
  j.kind = Json::Bool;
  j.boolean = b;
  j.offset = j.key_offset = offset;
  return j;
}
Json collection(Json::Kind kind, uint32_t offset) {
  Json j;
  j.kind = kind;
  j.offset = j.key_offset = offset;
  return j;
}
Json& put(Json& object, std::string key, Json value) {
  object.keys.push_back(std::move(key));
  object.items.push_back(std::move(value));
  return object.items.back();
}

/// Names of ascend IR whose operands are in the order of the operator of ONNX beside them.
std::string_view known_as(std::string_view type) {
  static constexpr std::pair<std::string_view, std::string_view> table[] = {
      {"Conv2D", "Conv"},
      {"Conv3D", "Conv"},
      {"MatMulV2", "MatMul"},
      {"BatchMatMul", "MatMul"},
      {"BatchMatMulV2", "MatMul"},
      {"SoftmaxV2", "Softmax"},
      {"BatchNorm", "BatchNormalization"},
      {"LayerNorm", "LayerNormalization"},
      {"BiasAdd", "Add"},
      {"RealDiv", "Div"},
      {"Maximum", "Max"},
      {"Minimum", "Min"},
      {"AddN", "Sum"},
      {"TransposeD", "Transpose"}};
  for (const auto& t : table)
    if (t.first == type) return t.second;
  return type;
}

/// "n:0" or an outer name.
struct Anchor {
  std::string name;
  uint32_t index = 0;
  bool indexed = false;
};
Anchor anchor(const std::string& t) {
  Anchor a;
  const auto colon = t.rfind(':');
  a.name = t.substr(0, colon);
  if (colon == std::string::npos) return a;
  const std::string digits = t.substr(colon + 1);
  if (digits.empty() || digits.size() > 3 ||
      !std::all_of(digits.begin(), digits.end(), [](unsigned char c) { return std::isdigit(c); }))
    return {t, 0, false};
  a.index = static_cast<uint32_t>(std::stoul(digits));
  a.indexed = true;
  return a;
}

struct Side {  // one of the two graphs
  struct Node {
    std::string name, id;
    const Json* json = nullptr;
    std::vector<std::string> in, out;  // value names; "" where no edge ends
  };
  std::vector<Node> nodes;
  Node* find(const std::string& name) {
    for (auto& n : nodes)
      if (n.name == name) return &n;
    return nullptr;
  }
};

constexpr uint32_t max_index = 63;

}  // namespace

/// Reads a rule of CANN into the tree of a rule of form v1; false after an error.
class CannRule {
 public:
  CannRule(const Json& json, Findings& findings) : json_(json), findings_(findings) {}

  bool read(Json* rule) {
    const size_t errors = findings_.errors();
    Reader r(json_, findings_);
    const Json* name = r.required("RuleName");
    const Json* inputs = r.required("OuterInputs");
    const Json* outputs = r.required("OuterOutputs");
    const Json* origin = r.required("OriginGraph");
    const Json* fusion = r.required("FusionGraph");
    r.finish();
    if (name && wrong_kind(findings_, *name, Json::String, "'RuleName'")) name = nullptr;
    if (inputs) outer(*inputs, "OuterInputs", true, &inputs_);
    if (outputs) outer(*outputs, "OuterOutputs", false, &outputs_);
    if (origin) graph(*origin, "OriginGraph", false, &origin_);
    if (fusion) graph(*fusion, "FusionGraph", true, &fusion_);
    if (origin && fusion && findings_.errors() == errors) {
      wire(*origin->find("Edges"), origin_, true);
      wire(*fusion->find("Edges"), fusion_, false);
    }
    if (fusion) check_attributes(*fusion);
    if (!name || findings_.errors() != errors) return false;
    for (const auto& o : outputs_)
      if (o.value.empty())
        findings_.error("E220", o.offset,
                        "no edge of 'OriginGraph' ends at the outer output '" + o.name + "'");
      else if (!o.made)
        findings_.error("E220", o.offset,
                        "no edge of 'FusionGraph' ends at the outer output '" + o.name + "'");
    if (findings_.errors() != errors) return false;
    *rule = collection(Json::Object, json_.offset);
    put(*rule, "rule", text(identifier(name->text), name->offset));
    pattern(put(*rule, "pattern", collection(Json::Object, origin->offset)), *origin);
    if (fusion_.nodes.size() >= origin_.nodes.size()) put(*rule, "once", flag(true, fusion->offset));
    replacement(put(*rule, "replace", collection(Json::Object, fusion->offset)), *fusion);
    return findings_.errors() == errors;
  }

 private:
  struct Outer {
    std::string name, value;
    uint32_t offset = 0;
    bool made = false;
  };

  static std::string identifier(const std::string& t) {
    std::string r;
    for (const char c : t) r += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return r.empty() || std::isdigit(static_cast<unsigned char>(r[0])) ? "_" + r : r;
  }
  std::string unique(const std::string& wanted) {
    std::string r = identifier(wanted);
    while (std::find(taken_.begin(), taken_.end(), r) != taken_.end()) r += '_';
    taken_.push_back(r);
    return r;
  }

  void outer(const Json& list, const char* what, bool input, std::vector<Outer>* out) {
    if (wrong_kind(findings_, list, Json::Array, std::string("'") + what + "'")) return;
    if (list.items.empty()) findings_.error("E203", list.offset, std::string("'") + what + "' is empty");
    std::vector<std::pair<std::string, std::string>> sources;  // "src": one value outside, whatever its names
    for (const auto& i : list.items) {
      if (wrong_kind(findings_, i, Json::Object, std::string("an item of '") + what + "'")) continue;
      Reader r(i, findings_);
      const Json* name = r.required("name");
      const std::string src = input ? r.text("src") : std::string();
      r.finish();
      if (!name || wrong_kind(findings_, *name, Json::String, "'name'")) continue;
      for (const auto& o : *out)
        if (o.name == name->text)
          findings_.error("E220", name->offset, "outer '" + name->text + "' is named twice");
      Outer o;
      o.name = name->text;
      o.offset = i.offset;
      if (input) {
        const Anchor a = anchor(src);
        const std::string key = src.empty() ? std::string() : a.name + ":" + std::to_string(a.index);
        for (const auto& s : sources)
          if (!key.empty() && s.first == key) o.value = s.second;
        if (o.value.empty()) o.value = unique(o.name);
        if (!key.empty()) sources.emplace_back(key, o.value);
      }
      out->push_back(std::move(o));
    }
  }

  void graph(const Json& g, const char* what, bool attrs, Side* side) {
    if (wrong_kind(findings_, g, Json::Object, std::string("'") + what + "'")) return;
    Reader r(g, findings_);
    const Json* nodes = r.required("Nodes");
    const Json* edges = r.required("Edges");
    if (attrs)
      if (const Json* a = r.get("Attrs")) wrong_kind(findings_, *a, Json::Array, "'Attrs'");
    r.finish();
    if (edges) wrong_kind(findings_, *edges, Json::Array, "'Edges'");
    if (!nodes || wrong_kind(findings_, *nodes, Json::Array, "'Nodes'")) return;
    if (nodes->items.empty() || nodes->items.size() > 64)
      findings_.error("E202", nodes->offset,
                      "a graph has 1 to 64 nodes, found " + std::to_string(nodes->items.size()));
    for (const auto& n : nodes->items) {
      if (wrong_kind(findings_, n, Json::Object, "a node")) continue;
      Reader nr(n, findings_);
      const Json* name = nr.required("name");
      const Json* type = nr.required("type");
      nr.flag("commute", false);
      nr.finish();
      if (type && !wrong_kind(findings_, *type, Json::Array, "'type'")) {
        if (type->items.empty()) findings_.error("E203", type->offset, "'type' is empty");
        for (const auto& t : type->items) wrong_kind(findings_, t, Json::String, "a type");
        if (attrs && type->items.size() > 1)
          findings_.error(
              "E220", type->offset,
              "a node of 'FusionGraph' has one type, found " + std::to_string(type->items.size()));
      }
      if (!name || wrong_kind(findings_, *name, Json::String, "'name'")) continue;
      if (side->find(name->text))
        findings_.error("E220", name->offset, "node '" + name->text + "' is defined twice");
      Side::Node node;
      node.name = name->text;
      node.json = &n;
      side->nodes.push_back(std::move(node));
    }
  }

  /// Ends of edges become names of values.
  void wire(const Json& edges, Side& side, bool origin) {
    for (auto& n : side.nodes) n.id = unique(origin ? n.name : n.name + "_new");
    for (const auto& e : edges.items) {
      if (wrong_kind(findings_, e, Json::Object, "an edge")) continue;
      Reader r(e, findings_);
      const Json* src = r.required("src");
      const Json* dst = r.required("dst");
      r.finish();
      if (!src || !dst || wrong_kind(findings_, *src, Json::String, "'src'") ||
          wrong_kind(findings_, *dst, Json::String, "'dst'"))
        continue;
      const std::string value = source_value(*src, side, origin);
      const Anchor to = anchor(dst->text);
      if (value.empty()) continue;
      if (Side::Node* n = side.find(to.name)) {
        if (to.index > max_index) {
          findings_.error("E220", dst->offset, "index " + std::to_string(to.index) + " is greater than 63");
          continue;
        }
        if (n->in.size() <= to.index) n->in.resize(to.index + 1);
        if (!n->in[to.index].empty())
          findings_.error("E220", dst->offset, "two edges end at '" + dst->text + "'");
        n->in[to.index] = value;
        continue;
      }
      bool found = false;
      for (auto& o : outputs_) {
        if (o.name != dst->text) continue;
        found = true;
        if (origin)
          o.value = value;
        else
          rename(side, value, o);
      }
      if (!found) unknown(*dst, "is neither a node nor an outer output", side, outputs_);
    }
  }

  std::string source_value(const Json& src, Side& side, bool origin) {
    const Anchor from = anchor(src.text);
    if (Side::Node* n = side.find(from.name)) {
      if (from.index > max_index) {
        findings_.error("E220", src.offset, "index " + std::to_string(from.index) + " is greater than 63");
        return {};
      }
      if (n->out.size() <= from.index) n->out.resize(from.index + 1);
      std::string& value = n->out[from.index];
      if (value.empty()) value = unique(n->id + (origin ? "_out" : "_made") + std::to_string(from.index));
      return value;
    }
    for (const auto& o : inputs_)
      if (o.name == src.text) return o.value;
    unknown(src, "is neither a node nor an outer input", side, inputs_);
    return {};
  }

  /// The node that yields `value` in the fusion graph yields the outer output.
  void rename(Side& side, const std::string& value, Outer& o) {
    o.made = true;
    for (auto& n : side.nodes)
      for (auto& x : n.out)
        if (x == value) {
          for (auto& m : side.nodes)
            for (auto& y : m.in)
              if (y == value) y = o.value;
          x = o.value;
          return;
        }
    findings_.error("E220", o.offset, "outer output '" + o.name + "' would be an outer input as it is",
                    "a rule of CANN replaces nodes by nodes");
  }

  void unknown(const Json& at, const char* what, const Side& side, const std::vector<Outer>& outers) {
    std::vector<std::string_view> names;
    for (const auto& n : side.nodes) names.push_back(n.name);
    for (const auto& o : outers) names.push_back(o.name);
    findings_.error("E220", at.offset, "'" + at.text + "' " + what,
                    did_you_mean(anchor(at.text).name, names));
  }

  void node_json(Json& nodes, const Side::Node& n, bool origin) {
    Json j = collection(Json::Object, n.json->offset);
    j.key_offset = n.json->offset;
    const Json& types = *n.json->find("type");
    Json op = collection(Json::Array, types.offset);
    for (const auto& t : types.items) op.items.push_back(text(std::string(known_as(t.text)), t.offset));
    put(j, "op", op.items.size() == 1 ? op.items[0] : op);
    Json in = collection(Json::Array, n.json->offset), out = in;
    for (const auto& v : n.in) in.items.push_back(text(v.empty() ? "_" : v, n.json->offset));
    for (const auto& v : n.out) out.items.push_back(text(v.empty() ? "_" : v, n.json->offset));
    if (!origin)
      for (size_t i = 0; i < n.in.size(); ++i)
        if (n.in[i].empty())
          findings_.error("E220", n.json->offset,
                          "no edge of 'FusionGraph' ends at '" + n.name + ":" + std::to_string(i) + "'");
    put(j, "in", std::move(in));
    put(j, "out", std::move(out));
    if (origin) {
      const Json* c = n.json->find("commute");  // CANN matches by index
      put(j, "commute", flag(c && c->boolean, n.json->offset));
    }
    put(nodes, n.id, std::move(j));
  }

  void pattern(Json& p, const Json& at) {
    Json& nodes = put(p, "nodes", collection(Json::Object, at.offset));
    for (const auto& n : origin_.nodes) node_json(nodes, n, true);
    Json outs = collection(Json::Array, at.offset);
    for (const auto& o : outputs_) outs.items.push_back(text(o.value, o.offset));
    put(p, "outputs", std::move(outs));
  }

  void replacement(Json& r, const Json& at) {
    Json& nodes = put(r, "nodes", collection(Json::Object, at.offset));
    // In an order in which each reads what is made.
    std::vector<bool> done(fusion_.nodes.size());
    std::vector<std::string> made;
    for (size_t round = 0; round < fusion_.nodes.size(); ++round)
      for (size_t i = 0; i < fusion_.nodes.size(); ++i) {
        const auto& n = fusion_.nodes[i];
        const bool ready = std::all_of(n.in.begin(), n.in.end(), [&](const std::string& v) {
          return std::none_of(fusion_.nodes.begin(), fusion_.nodes.end(), [&](const Side::Node& m) {
            return !v.empty() && std::find(m.out.begin(), m.out.end(), v) != m.out.end() &&
                   std::find(made.begin(), made.end(), v) == made.end();
          });
        });
        if (done[i] || !ready) continue;
        done[i] = true;
        made.insert(made.end(), n.out.begin(), n.out.end());
        node_json(nodes, n, false);
        attributes(nodes.items.back(), n, at);
      }
    for (size_t i = 0; i < done.size(); ++i)
      if (!done[i])
        findings_.error("E220", fusion_.nodes[i].json->offset,
                        "node '" + fusion_.nodes[i].name + "' reads its own results, around a ring of edges");
    const bool all_read = std::all_of(inputs_.begin(), inputs_.end(), [&](const Outer& o) {
      return std::any_of(fusion_.nodes.begin(), fusion_.nodes.end(), [&](const Side::Node& n) {
        return std::find(n.in.begin(), n.in.end(), o.value) != n.in.end();
      });
    });
    if (fusion_.nodes.size() == 1 && all_read) put(r, "body", text("origin", at.offset));
  }

  void check_attributes(const Json& graph) {
    const Json* list = graph.is_object() ? graph.find("Attrs") : nullptr;
    if (!list || !list->is_array()) return;
    for (const auto& a : list->items) {
      if (wrong_kind(findings_, a, Json::Object, "an attribute")) continue;
      Reader r(a, findings_);
      const Json* attr = r.required("attr");
      r.required("value");
      const Json* expr = r.get("expr");
      r.finish();
      if (expr && (!expr->is_string() || expr->text != "="))
        findings_.error("E220", expr->offset, "'expr' is \"=\", nothing else has a meaning");
      if (!attr || wrong_kind(findings_, *attr, Json::String, "'attr'")) continue;
      const auto dot = attr->text.find('.');
      if (dot == std::string::npos || !fusion_.find(attr->text.substr(0, dot)))
        findings_.error("E220", attr->offset,
                        "'" + attr->text + "' is no attribute of a node of 'FusionGraph'",
                        "\"node.attribute\"");
    }
  }

  /// {"attr": "n.a", "value": "m.b" or a literal, "expr": "="}
  void attributes(Json& node, const Side::Node& n, const Json& graph) {
    if (Side::Node* same = origin_.find(n.name)) {
      Json copy = collection(Json::Array, n.json->offset);
      copy.items.push_back(text(same->id, n.json->offset));
      put(node, "copy_attrs", std::move(copy));
    }
    const Json* list = graph.find("Attrs");
    if (!list) return;
    Json attrs = collection(Json::Object, list->offset);
    for (const auto& a : list->items) {
      const std::string& attr = a.find("attr")->text;
      const auto dot = attr.find('.');
      if (attr.substr(0, dot) == n.name)
        put(attrs, attr.substr(dot + 1), attribute_value(*a.find("value"))).key_offset =
            a.find("attr")->offset;
    }
    if (!attrs.items.empty()) put(node, "attrs", std::move(attrs));
  }

  Json attribute_value(const Json& v) {
    if (!v.is_string()) return v;
    const auto dot = v.text.find('.');
    Side::Node* from = dot == std::string::npos ? nullptr : origin_.find(v.text.substr(0, dot));
    if (from && is_identifier(v.text.substr(dot + 1))) return text(from->id + v.text.substr(dot), v.offset);
    return text((v.text.find('\'') == std::string::npos ? "'" + v.text + "'" : "\"" + v.text + "\""),
                v.offset);
  }

  const Json& json_;
  Findings& findings_;
  std::vector<Outer> inputs_, outputs_;
  Side origin_, fusion_;
  std::vector<std::string> taken_;
};

std::unique_ptr<Rule> RuleLoader::cann(const Json& json) {
  if (wrong_kind(findings_, json, Json::Object, "a rule")) return nullptr;
  auto tree = std::make_shared<Json>();
  if (!CannRule(json, findings_).read(tree.get())) return nullptr;
  auto rule = v1(*tree);
  rule->derived = std::move(tree);
  return rule;
}

}  // namespace tenon::rules
