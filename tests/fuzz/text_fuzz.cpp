// Any bytes as a graph's text form: refused with line and column, or a sound graph whose print is a fixed
// point.
#include "core/graph/text_form.hpp"
#include "fuzz_support.hpp"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

struct Target {
  Engine& engine = make_engine({"ops"});

  void one(const uint8_t* data, size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    Diagnostics findings;
    const std::unique_ptr<Graph> graph = parse(text, &engine.registries(), findings);
    if ((graph == nullptr) != findings.has_errors()) broken("a graph together with errors, or neither", text);
    for (const Diagnostic& finding : findings.all()) {
      if (finding.text.empty() || finding.where.empty())
        broken("a finding without a text or a place", to_string(finding));
      if (finding.severity >= TN_SEVERITY_PLUGIN_MISBEHAVING)
        broken("the input is blamed on us", to_string(finding));
    }
    if (!graph) return;
    require_sound(*graph, "after reading");
    const std::string printed = print(*graph);
    Diagnostics again;
    const std::unique_ptr<Graph> read = parse(printed, &engine.registries(), again);
    if (!read) broken("what was printed is refused: " + again.first_error(), printed);
    require_sound(*read, "after printing and reading");
    const std::string second = print(*read);
    if (second != printed) broken("printing is no fixed point", printed + "\n--- then\n" + second);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const target = new Target;
  target->one(data, size);
  return 0;
}
