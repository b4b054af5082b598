// tenon.limits/1
#include <tenon/abi/limits.h>

#include "core/base/diagnostics.hpp"
#include "core/base/memory_budget.hpp"
#include "core/base/text.hpp"

namespace tenon {
namespace {

tn_status may_allocate(uint64_t bytes, tn_str what, const tn_diag* diag) {
  try {
    require_memory(bytes, "", string(what));
    return TN_OK;
  } catch (const Error& error) {
    for (const Diagnostic& d : error.diagnostics) report(diag, TN_SEVERITY_ERROR, d.code, d.where, d.text);
    return TN_ERR_LIMIT;
  } catch (...) {
    return TN_ERR_MEMORY;
  }
}

}  // namespace

const tn_limits_api* limits_api() {
  static constexpr tn_limits_api table{sizeof(tn_limits_api), 0, may_allocate};
  return &table;
}

}  // namespace tenon
