// Form v1: a rule's own fields, guards, computed constants, cost, verify.
#include <algorithm>

#include "load/loader.hpp"

namespace tenon::rules {
namespace {

/// The names that expressions of a rule may use. A let sees those before it.
class RuleNames : public gx::Names {
 public:
  explicit RuleNames(const Rule& rule) : rule_(rule) {}
  gx::Ref find(std::string_view name) const override {
    for (size_t i = 0; i < rule_.lets.size(); ++i)
      if (rule_.lets[i].name == name) return {gx::Ref::Let, static_cast<uint32_t>(i)};
    for (size_t i = 0; i < rule_.values.size(); ++i)
      if (rule_.values[i] == name) return {gx::Ref::Value, static_cast<uint32_t>(i)};
    for (size_t i = 0; i < rule_.nodes.size(); ++i)
      if (rule_.nodes[i] == name) return {gx::Ref::Node, static_cast<uint32_t>(i)};
    return {};
  }
  std::vector<std::string_view> all() const override {
    std::vector<std::string_view> r(rule_.values.begin(), rule_.values.end());
    r.insert(r.end(), rule_.nodes.begin(), rule_.nodes.end());
    for (const auto& l : rule_.lets) r.push_back(l.name);
    return r;
  }

 private:
  const Rule& rule_;
};

}  // namespace

bool RuleLoader::expression(const Json& json, Rule& rule, Expression* out) {
  if (wrong_kind(findings_, json, Json::String, "an expression")) return false;
  out->offset = json.offset;
  std::vector<gx::Error> errors;
  if (gx::parse(json.text, &out->program, &errors)) gx::resolve(&out->program, RuleNames(rule), &errors);
  for (auto& e : errors) findings_.error(e.code, source_.inside(json, e.column), e.message, e.hint);
  return errors.empty();
}

void RuleLoader::guards(const Json& json, Rule& rule) {
  for (const auto& i : json.items) {
    Guard g;
    if (i.is_object()) {
      Reader r(i, findings_);
      const Json* e = r.required("expr");
      g.why = r.text("why");
      g.accept_unknown = r.choice("unknown", {"reject", "accept"}, 0) == 1;
      r.finish();
      if (!e || !expression(*e, rule, &g.expr)) continue;
    } else if (!expression(i, rule, &g.expr)) {
      continue;
    }
    rule.where.push_back(std::move(g));
  }
}

void RuleLoader::lets(const Json& json, Rule& rule) {
  for (size_t i = 0; i < json.items.size(); ++i) {
    const Json& j = json.items[i];
    Let l;
    l.name = json.keys[i];
    if (!is_identifier(l.name)) findings_.error("E202", j.key_offset, "'" + l.name + "' is no name");
    if (lookup(rule.values, l.name) != none || lookup(rule.nodes, l.name) != none)
      findings_.error("E216", j.key_offset, "'" + l.name + "' is a name of the pattern already",
                      "choose another");
    if (j.is_object()) {
      transform(j, rule, &l);
    } else if (expression(j, rule, &l.expr)) {
      l.source = l.expr.program.source;
    }
    rule.lets.push_back(std::move(l));
  }
}

/// {"transform": "acme.pack@1", "args": {"q": "Wq"}}
void RuleLoader::transform(const Json& json, Rule& rule, Let* let) {
  Reader r(json, findings_);
  const Json* named = r.required("transform");
  const Json* args = r.get("args", Json::Object);
  r.finish();
  if (!named || wrong_kind(findings_, *named, Json::String, "'transform'")) return;
  const std::string& text = named->text;
  let->source = text;
  const auto at = text.rfind('@');
  const std::string name = text.substr(0, at);
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.';
  });
  const std::string version = at == std::string::npos ? std::string() : text.substr(at + 1);
  if (!plain || version.empty() || version.size() > 9 ||
      !std::all_of(version.begin(), version.end(), [](unsigned char c) { return std::isdigit(c); })) {
    findings_.error("E202", named->offset, "'" + text + "' names no transform", "\"plugin.name@version\"");
    return;
  }
  const uint32_t wanted = static_cast<uint32_t>(std::stoul(version));
  std::vector<std::string> other_names;
  std::string versions;
  const auto known = ops_.transforms();
  for (const auto& t : known) {
    const std::string found = sdk::text(t.record->name);
    other_names.push_back(found);
    if (found != name) continue;
    if (t.record->version == wanted && !let->transform.record) let->transform = t;
    versions += (versions.empty() ? "" : ", ") + std::to_string(t.record->version);
  }
  if (!let->transform.record) {
    if (versions.empty())
      findings_.error("E404", named->offset, "no loaded plugin exports the transform '" + name + "'",
                      known.empty() ? "name its plugin in the manifest, or with --plugin"
                                    : did_you_mean(name, {other_names.begin(), other_names.end()}));
    else
      findings_.error("E404", named->offset,
                      "transform '" + name + "' has no version " + version + "; there is " + versions);
    return;
  }
  const tn_transform& t = *let->transform.record;
  let->args.resize(t.parameter_count);
  std::vector<std::string_view> parameters;
  for (uint32_t i = 0; i < t.parameter_count; ++i) parameters.push_back(sdk::view(t.parameters[i]));
  for (size_t i = 0; args && i < args->items.size(); ++i) {
    const auto p = std::find(parameters.begin(), parameters.end(), args->keys[i]);
    if (p == parameters.end())
      findings_.error("E405", args->items[i].key_offset,
                      "transform '" + text + "' has no parameter '" + args->keys[i] + "'",
                      did_you_mean(args->keys[i], parameters));
    else
      expression(args->items[i], rule, &let->args[static_cast<size_t>(p - parameters.begin())]);
  }
  std::string missing;
  for (uint32_t i = 0; i < t.parameter_count; ++i)
    if (let->args[i].program.empty() && (!args || !args->find(parameters[i])))
      missing += (missing.empty() ? "'" : "', '") + std::string(parameters[i]);
  if (!missing.empty())
    findings_.error("E405", json.offset, "transform '" + text + "' is not given " + missing + "'",
                    "\"none\" leaves an argument out");
}

