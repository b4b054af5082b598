#include "npy.hpp"

#include <algorithm>
#include <array>

namespace tenon::tensors {
namespace {

using sdk::Failure;
using sdk::format;

tn_dtype named_type(const NpyHeader& h) {
  const uint32_t bits = h.item_bytes * 8;
  switch (h.kind) {
    case 'b':
      return TN_BOOL;
    case 'i':
      return TN_DTYPE(0, bits);
    case 'u':
      return TN_DTYPE(1, bits);
    case 'f':
      return TN_DTYPE(2, bits);
    case 'c':
      return TN_DTYPE(5, bits);
    case 'U':
    case 'S':
      return TN_STRING;
    default:
      return bits == 16 ? TN_BFLOAT16 : TN_DTYPE_NONE;  // raw bytes: what ml_dtypes' bfloat16 becomes
  }
}

/// The type to read as: a format without a name for a type stores raw bytes, or integers of the same values.
tn_dtype choose_type(const NpyHeader& h, tn_dtype expected, const std::string& where) {
  const uint32_t bits = h.item_bytes * 8;
  const bool raw = h.kind == 'V' || h.kind == 'u' || h.kind == 'i';
  const bool nameless = expected == TN_BFLOAT16 || (TN_DTYPE_BITS(expected) == 8 && sdk::is_float(expected));
  if (raw && nameless && TN_DTYPE_BITS(expected) == bits) return expected;
  if (raw && expected != TN_DTYPE_NONE && TN_DTYPE_BITS(expected) < 8 && bits == 8) return expected;
  const tn_dtype named = named_type(h);
  if (named == TN_DTYPE_NONE)
    throw Failure(TN_ERR_INVALID,
                  "elements of type '" + h.descr +
                      "' are raw bytes, and what they are to be used as does not tell their type; expected " +
                      sdk::dtype_name(expected),
                  where);
  return named;
}

/// Element i of the file's order is at the row-major position positions(i) when the order is Fortran's.
void to_row_major(const NpyHeader& h, const uint8_t* from, uint8_t* to) {
  const size_t rank = h.dims.size(), width = h.item_bytes;
  std::array<int64_t, 65> at{}, stride;  // the header allows 64 dimensions
  stride.fill(1);
  for (size_t i = rank; i-- > 1;) stride[i - 1] = stride[i] * h.dims[i];
  int64_t position = 0;
  for (int64_t k = 0; k < h.elements; ++k) {
    std::memcpy(to + static_cast<size_t>(position) * width, from + static_cast<size_t>(k) * width, width);
    for (size_t axis = 0; axis < rank; ++axis) {
      position += stride[axis];
      if (++at[axis] < h.dims[axis]) break;
      position -= stride[axis] * h.dims[axis];
      at[axis] = 0;
    }
  }
}

void swap_bytes(uint8_t* data, int64_t elements, size_t width) {
  for (int64_t i = 0; i < elements; ++i, data += width) std::reverse(data, data + width);
}

void append_utf8(std::string& out, uint32_t c, const std::string& where) {
  if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
    throw Failure(TN_ERR_INVALID, format("a text holds code point %u, which Unicode does not have", c),
                  where);
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80)
    put(c);
  else if (c < 0x800)
    put(0xc0 | c >> 6), put(0x80 | (c & 63));
  else if (c < 0x10000)
    put(0xe0 | c >> 12), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
  else
    put(0xf0 | c >> 18), put(0x80 | (c >> 12 & 63)), put(0x80 | (c >> 6 & 63)), put(0x80 | (c & 63));
}

std::string text_element(const NpyHeader& h, const uint8_t* item, const std::string& where) {
  std::string s;
  if (h.kind == 'S') {
    s.assign(reinterpret_cast<const char*>(item), h.item_bytes);
    s.erase(s.find_last_not_of('\0') + 1);  // numpy pads with zeros
    return s;
  }
  size_t length = h.item_bytes / 4;
  const auto code = [&](size_t i) {
    uint32_t c;
    std::memcpy(&c, item + 4 * i, 4);
    return h.big_endian ? __builtin_bswap32(c) : c;
  };
  while (length && code(length - 1) == 0) --length;
  for (size_t i = 0; i < length; ++i) append_utf8(s, code(i), where);
  return s;
}

}  // namespace

