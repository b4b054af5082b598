#include "prove/prove.hpp"

#include <algorithm>
#include <map>

#include "prove/compare.hpp"
#include "prove/prove_graph.hpp"
#include "prove/variation.hpp"

namespace tenon::rules {
namespace {

constexpr size_t most_orders = 64;       // of a variant's operands, in one case
constexpr size_t most_invented = 4000;   // attempts to invent a graph, of all variants of a rule
constexpr size_t wanted_of_variant = 3;  // invented graphs that fire
constexpr size_t most_changes = 800;     // of all variants of a rule
constexpr size_t depth_first_attempts = 120;

using Shapes = std::vector<std::pair<uint32_t, std::vector<int64_t>>>;

/// Keeps the reasons of one engine run.
class Reasons : public EngineListener {
 public:
  void explain(const tn_explain_record& r) override {
    if (r.reason == TN_REASON_APPLIED || r.reason == TN_REASON_SWITCH) return;
    reason = r.reason;
    text = sdk::text(r.expr) + (r.got.size ? ": " + sdk::text(r.got) : "") +
           (r.hint.size ? " -- " + sdk::text(r.hint) : "");
  }
  uint32_t reason = TN_REASON_COUNT;
  std::string text;
};

/// The variant has exactly the optional nodes that the case does not list as absent.
bool fits(const Variant& v, const Json* base, const Json* overlay) {
  const Json* absent = overlay ? overlay->find("absent") : nullptr;
  if (!absent && base) absent = base->find("absent");
  for (const auto& n : v.pattern->nodes) {
    if (!n.optional) continue;
    bool wanted = true;
    if (absent)
      for (const auto& i : absent->items) wanted = wanted && i.text != v.rule->nodes[n.node];
    const bool there =
        std::any_of(v.nodes.begin(), v.nodes.end(), [&](const VariantNode& x) { return x.node == n.node; });
    if (wanted != there) return false;
  }
  return true;
}

/// A must-not-fire case that speaks of a node which this pattern alternative lacks says nothing about it.
bool concerns(const Variant& v, const Json* overlay) {
  if (!overlay) return true;
  for (const auto& key : overlay->keys) {
    const auto dot = key.find('.');
    if (dot == std::string::npos) continue;
    const std::string name = key.substr(0, dot);
    if (std::none_of(v.nodes.begin(), v.nodes.end(),
                     [&](const VariantNode& n) { return n.node != none && v.rule->nodes[n.node] == name; }))
      return false;
  }
  return true;
}

/// Every operator of a list is tried by itself; the others stay at their first.
std::vector<std::vector<size_t>> operator_choices(const Variant& v, bool all) {
  std::vector<std::vector<size_t>> choices{std::vector<size_t>(v.nodes.size(), 0)};
  for (size_t n = 0; n < v.nodes.size() && all; ++n)
    for (size_t o = 1; o < v.nodes[n].what->ops.size(); ++o) {
      choices.push_back(choices[0]);
      choices.back()[n] = o;
    }
  return choices;
}

/// The type that a chain's constraints ask for.
tn_dtype wished_type(const Variant& v) {
  for (const auto& w : v.pattern->chain_wishes)
    if (w.kind <= ChainWish::OutputDtype && !w.wish.one_of.empty())
      for (const tn_dtype t : {TN_FLOAT32, TN_FLOAT16, TN_BFLOAT16, TN_FLOAT64, TN_INT32, TN_INT64})
        if (w.wish.text(sdk::dtype_name(t))) return t;
  return TN_FLOAT32;
}

std::string in_brackets(const std::string& a, const std::string& b) {
  const std::string both = a + (a.empty() || b.empty() ? "" : "; ") + b;
  return both.empty() ? std::string() : " [" + both + "]";
}

/// One rule's proof.
class Proof {
 public:
  Proof(const TestServices& services, const OpCatalog& ops, const RuleSet& rules, const RuleSet::Entry& entry,
        uint64_t seed, const RuleTester::Report& report)
      : services_(services),
        ops_(ops),
        rules_(rules),
        rule_(*entry.rule),
        variants_(entry.variants),
        seed_(seed * 1000003u + static_cast<uint64_t>(entry.rule->verify.seed) * 7919u),
        report_(report),
        proved_(entry.variants.size()),
        why_not_(entry.variants.size()) {}

  bool run() {
    given_cases();
    must_not_fire();
    if (passed_) invent();
    if (passed_) beyond();
    if (passed_) summary();
    return passed_;
  }

 private:
  enum class Result { NotBuilt, NotRun, Quiet, Fired, Equal, Wrong };
  struct Attempt {
    Result result = Result::NotBuilt;
    std::string text;
    bool unsupported = false;  // NotRun: something has no kernel
  };
  struct Counts {
    size_t equal = 0, quiet = 0, other = 0;
  };

