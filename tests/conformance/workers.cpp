#include "workers.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <list>
#include <system_error>

namespace tenon::conformance {

namespace {

using Clock = std::chrono::steady_clock;

bool send_all(int socket, const void* data, size_t bytes) {
  const char* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t sent = send(socket, at, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return false;
    at += sent;
    bytes -= static_cast<size_t>(sent);
  }
  return true;
}

bool receive_all(int socket, void* data, size_t bytes) {
  char* at = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t got = recv(socket, at, bytes, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<size_t>(got);
  }
  return true;
}

// In the child: batches in, one length and text a job out.
[[noreturn]] void serve(int socket, const std::function<std::string(size_t)>& work) {
  Batch batch;
  while (receive_all(socket, &batch, sizeof batch)) {
    for (size_t job = batch.first; job < batch.last; ++job) {
      const std::string text = work(job);
      const uint64_t length = text.size();
      if (!send_all(socket, &length, sizeof length) || !send_all(socket, text.data(), text.size())) _exit(1);
    }
  }
  std::fflush(nullptr);
  _exit(0);
}

struct Worker {
  pid_t process = -1;
  int socket = -1;
  Batch batch;  // `first` is the job it is at
  Clock::time_point since;
  std::string received;
  bool is_idle() const { return batch.first == batch.last; }
};

std::string end_of(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    return std::string("crashed: SIG") + sigabbrev_np(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) +
           ")";
  return "ended the process with code " + std::to_string(WEXITSTATUS(status));
}

class Crew {
 public:
  Crew(std::vector<Batch> batches, std::chrono::seconds limit, const std::function<std::string(size_t)>& work,
       const std::function<void(size_t, const std::string&, bool)>& done)
      : queue_(batches.begin(), batches.end()), limit_(limit), work_(work), done_(done) {}

  ~Crew() {
    for (Worker& worker : workers_) {
      close(worker.socket);  // an idle child ends by itself, one at work is not waited for
      if (!worker.is_idle()) kill(worker.process, SIGKILL);
      end_of(worker.process);
    }
  }

  void run(size_t count) {
    while (true) {
      while (workers_.size() < count && !queue_.empty()) start();
      for (Worker& worker : workers_)
        if (worker.is_idle() && !queue_.empty()) give(worker);
      if (std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.is_idle(); })) return;
      wait();
    }
  }

 private:
  void start() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0)
      throw std::system_error(errno, std::generic_category(), "a socket for a worker");
    std::fflush(nullptr);
    const pid_t process = fork();
    if (process < 0) throw std::system_error(errno, std::generic_category(), "a worker process");
    if (process == 0) {
      close(ends[0]);
      // Its siblings end when their sockets close, so no copy may stay open here.
      for (const Worker& worker : workers_) close(worker.socket);
      serve(ends[1], work_);
    }
    close(ends[1]);
    workers_.emplace_back();
    workers_.back().process = process;
    workers_.back().socket = ends[0];
  }

  void give(Worker& worker) {
    worker.batch = queue_.front();
    queue_.pop_front();
    worker.since = Clock::now();
    send_all(worker.socket, &worker.batch, sizeof worker.batch);  // a failure shows as its end, below
  }

  // For something to be heard, or for the first limit to be over.
  void wait() {
    std::vector<pollfd> watched;
    auto deadline = Clock::time_point::max();
    for (const Worker& worker : workers_) {
      watched.push_back({worker.socket, POLLIN, 0});
      if (!worker.is_idle()) deadline = std::min(deadline, worker.since + limit_);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    poll(watched.data(), watched.size(), static_cast<int>(std::clamp<int64_t>(left, 0, 60'000)));
    size_t i = 0;
    for (auto worker = workers_.begin(); worker != workers_.end();) {
      const bool heard = watched[i++].revents != 0;
      const bool lives = heard ? listen(*worker) : true;
      std::string reason;
      if (!lives)
        reason = end_of(worker->process);
      else if (!worker->is_idle() && Clock::now() >= worker->since + limit_)
        reason = kill_slow(*worker);
      if (reason.empty()) {
        ++worker;
        continue;
      }
      lose(*worker, reason);
      worker = workers_.erase(worker);
    }
  }

  // What has come; false at the child's end.
  bool listen(Worker& worker) {
    char buffer[16384];
    const ssize_t got = recv(worker.socket, buffer, sizeof buffer, 0);
    if (got < 0 && errno == EINTR) return true;
    if (got <= 0) return false;
    worker.received.append(buffer, static_cast<size_t>(got));
    uint64_t length = 0;
    while (worker.received.size() >= sizeof length) {
      std::memcpy(&length, worker.received.data(), sizeof length);
      if (worker.received.size() - sizeof length < length) break;
      const std::string text = worker.received.substr(sizeof length, length);
      worker.received.erase(0, sizeof length + length);
      worker.since = Clock::now();
      done_(worker.batch.first++, text, false);
    }
    return true;
  }

  std::string kill_slow(const Worker& worker) {
    kill(worker.process, SIGKILL);
    end_of(worker.process);
    return "did not end within " + std::to_string(limit_.count()) + " s";
  }

  void lose(Worker& worker, const std::string& reason) {
    close(worker.socket);
    if (worker.is_idle()) return;
    done_(worker.batch.first++, reason, true);
    if (!worker.is_idle()) queue_.push_front(worker.batch);
  }

  std::deque<Batch> queue_;
  std::list<Worker> workers_;
  std::chrono::seconds limit_;
  const std::function<std::string(size_t)>& work_;
  const std::function<void(size_t, const std::string&, bool)>& done_;
};

}  // namespace

void run_in_workers(std::vector<Batch> batches, unsigned workers, std::chrono::seconds limit,
                    const std::function<std::string(size_t)>& work,
                    const std::function<void(size_t, const std::string&, bool)>& done) {
  if (workers == 0) {
    for (const Batch& batch : batches)
      for (size_t job = batch.first; job < batch.last; ++job) done(job, work(job), false);
    return;
  }
  Crew(std::move(batches), limit, work, done).run(workers);
}

}  // namespace tenon::conformance
