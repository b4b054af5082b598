#include "core/graph/symbols.hpp"

#include <catch2/catch.hpp>

using namespace tenon;

TEST_CASE("Expressions are simplified to one canonical text") {
  struct Case {
    const char* in;
    const char* out;
  };
  const Case cases[] = {
      {"N + 1 - 1", "N"},
      {"N - N", "0"},
      {"2*N + 3*N", "5*N"},
      {"M*N", "N*M"},
      {"(N + 1)*(N - 1)", "N*N - 1"},
      {"floordiv(N*4, 4)", "N"},
      {"floordiv(5*N, 2)", "2*N + floordiv(N, 2)"},
      {"floordiv(N + 3, 2)", "floordiv(N + 1, 2) + 1"},
      {"floordiv(2*N, 4)", "floordiv(N, 2)"},
      {"floordiv(2*N + 1, 2)", "N"},
      {"floordiv(floordiv(N, 2), 3)", "floordiv(N, 6)"},
      {"floordiv(floordiv(N, 2) + 1, 2)", "floordiv(N + 2, 4)"},
      {"floordiv(N*M, M)", "N"},
      {"floordiv(N*S + N, S + 1)", "N"},
      {"mod(N, 1)", "0"},
      {"mod(4*N, 2)", "0"},
      {"mod(4*N + 3, 4)", "3"},
      {"mod(N + 8, 8)", "mod(N, 8)"},
      {"mod(mod(N, 8), 4)", "mod(N, 4)"},
      {"mod(2*N, 4)", "2*mod(N, 2)"},
      {"max(N, N + 1)", "N + 1"},
      {"min(N, 0)", "0"},
      {"max(max(N, M), N)", "max(N, M)"},
      {"max(M, N)", "max(N, M)"},
      {"7 - 9", "-2"},
      {"floordiv(0 - 7, 2)", "-4"},
      {"mod(0 - 7, 3)", "2"},
      {"9223372036854775807 + 1", "9223372036854775807"},
      {"9223372036854775807 * 2", "9223372036854775807"},
      {"0*N", "0"},
      {"max(min(N, M), N)", "N"},
      {"floordiv(7, 2) + mod(7, 2) + max(3, 4) + min(3, 4)", "11"},
  };
  for (const auto& test : cases) {
    SymbolTable table;
    table.named("N");
    table.named("M");
    table.named("S");
    const auto dim = table.parse(test.in);
    INFO(test.in);
    REQUIRE(dim.has_value());
    CHECK(table.text(*dim) == test.out);
    CHECK(table.parse(test.out) == dim);  // and the text reads back to the same handle
  }
}

TEST_CASE("What is malformed is not parsed") {
  SymbolTable table;
  for (const char* text : {"", "N +", "(N", "floordiv(N)", "N M", "99999999999999999999", "'N"})
    CHECK_FALSE(table.parse(text));
  CHECK_FALSE(table.parse(std::string(100000, '(')));
}

TEST_CASE("Comparisons know what ranges tell") {
  SymbolTable table;
  const tn_dim n = table.named("N"), m = table.named("M"), k = table.fresh("k", 1, 5);
  const tn_dim n1 = table.combine(TN_DIM_ADD, n, 1);
  CHECK(table.compare(TN_DIM_EQ, n, n) == TN_YES);
  CHECK(table.compare(TN_DIM_EQ, n, n1) == TN_NO);
  CHECK(table.compare(TN_DIM_LT, n, n1) == TN_YES);
  CHECK(table.compare(TN_DIM_EQ, n, m) == TN_UNKNOWN);
  CHECK(table.compare(TN_DIM_LE, n, m) == TN_UNKNOWN);
  CHECK(table.compare(TN_DIM_LE, k, 5) == TN_YES);
  CHECK(table.compare(TN_DIM_LT, k, 1) == TN_NO);
  CHECK(table.compare(TN_DIM_EQ, k, 6) == TN_NO);
  CHECK(table.compare(TN_DIM_EQ, table.combine(TN_DIM_MUL, n, 2),
                      table.combine(TN_DIM_ADD, table.combine(TN_DIM_MUL, m, 2), 1)) == TN_NO);
  CHECK(table.compare(TN_DIM_LE, table.combine(TN_DIM_MOD, n, 4), 3) == TN_YES);
  int64_t lo = 0, hi = 0;
  table.range(table.combine(TN_DIM_MUL, k, 3), &lo, &hi);
  CHECK(lo == 3);
  CHECK(hi == 15);
}

TEST_CASE("Division by what may be zero is unknown, the same each time it is asked") {
  SymbolTable table;
  const tn_dim n = table.named("N"), m = table.named("M"), k = table.fresh("k", 1, TN_DIM_MAX);
  const tn_dim q = table.combine(TN_DIM_FLOORDIV, n, m);
  CHECK(table.is_symbol(q, nullptr));
  CHECK(table.combine(TN_DIM_FLOORDIV, n, m) == q);
  CHECK_FALSE(table.is_symbol(table.combine(TN_DIM_FLOORDIV, n, k), nullptr));
  CHECK(table.combine(TN_DIM_CEILDIV, table.combine(TN_DIM_MUL, n, k), k) == n);
  CHECK(table.combine(TN_DIM_CEILDIV, 7, 2) == 4);
  CHECK(table.text(table.combine(TN_DIM_CEILDIV, n, 2)) == "floordiv(N + 1, 2)");
}

TEST_CASE("Expressions are evaluated once symbols are known") {
  SymbolTable table;
  const tn_dim dim = *table.parse("floordiv(N + 3, 2)*M + max(N, 4)");
  const auto value = table.evaluate(dim, [](std::string_view name) -> std::optional<int64_t> {
    if (name == "N") return 6;
    if (name == "M") return 10;
    return std::nullopt;
  });
  CHECK(value == 46);
  CHECK_FALSE(table.evaluate(dim, [](std::string_view) { return std::optional<int64_t>(); }));
  CHECK(table.symbols_of(dim) == std::vector<std::string>{"N", "M"});
}

TEST_CASE("Nesting is bounded: deep chains end in fresh symbols, and nothing recurses far") {
  SymbolTable table;
  tn_dim dim = table.named("N");
  for (int i = 0; i < 5000; ++i)
    dim = table.combine(TN_DIM_MAX_OF, table.combine(TN_DIM_FLOORDIV, table.combine(TN_DIM_ADD, dim, 3), 7),
                        table.named("M" + std::to_string(i % 3)));
  CHECK(table.text(dim).size() < 100000);
  CHECK_FALSE(table.evaluate(dim, [](std::string_view) { return std::optional<int64_t>(); }));
}

TEST_CASE("Two tables given the same calls give the same handles") {
  SymbolTable a, b;
  for (SymbolTable* table : {&a, &b}) {
    table->fresh("x", 0, 9);
    table->combine(TN_DIM_FLOORDIV, table->named("N"), table->named("M"));
  }
  CHECK(a.parse("N*M + 1") == b.parse("N*M + 1"));
  CHECK(a.fresh("x", 0, 9) == b.fresh("x", 0, 9));
}
