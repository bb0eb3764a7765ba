// The Huffman code of HPACK (RFC 7541, appendix B), decoding only: this client sends its headers
// uncoded. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace conductor::rpc {

// Appends the decoded text. False: the coded text is malformed (padding that is not the start of
// the end mark, or the end mark itself).
bool DecodeHuffman(std::span<const std::uint8_t> coded, std::string* text);

}  // namespace conductor::rpc
