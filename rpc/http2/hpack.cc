#include "rpc/http2/hpack.h"

#include <array>
#include <utility>

#include "rpc/http2/huffman.h"

namespace conductor::rpc {
namespace {

constexpr std::size_t kEntryOverheadBytes = 32;  // RFC 7541, 4.1

struct StaticHeader {
  const char* name;
  const char* value;
};

constexpr std::array<StaticHeader, 61> kStatic = {{
    {":authority", ""},
    {":method", "GET"},
    {":method", "POST"},
    {":path", "/"},
    {":path", "/index.html"},
    {":scheme", "http"},
    {":scheme", "https"},
    {":status", "200"},
    {":status", "204"},
    {":status", "206"},
    {":status", "304"},
    {":status", "400"},
    {":status", "404"},
    {":status", "500"},
    {"accept-charset", ""},
    {"accept-encoding", "gzip, deflate"},
    {"accept-language", ""},
    {"accept-ranges", ""},
    {"accept", ""},
    {"access-control-allow-origin", ""},
    {"age", ""},
    {"allow", ""},
    {"authorization", ""},
    {"cache-control", ""},
    {"content-disposition", ""},
    {"content-encoding", ""},
    {"content-language", ""},
    {"content-length", ""},
    {"content-location", ""},
    {"content-range", ""},
    {"content-type", ""},
    {"cookie", ""},
    {"date", ""},
    {"etag", ""},
    {"expect", ""},
    {"expires", ""},
    {"from", ""},
    {"host", ""},
    {"if-match", ""},
    {"if-modified-since", ""},
    {"if-none-match", ""},
    {"if-range", ""},
    {"if-unmodified-since", ""},
    {"last-modified", ""},
    {"link", ""},
    {"location", ""},
    {"max-forwards", ""},
    {"proxy-authenticate", ""},
    {"proxy-authorization", ""},
    {"range", ""},
    {"referer", ""},
    {"refresh", ""},
    {"retry-after", ""},
    {"server", ""},
    {"set-cookie", ""},
    {"strict-transport-security", ""},
    {"transfer-encoding", ""},
    {"user-agent", ""},
    {"vary", ""},
    {"via", ""},
    {"www-authenticate", ""},
}};

const std::array<Header, kStatic.size()>& StaticTable() {
  static const auto table = [] {
    std::array<Header, kStatic.size()> headers;
    for (std::size_t i = 0; i < kStatic.size(); ++i) {
      headers[i] = {kStatic[i].name, kStatic[i].value};
    }
    return headers;
  }();
  return table;
}

std::size_t SizeOf(const Header& header) {
  return header.name.size() + header.value.size() + kEntryOverheadBytes;
}

void AppendInteger(std::uint8_t flags, int prefix_bits, std::size_t value, std::string* out) {
  const std::size_t prefix_max = (1u << prefix_bits) - 1;
  if (value < prefix_max) {
    out->push_back(static_cast<char>(flags | value));
    return;
  }
  out->push_back(static_cast<char>(flags | prefix_max));
  for (value -= prefix_max; value >= 128; value >>= 7) {
    out->push_back(static_cast<char>(value % 128 + 128));
  }
  out->push_back(static_cast<char>(value));
}

void AppendString(std::string_view text, std::string* out) {
  AppendInteger(0, 7, text.size(), out);
  out->append(text);
}

}  // namespace

// Takes the primitive values of a block from its front.
class HpackDecoder::Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  std::uint8_t first() const { return bytes_.front(); }

  // An integer in the low `prefix_bits` of the first byte and what follows it.
  bool Integer(int prefix_bits, std::uint64_t* value) {
    if (bytes_.empty()) return false;
    const std::uint64_t prefix_max = (1u << prefix_bits) - 1;
    *value = Take() & prefix_max;
    if (*value < prefix_max) return true;
    for (int shift = 0; shift <= 28; shift += 7) {  // above 2^35 nothing is meant honestly
      if (bytes_.empty()) return false;
      const std::uint8_t byte = Take();
      *value += std::uint64_t{byte & 127u} << shift;
      if (byte < 128) return true;
    }
    return false;
  }

  bool String(std::string* text) {
    if (bytes_.empty()) return false;
    const bool coded = (first() & 0x80) != 0;
    std::uint64_t length = 0;
    if (!Integer(7, &length) || length > bytes_.size()) return false;
    const auto data = bytes_.first(length);
    bytes_ = bytes_.subspan(length);
    if (coded) return DecodeHuffman(data, text);
    text->assign(data.begin(), data.end());
    return true;
  }

 private:
  std::uint8_t Take() {
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }

  std::span<const std::uint8_t> bytes_;
};

std::string_view FindHeader(const Headers& headers, std::string_view name) {
  for (auto it = headers.rbegin(); it != headers.rend(); ++it) {
    if (it->name == name) return it->value;
  }
  return {};
}

void AppendHeader(std::string_view name, std::string_view value, std::string* block) {
  block->push_back(0);  // literal without indexing, the name spelled out
  AppendString(name, block);
  AppendString(value, block);
}

const Header* HpackDecoder::Lookup(std::uint64_t index) const {
  if (index == 0) return nullptr;
  if (index <= kStatic.size()) return &StaticTable()[index - 1];
  index -= kStatic.size() + 1;
  return index < dynamic_.size() ? &dynamic_[index] : nullptr;
}

void HpackDecoder::Shrink(std::size_t bytes) {
  while (dynamic_bytes_ > bytes) {
    dynamic_bytes_ -= SizeOf(dynamic_.back());
    dynamic_.pop_back();
  }
}

void HpackDecoder::Insert(const Header& header) {
  const std::size_t size = SizeOf(header);
  if (size > table_bytes_) {
    Shrink(0);
    return;
  }
  Shrink(table_bytes_ - size);
  dynamic_.push_front(header);
  dynamic_bytes_ += size;
}

bool HpackDecoder::DecodeLiteral(Reader* reader, std::uint64_t name_index, Header* header) const {
  if (name_index != 0) {
    const Header* named = Lookup(name_index);
    if (named == nullptr) return false;
    header->name = named->name;
  } else if (!reader->String(&header->name)) {
    return false;
  }
  return reader->String(&header->value);
}

bool HpackDecoder::Decode(std::span<const std::uint8_t> block, Headers* headers) {
  Reader reader(block);
  std::size_t list_bytes = 0;
  while (!reader.empty()) {
    const std::uint8_t first = reader.first();
    std::uint64_t number = 0;
    Header header;
    if ((first & 0x80) != 0) {  // indexed
      if (!reader.Integer(7, &number)) return false;
      const Header* found = Lookup(number);
      if (found == nullptr) return false;
      header = *found;
    } else if ((first & 0xE0) == 0x20) {  // size of the dynamic table
      if (!reader.Integer(5, &number) || number > kHeaderTableBytes) return false;
      table_bytes_ = number;
      Shrink(table_bytes_);
      continue;
    } else {  // literal: indexed (01), not indexed (0000) or never (0001)
      const bool indexed = (first & 0x40) != 0;
      if (!reader.Integer(indexed ? 6 : 4, &number)) return false;
      if (!DecodeLiteral(&reader, number, &header)) return false;
      if (indexed) Insert(header);
    }
    list_bytes += SizeOf(header);
    if (list_bytes > kHeaderListBytesMax) return false;
    headers->push_back(std::move(header));
  }
  return true;
}

}  // namespace conductor::rpc
