#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "fake_host.hpp"
#include "formats.hpp"
#include "npy.hpp"
#include "onnx_fields.hpp"
#include "test_models.hpp"
#include "test_paths.hpp"

using namespace tenon;
using namespace tenon::tensors;
using Catch::Matchers::Contains;
using onnx::testing::TemporaryFolder;

namespace {

struct Item {
  std::string name;
  int64_t index;
  tn_dtype dtype;
  sdk::Dims dims;
  std::string bytes;
  std::vector<std::string> texts;
};
struct Read {
  tn_status status = TN_OK;
  std::string said;
  std::vector<Item> items;
  tn_dtype expected = TN_DTYPE_NONE;
  const Item& of(std::string_view name, int64_t index = -1) const {
    for (const auto& i : items)
      if (i.name == name && i.index == index) return i;
    throw std::runtime_error("no item " + std::string(name));
  }
};
Read read(const tn_tensor_file_record* record, const std::string& path, tn_dtype expected = TN_DTYPE_NONE) {
  Read r;
  r.expected = expected;
  sdk::Services services(onnx::testing::fake_host());
  sdk::DiagBuffer said;
  r.status = record->read(
      &services, onnx::testing::fake_host(), sdk::str(path),
      [](void* c, tn_str, uint32_t) { return static_cast<Read*>(c)->expected; },
      [](void* c, const tn_named_tensor* t) -> tn_status {
        Item i{sdk::text(t->name), t->index, t->tensor.dtype, {}, {}, {}};
        if (t->index != -2) i.dims.assign(t->tensor.dims, t->tensor.dims + t->tensor.rank);
        if (t->tensor.dtype == TN_STRING)
          for (uint64_t k = 0; k < t->tensor.bytes / sizeof(tn_str); ++k)
            i.texts.push_back(sdk::text(static_cast<const tn_str*>(t->tensor.data)[k]));
        else if (t->tensor.bytes)
          i.bytes.assign(static_cast<const char*>(t->tensor.data), t->tensor.bytes);
        static_cast<Read*>(c)->items.push_back(std::move(i));
        return TN_OK;
      },
      &r, said.raw());
  r.said = said.text();
  return r;
}
std::string write(const tn_tensor_file_record* record, const std::string& path,
                  const std::vector<tn_named_tensor>& tensors) {
  sdk::Services services(onnx::testing::fake_host());
  sdk::DiagBuffer said;
  const tn_status s = record->write(&services, onnx::testing::fake_host(), sdk::str(path), tensors.data(),
                                    static_cast<uint32_t>(tensors.size()), said.raw());
  REQUIRE((s == TN_OK) == said.text().empty());
  return said.text();
}
template <class T>
std::vector<T> as(const Item& i) {
  std::vector<T> out(i.bytes.size() / sizeof(T));
  if (!out.empty()) std::memcpy(out.data(), i.bytes.data(), out.size() * sizeof(T));
  return out;
}
std::string npy(const std::string& dict, const std::string& data, int major = 1) {
  std::string out("\x93NUMPY", 6);
  out += static_cast<char>(major);
  out += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) out += static_cast<char>(dict.size() >> (8 * i));
  return out + dict + data;
}
std::string fixture(const char* name) {
  return tenon::test::source_dir() + "/plugins/tensors/testdata/" + name;
}

}  // namespace

TEST_CASE(
    "npz files of numpy are read: stored, deflated, any byte order, Fortran order, text, odd names, "
    "sequences") {
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const Read r = read(npz_record(), fixture(name));
    INFO(name << ": " << r.said);
    REQUIRE(r.status == TN_OK);
    REQUIRE(r.items.size() == 7);
    CHECK(as<float>(r.of("a/b:0")) == std::vector<float>{0, 1, 2, 3, 4, 5});
    CHECK(r.of("a/b:0").dims == sdk::Dims{2, 3});
    CHECK(as<int32_t>(r.of("Ünï")) == std::vector<int32_t>{1, -2});
    std::vector<int64_t> counted(24);
    for (size_t i = 0; i < 24; ++i) counted[i] = static_cast<int64_t>(i);
    CHECK(as<int64_t>(r.of("fortran")) == counted);
    CHECK(r.of("text").texts == std::vector<std::string>{"ab", "ü€😀", ""});
    CHECK(r.of("seq", 1).dims == sdk::Dims{2});
    CHECK(r.of("flag").dtype == TN_BOOL);
    CHECK(r.of("flag").dims.empty());
  }
}

