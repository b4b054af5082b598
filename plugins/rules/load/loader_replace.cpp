// Form v1: what a match is replaced by, and the body that the new node keeps.
#include <algorithm>

#include "load/loader.hpp"

namespace tenon::rules {

namespace {
/// Made inside every match of some pattern, and gone afterwards.
bool inner(const Rule& rule, uint32_t value) {
  for (const auto& p : rule.patterns) {
    bool kept = false, made = false;
    for (const auto& w : p.values) kept = kept || (w.value == value && w.escape == Escape::Keep);
    for (const auto& n : p.nodes)
      for (const uint32_t o : n.out) made = made || (o == value && !n.optional && n.repeat_min > 0);
    if (made && !kept) return true;
  }
  return false;
}
}  // namespace

void RuleLoader::new_node(const std::string& name, const Json& json, Rule& rule, std::vector<NewNode>* out,
                          bool body) {
  if (wrong_kind(findings_, json, Json::Object, "a node")) return;
  Reader r(json, findings_);
  NewNode n;
  n.name = name;
  n.offset = json.key_offset;
  const std::string domain = r.text("domain");
  if (const Json* o = r.required("op"); o && !wrong_kind(findings_, *o, Json::String, "'op'")) {
    if (o->text.compare(0, 1, "$") == 0) {
      n.op_of = lookup(rule.nodes, std::string_view(o->text).substr(1));
      if (n.op_of == none)
        findings_.error("E206", o->offset, "no node '" + o->text.substr(1) + "' in the pattern",
                        did_you_mean(o->text.substr(1), {rule.nodes.begin(), rule.nodes.end()}));
    } else {
      n.op = op(o->text, domain, o->offset, true);
    }
  }
  const auto known = [&] {
    std::vector<std::string_view> k(rule.values.begin(), rule.values.end());
    k.insert(k.end(), rule.replace.made.begin(), rule.replace.made.end());
    for (const auto& l : rule.lets) k.push_back(l.name);
    return k;
  };
  if (const Json* in = r.required("in"); in && !wrong_kind(findings_, *in, Json::Array, "'in'")) {
    for (const auto& i : in->items) {
      if (wrong_kind(findings_, i, Json::String, "an operand")) continue;
      std::string t = i.text;
      NewOperand o;
      if (t.compare(0, 3, "...") == 0) {
        o.list = o.optional = true;
        t.erase(0, 3);
      } else if (!t.empty() && t.back() == '?') {
        o.optional = true;
        t.pop_back();
      }
      const size_t skipped = o.list ? 3 : 0;
      size_t from = 0;
      while (from <= t.size()) {
        size_t to = t.find('|', from);
        if (to == std::string::npos) to = t.size();
        const std::string_view word = std::string_view(t).substr(from, to - from);
        NameRef ref;
        bool found = true;
        // Names that the replacement itself made come first in a body: it may use a pattern's name for its
        // own value.
        if (uint32_t made = lookup(rule.replace.made, word); made != none) {
          ref = {NameRef::Made, made};
        } else if (uint32_t v = lookup(rule.values, word); v != none) {
          ref = {NameRef::Value, v};
        } else {
          found = false;
          for (size_t l = 0; l < rule.lets.size(); ++l)
            if (rule.lets[l].name == word) {
              ref = {NameRef::Let, static_cast<uint32_t>(l)};
              found = true;
            }
        }
        const bool list = found && ref.kind == NameRef::Value && rule.is_list(ref.index);
        if (found && list != o.list)
          findings_.error(
              "E213", source_.inside(i, from + skipped),
              "'" + std::string(word) + (list ? "' is a list of operands" : "' is no list of operands"),
              list ? "write \"..." + std::string(word) + "\"" : "leave the dots out");
        if (!found)
          findings_.error("E206", source_.inside(i, from + skipped),
                          "unbound name '" + std::string(word) + "'", did_you_mean(word, known()));
        else
          o.choices.push_back(ref);
        from = to + 1;
      }
      n.in.push_back(std::move(o));
    }
  }
  if (const Json* outs = r.required("out"); outs && !wrong_kind(findings_, *outs, Json::Array, "'out'")) {
    for (const auto& o : outs->items) {
      if (wrong_kind(findings_, o, Json::String, "a result")) continue;
      std::string t = o.text;
      NewResult x;
      if (!t.empty() && t.back() == '?') {
        x.optional = true;
        t.pop_back();
      }
      const uint32_t v = lookup(rule.values, t);
      bool yielded = false;  // by the pattern: then the replacement takes its place
      for (const auto& p : rule.patterns)
        for (const auto& node : p.nodes)
          for (const uint32_t y : node.out) yielded = yielded || (v != none && y == v);
      if (t == "_") {
      } else if (!is_identifier(t)) {
        findings_.error("E202", o.offset, "'" + o.text + "' is no name");
      } else if (!body && yielded) {
        x.value = v;
      } else {
        x.made = intern(rule.replace.made, t);
      }
      n.out.push_back(x);
    }
  }
  for (const auto& c : r.texts("copy_attrs")) {
    const uint32_t node = lookup(rule.nodes, c);
    if (node == none)
      findings_.error("E206", json.find("copy_attrs")->offset, "no node '" + c + "' in the pattern",
                      did_you_mean(c, {rule.nodes.begin(), rule.nodes.end()}));
    else
      n.copy_attrs.push_back(node);
  }
  if (const Json* attrs = r.get("attrs", Json::Object))
    for (size_t i = 0; i < attrs->items.size(); ++i) {
      NewAttribute a;
      a.name = attrs->keys[i];
      const Json& j = attrs->items[i];
      if (j.is_string())
        expression(j, rule, &a.expr);
      else if (j.is_object() || j.kind == Json::Null)
        findings_.error(
            "E202", j.offset,
            std::string("an attribute is an expression, a number or a list, found ") + kind_name(j.kind),
            "text is an expression too: \"'none'\"");
      else
        a.literal = &j;
      if (const tn_op_def* def = n.op_of == none ? ops_.find(n.op) : nullptr) {
        bool has = false;
        std::vector<std::string_view> names;
        for (uint32_t k = 0; k < def->attr_count; ++k) {
          names.push_back(sdk::view(def->attrs[k].name));
          has = has || names.back() == a.name;
        }
        if (!has)
          findings_.error("E205", j.key_offset,
                          "operator " + std::string(ops_.text(n.op)) + " has no attribute '" + a.name + "'",
                          did_you_mean(a.name, names));
      }
      n.attrs.push_back(std::move(a));
    }
  if (body && r.get("absent") && r.choice("absent", {"alias"}, 0) == 0) {
    n.alias_when_absent = n.op_of;
    if (n.op_of == none)
      findings_.error("E214", json.find("absent")->offset,
                      "\"absent\": \"alias\" belongs to a node whose op is \"$NODE\"");
  }
  if (const tn_op_def* def = n.op_of == none ? ops_.find(n.op) : nullptr) {
    const bool variadic = def->input_count && (def->inputs[def->input_count - 1].flags & TN_PARAM_VARIADIC);
    const size_t lists = static_cast<size_t>(
        std::count_if(n.in.begin(), n.in.end(), [](const NewOperand& o) { return o.list; }));
    if ((n.in.size() - lists > def->input_count && !variadic) || (!lists && n.in.size() < def->min_inputs))
      findings_.error("E403", json.offset,
                      std::string(ops_.text(n.op)) + " takes " + std::to_string(def->min_inputs) + " to " +
                          std::to_string(def->input_count) + " operands, found " +
                          std::to_string(n.in.size()));
    if (n.out.size() > def->output_count &&
        !(def->output_count && (def->outputs[def->output_count - 1].flags & TN_PARAM_VARIADIC)))
      findings_.error("E403", json.offset,
                      std::string(ops_.text(n.op)) + " has at most " + std::to_string(def->output_count) +
                          " results, found " + std::to_string(n.out.size()));
  }
  r.finish();
  out->push_back(std::move(n));
}

void RuleLoader::new_nodes(const Json& json, Rule& rule, std::vector<NewNode>* out, bool body) {
  if (json.items.empty()) findings_.error("E203", json.offset, "no node");
  if (json.items.size() > 64)
    findings_.error("E202", json.offset, "at most 64 nodes, found " + std::to_string(json.items.size()));
  for (size_t i = 0; i < json.items.size() && i < 64; ++i)
    new_node(json.keys[i], json.items[i], rule, out, body);
}

void RuleLoader::replacement(const Json& json, Rule& rule) {
  Reader r(json, findings_);
  Replacement& p = rule.replace;
  if (const Json* nodes = r.required("nodes");
      nodes && !wrong_kind(findings_, *nodes, Json::Object, "'nodes'"))
    new_nodes(*nodes, rule, &p.nodes, false);
  p.needs_kernel = r.texts("needs_kernel");
  const Json* body = r.get("body");
  if (body && body->is_string() && body->text == "origin")
    p.body = Replacement::Origin;
  else if (body && body->is_object())
    p.body = Replacement::Explicit;
  else if (body)
    findings_.error("E202", body->offset, "'body' is \"origin\" or an object of nodes");
  r.finish();
  for (const auto& n : p.nodes)
    if (!body && n.op_of == none && !n.out.empty() && !ops_.find(n.op))
      findings_.warn("E401", n.offset,
                     "no plugin defines operator '" + std::string(ops_.text(n.op)) +
                         "', and without a body it cannot run; the rule waits for a plugin that does",
                     "\"body\": \"origin\" keeps the matched nodes");
  // Every output of each pattern needs a producer.
  for (const auto& pattern : rule.patterns)
    for (const uint32_t v : pattern.outputs) {
      bool made = false;
      for (const auto& n : p.nodes)
        for (const auto& o : n.out) made = made || o.value == v;
      if (!made)
        findings_.error("E207", json.offset, "no node of 'replace' yields output '" + rule.values[v] + "'");
    }
  for (const auto& pattern : rule.patterns)
    for (const auto& w : pattern.values) {
      if (w.escape != Escape::Expose || w.value == none) continue;
      bool made = false;
      for (const auto& n : p.nodes)
        for (const auto& o : n.out) made = made || o.value == w.value;
      if (!made)
        findings_.error("E207", json.offset,
                        "'" + rule.values[w.value] + "' is exposed, but no node of 'replace' yields it");
    }
  // Uses of made names come after their makers.
  std::vector<bool> there(p.made.size()), yielded(rule.values.size());
  for (const auto& n : p.nodes) {
    for (const auto& o : n.in) {
      for (const auto& c : o.choices)
        if (c.kind == NameRef::Made && !there[c.index])
          findings_.error("E206", n.offset, "'" + p.made[c.index] + "' is used before it is made",
                          "order the nodes");
      if (o.choices.size() == 1 && o.choices[0].kind == NameRef::Value && !o.list &&
          !yielded[o.choices[0].index] && inner(rule, o.choices[0].index))
        findings_.error("E215", n.offset,
                        "node '" + n.name + "' reads '" + rule.values[o.choices[0].index] +
                            "', which the rule takes away",
                        "let an earlier node of 'replace' yield it, or say \"escape\": \"keep\"");
    }
    for (const auto& o : n.out) {
      if (o.made != none) there[o.made] = true;
      if (o.value != none) yielded[o.value] = true;
    }
  }
  if (body && p.body != Replacement::NoBody) check_body(*body, rule);
}

/// A body reads the new node's operands, and constants that the pattern matched; nothing else exists where it
/// runs.
void RuleLoader::check_body(const Json& json, Rule& rule) {
  Replacement& p = rule.replace;
  if (p.nodes.size() != 1) {
    findings_.error("E211", json.offset,
                    "a body belongs to a replacement of one node, found " + std::to_string(p.nodes.size()));
    return;
  }
  std::vector<bool> operand(rule.values.size()), let_operand(rule.lets.size());
  for (const auto& o : p.nodes[0].in)
    for (const auto& c : o.choices) {
      if (c.kind == NameRef::Value) operand[c.index] = true;
      if (c.kind == NameRef::Let) let_operand[c.index] = true;
    }
  const auto constant = [&](const Pattern& pattern, uint32_t v) {
    for (const auto& w : pattern.values)
      if (w.value == v && w.constant) return true;
    for (const auto& n : pattern.nodes)
      for (const auto& a : n.alternatives)
        for (const auto& s : a.in)
          if (s.value == v && s.constant) return true;
    return false;
  };
  if (p.body == Replacement::Origin) {
    for (auto& pattern : rule.patterns) {
      std::vector<bool> produced(rule.values.size());
      for (const auto& n : pattern.nodes)
        for (const uint32_t v : n.out)
          if (v != none) produced[v] = true;
      // What may be missing and is no operand, axes say, can only be kept as a constant: then it must be one.
      for (auto& n : pattern.nodes)
        for (auto& a : n.alternatives)
          for (auto& s : a.in)
            if (s.value != none && s.optional && !produced[s.value] && !operand[s.value] &&
                !constant(pattern, s.value))
              s.constant = true;
      for (const auto& n : pattern.nodes)
        for (const auto& a : n.alternatives)
          for (const auto& s : a.in)
            if (s.value != none && !produced[s.value] && !operand[s.value] && !s.constant &&
                !constant(pattern, s.value))
              findings_.error("E211", json.offset,
                              "body \"origin\" reads '" + rule.values[s.value] +
                                  "', which is neither an operand of the replacement nor a matched constant",
                              "make it an operand, ask for a constant, or give an explicit body");
    }
    return;
  }
  if (p.body != Replacement::Explicit) return;
  new_nodes(json, rule, &p.body_nodes, true);
  std::vector<bool> there(p.made.size());
  std::vector<std::string_view> yielded;
  for (const auto& n : p.body_nodes) {
    for (const auto& o : n.in)
      for (const auto& c : o.choices) {
        bool ok = false;
        if (c.kind == NameRef::Made)
          ok = there[c.index];
        else if (c.kind == NameRef::Let)
          ok = let_operand[c.index];
        else {
          ok = operand[c.index];
          for (const auto& pattern : rule.patterns) ok = ok || constant(pattern, c.index);
        }
        if (!ok) {
          const std::string name = c.kind == NameRef::Made  ? p.made[c.index]
                                   : c.kind == NameRef::Let ? rule.lets[c.index].name
                                                            : rule.values[c.index];
          findings_.error("E211", n.offset,
                          "the body reads '" + name +
                              "', which is neither an operand of the replacement, nor a matched constant, "
                              "nor made before",
                          {});
        }
      }
    for (const auto& o : n.out)
      if (o.made != none) {
        there[o.made] = true;
        yielded.push_back(p.made[o.made]);
      }
  }
  for (const auto& o : p.nodes[0].out) {
    if (o.value == none || o.optional) continue;
    bool found = false;
    for (const auto y : yielded) found = found || y == rule.values[o.value];
    if (!found)
      findings_.error("E207", json.offset, "the body does not yield '" + rule.values[o.value] + "'");
  }
}

}  // namespace tenon::rules
