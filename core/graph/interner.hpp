// Interned strings, process-wide: operators, attribute names, encodings. Thread-safe; texts live until exit.
#pragma once
#include <string_view>

#include "tenon/abi/graph.h"

namespace tenon {

tn_sym intern(std::string_view text);         // [any]
std::string_view symbol_text(tn_sym symbol);  // [any] empty for a number that never was a symbol

// "Conv" -> {"", "Conv"}; "tenon::SDPA" -> {"tenon", "SDPA"}.
struct OpName {
  std::string_view domain, name;
};
OpName split_op_name(std::string_view text);

}  // namespace tenon
