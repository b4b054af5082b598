// A pipeline manifest, and after a zero byte each what `--set` would say: findings with their places, or a
// manifest that prints as JSON which is read again. Switch files come the same way: they begin with '#'.
#include "core/pipeline/switches.hpp"
#include "fuzz_support.hpp"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

void require_places(const Diagnostics& findings) {
  for (const Diagnostic& finding : findings.all()) {
    if (finding.text.empty()) broken("a finding without a text", to_string(finding));
    if (finding.severity >= TN_SEVERITY_ERROR && finding.where.empty())
      broken("an error without a place", to_string(finding));
  }
}

struct Target {
  Host host;
  PluginSet plugins{host};

  void switches(std::string text) {
    Switches switches;
    Diagnostics findings;
    switches.add_command_line(text, findings);
    switches.add_file_text("switches", std::move(text), findings);
    switches.declare({"ConvBnAct", "GraphFusion.ConvBnAct"}, true);
    switches.declare({"clean"}, false);
    switches.resolve(findings);
    require_places(findings);
  }

  void one(const uint8_t* data, size_t size) {
    std::string text(reinterpret_cast<const char*>(data), size);
    if (text.starts_with('#')) return switches(text.substr(1));
    ManifestOptions options;
    while (options.set.size() < 16) {
      const size_t zero = text.rfind('\0');
      if (zero == std::string::npos) break;
      options.set.push_back(text.substr(zero + 1));
      text.resize(zero);
    }
    Diagnostics findings;
    const std::optional<Manifest> manifest =
        parse_manifest("pipeline.json", text, scratch_folder(), options, findings);
    require_places(findings);
    if (manifest.has_value() == findings.has_errors())
      broken("a manifest together with errors, or neither", text);
    if (!manifest) return;

    std::string printed;
    try {
      printed = print_resolved(*manifest, plugins);
    } catch (const Error& error) {
      return require_explained(error);
    }
    Diagnostics again;
    const std::optional<Manifest> read =
        parse_manifest("resolved.json", printed, scratch_folder(), {}, again);
    if (!read) broken("the resolved manifest is refused: " + again.first_error(), printed);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const target = new Target;
  target->one(data, size);
  return 0;
}
