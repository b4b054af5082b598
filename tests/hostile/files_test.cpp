// Files beside the model, and archives of tensors.
#include <zlib.h>

#include <catch2/catch.hpp>

#include "messages.hpp"
#include "offer.hpp"

using namespace tenon::hostile;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

std::string external(const std::string& location, const char* offset = nullptr, const char* length = nullptr,
                     int64_t elements = 16) {
  std::string w;
  protozero::pbf_writer out(w);
  out.add_packed_int64(tenon::onnx::tensor_field::dims, &elements, &elements + 1);
  out.add_int32(tenon::onnx::tensor_field::data_type, 1);
  out.add_string(tenon::onnx::tensor_field::name, "w");
  const auto entry = [&](const char* key, const std::string& value) {
    std::string e;
    protozero::pbf_writer ew(e);
    ew.add_string(tenon::onnx::entry_field::key, key);
    ew.add_string(tenon::onnx::entry_field::value, value);
    out.add_message(tenon::onnx::tensor_field::external_data, e);
  };
  entry("location", location);
  if (offset) entry("offset", offset);
  if (length) entry("length", length);
  out.add_int32(tenon::onnx::tensor_field::data_location, 1);
  return model(graph({{node("Mul", {"x", "w"}, {"y"})}, {w}, {}, {value_info("x", 1, {16})}, {y}, {}}));
}

void put(std::string& out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

/// A zip archive of one deflated entry that says it has `claimed` bytes.
std::string zip_of(const std::string& name, const std::string& unpacked, uint32_t claimed) {
  std::string packed(compressBound(static_cast<uLong>(unpacked.size())), '\0');
  z_stream z{};
  deflateInit2(&z, 9, Z_DEFLATED, -15, 9, Z_DEFAULT_STRATEGY);
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(unpacked.data()));
  z.avail_in = static_cast<uInt>(unpacked.size());
  z.next_out = reinterpret_cast<Bytef*>(packed.data());
  z.avail_out = static_cast<uInt>(packed.size());
  deflate(&z, Z_FINISH);
  packed.resize(z.total_out);
  deflateEnd(&z);
  const auto crc = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(unpacked.data()), static_cast<uInt>(unpacked.size())));
  std::string fields;
  put(fields, 20, 2), put(fields, 0, 2), put(fields, 8, 2), put(fields, 0, 4), put(fields, crc, 4);
  put(fields, static_cast<uint32_t>(packed.size()), 4), put(fields, claimed, 4);
  put(fields, static_cast<uint32_t>(name.size()), 2), put(fields, 0, 2);
  std::string out = "PK\3\4" + fields + name + packed;
  const auto directory = static_cast<uint32_t>(out.size());
  out += std::string("PK\1\2", 4);
  put(out, 20, 2);
  out += fields;
  put(out, 0, 2), put(out, 0, 2), put(out, 0, 2), put(out, 0, 4), put(out, 0, 4);
  out += name;
  const auto size = static_cast<uint32_t>(out.size()) - directory;
  out += std::string("PK\5\6", 4);
  put(out, 0, 2), put(out, 0, 2), put(out, 1, 2), put(out, 1, 2), put(out, size, 4), put(out, directory, 4),
      put(out, 0, 2);
  return out;
}
std::string npy(const std::string& dict, uint64_t zeros) {
  std::string out("\x93NUMPY\1\0", 8);
  put(out, static_cast<uint32_t>(dict.size()), 2);
  return out + dict + std::string(zeros, '\0');
}

}  // namespace

