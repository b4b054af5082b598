#include "core/graph/boost_adaptor.hpp"

#include <boost/graph/graph_concepts.hpp>
#include <boost/graph/topological_sort.hpp>
#include <catch2/catch.hpp>

#include "core/graph/algorithms.hpp"
#include "core/graph/test_ops.hpp"

using namespace tenon;

BOOST_CONCEPT_ASSERT((boost::VertexListGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::BidirectionalGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::EdgeListGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyGraphConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::AdjacencyMatrixConcept<GraphView>));
BOOST_CONCEPT_ASSERT((boost::ReadablePropertyGraphConcept<GraphView, tn_node, boost::vertex_index_t>));

TEST_CASE("Boost.Graph reads the graph in place") {
  const auto graph = test::small_chain();
  const GraphView view{graph.get()};
  CHECK(num_vertices(view) == 2);
  CHECK(num_edges(view) == 1);
  CHECK(out_degree(0, view) == 1);
  CHECK(in_degree(1, view) == 1);
  CHECK(edge(0, 1, view).second);
  CHECK_FALSE(edge(1, 0, view).second);
  std::vector<tn_node> order;
  boost::topological_sort(view, std::back_inserter(order));
  CHECK(order == std::vector<tn_node>{1, 0});
}

TEST_CASE("Algorithms number components by their smallest vertex") {
  const std::vector<Edge> edges{{4, 3}, {0, 2}, {3, 4}};
  uint32_t count = 0;
  CHECK(weak_components(5, edges, &count) == std::vector<uint32_t>{0, 1, 0, 2, 2});
  CHECK(count == 3);
  CHECK(strong_components(5, edges, &count) == std::vector<uint32_t>{0, 1, 2, 3, 3});
  CHECK(topological_order(5, edges).empty());
  CHECK(find_cycle(5, edges) == std::vector<uint32_t>{3, 4});
  const std::vector<Edge> acyclic{{2, 1}, {1, 0}};
  CHECK(topological_order(3, acyclic) == std::vector<uint32_t>{2, 1, 0});
  CHECK(find_cycle(3, acyclic).empty());
}

TEST_CASE("Algorithms do not recurse along a chain of a million vertices") {
  std::vector<Edge> chain;
  for (uint32_t i = 0; i + 1 < 1000000; ++i) chain.emplace_back(i, i + 1);
  CHECK(topological_order(1000000, chain).size() == 1000000);
  uint32_t count = 0;
  weak_components(1000000, chain, &count);
  CHECK(count == 1);
}
