// What the graph needs to know of operators: their definitions, looked up by symbol. Implemented by the
// plugin set, and by a small fake in tests.
#pragma once
#include <cstdint>
#include <string_view>

#include "tenon/abi/ops.h"

namespace tenon {

struct OpEntry {
  const tn_op_def* def = nullptr;
  void* instance = nullptr;  // of the plugin that provides it; first argument of the definition's functions
};

class OpRegistry {
 public:
  virtual ~OpRegistry() = default;
  virtual const OpEntry* find(tn_sym op) const = 0;                   // NULL: no definition. Stable address
  virtual int32_t domain_version(std::string_view domain) const = 0;  // canonical version; 0: unknown domain
};

}  // namespace tenon
