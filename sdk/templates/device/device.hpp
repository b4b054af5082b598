// A device on the host's own processor: memory that only its handles lead to, streams that are threads, and
// copies that take their time.
#pragma once
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "tenon/sdk/task_stream.hpp"

namespace @NAMESPACE@ {

namespace sdk = tenon::sdk;
using Buffer = tn_device_buffer;

// Handles are numbers: nothing outside gets an address.
class Memory {
 public:
  uint64_t allocate(uint64_t bytes) {
    if (bytes > PTRDIFF_MAX) throw std::bad_alloc();  // more than a vector knows how to refuse
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.emplace(++last_, std::vector<double>(bytes / sizeof(double) + 1));
    return last_;
  }
  void release(uint64_t handle) {
    const std::lock_guard<std::mutex> lock(mutex_);
    blocks_.erase(handle);
  }
  char* find(const Buffer& buffer, uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto block = blocks_.find(buffer.handle);
    const uint64_t size = block == blocks_.end() ? 0 : block->second.size() * sizeof(double);
    if (bytes > size || buffer.offset > size - bytes)
      sdk::fail("a buffer lies outside the memory of @NAME@");
    return reinterpret_cast<char*>(block->second.data()) + buffer.offset;
  }

 private:
  std::mutex mutex_;
  std::map<uint64_t, std::vector<double>> blocks_;
  uint64_t last_ = 0;
};

class Stream : public sdk::TaskStream {
 public:
  explicit Stream(Memory& of) : memory(of) {}
  void upload(const Buffer& to, const void* from, uint64_t bytes) override {
    enqueue([&m = memory, to, from, bytes] { move(m.find(to, bytes), from, bytes); });
  }
  void download(void* to, const Buffer& from, uint64_t bytes) override {
    enqueue([&m = memory, to, from, bytes] { move(to, m.find(from, bytes), bytes); });
  }
  void copy(const Buffer& to, const Buffer& from, uint64_t bytes) override {
    enqueue([&m = memory, to, from, bytes] { move(m.find(to, bytes), m.find(from, bytes), bytes); });
  }
  Memory& memory;

 private:
  static void move(void* to, const void* from, uint64_t bytes) {
    std::this_thread::sleep_for(std::chrono::microseconds(2));  // the artificial cost of a copy
    std::memcpy(to, from, bytes);
  }
};

class Device : public sdk::Device {
 public:
  Device(uint32_t, uint32_t) {}
  static uint32_t count() { return 1; }
  void properties(tn_device_properties& out) override {
    out.flags = TN_DEVICE_COPY_STREAM;
    out.description = sdk::str("threads of this process");
    out.alignment = 64;
    out.upload = out.download = {2000, 4};  // 2 us and 4 bytes a nanosecond
  }
  uint64_t allocate(uint64_t bytes) override { return memory.allocate(bytes); }
  void release(uint64_t handle) noexcept override { memory.release(handle); }
  std::unique_ptr<sdk::Stream> stream(bool) override { return std::make_unique<Stream>(memory); }
  std::unique_ptr<sdk::Event> event() override { return std::make_unique<sdk::TaskEvent>(); }
  Memory memory;
};

}  // namespace @NAMESPACE@
