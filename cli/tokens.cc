#include "cli/tokens.h"

#include <charconv>
#include <iterator>

#include "cli/text.h"

namespace conductor::cli {

namespace {

constexpr std::size_t kTokensFileBytesMax = std::size_t{1} << 30;
constexpr std::string_view kSeparators = ", \t\r\n[]";

// The next entry of `text`, which is cut off; empty at the end.
std::string_view Next(std::string_view& text) {
  const std::size_t begin = text.find_first_not_of(kSeparators);
  if (begin == std::string_view::npos) return {};
  text.remove_prefix(begin);
  const std::string_view entry = text.substr(0, text.find_first_of(kSeparators));
  text.remove_prefix(entry.size());
  return entry;
}

tl::unexpected<Error> Wrong(const char* option, std::size_t index, std::string_view expected,
                            std::string_view got) {
  return InvalidField("invalid_value", option,
                      std::string(option) + "[" + std::to_string(index) + "]: expected " +
                          std::string(expected) + ", got " + LogValue(got.substr(0, 64)),
                      static_cast<long long>(index));
}

template <typename Number>
bool Parse(std::string_view text, Number* out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out, base);
  return error == std::errc() && end == text.data() + text.size();
}

bool ParseHash(std::string_view text, std::uint64_t* out) {
  if (text.starts_with("0x") || text.starts_with("0X")) return Parse(text.substr(2), out, 16);
  std::int64_t negative = 0;
  if (!text.starts_with('-')) return Parse(text, out);
  if (!Parse(text, &negative)) return false;
  *out = static_cast<std::uint64_t>(negative);
  return true;
}

}  // namespace

Result<std::string> ReadArgument(const std::string& argument, std::istream& in) {
  if (argument == "-") return std::string(std::istreambuf_iterator<char>(in), {});
  if (argument.starts_with('@')) return ReadFile(argument.substr(1), kTokensFileBytesMax);
  return argument;
}

Result<std::vector<std::int32_t>> ParseTokens(std::string_view text) {
  std::vector<std::int32_t> tokens;
  for (std::string_view entry = Next(text); !entry.empty(); entry = Next(text)) {
    if (!Parse(entry, &tokens.emplace_back())) {
      return Wrong("--tokens", tokens.size() - 1, "a 32-bit integer", entry);
    }
  }
  return tokens;
}

Result<std::vector<std::uint64_t>> ParseHashes(std::string_view text) {
  std::vector<std::uint64_t> hashes;
  for (std::string_view entry = Next(text); !entry.empty(); entry = Next(text)) {
    if (!ParseHash(entry, &hashes.emplace_back())) {
      return Wrong("--hashes", hashes.size() - 1, "a 64-bit hash", entry);
    }
  }
  return hashes;
}

}  // namespace conductor::cli
