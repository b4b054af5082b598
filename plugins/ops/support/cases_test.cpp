// Runs the cases of testdata/*.cases: one node each, operands and expected results as text. A case is
//   case NAME / op OP / attr NAME KIND VALUES... / in TENSOR / out TENSOR
// with TENSOR = `-` (omitted) | DTYPE [DIMS] VALUES... | seq N, then N lines `item TENSOR` | opt, then at
// most one item. Text is percent-encoded. The expected numbers come from numpy and the ONNX reference
// evaluator.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "support/test_harness.hpp"
#include "test_paths.hpp"

namespace tenon::reference::test {
namespace {

std::string decode(const std::string& s) {
  std::string r;
  for (size_t i = 0; i < s.size(); ++i)
    if (s[i] == '%' && i + 2 < s.size()) {
      r += static_cast<char>(std::stoi(s.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      r += s[i];
    }
  return r;
}
Tensor read_tensor(std::istringstream& in, const std::string& dtype) {
  Tensor t;
  t.dtype = dtype_from_name(dtype);
  REQUIRE(t.dtype != TN_DTYPE_NONE);
  std::string dims, word;
  in >> dims;
  for (char& c : dims) c = c == '[' || c == ']' || c == ',' ? ' ' : c;
  std::istringstream d(dims);
  for (int64_t x; d >> x;) t.dims.push_back(x);
  const int64_t n = element_count(t.dims);
  if (t.dtype == TN_STRING) {
    for (int64_t i = 0; i < n; ++i) {
      in >> word;
      t.texts.push_back(decode(word.substr(1)));
    }
    return t;
  }
  t.bytes.resize(packed_bytes(t.dtype, n));
  for (int64_t i = 0; i < n; ++i) {
    REQUIRE(in >> word);
    if (t.dtype == TN_UINT64) {
      const uint64_t x = std::strtoull(word.c_str(), nullptr, 10);
      storer<uint64_t>(t.dtype)(&x, 1, t.bytes.data(), i);
    } else if (is_integer(t.dtype)) {
      const int64_t x = std::strtoll(word.c_str(), nullptr, 10);
      storer<int64_t>(t.dtype)(&x, 1, t.bytes.data(), i);
    } else {
      const double x = std::strtod(word.c_str(), nullptr);
      storer<double>(t.dtype, false)(&x, 1, t.bytes.data(), i);
    }
  }
  return t;
}
Value read_value(std::istringstream& line, std::istream& file) {
  Value v;
  std::string word, text;
  line >> word;
  if (word == "-") return absent();
  if (word == "seq" || word == "opt") {
    v.kind = word == "seq" ? TN_KIND_SEQUENCE : TN_KIND_OPTIONAL;
    size_t n = 0;
    line >> n;
    for (size_t i = 0; i < n; ++i) {
      std::getline(file, text);
      std::istringstream item(text);
      item >> word;
      REQUIRE(word == "item");
      v.items.push_back(read_value(item, file));
    }
    return v;
  }
  v.tensor = read_tensor(line, word);
  return v;
}
Attr read_attr(std::istringstream& line) {
  Attr a;
  std::string kind, word;
  line >> a.name >> kind;
  if (kind == "int") {
    a.kind = TN_ATTR_INT;
    line >> a.i;
  } else if (kind == "float") {
    a.kind = TN_ATTR_FLOAT;
    line >> word;
    a.f = std::strtod(word.c_str(), nullptr);
  } else if (kind == "string") {
    a.kind = TN_ATTR_STRING;
    line >> word;
    a.s = decode(word.substr(1));
  } else if (kind == "ints") {
    a.kind = TN_ATTR_INTS;
    for (int64_t x; line >> x;) a.ints.push_back(x);
  } else if (kind == "floats") {
    a.kind = TN_ATTR_FLOATS;
    while (line >> word) a.floats.push_back(std::strtod(word.c_str(), nullptr));
  } else if (kind == "strings") {
    a.kind = TN_ATTR_STRINGS;
    while (line >> word) a.strings.push_back(decode(word.substr(1)));
  } else {
    a.kind = TN_ATTR_TENSOR;
    line >> word;
    a.tensor = read_tensor(line, word);
  }
  return a;
}

void compare(const Value& got, const Value& want) {
  REQUIRE(got.present == want.present);
  if (!want.present) return;
  REQUIRE(got.kind == want.kind);
  REQUIRE(got.items.size() == want.items.size());
  for (size_t i = 0; i < want.items.size(); ++i) compare(got.items[i], want.items[i]);
  if (want.kind != TN_KIND_TENSOR) return;
  REQUIRE(got.tensor.dtype == want.tensor.dtype);
  REQUIRE(got.tensor.dims == want.tensor.dims);
  CHECK(got.tensor.texts == want.tensor.texts);
  if (!is_float(want.tensor.dtype)) {
    CHECK(got.tensor.bytes == want.tensor.bytes);
    return;
  }
  if (want.tensor.dtype == TN_STRING) return;
  const uint32_t bits = TN_DTYPE_BITS(want.tensor.dtype);
  const double tolerance = bits >= 32                         ? 2e-5
                           : want.tensor.dtype == TN_BFLOAT16 ? 1.6e-2
                           : bits == 16                       ? 2e-3
                                                              : 0;
  const auto a = numbers(got.tensor), b = numbers(want.tensor);
  for (size_t i = 0; i < b.size(); ++i) {
    const bool same = a[i] == b[i] || (a[i] != a[i] && b[i] != b[i]) ||
                      std::fabs(a[i] - b[i]) <= tolerance * (1 + std::fabs(b[i]));
    if (!same) FAIL_CHECK("element " << i << " is " << a[i] << ", expected " << b[i]);
    if (!same) break;
  }
}

void run_file(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::string text, word, name;
  Call call;
  size_t cases = 0;
  const auto finish_case = [&] {
    if (name.empty()) return;
    ++cases;
    INFO("case " << name << " of " << path);
    auto o = run(call);
    INFO(o.said);
    CHECK(o.planned == TN_OK);
    CHECK(o.code == 0);
    if (o.planned == TN_OK && o.code == 0) {
      REQUIRE(o.outputs.size() == call.outputs.size());
      for (size_t i = 0; i < o.outputs.size(); ++i) compare(o.outputs[i], call.outputs[i]);
    }
  };
  while (std::getline(file, text)) {
    std::istringstream line(text);
    if (!(line >> word) || word[0] == '#') continue;
    if (word == "case") {
      finish_case();
      call = {};
      line >> name;
    } else if (word == "op") {
      line >> call.op;
    } else if (word == "attr") {
      call.attrs.push_back(read_attr(line));
    } else if (word == "in") {
      call.inputs.push_back(read_value(line, file));
    } else if (word == "out") {
      call.outputs.push_back(read_value(line, file));
    } else {
      FAIL("unknown word '" << word << "' in " << path);
    }
  }
  finish_case();
  CHECK(cases > 0);
}

}  // namespace

TEST_CASE("reference kernels give the standard's results", "[cases]") {
  const char* chosen = std::getenv("TENON_REFERENCE_CASES");  // one file instead of ours
  if (chosen) {
    run_file(chosen);
    return;
  }
  const std::string folder = tenon::test::source_dir() + "/plugins/ops/testdata";
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".cases") paths.push_back(entry.path().string());
  REQUIRE(!paths.empty());
  for (const auto& path : paths) run_file(path);
}

}  // namespace tenon::reference::test
