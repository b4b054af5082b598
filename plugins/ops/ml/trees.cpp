#include "ml/trees.hpp"

#include <map>

namespace tenon::ops::ml {
namespace {

/// Numbers of `<name>` or, in double, of `<name>_as_tensor`.
std::vector<double> numbers(const Attributes& a, const std::string& name) {
  const auto list = a.get_floats(name);
  if (const tn_tensor* t = a.get_tensor(name + "_as_tensor")) {
    if (!list.empty())
      fail("both attributes '" + name + "' and '" + name + "_as_tensor' are given; expected one");
    const TensorView v(*t);
    std::vector<double> r;
    for (int64_t i = 0, n = v.count(); i < n; ++i) r.push_back(v.float_at(i));
    return r;
  }
  return {list.begin(), list.end()};
}
std::vector<double> tensor_numbers(const Attributes& a, const char* name) {
  const tn_tensor* t = a.get_tensor(name);
  std::vector<double> r;
  if (!t) return r;
  const TensorView v(*t);
  for (int64_t i = 0, n = v.count(); i < n; ++i) r.push_back(v.float_at(i));
  return r;
}
Dims optional_flags(const Attributes& a, size_t count) {
  Dims r = a.get_ints("nodes_missing_value_tracks_true").copy();
  if (r.empty()) r.assign(count, 0);
  require_same_length(r.size(), "nodes_missing_value_tracks_true", count, "nodes_modes");
  return r;
}

Branch branch_named(std::string_view name) {
  constexpr const char* names[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE",    "BRANCH_GT",
                                   "BRANCH_EQ",  "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (name == names[i] && i != static_cast<size_t>(Branch::member)) return static_cast<Branch>(i);
  fail("attribute 'nodes_modes' holds '" + std::string(name) +
       "'; expected LEAF or BRANCH_ with LEQ, LT, GTE, GT, EQ or NEQ");
}

bool holds(const TreeNode& n, double x, const std::vector<double>& members) noexcept {
  if (n.missing_is_true && x != x) return true;
  switch (n.branch) {
    case Branch::leq:
      return x <= n.value;
    case Branch::lt:
      return x < n.value;
    case Branch::gte:
      return x >= n.value;
    case Branch::gt:
      return x > n.value;
    case Branch::eq:
      return x == n.value;
    case Branch::neq:
      return x != n.value;
    case Branch::member: {
      const double* begin = members.data() + n.first;
      return std::find(begin, begin + n.count, x) != begin + n.count;
    }
    case Branch::leaf:
      break;
  }
  return false;
}

}  // namespace

void Forest::evaluate(const double* x, double* scores, double* voted) const noexcept {
  std::fill(scores, scores + targets, 0.0);
  std::fill(voted, voted + targets, 0.0);
  for (size_t root : roots) {
    const TreeNode* n = &nodes[root];
    while (n->branch != Branch::leaf) n = &nodes[holds(*n, x[n->feature], members) ? n->yes : n->no];
    for (size_t i = n->first; i < n->first + n->count; ++i) {
      const Vote& v = votes[i];
      double& score = scores[v.target];
      if (aggregate == Aggregate::sum || aggregate == Aggregate::average)
        score += v.weight;
      else if (voted[v.target] == 0)
        score = v.weight;
      else
        score = aggregate == Aggregate::min ? std::min(score, v.weight) : std::max(score, v.weight);
      voted[v.target] = 1;
    }
  }
  for (int64_t k = 0; k < targets; ++k) {
    if (aggregate == Aggregate::average) scores[k] /= static_cast<double>(roots.size());
    if (!base.empty()) scores[k] += base[static_cast<size_t>(k)];
  }
}

bool Forest::all_weights_positive() const {
  return std::all_of(votes.begin(), votes.end(), [](const Vote& v) { return v.weight >= 0; });
}

void Forest::check(int64_t features) {
  if (!base.empty() && static_cast<int64_t>(base.size()) != targets)
    fail(format("attribute 'base_values' has %zu elements; expected %lld, one for each target", base.size(),
                static_cast<long long>(targets)));
  for (const Vote& v : votes)
    if (v.target < 0 || v.target >= targets)
      fail(format("a leaf votes for target %lld; expected 0 to %lld", static_cast<long long>(v.target),
                  static_cast<long long>(targets - 1)));
  // Depth first from each root, children before parents; a node met again while it is open closes a circle.
  enum : uint8_t { unseen, open, done };
  std::vector<uint8_t> mark(nodes.size(), unseen);
  std::vector<size_t> stack(roots);
  while (!stack.empty()) {
    const size_t at = stack.back();
    const TreeNode& n = nodes[at];
    if (mark[at] != unseen || n.branch == Branch::leaf) {
      mark[at] = done;
      stack.pop_back();
      continue;
    }
    mark[at] = open;
    if (n.feature < 0 || n.feature >= features)
      fail(format("a tree's node asks for feature %lld; X has %lld features",
                  static_cast<long long>(n.feature), static_cast<long long>(features)));
    for (size_t child : {n.yes, n.no}) {
      if (mark[child] == open) fail("the branches of a tree run in a circle");
      if (mark[child] == unseen) stack.push_back(child);
    }
  }
  depth = static_cast<int64_t>(std::ceil(std::log2(static_cast<double>(nodes.size()) + 2)));
}

Forest read_forest(const Attributes& a, const std::string& kind) {
  Forest f;
  const auto trees = a.get_ints("nodes_treeids"), ids = a.get_ints("nodes_nodeids"),
             features = a.get_ints("nodes_featureids"), yes = a.get_ints("nodes_truenodeids"),
             no = a.get_ints("nodes_falsenodeids");
  const auto modes = a.get_strings("nodes_modes");
  const auto values = numbers(a, "nodes_values");
  if (modes.empty()) fail("attribute 'nodes_modes' is missing: the ensemble has no nodes");
  require_same_length(trees.size(), "nodes_treeids", modes.size(), "nodes_modes");
  require_same_length(ids.size(), "nodes_nodeids", modes.size(), "nodes_modes");
  require_same_length(features.size(), "nodes_featureids", modes.size(), "nodes_modes");
  require_same_length(yes.size(), "nodes_truenodeids", modes.size(), "nodes_modes");
  require_same_length(no.size(), "nodes_falsenodeids", modes.size(), "nodes_modes");
  require_same_length(values.size(), "nodes_values", modes.size(), "nodes_modes");
  const Dims missing = optional_flags(a, modes.size());

  using Key = std::pair<int64_t, int64_t>;
  std::map<Key, size_t> place;
  std::map<int64_t, size_t> root;  // a tree's first node
  for (size_t i = 0; i < modes.size(); ++i) {
    if (!place.emplace(Key(trees[i], ids[i]), i).second)
      fail(format("node %lld of tree %lld is given twice", static_cast<long long>(ids[i]),
                  static_cast<long long>(trees[i])));
    root.emplace(trees[i], i);
  }
  const auto find = [&](int64_t tree, int64_t id, const char* what) {
    const auto at = place.find({tree, id});
    if (at == place.end())
      fail(format("attribute '%s' names node %lld of tree %lld, which is not given", what,
                  static_cast<long long>(id), static_cast<long long>(tree)));
    return at->second;
  };
  for (size_t i = 0; i < modes.size(); ++i) {
    TreeNode n;
    n.branch = branch_named(view(modes[i]));
    n.feature = features[i];
    n.value = values[i];
    n.missing_is_true = missing[i] != 0;
    if (n.branch != Branch::leaf) {
      n.yes = find(trees[i], yes[i], "nodes_truenodeids");
      n.no = find(trees[i], no[i], "nodes_falsenodeids");
    }
    f.nodes.push_back(n);
  }
  for (const auto& [tree, first] : root) f.roots.push_back(first);

  const auto vote_trees = a.get_ints(kind + "_treeids"), vote_nodes = a.get_ints(kind + "_nodeids"),
             vote_ids = a.get_ints(kind + "_ids");
  const auto weights = numbers(a, kind + "_weights");
  const std::string weights_name = kind + "_weights";
  require_same_length(vote_trees.size(), (kind + "_treeids").c_str(), weights.size(), weights_name.c_str());
  require_same_length(vote_nodes.size(), (kind + "_nodeids").c_str(), weights.size(), weights_name.c_str());
  require_same_length(vote_ids.size(), (kind + "_ids").c_str(), weights.size(), weights_name.c_str());
  std::vector<std::pair<size_t, size_t>>
      order;  // node, vote: the votes of a node stand together, in their order
  const std::string nodes_name = kind + "_nodeids";
  for (size_t i = 0; i < weights.size(); ++i)
    order.emplace_back(find(vote_trees[i], vote_nodes[i], nodes_name.c_str()), i);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  for (const auto& [node, i] : order) {
    TreeNode& n = f.nodes[node];
    if (n.branch != Branch::leaf) continue;  // only leaves are counted
    if (n.count++ == 0) n.first = f.votes.size();
    f.votes.push_back({vote_ids[i], weights[i]});
  }
  f.base = numbers(a, "base_values");
  return f;
}

Forest read_ensemble(const Attributes& a) {
  Forest f;
  const auto features = a.get_ints("nodes_featureids"), yes = a.get_ints("nodes_truenodeids"),
             no = a.get_ints("nodes_falsenodeids"), yes_leaf = a.get_ints("nodes_trueleafs"),
             no_leaf = a.get_ints("nodes_falseleafs"), targets = a.get_ints("leaf_targetids"),
             roots = a.get_ints("tree_roots");
  const auto modes = tensor_numbers(a, "nodes_modes"), splits = tensor_numbers(a, "nodes_splits"),
             weights = tensor_numbers(a, "leaf_weights");
  f.members = tensor_numbers(a, "membership_values");
  const size_t count = modes.size();
  require_same_length(features.size(), "nodes_featureids", count, "nodes_modes");
  require_same_length(splits.size(), "nodes_splits", count, "nodes_modes");
  require_same_length(yes.size(), "nodes_truenodeids", count, "nodes_modes");
  require_same_length(no.size(), "nodes_falsenodeids", count, "nodes_modes");
  require_same_length(yes_leaf.size(), "nodes_trueleafs", count, "nodes_modes");
  require_same_length(no_leaf.size(), "nodes_falseleafs", count, "nodes_modes");
  require_same_length(targets.size(), "leaf_targetids", weights.size(), "leaf_weights");
  const Dims missing = optional_flags(a, count);
  // Leaves stand behind the nodes.
  const auto child = [&](int64_t to, bool leaf, const char* name) {
    const size_t limit = leaf ? weights.size() : count;
    if (to < 0 || static_cast<size_t>(to) >= limit)
      fail(format("attribute '%s' holds %lld; there are %zu %s", name, static_cast<long long>(to), limit,
                  leaf ? "leaves" : "nodes"));
    return static_cast<size_t>(to) + (leaf ? count : 0);
  };
  size_t member = 0;
  for (size_t i = 0; i < count; ++i) {
    TreeNode n;
    if (!(modes[i] >= 0 && modes[i] <= static_cast<double>(Branch::member)))
      fail(format("attribute 'nodes_modes' holds %g; expected 0 to 6", modes[i]));
    n.branch = static_cast<Branch>(static_cast<int>(modes[i]));
    n.feature = features[i];
    n.value = splits[i];
    n.missing_is_true = missing[i] != 0;
    n.yes = child(yes[i], yes_leaf[i] != 0, "nodes_truenodeids");
    n.no = child(no[i], no_leaf[i] != 0, "nodes_falsenodeids");
    if (n.branch == Branch::member) {  // its set runs up to the next NaN
      if (member >= f.members.size())
        fail("attribute 'membership_values' has fewer sets than there are membership tests");
      n.first = member;
      while (member < f.members.size() && f.members[member] == f.members[member]) ++member;
      n.count = member++ - n.first;
    }
    f.nodes.push_back(n);
  }
  for (size_t i = 0; i < weights.size(); ++i) {
    TreeNode leaf;
    leaf.first = i;
    leaf.count = 1;
    f.nodes.push_back(leaf);
    f.votes.push_back({targets[i], weights[i]});
  }
  if (roots.empty()) fail("attribute 'tree_roots' is empty: the ensemble has no tree");
  for (int64_t r : roots) f.roots.push_back(child(r, false, "tree_roots"));
  return f;
}

}  // namespace tenon::ops::ml
