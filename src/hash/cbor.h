// The canonical CBOR of vLLM's `sha256_cbor` recipe: shortest heads, definite lengths, no tags.
// A block is the array [parent bytes, [tokens], null or [extra keys]]; a root hashes one text.
// Texts must be valid UTF-8 (the caller checks). Pure; any thread may call.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "src/hash/byte_buffer.h"
#include "src/hash/extra_key_list.h"
#include "src/types.h"

namespace conductor {

void EncodeCborText(std::string_view text, ByteBuffer& out);
void EncodeCborBlock(const Digest& parent, std::span<const std::int32_t> tokens,
                     ExtraKeyList extra_keys, ByteBuffer& out);

}  // namespace conductor
