// SGLang's snapshot messages, put together.
// Property: a snapshot is whole exactly after a header, as many records as it promised and an end,
// in this order; its links are the chunks' in their order, each names blocks the log can hold;
// after a failure nothing makes it whole.
//
// Input: messages, separated; of each the parts, separated.
#include "replay/wire/snapshot.h"

#include "fuzz/logged_record.h"
#include "fuzz/target.h"
#include "replay/wire/msgpack_writer.h"
#include "src/hash/utf8.h"

namespace conductor::fuzz {
namespace {

using Kind = SnapshotReply::Kind;

void RequireReply(const SnapshotReply& reply) {
  if (reply.kind == Kind::kError) {
    Require(reply.error.size() <= kSnapshotErrorBytesMax && IsValidUtf8(reply.error),
            "an error's text can be shown");
  }
  if (reply.kind == Kind::kChunk) {
    Require(reply.links.size() >= reply.records, "a record has a block or more");
  }
  if (reply.kind == Kind::kHeader) {
    Require(reply.header.resume_seq <= kFrameSeqMax && reply.header.barrier_seq <= kFrameSeqMax,
            "numbers are in range");
  }
}

// What SnapshotAssembler promises, in the simplest form.
class Expected {
 public:
  enum class Outcome { kMore, kWhole, kFailed };

  Outcome Add(const SnapshotReply& reply) {
    if (failed_ || Refuses(reply)) {
      failed_ = true;
      return Outcome::kFailed;
    }
    if (reply.kind == Kind::kHeader) promised_ = reply.header.record_count;
    if (reply.kind == Kind::kChunk) {
      records_ += reply.records;
      links.insert(links.end(), reply.links.begin(), reply.links.end());
    }
    if (reply.kind != Kind::kEnd) return Outcome::kMore;
    failed_ = true;  // nothing may follow
    return Outcome::kWhole;
  }

  std::vector<SnapshotLink> links;

 private:
  bool Refuses(const SnapshotReply& reply) const {
    if (reply.kind == Kind::kError) return true;
    if (reply.kind == Kind::kHeader) return promised_.has_value();
    if (!promised_) return true;
    if (reply.kind == Kind::kChunk) return records_ + reply.records > *promised_;
    return records_ != *promised_;
  }

  std::optional<std::uint64_t> promised_;
  std::uint64_t records_ = 0;
  bool failed_ = false;
};

}  // namespace

void RunInput(Bytes input) {
  SnapshotAssembler assembler;
  Expected expected;
  for (const Bytes message : Split(input, kMessageSeparator)) {
    const std::vector<Bytes> parts = Split(message, kPartSeparator);
    auto reply = ParseSnapshotReply(parts);
    if (!reply) {
      Require(!reply.error().reason.empty() && !reply.error().message.empty(),
              "a refusal is named");
      continue;
    }
    RequireReply(*reply);
    const Expected::Outcome outcome = expected.Add(*reply);
    const auto added = assembler.Add(std::move(*reply));
    Require(added.has_value() == (outcome != Expected::Outcome::kFailed), "order is judged right");
    if (!added) {
      Require(!added.error().reason.empty(), "a refusal is named");
      continue;
    }
    Require(*added == (outcome == Expected::Outcome::kWhole), "a snapshot is whole in time");
    if (!*added) continue;
    const std::vector<SnapshotLink> links = assembler.TakeLinks();
    Require(links == expected.links, "a snapshot holds the chunks' links");
    RequireLoggable(assembler.header().epoch, links);
  }
}

namespace {

std::string Reply(std::string word, const std::string& body) {
  return Join({"", std::move(word), body}, kPartSeparator);
}

std::string Header(std::uint64_t records) {
  MsgpackWriter writer;
  writer.WriteArrayHeader(7);
  writer.WriteUint64(1);
  writer.WriteText("0f3a");
  for (const std::uint64_t number : {3u, 41u, 40u}) writer.WriteUint64(number);
  writer.WriteText("b-1");
  writer.WriteUint64(records);
  return Reply("header", std::move(writer).Take());
}

// Two records: a root of two blocks, named by digests, and a child of one, named by a number.
std::string Chunk() {
  const std::string digest(32, 'd');
  MsgpackWriter writer;
  writer.WriteArrayHeader(2);
  writer.WriteArrayHeader(2);
  writer.WriteNil();
  writer.WriteArrayHeader(2);
  writer.WriteBytes(AsBytes(digest));
  writer.WriteBytes(AsBytes("0123456789"));
  writer.WriteArrayHeader(2);
  writer.WriteInt64(-5);
  writer.WriteArrayHeader(1);
  writer.WriteInt64(77);
  return Reply("chunk", std::move(writer).Take());
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string end = Reply("end", "");
  const std::string error = Reply("error", "snapshots are off");
  return {
      Join({Header(2), Chunk(), end}, kMessageSeparator),
      Join({Header(4), Chunk(), Chunk(), end}, kMessageSeparator),
      Join({Header(0), end, end}, kMessageSeparator),
      Join({Header(4), Chunk(), error, end}, kMessageSeparator),
      Join({Chunk(), Header(2), Header(2), end}, kMessageSeparator),
      error,
      Reply("error", std::string(600, '\xe2') + "\x82\xac"),
  };
}

}  // namespace conductor::fuzz
