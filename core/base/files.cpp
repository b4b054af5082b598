#include "core/base/files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/base/text.hpp"

namespace tenon {

namespace fs = std::filesystem;

namespace {
std::string system_text(int number) { return std::generic_category().message(number); }

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }
  int take() { return std::exchange(value_, -1); }

 private:
  int value_;
};

constexpr size_t write_buffer_bytes = size_t(1) << 16;

// Reading beyond the end of a file that was cut short after it was mapped is SIGBUS. Nobody can go on from
// there with right numbers, but the program can say which file it was. Slots are claimed and freed without
// locks, since the handler may run at any moment; a mapping beyond the last slot just has no message of its
// own.
struct GuardedMapping {
  std::atomic<const uint8_t*> begin{nullptr};
  std::atomic<uint64_t> bytes{0};
  std::atomic<const char*> path{nullptr};
};
GuardedMapping guarded[1024];

void write_text(const char* text) {
  size_t length = 0;
  while (text[length] != 0) ++length;
  [[maybe_unused]] const ssize_t ignored = ::write(STDERR_FILENO, text, length);
}

void on_bus_error(int number, siginfo_t* info, void*) {
  const auto* const at = static_cast<const uint8_t*>(info->si_addr);
  for (auto& mapping : guarded) {
    const uint8_t* const begin = mapping.begin.load();
    if (begin == nullptr || at < begin || at >= begin + mapping.bytes.load()) continue;
    write_text("error: ");
    write_text(mapping.path.load());
    write_text(
        ": became shorter while it was in use; it must not be changed during the run. Nothing was written\n");
    ::_exit(exit_bad_input);
  }
  ::signal(number, SIG_DFL);
  ::raise(number);
}

void install_bus_handler() {
  struct sigaction current {};
  // Somebody else's handler stays: an embedding program may have its own way.
  if (::sigaction(SIGBUS, nullptr, &current) != 0 || current.sa_handler != SIG_DFL) return;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &ours, nullptr);
}

