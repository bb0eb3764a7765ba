// SGLang's snapshot messages: what each says, what refuses it, and when a snapshot is whole.
#include "replay/wire/snapshot.h"

#include <gtest/gtest.h>

#include "tests/replay/wire/counting_new.h"
#include "tests/replay/wire/wire_test_util.h"

namespace conductor {
namespace {

using wire_test::Array;
using wire_test::AsBytes;
using wire_test::Bin;
using wire_test::Float;
using wire_test::Int;
using wire_test::Ints;
using wire_test::Nil;
using wire_test::ReasonOf;
using wire_test::Text;
using wire_test::Uint;
using wire_test::Write;
using Kind = SnapshotReply::Kind;

std::string Message(const Write& value) {
  MsgpackWriter writer;
  value(writer);
  return std::move(writer).Take();
}

Result<SnapshotReply> Parse(const std::vector<std::string>& parts, const WireLimits& limits = {}) {
  std::vector<ByteView> views;
  for (const auto& part : parts) views.push_back(AsBytes(part));
  return ParseSnapshotReply(views, limits);
}
Result<SnapshotReply> Header(const Write& value) {
  return Parse({"", "header", Message(value)});
}
Result<SnapshotReply> Chunk(const Write& value, const WireLimits& limits = {}) {
  return Parse({"", "chunk", Message(value)}, limits);
}

// A valid header's slots.
std::vector<Write> Slots(std::int64_t records = 2) {
  return {Int(1), Text("0f3a"), Int(3), Int(41), Int(40), Text("b-1"), Int(records)};
}
Result<SnapshotReply> HeaderWith(std::size_t slot, const Write& value) {
  auto slots = Slots();
  slots[slot] = value;
  return Header(Array(slots));
}
Write Record(const Write& parent, std::vector<std::int64_t> names) {
  return Array({parent, Ints(std::move(names))});
}

TEST(SnapshotTest, TheRequestHasADelimiter) {
  const auto request = BuildSnapshotRequest();
  EXPECT_EQ(request[0], "");
  EXPECT_EQ(request[1], "snapshot-v1");
}

TEST(SnapshotTest, Headers) {
  const auto reply = Header(Array(Slots()));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->kind, Kind::kHeader);
  EXPECT_EQ(reply->header.epoch, "0f3a");
  EXPECT_EQ(reply->header.replica_rank, 3u);
  EXPECT_EQ(reply->header.resume_seq, 41u);
  EXPECT_EQ(reply->header.barrier_seq, 40u);
  EXPECT_EQ(reply->header.barrier_id, "b-1");
  EXPECT_EQ(reply->header.record_count, 2u);
  EXPECT_EQ(HeaderWith(5, Int(17))->header.barrier_id, "17");
  auto more = Slots();
  more.push_back(Text("later"));
  EXPECT_EQ(ReasonOf(Header(Array(more))), "accepted");
}

TEST(SnapshotTest, WrongHeadersAreRefused) {
  const auto refused = [](const Result<SnapshotReply>& reply) {
    return ReasonOf(reply) == "snapshot_header";
  };
  EXPECT_TRUE(refused(Header(Nil())));
  EXPECT_TRUE(refused(Header(Array({Int(1), Text("0f")}))));
  EXPECT_TRUE(refused(HeaderWith(0, Int(2))));
  EXPECT_TRUE(refused(HeaderWith(0, Text("1"))));
  EXPECT_TRUE(refused(HeaderWith(1, Text(""))));
  EXPECT_TRUE(refused(HeaderWith(1, Text("xyz"))));
  EXPECT_TRUE(refused(HeaderWith(1, Bin("0f"))));
  EXPECT_TRUE(refused(HeaderWith(1, Text(std::string(257, '0')))));
  for (std::size_t slot : {2, 3, 4, 6}) {
    EXPECT_TRUE(refused(HeaderWith(slot, Int(-1)))) << slot;
    EXPECT_TRUE(refused(HeaderWith(slot, Nil()))) << slot;
    EXPECT_TRUE(refused(HeaderWith(slot, Float(1)))) << slot;
    EXPECT_TRUE(refused(HeaderWith(slot, Uint(1ull << 63)))) << slot;
  }
  EXPECT_TRUE(refused(HeaderWith(5, Nil())));
  EXPECT_TRUE(refused(HeaderWith(6, Int(kSnapshotRecordsMax + 1))));
  EXPECT_EQ(ReasonOf(HeaderWith(6, Int(kSnapshotRecordsMax))), "accepted");
  EXPECT_EQ(ReasonOf(Parse({"", "header", Message(Array(Slots())) + "x"})), "msgpack_trailing");
  EXPECT_EQ(ReasonOf(Parse({"", "header", ""})), "msgpack_truncated");
}

TEST(SnapshotTest, ChunksAreLinks) {
  const auto reply = Chunk(Array({Record(Nil(), {-5, 6}), Record(Int(6), {7})}));
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->kind, Kind::kChunk);
  EXPECT_EQ(reply->records, 2u);
  const BlockName first{static_cast<std::uint64_t>(-5), ""};
  const BlockName second{6, ""};
  const BlockName third{7, ""};
  const std::vector<SnapshotLink> links = {{std::nullopt, first}, {first, second}, {second, third}};
  EXPECT_EQ(reply->links, links);
  EXPECT_EQ(ReasonOf(Chunk(Array({}))), "accepted");
  EXPECT_EQ(ReasonOf(Chunk(Array({Array({Nil(), Ints({1}), Text("later")})}))), "accepted");
}

