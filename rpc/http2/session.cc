#include "rpc/http2/session.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "src/check.h"

namespace conductor::rpc {
namespace {

constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
constexpr std::uint16_t kSettingEnablePush = 2;
constexpr std::uint16_t kSettingInitialWindow = 4;
constexpr std::uint16_t kSettingFrameBytesMax = 5;
constexpr std::size_t kSettingBytes = 6;
constexpr std::uint32_t kErrorRefusedStream = 7;
// Give the peer its connection window back in steps of this size.
constexpr std::int64_t kWindowStep = 1 << 24;

void AppendSetting(std::uint16_t id, std::uint32_t value, std::string* out) {
  out->push_back(static_cast<char>(id >> 8));
  out->push_back(static_cast<char>(id));
  AppendU32(value, out);
}

void AppendWindowUpdate(std::uint32_t stream, std::uint32_t bytes, std::string* out) {
  AppendFrameHeader(FrameType::kWindowUpdate, 0, stream, 4, out);
  AppendU32(bytes, out);
}

tl::unexpected<Error> Broken(const std::string& what) {
  return MakeError(ErrorCode::kUnavailable, "http2: " + what);
}

// The payload without its padding, or nothing when the padding is longer than the frame.
std::optional<std::span<const std::uint8_t>> Unpadded(const Frame& frame) {
  auto payload = frame.payload;
  if (!frame.Has(kFlagPadded)) return payload;
  if (payload.empty() || payload[0] >= payload.size()) return std::nullopt;
  return payload.subspan(1, payload.size() - 1 - payload[0]);
}

}  // namespace

Session::Session() : output_(kPreface) {
  AppendFrameHeader(FrameType::kSettings, 0, 0, 2 * kSettingBytes, &output_);
  AppendSetting(kSettingEnablePush, 0, &output_);
  AppendSetting(kSettingInitialWindow, kWindowMax, &output_);
  AppendWindowUpdate(0, kWindowMax - kWindowDefault, &output_);
}

bool Session::CanStart() const {
  return state_ == State::kIdle && !last_request_ && stream_ < kWindowMax - 2;
}

void Session::Start(std::string_view header_block, std::span<const std::uint8_t> body) {
  CHECK(CanStart());
  // Ours is far below the smallest frame limit a peer may set.
  CHECK(header_block.size() <= kFrameBytesDefault);
  stream_ = stream_ == 0 ? 1 : stream_ + 2;
  state_ = State::kHeaders;
  stream_window_ = peer_stream_window_;
  body_ = body;
  body_ended_ = false;
  reply_started_ = false;
  refused_ = false;
  reply_ = Reply{};
  AppendFrameHeader(FrameType::kHeaders, kFlagEndHeaders, stream_, header_block.size(), &output_);
  output_.append(header_block);
}

std::string_view Session::Output() {
  while (!body_ended_ && output_.size() - output_sent_ < kOutputBytesAhead) {
    const std::int64_t room = std::min(send_window_, stream_window_);
    if (!body_.empty() && room <= 0) break;
    const std::size_t bytes =
        std::min({body_.size(), static_cast<std::size_t>(std::max<std::int64_t>(room, 0)),
                  static_cast<std::size_t>(peer_frame_bytes_max_), kOutputBytesAhead});
    body_ended_ = bytes == body_.size();
    AppendFrameHeader(FrameType::kData, body_ended_ ? kFlagEndStream : 0, stream_, bytes, &output_);
    output_.append(reinterpret_cast<const char*>(body_.data()), bytes);
    body_ = body_.subspan(bytes);
    send_window_ -= static_cast<std::int64_t>(bytes);
    stream_window_ -= static_cast<std::int64_t>(bytes);
  }
  return std::string_view(output_).substr(output_sent_);
}

void Session::Sent(std::size_t bytes) {
  output_sent_ += bytes;
  CHECK(output_sent_ <= output_.size());
  if (output_sent_ == output_.size() || output_sent_ > kOutputBytesAhead) {
    output_.erase(0, output_sent_);
    output_sent_ = 0;
  }
}

Reply Session::TakeReply() {
  CHECK(done());
  state_ = State::kIdle;
  return std::exchange(reply_, Reply{});
}

Status Session::Receive(std::span<const std::uint8_t> bytes) {
  reader_.Append(bytes);
  while (true) {
    auto frame = reader_.Next();
    if (!frame) return tl::unexpected(frame.error());
    if (!*frame) return {};
    CONDUCTOR_RETURN_IF_ERROR(OnFrame(**frame));
  }
}

Status Session::OnFrame(const Frame& frame) {
  if (!settings_received_ && frame.type != FrameType::kSettings) {
    return Broken("expected SETTINGS as the first frame, got type " +
                  std::to_string(static_cast<int>(frame.type)));
  }
  if (header_stream_ != 0 &&
      (frame.type != FrameType::kContinuation || frame.stream != header_stream_)) {
    return Broken("a header block was interrupted");
  }
  switch (frame.type) {
    case FrameType::kData:
      return OnData(frame);
    case FrameType::kHeaders:
      return OnHeaders(frame);
    case FrameType::kContinuation:
      if (header_stream_ == 0) return Broken("CONTINUATION without HEADERS");
      return OnHeaderFragment(frame.payload, frame.Has(kFlagEndHeaders));
    case FrameType::kRstStream:
      return OnRstStream(frame);
    case FrameType::kSettings:
      return OnSettings(frame);
    case FrameType::kPushPromise:
      return Broken("PUSH_PROMISE although push is off");
    case FrameType::kPing:
      if (frame.payload.size() != 8) return Broken("PING without 8 bytes");
      if (!frame.Has(kFlagAck)) {
        AppendFrameHeader(FrameType::kPing, kFlagAck, 0, 8, &output_);
        output_.append(reinterpret_cast<const char*>(frame.payload.data()), 8);
      }
      return {};
    case FrameType::kGoAway:
      return OnGoAway(frame);
    case FrameType::kWindowUpdate:
      return OnWindowUpdate(frame);
    case FrameType::kPriority:
      return {};
  }
  return {};  // an extension: to be ignored
}

Status Session::OnData(const Frame& frame) {
  const auto data = Unpadded(frame);
  if (!data || frame.stream == 0) return Broken("malformed DATA");
  received_unacknowledged_ += static_cast<std::int64_t>(frame.payload.size());
  if (received_unacknowledged_ >= kWindowStep) {
    AppendWindowUpdate(0, static_cast<std::uint32_t>(received_unacknowledged_), &output_);
    received_unacknowledged_ = 0;
  }
  if (frame.stream != stream_ || state_ == State::kIdle || state_ == State::kDone) return {};
  if (state_ != State::kBody) return Broken("DATA before HEADERS");
  if (reply_.body.size() + data->size() > kReplyBytesMax) {
    return MakeError(ErrorCode::kResourceExhausted, "http2: the reply is larger than " +
                                                        std::to_string(kReplyBytesMax) + " bytes");
  }
  reply_.body.append(reinterpret_cast<const char*>(data->data()), data->size());
  if (frame.Has(kFlagEndStream)) CloseStream();
  return {};
}

Status Session::OnHeaders(const Frame& frame) {
  auto payload = Unpadded(frame);
  if (!payload || frame.stream == 0) return Broken("malformed HEADERS");
  if (frame.Has(kFlagPriority)) {
    if (payload->size() < 5) return Broken("malformed HEADERS");
    payload = payload->subspan(5);
  }
  header_stream_ = frame.stream;
  header_ends_stream_ = frame.Has(kFlagEndStream);
  header_block_.clear();
  return OnHeaderFragment(*payload, frame.Has(kFlagEndHeaders));
}

Status Session::OnHeaderFragment(std::span<const std::uint8_t> fragment, bool end) {
  if (header_block_.size() + fragment.size() > kHeaderBlockBytesMax) {
    return Broken("a header block is larger than " + std::to_string(kHeaderBlockBytesMax) +
                  " bytes");
  }
  header_block_.append(reinterpret_cast<const char*>(fragment.data()), fragment.size());
  // An empty fragment that does not end the block would let a peer go on for ever.
  if (!end) return fragment.empty() ? Broken("an empty CONTINUATION") : Status{};
  return OnHeaderBlock();
}

Status Session::OnHeaderBlock() {
  Headers headers;
  const std::span<const std::uint8_t> block(
      reinterpret_cast<const std::uint8_t*>(header_block_.data()), header_block_.size());
  if (!hpack_.Decode(block, &headers)) return Broken("a header block cannot be decoded");
  const bool ours = std::exchange(header_stream_, 0) == stream_;
  if (!ours || state_ == State::kIdle || state_ == State::kDone) return {};
  reply_started_ = true;
  if (state_ == State::kHeaders) {
    const std::string_view status = FindHeader(headers, ":status");
    const auto parsed =
        std::from_chars(status.data(), status.data() + status.size(), reply_.http_status);
    if (parsed.ec != std::errc() || reply_.http_status < 100) {
      return Broken("a reply without a status");
    }
    if (reply_.http_status < 200 && !header_ends_stream_) return {};  // 1xx: the real one follows
    state_ = State::kBody;
  } else if (!header_ends_stream_) {
    return Broken("trailers that do not end the stream");
  }
  std::move(headers.begin(), headers.end(), std::back_inserter(reply_.headers));
  if (header_ends_stream_) CloseStream();
  return {};
}

Status Session::OnSettings(const Frame& frame) {
  if (frame.stream != 0) return Broken("malformed SETTINGS");
  if (frame.Has(kFlagAck)) return {};
  if (frame.payload.size() % kSettingBytes != 0) return Broken("malformed SETTINGS");
  for (std::size_t at = 0; at < frame.payload.size(); at += kSettingBytes) {
    const auto id = static_cast<std::uint16_t>(frame.payload[at] << 8 | frame.payload[at + 1]);
    CONDUCTOR_RETURN_IF_ERROR(OnSetting(id, ReadU32(frame.payload.subspan(at + 2))));
  }
  settings_received_ = true;
  AppendFrameHeader(FrameType::kSettings, kFlagAck, 0, 0, &output_);
  return {};
}

Status Session::OnSetting(std::uint16_t id, std::uint32_t value) {
  if (id == kSettingInitialWindow) {
    if (value > kWindowMax) return Broken("an initial window above 2^31-1");
    // Also of the stream that is open; it may become negative (RFC 9113, 6.9.2).
    stream_window_ += static_cast<std::int64_t>(value) - peer_stream_window_;
    if (stream_window_ > kWindowMax) return Broken("a window above 2^31-1");
    peer_stream_window_ = value;
  } else if (id == kSettingFrameBytesMax) {
    if (value < kFrameBytesDefault || value > kFrameBytesMax) {
      return Broken("a frame limit of " + std::to_string(value));
    }
    peer_frame_bytes_max_ = value;
  }
  return {};  // The others bound what we do not do: index headers, push, open streams in parallel.
}

Status Session::OnRstStream(const Frame& frame) {
  if (frame.payload.size() != 4 || frame.stream == 0) return Broken("malformed RST_STREAM");
  if (frame.stream != stream_ || state_ == State::kIdle || state_ == State::kDone) return {};
  const std::uint32_t code = ReadU32(frame.payload);
  refused_ = code == kErrorRefusedStream;
  return Broken("the server reset the request, error " + std::to_string(code));
}

Status Session::OnGoAway(const Frame& frame) {
  if (frame.payload.size() < 8 || frame.stream != 0) return Broken("malformed GOAWAY");
  last_request_ = true;
  const std::uint32_t last = ReadU32(frame.payload) & kWindowMax;
  if (state_ == State::kIdle || state_ == State::kDone || stream_ <= last) return {};
  refused_ = true;
  return Broken("the server is going away, error " +
                std::to_string(ReadU32(frame.payload.subspan(4))));
}

Status Session::OnWindowUpdate(const Frame& frame) {
  if (frame.payload.size() != 4) return Broken("malformed WINDOW_UPDATE");
  const std::int64_t bytes = ReadU32(frame.payload) & kWindowMax;
  if (bytes == 0) return Broken("WINDOW_UPDATE of nothing");
  if (frame.stream != 0 && frame.stream != stream_) return {};
  std::int64_t& window = frame.stream == 0 ? send_window_ : stream_window_;
  window += bytes;
  if (window > kWindowMax) return Broken("a window above 2^31-1");
  return {};
}

void Session::CloseStream() {
  state_ = State::kDone;
  // A reply before the end of the request (an error, usually): the rest is not sent, the stream
  // stays half open, and so the connection carries no other request.
  if (!body_ended_) last_request_ = true;
  body_ended_ = true;
  body_ = {};
}

}  // namespace conductor::rpc
