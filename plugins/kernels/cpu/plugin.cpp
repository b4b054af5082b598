#include "families.hpp"

static void provide(tenon::sdk::Plugin& p) {
  using namespace tenon::cpu;
  p.id("tenon.cpu")
      .name("cpu")
      .version("1.0.0")
      .vendor("Tenon")
      .summary("fast kernels of float32 and 8-bit integers for the host's processor, on oneDNN and Highway");
  for (auto family :
       {provide_conv, provide_matmul, provide_pool, provide_unary, provide_binary, provide_fused_elementwise,
        provide_softmax, provide_norm, provide_reduce, provide_attention, provide_rotary, provide_movement,
        provide_transpose, provide_integer_matmul, provide_integer_conv, provide_quantised_lstm})
    family(p);
}
TENON_PLUGIN(provide)
