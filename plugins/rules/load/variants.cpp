#include "load/variants.hpp"

#include <algorithm>

#include "load/op_weight.hpp"

namespace tenon::rules {
namespace {

/// What was chosen for one node of the pattern: an alternative, and how many copies in a row (0: absent).
struct Choice {
  uint32_t alternative = 0, copies = 1;
};

std::vector<Choice> choices_of(const PatternNode& n) {
  std::vector<Choice> r;
  for (uint32_t copies = n.repeat_max; copies > n.repeat_min; --copies)
    for (uint32_t a = 0; a < n.alternatives.size(); ++a) r.push_back({a, copies});
  const bool may_miss = n.optional || n.repeat_min == 0;
  if (n.repeat_min > 0)
    for (uint32_t a = 0; a < n.alternatives.size(); ++a) r.push_back({a, n.repeat_min});
  if (may_miss) r.push_back({0, 0});
  return r;
}

size_t variant_count(const Pattern& p) {
  size_t n = 1;
  for (const auto& node : p.nodes) {
    n *= choices_of(node).size();
    if (n > 100000) break;
  }
  return n;
}

uint32_t follow(const std::vector<uint32_t>& alias, uint32_t v) {
  // Aliases point at values of earlier definition; the bound guards against rules that alias in a ring.
  for (size_t i = 0; v != none && i < alias.size() && alias[v] != v; ++i) v = alias[v];
  return v;
}

/// The operand that an absent node passes on, and that links the copies of a repeated one.
uint32_t first_named(const Alternative& a) {
  for (uint32_t i = 0; i < a.in.size(); ++i)
    if (a.in[i].kind == Slot::Value && a.in[i].value != none && !a.in[i].constant) return i;
  return none;
}

bool build(const Rule& rule, const Pattern& p, const std::vector<Choice>& chosen, Variant* v) {
  v->rule = &rule;
  v->pattern = &p;
  size_t value_count = rule.values.size();
  v->alias.resize(value_count);
  for (uint32_t i = 0; i < value_count; ++i) v->alias[i] = i;
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    if (chosen[i].copies) continue;
    const PatternNode& n = p.nodes[i];
    uint32_t first = n.chain;
    if (first == none && !n.alternatives.empty())
      if (const uint32_t slot = first_named(n.alternatives[0]); slot != none)
        first = n.alternatives[0].in[slot].value;
    if (!n.out.empty() && n.out[0] != none) {
      if (first != none)
        v->alias[n.out[0]] = first;
      else
        v->alias[n.out[0]] = none;  // the head of a chain: the next item begins it
    }
  }
  v->lists.resize(value_count);
  v->copies.assign(rule.nodes.size(), 0);
  const auto fresh = [&] {  // values without a name get numbers past the rule's own
    v->alias.push_back(static_cast<uint32_t>(value_count));
    return static_cast<uint32_t>(value_count++);
  };
  const auto resolved = [&](uint32_t x) { return x == none ? none : follow(v->alias, x); };
  for (size_t i = 0; i < p.nodes.size(); ++i) {
    const PatternNode& n = p.nodes[i];
    uint32_t feed = resolved(n.chain);
    v->copies[n.node] = chosen[i].copies;
    for (uint32_t copy = 0; copy < chosen[i].copies; ++copy) {
      VariantNode vn;
      vn.node = copy == 0 ? n.node : none;
      vn.from = &n;
      vn.what = &n.alternatives[chosen[i].alternative];
      vn.chain = feed;
      const uint32_t link = n.repeat ? first_named(*vn.what) : none;
      for (uint32_t s = 0; s < vn.what->in.size(); ++s) {
        const Slot& slot = vn.what->in[s];
        uint32_t value = resolved(slot.value);
        if (slot.kind == Slot::Rest && n.repeat) {
          value = fresh();
          v->lists[slot.value].push_back(value);
        } else if (slot.kind == Slot::Rest) {
          vn.rest = s;
        } else if (s == link && copy > 0) {
          value = feed;
        }
        vn.in.push_back(value);
      }
      const bool last = copy + 1 == chosen[i].copies;
      for (const uint32_t o : n.out) vn.out.push_back(last ? o : none);
      if (!last && !vn.out.empty()) vn.out[0] = fresh();
      feed = vn.out.empty() ? none : vn.out[0];
      v->nodes.push_back(std::move(vn));
    }
  }
  if (v->nodes.empty()) return false;
  for (const uint32_t o : p.outputs) v->outputs.push_back(resolved(o));
  v->lists.resize(value_count);
  v->producer.assign(value_count, none);
  v->producer_result.assign(value_count, 0);
  for (uint32_t i = 0; i < v->nodes.size(); ++i)
    for (uint32_t k = 0; k < v->nodes[i].out.size(); ++k)
      if (v->nodes[i].out[k] != none) {
        v->producer[v->nodes[i].out[k]] = i;
        v->producer_result[v->nodes[i].out[k]] = k;
      }
  // An output that aliases to a value from outside: nothing is left to replace.
  for (const uint32_t o : v->outputs)
    if (o == none || v->producer[o] == none) return false;
  v->anchor = v->producer[v->outputs[0]];
  // A bound, good enough to say how far a change can matter; an assoc node is a tree of several graph nodes.
  v->depth = static_cast<uint32_t>(v->nodes.size());
  for (const auto& n : v->nodes)
    if (n.from->assoc) v->depth += n.rest == none ? static_cast<uint32_t>(n.what->in.size()) : max_leaves;
  return true;
}

/// Does the rewrite lower the number of nodes, or leave it and lower their weight? A node that stays because
/// a kept value needs it is counted as gone: rules that undo one another that way are found when a graph
/// comes back.
bool lowers(const Rule& rule, const Variant& v, const OpCatalog* ops) {
  size_t nodes = 0, old_weight = 0, new_weight = 0;
  for (const VariantNode& n : v.nodes) {
    const size_t leaves = n.what->in.size() - (n.rest != none);
    const size_t count = n.from->assoc ? std::max<size_t>(leaves, 2) - 1 : 1;
    nodes += count;
    if (!ops) continue;
    uint32_t least = UINT32_MAX;
    for (const tn_sym op : n.what->ops) least = std::min(least, op_weight(ops->text(op)));
    if (!n.what->ops.empty()) old_weight += count * least;
  }
  if (rule.replace.nodes.size() != nodes) return rule.replace.nodes.size() < nodes;
  if (!ops || rule.replace.chain) return false;
  for (const auto& n : rule.replace.nodes) {
    if (n.op_of != none) return false;  // whatever matched comes again
    new_weight += op_weight(ops->text(n.op));
  }
  return new_weight < old_weight;
}

}  // namespace

