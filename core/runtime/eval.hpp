// tenon.eval.draft/1: computing while optimising.
#pragma once
#include <tenon/abi/eval.h>

#include <memory>

#include "core/plugin/host.hpp"
#include "core/plugin/registries.hpp"
#include "core/runtime/session.hpp"

namespace tenon {

// Provides tenon.eval.draft/1 to the host while it lives. Nodes are computed by reference kernels where there
// is one, else by what the run would take.
class Evaluator {
 public:
  Evaluator(Host& host, const Registries& registries, RuntimeOptions options = {});
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  static const tn_eval_api* api();

  struct State;  // of this file
 private:
  Host& host_;
  std::unique_ptr<State> state_;
};

}  // namespace tenon
