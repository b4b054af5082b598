// How much work an operator is, roughly and for ever the same: what a rule must lower when it makes as many
// nodes as it takes away, so that rules come to an end.
#pragma once
#include <cstdint>
#include <string_view>

namespace tenon::rules {

/// From 0 (Identity) up; operators without a place in the table weigh `plain_weight`.
uint32_t op_weight(std::string_view op);
constexpr uint32_t plain_weight = 6;

}  // namespace tenon::rules