std::vector<Variant> expand(const Rule& rule) {
  std::vector<Variant> all;
  for (const auto& p : rule.patterns) {
    if (variant_count(p) > max_variants) continue;
    std::vector<std::vector<Choice>> options;
    for (const auto& n : p.nodes) options.push_back(choices_of(n));
    std::vector<size_t> at(options.size(), 0);
    for (;;) {
      std::vector<Choice> chosen;
      for (size_t i = 0; i < at.size(); ++i) chosen.push_back(options[i][at[i]]);
      Variant v;
      // A chain without its optional items may be a single node, which a rewrite would only rename.
      if (build(rule, p, chosen, &v) && (rule.once || !rule.replace.chain || lowers(rule, v, nullptr)))
        all.push_back(std::move(v));
      size_t i = at.size();
      while (i > 0 && ++at[i - 1] == options[i - 1].size()) at[--i] = 0;
      if (i == 0) break;
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Variant& a, const Variant& b) { return a.nodes.size() > b.nodes.size(); });
  return all;
}

std::string variant_text(const Variant& v, const OpCatalog& ops) {
  std::string text;
  const auto add = [&](const std::string& word) { text += (text.empty() ? "" : ", ") + word; };
  for (const auto& n : v.pattern->nodes) {
    if (n.node == none) continue;
    const std::string& name = v.rule->nodes[n.node];
    size_t copies = 0;
    const Alternative* what = nullptr;
    for (const auto& x : v.nodes)
      if (x.from == &n) ++copies, what = x.what;
    if (copies == 0)
      add("without " + name);
    else if (n.repeat_max > 1)
      add(name + " x" + std::to_string(copies));
    if (what && n.alternatives.size() > 1) add(name + " " + std::string(ops.text(what->ops[0])));
  }
  if (v.rule->patterns.size() > 1)
    for (size_t i = 0; i < v.rule->patterns.size(); ++i)
      if (&v.rule->patterns[i] == v.pattern) add("pattern " + std::to_string(i + 1));
  return text;
}

void check_variants(const Rule& rule, const OpCatalog& ops, Findings& findings) {
  for (const auto& p : rule.patterns)
    if (const size_t n = variant_count(p); n > max_variants) {
      findings.error("E204", p.offset,
                     "rule '" + rule.name + "'" + (p.id.empty() ? "" : ", pattern '" + p.id + "',") +
                         " expands to " + (n > 100000 ? std::string("more than 100000") : std::to_string(n)) +
                         " variants, at most " + std::to_string(max_variants) + " are allowed",
                     "split it into several rules");
      return;
    }
  const auto variants = expand(rule);
  if (variants.empty()) {
    findings.error("E209", rule.offset, "rule '" + rule.name + "' would never lower the number of nodes",
                   "a pattern needs more nodes than its replacement, or \"once\": true");
    return;
  }
  for (const auto& v : variants) {
    if (!rule.once && !lowers(rule, v, &ops)) {
      findings.error("E209", rule.offset,
                     "rule '" + rule.name + "' may replace " + std::to_string(v.nodes.size()) +
                         " node(s) by " + std::to_string(rule.replace.nodes.size()) +
                         " that weigh as much, so it need not come to an end",
                     "say \"once\": true, or make fewer nodes optional");
      return;
    }
    // Every node must be found from the first output: upwards, or down from a value already known.
    std::vector<bool> seen(v.nodes.size());
    seen[v.anchor] = true;
    for (size_t round = 0; round < v.nodes.size(); ++round)
      for (uint32_t i = 0; i < v.nodes.size(); ++i) {
        auto reads = v.nodes[i].in;
        reads.push_back(v.nodes[i].chain);
        for (uint32_t j = 0; j < v.nodes.size(); ++j) {
          if (seen[i] == seen[j]) continue;
          bool linked = false;
          auto others = v.nodes[j].in;
          others.push_back(v.nodes[j].chain);
          for (const uint32_t x : reads)
            if (x != none)
              linked =
                  linked || v.producer[x] == j || std::find(others.begin(), others.end(), x) != others.end();
          for (const uint32_t x : others)
            if (x != none) linked = linked || v.producer[x] == i;
          if (linked) seen[i] = seen[j] = true;
        }
      }
    for (uint32_t i = 0; i < v.nodes.size(); ++i)
      if (!seen[i]) {
        findings.error("E207", v.nodes[i].from->offset,
                       "node '" + rule.nodes[v.nodes[i].from->node] + "' is not connected to output '" +
                           rule.values[v.pattern->outputs[0]] + "'");
        return;
      }
  }
}

}  // namespace tenon::rules
