#include "prove/prove.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "prove/prove_graph.hpp"

namespace tenon::rules {
namespace {

struct Outputs {
  std::vector<sdk::OwnedTensor> tensors;
  std::string failure;
  bool unsupported = false;
};

Outputs run(const TestServices& s, const CaseGraph& g) {
  Outputs out;
  std::vector<tn_tensor> in;
  for (const auto& t : g.inputs()) in.push_back(t.raw());
  sdk::DiagBuffer said;
  const tn_status status = s.eval->run(
      s.host, g.raw(), in.data(), static_cast<uint32_t>(in.size()),
      [](void* context, uint32_t index, const tn_tensor* t) {
        auto& list = *static_cast<std::vector<sdk::OwnedTensor>*>(context);
        if (list.size() <= index) list.resize(index + 1);
        list[index] = sdk::OwnedTensor(*t);
      },
      &out.tensors, said.raw());
  out.unsupported = status == TN_ERR_UNSUPPORTED;
  if (status != TN_OK) out.failure = said.text().empty() ? "the host could not run it" : said.text();
  return out;
}

/// Empty when equal within the tolerance.
std::string compare(const sdk::OwnedTensor& wanted, const sdk::OwnedTensor& got, const Tolerance& t) {
  if (wanted.dims() != got.dims())
    return "shape " + sdk::dims_text(got.dims()) + " instead of " + sdk::dims_text(wanted.dims());
  if (wanted.dtype() != got.dtype())
    return std::string("type ") + sdk::dtype_name(got.dtype()) + " instead of " +
           sdk::dtype_name(wanted.dtype());
  const auto a = wanted.view(), b = got.view();
  double dot = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double x = a.float_at(i), y = b.float_at(i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y) {
      dot += x * y, aa += x * x, bb += y * y;
      continue;
    }
    if (!(std::fabs(x - y) <= t.atol + t.rtol * std::fabs(x)))
      return sdk::format("element %lld is %.9g instead of %.9g (rtol %g, atol %g)", static_cast<long long>(i),
                         y, x, t.rtol, t.atol);
    if (t.max_ulp >= 0 && wanted.dtype() == TN_FLOAT32) {
      int32_t u = 0, v = 0;
      std::memcpy(&u, wanted.data<float>() + i, 4);
      std::memcpy(&v, got.data<float>() + i, 4);
      const double ulp = std::fabs(static_cast<double>(u < 0 ? INT32_MIN - static_cast<int64_t>(u) : u) -
                                   static_cast<double>(v < 0 ? INT32_MIN - static_cast<int64_t>(v) : v));
      if (ulp > t.max_ulp)
        return sdk::format("element %lld differs by %.0f units in the last place, %g allowed",
                           static_cast<long long>(i), ulp, t.max_ulp);
    }
    dot += x * y, aa += x * x, bb += y * y;
  }
  if (t.cos >= 0 && aa > 0 && bb > 0 && dot / std::sqrt(aa * bb) < t.cos)
    return sdk::format("cosine %.7g is below %g", dot / std::sqrt(aa * bb), t.cos);
  return {};
}

/// Keeps the reasons of one engine run.
class Reasons : public EngineListener {
 public:
  void explain(const tn_explain_record& r) override {
    if (r.reason == TN_REASON_APPLIED || r.reason == TN_REASON_SWITCH) return;
    last = r.reason;
    text = sdk::text(r.expr) + (r.got.size ? ": " + sdk::text(r.got) : "") +
           (r.hint.size ? " -- " + sdk::text(r.hint) : "");
  }
  uint32_t last = TN_REASON_COUNT;
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

}  // namespace

bool RuleTester::test(const Rule& rule, const Report& report) {
  if (!services_.eval) sdk::fail("the host cannot compute: it lacks tenon.eval");
  const RuleSet::Entry* entry = nullptr;
  for (const auto& e : rules_.entries())
    if (e.rule.get() == &rule) entry = &e;
  if (!entry) return false;
  if (rule.verify.cases.empty()) {
    report("-", true, "no verify cases: nothing was proved");
    return true;
  }
  bool all_passed = true;
  const auto one = [&](const std::string& name, const VerifyCase& base, const VerifyCase* negative,
                       tn_dtype dtype, const Tolerance& tolerance, int64_t trials) {
    size_t fired = 0, built = 0, quiet = 0;
    std::string failure, skipped, why_quiet;
    for (const auto& v : entry->variants) {
      const Json* overlay = negative ? negative->json : nullptr;
      if (!failure.empty() || !fits(v, base.json, overlay) || !concerns(v, overlay)) continue;
      // Every operator of a list is tried by itself; the others stay at their first.
      std::vector<std::vector<size_t>> choices{std::vector<size_t>(v.nodes.size(), 0)};
      for (size_t n = 0; n < v.nodes.size() && !negative; ++n)
        for (size_t o = 1; o < v.nodes[n].what->ops.size(); ++o) {
          choices.push_back(choices[0]);
          choices.back()[n] = o;
        }
      for (const auto& choice : choices)
        for (int64_t trial = 0; trial < trials && failure.empty(); ++trial) {
          CaseSetup setup{&v, base.json, overlay, choice, trial % 2 == 1, dtype};
          Random random(seed_ * 1000003u + static_cast<uint64_t>(rule.verify.seed) * 7919u +
                        static_cast<uint64_t>(trial));
          CaseGraph g(services_, ops_);
          const std::string why = g.build(setup, random);
          if (!why.empty()) {
            if (negative)
              skipped = why;  // a change that makes no valid graph cannot be rewritten either
            else
              failure = why;
            break;
          }
          ++built;
          Outputs before;
          if (!negative) {
            before = run(services_, g);
            if (before.unsupported) {
              skipped = before.failure;
              break;
            }
            if (!before.failure.empty()) {
              failure = "the pattern does not run: " + before.failure;
              break;
            }
          }
          const GraphAccess access(services_.graph, services_.symbols, g.raw());
          Reasons reasons;
          EngineOptions options;
          options.only_rule = rule.name;
          options.detailed = true;
          Engine engine(access, ops_, rules_, {services_.host, services_.edit, services_.registry}, reasons,
                        options);
          engine.run();
          if (engine.applied() == 0) {
            ++quiet;
            why_quiet = reasons.text;
            continue;
          }
          ++fired;
          if (negative) {
            failure = "it fired";
            break;
          }
          const Outputs after = run(services_, g);
          if (!after.failure.empty())
            failure = "the rewritten graph does not run: " + after.failure;
          else if (after.tensors.size() != before.tensors.size())
            failure = "the rewritten graph has another number of results";
          for (size_t i = 0; i < before.tensors.size() && failure.empty(); ++i) {
            failure = compare(before.tensors[i], after.tensors[i], tolerance);
            if (!failure.empty())
              failure = "result " + std::to_string(i) + ", trial " + std::to_string(trial) + ": " + failure;
          }
        }
    }
    bool passed = failure.empty();
    std::string text = failure;
    if (passed && negative) {
      text = built ? "did not fire: " + why_quiet : "no graph: " + skipped;
    } else if (passed && built == 0 && skipped.empty()) {
      passed = false;
      text = "no variant of the pattern fits the case";
    } else if (passed && fired == 0 && !skipped.empty()) {
      text = "skipped: " + skipped;
    } else if (passed && fired == 0) {
      passed = false;
      text = "it did not fire: " + why_quiet;
    } else if (passed) {
      text = std::to_string(fired) + " graphs equal" +
             (quiet ? ", " + std::to_string(quiet) + " refused by guards" : "");
    }
    report(name, passed, text);
    all_passed = all_passed && passed;
  };
  auto tolerances = rule.verify.tolerance;
  if (tolerances.empty()) tolerances.emplace_back(TN_FLOAT32, Tolerance{});
  for (const auto& [dtype, tolerance] : tolerances)
    for (size_t i = 0; i < rule.verify.cases.size(); ++i) {
      const bool plain = dtype == TN_FLOAT32;
      if (!plain && i > 0) break;  // other types: the first case once
      one("case " + std::to_string(i + 1) + (plain ? "" : std::string(" ") + sdk::dtype_name(dtype)),
          rule.verify.cases[i], nullptr, dtype, tolerance, plain ? rule.verify.trials : 1);
    }
  for (const auto& c : rule.verify.must_not_fire)
    one("must not fire: " + c.why, rule.verify.cases[0], &c, TN_FLOAT32, {}, 1);
  return all_passed;
}

}  // namespace tenon::rules
