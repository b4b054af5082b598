#include "formats.hpp"

static void provide(tenon::sdk::Plugin& p) {
  p.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION).vendor("Tenon");
  p.summary("Tensor files: .npy, .npz and ONNX .pb");
  p.tensor_file(tenon::tensors::npy_record())
      .tensor_file(tenon::tensors::npz_record())
      .tensor_file(tenon::tensors::pb_record());
}
TENON_PLUGIN(provide)
