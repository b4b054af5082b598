// Reads rule files: the articles' object, bare lists of chains, v1. All faults of a file are found at once.
#pragma once
#include <map>
#include <memory>

#include "load/findings.hpp"
#include "load/rule_model.hpp"
#include "tenon/sdk/dtype.hpp"

namespace tenon::rules {

/// Reads every rule of a parsed source; rules with errors are left out.
void load_rules(const Source& source, const OpCatalog& ops, Findings& findings,
                std::vector<std::unique_ptr<Rule>>* rules);

// Below: shared by the files of the loader.

/// Reads members of one object, remembers which were asked for, and complains about the others.
class Reader {
 public:
  Reader(const Json& object, Findings& findings) : object_(object), findings_(findings) {}
  const Json* get(const char* key);
  /// NULL, after an error, when it is there but of another kind.
  const Json* get(const char* key, Json::Kind kind);
  const Json* required(const char* key);
  std::string text(const char* key, std::string otherwise = {});
  bool flag(const char* key, bool otherwise);
  int64_t integer(const char* key, int64_t otherwise, int64_t min, int64_t max);
  double number(const char* key, double otherwise);
  std::vector<std::string> texts(const char* key);
  /// One of the words; its index.
  size_t choice(const char* key, const std::vector<std::string_view>& words, size_t otherwise);
  void finish();  // E201 for each key nobody asked for
  const Json& json() const { return object_; }
  Findings& findings() { return findings_; }

 private:
  const Json& object_;
  Findings& findings_;
  std::vector<std::string_view> asked_;
};

bool wrong_kind(Findings& findings, const Json& json, Json::Kind wanted, const std::string& what);
bool is_identifier(std::string_view text);

class RuleLoader {
 public:
  RuleLoader(const Source& source, const OpCatalog& ops, Findings& findings)
      : source_(source), ops_(ops), findings_(findings) {}
  std::unique_ptr<Rule> v1(const Json& json);
  std::unique_ptr<Rule> article(const Json& json);
  std::unique_ptr<Rule> bare_chain(const Json& chain);
  std::unique_ptr<Rule> cann(const Json& json);

 private:
  std::unique_ptr<Rule> begin(const Json& json);
  // loader_pattern.cpp
  void pattern(const Json& json, Rule& rule);
  void pattern_node(const std::string& name, const Json& json, Pattern& pattern, Rule& rule);
  void alternative(Reader& reader, Alternative* out, Rule& rule, const char* domain, bool assoc);
  bool slot(const Json& json, Slot* out, Rule& rule);
  void value_wish(const std::string& name, const Json& json, Pattern& pattern, Rule& rule);
  bool predicate(const Json& json, Predicate* out);
  void attribute_wishes(const Json& json, const std::vector<tn_sym>& ops, std::vector<AttributeWish>* out);
  void op_list(const Json& json, const std::string& domain, std::vector<tn_sym>* out,
               bool replacement = false);
  void no_schema(const std::string& op, uint32_t offset);
  tn_sym op(const std::string& name, const std::string& domain, uint32_t offset, bool replacement);
  void check_lists(const std::string& name, const PatternNode& node, const Json& json);
  void check_arity(const Alternative& alternative, uint32_t offset);
  // loader_chain.cpp
  void chain(const Json& json, Rule& rule);
  bool chain_item(const Json& json, size_t index, PatternNode* node, Rule& rule, std::string* words);
  void chain_constraints(const Json& json, Pattern& pattern, Rule& rule);
  // loader_replace.cpp
  void replacement(const Json& json, Rule& rule);
  void new_nodes(const Json& json, Rule& rule, std::vector<NewNode>* out, bool body);
  void new_node(const std::string& name, const Json& json, Rule& rule, std::vector<NewNode>* out, bool body);
  void check_body(const Json& json, Rule& rule);
  // loader_rule.cpp
  void guards(const Json& json, Rule& rule);
  void lets(const Json& json, Rule& rule);
  void transform(const Json& json, Rule& rule, Let* let);
  void cost(const Json& json, Rule& rule);
  void verify(const Json& json, Rule& rule);
  bool expression(const Json& json, Rule& rule, Expression* out);

  static uint32_t intern(std::vector<std::string>& names, std::string_view name);
  static uint32_t lookup(const std::vector<std::string>& names, std::string_view name);

  const Source& source_;
  const OpCatalog& ops_;
  Findings& findings_;
};

}  // namespace tenon::rules
