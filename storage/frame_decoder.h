// Reads back what frame_encoder.h wrote, without a message tree and without an allocation per
// block. It takes only the canonical bytes, every field at its place; whatever else a record may
// hold is read, or refused with a reason, through protobuf. Pure function, any thread.
#pragma once

#include <optional>
#include <string_view>

#include "src/fact.h"

namespace conductor::storage {

// None: not a record whose facts all read without question; the protobuf path decides.
std::optional<Record> ReadCanonicalRecord(std::string_view body);

}  // namespace conductor::storage
