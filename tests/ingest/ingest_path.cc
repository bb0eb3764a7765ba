#include "tests/ingest/ingest_path.h"

#include <cstdlib>

#include "replay/messages.h"
#include "src/check.h"
#include "storage/record_codec.h"
#include "tests/ingest/counted_new.h"

namespace conductor::ingest_test {
namespace {

constexpr std::size_t kUnsyncedBytesMax = 64u << 20;

std::filesystem::path MakeDirectory() {
  std::string path = std::filesystem::temp_directory_path() / "conductor-ingest-XXXXXX";
  CHECK(mkdtemp(path.data()) != nullptr);
  return path;
}

}  // namespace

IngestPath::IngestPath(Registration registration) : directory_(MakeDirectory()) {
  auto log = storage::RocksDbEventLog::Open({.data_dir = directory_ / "data"});
  CHECK(log);
  log_ = std::move(*log);
  writer_ = std::make_unique<LogWriter>(*log_, LogSync::kInterval, kUnsyncedBytesMax);
  StreamSeed seed;
  seed.stream = 1;
  seed.registration = registration;
  translator_ = std::make_unique<Translator>(seed, TranslatorOptions{}, *this, cache_);
  Record record;
  record.facts.emplace_back(Registered{std::move(registration), UnverifiedBlocks::kContent});
  CHECK(writer_->WriteSynced(record));
  state_.Apply(record);
}

IngestPath::~IngestPath() {
  log_.reset();
  std::filesystem::remove_all(directory_);
}

StepCounts IngestPath::Take(std::string payload) {
  StepCounts counts;
  std::size_t mark = Allocations();
  const auto step = [&mark] {
    const std::size_t now = Allocations();
    return now - std::exchange(mark, now);
  };
  const std::size_t bytes = payload.size();
  ReceivedFrame received{number_++, 0, std::move(payload)};
  received.fingerprint = FingerprintPayload(
      {reinterpret_cast<const std::uint8_t*>(received.payload.data()), received.payload.size()});
  std::vector<Fact> facts;
  translator_->Translate(received, facts);
  counts.translate = step();

  CHECK(queue_.Offer(1, facts, bytes));
  ApplyQueue::Work work = queue_.Take(std::chrono::milliseconds(0));
  CHECK(work.frames.size() == 1);
  const auto group = std::make_shared<Record>(Record{std::move(work.frames[0].facts)});
  CHECK(writer_->Write(group, bytes));
  counts.log = step();

  const auto value = storage::EncodeRecord(*group);
  CHECK(value);
  counts.record_bytes = value->size();
  const auto again = storage::DecodeRecord(*value);
  CHECK(again);
  counts.read = step();
  CHECK(*storage::EncodeRecord(*again) == *value);
  step();

  state_.Apply(*again);
  counts.apply = step();
  return counts;
}

}  // namespace conductor::ingest_test
