#include <tenon/abi/files.h>
#include <tenon/abi/graph.h>
#include <tenon/abi/graph_edit.h>
#include <tenon/abi/limits.h>
#include <tenon/abi/symbols.h>

#include "core/base/files.hpp"
#include "core/base/memory_budget.hpp"
#include "core/graph/graph.hpp"
#include "core/plugin/host.hpp"

namespace tenon {

void provide_core_services(Host& host) {
  host.provide(TN_GRAPH_ID, graph_api());
  host.provide(TN_GRAPH_EDIT_ID, edit_api());
  host.provide(TN_SYMBOLS_ID, symbols_api());
  host.provide(TN_FILES_ID, files_api());
  host.provide(TN_LIMITS_ID, limits_api());
}

}  // namespace tenon
