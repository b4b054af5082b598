// Which variants may match at a node, told from the operators one and two steps above it: a few bit tests a
// variant, so that the number of rules hardly counts.
#pragma once
#include <array>

#include "match/matcher.hpp"

namespace tenon::rules {

/// A set of the operators that patterns speak of. Beyond 127 of them two may share a bit, which makes a test
/// weaker, never wrong.
class OpSet {
 public:
  static constexpr uint32_t constant = 127;  // stands for a constant operand
  static constexpr uint32_t bit_of(uint32_t number) { return number % constant; }
  void add(uint32_t bit) { words_[bit / 64] |= uint64_t{1} << bit % 64; }
  void add(const OpSet& other) { words_[0] |= other.words_[0], words_[1] |= other.words_[1]; }
  bool has(uint32_t bit) const { return words_[bit / 64] >> bit % 64 & 1; }
  bool meets(const OpSet& other) const {
    return (words_[0] & other.words_[0]) | (words_[1] & other.words_[1]);
  }

 private:
  std::array<uint64_t, 2> words_{};
};

class AnchorIndex {
 public:
  struct Place {
    uint32_t entry, variant;
  };

  explicit AnchorIndex(const GraphAccess& graph) : graph_(graph) {}
  /// In the order in which `at` shall name them.
  void add(uint32_t entry, uint32_t number, const Variant& variant);
  /// The graph changed since the last question.
  void forget() { ++epoch_; }
  /// What may match with its anchor at this node. With `all` that is everything anchored at its operator: for
  /// near misses, which are what this index spares.
  void at(tn_node node, bool all, std::vector<Place>* out);

 private:
  static constexpr uint16_t unknown = UINT16_MAX;
  static constexpr uint32_t most_apart = 8;  // operands of a node looked at one by one; more are merged

  struct Need {                // one operand of the anchor
    OpSet producers;           // its producer is one of these
    std::vector<OpSet> above;  // and has, for each of these, an operand from one of them
  };
  struct Probe {
    Place place;
    bool tree;  // the anchor is a tree of its operator: its leaves may lie deeper
    std::vector<Need> needs;
  };
  struct Seen {  // of a node
    uint32_t epoch = 0;
    OpSet above;  // operators of its operands' producers
  };
  struct Operand {
    OpSet producers, above;
  };

  uint16_t number(tn_sym op);
  OpSet set_of(const std::vector<tn_sym>& ops);
  uint16_t number_of(tn_sym op) const { return op < numbers_.size() ? numbers_[op] : unknown; }
  std::vector<OpSet> wanted_above(const Variant& variant, uint32_t n);
  const OpSet& above(tn_node node, const tn_node_info& info);
  bool may(const Probe& probe) const;

  const GraphAccess& graph_;
  std::vector<uint16_t> numbers_;             // by symbol
  std::vector<std::vector<Probe>> anchored_;  // by number
  uint32_t epoch_ = 1;
  std::vector<Seen> seen_;
  std::vector<Operand> operands_;  // of the node asked about
  OpSet near_;
  uint32_t own_bit_ = 0;
};

}  // namespace tenon::rules