void RuleLoader::cost(const Json& json, Rule& rule) {
  Reader r(json, findings_);
  if (const Json* g = r.get("gain")) expression(*g, rule, &rule.gain);
  rule.min_gain = r.number("min_gain", 0);
  rule.max_const_growth = r.number("max_const_growth", 1.1);
  rule.measure = static_cast<Rule::Measure>(r.choice("measure", {"off", "auto", "always"}, 0));
  r.finish();
  if (rule.max_const_growth < 0)
    findings_.error("E202", json.offset, "'max_const_growth' must not be negative");
}

void RuleLoader::verify(const Json& json, Rule& rule) {
  if (wrong_kind(findings_, json, Json::Object, "'verify'")) return;
  Reader r(json, findings_);
  Verify& v = rule.verify;
  v.given = true;
  v.trials = r.integer("trials", 3, 1, 1000);
  v.seed = r.integer("seed", 1, 0, INT64_MAX);
  if (const Json* in = r.get("inputs", Json::Object))
    for (size_t i = 0; i < in->items.size(); ++i) {
      const Json& d = in->items[i];
      if (wrong_kind(findings_, d, Json::String, "a distribution")) continue;
      const auto open = d.text.find('(');
      const std::string name = d.text.substr(0, open);
      if (open == std::string::npos || d.text.back() != ')' ||
          (name != "normal" && name != "uniform" && name != "choice"))
        findings_.error("E202", d.offset, "'" + d.text + "' is no distribution",
                        "normal(mean,deviation), uniform(low,high) or choice(a,b,...)");
      if (in->keys[i] != "*" && lookup(rule.values, in->keys[i]) == none)
        findings_.error("E206", d.key_offset, "no value '" + in->keys[i] + "' in the pattern");
      v.inputs.emplace_back(in->keys[i], d.text);
    }
  const auto cases = [&](const char* key, std::vector<VerifyCase>* out, bool negative) {
    const Json* list = r.get(key, Json::Array);
    if (!list) return;
    for (const auto& i : list->items) {
      if (wrong_kind(findings_, i, Json::Object, "a case")) continue;
      VerifyCase c;
      c.json = &i;
      for (size_t k = 0; k < i.keys.size(); ++k) {
        const std::string& name = i.keys[k];
        const Json& item = i.items[k];
        const auto dot = name.find('.');
        if (name == "why") {
          if (!wrong_kind(findings_, item, Json::String, "'why'")) c.why = item.text;
        } else if (name == "absent" || name == "graph_output" || name == "extra_user" ||
                   name == "non_const" || name == "split") {
          if (wrong_kind(findings_, item, Json::Array, "'" + name + "'")) continue;
          for (const auto& x : item.items)
            if (!x.is_string() || (lookup(rule.values, x.text) == none && lookup(rule.nodes, x.text) == none))
              findings_.error("E206", x.offset, "no such name in the pattern: '" + x.text + "'");
        } else if (dot != std::string::npos) {
          if (lookup(rule.nodes, name.substr(0, dot)) == none)
            findings_.error("E206", item.key_offset, "no node '" + name.substr(0, dot) + "' in the pattern");
        } else if (name != "axes" && name != "dtype" && lookup(rule.values, name) == none) {
          std::vector<std::string_view> known(rule.values.begin(), rule.values.end());
          findings_.error("E206", item.key_offset, "no value '" + name + "' in the pattern",
                          did_you_mean(name, known));
        }
      }
      if (negative && c.why.empty())
        findings_.error("E203", i.offset, "a case of 'must_not_fire' says 'why'");
      out->push_back(std::move(c));
    }
  };
  cases("cases", &v.cases, false);
  cases("must_not_fire", &v.must_not_fire, true);
  if (const Json* t = r.get("tolerance", Json::Object))
    for (size_t i = 0; i < t->items.size(); ++i) {
      const tn_dtype d = sdk::dtype_from_name(t->keys[i]);
      if (d == TN_DTYPE_NONE)
        findings_.error("E205", t->items[i].key_offset, "'" + t->keys[i] + "' is no element type");
      if (wrong_kind(findings_, t->items[i], Json::Object, "a tolerance")) continue;
      Reader tr(t->items[i], findings_);
      Tolerance x;
      x.rtol = tr.number("rtol", x.rtol);
      x.atol = tr.number("atol", x.atol);
      x.cos = tr.number("cos", x.cos);
      x.max_ulp = tr.number("max_ulp", x.max_ulp);
      tr.finish();
      v.tolerance.emplace_back(d, x);
    }
  r.finish();
}

