// One function a family of kernels; plugin.cpp calls them all.
#pragma once
#include "tenon/sdk/plugin.hpp"

namespace tenon::cpu {

void provide_conv(sdk::Plugin&);
void provide_matmul(sdk::Plugin&);
void provide_pool(sdk::Plugin&);
void provide_unary(sdk::Plugin&);
void provide_binary(sdk::Plugin&);
void provide_fused_elementwise(sdk::Plugin&);
void provide_softmax(sdk::Plugin&);
void provide_norm(sdk::Plugin&);
void provide_reduce(sdk::Plugin&);
void provide_attention(sdk::Plugin&);
void provide_rotary(sdk::Plugin&);
void provide_movement(sdk::Plugin&);
void provide_transpose(sdk::Plugin&);
void provide_integer_matmul(sdk::Plugin&);
void provide_integer_conv(sdk::Plugin&);
void provide_quantised_lstm(sdk::Plugin&);

}  // namespace tenon::cpu