  /// Builds the graph, lets the engine at it, and where that rewrote it computes both.
  Attempt attempt(CaseSetup& setup, uint64_t seed, bool beyond_cases, bool compute = true,
                  Shapes* shapes = nullptr) {
    Attempt out;
    Random random(seed);
    CaseGraph rewritten(services_, ops_);
    out.text = rewritten.build(setup, random);
    if (!out.text.empty()) return out;
    if (shapes) *shapes = rewritten.shapes();
    const GraphAccess access(services_.graph, services_.symbols, rewritten.raw());
    Reasons reasons;
    EngineOptions options;
    options.only_rule = rule_.name;
    options.detailed = true;
    Engine engine(access, ops_, rules_, {services_.host, services_.edit, services_.registry}, reasons,
                  options);
    engine.run();
    if (engine.applied() == 0) {
      out.result = Result::Quiet;
      out.text = reasons.text;
      return out;
    }
    out.result = Result::Fired;
    if (!compute) return out;
    // The same graph once more, as it was.
    if (setup.choices) setup.choices->again();
    Random same(seed);
    CaseGraph original(services_, ops_);
    out.text = original.build(setup, same);
    const Outputs before =
        out.text.empty() ? run_graph(services_, original.raw(), original.inputs()) : Outputs{};
    if (out.text.empty()) out.text = before.failure;
    if (!out.text.empty()) {
      out.result = Result::NotRun;
      out.unsupported = before.unsupported;
      return out;
    }
    const Outputs after = run_graph(services_, rewritten.raw(), rewritten.inputs());
    out.text = compare(rule_, before, after, original.narrowest(), !beyond_cases);
    out.result = out.text.empty() ? Result::Equal : Result::Wrong;
    return out;
  }

  uint64_t seed(size_t trial) const { return seed_ + trial; }

  std::string form(size_t variant) const {
    const std::string text = variant_text(variants_[variant], ops_);
    return text;
  }

  void say(const std::string& name, bool passed, const std::string& text) {
    report_(name, passed, text);
    passed_ = passed_ && passed;
  }

  void given_cases() {
    auto tolerances = rule_.verify.tolerance;
    if (std::none_of(tolerances.begin(), tolerances.end(),
                     [](const auto& t) { return t.first == TN_FLOAT32; }))
      tolerances.emplace(tolerances.begin(), TN_FLOAT32, Tolerance{});
    for (const auto& [dtype, tolerance] : tolerances)
      for (size_t i = 0; i < rule_.verify.cases.size(); ++i) {
        const bool plain = dtype == TN_FLOAT32;
        if (!plain && i > 0) break;  // other types: the first case once
        given_case("case " + std::to_string(i + 1) + (plain ? "" : std::string(" ") + sdk::dtype_name(dtype)),
                   rule_.verify.cases[i].json, dtype);
      }
  }

  /// Every variant: the one that the case describes has to fire; any that fires has to be right.
  void given_case(const std::string& name, const Json* base, tn_dtype dtype) {
    Counts counts;
    std::string failure, skipped, why_quiet;
    bool described = false;
    for (size_t v = 0; v < variants_.size() && failure.empty(); ++v) {
      const Variant& variant = variants_[v];
      const bool is_it = fits(variant, base, nullptr);
      described = described || is_it;
      if (!is_it && dtype != TN_FLOAT32) continue;
      Random random(seed(v));
      const auto orders = operand_orders(
          variant, ops_, is_it ? most_orders : std::max<size_t>(4, most_orders / variants_.size()), random);
      const int64_t trials = is_it && dtype == TN_FLOAT32 ? rule_.verify.trials : 1;
      for (const auto& ops : operator_choices(variant, is_it)) {
        bool first_fired = false;
        for (int64_t trial = 0; trial < trials && failure.empty(); ++trial)
          // The first trial takes every order, each later one its own beside the pattern's.
          for (size_t o = 0; o < orders.size() && failure.empty(); ++o) {
            if (trial > 0 && o > 0 && o != static_cast<size_t>(trial) % orders.size()) continue;
            Choices usual;
            CaseSetup setup{&variant, base, nullptr, ops, orders[o], dtype, is_it ? nullptr : &usual, {}};
            const Attempt a = attempt(setup, seed(static_cast<size_t>(trial)), !is_it);
            const std::string where = in_brackets(form(v), order_text(variant, orders[o]));
            if (a.result == Result::Equal) {
              ++counts.equal;
              proved_[v] = true;
              first_fired = first_fired || o == 0;
              if (bases_.size() < variants_.size() && o == 0 && trial == 0) bases_.emplace(v, base);
            } else if (a.result == Result::Wrong) {
              failure = a.text + ", trial " + std::to_string(trial) + where;
            } else if (a.result == Result::Quiet) {
              ++counts.quiet;
              why_quiet = why_not_[v] = a.text;
              if (is_it && first_fired && o > 0)
                failure =
                    "it fires with the operands as the pattern has them, but not" + where + ": " + a.text;
            } else if (a.unsupported) {
              skipped = a.text;
            } else if (is_it) {
              failure = (a.result == Result::NotRun ? "the pattern does not run: " : "") + a.text + where;
            }
          }
      }
    }
    if (!failure.empty())
      say(name, false, failure);
    else if (!described)
      say(name, false, "no variant of the pattern fits the case");
    else if (counts.equal == 0)
      say(name, dtype != TN_FLOAT32 && !skipped.empty(),
          skipped.empty() ? "it did not fire: " + why_quiet : "not computed: " + skipped);
    else
      say(name, true,
          std::to_string(counts.equal) + " graphs equal" +
              (counts.quiet ? ", " + std::to_string(counts.quiet) + " refused by guards" : ""));
  }

