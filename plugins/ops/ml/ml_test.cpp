// Models of ai.onnx.ml that contradict themselves or their operands are refused by name, before or in the
// run.
#include <catch2/catch.hpp>

#include "support/test_harness.hpp"

namespace tenon::reference::test {
namespace {

Attr floats(std::string name, std::vector<double> v) {
  Attr a;
  a.name = std::move(name);
  a.kind = TN_ATTR_FLOATS;
  a.floats = std::move(v);
  return a;
}
Attr strings(std::string name, std::vector<std::string> v) {
  Attr a;
  a.name = std::move(name);
  a.kind = TN_ATTR_STRINGS;
  a.strings = std::move(v);
  return a;
}
Attr ints(std::string name, std::vector<int64_t> v) { return attr(std::move(name), std::move(v)); }

/// One tree: a node that asks for feature 0, and two leaves.
std::vector<Attr> stump() {
  return {ints("nodes_treeids", {0, 0, 0}),
          ints("nodes_nodeids", {0, 1, 2}),
          ints("nodes_featureids", {0, 0, 0}),
          floats("nodes_values", {0.5, 0, 0}),
          strings("nodes_modes", {"BRANCH_LEQ", "LEAF", "LEAF"}),
          ints("nodes_truenodeids", {1, 0, 0}),
          ints("nodes_falsenodeids", {2, 0, 0}),
          ints("target_treeids", {0, 0}),
          ints("target_nodeids", {1, 2}),
          ints("target_ids", {0, 0}),
          floats("target_weights", {10, 20})};
}
Outcome trees(const Attr& changed) {
  auto attrs = stump();
  bool found = false;
  for (auto& a : attrs)
    if (a.name == changed.name) {
      a = changed;
      found = true;
    }
  if (!found) attrs.push_back(changed);
  return run("ai.onnx.ml::TreeEnsembleRegressor", {f32({2, 1}, {0, 1})}, tensor(TN_FLOAT32, {2, 1}, {0, 0}),
             attrs);
}

}  // namespace

TEST_CASE("trees are walked", "[ml]") {
  const auto o = trees(attr("n_targets", 1));
  REQUIRE(o.code == 0);
  CHECK(numbers(o.outputs[0].tensor) == std::vector<double>{10, 20});
}

TEST_CASE("trees that are none are refused", "[ml]") {
  struct Case {
    Attr changed;
    const char* said;
  };
  const Case cases[] = {
      {ints("nodes_truenodeids", {0, 0, 0}), "run in a circle"},
      {ints("nodes_truenodeids", {7, 0, 0}), "names node 7 of tree 0, which is not given"},
      {ints("nodes_nodeids", {0, 1, 1}), "node 1 of tree 0 is given twice"},
      {ints("nodes_featureids", {1, 0, 0}), "asks for feature 1; X has 1 features"},
      {ints("nodes_featureids", {-1, 0, 0}), "asks for feature -1"},
      {ints("nodes_featureids", {0, 0}), "'nodes_featureids' has 2 elements, 'nodes_modes' has 3"},
      {strings("nodes_modes", {"BRANCH_ABOUT", "LEAF", "LEAF"}), "'BRANCH_ABOUT'"},
      {ints("target_ids", {0, 5}), "votes for target 5; expected 0 to 0"},
      {ints("target_nodeids", {1, 9}), "names node 9"},
      {floats("target_weights", {1}), "'target_weights' has 1"},
      {floats("base_values", {1, 2}), "'base_values' has 2 elements; expected 1"},
      {strings("nodes_modes", {}), "has no nodes"},
  };
  for (const auto& c : cases) {
    const auto o = trees(c.changed);
    INFO(o.said);
    CHECK(o.planned != TN_OK);
    CHECK(o.said.find(c.said) != std::string::npos);
  }
}

TEST_CASE("attributes that do not fit the features are refused", "[ml]") {
  struct Case {
    const char* op;
    std::vector<Attr> attrs;
    const char* said;
  };
  const Case cases[] = {
      {"Scaler", {floats("offset", {1, 2, 3})}, "'offset' has 3 elements; expected 1 or 2"},
      {"Imputer", {}, "'imputed_value_floats' is missing"},
      {"Normalizer", {}, nullptr},
      {"LinearRegressor", {floats("coefficients", {1, 2, 3})}, "expected a multiple of X's 2 features"},
      {"LinearRegressor",
       {floats("coefficients", {1, 2}), floats("intercepts", {1, 2})},
       "'intercepts' has 2 elements"},
      {"SVMRegressor",
       {attr("n_supports", 2), floats("support_vectors", {1, 2, 3})},
       "expected 2 vectors of X's 2"},
      {"SVMRegressor", {floats("coefficients", {1, 2})}, "'rho' has 0 elements"},
      {"SVMRegressor", {floats("kernel_params", {1})}, "expected 3: gamma, coef0, degree"},
  };
  for (const auto& c : cases) {
    const bool same_shape =
        std::string(c.op) == "Scaler" || std::string(c.op) == "Imputer" || std::string(c.op) == "Normalizer";
    const auto o =
        run(std::string("ai.onnx.ml::") + c.op, {f32({3, 2}, {1, 2, 3, 4, 5, 6})},
            tensor(TN_FLOAT32, {3, same_shape ? 2 : 1}, std::vector<double>(same_shape ? 6 : 3, 0)), c.attrs);
    INFO(c.op << ": " << o.said);
    CHECK((o.planned == TN_OK) == (c.said == nullptr));
    if (c.said) CHECK(o.said.find(c.said) != std::string::npos);
  }
}

TEST_CASE("what only the run can know fails it, with the element named", "[ml]") {
  auto o = run("ai.onnx.ml::ArrayFeatureExtractor",
               {f32({1, 3}, {1, 2, 3}), value(tensor(TN_INT64, {1}, {3}))}, tensor(TN_FLOAT32, {1, 1}, {0}));
  CHECK(o.code == run_index_out_of_range);
  CHECK(o.said.find("holds the index 3; expected 0 to 2") != std::string::npos);
  o = run("ai.onnx.ml::OneHotEncoder", {f32({2}, {1, 9})}, tensor(TN_FLOAT32, {2, 1}, {0, 0}),
          {ints("cats_int64s", {1}), attr("zeros", 0)});
  CHECK(o.code == run_bad_operand);
  CHECK(o.said.find("element 1 of operand X is none of the categories") != std::string::npos);
}

TEST_CASE("patterns and pools that are none are refused", "[text]") {
  const auto words = value(text_tensor({2}, {"a", "b"}));
  auto o = run("RegexFullMatch", {words}, tensor(TN_BOOL, {2}, {0, 0}), {attr("pattern", "(")});
  CHECK(o.planned != TN_OK);
  CHECK(o.said.find("no regular expression of RE2: missing )") != std::string::npos);
  const auto grams = [&](std::vector<int64_t> counts, std::vector<int64_t> indexes, int64_t longest) {
    return run("TfIdfVectorizer", {words}, tensor(TN_FLOAT32, {2}, {0, 0}),
               {attr("mode", "TF"), attr("min_gram_length", 1), attr("max_gram_length", longest),
                attr("max_skip_count", 0), ints("ngram_counts", std::move(counts)),
                ints("ngram_indexes", std::move(indexes)), strings("pool_strings", {"a", "b", "c"})});
  };
  CHECK(grams({0, 1}, {0, 1}, 2).planned == TN_OK);
  CHECK(grams({0, 9}, {0, 1}, 2).said.find("expected whole ones inside it") != std::string::npos);
  CHECK(grams({0, 2}, {0, 1}, 2).said.find("expected whole ones inside it") != std::string::npos);
  CHECK(grams({0}, {0, 1}, 2).said.find("'ngram_indexes' has 2 elements; the pool has 3") !=
        std::string::npos);
  CHECK(grams({0, 1}, {0, 1}, 0).said.find("max_gram_length") != std::string::npos);
}

}  // namespace tenon::reference::test
