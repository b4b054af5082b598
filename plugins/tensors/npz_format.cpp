// .npz: a zip archive of .npy files, through libzip. Written stored, as np.savez does; the archive is made
// beside the target and renamed by libzip.
#include <zip.h>

#include <memory>
#include <unordered_set>

#include "formats.hpp"
#include "npy.hpp"

namespace tenon::tensors {
namespace {

using sdk::Failure;
using sdk::format;

struct Discard {
  void operator()(zip_t* z) const noexcept { zip_discard(z); }
};
using Archive = std::unique_ptr<zip_t, Discard>;
struct CloseEntry {
  void operator()(zip_file_t* f) const noexcept { zip_fclose(f); }
};
using Entry = std::unique_ptr<zip_file_t, CloseEntry>;

struct ZipError {
  zip_error_t error;
  ZipError() { zip_error_init(&error); }
  ~ZipError() { zip_error_fini(&error); }
  std::string text() { return zip_error_strerror(&error); }
};

// Reading
// ---------------------------------------------------------------------------------------------------------

/// Deflate cannot make one byte into more than about 1032; an entry that claims more is a trap.
constexpr uint64_t largest_ratio = 1040;
constexpr size_t largest_name = 65535;  // the format counts a name in 16 bits

struct Name {
  std::string_view base;
  int64_t index = -1;
};
/// NAME[3] is item 3 of sequence NAME.
Name split_item(std::string_view name) {
  const size_t open = name.rfind('[');
  if (open == std::string_view::npos || open == 0 || name.back() != ']' || name.size() - open < 3 ||
      name.size() - open > 12)
    return {name};
  int64_t index = 0;
  for (char c : name.substr(open + 1, name.size() - open - 2)) {
    if (c < '0' || c > '9') return {name};
    index = index * 10 + (c - '0');
  }
  return {name.substr(0, open), index};
}

void read_all(zip_file_t* file, uint8_t* to, uint64_t bytes, const std::string& where) {
  while (bytes) {
    const zip_int64_t got = zip_fread(file, to, bytes);
    if (got <= 0)
      throw Failure(TN_ERR_INVALID,
                    std::string("the entry cannot be unpacked: ") +
                        (got < 0 ? zip_file_strerror(file) : "it ends early") +
                        "; the archive is damaged: write it again",
                    where);
    to += got;
    bytes -= static_cast<uint64_t>(got);
  }
}

tn_status read_entry(zip_t* archive, uint64_t index, uint64_t archive_bytes, uint32_t position,
                     const std::string& path, ExpectedDtype expected, Sink sink, void* context,
                     std::unordered_set<std::string>& seen, const Budget& budget) {
  zip_stat_t st;
  zip_stat_init(&st);
  // The bytes of a name as they are: libzip would take an unmarked name with control characters for code page
  // 437.
  if (zip_stat_index(archive, index, ZIP_FL_ENC_RAW, &st) != 0 || !(st.valid & ZIP_STAT_NAME) ||
      !(st.valid & ZIP_STAT_SIZE) || !(st.valid & ZIP_STAT_COMP_SIZE))
    throw Failure(TN_ERR_INVALID, "the archive's list of files is damaged: write it again", path);
  const std::string entry_name = st.name, where = path + ": " + entry_name;
  if ((st.valid & ZIP_STAT_ENCRYPTION_METHOD) && st.encryption_method != ZIP_EM_NONE)
    throw Failure(TN_ERR_UNSUPPORTED, "the entry is encrypted; expected a plain .npz", where);
  if (entry_name.size() < 4 || entry_name.compare(entry_name.size() - 4, 4, ".npy") != 0)
    throw Failure(TN_ERR_INVALID,
                  "the entry is no .npy file; an .npz holds nothing else (np.savez writes one)", where);
  const std::string name = entry_name.substr(0, entry_name.size() - 4);
  if (!seen.insert(name).second) throw Failure(TN_ERR_INVALID, "the archive holds this name twice", where);
  if (st.comp_size > archive_bytes || st.size / largest_ratio > st.comp_size)
    throw Failure(
        TN_ERR_INVALID,
        format("the entry says that %llu bytes unpack to %llu, which cannot be: the archive is damaged",
               static_cast<unsigned long long>(st.comp_size), static_cast<unsigned long long>(st.size)),
        where);

  const Entry file(zip_fopen_index(archive, index, 0));
  if (!file)
    throw Failure(TN_ERR_INVALID, std::string("the entry cannot be unpacked: ") + zip_strerror(archive),
                  where);
  std::vector<uint8_t> head(std::min<uint64_t>(npy_prefix_bytes, st.size));
  read_all(file.get(), head.data(), head.size(), where);
  const uint64_t header_bytes = npy_header_bytes(head.data(), head.size(), where);
  if (header_bytes > st.size) throw Failure(TN_ERR_INVALID, "the entry ends inside its header", where);
  const size_t had = std::min<size_t>(head.size(), header_bytes);
  std::vector<uint8_t> overread(head.begin() + static_cast<std::ptrdiff_t>(had),
                                head.end());  // elements, when the header is tiny
  head.resize(header_bytes);
  if (header_bytes > had) read_all(file.get(), head.data() + had, header_bytes - had, where);
  const NpyHeader h = read_npy_header(head.data(), head.size(), where);
  const uint64_t found = st.size - header_bytes;
  if (found < h.data_bytes)
    throw Failure(
        TN_ERR_INVALID,
        format("found %llu bytes of elements, expected %llu for %s %s",
               static_cast<unsigned long long>(found), static_cast<unsigned long long>(h.data_bytes),
               h.descr.c_str(), sdk::dims_text(h.dims).c_str()),
        where);
  budget.require(found, "its unpacked entry", where);
  sdk::OwnedTensor bytes(TN_UINT8, {static_cast<int64_t>(found)});
  if (!overread.empty())
    std::memcpy(bytes.data<uint8_t>(), overread.data(), std::min<uint64_t>(overread.size(), found));
  if (found > overread.size())
    read_all(file.get(), bytes.data<uint8_t>() + overread.size(), found - overread.size(), where);
  uint8_t past_end;
  if (zip_fread(file.get(), &past_end, 1) != 0)  // reading the end is what checks the sum over the entry
    throw Failure(
        TN_ERR_INVALID,
        std::string("the entry is damaged: ") + zip_file_strerror(file.get()) + "; write the archive again",
        where);

  // A name that the caller knows as it is stands for itself, brackets and all.
  tn_dtype dtype = expected_of(expected, context, name, position);
  Name split{name};
  if (dtype == TN_DTYPE_NONE) {
    split = split_item(name);
    if (split.index >= 0) dtype = expected_of(expected, context, split.base, position);
  }
  const LoadedTensor t = LoadedTensor::decode(h, bytes.data<uint8_t>(), dtype, where, budget);
  const tn_named_tensor named{sdk::str(split.base), split.index, t.get(), TN_KIND_NONE, 0};
  return sink(context, &named);
}

tn_status read(void* instance, const tn_host*, tn_str path, ExpectedDtype expected, Sink sink, void* context,
               const tn_diag* diag) {
  return sdk::guarded(diag, [&]() -> tn_status {
    const sdk::Services& services = *static_cast<const sdk::Services*>(instance);
    const Mapped file(services.files, path);
    const Budget budget(services);
    const std::string where = sdk::text(path);
    ZipError e;
    zip_source_t* source = zip_source_buffer_create(file.data(), file.size(), 0, &e.error);
    if (!source) throw Failure(TN_ERR_INVALID, "the archive cannot be opened: " + e.text(), where);
    const Archive archive(zip_open_from_source(source, ZIP_RDONLY, &e.error));
    if (!archive) {
      zip_source_free(source);
      throw Failure(TN_ERR_INVALID, "this is no .npz (zip) archive, or it is cut short: " + e.text(), where);
    }
    const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
    std::unordered_set<std::string> seen;
    for (zip_int64_t i = 0; i < count; ++i) {
      const tn_status s = read_entry(archive.get(), static_cast<uint64_t>(i), file.size(),
                                     static_cast<uint32_t>(i), where, expected, sink, context, seen, budget);
      if (s != TN_OK) return s;
    }
    return TN_OK;
  });
}

// Writing
// ---------------------------------------------------------------------------------------------------------

/// One entry as libzip reads it while it writes the archive: header, then the elements where they lie.
struct Source {
  NpyImage image;
  uint64_t at = 0;
  uint64_t size() const { return image.header.size() + image.bytes; }
};

zip_int64_t pull(void* state, void* data, zip_uint64_t length, zip_source_cmd_t command) {
  auto& s = *static_cast<Source*>(state);
  switch (command) {
    case ZIP_SOURCE_OPEN:
      s.at = 0;
      return 0;
    case ZIP_SOURCE_READ: {
      const uint64_t head = s.image.header.size();
      uint64_t done = 0;
      auto* to = static_cast<char*>(data);
      while (done < length && s.at < s.size()) {
        const bool in_head = s.at < head;
        const char* elements =
            s.image.data ? static_cast<const char*>(s.image.data) : s.image.converted.data();
        const char* from = in_head ? s.image.header.data() + s.at : elements + (s.at - head);
        const uint64_t n = std::min(length - done, (in_head ? head : s.size()) - s.at);
        std::memcpy(to + done, from, n);
        done += n;
        s.at += n;
      }
      return static_cast<zip_int64_t>(done);
    }
    case ZIP_SOURCE_CLOSE:
      return 0;
    case ZIP_SOURCE_STAT: {
      auto* st = static_cast<zip_stat_t*>(data);
      zip_stat_init(st);
      st->size = s.size();
      st->valid = ZIP_STAT_SIZE;
      return sizeof *st;
    }
    case ZIP_SOURCE_ERROR:
      return 0;
    case ZIP_SOURCE_FREE:
      return 0;  // owned by write()
    case ZIP_SOURCE_SUPPORTS:
      return ZIP_SOURCE_SUPPORTS_READABLE;
    default:
      return -1;
  }
}

/// libzip writes no archive without entries; this is one.
constexpr char empty_archive[22] = {'P', 'K', 5, 6};

tn_status write(void* instance, const tn_host*, tn_str path, const tn_named_tensor* tensors, uint32_t count,
                const tn_diag* diag) {
  return sdk::guarded(diag, [&] {
    const std::string where = sdk::text(path);
    std::vector<std::unique_ptr<Source>> sources;
    std::vector<std::string> names;
    std::unordered_set<std::string> taken;
    for (uint32_t i = 0; i < count; ++i) {
      const tn_named_tensor& t = tensors[i];
      if (t.index == -2) continue;  // an empty sequence has no items to write
      std::string name = t.name.size ? sdk::text(t.name) : "arr_" + std::to_string(i);
      if (t.index >= 0) name += "[" + std::to_string(t.index) + "]";
      if (!taken.insert(name).second)
        throw Failure(TN_ERR_INVALID, "two tensors are called '" + name + "'; an .npz needs a name for each",
                      where);
      sources.push_back(std::make_unique<Source>());
      sources.back()->image = make_npy(t.tensor, where + ": " + name);
      names.push_back(name + ".npy");
      if (names.back().size() > largest_name)
        throw Failure(
            TN_ERR_UNSUPPORTED,
            format("the name '%.60s...' has %zu bytes; an .npz holds names of at most %zu: write to a "
                   "folder (--outputs DIR/) instead",
                   name.c_str(), name.size(), largest_name - 4),
            where);
    }
    if (sources.empty()) {
      Written out(static_cast<const sdk::Services*>(instance)->files, path);
      out.write(empty_archive, sizeof empty_archive);
      return out.keep();
    }
    int code = 0;
    Archive archive(zip_open(where.c_str(), ZIP_CREATE | ZIP_TRUNCATE, &code));
    if (!archive) {
      zip_error_t error;
      zip_error_init_with_code(&error, code);
      const std::string text = zip_error_strerror(&error);
      zip_error_fini(&error);
      throw Failure(TN_ERR_IO, "the archive cannot be written: " + text, where);
    }
    for (size_t i = 0; i < sources.size(); ++i) {
      ZipError e;
      zip_source_t* source = zip_source_function_create(pull, sources[i].get(), &e.error);
      if (!source) throw Failure(TN_ERR_MEMORY, "the archive cannot be written: " + e.text(), where);
      const zip_int64_t index = zip_file_add(archive.get(), names[i].c_str(), source, ZIP_FL_ENC_UTF_8);
      if (index < 0) {
        zip_source_free(source);
        throw Failure(TN_ERR_INVALID,
                      "entry '" + names[i] + "' cannot be added: " + zip_strerror(archive.get()), where);
      }
      // A fixed date: equal tensors make equal files.
      if (zip_set_file_compression(archive.get(), static_cast<zip_uint64_t>(index), ZIP_CM_STORE, 0) != 0 ||
          zip_file_set_dostime(archive.get(), static_cast<zip_uint64_t>(index), 0, 0x21, 0) != 0)
        throw Failure(TN_ERR_INTERNAL, std::string("entry cannot be set up: ") + zip_strerror(archive.get()),
                      where);
    }
    if (zip_close(archive.get()) != 0)
      throw Failure(TN_ERR_IO, std::string("the archive cannot be written: ") + zip_strerror(archive.get()),
                    where);
    (void)archive.release();
  });
}

}  // namespace

const tn_tensor_file_record* npz_record() noexcept {
  static constexpr tn_str suffixes[] = {{".npz", 4}};
  static const tn_tensor_file_record record{sizeof(tn_tensor_file_record),
                                            0,
                                            {"npz", 3},
                                            sdk::str("numpy's archive of named arrays"),
                                            suffixes,
                                            1,
                                            1,
                                            read,
                                            write};
  return &record;
}

}  // namespace tenon::tensors
