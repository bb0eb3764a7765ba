// A target's seeds as files, for libFuzzer's corpus directories. One thread.
#pragma once

#include <string>

namespace conductor::fuzz {

// Makes `directory` when it is not there. False: says why on stderr.
bool WriteSeeds(const std::string& directory);

}  // namespace conductor::fuzz
