#include "load/loader.hpp"

#include <cmath>

#include "load/variants.hpp"

namespace tenon::rules {

bool Predicate::number(double v) const {
  if (min && !(v >= *min)) return false;
  if (max && !(v <= *max)) return false;
  if (differs && !differs->is_text && differs->number == v) return false;
  if (one_of.empty()) return true;
  for (const auto& s : one_of)
    if (!s.is_text && (s.number == v || std::fabs(s.number - v) <= 1e-6 * std::fabs(v)))
      return true;  // attributes are floats
  return false;
}

bool Predicate::text(std::string_view v) const {
  if (min || max) return false;
  if (differs && differs->is_text && differs->text == v) return false;
  if (one_of.empty()) return true;
  for (const auto& s : one_of)
    if (s.is_text && s.text == v) return true;
  return false;
}

std::string Predicate::show() const {
  const auto one = [](const Scalar& s) { return s.is_text ? s.text : sdk::format("%.7g", s.number); };
  std::string r;
  for (const auto& s : one_of) r += (r.empty() ? "" : "|") + one(s);
  if (min) r += (r.empty() ? ">= " : ", >= ") + sdk::format("%.7g", *min);
  if (max) r += (r.empty() ? "<= " : ", <= ") + sdk::format("%.7g", *max);
  if (differs) r += (r.empty() ? "not " : ", not ") + one(*differs);
  return r;
}

const char* stage_name(Stage s) {
  static const char* const names[] = {"canonicalize", "fuse", "layout", "device"};
  return names[static_cast<size_t>(s)];
}
const char* precision_name(Precision p) {
  static const char* const names[] = {"exact", "reassoc", "approx"};
  return names[static_cast<size_t>(p)];
}

bool wrong_kind(Findings& findings, const Json& json, Json::Kind wanted, const std::string& what) {
  if (json.kind == wanted || (wanted == Json::Float && json.kind == Json::Int) ||
      (wanted == Json::Int && json.whole()))
    return false;
  findings.error("E202", json.offset,
                 what + " must be " + kind_name(wanted) + ", found " + kind_name(json.kind));
  return true;
}

bool is_identifier(std::string_view t) {
  if (t.empty() || t.size() > 200 || std::isdigit(static_cast<unsigned char>(t[0]))) return false;
  for (const char c : t)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') return false;
  return true;
}

const Json* Reader::get(const char* key) {
  asked_.emplace_back(key);
  return object_.find(key);
}
const Json* Reader::get(const char* key, Json::Kind kind) {
  const Json* j = get(key);
  return j && wrong_kind(findings_, *j, kind, std::string("'") + key + "'") ? nullptr : j;
}
const Json* Reader::required(const char* key) {
  const Json* j = get(key);
  if (!j) findings_.error("E203", object_.offset, std::string("key '") + key + "' is missing");
  return j;
}
std::string Reader::text(const char* key, std::string otherwise) {
  const Json* j = get(key, Json::String);
  return j ? j->text : otherwise;
}
bool Reader::flag(const char* key, bool otherwise) {
  const Json* j = get(key, Json::Bool);
  return j ? j->boolean : otherwise;
}
int64_t Reader::integer(const char* key, int64_t otherwise, int64_t min, int64_t max) {
  const Json* j = get(key, Json::Int);
  if (!j) return otherwise;
  if (j->integer < min || j->integer > max) {
    findings_.error("E202", j->offset,
                    std::string("'") + key + "' must lie in " + std::to_string(min) + ".." +
                        std::to_string(max) + ", found " + std::to_string(j->integer));
    return otherwise;
  }
  return j->integer;
}
double Reader::number(const char* key, double otherwise) {
  const Json* j = get(key, Json::Float);
  return j ? j->number : otherwise;
}
std::vector<std::string> Reader::texts(const char* key) {
  std::vector<std::string> r;
  const Json* j = get(key, Json::Array);
  if (!j) return r;
  for (const auto& i : j->items)
    if (!wrong_kind(findings_, i, Json::String, std::string("an item of '") + key + "'")) r.push_back(i.text);
  return r;
}
size_t Reader::choice(const char* key, const std::vector<std::string_view>& words, size_t otherwise) {
  const Json* j = get(key, Json::String);
  if (!j) return otherwise;
  for (size_t i = 0; i < words.size(); ++i)
    if (words[i] == j->text) return i;
  std::string wanted;
  for (const auto w : words) wanted += (wanted.empty() ? "" : ", ") + std::string(w);
  const std::string hint = did_you_mean(j->text, words);
  findings_.error("E202", j->offset,
                  std::string("'") + key + "' is '" + j->text + "'; expected one of " + wanted, hint);
  return otherwise;
}
void Reader::finish() {
  for (size_t i = 0; i < object_.keys.size(); ++i) {
    bool known = false;
    for (const auto a : asked_) known = known || a == object_.keys[i];
    if (!known)
      findings_.error("E201", object_.items[i].key_offset, "unknown key '" + object_.keys[i] + "'",
                      did_you_mean(object_.keys[i], asked_));
  }
}

uint32_t RuleLoader::lookup(const std::vector<std::string>& names, std::string_view name) {
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return static_cast<uint32_t>(i);
  return none;
}
uint32_t RuleLoader::intern(std::vector<std::string>& names, std::string_view name) {
  const uint32_t i = lookup(names, name);
  if (i != none) return i;
  names.emplace_back(name);
  return static_cast<uint32_t>(names.size() - 1);
}

void load_rules(const Source& source, const OpCatalog& ops, Findings& findings,
                std::vector<std::unique_ptr<Rule>>* rules) {
  RuleLoader loader(source, ops, findings);
  const auto keep = [&](std::unique_ptr<Rule> rule, size_t errors_before) {
    if (rule && findings.errors() == errors_before) check_variants(*rule, ops, findings);
    if (rule && findings.errors() == errors_before) rules->push_back(std::move(rule));
  };
  const auto any = [&](const Json& j) {
    const size_t errors = findings.errors();
    if (j.is_array()) return keep(loader.bare_chain(j), errors);
    if (wrong_kind(findings, j, Json::Object, "a rule")) return;
    if (j.find("fusion_type"))
      keep(loader.article(j), errors);
    else
      keep(loader.v1(j), errors);
  };
  const auto each = [&](const Json& list, const char* what, bool chains) {
    if (wrong_kind(findings, list, Json::Array, what)) return;
    if (list.items.empty()) findings.error("E203", list.offset, std::string(what) + " is empty");
    for (const auto& i : list.items)
      if (!chains || !wrong_kind(findings, i, Json::Array, "a chain")) any(i);
  };
  const Json& root = source.root;
  if (root.is_array()) return each(root, "the list of rules", false);
  if (wrong_kind(findings, root, Json::Object, "a rule file")) return;
  if (root.find("Rules")) {
    Reader r(root, findings);
    r.text("$schema");
    const Json& list = *r.get("Rules");
    r.finish();
    if (wrong_kind(findings, list, Json::Array, "'Rules'")) return;
    if (list.items.empty()) findings.error("E203", list.offset, "'Rules' is empty");
    for (const auto& i : list.items) {
      const size_t errors = findings.errors();
      keep(loader.cann(i), errors);
    }
  } else if (const Json* chains = root.find("fusion_patterns")) {
    Reader r(root, findings);
    r.text("$schema");
    r.get("fusion_patterns");
    r.finish();
    each(*chains, "'fusion_patterns'", true);
  } else if (root.find("rules") || root.find("schema")) {
    Reader r(root, findings);
    r.text("$schema");
    const Json* schema = r.required("schema");
    if (schema && (!schema->is_string() || schema->text != "tenon.rules/1"))
      findings.error("E202", schema->offset,
                     "'schema' must be \"tenon.rules/1\"" +
                         (schema->is_string() ? ", found '" + schema->text + "'" : std::string()));
    r.text("vendor");
    const Json* list = r.required("rules");
    r.finish();
    if (list) each(*list, "'rules'", false);
  } else {
    any(root);
  }
}

}  // namespace tenon::rules