LoadedTensor LoadedTensor::decode(const NpyHeader& h, const uint8_t* data, tn_dtype expected,
                                  const std::string& where, const Budget& budget) {
  LoadedTensor out;
  const tn_dtype dtype = choose_type(h, expected, where);
  out.dims_ = h.dims;
  const bool text = dtype == TN_STRING, packed = TN_DTYPE_BITS(dtype) < 8;
  const size_t part = h.kind == 'c' ? h.item_bytes / 2 : h.item_bytes;  // what a byte order applies to
  const bool swap = h.big_endian && part > 1 && !text;
  const bool reorder = h.fortran && h.dims.size() > 1 && h.elements > 1;
  const bool aligned = reinterpret_cast<uintptr_t>(data) % std::min<uintptr_t>(part ? part : 1, 8) == 0;
  if (text)  // before anything walks the elements: texts of no width take no bytes in the file
    budget.require(static_cast<uint64_t>(h.elements) * (sizeof(std::string) + sizeof(tn_str)),
                   "the list of its texts", where);
  bool odd_bool = false;  // a byte that is neither 0 nor 1 is no bool of C++
  if (dtype == TN_BOOL)
    for (int64_t i = 0; i < h.elements; ++i) odd_bool = odd_bool || data[i] > 1;

  sdk::OwnedTensor work;
  const uint8_t* items = data;
  if (swap || reorder || odd_bool || (!aligned && !text)) {
    work = sdk::OwnedTensor(TN_UINT8, {static_cast<int64_t>(h.data_bytes)});
    auto* to = work.data<uint8_t>();
    if (reorder)
      to_row_major(h, data, to);
    else if (h.data_bytes)
      std::memcpy(to, data, h.data_bytes);
    if (swap) swap_bytes(to, h.elements * static_cast<int64_t>(h.item_bytes / part), part);
    if (odd_bool)
      for (int64_t i = 0; i < h.elements; ++i) to[i] = to[i] != 0;
    items = to;
  }
  const auto rank = static_cast<int32_t>(out.dims_.size());
  if (text) {
    out.texts_.reserve(static_cast<size_t>(h.elements));
    for (int64_t i = 0; i < h.elements; ++i)
      out.texts_.push_back(text_element(h, items + static_cast<size_t>(i) * h.item_bytes, where));
    for (const auto& s : out.texts_) out.views_.push_back(sdk::str(s));
    out.tensor_ = {dtype, rank, out.dims_.data(), out.views_.data(), out.views_.size() * sizeof(tn_str)};
    return out;
  }
  if (packed) {
    const uint32_t bits = TN_DTYPE_BITS(dtype), per_byte = 8 / bits, mask = (1u << bits) - 1;
    const bool is_signed = sdk::is_signed_integer(dtype);
    const int low = is_signed ? -(1 << (bits - 1)) : 0,
              high = is_signed ? (1 << (bits - 1)) - 1 : static_cast<int>(mask);
    out.owned_ = sdk::OwnedTensor(dtype, h.dims);
    for (int64_t i = 0; i < h.elements; ++i) {
      const int value =
          h.kind == 'i' || (h.kind == 'V' && is_signed) ? static_cast<int8_t>(items[i]) : items[i];
      if (value < low || value > high)
        throw Failure(TN_ERR_INVALID,
                      format("element %lld is %d, expected %d to %d for %s", static_cast<long long>(i), value,
                             low, high, sdk::dtype_name(dtype)),
                      where);
      const auto shift = bits * (static_cast<uint32_t>(i) % per_byte);
      out.owned_.data<uint8_t>()[i / per_byte] |=
          static_cast<uint8_t>((static_cast<uint32_t>(value) & mask) << shift);
    }
    out.tensor_ = out.owned_.raw();
    out.tensor_.dims = out.dims_.data();
    return out;
  }
  out.owned_ = std::move(work);
  out.tensor_ = {dtype, rank, out.dims_.data(), const_cast<uint8_t*>(items), h.data_bytes};
  return out;
}

// Writing
// ---------------------------------------------------------------------------------------------------------

namespace {

std::string header_text(const std::string& descr, const tn_tensor& t) {
  std::string dict = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int32_t i = 0; i < t.rank; ++i)
    dict += std::to_string(t.dims[i]) + (t.rank == 1 ? "," : i + 1 < t.rank ? ", " : "");
  dict += "), }";
  const size_t prefix = dict.size() + 64 < 65536 ? 10 : 12;
  dict.append((64 - (prefix + dict.size() + 1) % 64) % 64, ' ');
  dict += '\n';
  std::string out("\x93NUMPY", 6);
  out += prefix == 10 ? '\1' : '\2';
  out += '\0';
  for (size_t i = 0; i < prefix - 8; ++i) out += static_cast<char>(dict.size() >> (8 * i) & 0xff);
  return out + dict;
}

