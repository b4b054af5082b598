// The graph as Boost.Graph sees it: VertexListGraph, BidirectionalGraph, EdgeListGraph, AdjacencyMatrix and
// readable property maps, over the flat arrays. No copy is made.
//
// Vertices are node ids below node_bound(), tombstones included: algorithms size their arrays by
// num_vertices. Erased nodes have no edges; an algorithm that counts vertices wants a compacted snapshot. An
// edge is one use of one result: parallel edges exist. A use inside a nested region is an edge to that nested
// node.
#pragma once
#include <boost/graph/adjacency_iterator.hpp>
#include <boost/graph/graph_traits.hpp>
#include <boost/graph/properties.hpp>
#include <boost/iterator/counting_iterator.hpp>
#include <boost/iterator/iterator_facade.hpp>
#include <boost/property_map/property_map.hpp>
#include <utility>

#include "core/graph/graph.hpp"

namespace tenon {

struct GraphView {
  const Graph* graph = nullptr;
};

struct UseEdge {
  tn_node from = TN_NONE, to = TN_NONE;
  uint32_t output = 0;  // result number of `from`
  uint32_t input = 0;   // operand number of `to`
  bool operator==(const UseEdge&) const = default;
  auto operator<=>(const UseEdge&) const = default;
};

class OutEdgeIterator
    : public boost::iterator_facade<OutEdgeIterator, UseEdge, boost::forward_traversal_tag, UseEdge> {
 public:
  OutEdgeIterator() = default;
  OutEdgeIterator(const Graph& graph, tn_node node, bool at_end) : graph_(&graph), node_(node) {
    output_ = at_end ? output_count() : 0;
    settle();
  }

 private:
  friend class boost::iterator_core_access;
  uint32_t output_count() const { return graph_->node(node_).alive ? graph_->node(node_).output_count : 0; }
  std::span<const tn_use> uses() const {
    const tn_value value = graph_->node(node_).output(output_);
    return value == TN_NONE ? std::span<const tn_use>() : graph_->users(value);
  }
  // Past outputs without uses, and past uses that are outputs of a region.
  void settle() {
    for (; output_ < output_count(); ++output_, use_ = 0) {
      const auto all = uses();
      while (use_ < all.size() && all[use_].node == TN_NONE) ++use_;
      if (use_ < all.size()) return;
    }
    use_ = 0;
  }
  void increment() {
    ++use_;
    settle();
  }
  bool equal(const OutEdgeIterator& other) const {
    return node_ == other.node_ && output_ == other.output_ && use_ == other.use_;
  }
  UseEdge dereference() const {
    const tn_use& use = uses()[use_];
    return {node_, use.node, output_, use.index};
  }
  const Graph* graph_ = nullptr;
  tn_node node_ = TN_NONE;
  uint32_t output_ = 0, use_ = 0;
};

class InEdgeIterator
    : public boost::iterator_facade<InEdgeIterator, UseEdge, boost::forward_traversal_tag, UseEdge> {
 public:
  InEdgeIterator() = default;
  InEdgeIterator(const Graph& graph, tn_node node, bool at_end) : graph_(&graph), node_(node) {
    input_ = at_end ? input_count() : 0;
    settle();
  }

 private:
  friend class boost::iterator_core_access;
  uint32_t input_count() const { return graph_->node(node_).alive ? graph_->node(node_).input_count : 0; }
  void settle() {
    for (; input_ < input_count(); ++input_) {
      const tn_value value = graph_->node(node_).input(input_);
      if (value != TN_NONE && graph_->value(value).kind == TN_VALUE_RESULT) return;
    }
  }
  void increment() {
    ++input_;
    settle();
  }
  bool equal(const InEdgeIterator& other) const { return node_ == other.node_ && input_ == other.input_; }
  UseEdge dereference() const {
    const Value& value = graph_->value(graph_->node(node_).input(input_));
    return {value.producer, node_, value.index, input_};
  }
  const Graph* graph_ = nullptr;
  tn_node node_ = TN_NONE;
  uint32_t input_ = 0;
};

class EdgeIterator
    : public boost::iterator_facade<EdgeIterator, UseEdge, boost::forward_traversal_tag, UseEdge> {
 public:
  EdgeIterator() = default;
  EdgeIterator(const Graph& graph, tn_node node) : graph_(&graph), node_(node) { settle(); }

 private:
  friend class boost::iterator_core_access;
  void settle() {
    for (; node_ < graph_->node_bound(); ++node_) {
      at_ = OutEdgeIterator(*graph_, node_, false);
      end_ = OutEdgeIterator(*graph_, node_, true);
      if (at_ != end_) return;
    }
    at_ = end_ = OutEdgeIterator();
  }
  void increment() {
    if (++at_ != end_) return;
    ++node_;
    settle();
  }
  bool equal(const EdgeIterator& other) const { return node_ == other.node_ && at_ == other.at_; }
  UseEdge dereference() const { return *at_; }
  const Graph* graph_ = nullptr;
  tn_node node_ = TN_NONE;
  OutEdgeIterator at_, end_;
};

struct GraphViewTraversal : virtual boost::vertex_list_graph_tag,
                            virtual boost::bidirectional_graph_tag,
                            virtual boost::edge_list_graph_tag,
                            virtual boost::adjacency_graph_tag,
                            virtual boost::adjacency_matrix_tag {};

}  // namespace tenon

