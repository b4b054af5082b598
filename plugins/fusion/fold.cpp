// Constant folding, in topological order so that one sweep folds whole chains.
//
// A result becomes a constant when its elements are known from shape arithmetic, or when all operands are
// constants and the result is small: at most `max_bytes_free`, or at most `max_growth` times the constant
// operands that nobody else reads (they die with the node). Random and stateful operators are never folded.
#include <algorithm>

#include "passes.hpp"

namespace tenon::fusion {

using namespace sdk;

namespace {

struct Folder {
  Pass& pass;
  GraphView graph;
  const tn_eval_api* eval;
  double max_growth;
  uint64_t max_bytes_free;
  uint64_t matched = 0, applied = 0;

  // Every wanted result known from shape arithmetic, as numbers of a type that can hold them.
  bool known_result(tn_value v, OwnedTensor* out) const {
    const tn_value_info info = graph.value(v);
    if (info.type.kind != TN_KIND_TENSOR || info.type.rank < 0) return false;
    if (info.type.dtype != TN_INT64 && info.type.dtype != TN_INT32 && info.type.dtype != TN_BOOL)
      return false;
    bool known = false;
    const auto elements = graph.known_elements(v, &known);
    if (!known) return false;
    Dims dims;
    int64_t count = 1;
    for (tn_dim d : dims_of(info.type)) {
      if (d < 0) return false;
      dims.push_back(d);
      count = checked_mul(count, d);
    }
    if (count != static_cast<int64_t>(elements.size())) return false;
    const auto* symbols = pass.service<tn_symbols_api>(TN_SYMBOLS_ID);
    OwnedTensor t(info.type.dtype, dims);
    for (size_t i = 0; i < elements.size(); ++i) {
      int64_t number = elements[i];
      if (number < 0 && !symbols->as_number(graph.raw(), elements[i], &number)) return false;
      if (info.type.dtype == TN_INT64)
        t.data<int64_t>()[i] = number;
      else if (info.type.dtype == TN_INT32)
        t.data<int32_t>()[i] = static_cast<int32_t>(number);
      else
        t.data<uint8_t>()[i] = number != 0;
    }
    *out = std::move(t);
    return true;
  }

  bool fold_known(const Node& node) {
    std::vector<std::pair<tn_value, OwnedTensor>> results;
    for (tn_value v : node.outputs()) {
      if (v == TN_NONE || graph.value(v).use_count == 0) continue;
      OwnedTensor t;
      if (!known_result(v, &t)) return false;
      results.emplace_back(v, std::move(t));
    }
    return !results.empty() && replace(node, results);
  }

  bool operands_are_constants(const Node& node, uint64_t* dying_bytes) const {
    bool any = false;
    *dying_bytes = 0;
    for (tn_value v : node.inputs()) {
      if (v == TN_NONE) continue;
      const auto info = graph.value(v);
      if (info.kind != TN_VALUE_CONSTANT) return false;
      any = true;
      if (info.use_count == 1) {
        int64_t count = 1;
        for (tn_dim d : dims_of(info.type)) count = checked_mul(count, d);
        *dying_bytes += packed_bytes(info.type.dtype, count);
      }
    }
    return any;
  }

  void fold_by_kernel(const Node& node) {
    uint64_t dying_bytes = 0;
    if (!node.regions().empty() || !operands_are_constants(node, &dying_bytes)) return;
    for (tn_value v :
         node.outputs())  // a string or a sequence is nothing a kernel of ours should be asked for here
      if (v != TN_NONE &&
          (graph.value(v).type.kind > TN_KIND_TENSOR || graph.value(v).type.dtype == TN_STRING))
        return;
    ++matched;
    const uint64_t limit =
        std::max(max_bytes_free, static_cast<uint64_t>(max_growth * static_cast<double>(dying_bytes)));
    struct Sink {
      std::vector<OwnedTensor> tensors;
      std::string failure;
    } sink;
    sink.tensors.resize(node.outputs().size());
    DiagBuffer said;
    const tn_status status = eval->node(
        pass.host(), graph.raw(), node.id(), limit,
        [](void* context, uint32_t index, const tn_tensor* tensor) {
          auto* s = static_cast<Sink*>(context);
          guarded(nullptr, [&] {
            if (index < s->tensors.size()) s->tensors[index] = OwnedTensor(*tensor);
          });
        },
        &sink, said.raw());
    if (status == TN_ERR_LIMIT) {
      pass.explain(TN_REASON_LIMIT, "fold", node.id(),
                   format("the result is larger than %llu bytes", static_cast<unsigned long long>(limit)),
                   "growth limit", "raise max_growth or max_bytes_free");
      return;
    }
    if (status != TN_OK) {
      pass.explain(TN_REASON_KERNEL, "fold", node.id(), said.text());
      return;
    }
    std::vector<std::pair<tn_value, OwnedTensor>> results;
    for (uint32_t i = 0; i < node.outputs().size(); ++i) {
      const tn_value v = node.output(i);
      if (v == TN_NONE || graph.value(v).use_count == 0) continue;
      if (sink.tensors[i].dtype() == TN_DTYPE_NONE)
        return;  // the kernel gave no such result: leave the node alone
      results.emplace_back(v, std::move(sink.tensors[i]));
    }
    replace(node, results);
  }

  bool replace(const Node& node, std::vector<std::pair<tn_value, OwnedTensor>>& results) {
    Transaction edit = pass.edit("fold");
    if (!edit.active()) return false;
    const tn_node id = node.id();
    for (auto& [value, tensor] : results) {
      const std::string name(sdk::view(graph.value(value).name));
      edit.replace_uses(value, edit.constant(std::move(tensor), name));
    }
    edit.erase(id);
    if (!edit.commit()) {
      pass.explain(TN_REASON_ROLLBACK, "fold", id, edit.said());
      return false;
    }
    pass.explain(TN_REASON_APPLIED, "fold", id);
    ++applied;
    return true;
  }
};

}  // namespace

void run_fold(Pass& pass) {
  Folder f{pass, pass.graph(), pass.eval(), pass.option_float("max_growth"),
           static_cast<uint64_t>(pass.option_int("max_bytes_free"))};
  for (tn_region region : regions_outer_first(f.graph)) {
    for (tn_node id : node_list(f.graph, region)) {
      const Node node = f.graph.node(id);
      if (!node.alive()) continue;
      const tn_op_def* op = pass.op(node.op());
      if (!is_pure(op)) continue;
      if (!f.fold_known(node) && f.eval) f.fold_by_kernel(node);
      if (pass.cancelled()) break;
    }
  }
  if (f.matched || f.applied) pass.count("fold", std::max(f.matched, f.applied), f.applied);
}

}  // namespace tenon::fusion
