// Level 4: what becomes of a device's stream whose work cannot be done, and of the device.
#include <map>

#include "core/base/text.hpp"
#include "core/check/checker.hpp"
#include "core/check/device_trial.hpp"
#include "core/check/levels.hpp"

namespace tenon::check {

namespace {

enum class Outside { upload, download, copy_to, copy_from };

// Work outside of a buffer; then the same stream, and another one.
void check_outside(Checker& checker, DeviceTrial& device, Random& random, Outside kind, bool wraps) {
  const uint64_t size = device.aligned(4096), bytes = wraps ? device.alignment() + 64 : size + 65536;
  tn_stream* const stream = device.stream();
  const Bytes kept = random_bytes(random, size);
  const tn_device_buffer neighbours[] = {device.allocate(size), device.allocate(size), device.allocate(size)};
  const tn_device_buffer large = device.allocate(device.aligned(bytes));
  for (const tn_device_buffer& one : neighbours) device.put(stream, one, kept);
  Bytes& memory = device.host(bytes, 0x11);
  device.put(stream, large, memory);
  // At the last aligned place that there is, or from its beginning past its end.
  const tn_device_buffer outside = at(neighbours[1], wraps ? 0 - device.alignment() : 0);
  const tn_device_record& record = device.record();
  tn_status status = kind == Outside::upload     ? record.upload(stream, &outside, memory.data(), bytes)
                     : kind == Outside::download ? record.download(stream, memory.data(), &outside, bytes)
                     : kind == Outside::copy_to  ? record.copy(stream, &outside, &large, bytes)
                                                 : record.copy(stream, &large, &outside, bytes);
  const bool is_enqueued = status == TN_OK;
  if (is_enqueued) status = record.finish(stream);
  if (status == TN_OK) {
    checker.finding(
        fmt::format("{} bytes at offset {} of a buffer of {} are said to be done; look whether "
                    "offset and bytes lie inside what was allocated",
                    bytes, outside.offset, size));
    return;
  }
  if (device.explained().empty()) checker.finding("explain does not say what failed");
  if (is_enqueued) {
    Bytes& skipped = device.host(64, 0x5a);
    const Bytes before = skipped;
    record.download(stream, skipped.data(), &neighbours[0], skipped.size());
    tn_event* const event = device.event();
    if (record.record(stream, event) == TN_OK && record.synchronize(event) == TN_OK)
      checker.finding("synchronize of an event behind the failure answers TN_OK");
    if (record.finish(stream) == TN_OK)
      checker.finding("finish answers TN_OK the second time; a stream that failed says so every time");
    if (skipped != before) checker.finding("a download behind the failure was done");
  }
  if (status == TN_DEVICE_LOST) {
    DeviceTrial again(device.entry(), device.ordinal(), 2);
    tn_stream* const fresh = again.stream();
    const tn_device_buffer buffer = again.allocate(size);
    again.put(fresh, buffer, kept);
    if (const std::string text = byte_difference(kept, again.get(fresh, buffer, size)); !text.empty())
      checker.finding("lost and opened anew: " + text);
    return;
  }
  tn_stream* const other = device.stream();
  for (const tn_device_buffer& one : neighbours)
    if (const std::string text = byte_difference(kept, device.get(other, one, size)); !text.empty())
      checker.finding("buffers of another stream are changed: " + text);
}

}  // namespace

void check_device_faults(Checker& checker) {
  static const std::map<Outside, const char*> names = {{Outside::upload, "an upload"},
                                                       {Outside::download, "a download"},
                                                       {Outside::copy_to, "a copy that ends"},
                                                       {Outside::copy_from, "a copy that begins"}};
  for (const auto& [kind, name] : names)
    for (const bool wraps : {false, true})
      each_open_device(
          checker, fmt::format("{} outside of its buffer{}", name, wraps ? ", at an offset that wraps" : ""),
          [&, kind = kind](DeviceTrial& device, Random& random) {
            check_outside(checker, device, random, kind, wraps);
          });
}

}  // namespace tenon::check
