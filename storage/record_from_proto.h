// FromProto: messages of storage/record.proto as facts.
//
// Refuses what this build does not know (kFailedPrecondition) and what contradicts itself
// (kDataLoss). Limits of single fields are CheckRecord's business.
#pragma once

#include "src/fact.h"
#include "src/result.h"
#include "storage/record.pb.h"

namespace conductor::storage {

Result<Record> FromProto(const v1::Record& message);
Result<Fact> FromProto(const v1::Fact& message);

}  // namespace conductor::storage