  void must_not_fire() {
    const Json* base = rule_.verify.cases.empty() ? nullptr : rule_.verify.cases[0].json;
    for (const auto& c : rule_.verify.must_not_fire) {
      size_t built = 0;
      std::string failure, skipped, why_quiet;
      for (size_t v = 0; v < variants_.size() && failure.empty(); ++v) {
        const Variant& variant = variants_[v];
        if (!fits(variant, base, c.json) || !concerns(variant, c.json)) continue;
        Choices usual;
        CaseSetup setup{&variant,
                        base,
                        c.json,
                        operator_choices(variant, false)[0],
                        {},
                        TN_FLOAT32,
                        base ? nullptr : &usual,
                        {}};
        const Attempt a = attempt(setup, seed(0), false, false);
        if (a.result == Result::NotBuilt) {
          skipped = a.text;  // a change that makes no valid graph cannot be rewritten either
          continue;
        }
        ++built;
        if (a.result == Result::Fired) failure = "it fired" + in_brackets(form(v), "");
        why_quiet = a.text;
      }
      say("must not fire: " + c.why, failure.empty(),
          !failure.empty() ? failure
          : built          ? "did not fire: " + why_quiet
                           : "no graph: " + skipped);
    }
  }

  /// Graphs for the variants that no case made fire.
  void invent() {
    const size_t open = static_cast<size_t>(std::count(proved_.begin(), proved_.end(), false));
    if (open == 0) return;
    const size_t most = std::max<size_t>(rule_.verify.cases.empty() ? 200 : 60, most_invented / 4 / open);
    size_t equal = 0, tried = 0;
    for (size_t v = 0; v < variants_.size() && tried < most_invented; ++v) {
      if (proved_[v]) continue;
      const Variant& variant = variants_[v];
      Random random(seed(v));
      const auto orders = operand_orders(variant, ops_, 8, random);
      const tn_dtype dtype = wished_type(variant);
      auto choices = std::make_shared<Choices>();
      size_t fired = 0;
      for (size_t k = 0; k < most && fired < wanted_of_variant; ++k, ++tried) {
        if (k == depth_first_attempts) choices->draw(seed(v + 17));
        CaseSetup setup{&variant, nullptr, nullptr,       operator_choices(variant, false)[0],
                        {},       dtype,   choices.get(), {}};
        Attempt a = attempt(setup, seed(k), true);
        if (a.result == Result::Equal) {
          ++fired, ++equal;
          proved_[v] = true;
          if (fired == 1) {
            invented_.emplace(v, std::make_shared<Choices>(*choices));
            for (size_t o = 1; o < orders.size() && a.result != Result::Wrong; ++o) {
              choices->again();
              CaseSetup other{&variant,  nullptr, nullptr,       operator_choices(variant, false)[0],
                              orders[o], dtype,   choices.get(), {}};
              a = attempt(other, seed(k), true);
              if (a.result == Result::Equal) ++equal;
              if (a.result == Result::Quiet)
                return say("invented graphs", false,
                           "it fires with the operands as the pattern has them, but not" +
                               in_brackets(form(v), order_text(variant, orders[o])) + ": " + a.text);
            }
          }
        }
        if (a.result == Result::Wrong)
          return say("invented graphs", false, a.text + in_brackets(form(v), shapes_text(setup, k)));
        if (a.result == Result::Quiet || why_not_[v].empty()) why_not_[v] = a.text;
        if (!choices->next()) choices->draw(seed(v + 17));
      }
    }
    if (equal != 0) say("invented graphs", true, std::to_string(equal) + " graphs equal");
  }

  std::string shapes_text(CaseSetup& setup, size_t k) {
    Shapes shapes;
    if (setup.choices) setup.choices->again();
    attempt(setup, seed(k), true, false, &shapes);
    std::string text;
    for (const auto& [value, dims] : shapes)
      text += (text.empty() ? "" : ", ") + rule_.values[value] + " " + sdk::dims_text(dims);
    return text;
  }