TEST_CASE("every element type survives .npy and .npz") {
  TemporaryFolder folder;
  std::mt19937 random(1);
  for (const auto& e : onnx::element_types) {
    if (e.dtype == TN_STRING) continue;
    sdk::OwnedTensor t(e.dtype, {3, 5});
    for (uint64_t i = 0; i < t.bytes(); ++i)
      t.data<uint8_t>()[i] = static_cast<uint8_t>(e.dtype == TN_BOOL ? random() & 1 : random());
    if (TN_DTYPE_BITS(e.dtype) < 8) {  // bits after the last element say nothing
      const uint32_t used = 15 * TN_DTYPE_BITS(e.dtype) % 8;
      t.data<uint8_t>()[t.bytes() - 1] &= static_cast<uint8_t>((1u << used) - 1);
    }
    const tn_named_tensor named{sdk::str("x"), -1, t.raw(), TN_KIND_NONE, 0};
    INFO(sdk::dtype_name(e.dtype));
    for (const auto* record : {npy_record(), npz_record()}) {
      const std::string path = folder.file(record == npy_record() ? "t.npy" : "t.npz");
      REQUIRE(write(record, path, {named}).empty());
      const Read r = read(record, path, e.dtype);
      INFO(r.said);
      REQUIRE(r.items.size() == 1);
      CHECK(r.items[0].dtype == e.dtype);
      CHECK(r.items[0].dims == sdk::Dims{3, 5});
      CHECK(r.items[0].bytes == std::string(t.data<char>(), t.bytes()));
    }
    REQUIRE(write(pb_record(), folder.file("t.pb"), {named}).empty());
    const Read r = read(pb_record(), folder.file("t.pb"));
    REQUIRE(r.items.size() == 1);
    CHECK(r.items[0].name == "x");
    CHECK(r.items[0].dtype == e.dtype);
    CHECK(r.items[0].bytes == std::string(t.data<char>(), t.bytes()));
  }
}

TEST_CASE("text is written as Unicode, and as bytes when it is none") {
  TemporaryFolder folder;
  const std::vector<tn_str> texts{sdk::str("ü€😀"), sdk::str(""), sdk::str("abcd")},
      bytes{sdk::str("\xff\xfe"), sdk::str("a")};
  const int64_t three = 3, two = 2;
  REQUIRE(write(npy_record(), folder.file("t.npy"),
                {{{}, -1, {TN_STRING, 1, &three, const_cast<tn_str*>(texts.data()), 48}, TN_KIND_NONE, 0}})
              .empty());
  CHECK(read(npy_record(), folder.file("t.npy")).items.at(0).texts ==
        std::vector<std::string>{"ü€😀", "", "abcd"});
  REQUIRE(write(npy_record(), folder.file("b.npy"),
                {{{}, -1, {TN_STRING, 1, &two, const_cast<tn_str*>(bytes.data()), 32}, TN_KIND_NONE, 0}})
              .empty());
  CHECK(read(npy_record(), folder.file("b.npy")).items.at(0).texts ==
        std::vector<std::string>{"\xff\xfe", "a"});
}