void guard_mapping(const uint8_t* data, uint64_t bytes, const char* path) {
  static const bool installed = (install_bus_handler(), true);
  (void)installed;
  for (auto& slot : guarded) {
    const char* free_slot = nullptr;
    if (!slot.path.compare_exchange_strong(free_slot, path)) continue;
    slot.bytes.store(bytes);
    slot.begin.store(data);
    return;
  }
}
void unguard_mapping(const uint8_t* data) {
  for (auto& slot : guarded) {
    if (slot.begin.load() != data) continue;
    slot.begin.store(nullptr);
    slot.bytes.store(0);
    slot.path.store(nullptr);
    return;
  }
}
}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const fs::path& path) {
  const std::string name = path.string();
  // O_NONBLOCK: opening a pipe must not hang; it is refused below.
  Descriptor descriptor(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (descriptor.get() < 0) {
    const int number = errno;
    throw Error(exit_bad_input, name,
                "cannot be opened: " + system_text(number) + "; check the path and its permissions");
  }
  struct stat status {};
  if (::fstat(descriptor.get(), &status) != 0)
    throw Error(exit_bad_input, name, "cannot be examined: " + system_text(errno));
  if (!S_ISREG(status.st_mode))
    throw Error(exit_bad_input, name,
                std::string("is ") + (S_ISDIR(status.st_mode) ? "a folder" : "not a regular file") +
                    "; expected a file");
  std::shared_ptr<MappedFile> file(new MappedFile);
  file->path_ = name;
  file->size_ = static_cast<uint64_t>(status.st_size);
  static const uint8_t nothing[1] = {0};
  file->data_ = nothing;
  if (file->size_ != 0) {
    void* const mapping = ::mmap(nullptr, file->size_, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
    if (mapping == MAP_FAILED) {
      const int number = errno;
      file->size_ = 0;
      throw Error(exit_bad_input, name,
                  fmt::format("{} bytes cannot be mapped: {}", status.st_size, system_text(number)));
    }
    file->data_ = static_cast<const uint8_t*>(mapping);
    guard_mapping(file->data_, file->size_, file->path_.c_str());
  }
  file->descriptor_ = descriptor.take();
  return file;
}

MappedFile::~MappedFile() {
  if (size_ != 0) unguard_mapping(data_);
  if (size_ != 0) ::munmap(const_cast<uint8_t*>(data_), size_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool MappedFile::was_truncated() const {
  struct stat status {};
  return ::fstat(descriptor_, &status) != 0 || static_cast<uint64_t>(status.st_size) < size_;
}

fs::path resolve_beside(const fs::path& base, std::string_view relative) {
  const std::string place = base.string();
  const std::string shown = quoted(relative);
  const fs::path wanted{std::string(relative)};
  if (relative.empty())
    throw Error(exit_bad_input, place,
                "names a file beside it by an empty path; expected a path relative to its folder");
  if (relative.find('\0') != std::string_view::npos)
    throw Error(exit_bad_input, place, "names a file by a path with a zero byte in it");
  if (wanted.is_absolute())
    throw Error(exit_bad_input, place,
                "names the file " + shown +
                    " by an absolute path; it must be relative and inside the folder of the model");
  // Said before looking at the disk, so that the answer does not depend on what lies outside.
  int depth = 0;
  for (const auto& part : wanted) {
    if (part == "..")
      --depth;
    else if (part != "." && !part.empty())
      ++depth;
    if (depth < 0)
      throw Error(exit_bad_input, place,
                  "names the file " + shown + ", which is outside the folder of the model");
  }
  std::error_code failure;
  const fs::path parent = base.has_parent_path() ? base.parent_path() : fs::path(".");
  const fs::path folder = fs::canonical(parent, failure);
  if (failure) throw Error(exit_bad_input, parent.string(), "cannot be resolved: " + failure.message());
  fs::path target = fs::canonical(folder / wanted, failure);
  if (failure)
    throw Error(exit_bad_input, place,
                "names the file " + shown + ", which cannot be opened: " + failure.message() +
                    "; expected at " + (folder / wanted).string());
  const fs::path inside = target.lexically_relative(folder);
  if (inside.empty() || *inside.begin() == "..")
    throw Error(exit_bad_input, place,
                "names the file " + shown + ", which leads through a link outside the folder of the model");
  return target;
}

AtomicWriter::AtomicWriter(fs::path target) : target_(std::move(target)) {
  temporary_ = target_.string() + ".tmp-XXXXXX";
  descriptor_ = ::mkostemp(temporary_.data(), O_CLOEXEC);
  if (descriptor_ < 0) {
    const int number = errno;
    temporary_.clear();
    throw Error(
        exit_job_failed, target_.string(),
        "cannot be written: " + system_text(number) + "; check that the folder exists and is writable");
  }
  // mkostemp makes private files. The mask is read once: reading it means setting it, for the whole process.
  static const mode_t mask = [] {
    const mode_t current = ::umask(0);
    ::umask(current);
    return current;
  }();
  ::fchmod(descriptor_, 0666 & ~mask);
}

AtomicWriter::~AtomicWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicWriter::write_all(const char* data, size_t bytes) {
  while (bytes != 0) {
    const ssize_t written = ::write(descriptor_, data, bytes);
    if (written < 0) {
      if (errno == EINTR) continue;
      throw Error(exit_job_failed, target_.string(), "cannot be written: " + system_text(errno));
    }
    data += written;
    bytes -= static_cast<size_t>(written);
  }
}

void AtomicWriter::flush() {
  write_all(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicWriter::write(const void* data, uint64_t bytes) {
  if (buffer_.size() + bytes > write_buffer_bytes) flush();
  if (bytes > write_buffer_bytes)
    write_all(static_cast<const char*>(data), bytes);
  else
    buffer_.append(static_cast<const char*>(data), bytes);
}

void AtomicWriter::commit() {
  flush();
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0)
    throw Error(exit_job_failed, target_.string(), "cannot be written: " + system_text(errno));
  if (::rename(temporary_.c_str(), target_.c_str()) != 0)
    throw Error(exit_job_failed, target_.string(), "cannot be replaced: " + system_text(errno));
  temporary_.clear();
}

std::string read_text_file(const fs::path& path, uint64_t limit_bytes) {
  const auto file = MappedFile::open(path);
  if (file->size() > limit_bytes)
    throw Error(
        exit_bad_input, path.string(),
        fmt::format("has {} bytes; a file of this kind may have at most {}", file->size(), limit_bytes));
  return std::string(reinterpret_cast<const char*>(file->data()), file->size());
}

void write_file_atomically(const fs::path& path, std::string_view contents) {
  AtomicWriter writer(path);
  writer.write(contents);
  writer.commit();
}

}  // namespace tenon
