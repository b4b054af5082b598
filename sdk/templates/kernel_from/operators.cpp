// The operators: their schemas, and what types the results have.
#include "parts.hpp"

namespace @NAMESPACE@ {

using namespace tenon::sdk;

namespace {

@OPERATORS@}  // namespace

void add_operators(Plugin& plugin) {
@ADD_OPERATORS@}

}  // namespace @NAMESPACE@
