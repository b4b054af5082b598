// cost.measure: both sides of a match are timed where the user asks for it, and what was chosen is kept in a
// file. Without an answer there the static cost decides, and nothing is timed.
#pragma once
#include "prove/match_copy.hpp"
#include "tenon/abi/choices.h"

namespace tenon::rules {

class Measurer {
 public:
  Measurer(TestServices services, const tn_choices_api* choices, const OpCatalog& ops, const RuleSet& rules,
           const Samples& samples, std::string precision)
      : services_(services),
        choices_(choices),
        ops_(ops),
        rules_(rules),
        samples_(samples),
        precision_(std::move(precision)) {}

  Measured ask(const GraphAccess& graph, const Match& match);

 private:
  static std::string question(const GraphAccess& graph, const Match& match, const OpCatalog& ops,
                              const std::string& precision);
  Measured time(const GraphAccess& graph, const Match& match);

  TestServices services_;
  const tn_choices_api* choices_;  // NULL: no file of choices
  const OpCatalog& ops_;
  const RuleSet& rules_;
  Samples samples_;
  std::string precision_;
  std::vector<std::pair<std::string, std::string>> failed_;  // questions that could not be measured, and why
};

}  // namespace tenon::rules
