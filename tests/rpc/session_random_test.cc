// Damaged bytes of a server never break the session: no crash, no endless growth, and a decoded
// reply or an error, nothing else. Prints its seed; CONDUCTOR_SEED repeats a run.
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>

#include "rpc/grpc_reply.h"
#include "rpc/http2/session.h"

namespace conductor::rpc {
namespace {

constexpr int kRounds = 20'000;

std::span<const std::uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

std::string MakeFrame(FrameType type, std::uint8_t flags, std::uint32_t stream,
                      const std::string& payload) {
  std::string out;
  AppendFrameHeader(type, flags, stream, payload.size(), &out);
  return out + payload;
}

// Everything an honest server may say in one reply.
std::string HonestReply() {
  std::string headers;
  AppendHeader(":status", "200", &headers);
  AppendHeader("content-type", "application/grpc", &headers);
  headers +=
      "\x40\x01"
      "a"
      "\x86\xa8\xeb\x10\x64\x9c\xbf";  // kept in the table, Huffman-coded
  std::string trailers;
  AppendHeader("grpc-status", "3", &trailers);
  AppendHeader("grpc-message", "not%20so", &trailers);
  AppendHeader("grpc-status-details-bin", "CAMSBm5vdCBzbw", &trailers);
  trailers += "\xbe";
  const std::string window(4, '\x01');
  return MakeFrame(FrameType::kSettings, 0, 0, std::string("\x00\x04\x00\x01\x00\x00", 6)) +
         MakeFrame(FrameType::kSettings, kFlagAck, 0, "") +
         MakeFrame(FrameType::kWindowUpdate, 0, 0, window) +
         MakeFrame(FrameType::kPing, 0, 0, "12345678") +
         MakeFrame(FrameType::kHeaders, 0, 1, headers.substr(0, 9)) +
         MakeFrame(FrameType::kContinuation, kFlagEndHeaders, 1, headers.substr(9)) +
         MakeFrame(FrameType::kData, kFlagPadded, 1, std::string("\x02", 1) + "abcdefg") +
         MakeFrame(FrameType::kHeaders, kFlagEndHeaders | kFlagEndStream, 1, trailers) +
         MakeFrame(FrameType::kGoAway, 0, 0, std::string(8, '\0'));
}

TEST(SessionRandomTest, DamagedRepliesAreRepliesOrErrors) {
  const char* given = std::getenv("CONDUCTOR_SEED");
  const std::uint64_t seed = given ? std::strtoull(given, nullptr, 10) : std::random_device{}();
  std::cout << "CONDUCTOR_SEED=" << seed << std::endl;
  std::mt19937_64 random(seed);
  google::protobuf::SetLogHandler(nullptr);  // it reports every text that is not UTF-8
  const std::string honest = HonestReply();
  const std::string body(100'000, 'x');
  int replies = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes = honest;
    const std::uint64_t changes = round == 0 ? 0 : 1 + random() % 4;
    for (std::uint64_t i = 0; i < changes; ++i) {
      const std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, 1 + random() % 8);
          break;
        default:
          bytes.insert(at, honest, random() % honest.size(), 1 + random() % 32);
      }
      if (bytes.empty()) bytes = honest;
    }
    Session session;
    session.Start(std::string(1, '\x83'), Bytes(body));
    const std::size_t cut = random() % bytes.size();
    Status status = session.Receive(Bytes(bytes).first(cut));
    for (std::string_view out = session.Output(); !out.empty(); out = session.Output()) {
      session.Sent(out.size());
    }
    if (status) status = session.Receive(Bytes(bytes).subspan(cut));
    if (!session.done()) continue;
    ++replies;
    const auto parsed = ParseGrpcReply(session.TakeReply());
    if (round == 0) {
      EXPECT_EQ(parsed.error().message, "not so");
    }
  }
  EXPECT_GT(replies, kRounds / 50) << "the damage is too heavy to reach the later states";
}

}  // namespace
}  // namespace conductor::rpc