TEST_CASE("external data stays in the model's folder") {
  const fs::path outside = fresh_folder(), folder = fresh_folder();
  const std::string bytes(64, '\0');
  write_file(outside / "secret.bin", bytes);
  write_file(folder / "good.bin", bytes);
  fs::create_directories(folder / "sub");
  write_file(folder / "sub" / "good.bin", bytes);
  fs::create_symlink(outside / "secret.bin", folder / "link.bin");
  fs::create_symlink(fs::relative(outside / "secret.bin", folder), folder / "relative_link.bin");
  fs::create_symlink(outside, folder / "folder_link");
  fs::create_symlink("loop_b", folder / "loop_a");
  fs::create_symlink("loop_a", folder / "loop_b");
  const uint64_t enough = uint64_t{64} << 20;
  for (const char* inside : {"good.bin", "./good.bin", "sub/good.bin", "sub/../good.bin"}) {
    const Outcome outcome = offer(external(inside), enough, folder);
    INFO(inside << ": " << outcome.said);
    CHECK(outcome.ran);
  }
  const std::string up = "../" + outside.filename().string() + "/secret.bin";
  const struct {
    std::string location;
    const char* said;
  } all[] = {{up, "outside"},
             {"sub/../" + up, "outside"},
             {(outside / "secret.bin").string(), "absolute"},
             {"/etc/passwd", "absolute"},
             {"/dev/zero", "absolute"},
             {"link.bin", "outside"},
             {"relative_link.bin", "outside"},
             {"folder_link/secret.bin", "outside"},
             {"loop_a", "loop_a"},
             {".", "folder"},
             {"..", "outside"},
             {"", "no location"},
             {"none.bin", "none.bin"},
             {std::string("good.bin\0x", 10), "good.bin"},
             {"file:///etc/passwd", "file:"}};
  for (const auto& one : all) {
    const Outcome outcome = offer(external(one.location), enough, folder);
    INFO(one.location << ": " << outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK_THAT(outcome.said, Contains("'w'") && Contains(one.said));
  }
}

TEST_CASE("external data: places and lengths that do not fit") {
  const fs::path folder = fresh_folder();
  write_file(folder / "good.bin", std::string(64, '\0'));
  const struct {
    const char *offset, *length;
    int64_t elements;
    const char* said;
  } all[] = {{nullptr, nullptr, 17, "68 bytes"},
             {"1", nullptr, 16, "offset 1"},
             {"64", nullptr, 16, "offset 64"},
             {"9223372036854775808", nullptr, 16, "offset 9223372036854775808"},
             {"18446744073709551615", "64", 16, "external"},
             {"99999999999999999999999", nullptr, 16, "a number of bytes"},
             {"-1", nullptr, 16, "'-1'"},
             {"0x10", nullptr, 16, "'0x10'"},
             {"0", "63", 16, "expected 64 bytes"},
             {"0", "9223372036854775808", 16, "expected 64 bytes"},
             {nullptr, nullptr, int64_t{1} << 61, "too large"},
             {nullptr, nullptr, int64_t{1} << 40, "bytes"}};
  for (const auto& one : all) {
    const Outcome outcome =
        offer(external("good.bin", one.offset, one.length, one.elements), uint64_t{64} << 20, folder);
    INFO(one.said << ": " << outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK_THAT(outcome.said, Contains("'w'") && Contains(one.said));
  }
}

TEST_CASE("npy headers that promise more than the file holds") {
  const fs::path folder = fresh_folder();
  const auto offered = [&](const std::string& dict) {
    return offer_tensors(write_file(folder / "x.npy", npy(dict, 8)));
  };
  CHECK(offered("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }").ran);
  const struct {
    const char *dict, *said;
  } all[] = {
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (10000000000,), }", "found 8 bytes"},
      {"{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296), }", "too large"},
      {"{'descr': '<U0', 'fortran_order': False, 'shape': (10000000000,), }", "too large"},
      {"{'descr': '|S0', 'fortran_order': True, 'shape': (100000, 100000), }", "too large"},
      {"{'descr': '<U99999999', 'fortran_order': False, 'shape': (1,), }", "found 8 bytes"},
  };
  for (const auto& one : all) {
    const Outcome outcome = offered(one.dict);
    INFO(one.dict << ": " << outcome.said);
    CHECK_FALSE(outcome.ran);
    CHECK_THAT(outcome.said, Contains("x.npy") && Contains(one.said));
  }
}

TEST_CASE("zip bombs") {
  const fs::path folder = fresh_folder();
  const uint64_t elements = 16 << 20;  // 64 MiB of zeros in 64 kB
  const std::string bomb =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(elements) + ",), }",
          elements * 4);
  const auto size = static_cast<uint32_t>(bomb.size());
  const auto offered = [&](const std::string& bytes, uint64_t limit) {
    return offer_tensors(write_file(folder / "x.npz", bytes), limit);
  };
  const std::string honest = zip_of("x.npy", bomb, size);
  CHECK(honest.size() < 200'000);
  const Outcome roomy = offered(honest, uint64_t{512} << 20);
  INFO(roomy.said);
  CHECK(roomy.ran);
  const Outcome tight = offered(honest, uint64_t{32} << 20);
  CHECK_FALSE(tight.ran);
  CHECK_THAT(tight.said, Contains("x.npy") && Contains("too large") && Contains("--memory-limit"));
  // One that says it is small, one that says it is what deflate cannot be.
  const Outcome small = offered(zip_of("x.npy", bomb, 4096), uint64_t{512} << 20);
  INFO(small.said);
  CHECK_FALSE(small.ran);
  const Outcome large = offered(zip_of("x.npy", bomb.substr(0, 4096), 0xfffffff0u), uint64_t{512} << 20);
  CHECK_FALSE(large.ran);
  CHECK_THAT(large.said, Contains("cannot be"));
}
