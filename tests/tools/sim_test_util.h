// What the simulator's tests share: golden files, a listening SUB, a replaying DEALER, deadlines.
#pragma once

#include <gtest/gtest.h>
#include <zmq.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/hash/profile.h"
#include "tests/slowness.h"
#include "tools/event_json.h"
#include "tools/replay_ring.h"
#include "tools/zmq_socket.h"

namespace conductor::enginesim {

// Long enough for a machine under load; nothing waits that long unless it fails.
inline constexpr std::chrono::milliseconds kDeadline{20'000 * kSlowness};

inline nlohmann::json ReadGolden(const std::string& name) {
  std::ifstream file(std::string(CONDUCTOR_SOURCE_DIR) + "/tests/golden/" + name);
  return nlohmann::json::parse(file);
}

inline std::string FromHex(const std::string& hex) {
  return ParseHex(hex).value();
}

inline std::string Hex(std::string_view bytes) {
  std::string hex;
  for (const char byte : bytes) {
    hex += "0123456789abcdef"[static_cast<std::uint8_t>(byte) >> 4];
    hex += "0123456789abcdef"[static_cast<std::uint8_t>(byte) & 15];
  }
  return hex;
}

inline Message FramesFromHex(const nlohmann::json& frames) {
  Message message;
  for (const auto& frame : frames) message.push_back(FromHex(frame.get<std::string>()));
  return message;
}

inline HashProfile Profile(std::string_view algorithm = "sha256_cbor") {
  return MakeHashProfile("vllm_v1", algorithm, "0", "low64_be").value();
}

// A client socket of `type`, connected. Subscribed to everything when it is a SUB.
inline ZmqSocket OpenClient(const ZmqContext& context, int type, const std::string& endpoint) {
  ZmqSocket socket = std::move(ZmqSocket::Open(context, type).value());
  EXPECT_TRUE(socket.SetInt(ZMQ_RCVHWM, 0));
  if (type == ZMQ_SUB) {
    EXPECT_TRUE(socket.SetText(ZMQ_SUBSCRIBE, ""));
  }
  EXPECT_TRUE(socket.Connect(endpoint));
  return socket;
}

inline Message MustReceive(ZmqSocket& socket) {
  Result<Message> message = socket.Receive(kDeadline);
  EXPECT_TRUE(message) << message.error().message;
  return message.value_or(Message{"nothing came"});
}

inline std::uint64_t DecodeSeq(const std::string& bytes) {
  std::uint64_t seq = 0;
  for (const char byte : bytes) seq = (seq << 8) | static_cast<std::uint8_t>(byte);
  return seq;
}

// The sequence numbers of an answer, from the end of each message as both layouts have it, until
// the end marker (reported as kEndMarkerSeq) or until `count` messages came.
inline std::vector<std::uint64_t> ReceiveReplay(ZmqSocket& dealer, std::size_t count = 1'000'000) {
  std::vector<std::uint64_t> numbers;
  while (numbers.size() < count && (numbers.empty() || numbers.back() != kEndMarkerSeq)) {
    const Message message = MustReceive(dealer);
    if (message.size() < 3) {
      ADD_FAILURE() << "a reply of " << message.size() << " frames";
      break;
    }
    numbers.push_back(DecodeSeq(message[message.size() - 2]));
  }
  return numbers;
}

inline void RequestReplay(ZmqSocket& dealer, std::uint64_t start) {
  EXPECT_TRUE(dealer.Send({"", EncodeSeq(start)}));
}

}  // namespace conductor::enginesim
