#include "rule_set.hpp"

#include <algorithm>

#include "tenon/abi/installed.h"
#include "tenon/abi/transforms.h"

namespace tenon::rules {

int HostCatalog::resolve(std::string_view name, tn_sym* op) const {
  switch (registry_->resolve(host_, sdk::str(name), op)) {
    case TN_OK:
      return 1;
    case TN_ERR_INVALID:
      return 2;
    default:
      return 0;
  }
}

std::vector<std::string_view> HostCatalog::names() const {
  std::vector<std::string_view> r;
  for (uint32_t i = 0; i < registry_->count(host_); ++i)
    if (const tn_op_def* d = registry_->at(host_, i)) r.push_back(sdk::view(d->name));
  return r;
}

std::string HostCatalog::provider(std::string_view op) const {
  const auto* api = static_cast<const tn_installed_api*>(host_->get_interface(host_, TN_INSTALLED_ID));
  return api ? sdk::text(api->plugin_with_operator(host_, sdk::str(op))) : std::string();
}

std::vector<Transform> HostCatalog::transforms() const {
  std::vector<Transform> r;
  const auto* api =
      static_cast<const tn_transform_registry_api*>(host_->get_interface(host_, TN_TRANSFORM_REGISTRY_ID));
  for (uint32_t i = 0; api && i < api->count(host_); ++i) {
    Transform t;
    t.record = api->at(host_, i, &t.instance);
    if (t.record) r.push_back(t);
  }
  return r;
}

uint64_t RuleSet::digest(const tn_rule_source* sources, uint32_t count) {
  uint64_t h = 1469598103934665603u;  // FNV-1a; the texts are small
  const auto eat = [&](tn_str s) {
    for (const unsigned char c : sdk::view(s)) h = (h ^ c) * 1099511628211u;
    h = (h ^ s.size) * 1099511628211u;
  };
  for (uint32_t i = 0; i < count; ++i) {
    eat(sources[i].path);
    eat(sources[i].text);
    h = (h ^ sources[i].builtin) * 1099511628211u;
  }
  return h;
}

RuleSet::RuleSet(const tn_rule_source* sources, uint32_t count, const OpCatalog& ops, const sdk::Diag& diag,
                 bool strict) {
  for (uint32_t i = 0; i < count; ++i) {
    auto source = std::make_unique<Source>();
    source->path = sdk::text(sources[i].path);
    source->text = sdk::text(sources[i].text);
    source->builtin = sources[i].builtin != 0;
    Findings findings(*source);
    Finding bad;
    std::vector<std::unique_ptr<Rule>> rules;
    if (!parse_json(*source, &bad))
      findings.error(bad.code, bad.offset, bad.message, bad.hint);
    else
      load_rules(*source, ops, findings, &rules);
    for (auto& r : rules) {
      bool twice = false;
      for (const auto& e : entries_) {
        if (e.rule->name != r->name) continue;
        twice = true;
        if (!r->names_chain.empty()) continue;  // the same bare chain again asks for the same thing
        const auto at = e.rule->source->place(e.rule->offset);
        findings.error("E210", r->offset,
                       "rule '" + r->name + "' exists already: " + e.rule->source->path + ":" +
                           std::to_string(at.line) + ":" + std::to_string(at.column),
                       "give it another name, or load one of the two files");
      }
      if (r->verify.cases.empty() && r->names_chain.empty()) {
        if (strict)
          findings.error("E212", r->offset, "rule '" + r->name + "' has no verify cases",
                         "add cases that prove it, see docs/rules.md");
        else if (!source->builtin)
          findings.note(r->offset,
                        "rule '" + r->name +
                            "' has no verify cases; 'tenon rules test' proves it on graphs that it "
                            "invents from the pattern");
      }
      if (!twice) {
        Entry e;
        e.rule = std::move(r);
        entries_.push_back(std::move(e));
      }
    }
    findings.emit(diag, strict);
    errors_ += findings.errors();
    sources_.push_back(std::move(source));
  }
  chains_by_name();
  order(diag);
  for (auto& e : entries_) e.variants = expand(*e.rule);
}

/// A bare chain that some rule names among its aliases switches that rule on; it makes no group of its own
/// then.
void RuleSet::chains_by_name() {
  for (size_t i = 0; i < entries_.size();) {
    const std::string chain = entries_[i].rule->names_chain;
    Entry* named = nullptr;
    if (!chain.empty())
      for (auto& e : entries_)
        if (std::find(e.rule->aliases.begin(), e.rule->aliases.end(), chain) != e.rule->aliases.end())
          named = &e;
    if (!named) {
      ++i;
      continue;
    }
    named->rule->enabled = true;
    entries_.erase(entries_.begin() + static_cast<ptrdiff_t>(i));
  }
}

void RuleSet::order(const sdk::Diag& diag) {
  for (auto& e : entries_) e.order = e.rule->priority;
  const auto find = [&](const std::string& name) -> Entry* {
    for (auto& e : entries_)
      if (e.rule->name == name) return &e;
    return nullptr;
  };
  std::vector<std::pair<Entry*, Entry*>> edges;  // first runs before second
  std::vector<std::string_view> names;
  for (const auto& x : entries_) names.push_back(x.rule->name);
  for (auto& e : entries_) {
    const auto add = [&](const std::string& name, bool before) {
      if (Entry* other = find(name)) {
        edges.emplace_back(before ? &e : other, before ? other : &e);
        return;
      }
      // It may be in a file that this run leaves out, so it is no error.
      Findings f(*e.rule->source);
      f.warn("E206", e.rule->offset,
             "rule '" + e.rule->name + "' is ordered against '" + name +
                 "', which is not loaded; that has no effect",
             did_you_mean(name, names));
      f.emit(diag);
    };
    for (const auto& n : e.rule->before) add(n, true);
    for (const auto& n : e.rule->after) add(n, false);
  }
  if (const std::string ring = ring_of(edges); !ring.empty()) {
    const Rule& r = *find(ring.substr(0, ring.find(' ')))->rule;
    Findings f(*r.source);
    f.error("E208", r.offset, "'before' and 'after' form a cycle: " + ring, "drop one of them");
    f.emit(diag);
    ++errors_;
    return;
  }
  bool changed = true;
  for (size_t round = 0; changed && round <= entries_.size(); ++round) {
    changed = false;
    for (auto& edge : edges)
      if (edge.first->order >= edge.second->order) {
        edge.first->order = edge.second->order - 1;
        changed = true;
      }
  }
}

/// "A -> B -> A": rules that each run before the next; empty when there are none.
std::string RuleSet::ring_of(std::vector<std::pair<Entry*, Entry*>> edges) {
  // What nothing runs before has its place; take it away until nothing changes.
  for (bool changed = true; changed;) {
    const size_t left = edges.size();
    std::vector<std::pair<Entry*, Entry*>> kept;
    for (const auto& e : edges)
      if (std::any_of(edges.begin(), edges.end(), [&](const auto& x) { return x.second == e.first; }))
        kept.push_back(e);
    edges.swap(kept);
    changed = edges.size() != left;
  }
  if (edges.empty()) return {};
  // Every one left has one before it: walk back until one comes again.
  std::vector<Entry*> walk{edges[0].first};
  for (;;) {
    Entry* before = nullptr;
    for (const auto& e : edges)
      if (e.second == walk.back()) before = e.first;
    const auto met = std::find(walk.begin(), walk.end(), before);
    if (met == walk.end()) {
      walk.push_back(before);
      continue;
    }
    std::string ring = before->rule->name;
    for (auto i = walk.end(); i != met;) ring += " -> " + (*--i)->rule->name;
    return ring;
  }
}

}  // namespace tenon::rules
