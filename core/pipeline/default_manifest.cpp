#include "core/pipeline/manifest.hpp"

namespace tenon {

// schemas/default.json is this text (a test compares them): the file that one prints, copies and changes.
std::string_view default_manifest_text() {
  return R"json({
  // What `tenon run model.onnx` uses. Copy it, name your model, change what you like.
  "schema": "tenon.pipeline/1",
  "plugins": ["onnx", "ops", "fusion", "rules", "elementwise", "memory", {"name": "cpu", "required": false}, {"name": "media", "required": false},
              "tensors"],
  "model": {"frontend": "auto"},
  "rules": ["builtin"],
  // 0 rewrites nothing, 1 canonicalises and cleans, 2 fuses too, 3 is everything there is.
  "level": 3,
  "pipeline": ["canonicalize", "fold", "control", "canonicalize", "fold", "cse", "clean", "raise", "algebra", "move", "fold", "cse",
               "fuse", "layout_rules", "device_rules", "fuse_elementwise", "clean"],
  "precision": {"mode": "faithful"},
  "runtime": {"threads": 0},
  "on_error": "rollback"
}
)json";
}

}  // namespace tenon
