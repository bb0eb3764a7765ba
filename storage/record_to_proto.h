// ToProto: facts as messages of storage/record.proto. Expects a record that passed CheckRecord.
#pragma once

#include "src/fact.h"
#include "storage/record.pb.h"

namespace conductor::storage {

void ToProto(const Record& record, v1::Record* message);

}  // namespace conductor::storage
