// One open device of the plugin's: memory, streams and events, all given back in the order that a host keeps.
#pragma once
#include <tenon/abi/device.h>

#include <deque>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "core/check/checker.hpp"

namespace tenon::check {

// A function of the device's that did not do what it is for; thrown, and the subject ends with it.
class DeviceFault : public std::exception {
 public:
  explicit DeviceFault(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

using Bytes = std::vector<uint8_t>;

class DeviceTrial {
 public:
  // Space 1 is what a host gives the first device it opens.
  explicit DeviceTrial(const DeviceEntry& entry, uint32_t ordinal = 0, uint32_t space = 1);
  ~DeviceTrial();
  DeviceTrial(const DeviceTrial&) = delete;
  DeviceTrial& operator=(const DeviceTrial&) = delete;

  const tn_device_record& record() const { return *entry_.record; }
  tn_device* handle() { return handle_; }
  const tn_device_properties& properties() const { return properties_; }
  bool has(uint32_t flag) const { return (properties_.flags & flag) != 0; }
  uint64_t alignment() const { return properties_.alignment; }
  uint64_t aligned(uint64_t bytes) const { return (bytes + alignment() - 1) / alignment() * alignment(); }
  uint32_t ordinal() const { return ordinal_; }
  const DeviceEntry& entry() const { return entry_; }

  // Host memory for copies: it stays until the device is closed.
  Bytes& host(uint64_t bytes, uint8_t value = 0) { return host_.emplace_back(bytes, value); }
  tn_device_buffer allocate(uint64_t bytes);
  void release(const tn_device_buffer& buffer);
  tn_stream* stream(uint32_t use = TN_STREAM_COMPUTE);
  // The one that the host copies on.
  tn_stream* copy_stream() { return stream(has(TN_DEVICE_COPY_STREAM) ? TN_STREAM_COPY : TN_STREAM_COMPUTE); }
  tn_event* event();
  void destroy(tn_stream* stream);
  void destroy(tn_event* event);

  // Each throws DeviceFault for what is not TN_OK.
  void upload(tn_stream* stream, const tn_device_buffer& to, const Bytes& from);
  void download(tn_stream* stream, Bytes& to, const tn_device_buffer& from);
  void copy(tn_stream* stream, const tn_device_buffer& to, const tn_device_buffer& from, uint64_t bytes);
  void record(tn_stream* stream, tn_event* event);
  void wait(tn_stream* stream, tn_event* event);
  void synchronize(tn_event* event);
  void finish(tn_stream* stream);
  // Up and down again, each for itself.
  void put(tn_stream* stream, const tn_device_buffer& to, const Bytes& from);
  Bytes get(tn_stream* stream, const tn_device_buffer& from, uint64_t bytes);

  void require(tn_status status, const char* what);  // throws unless TN_OK
  std::string explained();                           // what explain reports; empty: nothing

 private:
  const DeviceEntry& entry_;
  const uint32_t ordinal_, space_;
  tn_device* handle_ = nullptr;
  tn_device_properties properties_{};
  std::deque<Bytes> host_;
  std::vector<uint64_t> memory_;
  std::vector<tn_stream*> streams_;
  std::vector<tn_event*> events_;
};

// Where two differ: "byte 17 is 0x00, expected 0x2a"; empty: nowhere.
std::string byte_difference(const Bytes& want, const Bytes& got);
Bytes random_bytes(Random& random, uint64_t bytes);

inline tn_device_buffer at(tn_device_buffer buffer, uint64_t offset) {
  buffer.offset += offset;
  return buffer;
}

// "device toy", or "device toy:1" of several.
std::string device_name(const DeviceEntry& entry, uint32_t ordinal, uint32_t count);
inline constexpr uint32_t most_ordinals = 4;  // that are looked at, of one record

// Every device of a record, its name with `what` behind it the subject; a DeviceFault ends the subject.
using DeviceLook = std::function<void(const DeviceEntry& entry, uint32_t ordinal)>;
void each_ordinal(Checker& checker, const DeviceEntry& entry, uint32_t count, const std::string& what,
                  const DeviceLook& look);
// Of all the plugin's records, on this machine.
void each_device(Checker& checker, const std::string& what, const DeviceLook& look);
// The same, opened.
void each_open_device(Checker& checker, const std::string& what,
                      const std::function<void(DeviceTrial& device, Random& random)>& look);

}  // namespace tenon::check
