// Jobs in a few child processes, so that a crash or a hang costs one job and names it.
#pragma once
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace tenon::conformance {

// Jobs first ... last - 1, which one worker does in order.
struct Batch {
  size_t first = 0, last = 0;
};

// `work` runs in a child and gives a job's result as text; `done` hears of it here. A job whose child ends or
// takes longer than `limit` has `done` called with `lost` set and the reason as text; the rest of its batch
// goes on in a new child. With no workers at all everything happens in this process, for a debugger. The
// caller has one thread (children are forked without exec). Throws std::system_error when no child can be
// made.
void run_in_workers(std::vector<Batch> batches, unsigned workers, std::chrono::seconds limit,
                    const std::function<std::string(size_t job)>& work,
                    const std::function<void(size_t job, const std::string& text, bool lost)>& done);

}  // namespace tenon::conformance
