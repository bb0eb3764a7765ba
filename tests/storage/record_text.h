// RecordText: every field of a record as text, so that tests compare records without the codec.
#pragma once

#include <string>
#include <vector>

#include "src/fact.h"
#include "src/ports.h"

namespace conductor::storage {

std::string RecordText(const Record& record);

// The texts of all records of a log; a failed read is an entry "error: ...".
std::vector<std::string> LogTexts(const EventLog& log);
std::vector<std::string> RecordTexts(const std::vector<Record>& records);

}  // namespace conductor::storage
