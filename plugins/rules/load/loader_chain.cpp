// The articles' form and bare chains, desugared to the core.
#include "load/loader.hpp"

namespace tenon::rules {
namespace {

constexpr uint32_t open_end = 8;  // what '*' and '+' repeat to at most

}  // namespace

std::string snake_case(std::string_view op) {
  const auto colon = op.rfind("::");
  if (colon != std::string_view::npos) op = op.substr(colon + 2);
  std::string r;
  for (size_t i = 0; i < op.size(); ++i) {
    if (std::isupper(static_cast<unsigned char>(op[i])) && i &&
        !std::isupper(static_cast<unsigned char>(op[i - 1])))
      r += '_';
    r += static_cast<char>(std::tolower(static_cast<unsigned char>(op[i])));
  }
  return r;
}

/// "Relu|Sigmoid?", "Add*", "Mul{0,3}", or a node object without 'in' and 'out'.
bool RuleLoader::chain_item(const Json& json, size_t index, PatternNode* node, Rule& rule,
                            std::string* words) {
  node->offset = json.offset;
  node->node = intern(rule.nodes, "n" + std::to_string(index));
  Alternative a;
  a.any_operands = true;
  if (json.is_object()) {
    Reader r(json, findings_);
    const std::string domain = r.text("domain");
    if (const Json* j = r.required("op")) {
      op_list(*j, domain, &a.ops);
      *words = j->is_string() ? j->text : "";
    }
    if (const Json* attrs = r.get("attrs", Json::Object)) attribute_wishes(*attrs, a.ops, &a.attrs);
    node->optional = r.flag("optional", false);
    r.finish();
    node->alternatives.push_back(std::move(a));
    return true;
  }
  if (wrong_kind(findings_, json, Json::String, "an item of a chain")) return false;
  std::string t = json.text;
  *words = t;
  if (!t.empty() && t.back() == '?') {
    node->repeat_min = 0;
    t.pop_back();
  } else if (!t.empty() && (t.back() == '*' || t.back() == '+')) {
    node->repeat_min = t.back() == '+';
    node->repeat_max = open_end;
    t.pop_back();
  } else if (!t.empty() && t.back() == '}') {
    const auto open = t.find('{');
    unsigned lo = 0, hi = 0;
    char end = 0;
    if (open == std::string::npos || std::sscanf(t.c_str() + open, "{%u,%u}%c", &lo, &hi, &end) != 2 ||
        lo > hi || hi < 1 || hi > 64) {
      findings_.error("E205", json.offset,
                      "'" + t + "': expected {min,max} with 0 <= min <= max <= 64, max >= 1");
      return false;
    }
    node->repeat_min = lo;
    node->repeat_max = hi;
    t.erase(open);
  }
  size_t from = 0;
  while (from <= t.size()) {
    size_t to = t.find('|', from);
    if (to == std::string::npos) to = t.size();
    const std::string name = t.substr(from, to - from);
    bool ok = !name.empty();
    for (const char c : name)
      ok = ok && (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == ':');
    if (!ok) {
      findings_.error("E202", json.offset, "'" + json.text + "' is no item of a chain",
                      "Relu|Sigmoid, Relu?, Add*, Mul{0,3}");
      return false;
    }
    a.ops.push_back(op(name, "", source_.inside(json, from), false));
    from = to + 1;
  }
  node->alternatives.push_back(std::move(a));
  return true;
}

void RuleLoader::chain(const Json& json, Rule& rule) {
  Pattern p;
  p.offset = json.offset;
  if (json.items.empty() || json.items.size() > 64)
    findings_.error("E202", json.offset,
                    "a chain has 1 to 64 items, found " + std::to_string(json.items.size()));
  uint32_t fed = none;
  std::string spelled;
  for (size_t i = 0; i < json.items.size() && i < 64; ++i) {
    PatternNode n;
    std::string words;
    if (!chain_item(json.items[i], i, &n, rule, &words)) continue;
    spelled += (i ? "+" : "") + words;
    n.chain = fed;
    fed = intern(rule.values, "c" + std::to_string(i));
    n.out = {fed};
    p.nodes.push_back(std::move(n));
  }
  if (fed == none) return;
  p.outputs = {fed};
  rule.replace.chain = true;
  rule.replace.body = Replacement::Origin;
  rule.patterns.push_back(std::move(p));
  for (char& c : spelled) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  rule.names_chain = spelled;
}

void RuleLoader::chain_constraints(const Json& json, Pattern& p, Rule& rule) {
  (void)rule;
  for (const auto& item : json.items) {
    if (wrong_kind(findings_, item, Json::Object, "a constraint")) continue;
    for (size_t i = 0; i < item.keys.size(); ++i) {
      const std::string& key = item.keys[i];
      const uint32_t at = item.items[i].key_offset;
      ChainWish w;
      w.key = key;
      w.symbol = ops_.symbol(key);
      if (!predicate(item.items[i], &w.wish)) continue;
      if (key == "input_dtype" || key == "weight_dtype" || key == "output_dtype") {
        w.kind = key == "input_dtype"    ? ChainWish::InputDtype
                 : key == "weight_dtype" ? ChainWish::WeightDtype
                                         : ChainWish::OutputDtype;
        for (const auto& s : w.wish.one_of)
          if (!s.is_text || sdk::dtype_from_name(s.text) == TN_DTYPE_NONE) {
            std::vector<std::string_view> known;
            for (const auto& d : sdk::dtype_names) known.emplace_back(d.name);
            findings_.error("E205", item.items[i].offset, "'" + s.text + "' is no element type",
                            did_you_mean(s.text, known));
          }
      } else if (key == "input_format") {
        // Tenon's graphs are in the layout of ONNX until the layout step; no other format can be met.
        for (const auto& s : w.wish.one_of)
          if (s.text != "NCHW" && s.text != "ND" && s.text != "NCL" && s.text != "NCDHW")
            findings_.error("E205", item.items[i].offset,
                            "input_format '" + s.text + "' is never met: graphs are in NCHW when rules run",
                            "leave the constraint out");
        continue;
      } else if (key == "rank") {
        w.kind = ChainWish::Rank;
      } else {
        bool possible = false, open = false;
        std::vector<std::string_view> known;
        for (const auto& n : p.nodes)
          for (const tn_sym s : n.alternatives[0].ops) {
            const tn_op_def* def = ops_.find(s);
            open = open || !def;
            for (uint32_t a = 0; def && a < def->attr_count; ++a) {
              known.push_back(sdk::view(def->attrs[a].name));
              possible = possible || known.back() == key;
            }
          }
        const bool type = key.size() > 5 && key.compare(key.size() - 5, 5, "_type") == 0;
        w.kind = type ? ChainWish::Type : ChainWish::Attribute;
        if (!possible && !open && !type)
          findings_.error("E205", at, "no operator of the chain has an attribute '" + key + "'",
                          did_you_mean(key, known));
        if (type && !possible && !open) {
          // It speaks of the last operator then, whose names are known.
          bool met = false;
          std::vector<std::string> names;
          for (const tn_sym s : p.nodes.back().alternatives[0].ops) names.push_back(snake_case(ops_.text(s)));
          for (const auto& n : names) met = met || w.wish.text(n);
          std::vector<std::string_view> views(names.begin(), names.end());
          if (!met)
            findings_.error("E205", item.items[i].offset,
                            "'" + key + "' is never met: the last operator of the chain is " + names[0],
                            did_you_mean(w.wish.one_of.empty() ? "" : w.wish.one_of[0].text, views));
        }
      }
      p.chain_wishes.push_back(std::move(w));
    }
  }
}

std::unique_ptr<Rule> RuleLoader::article(const Json& json) {
  auto rule = begin(json);
  Reader r(json, findings_);
  r.text("$schema");
  rule->name = r.text("fusion_type");
  if (!is_identifier(rule->name))
    findings_.error("E202", json.find("fusion_type")->offset,
                    "'fusion_type' must be a name, found '" + rule->name + "'");
  if (const Json* p = r.required("pattern"); p && !wrong_kind(findings_, *p, Json::Array, "'pattern'"))
    chain(*p, *rule);
  const Json* fused = r.required("fused_op");
  if (fused && !wrong_kind(findings_, *fused, Json::String, "'fused_op'")) {
    NewNode n;
    n.name = "fused";
    n.op = op(fused->text, "", fused->offset, true);
    n.offset = fused->offset;
    rule->replace.nodes.push_back(std::move(n));
  }
  if (const Json* c = r.get("constraints", Json::Array))
    if (!rule->patterns.empty()) chain_constraints(*c, rule->patterns[0], *rule);
  rule->enabled = r.flag("enabled", true);
  rule->priority = static_cast<int32_t>(r.integer("priority", rule->priority, 0, 99999));
  rule->switch_name = r.text("switch", "GraphFusion." + rule->name);
  if (const Json* v = r.get("verify")) verify(*v, *rule);
  r.finish();
  rule->names_chain.clear();
  return rule;
}

std::unique_ptr<Rule> RuleLoader::bare_chain(const Json& json) {
  auto rule = begin(json);
  chain(json, *rule);
  if (rule->patterns.empty()) return rule;
  std::string name;
  for (const char c : rule->names_chain) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  rule->name = "group_" + name;
  rule->switch_name = "GraphFusion." + rule->name;
  NewNode n;
  n.name = "fused";
  n.op = ops_.symbol("group::" + name);
  n.offset = json.offset;
  rule->replace.nodes.push_back(std::move(n));
  return rule;
}

}  // namespace tenon::rules
