// Computed constants of a match: expressions, and transforms that plugins export.
#include "match/match_check.hpp"

namespace tenon::rules {
namespace {

/// One argument: constants of the graph as they are, everything else as it would be stored.
std::string argument(MatchScope& scope, gx::Evaluator& eval, const Expression& e, sdk::OwnedTensor* own,
                     tn_tensor* out) {
  *out = {};
  if (e.program.empty()) return {};
  const gx::Value v = eval.run(e.program);
  if (v.kind == gx::Value::Absent) return {};
  if (v.is_unknown()) return v.text;
  if (v.kind == gx::Value::Graph)
    return scope.constant(v.graph, out) ? std::string() : "'" + v.text + "' is not constant";
  const gx::Value t = eval.tensor(v);
  if (t.is_unknown()) return t.text;
  *own = gx::store(t.tensor);
  *out = own->raw();
  return {};
}

}  // namespace

gx::Value evaluate(const Let& let, MatchScope& scope, gx::Evaluator& eval, sdk::OwnedTensor* exact) {
  if (!let.transform.record) return eval.run(let.expr.program);
  std::vector<tn_tensor> in(let.args.size());
  std::vector<sdk::OwnedTensor> own(let.args.size());
  for (size_t i = 0; i < let.args.size(); ++i)
    if (const std::string why = argument(scope, eval, let.args[i], &own[i], &in[i]); !why.empty())
      return gx::Value::unknown(why);
  struct Result {
    sdk::OwnedTensor tensor;
    uint32_t count = 0;
  } result;
  sdk::DiagBuffer said;
  const tn_status status = let.transform.record->apply(
      let.transform.instance, in.data(), static_cast<uint32_t>(in.size()),
      [](void* context, const tn_tensor* t) {
        auto& r = *static_cast<Result*>(context);
        if (t && t->dtype != TN_STRING && r.count++ == 0) r.tensor = sdk::OwnedTensor(*t);
      },
      &result, said.raw());
  if (status != TN_OK)
    return gx::Value::unknown("transform " + let.source + " failed: " +
                              (said.text().empty() ? "status " + std::to_string(status) : said.text()));
  if (result.count != 1)
    return gx::Value::unknown("transform " + let.source + " gave " + std::to_string(result.count) +
                              " results, one is wanted");
  gx::Tensor numbers;
  gx::Value v =
      gx::load(result.tensor.raw(), &numbers)
          ? gx::Value::of(std::move(numbers))
          : gx::Value::unknown(std::string("a tensor of ") + sdk::dtype_name(result.tensor.dtype()));
  if (exact) *exact = std::move(result.tensor);
  return v;
}

}  // namespace tenon::rules
