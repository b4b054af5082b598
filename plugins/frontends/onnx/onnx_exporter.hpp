// The exporter's record: writes a graph as an ONNX model.
#pragma once
#include "tenon/abi/exporter.h"

namespace tenon::onnx {
const tn_exporter_record* exporter_record() noexcept;
}
