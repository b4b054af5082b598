// Inference of operators of text, of ai.onnx.ml, of optimisers, and of attention with a state or graphs.
#include "inference_table.hpp"

using namespace tenon::test;

TEST_CASE("text keeps its shape where nothing is dropped") {
  check({
      {"x: string[N,1]; y: string[3]", "StringConcat(x, y)", "string[N,3]"},
      {"x: string[N]", "RegexFullMatch(x) {pattern = \"a+\"}", "bool[N]"},
      {"x: string[4]", "StringNormalizer(x) {case_change_action = \"LOWER\"}", "string[4]"},
      {"x: string[1,4]", "StringNormalizer(x)", "string[1,4]"},
      {"x: string[0]", "StringNormalizer(x)", "string[1]"},
      {"x: int64[N,5]",
       "TfIdfVectorizer(x) {mode = \"TF\", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, "
       "ngram_counts = "
       "[0], ngram_indexes = [1,6], pool_int64s = [1,2]}",
       "float32[N,7]"},
  });
  check_refused({
      {"x: string[2,3]", "StringNormalizer(x)", "expected [C] or [1,C]"},
      {"x: string[2]; y: string[3]", "StringConcat(x, y)", "dimensions 2 and 3 differ"},
      {"x: int64[5]",
       "TfIdfVectorizer(x) {mode = \"TF\", min_gram_length = 1, max_gram_length = 1, max_skip_count = 0, "
       "ngram_counts = "
       "[0], ngram_indexes = [-1], pool_int64s = [1]}",
       "'ngram_indexes' holds -1"},
  });
}

TEST_CASE("operators of ai.onnx.ml work on rows of features") {
  check({
      {"x: float32[N,3]", "ai.onnx.ml::Scaler(x) {offset = [1.0], scale = [2.0]}", "float32[N,3]"},
      {"x: int64[N,3]", "ai.onnx.ml::Normalizer(x)", "float32[N,3]"},
      {"x: int64[N,3]", "ai.onnx.ml::Binarizer(x)", "int64[N,3]"},
      {"x: float32[3]; i: int64[1,2]", "ai.onnx.ml::ArrayFeatureExtractor(x, i)", "float32[1,2]"},
      {"x: string[N,4,3]; i: int64[K]", "ai.onnx.ml::ArrayFeatureExtractor(x, i)", "string[N,4,K]"},
      {"x: float32[N,3]; y: float32[N]", "ai.onnx.ml::FeatureVectorizer(x) {inputdimensions = [5]}",
       "float32[N,5]"},
      {"x: string[N,2]", "ai.onnx.ml::CategoryMapper(x)", "int64[N,2]"},
      {"x: int64[N]", "ai.onnx.ml::CategoryMapper(x)", "string[N]"},
      {"x: int64[N]", "ai.onnx.ml::LabelEncoder(x) {keys_int64s = [1], values_strings = [\"a\"]}",
       "string[N]"},
      {"x: string[N]", "ai.onnx.ml::OneHotEncoder(x) {cats_strings = [\"a\", \"b\"]}", "float32[N,2]"},
      {"x: float32[N,2]", "ai.onnx.ml::LinearRegressor(x) {coefficients = [1.0,2.0,3.0,4.0], targets = 2}",
       "float32[N,2]"},
      {"x: float32[N,2]",
       "ai.onnx.ml::LinearClassifier(x) {coefficients = [1.0,2.0], classlabels_ints = [3,4]}",
       "int64[N]; float32[N,2]", 2},
      {"x: float32[2]",
       "ai.onnx.ml::LinearClassifier(x) {coefficients = [1.0,2.0], classlabels_strings = [\"a\",\"b\"]}",
       "string[1]; float32[1,2]", 2},
      {"x: float32[N,2]", "ai.onnx.ml::SVMRegressor(x) {n_supports = 1}", "float32[N,1]"},
      {"x: float32[N,2]",
       "ai.onnx.ml::SVMClassifier(x) {classlabels_ints = [1,2,3,4], vectors_per_class = [1,1,1,1]}",
       "int64[N]; float32[N,6]", 2},
      {"x: float64[N,2]", "ai.onnx.ml::TreeEnsembleRegressor(x) {n_targets = 3}", "float32[N,3]"},
      {"x: float64[N,2]",
       "ai.onnx.ml::TreeEnsembleClassifier(x) {classlabels_strings = [\"a\",\"b\",\"c\"]} version 3",
       "string[N]; float32[N,3]", 2},
  });
  check_refused({
      {"x: float32[N,2,3]", "ai.onnx.ml::Normalizer(x)", "operand X"},
      {"x: float32[N,3]", "ai.onnx.ml::LinearClassifier(x) {coefficients = [1.0,2.0]}",
       "multiple of X's 3 features", 2},
      {"x: float32[N]", "ai.onnx.ml::LabelEncoder(x) {keys_int64s = [1], values_int64s = [2]}",
       "holds float32, and the keys are integers"},
      {"x: int64[N]", "ai.onnx.ml::LabelEncoder(x) {keys_int64s = [1]}", "no attribute says the values"},
      {"x: int64[N]", "ai.onnx.ml::OneHotEncoder(x)", "expected one of them"},
      {"x: float32[N]", "ai.onnx.ml::FeatureVectorizer(x) {inputdimensions = [1,2]}", "2 elements"},
      {"x: float32[N,2]",
       "ai.onnx.ml::SVMClassifier(x) {classlabels_ints = [1,2], classlabels_strings = [\"a\"]}",
       "expected one of them", 2},
  });
}

