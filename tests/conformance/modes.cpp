#include "modes.hpp"

#include "core/base/text.hpp"
#include "core/pipeline/pipeline.hpp"

namespace tenon::conformance {

std::vector<Mode> all_modes() {
  Diagnostics findings;
  const Manifest manifest = default_manifest({}, findings);
  findings.throw_if_errors(exit_bad_input);
  const auto mode = [&](std::string name) -> Mode {
    Mode made{std::move(name), manifest};
    // A pass that fails is a failed test here, not a warning. One thread: the tests are small, and several
    // run at once.
    made.manifest.on_error = Manifest::OnError::stop;
    made.manifest.runtime.threads = 1;
    return made;
  };
  const auto rewrites = [](Mode& made, std::vector<PassRequest> passes) {
    made.manifest.pipeline = std::move(passes);
    made.manifest.pipeline_is_default = false;
  };

  std::vector<Mode> modes = {mode("optimised"), mode("unoptimised"), mode("reference")};
  rewrites(modes[1], {});
  rewrites(modes[2], {});
  std::erase_if(modes[2].manifest.plugins, [](const PluginRequest& plugin) { return plugin.name == "cpu"; });

  const Engine engine(manifest);
  for (const PassEntry& pass : engine.registries().passes()) {
    PassRequest request;
    request.pass = string(pass.record->id);
    request.where = "mode pass:" + request.pass;
    modes.push_back(mode("pass:" + request.pass));
    rewrites(modes.back(), {request});
  }
  return modes;
}

}  // namespace tenon::conformance
