// Frames, which are nearly all of the log, as protobuf would write them (storage/record.proto), but
// straight from the facts: no message tree, nothing allocated per block. Everything else of a
// record goes through record_to_proto.h, and everything is read through protobuf.
// Pure function, any thread.
#pragma once

#include "src/fact.h"
#include "storage/backward_writer.h"

namespace conductor::storage {

// The content of a Fact message. The frame passes CheckRecord.
void WriteFrameFact(const Frame& frame, BackwardWriter& out);

}  // namespace conductor::storage
