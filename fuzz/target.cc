#include "fuzz/target.h"

#include <cstdio>
#include <cstdlib>

namespace conductor::fuzz {

void Require(bool holds, std::string_view property, std::string_view found) {
  if (holds) [[likely]]
    return;
  std::fprintf(stderr, "property broken: %.*s\n%.*s\n", static_cast<int>(property.size()),
               property.data(), static_cast<int>(found.size()), found.data());
  std::abort();
}

std::vector<Bytes> Split(Bytes input, std::string_view separator) {
  std::vector<Bytes> pieces;
  while (pieces.size() + 1 < kPiecesMax) {
    const std::size_t at = AsText(input).find(separator);
    if (at == std::string_view::npos) break;
    pieces.push_back(input.first(at));
    input = input.subspan(at + separator.size());
  }
  pieces.push_back(input);
  return pieces;
}

std::string Join(const std::vector<std::string>& pieces, std::string_view separator) {
  std::string joined;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) joined += separator;
    joined += pieces[i];
  }
  return joined;
}

}  // namespace conductor::fuzz
