// The client side of one HTTP/2 connection with one request at a time, without any I/O: bytes that
// arrived go in, bytes to send come out. connection.h moves them. Sans I/O so that every state is
// reachable from a test or a fuzzer. Used by one thread at a time.
//
// Nothing here is specific to gRPC: it carries a POST with a body and gives back headers, body and
// trailers.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rpc/http2/frame.h"
#include "rpc/http2/hpack.h"
#include "src/result.h"

namespace conductor::rpc {

// Of one reply: far above the largest answer, far below what would hurt.
inline constexpr std::size_t kReplyBytesMax = 512u << 20;
// Of one header block before it is decoded.
inline constexpr std::size_t kHeaderBlockBytesMax = 128u << 10;
// Body bytes that are turned into frames ahead of the socket.
inline constexpr std::size_t kOutputBytesAhead = 256u << 10;

struct Reply {
  int http_status = 0;
  Headers headers;  // the initial ones, then the trailers
  std::string body;
};

class Session {
 public:
  // The connection preface is the first output.
  Session();

  // Whether the peer has proved to speak HTTP/2.
  bool settings_received() const { return settings_received_; }
  // Whether another request can be started: none is running and the peer has not said goodbye.
  bool CanStart() const;

  // `header_block` is HPACK. `body` is borrowed until the reply is taken or the session ends.
  // Requires: CanStart().
  void Start(std::string_view header_block, std::span<const std::uint8_t> body);

  // What is to be sent now; empty when nothing is, or the peer's flow control forbids it.
  std::string_view Output();
  void Sent(std::size_t bytes);

  // Errors end the session: the peer broke the protocol, refused the request or said goodbye.
  Status Receive(std::span<const std::uint8_t> bytes);

  // The reply is complete.
  bool done() const { return state_ == State::kDone; }
  // Requires: done().
  Reply TakeReply();

  // Whether any part of a reply has been seen, and whether the peer has said that it did not touch
  // the request: they decide if a failed request may be sent again.
  bool reply_started() const { return reply_started_; }
  bool refused() const { return refused_; }

 private:
  enum class State { kIdle, kHeaders, kBody, kDone };

  Status OnFrame(const Frame& frame);
  Status OnData(const Frame& frame);
  Status OnHeaders(const Frame& frame);
  Status OnHeaderFragment(std::span<const std::uint8_t> fragment, bool end);
  Status OnHeaderBlock();
  Status OnSettings(const Frame& frame);
  Status OnSetting(std::uint16_t id, std::uint32_t value);
  Status OnRstStream(const Frame& frame);
  Status OnGoAway(const Frame& frame);
  Status OnWindowUpdate(const Frame& frame);
  void CloseStream();

  FrameReader reader_;
  HpackDecoder hpack_;
  std::string output_;
  std::size_t output_sent_ = 0;  // Invariant: output_sent_ <= output_.size().

  // The connection.
  bool settings_received_ = false;
  bool last_request_ = false;  // the peer said goodbye, or a stream was left half open
  std::uint32_t peer_frame_bytes_max_ = kFrameBytesDefault;
  std::int64_t peer_stream_window_ = kWindowDefault;  // of a new stream
  std::int64_t send_window_ = kWindowDefault;         // of the connection
  std::int64_t received_unacknowledged_ = 0;

  // The running request.
  State state_ = State::kIdle;
  std::uint32_t stream_ = 0;  // 0 before the first one
  std::int64_t stream_window_ = 0;
  std::span<const std::uint8_t> body_;  // what is left to send
  bool body_ended_ = true;              // the end of the request has been framed
  bool reply_started_ = false;
  bool refused_ = false;
  Reply reply_;

  // A header block that is still arriving.
  std::string header_block_;
  std::uint32_t header_stream_ = 0;  // 0: none; then only its CONTINUATIONs may follow
  bool header_ends_stream_ = false;
};

}  // namespace conductor::rpc
