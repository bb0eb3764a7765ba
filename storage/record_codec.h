// EncodeRecord, DecodeRecord: a log record as bytes (header, checksum, protobuf) and back.
//
// Decoding trusts nothing: a changed byte is an error, never a crash and never another record.
//   kDataLoss            damaged: too short, wrong magic byte, checksum, lengths that disagree
//   kFailedPrecondition  whole, but of a newer release: version, flag, enum value, kind, field
// Messages do not know the position; who reads the log puts "record 17: " in front.
// Pure functions, any thread.
#pragma once

#include <string>
#include <string_view>

#include "src/fact.h"
#include "src/result.h"

namespace conductor::storage {

// kInvalidArgument: the record breaks a limit of the format (storage/record_check.h).
Result<std::string> EncodeRecord(const Record& record);
Result<Record> DecodeRecord(std::string_view value);

}  // namespace conductor::storage
