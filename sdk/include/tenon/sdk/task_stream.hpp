// Streams for devices whose driver only knows calls that block, and for devices simulated on the host: each
// is a thread that does one task after the other. A device runtime may own threads (decided with the
// boundary).
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <thread>

#include "device.hpp"

namespace tenon::sdk {

/// Goes with TaskStream. What failed before it in its stream fails whoever waits for it.
class TaskEvent : public Event {
 public:
  void synchronize() override { mark_->await(mark_->last()); }

 private:
  friend class TaskStream;
  // Shared with the streams it lies in: they may pass it when it is gone already.
  class Mark {
   public:
    uint64_t next() {
      const std::lock_guard<std::mutex> lock(mutex_);
      return ++recorded_;
    }
    uint64_t last() {
      const std::lock_guard<std::mutex> lock(mutex_);
      return recorded_;
    }
    void pass(uint64_t number, const std::exception_ptr& failure) {
      const std::lock_guard<std::mutex> lock(mutex_);
      passed_ = number;
      failure_ = failure;
      changed_.notify_all();
    }
    void await(uint64_t number) {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return passed_ >= number; });
      if (failure_) std::rethrow_exception(failure_);
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    uint64_t recorded_ = 0, passed_ = 0;
    std::exception_ptr failure_;
  };
  std::shared_ptr<Mark> mark_ = std::make_shared<Mark>();
};

/// Derive from it and say what upload, download and copy do, mostly by enqueue.
class TaskStream : public Stream {
 public:
  TaskStream() : thread_([this] { work(); }) {}
  ~TaskStream() override {
    push(nullptr, true);
    thread_.join();
  }
  /// `task` runs on the stream's thread when its turn comes, unless one before it has thrown.
  void enqueue(std::function<void()> task) { push(std::move(task), false); }

  void record(Event& event) final {
    const auto mark = static_cast<TaskEvent&>(event).mark_;
    push([this, mark, number = mark->next()] { mark->pass(number, failure_); }, true);
  }
  void wait(Event& event) final {
    const auto mark = static_cast<TaskEvent&>(event).mark_;
    enqueue([mark, number = mark->last()] { mark->await(number); });
  }
  void finish() final {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return tasks_.empty(); });
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  struct Task {
    std::function<void()> run;  // empty: the stream ends
    bool always = false;        // also behind a failure
  };
  void push(std::function<void()> task, bool always) {
    const std::lock_guard<std::mutex> lock(mutex_);
    tasks_.push_back({std::move(task), always});
    changed_.notify_all();
  }
  void work() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return !tasks_.empty(); });
      // It stays in the queue until it is done, for finish waits until the queue is empty.
      const Task& task = tasks_.front();
      if (!task.run) return;
      if (!failure_ || task.always) {
        lock.unlock();
        std::exception_ptr failure;
        try {
          task.run();
        } catch (...) {
          failure = std::current_exception();
        }
        lock.lock();
        if (failure) failure_ = failure;
      }
      tasks_.pop_front();
      changed_.notify_all();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::exception_ptr failure_;  // written by the thread alone, under the lock
  std::thread thread_;          // last: it uses the others
};

}  // namespace tenon::sdk
