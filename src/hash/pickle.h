// The pickle (protocol 5) of vLLM's `sha256` recipe, byte for byte as CPython's pickler writes it:
// framing with its 64 KiB target, payloads of 64 KiB and more outside any frame, frames shorter
// than 4 bytes without a header, and the identity trap: CPython keeps one object per one-character
// Latin-1 string, so the second of two equal ones is a reference to the first.
// Texts must be valid UTF-8 (the caller checks). Pure; any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/hash/byte_buffer.h"
#include "src/hash/extra_key_list.h"
#include "src/types.h"

namespace conductor {

void EncodePickleText(std::string_view text, ByteBuffer& out);

// The tuple (parent bytes, (tokens...), None or (extra keys...)). `tokens` is not empty.
void EncodePickleBlock(const Digest& parent, std::span<const std::int32_t> tokens,
                       ExtraKeyList extra_keys, ByteBuffer& out);

}  // namespace conductor
