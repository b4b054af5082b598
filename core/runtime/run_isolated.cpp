// Steps of plugins that are to be isolated: each runs in a child process, which has this one's memory as it
// was, and hands its results back through a shared file in memory. Slow (a fork a step), and safe: what the
// kernel does to its process ends with it.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "core/base/crash_report.hpp"
#include "core/base/tensor.hpp"
#include "core/base/text.hpp"
#include "core/runtime/run_steps.hpp"

namespace tenon {
namespace {

constexpr auto longest = std::chrono::minutes(10);

// The file that both processes have.
class Shared {
 public:
  Shared() : file_(::memfd_create("tenon-isolated", MFD_CLOEXEC)) {}
  ~Shared() {
    if (file_ >= 0) ::close(file_);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  bool ok() const { return file_ >= 0; }
  void rewind() { ::lseek(file_, 0, SEEK_SET); }

  bool write(const void* data, uint64_t bytes) {
    const auto* at = static_cast<const uint8_t*>(data);
    while (bytes != 0) {
      const ssize_t n = ::write(file_, at, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      bytes -= static_cast<uint64_t>(n);
    }
    return true;
  }
  bool read(void* data, uint64_t bytes) {
    auto* at = static_cast<uint8_t*>(data);
    while (bytes != 0) {
      const ssize_t n = ::read(file_, at, bytes);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return false;
      at += n;
      bytes -= static_cast<uint64_t>(n);
    }
    return true;
  }

 private:
  int file_;
};

// Of one result: `kind` NONE for one that was not made; dims and bytes follow.
struct ResultHead {
  uint32_t kind = TN_KIND_NONE;
  tn_dtype dtype = TN_DTYPE_NONE;
  int32_t rank = 0;
  uint64_t bytes = 0;
};
constexpr int32_t no_plain_tensor = -1;  // instead of a result of the kernel's

const Operand& result_of(const Segment& segment, const StepInfo& info, uint32_t i) {
  return segment.operands[info.first_operand + info.input_count + i];
}

bool write_result(Shared& out, const RunState& state, const Frame& frame, const StepInfo& info,
                  const Operand& operand, uint32_t i) {
  if (operand.place == Place::absent) return true;
  if (operand.place != Place::slot)
    return out.write(frame.pointers[info.first_pointer + info.input_count + i], operand.bytes);
  const Cell& cell = state.cells[operand.cell];
  ResultHead head{cell.kind, cell.tensor.dtype, cell.tensor.rank, cell.tensor.bytes};
  if (cell.kind == TN_KIND_NONE) return out.write(&head, sizeof head);
  return out.write(&head, sizeof head) &&
         out.write(cell.tensor.dims, static_cast<uint64_t>(head.rank) * sizeof(int64_t)) &&
         out.write(cell.tensor.data, head.bytes);
}

bool is_plain(const RunState& state, const Operand& operand) {
  if (operand.place != Place::slot) return operand.dtype != TN_STRING;
  const Cell& cell = state.cells[operand.cell];
  return cell.kind == TN_KIND_NONE || (cell.kind == TN_KIND_TENSOR && cell.tensor.dtype != TN_STRING);
}

[[noreturn]] void in_child(RunState& state, const Segment& segment, Frame& frame, uint32_t step,
                           Shared& out) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, SIG_DFL);
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  state.environment->pool->forget_workers();
  const StepInfo& info = segment.infos[step];
  int32_t result = 0;
  for (uint32_t tile = 0; tile < segment.steps[step].tiles && result == 0; ++tile)
    result = segment.steps[step].fn(&frame.args[step], tile, 0);
  if (!state.nested_errors.empty() || !state.needs_expansion.empty()) {
    // Of a region that the kernel ran; told as its failure.
    result = result == 0 ? TN_ERR_INTERNAL : result;
    for (const Diagnostic& error : state.nested_errors)
      state.failure += (state.failure.empty() ? "" : "; ") + to_string(error);
  }
  for (uint32_t i = 0; i < info.output_count && result == 0; ++i)
    if (!is_plain(state, result_of(segment, info, i))) result = no_plain_tensor;
  const uint64_t length = state.failure.size();
  bool written = out.write(&result, sizeof result) && out.write(&length, sizeof length) &&
                 out.write(state.failure.data(), length);
  for (uint32_t i = 0; i < info.output_count && result == 0 && written; ++i)
    written = write_result(out, state, frame, info, result_of(segment, info, i), i);
  ::_exit(written ? 0 : 1);
}

// The child's status; killed when it takes too long.
int wait_for(pid_t child, bool& late) {
  const auto begin = std::chrono::steady_clock::now();
  int status = 0;
  for (auto pause = std::chrono::microseconds(50);;
       pause = std::min(pause * 2, std::chrono::microseconds(5000))) {
    const pid_t ended = ::waitpid(child, &status, late ? 0 : WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return status;
    if (!late && std::chrono::steady_clock::now() - begin > longest) {
      late = true;
      ::kill(child, SIGKILL);
      continue;
    }
    std::this_thread::sleep_for(pause);
  }
}

bool read_result(Shared& in, RunState& state, Frame& frame, const StepInfo& info, const Operand& operand,
                 uint32_t i) {
  if (operand.place == Place::absent) return true;
  if (operand.place != Place::slot)
    return in.read(frame.pointers[info.first_pointer + info.input_count + i], operand.bytes);
  ResultHead head;
  if (!in.read(&head, sizeof head)) return false;
  if (head.kind == TN_KIND_NONE) return true;
  if (head.kind != TN_KIND_TENSOR || head.rank < 0 || head.rank > 1024) return false;
  std::vector<int64_t> dims(static_cast<size_t>(head.rank));
  if (!in.read(dims.data(), dims.size() * sizeof(int64_t))) return false;
  AnyRef made = new_tensor(head.dtype, dims, "result of an isolated kernel");
  if (made->tensor().bytes != head.bytes || !in.read(made->tensor().data, head.bytes)) return false;
  state.fill_cell(operand.cell, made.get());
  return true;
}

}  // namespace

int run_isolated(RunState& state, const Segment& segment, Frame& frame, uint32_t step) {
  const StepInfo& info = segment.infos[step];
  const auto broken = [&](const std::string& what) {
    throw Error(exit_job_failed, step_place(*state.graph, info), what);
  };
  Shared shared;
  if (!shared.ok()) broken(fmt::format("cannot be isolated: {}", std::strerror(errno)));
  const pid_t child = ::fork();
  if (child < 0) broken(fmt::format("cannot be isolated: {}", std::strerror(errno)));
  if (child == 0) in_child(state, segment, frame, step, shared);
  bool late = false;
  const int status = wait_for(child, late);
  if (late) broken("did not end within 10 minutes in its own process, which was ended");
  if (WIFSIGNALED(status))
    broken(
        fmt::format("crashed with {} in its own process; report it to the plugin's vendor, or leave the "
                    "kernel out: --set 'kernels.deny=[\"{}\"]'",
                    signal_name(WTERMSIG(status)), string(info.kernel->record->id)));
  shared.rewind();
  int32_t result = 0;
  uint64_t length = 0;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || !shared.read(&result, sizeof result) ||
      !shared.read(&length, sizeof length))
    broken(fmt::format("ended its own process (status {}) without results",
                       WIFEXITED(status) ? WEXITSTATUS(status) : status));
  state.failure.resize(length);
  if (!shared.read(state.failure.data(), length))
    broken("ended its own process before its results were whole");
  if (result == no_plain_tensor)
    broken("gives texts or sequences, which cannot come from another process; do not isolate its plugin");
  for (uint32_t i = 0; i < info.output_count && result == 0; ++i) {
    if (!read_result(shared, state, frame, info, result_of(segment, info, i), i))
      broken("ended its own process before its results were whole");
  }
  return result;
}

}  // namespace tenon
