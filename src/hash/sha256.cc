#include "src/hash/sha256.h"

// The low-level calls are deprecated in OpenSSL 3 in favour of EVP, whose per-call context costs
// more than the hash itself at our sizes.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

namespace conductor {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";
constexpr std::size_t kHexDigestChars = 64;

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Digest Sha256(std::span<const std::uint8_t> bytes) {
  return Sha256Concat({bytes});
}

Digest Sha256Concat(std::initializer_list<std::span<const std::uint8_t>> parts) {
  SHA256_CTX context;
  SHA256_Init(&context);
  for (const auto& part : parts) SHA256_Update(&context, part.data(), part.size());
  Digest digest;
  SHA256_Final(digest.data(), &context);
  return digest;
}

std::string HexDigest(const Digest& digest) {
  std::string text;
  text.reserve(kHexDigestChars);
  for (const std::uint8_t byte : digest) {
    text.push_back(kHexDigits[byte >> 4]);
    text.push_back(kHexDigits[byte & 15]);
  }
  return text;
}

Result<Digest> ParseHexDigest(std::string_view text) {
  if (text.size() != kHexDigestChars) {
    return MakeError(ErrorCode::kInvalidArgument, "hex digest: expected 64 digits, got " +
                                                      std::to_string(text.size()) + " characters");
  }
  Digest digest;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const int high = HexValue(text[2 * i]);
    const int low = HexValue(text[2 * i + 1]);
    if (high < 0 || low < 0) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          "hex digest: expected hex digits, got something else in byte " + std::to_string(i));
    }
    digest[i] = static_cast<std::uint8_t>(high << 4 | low);
  }
  return digest;
}

}  // namespace conductor