std::unique_ptr<Rule> RuleLoader::begin(const Json& json) {
  auto rule = std::make_unique<Rule>();
  rule->source = &source_;
  rule->offset = json.offset;
  rule->priority = source_.builtin ? 9000 : 7000;
  return rule;
}

std::unique_ptr<Rule> RuleLoader::v1(const Json& json) {
  auto rule = begin(json);
  Reader r(json, findings_);
  r.text("$schema");
  if (const Json* name = r.required("rule"); name && !wrong_kind(findings_, *name, Json::String, "'rule'")) {
    rule->name = name->text;
    if (!is_identifier(rule->name))
      findings_.error("E202", name->offset,
                      "'rule' must be a name (letters, digits, '_'), found '" + rule->name + "'");
  }
  rule->doc = r.text("doc");
  rule->version = r.integer("version", 1, 0, INT64_MAX);
  rule->switch_name = r.text("switch", "GraphFusion." + rule->name);
  rule->aliases = r.texts("aliases");
  rule->enabled = r.flag("enabled", true);
  rule->stage = static_cast<Stage>(r.choice("stage", {"canonicalize", "fuse", "layout", "device"}, 1));
  rule->level = static_cast<int32_t>(r.integer("level", rule->stage == Stage::Canonicalize ? 1 : 2, 1, 3));
  rule->priority = static_cast<int32_t>(r.integer("priority", rule->priority, 0, 99999));
  rule->before = r.texts("before");
  rule->after = r.texts("after");
  rule->precision = static_cast<Precision>(r.choice("precision", {"exact", "reassoc", "approx"}, 1));
  rule->once = r.flag("once", false);
  const Json* one = r.get("pattern");
  const Json* many = r.get("patterns", Json::Array);
  if (!one && !many) findings_.error("E203", json.offset, "key 'pattern' is missing");
  if (one && many) findings_.error("E202", many->key_offset, "'pattern' and 'patterns' exclude one another");
  if (one) pattern(*one, *rule);
  if (many)
    for (const auto& p : many->items) pattern(p, *rule);
  rule->names_chain.clear();
  if (const Json* j = r.get("where", Json::Array)) {
    // Guards are read after the names of lets are known, lets after the pattern.
    const Json* let = json.find("let");
    if (let && let->is_object()) lets(*let, *rule);
    guards(*j, *rule);
  } else if (const Json* let = json.find("let"); let && let->is_object()) {
    lets(*let, *rule);
  }
  r.get("let", Json::Object);
  if (const Json* j = r.required("replace"); j && !wrong_kind(findings_, *j, Json::Object, "'replace'"))
    replacement(*j, *rule);
  if (const Json* j = r.get("cost", Json::Object)) cost(*j, *rule);
  if (const Json* j = r.get("verify")) verify(*j, *rule);
  r.finish();
  return rule;
}

}  // namespace tenon::rules
