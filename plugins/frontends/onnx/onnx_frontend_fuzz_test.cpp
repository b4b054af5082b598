// Damaged files: any outcome but a clean status is a bug. Fixed seeds, so a failure comes again.
#include <catch2/catch.hpp>
#include <random>

#include "fake_host.hpp"
#include "onnx_frontend.hpp"
#include "test_models.hpp"
#include "test_paths.hpp"

using namespace tenon;
using namespace tenon::onnx;
using namespace tenon::onnx::testing;

namespace {

// The same bytes are loaded thousands of times, so they come from memory and not through a file.
std::string* current_bytes = nullptr;

const tn_files_api* memory_files() {
  static tn_files_api table = *files_table();
  table.open = [](tn_str path, const tn_diag*, tn_file** out) -> tn_status {
    auto* f = new tn_file;
    f->path = sdk::text(path);
    f->size = current_bytes->size();
    f->storage.resize(f->size / 8 + 1);
    std::memcpy(f->storage.data(), current_bytes->data(), f->size);
    *out = f;
    return TN_OK;
  };
  return &table;
}

tn_status load(std::string& bytes) {
  current_bytes = &bytes;
  sdk::Services services(fake_host());
  services.files = memory_files();
  FakeGraph graph;
  sdk::DiagBuffer said;
  const tn_status s = frontend_record()->load(&services, fake_host(), sdk::str("m.onnx"), graph.handle(),
                                              graph.edit(), said.raw());
  if (s != TN_OK && said.text().empty()) FAIL("a failure without a message");
  if (s == TN_ERR_INTERNAL) FAIL("an internal error: " << said.text());
  return s;
}

std::string digits() {
  std::ifstream in(tenon::test::source_dir() + "/models/digits/digits.onnx", std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

}  // namespace

TEST_CASE("truncated models are refused cleanly") {
  const std::string whole = digits();
  REQUIRE(whole.size() > 1000);
  std::string intact = whole;
  REQUIRE(load(intact) == TN_OK);
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    std::string cut = whole.substr(0, random() % whole.size());
    CHECK(load(cut) != TN_OK);
  }
}

TEST_CASE("models with flipped bytes never crash the loader") {
  const std::string whole = digits();
  std::mt19937 random(12);
  for (int i = 0; i < 2500; ++i) {
    std::string damaged = whole;
    // Weights are most of the file and say nothing; most flips go to the structure, at its front and its end.
    const size_t region = i % 3 == 0 ? whole.size() : 4096;
    for (uint32_t flips = 1 + random() % 8; flips; --flips) {
      const size_t at = random() % region;
      damaged[i % 3 == 2 ? whole.size() - 1 - at : at] = static_cast<char>(random());
    }
    (void)load(damaged);
  }
}

TEST_CASE("small hand-made models with every feature survive flipped bytes") {
  const std::string branch = graph(
      {{node("F", {"x"}, {"t"}, {int_attribute("k", 3)}, "call", "local"), node("Add", {"t", "x"}, {"o"})},
       {},
       {},
       {},
       {value_info("o", 1, {})},
       {}});
  std::string sparse;
  {
    protozero::pbf_writer w(sparse);
    w.add_message(sparse_field::values, raw_tensor("s", 1, {2}, floats({7, 8})));
    w.add_message(sparse_field::indices, raw_tensor("i", 7, {2}, int64s({1, 5})));
    for (int64_t d : {2, 3}) w.add_int64(sparse_field::dims, d);
  }
  const std::string f = function(
      "F", {"a"}, {"r"}, {node("Elu", {"a"}, {"r"}, {reference("alpha", "k", attribute_type::i)})}, {"k"});
  const std::string whole = model(
      graph({{node("If", {"c"}, {"y"},
                   {message_attribute("then_branch", attribute_field::g, attribute_type::graph, branch),
                    message_attribute("else_branch", attribute_field::g, attribute_type::graph, branch)}),
              node("Constant", {}, {"k"},
                   {message_attribute("value", attribute_field::t, attribute_type::tensor,
                                      raw_tensor("", 7, {2}, int64s({5, 6})))}),
              node("Foo", {"k", "w", "s"}, {"z"})},
             {raw_tensor("w", 22, {3}, "\x21\x03")},
             {sparse},
             {value_info("x", 1, {-1, 3}), value_info("c", 9, {}), value_info("w", 22, {3})},
             {value_info("y", 1, {-1, 3})},
             {value_info("z", 1, {})}}),
      17, 8, {f});
  std::string intact = whole;
  REQUIRE(load(intact) == TN_OK);
  std::mt19937 random(13);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = whole;
    for (uint32_t flips = 1 + random() % 4; flips; --flips)
      damaged[random() % damaged.size()] = static_cast<char>(random());
    if (i % 5 == 0) damaged.erase(random() % damaged.size(), 1 + random() % 8);
    (void)load(damaged);
  }
}
