#include <cctype>

#include "npy.hpp"

namespace tenon::tensors {
namespace {

using sdk::Failure;
using sdk::format;

constexpr uint64_t largest_header_bytes = 1u << 20;

/// The Python literal of the header: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }.
class Literal {
 public:
  Literal(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  NpyHeader parse() {
    NpyHeader h;
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!take('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr" && !descr) {
        if (peek() == '[')
          wrong("its elements are records (a structured type); expected numbers, booleans or text");
        h.descr = string();
        descr = true;
      } else if (key == "fortran_order" && !order) {
        h.fortran = boolean();
        order = true;
      } else if (key == "shape" && !shape) {
        h.dims = tuple();
        shape = true;
      } else {
        wrong("its header has an unexpected key '" + key + "'");
      }
      if (!take(',') && peek() != '}') wrong("its header lacks a comma");
    }
    if (!descr || !order || !shape) wrong("its header lacks one of 'descr', 'fortran_order' and 'shape'");
    return h;
  }

 private:
  [[noreturn]] void wrong(const std::string& what) const {
    throw Failure(TN_ERR_INVALID, "this .npy cannot be read: " + what, where_);
  }
  char peek() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c || c == '\0') return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c))
      wrong(format("its header has '%c' where '%c' is expected",
                   std::isprint(static_cast<unsigned char>(peek())) ? peek() : '?', c));
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') wrong("its header has no text where a key or type is expected");
    const size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos || end - at_ > 64) wrong("its header has a text that does not end");
    std::string s(text_.substr(at_, end - at_));
    at_ = end + 1;
    return s;
  }
  bool boolean() {
    peek();
    for (std::string_view word : {"True", "False"})
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return word == "True";
      }
    wrong("'fortran_order' is neither True nor False");
  }
  sdk::Dims tuple() {
    sdk::Dims dims;
    expect('(');
    while (!take(')')) {
      if (!std::isdigit(static_cast<unsigned char>(peek())))
        wrong("its shape has something that is no number");
      int64_t n = 0;
      while (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])))
        if (__builtin_mul_overflow(n, int64_t{10}, &n) ||
            __builtin_add_overflow(n, int64_t{text_[at_++] - '0'}, &n))
          wrong("a dimension of its shape is too large");
      (void)take('L');  // Python 2 wrote 3L
      dims.push_back(n);
      if (dims.size() > 64) wrong("its shape has more than 64 dimensions");
      if (!take(',') && peek() != ')') wrong("its shape lacks a comma");
    }
    return dims;
  }
  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

void understand_descr(NpyHeader& h, const std::string& where) {
  const auto refuse = [&] {
    throw Failure(
        TN_ERR_UNSUPPORTED,
        "elements of type '" + h.descr +
            "' cannot be used; expected booleans, integers, floats up to 64 bits, complex numbers or text",
        where);
  };
  const std::string& d = h.descr;
  if (d.size() < 3) refuse();
  h.big_endian = d[0] == '>';
  if (d[0] != '<' && d[0] != '>' && d[0] != '|' && d[0] != '=') refuse();
  h.kind = d[1];
  uint64_t width = 0;
  for (size_t i = 2; i < d.size(); ++i) {
    if (!std::isdigit(static_cast<unsigned char>(d[i])) || width > 100'000'000) refuse();
    width = width * 10 + static_cast<uint64_t>(d[i] - '0');
  }
  const bool one = width == 1, two = width == 2, four = width == 4, eight = width == 8;
  switch (h.kind) {
    case 'b':
      if (!one) refuse();
      break;
    case 'i':
    case 'u':
      if (!(one || two || four || eight)) refuse();
      break;
    case 'f':
      if (!(two || four || eight)) refuse();
      break;
    case 'c':
      if (!(eight || width == 16)) refuse();
      break;
    case 'V':
      if (!(one || two)) refuse();
      break;
    case 'U':
      width *= 4;
      break;
    case 'S':
      break;
    default:
      refuse();
  }
  h.item_bytes = static_cast<uint32_t>(width);
}

}  // namespace

uint64_t npy_header_bytes(const uint8_t* b, uint64_t count, const std::string& where) {
  if (count < 10 || std::memcmp(b, "\x93NUMPY", 6) != 0)
    throw Failure(TN_ERR_INVALID, "this is no .npy file: it does not begin with \\x93NUMPY", where);
  const int major = b[6];
  if (major < 1 || major > 3)
    throw Failure(TN_ERR_UNSUPPORTED,
                  format("the .npy format has version %d.%d, expected 1.0, 2.0 or 3.0", major, b[7]), where);
  if (major > 1 && count < 12) throw Failure(TN_ERR_INVALID, "the file ends inside its header", where);
  const uint64_t text = major == 1
                            ? b[8] | static_cast<uint64_t>(b[9]) << 8
                            : b[8] | static_cast<uint64_t>(b[9]) << 8 | static_cast<uint64_t>(b[10]) << 16 |
                                  static_cast<uint64_t>(b[11]) << 24;
  if (text > largest_header_bytes)
    throw Failure(
        TN_ERR_INVALID,
        format("the header says it has %llu bytes, expected at most %llu",
               static_cast<unsigned long long>(text), static_cast<unsigned long long>(largest_header_bytes)),
        where);
  return text + (major == 1 ? 10 : 12);
}

NpyHeader read_npy_header(const uint8_t* b, uint64_t count, const std::string& where) {
  const uint64_t end = npy_header_bytes(b, count, where);
  if (end > count)
    throw Failure(TN_ERR_INVALID,
                  format("the file ends inside its header, after %llu of %llu bytes",
                         static_cast<unsigned long long>(count), static_cast<unsigned long long>(end)),
                  where);
  const uint64_t begin = b[6] == 1 ? 10 : 12;
  NpyHeader h =
      Literal({reinterpret_cast<const char*>(b) + begin, static_cast<size_t>(end - begin)}, where).parse();
  understand_descr(h, where);
  try {
    h.elements = sdk::element_count(h.dims);
    h.data_bytes = static_cast<uint64_t>(sdk::checked_mul(h.elements, h.item_bytes));
    (void)sdk::checked_mul(h.elements, 64);  // room for strings' bookkeeping
  } catch (const Failure&) {
    throw Failure(
        TN_ERR_LIMIT,
        "its shape " + sdk::dims_text(h.dims) + " is too large: the number of bytes overflows 63 bits",
        where);
  }
  h.data_offset = end;
  return h;
}

}  // namespace tenon::tensors
