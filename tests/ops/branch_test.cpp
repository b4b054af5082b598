// Branches that are wrong for the shapes of a run: they count only when they are taken.
#include <catch2/catch.hpp>

#include "core/graph/text_form.hpp"
#include "core/pipeline/model_loader.hpp"
#include "core/runtime/session.hpp"
#include "one_node.hpp"

namespace tenon::test {
namespace {

// Exporters write such a graph for "squeeze if that is possible": the branch that does not fit is never
// taken.
constexpr const char* squeeze_by_rate = R"(graph "g" {
  opset "" 17
  input %x: float32[N,M]
  input %rate: int64[]
  const %fast: int64[] = [16000]
  const %axis: int64[1] = [0]
  %c: ? = Equal(%rate, %fast)
  %y: ? = If(%c) {
    region "then_branch" {
      %a: ? = Identity(%x)
      output %a as "a"
    }
    region "else_branch" {
      %b: ? = Squeeze(%x, %axis)
      output %b as "b"
    }
  }
  %z: ? = Neg(%y)
  output %z as "z"
}
)";

std::vector<int64_t> dims_after(const Session& session, std::vector<int64_t> dims, int64_t rate) {
  std::vector<float> x(static_cast<size_t>(dims[0] * dims[1]), 1.0f);
  const std::vector<NamedTensor> inputs{
      {"x", {TN_FLOAT32, 2, dims.data(), x.data(), x.size() * sizeof(float)}},
      {"rate", {TN_INT64, 0, nullptr, &rate, sizeof rate}}};
  const auto outputs = session.run(inputs);
  const tn_tensor z = outputs.front().tensor();
  return {z.dims, z.dims + z.rank};
}

}  // namespace

TEST_CASE("a branch that is wrong for the shapes of a run is an error only when it is taken") {
  Diagnostics diagnostics;
  auto graph = parse(squeeze_by_rate, &ops_registry(), diagnostics);
  diagnostics.throw_if_errors(2);
  upgrade_and_infer(*graph, ops_registry(), diagnostics);
  const Session session(std::move(graph), ops_registry(), {});
  CHECK(dims_after(session, {3, 4}, 16000) == std::vector<int64_t>{3, 4});
  CHECK(dims_after(session, {1, 4}, 8000) == std::vector<int64_t>{4});
  CHECK(dims_after(session, {1, 4}, 16000) == std::vector<int64_t>{1, 4});
  CHECK(dims_after(session, {3, 4}, 16000) == std::vector<int64_t>{3, 4});
  CHECK_THROWS_WITH(dims_after(session, {3, 4}, 8000), Catch::Contains("Squeeze") && Catch::Contains("3"));
}

}  // namespace tenon::test