TEST(SnapshotTest, OneWrongRecordRefusesTheChunk) {
  for (const auto& record :
       {Nil(), Array({}), Array({Nil()}), Array({Nil(), Int(1)}), Array({Nil(), Array({})}),
        Array({Text("p"), Ints({1})}), Array({Nil(), Array({Uint(1ull << 63)})}),
        Array({Nil(), Array({Float(1)})}), Array({Bin("short"), Ints({1})})}) {
    EXPECT_EQ(ReasonOf(Chunk(Array({Record(Nil(), {1}), record}))), "snapshot_chunk");
  }
  EXPECT_EQ(ReasonOf(Chunk(Nil())), "snapshot_chunk");
  EXPECT_EQ(ReasonOf(Parse({"", "chunk", "\xdd\xff\xff\xff\xff"})), "msgpack_truncated");
}

TEST(SnapshotTest, ChunksHaveLimits) {
  EXPECT_EQ(ReasonOf(Chunk(Array({Record(Nil(), {1, 2, 3})}), {.items_max = 3})), "accepted");
  EXPECT_EQ(ReasonOf(Chunk(Array({Record(Nil(), {1, 2, 3})}), {.items_max = 2})), "snapshot_chunk");
  EXPECT_EQ(ReasonOf(Chunk(Array({}), {.payload_bytes_max = 0})), "payload_size");
  std::string many = "\xdd" + std::string("\0\1\0\1", 4);
  many += std::string(kSnapshotChunkRecordsMax + 1, '\xc0');
  const std::size_t before = wire_test::AllocatedBytes();
  EXPECT_EQ(ReasonOf(Parse({"", "chunk", many})), "snapshot_chunk");
  EXPECT_LT(wire_test::AllocatedBytes() - before, 1u << 20);
}

TEST(SnapshotTest, EndsAndErrors) {
  EXPECT_EQ(Parse({"", "end", ""})->kind, Kind::kEnd);
  EXPECT_EQ(ReasonOf(Parse({"", "end", "x"})), "snapshot_end");
  const auto error = Parse({"", "error", "busy"});
  EXPECT_EQ(error->kind, Kind::kError);
  EXPECT_EQ(error->error, "busy");
  EXPECT_EQ(Parse({"", "error", std::string(9999, 'e')})->error.size(), kSnapshotErrorBytesMax);
  EXPECT_EQ(Parse({"", "error", "\xff\xfe"})->error, "(not UTF-8)");
  EXPECT_EQ(Parse({"", "error", ""})->error, "");
  // A character that the cut goes through is left out.
  const std::string start(kSnapshotErrorBytesMax - 1, 'e');
  EXPECT_EQ(Parse({"", "error", start + "\u20ac"})->error, start);
}

TEST(SnapshotTest, OtherMessagesAreRefused) {
  EXPECT_EQ(ReasonOf(Parse({})), "frame_count");
  EXPECT_EQ(ReasonOf(Parse({"end", ""})), "frame_count");
  EXPECT_EQ(ReasonOf(Parse({"", "end", "", ""})), "frame_count");
  EXPECT_EQ(ReasonOf(Parse({"x", "end", ""})), "delimiter");
  EXPECT_EQ(ReasonOf(Parse({"", "", ""})), "snapshot_word");
  EXPECT_EQ(ReasonOf(Parse({"", "Header", ""})), "snapshot_word");
}

TEST(SnapshotAssemblerTest, AWholeSnapshotHasEveryRecordOfItsHeader) {
  SnapshotAssembler assembler;
  EXPECT_EQ(assembler.Add(*Header(Array(Slots(2)))), false);
  EXPECT_EQ(assembler.Add(*Chunk(Array({Record(Nil(), {1, 2})}))), false);
  EXPECT_EQ(assembler.Add(*Chunk(Array({Record(Int(2), {3})}))), false);
  EXPECT_EQ(assembler.Add(*Parse({"", "end", ""})), true);
  EXPECT_EQ(assembler.header().resume_seq, 41u);
  EXPECT_EQ(assembler.TakeLinks().size(), 3u);
}

TEST(SnapshotAssemblerTest, AnEmptySnapshotIsWhole) {
  SnapshotAssembler assembler;
  EXPECT_EQ(assembler.Add(*Header(Array(Slots(0)))), false);
  EXPECT_EQ(assembler.Add(*Parse({"", "end", ""})), true);
  EXPECT_TRUE(assembler.TakeLinks().empty());
}

// What every snapshot but a whole one ends in.
void ExpectGivenUp(const std::vector<Result<SnapshotReply>>& replies) {
  SnapshotAssembler assembler;
  for (std::size_t i = 0; i < replies.size(); ++i) {
    SnapshotReply reply = *replies[i];
    const auto added = assembler.Add(std::move(reply));
    EXPECT_EQ(ReasonOf(added), i + 1 == replies.size() ? "snapshot_order" : "accepted") << i;
  }
  EXPECT_EQ(ReasonOf(assembler.Add(*Parse({"", "end", ""}))), "snapshot_order");
  EXPECT_TRUE(assembler.TakeLinks().empty());
}

TEST(SnapshotAssemblerTest, AnythingElseIsGivenUp) {
  const auto header = Header(Array(Slots(1)));
  const auto one = Chunk(Array({Record(Nil(), {1})}));
  const auto two = Chunk(Array({Record(Nil(), {1}), Record(Nil(), {2})}));
  const auto end = Parse({"", "end", ""});
  ExpectGivenUp({one});
  ExpectGivenUp({end});
  ExpectGivenUp({header, end});
  ExpectGivenUp({header, header});
  ExpectGivenUp({header, two});
  ExpectGivenUp({header, one, one});
  ExpectGivenUp({header, one, header});
  ExpectGivenUp({header, one, Parse({"", "error", "gone"})});
}

}  // namespace
}  // namespace conductor
