// Token ids and block hashes as the command line takes them: "1,2,3", "@file", or "-" for stdin.
// Commas, white space and the brackets of a JSON array separate.
#pragma once

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "src/result.h"

namespace conductor::cli {

// The text an argument stands for.
Result<std::string> ReadArgument(const std::string& argument, std::istream& in);

// Errors name the entry: "--tokens[3]: ...".
Result<std::vector<std::int32_t>> ParseTokens(std::string_view text);
// Unsigned, negative (the same 64 bits), or 0x... hexadecimal.
Result<std::vector<std::uint64_t>> ParseHashes(std::string_view text);

}  // namespace conductor::cli
