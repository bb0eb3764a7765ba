// HPACK (RFC 7541): the header compression of HTTP/2, as much of it as a gRPC client needs.
// The encoder is stateless (nothing indexed, nothing Huffman-coded); the decoder is complete,
// because a server or a proxy may use all of it. Every input is checked: it comes from the network.
// One decoder for each connection; used by one thread at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace conductor::rpc {

struct Header {
  std::string name;
  std::string value;
};
using Headers = std::vector<Header>;

// The value of the last header of that name, or empty.
std::string_view FindHeader(const Headers& headers, std::string_view name);

// What we let the peer keep in the dynamic table: the protocol's default, never announced.
inline constexpr std::size_t kHeaderTableBytes = 4'096;
// Of one decoded header list: a peer cannot make a small block grow without bound.
inline constexpr std::size_t kHeaderListBytesMax = 256u << 10;

// A literal that no table keeps. `name` is lower case.
void AppendHeader(std::string_view name, std::string_view value, std::string* block);

class HpackDecoder {
 public:
  // Appends the headers of one complete block. False: malformed or above the limit; the
  // connection cannot be used any more.
  bool Decode(std::span<const std::uint8_t> block, Headers* headers);

 private:
  class Reader;
  bool DecodeLiteral(Reader* reader, std::uint64_t name_index, Header* header) const;
  const Header* Lookup(std::uint64_t index) const;
  void Insert(const Header& header);
  void Shrink(std::size_t bytes);

  std::deque<Header> dynamic_;     // newest first
  std::size_t dynamic_bytes_ = 0;  // Invariant: dynamic_bytes_ <= table_bytes_.
  std::size_t table_bytes_ = kHeaderTableBytes;
};

}  // namespace conductor::rpc
