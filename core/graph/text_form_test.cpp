#include "core/graph/text_form.hpp"

#include <catch2/catch.hpp>

#include "core/graph/test_ops.hpp"
#include "core/graph/text_codec.hpp"
#include "core/graph/verify.hpp"

using namespace tenon;

namespace {
constexpr const char* sample = R"(graph "net" {
  opset "" 28
  opset "com.example" 2
  metadata "producer" "a \"quoted\" one"
  symbol "k" 1 5
  const %axes: int64[2] = [0, -1]
  const %big: float32[2,10] = base64 "AAAAAAAAgD8AAABAAABAQAAAgEAAAKBAAADAQAAA4EAAAABBAAAQQQAAIEEAADBBAABAQQAAUEEAAGBBAABwQQAAgEEAAIhBAACQQQAAmEE="
  const %flags: bool[2] = [true, false]
  const %half: float32[] = [0.5]
  const %inf: float64[3] = [inf, -inf, -0.0]
  const %words: string[2] = ["a", "b \n c"]
  const %zeros: float32[64,64] = uniform [0.0]
  const %x_default: float32[1] = [1.5]
  input %x: float32[N,floordiv(N + 1, 2),'odd name']
  input %c: bool[]
  input %"name with \"quotes\"": seq(float32[*])
  input %o: optional(?[*])
  input %d: float32[1] default %x_default
  %y: float32[N,4], _, %z = com.example::Op(%x, _, %axes) {alpha = 0.5, count = 3, name = "s", pads = [1, -2], scales = [0.5, 2.0], words = ["a", "b"], none = ints[], no = strings[], data = tensor int64[2] [7, 8], kind = type float32[N]} version 2 name "n1"
  %t: float32[4] = If(%c) version 28 name "if" origin "a", "b" {
    region "then_branch" {
      %i: float32[4] = Neg(%y)
      output %i as "outside"
    }
    region "else_branch" {
      %inner = If(%c) {
        region "then_branch" {
          input %r: float32[4]
          %j = Many(%big, %flags, %half, %inf, %words, %zeros, %"name with \"quotes\"", %o, %d, %r)
          output %j as "j"
        }
      }
      output %inner as "outside"
    }
  }
  () = Sink(%t) name "sink"
  output %t as "result"
  output %z as "z"
}
)";
}  // namespace

TEST_CASE("Text reads back to the same text") {
  Diagnostics found;
  const auto graph = parse(sample, nullptr, found);
  INFO(found.first_error());
  REQUIRE(graph);
  CHECK(verify(*graph, found));
  const std::string once = print(*graph);
  CHECK(once == sample);
  const auto again = parse(once, nullptr, found);
  REQUIRE(again);
  CHECK(print(*again) == once);
}

TEST_CASE("One node prints on one line") {
  const auto graph = test::small_chain();
  CHECK(print_node(*graph, 0) == "%a: float32[N,4] = Relu(%x) version 28 name \"relu\"");
  TextOptions brief;
  brief.types = false;
  CHECK(print(*graph, brief).find("%a = Relu(%x)") != std::string::npos);
}

TEST_CASE("Bytes may be left out, and such text is refused") {
  Diagnostics found;
  const auto graph = parse(sample, nullptr, found);
  REQUIRE(graph);
  TextOptions options;
  options.constant_bytes = false;
  const std::string text = print(*graph, options);
  CHECK(text.find("%big: float32[2,10] = #") != std::string::npos);
  CHECK_FALSE(parse(text, nullptr, found));
  CHECK(found.first_error().find("left out") != std::string::npos);
}

TEST_CASE("Errors name line and column, found and expected") {
  struct Case {
    const char* text;
    const char* where;
    const char* says;
  };
  const Case cases[] = {
      {"grph \"x\" {}", "1:1", "expected 'graph'"},
      {"graph \"x\" {\n  %y = Neg(%x)\n}", "2:14", "'x' is not defined"},
      {"graph \"x\" {\n  input %x: flot[1]\n}", "2:17", "no element type"},
      {"graph \"x\" {\n  const %c: int64[2] = [1]\n}", "2:27", "1 elements for a shape that has 2"},
      {"graph \"x\" {\n  const %c: int64[4000000000,4000000000] = [1]\n}", "2:", "no size"},
      {"graph \"x\" {\n  const %c: int8[1] = [300]\n}", "2:", "does not fit"},
      {"graph \"x\" {\n  input %x\n  input %x\n}", "3:3", "defined twice"},
      {"graph \"x\" {\n  input %x\n  %a = Neg(%x)\n  %a = Neg(%x)\n}", "4:", "single static assignment"},
      {"graph \"x\" {", "1:12", "found the end"},
      {"graph \"x\" {\n  nonsense\n}", "2:11", "begins no statement"},
      {"graph \"x\" {} more", "1:14", "after the end"},
  };
  for (const auto& test : cases) {
    Diagnostics found;
    INFO(test.text);
    CHECK_FALSE(parse(test.text, nullptr, found));
    REQUIRE(found.has_errors());
    INFO(found.first_error());
    CHECK(found.all()[0].where.rfind(test.where, 0) == 0);
    CHECK(found.all()[0].text.find(test.says) != std::string::npos);
  }
}

TEST_CASE("Every cut and every changed byte of a text is read or refused, never worse") {
  const std::string text = sample;
  for (size_t i = 0; i < text.size(); i += 7) {
    Diagnostics found;
    parse(text.substr(0, i), nullptr, found);
    std::string changed = text;
    changed[i] = static_cast<char>(changed[i] ^ 0x15);
    parse(changed, nullptr, found);
  }
}

TEST_CASE("Base64") {
  std::string bytes;
  for (const char* text : {"", "a", "ab", "abc", "abcd"}) {
    CHECK(decode_base64(encode_base64(text, std::strlen(text)), &bytes));
    CHECK(bytes == text);
  }
  CHECK(encode_base64("any carnal pleas", 16) == "YW55IGNhcm5hbCBwbGVhcw==");
  for (const char* text : {"A", "AB=C", "A===", "AB!="}) CHECK_FALSE(decode_base64(text, &bytes));
}
