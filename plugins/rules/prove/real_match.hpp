// Repeats a rule's check at a match in the user's graph: the matched nodes with their real constants, and the
// same rewritten, are computed on the same inputs before the graph is touched.
#pragma once
#include "prove/match_copy.hpp"

namespace tenon::rules {

/// Which matches are checked: 0 none, 1 those of one's own rules, 2 those of all rules; of each rule the
/// first, the second, the fourth, the eighth ..., and the first of every variant.
enum class CheckMode : uint32_t { Off = 0, Auto = 1, Sample = 2 };

class RealMatchCheck {
 public:
  RealMatchCheck(TestServices services, const OpCatalog& ops, const RuleSet& rules, CheckMode mode,
                 const Samples& samples)
      : services_(services), ops_(ops), rules_(rules), mode_(mode), samples_(samples) {}

  /// Counts the match; true when it is one to check.
  bool wants(uint32_t entry, uint32_t variant);
  struct Answer {
    std::string wrong;        // empty: equal, or not computed
    std::string not_checked;  // why it could not be computed
  };
  Answer check(const GraphAccess& graph, const Match& match);

 private:
  Answer attempt(const GraphAccess& graph, const Match& match, DimNumbers& numbers);

  TestServices services_;
  const OpCatalog& ops_;
  const RuleSet& rules_;
  CheckMode mode_;
  Samples samples_;
  struct Met {
    uint64_t matches = 0;
    std::vector<uint32_t> variants;
  };
  std::unordered_map<uint32_t, Met> met_;  // by entry
};

}  // namespace tenon::rules
