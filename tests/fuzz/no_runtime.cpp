// A fuzz build has no core/runtime: what the rest asks of it. Nothing is computed while optimising there.
#include "core/runtime/eval.hpp"

namespace tenon {

const tn_eval_api* Evaluator::api() { return nullptr; }

}  // namespace tenon