TEST_CASE("a LabelEncoder of version 1 reads its list in the direction of the operand") {
  CHECK(types_of("x: string[N]",
                 "ai.onnx.ml::LabelEncoder(x) {classes_strings = [\"a\"], default_int64 = -1} version 1") ==
        "int64[N]");
  CHECK(types_of("x: int64[N]", "ai.onnx.ml::LabelEncoder(x) {classes_strings = [\"a\"]} version 1") ==
        "string[N]");
}

TEST_CASE("optimisers give back what they were given") {
  const std::string two =
      "r: float32[]; t: int64[]; x: float32[N]; y: float64[2]; g: float32[N]; k: float64[2]; h: float32[N]; "
      "j: float64[2]";
  CHECK(types_of(two, "ai.onnx.preview.training::Adagrad(r, t, x, y, g, k, h, j)", 4) ==
        "float32[N]; float64[2]; float32[N]; float64[2]");
  CHECK_THAT(types_of(two, "ai.onnx.preview.training::Adagrad(r, t, x, y, g, k, h)", 2),
             Catch::Contains("expected a multiple of 3"));
  CHECK_THAT(types_of("r: float32[]; t: int64[]; x: float32[3]; g: float32[4]; h: float32[3]",
                      "ai.onnx.preview.training::Adagrad(r, t, x, g, h)", 2),
             Catch::Contains("have shapes [3] and [4]"));
}

TEST_CASE("attention with a state") {
  const std::string qkv =
      "q: float32[B,T,8]; k: float32[B,T,4]; v: float32[B,T,6]; p: float16[B,2,2,3]; d: float32[B,T,2]; ";
  check({
      {(qkv).c_str(),
       "LinearAttention(q, k, v) {q_num_heads = 4, kv_num_heads = 2, update_rule = \"linear\"}",
       "float32[B,T,12]; float32[B,2,2,3]", 2},
      {(qkv).c_str(),
       "LinearAttention(q, k, v, p, d) {q_num_heads = 4, kv_num_heads = 2, update_rule = \"gated\"}",
       "float32[B,T,12]; float16[B,2,2,3]", 2},
      {"x: float16[B,3,L]; w: float16[3,1,4]", "CausalConvWithState(x, w)", "float16[B,3,L]; float16[B,3,3]",
       2},
  });
  check_refused({
      {(qkv).c_str(), "LinearAttention(q, k, v) {q_num_heads = 4, kv_num_heads = 2}",
       "operand decay is missing", 2},
      {(qkv).c_str(),
       "LinearAttention(q, k, v) {q_num_heads = 3, kv_num_heads = 2, update_rule = \"linear\"}",
       "q_num_heads is 3", 2},
      {(qkv).c_str(),
       "LinearAttention(q, k, v) {q_num_heads = 2, kv_num_heads = 2, update_rule = \"linear\"}",
       "heads of query have 4 numbers, those of key 2", 2},
      {"x: float32[B,3,L]; w: float32[2,1,4]", "CausalConvWithState(x, w)", "expected [3,1,k]", 2},
      {"x: float32[B,3,L]; w: float32[3,1,4]", "CausalConvWithState(x, w) {activation = \"relu\"}", "'relu'",
       2},
  });
}

TEST_CASE("FlexAttention puts its graphs between plain operators") {
  const std::string qkv = "q: float16[B,2,L,4]; k: float16[B,2,S,4]; v: float16[B,2,S,6]";
  const std::string node =
      "ai.onnx.preview::FlexAttention(q, k, v) {\n region \"score_mod\" {\n input %x: float32[a,b,c,d]\n %y "
      "= Tanh(%x)\n "
      "output %y as \"y\"\n }\n }";
  CHECK(types_of(qkv, node) == "float16[B,2,L,6]");
  CHECK(body_of(qkv, node) ==
        "float16[B,2,L,6] | Mul Mul Cast Transpose MatMul Cast Tanh Softmax MatMul Cast");
  CHECK_THAT(types_of("q: float32[1,3,5,4]; k: float32[1,2,7,4]; v: float32[1,2,7,4]",
                      "ai.onnx.preview::FlexAttention(q, k, v)"),
             Catch::Contains("no multiple of those of K"));
}

TEST_CASE("SequenceMap maps sequences to sequences") {
  const std::string node =
      "SequenceMap(s, x) {\n region \"body\" {\n input %a: float32[n]\n input %b: float32[2]\n %c = "
      "Shape(%a)\n output %c "
      "as \"c\"\n output %b as \"d\"\n }\n }";
  CHECK(types_of("s: seq(float32[N]); x: float32[2]", node, 2) == "seq(int64[1]); seq(float32[2])");
  CHECK_THAT(types_of("s: float32[2]; x: float32[2]", node, 2), Catch::Contains("SequenceMap"));
}
