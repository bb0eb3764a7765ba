#include "fuzz/mutator.h"

#include <algorithm>
#include <string_view>

namespace conductor::fuzz {
namespace {

// Bytes at the edges of what MessagePack, protobuf and texts mean.
constexpr std::string_view kEdges(
    "\x00\x01\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc4\xcb\xcf\xd3\xd9"
    "\xdc\xdd\xde\xdf\xe0\xff\"{}[],:",
    30);

}  // namespace

// SplitMix64, as in the random tests.
std::uint64_t Mutator::Random() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::string Mutator::Next() {
  std::string input = seeds_[Below(seeds_.size())].substr(0, kMutatedBytesMax);
  for (std::size_t changes = 1 + Below(4); changes > 0; --changes) Change(input);
  return input;
}

void Mutator::Change(std::string& input) {
  const std::size_t at = Below(input.size() + 1);
  const std::size_t length = std::min(1 + Below(16), input.size() - at);
  switch (Below(6)) {
    case 0:
      if (at < input.size()) input[at] = static_cast<char>(input[at] ^ (1 << Below(8)));
      return;
    case 1:
      if (at < input.size()) input[at] = kEdges[Below(kEdges.size())];
      return;
    case 2:
      input.insert(at, 1, static_cast<char>(Random()));
      return;
    case 3:
      input.erase(at, length);
      return;
    case 4:  // the same once more: a key, an event, an element
      input.insert(at, std::string(input, at, length));
      return;
    default: {  // the end of another seed
      const std::string& other = seeds_[Below(seeds_.size())];
      const std::size_t from = Below(other.size() + 1);
      input = input.substr(0, at) + other.substr(from, kMutatedBytesMax);
      return;
    }
  }
}

}  // namespace conductor::fuzz
