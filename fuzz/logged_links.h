// Whether the log takes the links of a publisher's snapshot. Apart from logged_record.h, because
// src/fact.h and replay/wire/frame.h both have a Frame.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/types.h"

namespace conductor::fuzz {

void RequireLoggable(const std::string& epoch,
                     const std::vector<std::pair<std::optional<BlockName>, BlockName>>& links);

}  // namespace conductor::fuzz
