// Any bytes as an ONNX model: refused with a reason, or a graph that is sound, that prints and reads back,
// and that the exporter writes in a form the reader takes again.
#include <tenon/abi/exporter.h>

#include "core/base/text.hpp"
#include "core/graph/text_form.hpp"
#include "fuzz_support.hpp"

namespace {

using namespace tenon;
using namespace tenon::fuzz;

struct Target {
  Engine& engine = make_engine({"onnx", "ops"}, "model.onnx");
  Engine& again = make_engine({"onnx", "ops"}, "written.onnx");
  Target() {
    // For external data: 256 bytes in a file that models may name.
    std::string bytes(256, '\0');
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<char>(i);
    scratch_file("data.bin", bytes.data(), bytes.size());
  }

  void write_and_read(Graph& graph) {
    const ExporterEntry* exporter = engine.registries().exporter("onnx");
    const std::string path = (scratch_folder() / "written.onnx").string();
    Diagnostics said;
    const tn_status status = exporter->record->write(exporter->instance, engine.host().abi(), &graph,
                                                     to_abi(path), nullptr, 0, said.abi());
    if (status != TN_OK) {
      if (!said.has_errors()) broken("the exporter refuses and says nothing", print(graph));
      return;
    }
    try {
      const std::unique_ptr<Graph> read = again.load_model();
      require_sound(*read, "after it was written and read");
    } catch (const Error& error) {
      broken("what the exporter wrote is refused", std::string(error.what()) + "\n" + print(graph));
    }
    again.diagnostics().clear();
  }

  void one(const uint8_t* data, size_t size) {
    scratch_file("model.onnx", data, size);
    engine.diagnostics().clear();
    std::unique_ptr<Graph> graph;
    try {
      graph = engine.load_model();
    } catch (const Error& error) {
      require_explained(error);
      return;
    }
    require_sound(*graph, "after loading");
    // Large graphs say nothing new here and would make every mutation of them slow.
    if (graph->live_node_count() <= 256) write_and_read(*graph);
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static auto* const target = new Target;
  target->one(data, size);
  return 0;
}
