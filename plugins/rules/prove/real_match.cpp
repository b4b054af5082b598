#include "prove/real_match.hpp"

#include <algorithm>

#include "prove/compare.hpp"

namespace tenon::rules {

bool RealMatchCheck::wants(uint32_t entry, uint32_t variant) {
  if (mode_ == CheckMode::Off || !services_.eval || !TN_HAS(services_.eval, values)) return false;
  if (mode_ == CheckMode::Auto && rules_.entries()[entry].rule->source->builtin) return false;
  Met& met = met_[entry];
  const uint64_t n = ++met.matches;
  if (std::find(met.variants.begin(), met.variants.end(), variant) == met.variants.end()) {
    met.variants.push_back(variant);
    return true;
  }
  return (n & (n - 1)) == 0;
}

RealMatchCheck::Answer RealMatchCheck::attempt(const GraphAccess& graph, const Match& match,
                                               DimNumbers& numbers) {
  MatchCopy plain(services_);
  if (auto why = plain.build(graph, match, ops_, samples_, numbers); !why.empty()) return {{}, why};
  MatchCopy rewritten(services_);
  if (auto why = rewritten.build_like(graph, match, ops_, plain); !why.empty()) return {{}, why};
  if (!rewritten.rewrite(match, ops_, rules_)) return {{}, "it does not fire on these nodes alone"};
  const std::vector<tn_tensor> in = plain.inputs();
  const auto compute = [&](tn_graph* of) {
    Outputs out;
    tn_region_info region{};
    region.size = sizeof region;
    services_.graph->region(of, 0, &region);
    const std::vector<tn_value> wanted(region.outputs, region.outputs + region.output_count);
    out.tensors.resize(wanted.size());
    sdk::DiagBuffer said;
    const tn_status s = services_.eval->values(
        services_.host, of, in.data(), static_cast<uint32_t>(in.size()), wanted.data(),
        static_cast<uint32_t>(wanted.size()),
        [](void* context, uint32_t index, const tn_tensor* t) {
          (*static_cast<std::vector<sdk::OwnedTensor>*>(context))[index] = sdk::OwnedTensor(*t);
        },
        &out.tensors, said.raw());
    if (s != TN_OK) out.failure = said.text().empty() ? "the host could not run it" : said.text();
    return out;
  };
  const Outputs before = compute(plain.raw());
  if (!before.failure.empty()) return {{}, before.failure};
  return {compare(*match.variant->rule, before, compute(rewritten.raw()), TN_FLOAT32, true), {}};
}

RealMatchCheck::Answer RealMatchCheck::check(const GraphAccess& graph, const Match& match) {
  Answer first;
  for (size_t i = 0; i < DimNumbers::attempts; ++i) {
    DimNumbers numbers(i);
    Answer answer;
    try {
      answer = attempt(graph, match, numbers);
    } catch (const sdk::Failure& e) {
      answer.not_checked = e.what();
    }
    if (answer.not_checked.empty()) return answer;
    if (i == 0) first = answer;
    if (!numbers.used()) break;  // nothing would be different
  }
  return first;
}

}  // namespace tenon::rules
