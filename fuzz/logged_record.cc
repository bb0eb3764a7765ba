#include "fuzz/logged_record.h"

#include "fuzz/fact_text.h"
#include "fuzz/target.h"
#include "src/hex.h"
#include "storage/record_codec.h"

namespace conductor::fuzz {

std::string RequireLogged(const Record& record, Record* read_back) {
  const auto bytes = storage::EncodeRecord(record);
  Require(bytes.has_value(), "the log takes the record", bytes ? "" : bytes.error().message);
  auto read = storage::DecodeRecord(*bytes);
  Require(read.has_value(), "the log gives the record back", read ? "" : read.error().message);
  Require(Text(*read) == Text(record), "what is read means what was written");
  if (read_back != nullptr) *read_back = std::move(*read);
  return *bytes;
}

void RequireLoggable(const Registration& registration) {
  RequireLogged(Record{{Registered{registration, UnverifiedBlocks::kContent}}});
}

void RequireLoggable(const std::string& epoch,
                     const std::vector<std::pair<std::optional<BlockName>, BlockName>>& links) {
  PublisherSnapshot snapshot;
  snapshot.stream = 1;
  snapshot.epoch = epoch;
  snapshot.links = links;
  RequireLogged(Record{{snapshot}});
}

std::string LivePair::Apply(const Record& record) {
  Record read;
  std::string bytes = RequireLogged(record, &read);
  live_.Apply(record);
  rebuilt_.Apply(read);
  const std::string live = Hex128(live_.Digest());
  const std::string rebuilt = Hex128(rebuilt_.Digest());
  Require(live == rebuilt, "live and rebuilt digests are equal", live + " " + rebuilt);
  return bytes;
}

}  // namespace conductor::fuzz
