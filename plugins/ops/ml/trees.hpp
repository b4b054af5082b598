// Decision trees in one form, whichever operator described them.
#pragma once
#include "ml/ml.hpp"

namespace tenon::ops::ml {

enum class Branch : uint8_t { leq, lt, gte, gt, eq, neq, member, leaf };

struct TreeNode {
  Branch branch = Branch::leaf;
  bool missing_is_true = false;
  int64_t feature = 0;
  double value = 0;
  size_t yes = 0, no = 0;       // nodes
  size_t first = 0, count = 0;  // of votes at a leaf; of the members at a membership test
};
struct Vote {
  int64_t target = 0;
  double weight = 0;
};
enum class Aggregate { average, sum, min, max };

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<Vote> votes;
  std::vector<double> members;
  std::vector<size_t> roots;
  Aggregate aggregate = Aggregate::sum;
  int64_t targets = 1;
  std::vector<double> base;  // empty, or one for each target
  int64_t depth = 0;

  /// Scores of all targets; a target without a vote has its base.
  void evaluate(const double* features, double* scores, double* voted) const noexcept;
  bool all_weights_positive() const;
  /// Links, targets and features are inside; no walk runs in a circle.
  void check(int64_t features);
};

/// Nodes as TreeEnsembleRegressor and TreeEnsembleClassifier write them, with their votes (attributes
/// `<votes>_treeids`, `_nodeids`, `_ids`, `_weights`).
Forest read_forest(const Attributes& a, const std::string& votes);
/// As TreeEnsemble writes them.
Forest read_ensemble(const Attributes& a);

}  // namespace tenon::ops::ml
