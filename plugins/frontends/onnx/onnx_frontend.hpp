// The frontend's record: reads .onnx files (IR versions 3 to 14, opsets 7 to 28).
#pragma once
#include "tenon/abi/frontend.h"

namespace tenon::onnx {
const tn_frontend_record* frontend_record() noexcept;
}
