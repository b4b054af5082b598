#include "core/base/files.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <functional>

using namespace tenon;
namespace fs = std::filesystem;

namespace {
struct Folder {
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "tenon_files_XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() { fs::remove_all(path); }
  fs::path put(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return path / name;
  }
  fs::path path;
};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}
}  // namespace

TEST_CASE("A file is mapped whole; what is no file is refused") {
  const Folder folder;
  CHECK(read_text_file(folder.put("a", "text")) == "text");
  CHECK(MappedFile::open(folder.put("empty", ""))->size() == 0);
  CHECK(error_of([&] { MappedFile::open(folder.path / "absent"); }).find("No such file") !=
        std::string::npos);
  CHECK(error_of([&] { MappedFile::open(folder.path); }).find("is a folder") != std::string::npos);
  CHECK(error_of([&] { MappedFile::open("/dev/null"); }).find("not a regular file") != std::string::npos);
  CHECK(error_of([&] { read_text_file(folder.put("long", "12345"), 4); }).find("may have at most 4") !=
        std::string::npos);
}

TEST_CASE("External data stays in the model's folder") {
  const Folder folder;
  const fs::path model = folder.put("model", "");
  fs::create_directory(folder.path / "sub");
  folder.put("sub/data", "d");
  fs::create_symlink("/etc/passwd", folder.path / "link");
  fs::create_symlink(folder.path / "sub" / "data", folder.path / "inside");
  CHECK(resolve_beside(model, "sub/data") == fs::canonical(folder.path / "sub/data"));
  CHECK(resolve_beside(model, "sub/../sub/./data") == fs::canonical(folder.path / "sub/data"));
  CHECK(resolve_beside(model, "inside") == fs::canonical(folder.path / "sub/data"));
  CHECK(error_of([&] { resolve_beside(model, "/etc/passwd"); }).find("absolute") != std::string::npos);
  CHECK(error_of([&] { resolve_beside(model, "../x"); }).find("outside the folder") != std::string::npos);
  CHECK(error_of([&] { resolve_beside(model, "sub/../../x"); }).find("outside the folder") !=
        std::string::npos);
  CHECK(error_of([&] { resolve_beside(model, "link"); }).find("through a link") != std::string::npos);
  CHECK(error_of([&] { resolve_beside(model, "absent"); }).find("cannot be opened") != std::string::npos);
  CHECK(error_of([&] { resolve_beside(model, ""); }).find("empty path") != std::string::npos);
}

TEST_CASE("A file is replaced whole or not at all") {
  const Folder folder;
  const fs::path target = folder.put("out", "old");
  {
    AtomicWriter dropped(target);
    dropped.write(std::string(200000, 'x'));
  }
  CHECK(read_text_file(target) == "old");
  AtomicWriter kept(target);
  kept.write("ne");
  kept.write("w");
  kept.commit();
  CHECK(read_text_file(target) == "new");
  CHECK(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()) == 1);
  CHECK(error_of([&] { AtomicWriter(folder.path / "absent" / "out"); }).find("cannot be written") !=
        std::string::npos);
}

// Sanitizers bring a handler of their own, which stays.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("A file cut short after mapping ends the program with its name, not with a signal") {
  const Folder folder;
  const fs::path path = folder.put("weights", std::string(1 << 16, 'w'));
  int pipe_ends[2];
  REQUIRE(::pipe(pipe_ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe_ends[1], 2);
    const auto file = MappedFile::open(path);
    fs::resize_file(path, 10);
    if (!file->was_truncated()) ::_exit(9);
    volatile uint8_t sink = file->data()[60000];
    (void)sink;
    ::_exit(8);
  }
  ::close(pipe_ends[1]);
  char text[512] = {};
  size_t length = 0;
  for (ssize_t got = 0;
       length < sizeof text - 1 && (got = ::read(pipe_ends[0], text + length, sizeof text - 1 - length)) > 0;)
    length += static_cast<size_t>(got);
  ::close(pipe_ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == exit_bad_input);
  CHECK(std::string(text).find("became shorter") != std::string::npos);
  CHECK(std::string(text).find("weights") != std::string::npos);
}

#endif

TEST_CASE("The boundary's table reports through the caller's diagnostics") {
  const Folder folder;
  const std::string path = folder.put("a", "abc").string(), absent = (folder.path / "absent").string();
  Diagnostics found;
  tn_file* file = nullptr;
  REQUIRE(files_api()->open({path.data(), path.size()}, found.abi(), &file) == TN_OK);
  CHECK(files_api()->size_bytes(file) == 3);
  CHECK(files_api()->data(file)[2] == 'c');
  const auto kept = mapped_file(file);
  files_api()->release(file);
  CHECK(kept->data()[0] == 'a');
  CHECK(files_api()->open({absent.data(), absent.size()}, found.abi(), &file) == TN_ERR_IO);
  CHECK(found.first_error().find("absent") != std::string::npos);
  tn_writer* writer = nullptr;
  REQUIRE(files_api()->create({path.data(), path.size()}, found.abi(), &writer) == TN_OK);
  files_api()->write(writer, "xyz", 3);
  CHECK(files_api()->close(writer, 1, found.abi()) == TN_OK);
  CHECK(read_text_file(path) == "xyz");
}
