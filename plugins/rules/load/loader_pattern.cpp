// Patterns of form v1: nodes, operand slots, wishes on values.
#include "load/loader.hpp"

#include <algorithm>

namespace tenon::rules {

namespace {
constexpr int64_t max_copies = 64;

/// "BatchNormalization" for "batchnorm"-like spellings: letters only, lower case.
std::string plain(std::string_view s) {
  std::string r;
  for (const char c : s)
    if (std::isalnum(static_cast<unsigned char>(c)))
      r += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return r;
}
}  // namespace

tn_sym RuleLoader::op(const std::string& name, const std::string& domain, uint32_t offset, bool replacement) {
  tn_sym s = 0;
  if (!domain.empty() && domain != "ai.onnx") {
    s = ops_.symbol(domain + "::" + name);
    if (!ops_.find(s) && !replacement) no_schema(domain + "::" + name, offset);
    return s;
  }
  const int found = ops_.resolve(name, &s);
  if (found == 1) return s;
  // Another spelling, "attention": ONNX's operator comes before those of other domains.
  std::vector<std::string_view> same;
  for (const auto n : ops_.names())
    if (plain(n) == plain(name) && std::find(same.begin(), same.end(), n) == same.end()) same.push_back(n);
  if (same.size() == 1 && (found == 0 || ops_.find(ops_.symbol(same[0])))) return ops_.symbol(same[0]);
  if (found > 1) {
    findings_.error("E402", offset, "operator '" + name + "' is in several domains",
                    "say which: \"domain\": \"...\"");
    return ops_.symbol(name);
  }
  // A replacement without a definition is a new operator that its body explains.
  // It needs a domain of its own: ai.onnx is closed, so nothing there runs by a body.
  if (replacement && name.find("::") == std::string::npos) return ops_.symbol("fused::" + name);
  if (!replacement) no_schema(name, offset);
  return ops_.symbol(name);
}

void RuleLoader::no_schema(const std::string& name, uint32_t offset) {
  const std::string plugin = ops_.provider(name);
  const std::string hint =
      plugin.empty() ? did_you_mean(name, ops_.names())
                     : "plugin " + plugin + ", which is installed, provides it: add it to \"plugins\"";
  findings_.warn("E401", offset,
                 "no plugin defines operator '" + name + "'; the rule waits for one that does", hint);
}

void RuleLoader::op_list(const Json& json, const std::string& domain, std::vector<tn_sym>* out,
                         bool replacement) {
  if (json.is_string()) {
    out->push_back(op(json.text, domain, json.offset, replacement));
  } else if (json.is_array() && !json.items.empty()) {
    for (const auto& i : json.items)
      if (!wrong_kind(findings_, i, Json::String, "an operator"))
        out->push_back(op(i.text, domain, i.offset, replacement));
  } else {
    findings_.error("E202", json.offset,
                    std::string("'op' must be a name or a list of names, found ") + kind_name(json.kind));
  }
}

bool RuleLoader::predicate(const Json& json, Predicate* out) {
  const auto scalar = [&](const Json& j, Scalar* s) {
    if (j.is_string())
      *s = {true, 0, j.text};
    else if (j.is_number())
      *s = {false, j.number, {}};
    else if (j.kind == Json::Bool)
      *s = {false, j.boolean ? 1.0 : 0.0, {}};
    else {
      findings_.error("E202", j.offset,
                      std::string("expected a number, text, true or false, found ") + kind_name(j.kind));
      return false;
    }
    return true;
  };
  if (json.is_array()) {
    for (const auto& i : json.items) {
      Scalar s;
      if (scalar(i, &s)) out->one_of.push_back(std::move(s));
    }
    if (json.items.empty()) findings_.error("E205", json.offset, "an empty list is never met");
    return true;
  }
  if (json.is_object()) {
    Reader r(json, findings_);
    if (const Json* j = r.get("min", Json::Float)) out->min = j->number;
    if (const Json* j = r.get("max", Json::Float)) out->max = j->number;
    if (const Json* j = r.get("not")) {
      Scalar s;
      if (scalar(*j, &s)) out->differs = std::move(s);
    }
    r.finish();
    if (out->min && out->max && *out->min > *out->max)
      findings_.error("E205", json.offset, "min is greater than max: never met");
    if (out->empty()) findings_.error("E203", json.offset, "expected 'min', 'max' or 'not'");
    return true;
  }
  Scalar s;
  if (!scalar(json, &s)) return false;
  out->one_of.push_back(std::move(s));
  return true;
}

void RuleLoader::attribute_wishes(const Json& json, const std::vector<tn_sym>& ops,
                                  std::vector<AttributeWish>* out) {
  for (size_t i = 0; i < json.keys.size(); ++i) {
    AttributeWish w;
    w.name = json.keys[i];
    w.symbol = ops_.symbol(w.name);
    bool possible = ops.empty();
    std::vector<std::string_view> known;
    for (const tn_sym s : ops) {
      const tn_op_def* def = ops_.find(s);
      if (!def) possible = true;
      for (uint32_t a = 0; def && a < def->attr_count; ++a) {
        known.push_back(sdk::view(def->attrs[a].name));
        possible = possible || known.back() == w.name;
      }
    }
    if (!possible)
      findings_.error("E205", json.items[i].key_offset, "no operator here has an attribute '" + w.name + "'",
                      did_you_mean(w.name, known));
    if (predicate(json.items[i], &w.wish)) out->push_back(std::move(w));
  }
}

bool RuleLoader::slot(const Json& json, Slot* out, Rule& rule) {
  if (json.is_number()) {
    *out = {};
    out->kind = Slot::Value;
    out->constant = true;
    out->literal = {json.number};
    return true;
  }
  if (json.is_string()) {
    std::string t = json.text;
    if (t == "_") return true;
    if (t.compare(0, 3, "...") == 0) {
      if (!is_identifier(t.substr(3))) {
        findings_.error("E202", json.offset, "'" + t + "' is no list of operands", "...name");
        return false;
      }
      out->kind = Slot::Rest;
      out->value = intern(rule.values, t.substr(3));
      rule.lists.resize(rule.values.size());
      rule.lists[out->value] = true;
      return true;
    }
    if (!t.empty() && t.back() == '?') {
      out->optional = true;
      t.pop_back();
    }
    if (!is_identifier(t)) {
      findings_.error("E202", json.offset, "'" + json.text + "' is no operand",
                      "a name, a name with '?', '_', or a number");
      return false;
    }
    out->kind = Slot::Value;
    out->value = intern(rule.values, t);
    return true;
  }
  if (json.is_object()) {
    Reader r(json, findings_);
    const Json* c = r.required("const");
    const std::string as = r.text("as");
    out->kind = Slot::Value;
    out->constant = true;
    out->rtol = r.number("rtol", -1);
    out->atol = r.number("atol", 0);
    r.finish();
    if (!c) return false;
    if (c->is_number()) {
      out->literal = {c->number};
    } else if (c->is_array()) {
      for (const auto& i : c->items)
        if (!wrong_kind(findings_, i, Json::Float, "an element of 'const'")) out->literal.push_back(i.number);
      if (c->items.empty()) findings_.error("E202", c->offset, "'const' is an empty list");
    } else if (c->kind != Json::Bool || !c->boolean) {
      findings_.error("E202", c->offset, "'const' must be a number, a list of numbers or true");
    }
    if (!as.empty()) {
      if (!is_identifier(as))
        findings_.error("E202", json.find("as")->offset, "'" + as + "' is no name");
      else
        out->value = intern(rule.values, as);
    }
    return true;
  }
  findings_.error(
      "E202", json.offset,
      std::string("an operand is a name, a number or {\"const\": ...}, found ") + kind_name(json.kind));
  return false;
}

void RuleLoader::check_arity(const Alternative& a, uint32_t offset) {
  for (const tn_sym s : a.ops) {
    const tn_op_def* def = ops_.find(s);
    if (!def || a.any_operands) continue;
    const bool rest =
        std::any_of(a.in.begin(), a.in.end(), [](const Slot& x) { return x.kind == Slot::Rest; });
    const bool variadic = def->input_count && (def->inputs[def->input_count - 1].flags & TN_PARAM_VARIADIC);
    if (a.in.size() - rest > def->input_count && !variadic)
      findings_.error("E403", offset,
                      std::string(ops_.text(s)) + " takes at most " + std::to_string(def->input_count) +
                          " operands, the pattern lists " + std::to_string(a.in.size()));
    if (rest) continue;
    size_t sure = 0;
    for (const auto& slot : a.in) sure += !slot.optional;
    if (a.in.size() < def->min_inputs && sure < def->min_inputs)
      findings_.error("E403", offset,
                      std::string(ops_.text(s)) + " has at least " + std::to_string(def->min_inputs) +
                          " operands, the pattern lists " + std::to_string(a.in.size()),
                      "'_' stands for any");
  }
}

void RuleLoader::alternative(Reader& r, Alternative* out, Rule& rule, const char* domain, bool assoc) {
  const Json* name = r.required("op");
  if (name) op_list(*name, domain, &out->ops);
  if (const Json* in = r.get("in", Json::Array)) {
    for (const auto& i : in->items) {
      Slot s;
      if (slot(i, &s, rule)) out->in.push_back(std::move(s));
    }
  } else {
    out->any_operands = true;
  }
  if (const Json* attrs = r.get("attrs", Json::Object)) attribute_wishes(*attrs, out->ops, &out->attrs);
  if (name && !assoc) check_arity(*out, name->offset);  // an assoc node lists the leaves of a tree
}

void RuleLoader::pattern_node(const std::string& name, const Json& json, Pattern& pattern, Rule& rule) {
  if (wrong_kind(findings_, json, Json::Object, "a node")) return;
  Reader r(json, findings_);
  PatternNode n;
  n.offset = json.key_offset;
  n.node = intern(rule.nodes, name);
  const std::string domain = r.text("domain");
  n.since = static_cast<int32_t>(r.integer("since", 0, 0, 100000));
  n.until = static_cast<int32_t>(r.integer("until", 0, 0, 100000));
  n.optional = r.flag("optional", false);
  n.assoc = r.flag("assoc", false);
  if (const Json* c = r.get("commute", Json::Bool)) n.commute = c->boolean;
  if (const Json* j = r.get("repeat", Json::Object)) {
    Reader rr(*j, findings_);
    const bool both = rr.required("min") && rr.required("max");
    n.repeat_min = static_cast<uint32_t>(rr.integer("min", 1, 0, max_copies));
    n.repeat_max = static_cast<uint32_t>(rr.integer("max", 1, 1, max_copies));
    rr.finish();
    n.repeat = true;
    if (both && n.repeat_min > n.repeat_max)
      findings_.error("E205", j->offset, "'min' is greater than 'max': never met");
  }
  if (const Json* out = r.get("out", Json::Array)) {
    for (const auto& o : out->items) {
      if (wrong_kind(findings_, o, Json::String, "a result")) continue;
      if (o.text == "_")
        n.out.push_back(none);
      else if (!is_identifier(o.text))
        findings_.error("E202", o.offset, "'" + o.text + "' is no name");
      else
        n.out.push_back(intern(rule.values, o.text));
    }
  } else if (!json.find("out")) {
    findings_.error("E203", json.offset, "node '" + name + "' has no 'out'");
  }
  if (const Json* list = r.get("any_of", Json::Array)) {
    for (const char* key : {"op", "in", "attrs"})
      if (const Json* j = r.get(key))
        findings_.error("E202", j->key_offset, std::string("'") + key + "' and 'any_of' exclude one another",
                        "each alternative has its own");
    for (const auto& i : list->items) {
      if (wrong_kind(findings_, i, Json::Object, "an alternative")) continue;
      Reader ar(i, findings_);
      Alternative a;
      alternative(ar, &a, rule, domain.c_str(), n.assoc);
      ar.finish();
      n.alternatives.push_back(std::move(a));
    }
    if (list->items.empty()) findings_.error("E203", list->offset, "'any_of' is empty");
  } else {
    Alternative a;
    alternative(r, &a, rule, domain.c_str(), n.assoc);
    n.alternatives.push_back(std::move(a));
  }
  r.finish();
  check_lists(name, n, json);
  pattern.nodes.push_back(std::move(n));
}

/// What a list of operands, copies in a row and a flattened tree ask of a node.
void RuleLoader::check_lists(const std::string& name, const PatternNode& n, const Json& json) {
  for (const auto& a : n.alternatives) {
    size_t rests = 0, links = 0;
    for (const auto& s : a.in) {
      rests += s.kind == Slot::Rest;
      links += s.kind == Slot::Value && s.value != none && !s.constant;
    }
    if (rests > 1 && !n.repeat)
      findings_.error("E213", json.offset,
                      "node '" + name + "' has " + std::to_string(rests) + " lists of operands",
                      "one \"...name\" takes all that are left");
    if (n.assoc && (a.in.size() < 2 || a.in.size() > 6))
      findings_.error("E214", json.offset,
                      "an 'assoc' node lists 2 to 6 operands, found " + std::to_string(a.in.size()));
    if (n.repeat && n.assoc)
      findings_.error("E214", json.offset, "'assoc' and 'repeat' exclude one another",
                      "a list of operands, \"...name\", flattens a tree of any size");
    if (n.repeat && (!links || n.out.empty() || n.out[0] == none))
      findings_.error("E214", json.offset,
                      "copies of node '" + name +
                          "' are linked from its first result to its first named operand; it "
                          "needs both");
  }
}

void RuleLoader::value_wish(const std::string& name, const Json& json, Pattern& pattern, Rule& rule) {
  if (wrong_kind(findings_, json, Json::Object, "a value")) return;
  Reader r(json, findings_);
  ValueWish w;
  w.value = lookup(rule.values, name);
  if (w.value == none) {
    std::vector<std::string_view> known(rule.values.begin(), rule.values.end());
    findings_.error("E206", json.key_offset, "no node reads or yields a value '" + name + "'",
                    did_you_mean(name, known));
  }
  w.constant = r.flag("const", false);
  if (const Json* j = r.get("dtype")) {
    predicate(*j, &w.dtype);
    for (const auto& s : w.dtype.one_of)
      if (!s.is_text || sdk::dtype_from_name(s.text) == TN_DTYPE_NONE) {
        std::vector<std::string_view> known;
        for (const auto& d : sdk::dtype_names) known.emplace_back(d.name);
        findings_.error("E205", j->offset, "'" + s.text + "' is no element type",
                        did_you_mean(s.text, known));
      }
  }
  if (const Json* j = r.get("rank")) predicate(*j, &w.rank);
  if (const Json* j = r.get("shape", Json::Array)) {
    w.shape.emplace();
    size_t rests = 0;
    for (const auto& d : j->items) {
      DimWish dim;
      if (d.whole() && d.integer >= 0) {
        dim.number = d.integer;
      } else if (d.is_string() && d.text == "...") {
        dim.kind = DimWish::Rest;
        ++rests;
      } else if (d.is_string() && is_identifier(d.text)) {
        dim.kind = DimWish::Symbol;
        dim.symbol = intern(rule.symbols, d.text);
      } else {
        findings_.error("E202", d.offset, "a dimension is a number >= 0, a symbol or \"...\"");
      }
      w.shape->push_back(dim);
    }
    if (rests > 1) findings_.error("E202", j->offset, "\"...\" may stand once in a shape");
  }
  w.escape = static_cast<Escape>(r.choice("escape", {"forbid", "keep", "expose"}, 0));
  w.forbid_shared = r.choice("shared", {"copy", "forbid"}, 0) == 1;
  r.finish();
  pattern.values.push_back(std::move(w));
}

void RuleLoader::pattern(const Json& json, Rule& rule) {
  if (json.is_array()) {
    findings_.error(
        "E202", json.offset, "a chain has no names for 'replace' to use",
        "give 'nodes' and 'outputs', or write the articles' form: fusion_type, pattern, fused_op");
    return;
  }
  if (wrong_kind(findings_, json, Json::Object, "a pattern")) return;
  Reader r(json, findings_);
  Pattern p;
  p.offset = json.offset;
  p.id = r.text("id");
  const Json* nodes = r.required("nodes");
  if (nodes && !wrong_kind(findings_, *nodes, Json::Object, "'nodes'")) {
    if (nodes->items.empty() || nodes->items.size() > 64)
      findings_.error("E202", nodes->offset,
                      "a pattern has 1 to 64 nodes, found " + std::to_string(nodes->items.size()));
    for (size_t i = 0; i < nodes->items.size() && i < 64; ++i) {
      if (!is_identifier(nodes->keys[i]))
        findings_.error("E202", nodes->items[i].key_offset, "'" + nodes->keys[i] + "' is no name");
      pattern_node(nodes->keys[i], nodes->items[i], p, rule);
    }
  }
  if (const Json* values = r.get("values", Json::Object))
    for (size_t i = 0; i < values->items.size(); ++i) value_wish(values->keys[i], values->items[i], p, rule);
  if (const Json* outputs = r.required("outputs");
      outputs && !wrong_kind(findings_, *outputs, Json::Array, "'outputs'")) {
    if (outputs->items.empty()) findings_.error("E203", outputs->offset, "'outputs' is empty");
    for (const auto& o : outputs->items) {
      if (wrong_kind(findings_, o, Json::String, "an output")) continue;
      const uint32_t v = lookup(rule.values, o.text);
      bool produced = false;
      for (const auto& n : p.nodes)
        for (const uint32_t x : n.out) produced = produced || (x == v && v != none);
      if (!produced) {
        std::vector<std::string_view> known(rule.values.begin(), rule.values.end());
        findings_.error("E207", o.offset, "output '" + o.text + "' is not the result of a node",
                        did_you_mean(o.text, known));
      } else {
        p.outputs.push_back(v);
      }
    }
  }
  r.finish();
  // A list is a list wherever it is named.
  for (const auto& n : p.nodes) {
    for (const auto& a : n.alternatives)
      for (const auto& s : a.in)
        if (s.kind == Slot::Value && rule.is_list(s.value))
          findings_.error("E213", n.offset,
                          "'" + rule.values[s.value] + "' is one operand here and a list elsewhere",
                          "write \"..." + rule.values[s.value] + "\" or give it another name");
    for (const uint32_t o : n.out)
      if (rule.is_list(o))
        findings_.error("E213", n.offset,
                        "'" + rule.values[o] + "' is a list of operands and a result of a node",
                        "only values from outside the match can be a list");
  }
  for (const auto& n : p.nodes)
    if (n.node != none && lookup(rule.values, rule.nodes[n.node]) != none)
      findings_.error("E216", n.offset, "'" + rule.nodes[n.node] + "' names a node and a value",
                      "expressions could not tell them apart; rename one");
  rule.patterns.push_back(std::move(p));
}

}  // namespace tenon::rules