  /// Whatever the rule fires on must come out right: what the cases say, changed in one place.
  void beyond() {
    struct Start {
      size_t variant;
      const Json* base;
      Choices* choices;
    };
    std::vector<Start> starts;
    for (const auto& [v, base] : bases_) starts.push_back({v, base, nullptr});
    for (const auto& [v, choices] : invented_) starts.push_back({v, nullptr, choices.get()});
    if (starts.empty()) return;
    const size_t share = std::max<size_t>(40, most_changes / starts.size());
    Counts counts;
    size_t tried = 0;
    for (const Start& start : starts) {
      if (tried > most_changes) break;
      const Variant& variant = variants_[start.variant];
      const auto run = [&](tn_dtype dtype, const CaseSetup::Change& change, const std::string& text) {
        if (start.choices) start.choices->again();
        CaseSetup setup{&variant, start.base, nullptr,       operator_choices(variant, false)[0],
                        {},       dtype,      start.choices, change};
        const Attempt a = attempt(setup, seed(0), true);
        ++tried;
        if (a.result == Result::Equal)
          ++counts.equal;
        else if (a.result == Result::Quiet)
          ++counts.quiet;
        else
          ++counts.other;
        if (a.result != Result::Wrong) return true;
        say("beyond the cases", false, "with " + text + ": " + a.text + in_brackets(form(start.variant), ""));
        return false;
      };
      Shapes shapes;
      {
        if (start.choices) start.choices->again();
        CaseSetup setup{&variant, start.base, nullptr,       operator_choices(variant, false)[0],
                        {},       TN_FLOAT32, start.choices, {}};
        attempt(setup, seed(0), true, false, &shapes);
      }
      const tn_dtype usual = wished_type(variant);
      const auto all = changes(variant, ops_, start.base, shapes);
      const size_t step = (all.size() + share - 1) / std::max<size_t>(share, 1);
      for (size_t i = 0; i < all.size(); i += std::max<size_t>(step, 1))
        if (!run(usual, all[i], all[i].text)) return;
      for (const tn_dtype dtype : {TN_FLOAT16, TN_FLOAT64, TN_INT32, TN_INT64})
        if (!run(dtype, {}, std::string("type ") + sdk::dtype_name(dtype))) return;
    }
    say("beyond the cases", true,
        std::to_string(tried) + " graphs changed in one place: " + std::to_string(counts.equal) +
            " rewritten and equal, " + std::to_string(counts.quiet) + " refused, " +
            std::to_string(counts.other) + " not valid");
  }

  void summary() {
    const size_t proved = static_cast<size_t>(std::count(proved_.begin(), proved_.end(), true));
    if (proved == 0) {
      std::string why;
      for (const auto& n : variants_[0].nodes)
        if (!ops_.find(n.what->ops[0]))
          return say("proof", false,
                     "nothing was proved: no loaded plugin defines operator '" +
                         std::string(ops_.text(n.what->ops[0])) + "'; load one that does (--plugin)");
      for (const auto& w : why_not_)
        if (!w.empty()) why = w;
      say("proof", false,
          "nothing was proved: no graph of this pattern could be invented that it fires on" +
              (why.empty() ? std::string() : "; the last try: " + why) + "; give \"verify\" cases");
      return;
    }
    if (proved == proved_.size()) return;
    std::string open;
    size_t told = 0;
    for (size_t v = 0; v < proved_.size(); ++v) {
      if (proved_[v] || ++told > 4) continue;
      const std::string name = form(v);
      open += (open.empty() ? "" : "; ") + (name.empty() ? std::string("its only form") : name) +
              (why_not_[v].empty() ? "" : " (" + why_not_[v] + ")");
    }
    if (told > 4) open += "; and " + std::to_string(told - 4) + " more";
    say("variants", true,
        std::to_string(proved) + " of " + std::to_string(proved_.size()) + " proved; never fired: " + open);
  }

  const TestServices& services_;
  const OpCatalog& ops_;
  const RuleSet& rules_;
  const Rule& rule_;
  const std::vector<Variant>& variants_;
  uint64_t seed_;
  const RuleTester::Report& report_;
  bool passed_ = true;
  std::vector<bool> proved_;
  std::vector<std::string> why_not_;
  std::map<size_t, const Json*> bases_;                  // variant -> the first case it fired on
  std::map<size_t, std::shared_ptr<Choices>> invented_;  // variant -> the first graph it fired on
};

}  // namespace

bool RuleTester::test(const Rule& rule, const Report& report) {
  if (!services_.eval) sdk::fail("the host cannot compute: it lacks tenon.eval");
  for (const auto& e : rules_.entries())
    if (e.rule.get() == &rule) return Proof(services_, ops_, rules_, e, seed_, report).run();
  return false;
}

}  // namespace tenon::rules