std::string descr_of(tn_dtype dtype) {
  const uint32_t bytes = sdk::dtype_bytes(dtype);
  const auto with = [&](const char* kind) {
    return (bytes == 1 ? "|" : "<") + std::string(kind) + std::to_string(bytes);
  };
  switch (TN_DTYPE_CODE(dtype)) {
    case 0:
      return bytes ? with("i") : "|i1";
    case 1:
      return bytes ? with("u") : "|u1";
    case 2:
      return with("f");
    case 5:
      return with("c");
    case 6:
      return "|b1";
    default:
      return bytes ? with("V") : "|V1";  // bfloat16 and float8, as ml_dtypes writes them
  }
}

/// Well-formed UTF-8 to code points; false when it is not.
bool decode_utf8(std::string_view s, std::vector<uint32_t>& out) {
  out.clear();
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const size_t more = c < 0x80                ? 0
                        : c >= 0xc2 && c < 0xe0 ? 1
                        : c >= 0xe0 && c < 0xf0 ? 2
                        : c >= 0xf0 && c < 0xf5 ? 3
                                                : 4;
    if (more == 4 || i + more >= s.size() + (more == 0)) return false;
    uint32_t code = more == 0 ? c : c & (0x3fu >> more);
    for (size_t k = 1; k <= more; ++k) {
      const auto next = static_cast<unsigned char>(s[i + k]);
      if ((next & 0xc0u) != 0x80u) return false;
      code = code << 6 | (next & 0x3fu);
    }
    constexpr uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    if (code < least[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    out.push_back(code);
    i += more + 1;
  }
  return true;
}

/// Text of any bytes: as '<U' when all of it is UTF-8, else as '|S'.
NpyImage text_image(const tn_tensor& t) {
  const auto* elements = static_cast<const tn_str*>(t.data);
  const uint64_t count = t.bytes / sizeof(tn_str);
  std::vector<uint32_t> codes;
  size_t longest_text = 1, longest_bytes = 1;
  bool unicode = true;
  for (uint64_t i = 0; i < count; ++i) {
    const auto s = sdk::view(elements[i]);
    unicode = unicode && decode_utf8(s, codes);
    longest_text = std::max(longest_text, codes.size());
    longest_bytes = std::max(longest_bytes, s.size());
  }
  const size_t width = unicode ? 4 * longest_text : longest_bytes;
  NpyImage image;
  image.header =
      header_text(unicode ? "<U" + std::to_string(longest_text) : "|S" + std::to_string(longest_bytes), t);
  image.converted.assign(
      static_cast<size_t>(sdk::checked_mul(static_cast<int64_t>(count), static_cast<int64_t>(width))), '\0');
  for (uint64_t i = 0; i < count; ++i) {
    const auto s = sdk::view(elements[i]);
    char* to = image.converted.data() + i * width;
    if (unicode && decode_utf8(s, codes)) {
      if (!codes.empty()) std::memcpy(to, codes.data(), 4 * codes.size());
    } else if (!s.empty()) {
      std::memcpy(to, s.data(), s.size());
    }
  }
  return image;
}

}  // namespace

NpyImage make_npy(const tn_tensor& t, const std::string& where) {
  NpyImage image;
  if (t.dtype == TN_STRING) {
    image = text_image(t);
  } else if (TN_DTYPE_BITS(t.dtype) < 8) {
    // One element a byte, as ml_dtypes has them in memory.
    const uint32_t bits = TN_DTYPE_BITS(t.dtype);
    if (bits == 0) throw Failure(TN_ERR_INVALID, "a tensor without an element type cannot be written", where);
    const uint32_t per_byte = 8 / bits, mask = (1u << bits) - 1, sign = 1u << (bits - 1);
    const int64_t count = sdk::element_count({t.dims, static_cast<size_t>(t.rank)});
    image.header = header_text(descr_of(t.dtype), t);
    image.converted.resize(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      uint32_t v = static_cast<const uint8_t*>(t.data)[i / per_byte] >>
                       (bits * (static_cast<uint32_t>(i) % per_byte)) &
                   mask;
      if (sdk::is_signed_integer(t.dtype) && (v & sign)) v |= ~mask;
      image.converted[static_cast<size_t>(i)] = static_cast<char>(v);
    }
  } else {
    image.header = header_text(descr_of(t.dtype), t);
    image.data = t.data;
    image.bytes = t.bytes;
    return image;
  }
  image.bytes = image.converted.size();
  return image;  // `data` stays NULL: the bytes are `converted`
}

}  // namespace tenon::tensors
