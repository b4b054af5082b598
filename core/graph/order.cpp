// The order of a region's nodes: a linked list with labels, kept topological.
//
// An insertion takes a label between its neighbours'; where there is no room, the labels of a neighbourhood
// are spread anew (amortised O(log n)). After edits only the uses that changed are looked at: a producer that
// comes too late is moved, with those nodes between that it depends on, before its user (the backward half of
// Pearce and Kelly, "A dynamic topological sort algorithm for directed acyclic graphs", 2006). A whole region
// is sorted (Kahn) after a build only.
#include <algorithm>
#include <queue>

#include "core/graph/graph.hpp"
#include "core/graph/order.hpp"

namespace tenon {

namespace {
constexpr uint64_t label_gap = uint64_t(1) << 32;
constexpr uint64_t step_after_previous = 1024;  // leaves most of a gap for what follows in the same place
}  // namespace

void Graph::link(tn_node id, tn_region region_id, tn_node before) {
  Region& region = regions_[region_id];
  const tn_node after = before == TN_NONE ? region.last : nodes_[before].previous;
  Node& node = nodes_[id];
  node.region_id = region_id;
  node.previous = after;
  node.next = before;
  (after == TN_NONE ? region.first : nodes_[after].next) = id;
  (before == TN_NONE ? region.last : nodes_[before].previous) = id;
  ++region.node_count;
  region.snapshot_valid = false;

  const uint64_t low = after == TN_NONE ? 0 : nodes_[after].label;
  if (before == TN_NONE) {
    if (low < UINT64_MAX - label_gap) {
      node.label = low + label_gap;
      return;
    }
  } else {
    const uint64_t gap = nodes_[before].label - low;
    if (gap > 1) {
      node.label = low + std::max<uint64_t>(1, std::min(gap / 2, step_after_previous));
      return;
    }
  }
  relabel_around(id);
}

void Graph::unlink(tn_node id) {
  Node& node = nodes_[id];
  Region& region = regions_[node.region_id];
  (node.previous == TN_NONE ? region.first : nodes_[node.previous].next) = node.next;
  (node.next == TN_NONE ? region.last : nodes_[node.next].previous) = node.previous;
  node.previous = node.next = TN_NONE;
  --region.node_count;
  region.snapshot_valid = false;
}

// Widens a window about the node until its labels have room, then spreads them evenly.
void Graph::relabel_around(tn_node id) {
  tn_node left = nodes_[id].previous, right = nodes_[id].next;
  uint64_t count = 1;
  for (uint64_t wanted = 16;; wanted *= 2) {
    while (count < wanted && (left != TN_NONE || right != TN_NONE)) {
      if (left != TN_NONE) {
        left = nodes_[left].previous;
        ++count;
      }
      if (right != TN_NONE) {
        right = nodes_[right].next;
        ++count;
      }
    }
    const uint64_t low = left == TN_NONE ? 0 : nodes_[left].label;
    const uint64_t high = right == TN_NONE ? UINT64_MAX : nodes_[right].label;
    const uint64_t step = std::min((high - low) / (count + 1), label_gap);
    const bool whole = left == TN_NONE && right == TN_NONE;
    if (step < step_after_previous * 4 && !whole) continue;
    uint64_t label = low;
    tn_node at = left == TN_NONE ? regions_[nodes_[id].region_id].first : nodes_[left].next;
    for (; at != right; at = nodes_[at].next) nodes_[at].label = label += step;
    return;
  }
}

std::span<const tn_node> Graph::nodes(tn_region id) const {
  Region& region = regions_[id];
  if (!region.snapshot_valid) {
    region.snapshot.clear();
    region.snapshot.reserve(region.node_count);
    for (tn_node node = region.first; node != TN_NONE; node = nodes_[node].next)
      region.snapshot.push_back(node);
    region.snapshot_valid = true;
  }
  return region.snapshot;
}

tn_node Graph::owner_within(tn_region outer, tn_region inner) const {
  tn_node owner = TN_NONE;
  while (inner != outer) {
    owner = regions_[inner].parent;
    if (owner == TN_NONE) return TN_NONE;
    inner = nodes_[owner].region_id;
  }
  return owner;
}

bool Graph::is_visible(tn_region definition, tn_region user) const {
  while (user != definition) {
    const tn_node parent = regions_[user].parent;
    if (parent == TN_NONE) return false;
    user = nodes_[parent].region_id;
  }
  return true;
}

// Every producer comes before the nodes that use its results, captures counted as the owner's uses.
bool Graph::order_holds(tn_region id) const {
  for (tn_node node = regions_[id].first; node != TN_NONE; node = nodes_[node].next)
    for (const tn_value output : nodes_[node].outputs()) {
      if (output == TN_NONE) continue;
      for (const tn_use& use : users(output)) {
        const tn_node user = user_within(*this, id, use);
        if (user != TN_NONE && nodes_[user].label <= nodes_[node].label) return false;
      }
    }
  return true;
}

// Kahn's algorithm, taking the ready node that came first, so that what was in order keeps its order.
bool Graph::sort_region(tn_region id, std::vector<tn_node>& cycle) {
  const std::span<const tn_node> snapshot = nodes(id);
  const std::vector<tn_node> before(snapshot.begin(), snapshot.end());
  std::unordered_map<tn_node, uint32_t> position;
  position.reserve(before.size());
  for (uint32_t i = 0; i < before.size(); ++i) position.emplace(before[i], i);
  std::vector<uint32_t> waiting(before.size(), 0);
  const auto for_each_user = [&](tn_node node, auto&& visit) {
    for (const tn_value output : nodes_[node].outputs()) {
      if (output == TN_NONE) continue;
      for (const tn_use& use : users(output))
        if (const tn_node user = user_within(*this, id, use); user != TN_NONE) visit(position.at(user));
    }
  };
  for (const tn_node node : before) for_each_user(node, [&](uint32_t user) { ++waiting[user]; });
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> ready;
  for (uint32_t i = 0; i < before.size(); ++i)
    if (waiting[i] == 0) ready.push(i);
  std::vector<tn_node> order;
  order.reserve(before.size());
  while (!ready.empty()) {
    const uint32_t next = ready.top();
    ready.pop();
    order.push_back(before[next]);
    for_each_user(before[next], [&](uint32_t user) {
      if (--waiting[user] == 0) ready.push(user);
    });
  }
  if (order.size() == before.size()) {
    for (const tn_node node : order) move_node(node, id, TN_NONE);
    return true;
  }
  // Every node left waits for one that is left: walking back must come round.
  uint32_t start = 0;
  while (waiting[start] == 0) ++start;
  std::unordered_map<tn_node, size_t> seen;
  std::vector<tn_node> path;
  for (tn_node at = before[start]; seen.emplace(at, path.size()).second;) {
    path.push_back(at);
    tn_node back = TN_NONE;
    for_each_predecessor(*this, at, [&](tn_node predecessor) {
      if (back == TN_NONE && waiting[position.at(predecessor)] != 0) back = predecessor;
    });
    if (back == TN_NONE) break;
    at = back;
    if (const auto round = seen.find(at); round != seen.end()) {
      cycle.assign(path.begin() + static_cast<ptrdiff_t>(round->second), path.end());
      break;
    }
  }
  std::reverse(cycle.begin(), cycle.end());
  return false;
}

// Moves the producer, and what it needs of the nodes between, to before its user. False: there is a cycle.
bool Graph::bring_before(tn_node producer, tn_node user, std::vector<tn_node>& cycle) {
  const uint64_t limit = nodes_[user].label;
  std::unordered_map<tn_node, tn_node> reached{{producer, TN_NONE}};  // and through whom
  std::vector<tn_node> open{producer}, moved;
  bool cyclic = producer == user;
  if (cyclic) cycle.assign(1, user);
  while (!open.empty() && !cyclic) {
    const tn_node at = open.back();
    open.pop_back();
    moved.push_back(at);
    for_each_predecessor(*this, at, [&](tn_node predecessor) {
      if (cyclic || nodes_[predecessor].label < limit) return;
      if (!reached.emplace(predecessor, at).second) return;
      if (predecessor == user) {
        cyclic = true;
        for (tn_node step = user; step != TN_NONE; step = reached.at(step)) cycle.push_back(step);
        return;
      }
      open.push_back(predecessor);
    });
  }
  if (cyclic) return false;
  std::sort(moved.begin(), moved.end(),
            [&](tn_node a, tn_node b) { return nodes_[a].label < nodes_[b].label; });
  for (const tn_node node : moved) move_node(node, nodes_[user].region_id, user);
  return true;
}

}  // namespace tenon
