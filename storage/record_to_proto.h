// ToProto: facts other than frames (frame_encoder.h) as messages of storage/record.proto. Expects a
// fact that passed CheckRecord.
#pragma once

#include "src/fact.h"
#include "storage/record.pb.h"

namespace conductor::storage {

void ToProto(const Fact& fact, v1::Fact* message);

}  // namespace conductor::storage
