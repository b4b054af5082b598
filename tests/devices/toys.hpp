// The toy device of examples/toy_device with other traits, each in an engine of its own, and graphs in text.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/pipeline/pipeline.hpp"
#include "core/runtime/session.hpp"

namespace tenon::test {

enum class Toy {
  plain,      // as in the example: a compute stream and one for copies
  in_order,   // one stream for all
  visible,    // the host may read its memory
  two,        // two devices, copies between them go through the host
  two_peers,  // two that read each other's memory
  small,      // gives 4096 bytes a buffer at most
  fragile     // lost at a copy, when told to be
};
Engine& engine_with(Toy toy);
// The fragile one's copy number n from now is its last, 0: none; how often one was opened.
void lose_at_copy(int n);
int times_opened();

std::unique_ptr<Graph> graph_of(Engine& engine, const std::string& lines);

struct Tensors {
  std::vector<std::string> names;
  std::vector<std::vector<int64_t>> dims;
  std::vector<std::vector<float>> values;
};
// Values between -1 and 1 for all inputs, the same for the same seed; symbols of the model are `size`.
Tensors inputs_for(const Session& session, uint64_t seed, int64_t size = 4);
Tensors run(const Session& session, const Tensors& inputs);
// The graph on the host alone.
Tensors reference(Engine& engine, const std::string& lines, uint64_t seed, int64_t size = 4);
void require_close(const Tensors& got, const Tensors& want);

RuntimeOptions options_for(DevicePolicy devices, uint32_t threads = 1, bool guard = false);
// Every node that it can run on the toy; `pin` before that.
DevicePolicy on_toy(std::map<std::string, std::string> pin = {});

}  // namespace tenon::test