namespace boost {
template <>
struct graph_traits<tenon::GraphView> {
  using vertex_descriptor = tn_node;
  using edge_descriptor = tenon::UseEdge;
  using directed_category = bidirectional_tag;
  using edge_parallel_category = allow_parallel_edge_tag;
  using traversal_category = tenon::GraphViewTraversal;
  using vertices_size_type = uint32_t;
  using edges_size_type = uint64_t;
  using degree_size_type = uint32_t;
  using vertex_iterator = counting_iterator<tn_node>;
  using out_edge_iterator = tenon::OutEdgeIterator;
  using in_edge_iterator = tenon::InEdgeIterator;
  using edge_iterator = tenon::EdgeIterator;
  using adjacency_iterator =
      boost::adjacency_iterator_generator<tenon::GraphView, tn_node, out_edge_iterator>::type;
  static vertex_descriptor null_vertex() { return TN_NONE; }
};
template <>
struct property_map<tenon::GraphView, vertex_index_t> {
  using type = typed_identity_property_map<tn_node>;
  using const_type = type;
};
}  // namespace boost

namespace tenon {

using GraphViewTraits = boost::graph_traits<GraphView>;

inline tn_node source(const UseEdge& edge, const GraphView&) { return edge.from; }
inline tn_node target(const UseEdge& edge, const GraphView&) { return edge.to; }
inline std::pair<GraphViewTraits::vertex_iterator, GraphViewTraits::vertex_iterator> vertices(
    const GraphView& view) {
  return {GraphViewTraits::vertex_iterator(0), GraphViewTraits::vertex_iterator(view.graph->node_bound())};
}
inline uint32_t num_vertices(const GraphView& view) { return view.graph->node_bound(); }
inline std::pair<OutEdgeIterator, OutEdgeIterator> out_edges(tn_node node, const GraphView& view) {
  return {OutEdgeIterator(*view.graph, node, false), OutEdgeIterator(*view.graph, node, true)};
}
inline std::pair<InEdgeIterator, InEdgeIterator> in_edges(tn_node node, const GraphView& view) {
  return {InEdgeIterator(*view.graph, node, false), InEdgeIterator(*view.graph, node, true)};
}
inline std::pair<EdgeIterator, EdgeIterator> edges(const GraphView& view) {
  return {EdgeIterator(*view.graph, 0), EdgeIterator(*view.graph, view.graph->node_bound())};
}
inline uint32_t out_degree(tn_node node, const GraphView& view) {
  const auto [first, last] = out_edges(node, view);
  return static_cast<uint32_t>(std::distance(first, last));
}
inline uint32_t in_degree(tn_node node, const GraphView& view) {
  const auto [first, last] = in_edges(node, view);
  return static_cast<uint32_t>(std::distance(first, last));
}
inline uint32_t degree(tn_node node, const GraphView& view) {
  return in_degree(node, view) + out_degree(node, view);
}
inline uint64_t num_edges(const GraphView& view) {
  uint64_t count = 0;
  for (tn_node node = 0; node < view.graph->node_bound(); ++node) count += out_degree(node, view);
  return count;
}
inline std::pair<GraphViewTraits::adjacency_iterator, GraphViewTraits::adjacency_iterator> adjacent_vertices(
    tn_node node, const GraphView& view) {
  const auto [first, last] = out_edges(node, view);
  return {GraphViewTraits::adjacency_iterator(first, &view),
          GraphViewTraits::adjacency_iterator(last, &view)};
}
inline std::pair<UseEdge, bool> edge(tn_node from, tn_node to, const GraphView& view) {
  for (auto [at, end] = out_edges(from, view); at != end; ++at)
    if ((*at).to == to) return {*at, true};
  return {UseEdge{}, false};
}
inline boost::typed_identity_property_map<tn_node> get(boost::vertex_index_t, const GraphView&) { return {}; }
inline tn_node get(boost::vertex_index_t, const GraphView&, tn_node node) { return node; }

}  // namespace tenon
