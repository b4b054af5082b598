// Every operator runs on every element type its schema allows: for each type variable, each of its types, a
// small node goes through inference, kernel selection, planning and a run of the real host. What an operator
// cannot compute on is listed at the end, with the reason.
#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "core/base/tensor.hpp"
#include "core/graph/interner.hpp"
#include "core/runtime/session.hpp"
#include "one_node.hpp"

namespace tenon::test {
namespace {

/// How to write a node of an operator: its operands and the node, in the form of graph_of(). A type that is
/// the name of a type variable stands for the type it takes; "#T" is ONNX's number of that type, "$T[2]" a
/// tensor of it, every element 1; "@" the operator's name.
struct Recipe {
  const char* ops;
  const char* given;
  const char* node;
  int results = 1;
};

// clang-format off
const Recipe recipes[] = {
    {"BitShift", "X: T[2,3]; Y: T[2,3]", "@(X, Y) {direction = \"LEFT\"}"},
    {"AffineGrid", "t: T1[1,2,3]; s: int64[4] = [1,1,2,2]", "@(t, s)"},
    {"Attention", "q: T1[1,2,3,4]; k: T1[1,2,5,4]; v: T2[1,2,5,4]; m: U[3,5]", "@(q, k, v, m)"},
    {"AveragePool MaxPool LpPool", "x: T[1,1,4,4]", "@(x) {kernel_shape = [2,2]}"},
    {"GlobalAveragePool GlobalMaxPool GlobalLpPool", "x: T[1,2,3,3]", "@(x)"},
    {"BatchNormalization", "x: T[2,3]; s: T1[3]; m: T2[3]", "@(x, s, s, m, m)"},
    {"Bernoulli", "x: T1[2,3]", "@(x) {dtype = #T2}"},
    {"BitCast", "x: T1[8]", "@(x) {to = #T2}"},
    {"BlackmanWindow HammingWindow HannWindow", "n: T1[] = [4]", "@(n) {output_datatype = #T2}"},
    {"Cast", "x: T1[5]", "@(x) {to = #T2}"},
    {"CastLike", "x: T1[5]; y: T2[1]", "@(x, y)"},
    {"CenterCropPad", "x: T[2,5]; s: Tind[2] = [4,3]", "@(x, s)"},
    {"Clip", "x: T[5]; a: T[]; b: T[]", "@(x, a, b)"},
    {"Col2Im", "x: T[1,4,4]; i: int64[2] = [3,3]; b: int64[2] = [2,2]", "@(x, i, b)"},
    {"Compress", "x: T[5]; c: T1[5]", "@(x, c)"},
    {"Concat", "x: T[3,1]; y: T[3,2]", "@(x, y) {axis = 1}"},
    {"ConcatFromSequence", "x: T[3,1]", "@(x) {axis = 1}"},
    {"Constant", "", "@() {value = $T[3]}"},
    {"ConstantOfShape", "s: int64[2] = [3,3]", "@(s) {value = $T2[1]}"},
    {"Conv", "x: T[1,2,4,4]; w: T[3,2,2,2]; b: T[3]", "@(x, w, b)"},
    {"ConvInteger", "x: T1[1,2,4,4]; w: T2[3,2,2,2]; a: T1[]; b: T2[]", "@(x, w, a, b)"},
    {"ConvTranspose", "x: T[1,2,4,4]; w: T[2,3,2,2]; b: T[3]", "@(x, w, b)"},
    {"CausalConvWithState", "x: T[1,2,4]; w: T[2,1,3]", "@(x, w)", 2},
    {"CumSum CumProd", "x: T[2,3]; a: T2[] = [0]", "@(x, a)"},
    {"DFT", "x: T1[1,4,1]; n: T2[] = [4]; a: int64[] = [1]", "@(x, n, a)"},
    {"DeformConv", "x: T[1,1,3,3]; w: T[1,1,2,2]; o: T[1,8,2,2]", "@(x, w, o)"},
    {"DepthToSpace", "x: T[1,4,2,3]", "@(x) {blocksize = 2}"},
    {"SpaceToDepth", "x: T[1,1,4,2]", "@(x) {blocksize = 2}"},
    {"Det", "x: T[2,3,3]", "@(x)"},
    {"DequantizeLinear", "x: T1[2,3]; s: T2[3]; z: T1[3]", "@(x, s, z) {output_dtype = #T3}"},
    {"DynamicQuantizeLinear", "x: T1[2,3]", "@(x)", 3},
    {"Dropout", "x: T[5]; r: T1[]; m: T2[]", "@(x, r, m)", 2},
    {"Einsum", "x: T[2,3]; y: T[3,2]", "@(x, y) {equation = \"ij,jk->ik\"}"},
    {"Expand", "x: T[3,1]; s: int64[2] = [1,3]", "@(x, s)"},
    {"EyeLike", "x: T1[2,3]", "@(x) {dtype = #T2}"},
    {"GRU", "x: T[2,1,3]; w: T[1,6,3]; r: T[1,6,2]; n: T1[1] = [2]", "@(x, w, r, _, n) {hidden_size = 2}", 2},
    {"LSTM", "x: T[2,1,3]; w: T[1,8,3]; r: T[1,8,2]; n: T1[1] = [2]", "@(x, w, r, _, n) {hidden_size = 2}", 3},
    {"RNN", "x: T[2,1,3]; w: T[1,2,3]; r: T[1,2,2]; n: T1[1] = [2]", "@(x, w, r, _, n) {hidden_size = 2}", 2},
    {"Gather", "x: T[3,3]; i: Tind[2] = [2,0]", "@(x, i) {axis = 1}"},
    {"GatherElements", "x: T[3,3]; i: Tind[1,3] = [2,0,1]", "@(x, i)"},
    {"GatherND", "x: T[3,3]; i: int64[2,2] = [2,0,1,1]", "@(x, i)"},
    {"Gemm", "a: T[2,3]; b: T[3,2]; c: T[2]", "@(a, b, c)"},
    {"GridSample", "x: T1[1,1,3,3]; g: T2[1,2,2,2]", "@(x, g) {mode = \"nearest\"}"},
    {"GroupNormalization", "x: T[2,4,3]; s: T[4]", "@(x, s, s) {num_groups = 2}"},
    {"InstanceNormalization", "x: T[2,4,3]; s: T[4]", "@(x, s, s)"},
    {"If", "c: B[]; x: V[3]",
     "@(c) {\n region \"then_branch\" {\n output %x as \"t\"\n }\n region \"else_branch\" {\n output %x as \"e\"\n }\n }"},
    {"LRN", "x: T[1,3,2,2]", "@(x) {size = 3}"},
    {"LayerNormalization", "x: T[2,4]; s: T[4]", "@(x, s, s)"},
    {"RMSNormalization", "x: T[2,4]; s: V[4]", "@(x, s)"},
    {"LinearAttention", "q: T[1,3,8]; k: T[1,3,8]; v: T[1,3,8]; p: S[1,2,4,4]; d: T[1,3,2]; b: T[1,3,2]",
     "@(q, k, v, p, d, b) {q_num_heads = 2, kv_num_heads = 2}", 2},
    {"MatMul", "a: T[2,3]; b: T[3,2]", "@(a, b)"},
    {"MatMulInteger", "a: T1[2,3]; b: T2[3,2]; z: T1[]; w: T2[]", "@(a, b, z, w)"},
    {"MaxRoiPool", "x: T[1,1,4,4]; r: T[1,5]", "@(x, r) {pooled_shape = [2,2]}"},
    {"MaxUnpool", "x: T1[1,1,2,2]; i: T2[1,1,2,2] = [0,3,10,15]", "@(x, i) {kernel_shape = [2,2], strides = [2,2]}"},
    {"MeanVarianceNormalization", "x: T[2,2,3,3]", "@(x)"},
    {"MelWeightMatrix", "a: T1[] = [4]; b: T1[] = [16]; c: T1[] = [8000]; l: T2[]; h: T2[]",
     "@(a, b, c, l, h) {output_datatype = #T3}"},
    {"Multinomial", "x: T1[2,3]", "@(x) {dtype = #T2}"},
    {"NegativeLogLikelihoodLoss", "x: T[2,3]; t: Tind[2] = [0,2]; w: T[3]", "@(x, t, w)"},
    {"SoftmaxCrossEntropyLoss", "x: T[2,3]; t: Tind[2] = [0,2]; w: T[3]", "@(x, t, w)", 2},
    {"NonMaxSuppression", "b: float32[1,2,4]; s: float32[1,1,2]; n: int64[] = [1]", "@(b, s, n)"},
    {"OneHot", "i: T1[3]; d: T2[]; v: T3[2]", "@(i, d, v)"},
    {"Optional", "x: V[3]", "@(x)"},
    {"OptionalGetElement", "x: V[3]", "@(x)"},
    {"OptionalHasElement", "x: O[3]", "@(x)"},
    {"Pad", "x: T[3,3]; p: int64[2] = [1,2]; v: T[]; a: Tind[1] = [1]", "@(x, p, v, a)"},
    {"Pow", "x: T[3]; y: T1[3]", "@(x, y)"},
    {"QLinearConv", "x: T1[1,2,4,4]; s: float32[]; z: T1[]; w: T2[3,2,2,2]; t: float32[3]; o: T2[3]; q: T3[]; b: T4[3]",
     "@(x, s, z, w, t, o, s, q, b)"},
    {"QLinearMatMul", "a: T1[2,3]; s: TS[]; z: T1[]; b: T2[3,2]; o: T2[]; q: T3[]", "@(a, s, z, b, s, o, s, q)"},
    {"QuantizeLinear", "x: T1[2,3]; s: T2[3]; z: T3[3]", "@(x, s, z)"},
    {"RandomNormal RandomUniform", "", "@() {shape = [2,2], dtype = #T}"},
    {"RandomNormalLike RandomUniformLike", "x: T1[3]", "@(x) {dtype = #T2}"},
    {"Range", "a: T[]; b: T[]; c: T[]", "@(a, b, c)"},
    {"Reshape", "x: T[3,2]; s: int64[2] = [2,3]", "@(x, s)"},
    {"Resize", "x: T1[1,1,2,2]; r: T2[8]; s: float32[4] = [1.0,1.0,2.0,2.0]", "@(x, r, s)"},
    {"ReverseSequence", "x: T[3,2]; n: int64[2] = [2,3]", "@(x, n)"},
    {"RoiAlign", "x: T1[1,1,4,4]; r: T1[1,4]; i: T2[1] = [0]", "@(x, r, i)"},
    {"RotaryEmbedding", "x: T[1,2,3,4]; c: T[8,2]; i: M[1,3] = [0,1,2]", "@(x, c, c, i)"},
    {"STFT", "x: T1[1,8,1]; f: T2[] = [4]; w: T1[4]", "@(x, f, w)"},
    {"Scan", "x: V[3,3]",
     "@(x) {num_scan_inputs = 1} {\n region \"body\" {\n input %e: V[3]\n output %e as \"o\"\n }\n }"},
    {"Loop", "n: I[] = [3]; c: B[] = [1]; x: V[3]",
     "@(n, c, x) {\n region \"body\" {\n input %i: int64[]\n input %d: bool[]\n input %v: V[3]\n output %d as \"d\"\n "
     "output %v as \"v\"\n output %v as \"s\"\n }\n }",
     2},
    {"ScatterElements", "x: T[3,3]; i: Tind[1,3] = [2,0,1]; u: T[1,3]", "@(x, i, u)"},
    {"ScatterND", "x: T[3,3]; i: int64[2,1] = [2,0]; u: T[2,3]", "@(x, i, u)"},
    {"SequenceConstruct", "x: T[3]", "@(x, x)"},
    {"SequenceEmpty", "", "@() {dtype = #S}"},
    {"Slice", "x: T[3,3]; a: Tind[1] = [1]; b: Tind[1] = [3]; d: Tind[1] = [1]", "@(x, a, b, d, d)"},
    {"Split", "x: T[3]; s: int64[2] = [1,2]", "@(x, s)", 2},
    {"SplitToSequence", "x: T[3]; s: I[2] = [1,2]", "@(x, s)"},
    {"Squeeze", "x: T[3,1]; a: int64[1] = [1]", "@(x, a)"},
    {"StringConcat", "x: T[3]; y: T[3]", "@(x, y)"},
    {"StringNormalizer", "x: string[3]", "@(x)"},
    {"StringSplit", "x: T1[3]", "@(x)", 2},
    {"RegexFullMatch", "x: T1[3]", "@(x) {pattern = \"a\"}"},
    {"TensorScatter", "x: T[1,1,4,2]; u: T[1,1,2,2]; i: int64[1] = [1]", "@(x, u, i)"},
    {"TfIdfVectorizer", "x: T[3]",
     "@(x) {max_gram_length = 1, max_skip_count = 0, min_gram_length = 1, mode = \"TF\", ngram_counts = [0], "
     "ngram_indexes = [0], pool_int64s = [1]}"},
    {"Tile", "x: T[3]; r: T1[1] = [3]", "@(x, r)"},
    {"TopK", "x: T[3]; k: int64[1] = [2]", "@(x, k)", 2},
    {"Transpose", "x: T[3,5]", "@(x)"},
    {"Trilu", "x: T[3,3]", "@(x)"},
    {"Unique", "x: T[3]", "@(x)", 4},
    {"Unsqueeze", "x: T[3]; a: int64[1] = [1]", "@(x, a)"},
    {"Where", "c: B[3]; x: T[3]; y: T[]", "@(c, x, y)"},
};
// clang-format on

/// What is left out, and why.
struct Exception {
  const char* op;
  const char* reason;
};
bool left_out_type(const std::string& op, tn_dtype dtype) {
  return dtype == TN_STRING && (op == "Col2Im"                // adds its elements
                                || op == "TfIdfVectorizer");  // its recipe's pool holds numbers
}
const Exception left_out[] = {
    {"SimplifiedLayerNormalization", "no operator of ONNX: exporters write it without a domain"},
    {"Scatter", "removed from the standard in opset 11: nodes become ScatterElements"},
    {"Upsample", "removed from the standard in opset 10: nodes become Resize"},
    {"ImageDecoder", "its one operand is a compressed image"},
    {"ConcatFromSequence", "takes a sequence, whose tensors are Concat's"},
    {"SequenceAt", "takes a sequence: handles, whatever is in them"},
    {"SequenceErase", "takes a sequence: handles, whatever is in them"},
    {"SequenceInsert", "takes a sequence: handles, whatever is in them"},
    {"SequenceLength", "takes a sequence: handles, whatever is in them"},
    {"SequenceMap", "takes a sequence: handles, whatever is in them"},
    {"OptionalGetElement", "takes an optional: a handle, whatever is in it"},
    {"OptionalHasElement", "takes an optional: a handle, whatever is in it"},
};

using Types = std::map<std::string, tn_dtype>;

std::string text(tn_str s) { return {s.data, s.size}; }

/// ONNX's number of an element type.
int onnx_number(tn_dtype dtype) {
  static const char* const names[] = {
      "none",           "float32",  "uint8",        "int8",           "uint16",
      "int16",          "int32",    "int64",        "string",         "bool",
      "float16",        "float64",  "uint32",       "uint64",         "complex64",
      "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
      "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
      "uint2",          "int2"};
  for (size_t i = 0; i < std::size(names); ++i)
    if (dtype_from_name(names[i]) == dtype) return static_cast<int>(i);
  FAIL("no number for " << dtype_name(dtype));
  return 0;
}

std::string base64_of_ones(uint64_t bytes) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (uint64_t i = 0; i < bytes; i += 3) {
    uint32_t word = 0;
    for (uint64_t k = 0; k < 3; ++k) word = word << 8 | (i + k < bytes ? 1u : 0u);
    for (uint64_t k = 0; k < 4; ++k) out += i + k <= bytes ? letters[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}
std::string tensor_text(tn_dtype dtype, int64_t count) {
  const std::string type = "tensor " + dtype_name(dtype) + "[" + std::to_string(count) + "] ";
  if (dtype == TN_STRING) {
    std::string list;
    for (int64_t i = 0; i < count; ++i) list += i ? ", \"1\"" : "\"1\"";
    return type + "[" + list + "]";
  }
  uint64_t bytes = 0;
  const int64_t dims[] = {count};
  REQUIRE(tensor_bytes(dtype, dims, &bytes));
  return type + "base64 \"" + base64_of_ones(bytes) + "\"";
}

/// Puts the types into a recipe's text.
std::string fill(const std::string& form, const std::string& op, const Types& types) {
  std::string out;
  for (size_t at = 0; at < form.size();) {
    const char sign = form[at];
    const bool after_colon = at >= 2 && form[at - 2] == ':' && form[at - 1] == ' ';
    if (sign == '@') {
      out += op;
      ++at;
      continue;
    }
    if (sign != '#' && sign != '$' && !after_colon) {
      out += form[at++];
      continue;
    }
    size_t end = at + (sign == '#' || sign == '$');
    std::string name;
    while (end < form.size() && std::isalnum(static_cast<unsigned char>(form[end]))) name += form[end++];
    const auto type = types.find(name);
    if (type == types.end())
      out += name;
    else if (sign == '#')
      out += std::to_string(onnx_number(type->second));
    else if (sign == '$') {
      out += tensor_text(type->second, std::stoi(form.substr(end + 1)));
      end = form.find(']', end) + 1;
    } else {
      out += dtype_name(type->second);
    }
    at = end;
  }
  return out;
}

/// Operators without a recipe take all their required operands in one shape.
Recipe plain_recipe(const tn_op_def& def, std::string& given, std::string& node) {
  node = "@(";
  for (uint32_t i = 0; i < def.min_inputs; ++i) {
    const std::string name = std::string(1, static_cast<char>('a' + i));
    given +=
        (i ? "; " : "") + name + ": " + text(def.inputs[std::min(i, def.input_count - 1)].type) + "[2,3]";
    node += (i ? ", " : "") + name;
  }
  node += ")";
  return {"", given.c_str(), node.c_str()};
}
std::optional<Recipe> recipe_of(const std::string& op) {
  for (const Recipe& r : recipes) {
    std::istringstream words(r.ops);
    for (std::string word; words >> word;)
      if (word == op) return r;
  }
  return std::nullopt;
}

/// Integers are 1, texts "1", reals numbers around 0; other types whatever bytes of 1 are.
Tensor operand_of(tn_dtype dtype, const std::vector<int64_t>& dims) {
  Tensor t(dtype, dims);
  const bool integer = dtype_is_integer(dtype);
  const uint64_t width = t.count() ? t.bytes() / t.count() : 0;  // 0 of packed types
  for (uint64_t i = 0; i < (dtype == TN_STRING ? t.count() : t.bytes()); ++i)
    if (dtype == TN_STRING)
      t.set_string(i, "1");
    else
      static_cast<uint8_t*>(t.data())[i] = integer && width > 1 ? i % width == 0 : 1;
  const auto fill = [&](auto zero) {
    for (uint64_t i = 0; i < t.count(); ++i)
      static_cast<decltype(zero)*>(t.data())[i] =
          static_cast<decltype(zero)>((i % 3 == 1 ? -0.7 : 0.9) + 0.1 * static_cast<double>(i % 5));
  };
  if (dtype == TN_FLOAT32) fill(0.0f);
  if (dtype == TN_FLOAT64) fill(0.0);
  return t;
}

/// Empty when the node ran, else what was said; the bytes of its results, one after another.
void append_contents(const tn_tensor& tensor, std::string& to) {
  if (tensor.dtype != TN_STRING) {
    to.append(static_cast<const char*>(tensor.data), tensor.bytes);
    return;
  }
  // Strings are elsewhere; what stands in the tensor is where, and that differs from run to run.
  const auto* strings = static_cast<const tn_str*>(tensor.data);
  for (size_t i = 0; i < tensor.bytes / sizeof(tn_str); ++i) to += text(strings[i]) + '\0';
}

std::string run_node(const std::string& given, const std::string& node, int results,
                     std::string* bytes = nullptr) {
  try {
    RuntimeOptions options;
    options.threads = 1;
    options.guard = true;
    const Session session(graph_of(given, node, results), ops_registry(), options);
    std::vector<Tensor> values;
    std::vector<NamedTensor> inputs;
    values.reserve(session.inputs().size());
    for (const InputInfo& info : session.inputs()) {
      std::vector<int64_t> dims;
      for (const std::string& d : info.dims) dims.push_back(std::stoll(d));
      inputs.push_back({info.name, values.emplace_back(operand_of(info.dtype, dims)).view(), nullptr});
    }
    const std::vector<NamedOutput> made = session.run(inputs);
    for (const NamedOutput& output : made)
      if (bytes != nullptr && output.value->kind == TN_KIND_TENSOR) append_contents(output.tensor(), *bytes);
    return "";
  } catch (const Error& error) {
    return error.diagnostics.empty() ? error.what() : error.diagnostics.front().text;
  }
}

tn_dtype usual(const tn_type_var& var) {
  for (const tn_dtype wanted : {TN_FLOAT32, TN_INT64, TN_UINT8})
    for (uint32_t i = 0; i < var.dtype_count; ++i)
      if (var.dtypes[i] == wanted) return wanted;
  return var.dtype_count ? var.dtypes[0] : TN_FLOAT32;
}

struct Findings {
  int tried = 0;
  std::map<std::string, std::vector<std::string>> refused;  // "op, variable: reason" -> types
};
void try_operator(const tn_op_def& def, Findings& findings) {
  const std::string op = text(def.name);
  for (const Exception& e : left_out)
    if (op == e.op) return;
  std::string given, node;
  const auto own = recipe_of(op);
  const Recipe recipe = own ? *own : plain_recipe(def, given, node);
  for (uint32_t v = 0; v < def.type_var_count; ++v) {
    const tn_type_var& var = def.type_vars[v];
    for (uint32_t i = 0; i < var.dtype_count; ++i) {
      Types types;
      for (uint32_t k = 0; k < def.type_var_count; ++k)
        types[text(def.type_vars[k].name)] = usual(def.type_vars[k]);
      types[text(var.name)] = var.dtypes[i];
      if (op == "BitCast") types["T1"] = types["T2"] = var.dtypes[i];  // must have one size
      if (left_out_type(op, var.dtypes[i])) continue;
      ++findings.tried;
      const std::string said =
          run_node(fill(recipe.given, op, types), fill(recipe.node, op, types), recipe.results);
      if (!said.empty())
        findings.refused[op + ", " + text(var.name) + ": " + said].push_back(dtype_name(var.dtypes[i]));
    }
  }
}

std::string attribute_text(const tn_attr_def& def) {
  char number[64];
  switch (def.kind) {
    case TN_ATTR_INT:
      return std::to_string(def.default_int);
    case TN_ATTR_FLOAT:
      std::snprintf(number, sizeof number, "%.17e", def.default_float);
      return number;
    case TN_ATTR_STRING:
      return '"' + text(def.default_string) + '"';
    default:
      return "";
  }
}

/// The attributes that say their default mean what the node says without them, on its widest type.
void try_defaults(const tn_op_def& def, std::string& findings, int& tried) {
  const std::string op = text(def.name);
  for (const Exception& e : left_out)
    if (op == e.op) return;
  std::string given, node;
  const auto own = recipe_of(op);
  const Recipe recipe = own ? *own : plain_recipe(def, given, node);
  Types types;
  for (uint32_t k = 0; k < def.type_var_count; ++k) {
    const tn_type_var& var = def.type_vars[k];
    tn_dtype type = usual(var);
    if (std::find(var.dtypes, var.dtypes + var.dtype_count, TN_FLOAT64) != var.dtypes + var.dtype_count)
      type = TN_FLOAT64;
    types[text(var.name)] = type;
  }
  const std::string operands = fill(recipe.given, op, types), plain = fill(recipe.node, op, types);
  std::string want;
  if (!run_node(operands, plain, recipe.results, &want).empty()) return;
  const size_t brace = plain.find(") {"), end = plain.find(')');
  for (uint32_t i = 0; i < def.attr_count; ++i) {
    const tn_attr_def& attribute = def.attrs[i];
    const std::string name = text(attribute.name), value = attribute_text(attribute);
    if (!attribute.has_default || value.empty() || plain.find(name + " = ") != std::string::npos) continue;
    std::string said = plain;
    if (brace == std::string::npos)
      said.insert(end + 1, " {" + name + " = " + value + "}");
    else if (plain[brace + 3] != '\n')
      said.insert(brace + 3, name + " = " + value + ", ");
    else
      continue;  // the braces hold subgraphs alone
    std::string got;
    ++tried;
    const std::string error = run_node(operands, said, recipe.results, &got);
    if (error.empty() && got == want) continue;
    findings += "\n  " + said + (error.empty() ? ": other results" : ": " + error);
  }
}

}  // namespace

// Whatever the ranks: an error that says something, or results; under a sanitizer, no byte outside.
TEST_CASE("an operand of another rank is refused or has a meaning, for every operand of every operator") {
  int refused = 0, tried = 0;
  for (const tn_sym sym : ops_registry().op_symbols()) {
    const tn_op_def& def = *ops_registry().find(sym)->def;
    const std::string op = text(def.name);
    std::string given, node;
    const auto own = recipe_of(op);
    const Recipe recipe = own ? *own : plain_recipe(def, given, node);
    Types types;
    for (uint32_t k = 0; k < def.type_var_count; ++k)
      types[text(def.type_vars[k].name)] = usual(def.type_vars[k]);
    const std::string operands = fill(recipe.given, op, types);
    for (size_t from = 0; from < operands.size(); from = operands.find(';', from) + 1) {
      const size_t end = std::min(operands.find(';', from), operands.size()), open = operands.find('[', from);
      if (open < end && operands.find('=', from) >= end)
        for (const char* dims : {"[]", "[1]", "[0]", "[2,1,3,1,2]", "[1,0,2,1]"}) {
          const std::string changed = operands.substr(0, open) + dims + operands.substr(end);
          const std::string said = run_node(changed, fill(recipe.node, op, types), recipe.results);
          INFO(op << " of " << changed << ": " << said);
          ++tried;
          refused += !said.empty();
          CHECK((said.empty() || said.size() > 15));
        }
      if (end == operands.size()) break;
    }
  }
  CHECK(tried > 1000);
  CHECK(refused > tried / 4);
}

TEST_CASE("an attribute that is left out means its default") {
  std::string findings;
  int tried = 0;
  for (const tn_sym sym : ops_registry().op_symbols()) {
    const tn_op_def& def = *ops_registry().find(sym)->def;
    if (!(def.flags & TN_OP_NONDETERMINISTIC)) try_defaults(def, findings, tried);
  }
  CHECK(tried > 150);
  CHECK(findings == "");
}

TEST_CASE("every operator runs on every type its schema allows") {
  Findings findings;
  for (const tn_sym sym : ops_registry().op_symbols()) {
    const tn_op_def& def = *ops_registry().find(sym)->def;
    if (def.domain.size == 0) try_operator(def, findings);
  }
  CHECK(findings.tried > 1000);
  std::string list;
  for (const auto& [what, types] : findings.refused) {
    list += "\n  " + what + " [";
    for (const auto& t : types) list += " " + t;
    list += " ]";
  }
  CHECK(list == "");
}

}  // namespace tenon::test
