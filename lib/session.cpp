// Sessions and results.
#include <charconv>

#include "core/assembly/assembly.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/graph/graph.hpp"
#include "core/report/summary.hpp"
#include "core/runtime/cpu_features.hpp"
#include "lib/internal.hpp"

namespace tenon::lib {

namespace {

template <class Info>
Port port_of(const Info& info) {
  Port port;
  port.name = info.name;
  port.kind = info.kind;
  port.dtype = info.dtype;
  if (!info.rank_known) return port;
  port.rank = static_cast<int32_t>(info.dims.size());
  port.dim_texts = info.dims;
  for (const std::string& text : info.dims) {
    int64_t number = -1;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    port.dims.push_back(failed == std::errc() && end == text.data() + text.size() ? number : -1);
  }
  return port;
}

// Once the port lies where it will stay.
void point_into(std::vector<Port>& ports) {
  for (Port& port : ports)
    for (const std::string& text : port.dim_texts) port.dim_names.push_back(text.c_str());
}

void describe(const std::vector<Port>& ports, size_t index, tenon_port* out) {
  if (index >= ports.size())
    throw Misuse{"there is no port " + std::to_string(index) + "; there are " + std::to_string(ports.size())};
  const Port& port = ports[index];
  fill(out,
       {0, port.kind, port.name.c_str(), port.dtype, port.rank, port.dims.data(), port.dim_names.data(),
        port.optional ? 1u : 0u, 0},
       "tenon_port");
}

// The elements of an array have the size that the first one says.
template <class Struct>
std::vector<Struct> elements(const Struct* first, size_t count, const char* what) {
  std::vector<Struct> known;
  if (count == 0) return known;
  require(first, what);
  const uint32_t size = first->size;
  known.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto* at = reinterpret_cast<const Struct*>(reinterpret_cast<const char*>(first) + i * size);
    known.push_back(known_part(at, size, what));
    if (known.back().name == nullptr)
      throw Misuse{std::string(what) + "[" + std::to_string(i) + "].name is NULL"};
  }
  return known;
}

std::vector<NamedTensor> named_inputs(const tenon_input* inputs, size_t count) {
  std::vector<NamedTensor> named;
  for (const tenon_input& input : elements(inputs, count, "tenon_input")) {
    NamedTensor made{input.name, {}, nullptr};
    made.any = any_of(input.value);
    made.tensor = input.tensor;
    // All else is looked at together with the model's other inputs.
    if (made.any == nullptr && input.tensor.rank > 0 && input.tensor.dims == nullptr)
      throw Misuse{"input '" + std::string(input.name) + "' has rank " + std::to_string(input.tensor.rank) +
                   " and its dims are NULL"};
    named.push_back(made);
  }
  return named;
}

RunReport report_of(const SessionState& state) {
  RunReport report;
  report.model = state.model->path;
  report.optimize = &state.model->report;
  report.stats = state.session->stats();
  report.load_ms = state.model->load_ms;
  report.precision = state.model->host->engine->manifest().precision.mode;
  report.isa = isa_name(cpu_features());
  report.threads = state.session->thread_count();
  return report;
}

}  // namespace
}  // namespace tenon::lib

using namespace tenon;
using namespace tenon::lib;

tenon_status tenon_session_open(const tenon_model* model, tenon_session** session, tenon_error** error) {
  return guarded(error, [&] {
    require(model, "model");
    require(session, "session");
    *session = nullptr;
    auto state = std::make_shared<SessionState>();
    state->model = model->state;
    const Engine& engine = *model->state->host->engine;
    state->session = std::make_unique<Session>(model->state->graph->clone(), engine.registries(),
                                               runtime_options(engine.manifest()));
    for (const InputInfo& info : state->session->inputs()) {
      state->inputs.push_back(port_of(info));
      state->inputs.back().optional = info.optional;
    }
    for (const OutputInfo& info : state->session->outputs()) state->outputs.push_back(port_of(info));
    point_into(state->inputs);
    point_into(state->outputs);
    *session = new tenon_session{std::move(state)};
  });
}

void tenon_session_close(tenon_session* session) { delete session; }

size_t tenon_session_input_count(const tenon_session* session) {
  return session == nullptr ? 0 : session->state->inputs.size();
}
size_t tenon_session_output_count(const tenon_session* session) {
  return session == nullptr ? 0 : session->state->outputs.size();
}
tenon_status tenon_session_input(const tenon_session* session, size_t index, tenon_port* port) {
  return guarded(nullptr, [&] {
    require(session, "session");
    describe(session->state->inputs, index, port);
  });
}
tenon_status tenon_session_output(const tenon_session* session, size_t index, tenon_port* port) {
  return guarded(nullptr, [&] {
    require(session, "session");
    describe(session->state->outputs, index, port);
  });
}

tenon_status tenon_session_run(const tenon_session* session, const tenon_input* inputs, size_t input_count,
                               const tenon_output* outputs, size_t output_count, tenon_result** result,
                               tenon_error** error) {
  return guarded(error, [&] {
    require(session, "session");
    if (result != nullptr) *result = nullptr;
    if (result == nullptr && output_count == 0)
      throw Misuse{
          "neither memory for outputs nor a place for the result was given; the run would be for nothing"};
    const std::vector<NamedTensor> named = named_inputs(inputs, input_count);
    std::vector<OutputBuffer> memory;
    for (const tenon_output& output : elements(outputs, output_count, "tenon_output")) {
      if (output.data == nullptr && output.bytes != 0)
        throw Misuse{"output '" + std::string(output.name) + "' has no memory: its data is NULL"};
      for (const OutputBuffer& other : memory)
        if (other.name == output.name)
          throw Misuse{"output '" + std::string(output.name) + "' is given twice"};
      memory.push_back({output.name, output.data, output.bytes});
    }
    auto made = std::make_unique<tenon_result>();
    made->session = session->state;
    made->outputs = session->state->session->run(named, memory);
    if (result != nullptr) *result = made.release();
  });
}

tenon_status tenon_session_prepare(const tenon_session* session, const tenon_input* inputs,
                                   size_t input_count, tenon_error** error) {
  return guarded(error, [&] {
    require(session, "session");
    session->state->session->prepare(named_inputs(inputs, input_count));
  });
}

tenon_status tenon_session_summary(const tenon_session* session, tenon_format format, char** text,
                                   tenon_error** error) {
  return guarded(error, [&] {
    require(session, "session");
    require(text, "text");
    const RunReport report = report_of(*session->state);
    std::string made = format == TENON_JSON
                           ? run_report_json(report).dump(2, ' ', false, Json::error_handler_t::replace)
                           : run_report_text(report);
    if (format != TENON_JSON) {
      for (const Diagnostic& finding : session->state->session->diagnostics())
        made += to_string(finding) + "\n";
    }
    *text = as_text(made);
  });
}

size_t tenon_result_count(const tenon_result* result) {
  return result == nullptr ? 0 : result->outputs.size();
}
const char* tenon_result_name(const tenon_result* result, size_t index) {
  return index < tenon_result_count(result) ? result->outputs[index].name.c_str() : nullptr;
}
const tenon_value* tenon_result_value(const tenon_result* result, size_t index) {
  return index < tenon_result_count(result) ? value_of(result->outputs[index].value.get()) : nullptr;
}
tenon_status tenon_result_tensor(const tenon_result* result, size_t index, tn_tensor* tensor) {
  return tenon_value_get(tenon_result_value(result, index), tensor);
}
void tenon_result_free(tenon_result* result) { delete result; }