TEST_CASE(".npy headers: versions, spellings, and what is refused") {
  TemporaryFolder folder;
  const auto given = [&](const std::string& bytes, tn_dtype expected = TN_DTYPE_NONE) {
    return read(npy_record(), folder.write("t.npy", bytes), expected);
  };
  const std::string four(4, '\0'), eight(8, '\1');
  for (int version : {1, 2, 3})
    CHECK(given(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", four, version)).status ==
          TN_OK);
  CHECK(given(npy("{\"shape\":(2 ,),\"fortran_order\":True,\"descr\":\"|u1\"}\n", "ab")).items.at(0).dims ==
        sdk::Dims{2});
  CHECK(given(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (), }", four)).items.at(0).dims.empty());
  CHECK(given(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5), }", "")).items.at(0).dims ==
        sdk::Dims{0, 5});
  CHECK(
      given(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", std::string("\x3f\x80\0\0", 4)))
          .items.at(0)
          .bytes == std::string("\0\0\x80\x3f", 4));
  CHECK(given(npy("{'descr': '|b1', 'fortran_order': False, 'shape': (2,), }", std::string("\0\7", 2)))
            .items.at(0)
            .bytes == std::string("\0\1", 2));
  CHECK(given(npy("{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }", four)).items.at(0).dtype ==
        TN_BFLOAT16);
  CHECK(given(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", four), TN_BFLOAT16)
            .items.at(0)
            .dtype == TN_BFLOAT16);
  CHECK(given(npy("{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", four)).items.at(0).dtype ==
        TN_UINT16);
  CHECK(given(npy("{'descr': '|i1', 'fortran_order': False, 'shape': (3,), }", "\1\xff\7"), TN_INT4)
            .items.at(0)
            .bytes == "\xf1\7");
  CHECK_THAT(given(npy("{'descr': '|i1', 'fortran_order': False, 'shape': (1,), }", "\x08"), TN_INT4).said,
             Contains("element 0 is 8"));
  CHECK_THAT(given(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", eight)).said,
             Contains("found 8 bytes") && Contains("expected 12"));
  CHECK_THAT(
      given(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "")).said,
      Contains("too large"));
  CHECK_THAT(
      given(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", "")).said,
      Contains("too large"));
  CHECK_THAT(given(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "")).said,
             Contains("no number"));
  CHECK_THAT(given(npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", eight)).said,
             Contains("'|O'"));
  CHECK_THAT(given(npy("{'descr': '<f16', 'fortran_order': False, 'shape': (1,), }", eight + eight)).said,
             Contains("'<f16'"));
  CHECK_THAT(given(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", four)).said,
             Contains("records"));
  CHECK_THAT(given(npy("{'descr': '<f4', 'shape': (1,), }", four)).said, Contains("lacks"));
  CHECK_THAT(given(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}", four)).said,
             Contains("'x'"));
  CHECK_THAT(given("hello").said, Contains("no .npy file"));
  CHECK_THAT(given("").said, Contains("no .npy file"));
  CHECK_THAT(given(npy("{}", "", 4)).said, Contains("version 4"));
  CHECK_THAT(given(std::string("\x93NUMPY\2\0\xff\xff\xff\x7f", 12)).said, Contains("header says"));
}

TEST_CASE("npz: items of sequences, empty ones, names that repeat") {
  TemporaryFolder folder;
  const float numbers[2] = {1, 2};
  const int64_t one = 1, two = 2;
  const tn_tensor a{TN_FLOAT32, 1, &one, const_cast<float*>(numbers), 4},
      b{TN_FLOAT32, 1, &two, const_cast<float*>(numbers), 8};
  REQUIRE(write(npz_record(), folder.file("s.npz"),
                {{sdk::str("s"), 0, a, TN_KIND_NONE, 0},
                 {sdk::str("s"), 1, b, TN_KIND_NONE, 0},
                 {sdk::str("empty"), -2, {}, TN_KIND_NONE, 0},
                 {{}, -1, a, TN_KIND_NONE, 0}})
              .empty());
  const Read r = read(npz_record(), folder.file("s.npz"));
  CHECK(r.items.size() == 3);
  CHECK(r.of("s", 1).dims == sdk::Dims{2});
  CHECK(r.of("arr_3").dims == sdk::Dims{1});
  // A name that the caller knows as it is stands for itself.
  CHECK(read(npz_record(), folder.file("s.npz"), TN_FLOAT32).of("s[1]").dims == sdk::Dims{2});
  CHECK_THAT(write(npz_record(), folder.file("d.npz"),
                   {{sdk::str("x"), -1, a, TN_KIND_NONE, 0}, {sdk::str("x"), -1, a, TN_KIND_NONE, 0}}),
             Contains("'x'"));
  REQUIRE(write(npz_record(), folder.file("e.npz"), {}).empty());
  CHECK(read(npz_record(), folder.file("e.npz")).items.empty());
  CHECK(read(npz_record(), folder.file("e.npz")).status == TN_OK);
  const std::string endless(70000, 'y');
  CHECK_THAT(write(npz_record(), folder.file("l.npz"), {{sdk::str(endless), -1, a, TN_KIND_NONE, 0}}),
             Contains("70000 bytes"));
  // A name is its bytes, whatever they are: no guess at a code page.
  REQUIRE(write(npz_record(), folder.file("c.npz"), {{sdk::str("a?"), -1, a, TN_KIND_NONE, 0}}).empty());
  std::ifstream in(folder.file("c.npz"), std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  for (size_t at = 0; (at = bytes.find("a?.npy", at)) != std::string::npos;) bytes[at + 1] = '\x01';
  std::ofstream(folder.file("c.npz"), std::ios::binary) << bytes;
  CHECK(read(npz_record(), folder.file("c.npz")).of("a\x01").dims == sdk::Dims{1});
  CHECK_THAT(
      write(npz_record(), folder.file("no/such/folder.npz"), {{sdk::str("x"), -1, a, TN_KIND_NONE, 0}}),
      Contains("cannot be written"));
}

TEST_CASE("pb: sequences, optionals and what is neither") {
  TemporaryFolder folder;
  const float number = 5;
  const tn_tensor a{TN_FLOAT32, 0, nullptr, const_cast<float*>(&number), 4};
  REQUIRE(write(pb_record(), folder.file("s.pb"),
                {{sdk::str("s"), 0, a, TN_KIND_NONE, 0}, {sdk::str("s"), 1, a, TN_KIND_NONE, 0}})
              .empty());
  const Read r = read(pb_record(), folder.file("s.pb"));
  REQUIRE(r.items.size() == 2);
  CHECK(r.items[1].name == "s");
  CHECK(r.items[1].index == 1);
  REQUIRE(write(pb_record(), folder.file("e.pb"), {{sdk::str("s"), -2, {}, TN_KIND_NONE, 0}}).empty());
  CHECK(read(pb_record(), folder.file("e.pb")).items.at(0).index == -2);
  CHECK(read(pb_record(), folder.write("z.pb", "")).items.at(0).index == -2);
  const auto file = [&](std::vector<tn_named_tensor> items, tn_type_kind kind) {
    for (auto& i : items) i.kind = kind;
    REQUIRE(write(pb_record(), folder.file("o.pb"), items).empty());
    std::ifstream in(folder.file("o.pb"), std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(in)), {});
  };
  // Field 2 says what an optional holds (0 nothing, 1 a tensor, 3 a sequence), as onnx's own test data has
  // it.
  const std::string held("\x1a\x08\x10\x01J\x04\x00\x00\xa0@", 10);
  CHECK(file({{sdk::str("s"), -1, a, 0, 0}}, TN_KIND_OPTIONAL) == "\n\1s\x10\x01" + held);
  CHECK(file({{sdk::str("s"), 0, a, 0, 0}}, TN_KIND_OPTIONAL_SEQUENCE) ==
        "\n\1s\x10\x03*\x0c\x10\x01" + held);
  CHECK(file({{sdk::str("s"), -2, {}, 0, 0}}, TN_KIND_OPTIONAL) == std::string("\n\1s\x10\0", 5));
  CHECK(file({{sdk::str("s"), -2, {}, 0, 0}}, TN_KIND_SEQUENCE) == "\n\1s\x10\x01");
  CHECK_THAT(read(pb_record(), folder.write("g.pb", "garbage!")).said, Contains("no ONNX tensor"));
  CHECK_THAT(write(pb_record(), folder.file("t.pb"),
                   {{sdk::str("a"), -1, a, TN_KIND_NONE, 0}, {sdk::str("b"), -1, a, TN_KIND_NONE, 0}}),
             Contains("folder of .pb"));
}

TEST_CASE("damaged files end in a message") {
  TemporaryFolder folder;
  std::mt19937 random(3);
  const auto bytes_of = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  };
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const std::string whole = bytes_of(fixture(name));
    for (int i = 0; i < 1000; ++i) {
      std::string damaged = whole;
      if (i % 4 == 0)
        damaged.resize(random() % whole.size());
      else
        for (uint32_t flips = 1 + random() % 4; flips; --flips)
          damaged[random() % damaged.size()] = static_cast<char>(random());
      const Read r = read(npz_record(), folder.write("d.npz", damaged));
      if (r.status != TN_OK) CHECK_FALSE(r.said.empty());
      CHECK(r.status != TN_ERR_INTERNAL);
    }
  }
  const std::string good =
      npy("{'descr': '>i4', 'fortran_order': True, 'shape': (2, 3), }", std::string(24, '\1'));
  const std::string tensor = onnx::testing::raw_tensor("w", 1, {2, 3}, std::string(24, '\1'));
  for (int i = 0; i < 3000; ++i) {
    std::string damaged = i % 2 ? good : tensor;
    damaged[random() % damaged.size()] = static_cast<char>(random());
    const Read r = read(i % 2 ? npy_record() : pb_record(), folder.write("d", damaged));
    if (r.status != TN_OK) CHECK_FALSE(r.said.empty());
    CHECK(r.status != TN_ERR_INTERNAL);
  }
}
