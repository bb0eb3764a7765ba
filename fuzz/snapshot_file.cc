// Snapshot files as storage/ reads them (fuzz/snapshot.cc is about publishers' snapshots).
// Property: bytes are refused by one of the reader's two codes and with a place, or they are an
// image; what is read can be written, that is read again, and written again it is the same bytes.
// A changed byte of a written file is never read.
//
// Input: flags, then a whole file or (flag) the pieces of one frame, whose checksum is right.
#include "fuzz/target.h"
#include "storage/piece_decoder.h"
#include "storage/snapshot_encoder.h"
#include "storage/snapshot_reader.h"

namespace conductor::fuzz {
namespace {

using storage::SnapshotEncoder;

constexpr std::uint8_t kPiecesFlag = 1;
constexpr Seq kPiecesSeq = 258;
constexpr std::size_t kSeqAt = 16;

class MemorySource final : public storage::ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : rest_(bytes) {}
  Result<std::size_t> Read(std::span<char> to) override {
    const std::size_t count = rest_.copy(to.data(), to.size());
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

Status Read(std::string_view file, Seq seq, ImageVisitor& visitor) {
  MemorySource source(file);
  return storage::ReadSnapshotBytes({"input", seq, file.size()}, source, visitor);
}

// The position that the header names, so that a file is not refused for its name alone.
Seq SeqOf(std::string_view file) {
  if (file.size() < kSeqAt + sizeof(Seq)) return 0;
  return storage::FieldReader(file.substr(kSeqAt)).Take<Seq>();
}

void RequireNamedRefusal(const Error& error) {
  Require(error.code == ErrorCode::kDataLoss || error.code == ErrorCode::kFailedPrecondition,
          "damage and later releases are told apart", error.message);
  Require(error.message.starts_with("snapshot input: "), "a refusal names the file", error.message);
}

void RequireStable(std::string written, Seq seq) {
  SnapshotEncoder encoder;
  const Status read = Read(written, seq, encoder);
  Require(read.has_value(), "what was written is read", read ? "" : read.error().message);
  Require(encoder.Take() == written, "equal images are equal bytes");
  const std::size_t at = written.size() / 2;
  written[at] = static_cast<char>(written[at] ^ 1);
  storage::NullVisitor checks;
  Require(!Read(written, seq, checks), "a changed byte is seen");
}

}  // namespace

void RunInput(Bytes input) {
  InputReader reader(input);
  const bool pieces = (reader.Byte() & kPiecesFlag) != 0;
  const std::string_view bytes = AsText(reader.rest());
  const Seq seq = pieces ? kPiecesSeq : SeqOf(bytes);
  SnapshotEncoder encoder;
  Status read;
  if (pieces) {
    storage::PieceDecoder decoder("snapshot input", seq, encoder);
    read = decoder.Decode(bytes, 0);
    if (read) read = decoder.Finish({});
  } else {
    read = Read(bytes, seq, encoder);
  }
  if (!read) {
    RequireNamedRefusal(read.error());
    return;
  }
  RequireStable(encoder.Take(), seq);
}

namespace {

void Must(const Status& status) {
  Require(status.has_value(), "the seeds can be written", status ? "" : status.error().message);
}

void PlayTables(ImageVisitor& visitor) {
  Must(visitor.OnStart({kPiecesSeq, 4}));
  Must(visitor.OnContext({1, {"default", "m", "", 16}, HashProfile{}, true}));
  Must(visitor.OnContext({2, {"t", "m", "adapter", 4}, std::nullopt, false}));
  Must(visitor.OnPool({1, "backend", "default"}));
  Registration registration;
  registration.instance_id = "i";
  registration.endpoint = "tcp://h:1";
  registration.pool_parts = {{"kv", 2}};
  for (StreamId stream = 1; stream <= 2; ++stream) {
    Must(visitor.OnRegistration({stream, &registration}));
  }
  Must(visitor.OnHolder({1, {1, 1, Tier::kDevice, false, 0}, 5, 4}));
  Must(visitor.OnHolder({2, {2, 1, Tier::kCpuShare, true, 1}, 6, 1}));
}

void PlayBlocks(ImageVisitor& visitor) {
  const HolderId one[] = {1}, both[] = {1, 2};
  Must(visitor.OnSet({1, one}));
  Must(visitor.OnSet({2, both}));
  const std::uint64_t fingerprints[] = {11, 12, 13}, names[] = {21, 22, 23};
  const StateId sets[] = {2, 0, 1};
  const Digest digest{9};
  const std::string salt(16, 's'), whole(32, 'w');
  Must(visitor.OnRun(
      {1, HashCheck::kEqual, true, {kRootScope, 1, salt}, fingerprints, names, sets, 1, &digest}));
  ImageEntry entry;
  entry.context = 1;
  entry.name = {1, 31, whole};
  entry.parent = ImageName{kSharedScope, 23, ""};
  entry.length = 3;
  entry.block_class = BlockClass::kOwnContent;
  entry.set = 1;
  entry.digest = &digest;
  Must(visitor.OnEntry(entry));
  Must(visitor.OnCopies({1, {kSharedScope, 21, ""}, 3}));
  const PartTable::Part parts[] = {{1, 2}, {1, 3}};
  Must(visitor.OnParts({2, 21, parts}));
}

void PlayStreams(ImageVisitor& visitor) {
  for (StreamId id = 1; id <= 2; ++id) {
    StreamFacts stream;
    stream.id = id;
    stream.contexts = {1, 2};
    stream.cursor = 7;
    stream.counting_group = -1;
    stream.lost = {{3, 4}};
    stream.recent = {{6, 1}, {7, 2}};
    stream.publisher_epoch = "0f";
    Must(visitor.OnStream(stream));
  }
}

std::string WholeFile() {
  SnapshotEncoder encoder;
  PlayTables(encoder);
  PlayBlocks(encoder);
  PlayStreams(encoder);
  Must(encoder.OnEnd({7, 5, 0}));
  return encoder.Take();
}

std::string PiecesOf(std::string_view file) {
  const std::size_t begin = storage::kSnapshotHeaderBytes + storage::kFrameHeadBytes;
  const auto size = storage::FieldReader(file.substr(begin - 12)).Take<std::uint32_t>();
  return std::string(file.substr(begin, size));
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string file = WholeFile();
  return {std::string(1, '\0') + file, std::string(1, kPiecesFlag) + PiecesOf(file)};
}

}  // namespace conductor::fuzz
