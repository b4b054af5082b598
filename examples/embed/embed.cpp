// Tenon from C++: one session, four threads. Each runs its own input into its own memory; the results are
// compared with those of the model as it was before it was optimised.
//   embed_cpp MODEL.onnx [MANIFEST.json]
// Inputs are made up; an open dimension is 1. Inputs and outputs must be float32.
#include <tenon/tenon.hpp>

#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

// Inputs of one run, with the memory they stand in.
struct Request {
  std::vector<std::vector<float>> memory;
  std::vector<tenon::Input> inputs;
};

Request make_request(const tenon::Session& session, int seed) {
  Request request;
  for (const tenon::Port& port : session.inputs()) {
    std::vector<std::int64_t> dims;
    std::size_t count = 1;
    for (const std::int64_t dim : port.dims) {
      dims.push_back(dim < 0 ? 1 : dim);
      count *= static_cast<std::size_t>(dims.back());
    }
    std::vector<float> values(count);
    for (std::size_t i = 0; i < count; ++i)
      values[i] = std::sin(static_cast<float>(i) * 0.01f * static_cast<float>(seed + 1));
    request.memory.push_back(std::move(values));
    request.inputs.emplace_back(port.name, tenon::tensor(request.memory.back(), dims));
  }
  return request;
}

std::string described(const tenon::Port& port) {
  std::string text = port.name + ": " + tenon::dtype_name(port.dtype) + "[";
  for (std::size_t axis = 0; axis < port.dim_names.size(); ++axis)
    text += (axis ? "," : "") + port.dim_names[axis];
  return text + "]";
}

double largest_difference(const float* a, const std::vector<float>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= largest)) largest = difference;  // also when it is no number
  }
  return largest;
}

int run(const std::string& path, const char* manifest) {
  tenon::set_log([](tn_severity, const std::string& text) { std::fprintf(stderr, "%s\n", text.c_str()); });
  tenon::HostOptions options;
  if (manifest != nullptr) options.manifest = manifest;
  const tenon::Host host(options);
  std::printf("libtenon %s\n%s", tenon::version().c_str(), host.plugins().c_str());

  tenon::Model model = host.load(path);
  const tenon::Session plain = model.session();
  model.optimize();
  const tenon::Session session = model.session();
  for (const tenon::Port& port : session.inputs()) std::printf("input  %s\n", described(port).c_str());
  for (const tenon::Port& port : session.outputs()) std::printf("output %s\n", described(port).c_str());

  constexpr int thread_count = 4;
  std::vector<double> differences(thread_count, 0);
  std::vector<std::string> faults(thread_count);
  std::vector<std::thread> threads;
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      try {  // an exception must not leave its thread
        const std::size_t own = static_cast<std::size_t>(t);
        const Request request = make_request(session, t);
        const tenon::Result expected = plain.run(request.inputs);
        // Memory for the first output, as large as the result is: the run then copies nothing.
        std::vector<float> memory(expected[0].tensor().size());
        for (int i = 0; i < 25; ++i) {
          session.run(request.inputs, {tenon::output(expected.name(0), memory)});
          const double difference = largest_difference(expected[0].tensor().data<float>(), memory);
          if (!(difference <= differences[own])) differences[own] = difference;
        }
      } catch (const std::exception& error) {
        faults[static_cast<std::size_t>(t)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int t = 0; t < thread_count; ++t) {
    const std::size_t own = static_cast<std::size_t>(t);
    if (!faults[own].empty()) {
      std::fprintf(stderr, "thread %d: %s\n", t, faults[own].c_str());
      return 1;
    }
    std::printf("thread %d: 25 runs, largest difference from the model as it was %g\n", t, differences[own]);
    if (!(differences[own] < 1e-3)) return 1;
  }
  std::printf("%s", session.summary().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "use: embed_cpp MODEL.onnx [MANIFEST.json]\n");
    return 2;
  }
  try {
    return run(argv[1], argc > 2 ? argv[2] : nullptr);
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.status() == TENON_BAD_INPUT ? 2 : 1;
  }
}
