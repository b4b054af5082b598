// The table of tenon.files/1 over MappedFile and AtomicWriter.
#include <new>

#include "core/base/files.hpp"
#include "core/base/text.hpp"

struct tn_file {
  std::shared_ptr<const tenon::MappedFile> mapping;
};
struct tn_writer {
  tenon::AtomicWriter writer;
  bool failed = false;
};

namespace tenon {

namespace {
template <class F>
tn_status guarded(const tn_diag* diag, F&& body) noexcept {
  try {
    body();
    return TN_OK;
  } catch (const Error& error) {
    for (const auto& finding : error.diagnostics)
      report(diag, finding.severity, finding.code, finding.where, finding.text);
    return TN_ERR_IO;
  } catch (const std::bad_alloc&) {
    return TN_ERR_MEMORY;
  } catch (const std::exception& error) {
    report(diag, TN_SEVERITY_HOST_MISBEHAVING, "", "", error.what());
    return TN_ERR_INTERNAL;
  }
}

tn_status open_file(tn_str path, const tn_diag* diag, tn_file** file) {
  return guarded(diag, [&] { *file = new tn_file{MappedFile::open(string(path))}; });
}
tn_status open_beside(tn_str base, tn_str relative, const tn_diag* diag, tn_file** file) {
  return guarded(
      diag, [&] { *file = new tn_file{MappedFile::open(resolve_beside(string(base), view(relative)))}; });
}
const uint8_t* data(tn_file* file) { return file->mapping->data(); }
uint64_t size_bytes(tn_file* file) { return file->mapping->size(); }
tn_str path(tn_file* file) { return to_abi(file->mapping->path()); }
void release(tn_file* file) { delete file; }

tn_status create(tn_str target, const tn_diag* diag, tn_writer** writer) {
  return guarded(diag, [&] { *writer = new tn_writer{AtomicWriter(string(target))}; });
}
tn_status write(tn_writer* writer, const void* bytes, uint64_t count) {
  const tn_status status = guarded(nullptr, [&] { writer->writer.write(bytes, count); });
  writer->failed = writer->failed || status != TN_OK;
  return status;
}
tn_status close(tn_writer* writer, int keep, const tn_diag* diag) {
  const std::unique_ptr<tn_writer> owned(writer);
  if (!keep) return TN_OK;
  return guarded(diag, [&] {
    if (owned->failed)
      throw Error(exit_job_failed, "", "an earlier write to this file failed; it was left as it was");
    owned->writer.commit();
  });
}

constexpr tn_files_api table = {
    sizeof(tn_files_api), 0, open_file, open_beside, data, size_bytes, path, release, create, write, close};
}  // namespace

const tn_files_api* files_api() { return &table; }
std::shared_ptr<const MappedFile> mapped_file(tn_file* file) { return file ? file->mapping : nullptr; }

}  // namespace tenon
