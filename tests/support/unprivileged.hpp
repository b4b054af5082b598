// Permissions count for ordinary users alone, and tests may run as root: then they act as nobody for a while.
#pragma once
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace tenon::test {

class Unprivileged {
 public:
  // `folder` and those above it are opened, so that nobody (who stays in root's groups) can get there;
  // `folder` may be written to.
  explicit Unprivileged(const std::filesystem::path& folder) {
    if (geteuid() != 0) return;
    for (std::filesystem::path above = folder; above.has_relative_path(); above = above.parent_path()) {
      struct stat facts {};
      if (stat(above.c_str(), &facts) == 0 && facts.st_uid == 0)
        chmod(above.c_str(), (facts.st_mode & 07777) | S_IXOTH | S_IROTH | S_IXGRP | S_IRGRP);
    }
    chmod(folder.c_str(), 0777);
  }
  // False: root, and not allowed to become another, or the other cannot get to `needed`; nothing can be
  // tested.
  bool can_switch(const std::filesystem::path& needed) const {
    if (geteuid() != 0) return true;
    if (seteuid(nobody) != 0) return false;
    const bool reached = faccessat(AT_FDCWD, needed.c_str(), R_OK | X_OK, AT_EACCESS) == 0;
    return seteuid(0) == 0 && reached;
  }
  template <class Body>
  void with(Body&& body) {
    const bool is_root = geteuid() == 0;
    if (is_root && seteuid(nobody) != 0) return;
    try {
      body();
    } catch (...) {
      if (is_root && seteuid(0) != 0) abort();
      throw;
    }
    if (is_root && seteuid(0) != 0) abort();
  }

 private:
  static constexpr uid_t nobody = 65534;
};

}  // namespace tenon::test
