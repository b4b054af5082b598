#include "tenon/sdk/plugin.hpp"
#include "onnx_exporter.hpp"
#include "onnx_frontend.hpp"

static void provide(tenon::sdk::Plugin& p) {
  p.id(TENON_PLUGIN_ID).name(TENON_PLUGIN_NAME).version(TENON_PLUGIN_VERSION).vendor("Tenon");
  p.summary("Reads and writes ONNX models");
  p.frontend(tenon::onnx::frontend_record()).exporter(tenon::onnx::exporter_record());
}
TENON_PLUGIN(provide)
