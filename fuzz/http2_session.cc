// What a gRPC server, or a proxy, sends to our client: HTTP/2 frames with HPACK headers.
// Property: however the bytes are cut on their way, the same reply comes out, or the same error,
// and the same bytes are answered. Not while a body leaves: how much of it has left by then decides
// what flow control allows, so that there only nothing may break.
//
// Input: size of the request's body, where to cut, then the server's bytes.
#include <algorithm>

#include "fuzz/target.h"
#include "rpc/http2/session.h"

namespace conductor::fuzz {
namespace {

constexpr std::size_t kBodyStep = 1'000;  // large bodies wait for the peer's flow control

class Exchange {
 public:
  explicit Exchange(std::size_t body_bytes) : body_(body_bytes, 'b') {
    std::string headers;
    rpc::AppendHeader(":method", "POST", &headers);
    rpc::AppendHeader(":path", "/conductor.v1.Conductor/Query", &headers);
    Drain();
    session_.Start(headers, AsBytes(body_));
    Drain();
  }

  // False: the session has ended.
  bool Receive(Bytes bytes) {
    const Status received = session_.Receive(bytes);
    if (!received) {
      Require(!received.error().message.empty(), "an error is named");
      // What was to be answered is not sent any more.
      text = "error " + std::to_string(static_cast<int>(received.error().code)) + " " +
             received.error().message + " refused " + std::to_string(session_.refused());
      return false;
    }
    Drain();
    return true;
  }

  void End() {
    text += " settings " + std::to_string(session_.settings_received());
    if (!session_.done()) return;
    const rpc::Reply reply = session_.TakeReply();
    text += " status " + std::to_string(reply.http_status) + " body " + reply.body;
    for (const rpc::Header& header : reply.headers) text += header.name + "=" + header.value + "\n";
  }

  std::string text;

 private:
  void Drain() {
    for (std::string_view output = session_.Output(); !output.empty(); output = session_.Output()) {
      text += output;
      session_.Sent(output.size());
    }
  }

  const std::string body_;
  rpc::Session session_;
};

}  // namespace

void RunInput(Bytes input) {
  InputReader reader(input);
  const std::size_t body_bytes = reader.Byte() * kBodyStep;
  const std::size_t cut = 1 + reader.Byte();
  const Bytes bytes = reader.rest();
  Exchange whole(body_bytes);
  if (whole.Receive(bytes)) whole.End();
  for (const std::size_t step : {cut, std::size_t{1}}) {
    Exchange pieces(body_bytes);
    bool open = true;
    for (std::size_t at = 0; open && at < bytes.size(); at += step) {
      open = pieces.Receive(bytes.subspan(at, std::min(step, bytes.size() - at)));
    }
    if (open) pieces.End();
    Require(body_bytes > 0 || pieces.text == whole.text, "cuts have no meaning",
            whole.text + "\n" + pieces.text);
  }
}

namespace {

std::string FrameBytes(char type, char flags, char stream, const std::string& payload) {
  std::string frame = {'\0',
                       static_cast<char>(payload.size() >> 8),
                       static_cast<char>(payload.size()),
                       type,
                       flags,
                       0,
                       0,
                       0,
                       stream};
  return frame + payload;
}

}  // namespace

std::vector<std::string> Seeds() {
  constexpr char kData = 0, kHeaders = 1, kRstStream = 3, kSettings = 4, kPing = 6, kGoAway = 7,
                 kWindowUpdate = 8, kContinuation = 9;
  constexpr char kEndStream = 1, kEndHeaders = 4, kAck = 1;
  std::string block;
  rpc::AppendHeader(":status", "200", &block);
  rpc::AppendHeader("content-type", "application/grpc", &block);
  // Indexed :status 200, then a literal that the dynamic table keeps, Huffman-coded ("www...").
  const std::string indexed =
      "\x88\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff\xbe\x3f\xe1\x1f";
  std::string trailers;
  rpc::AppendHeader("grpc-status", "0", &trailers);
  const std::string settings =
      FrameBytes(kSettings, 0, 0, std::string("\0\4\0\1\0\0\0\5\0\0\x40\0", 12));
  const std::string opened = settings + FrameBytes(kSettings, kAck, 0, "") +
                             FrameBytes(kWindowUpdate, 0, 0, std::string("\0\0\x10\0", 4)) +
                             FrameBytes(kWindowUpdate, 0, 1, std::string("\0\1\0\0", 4)) +
                             FrameBytes(kPing, 0, 0, "12345678");
  const std::string body = FrameBytes(kData, 0, 1, std::string("\0\0\0\0\2hi", 7));
  const std::string end = FrameBytes(kHeaders, kEndHeaders | kEndStream, 1, trailers);
  std::vector<std::string> streams = {
      opened + FrameBytes(kHeaders, kEndHeaders, 1, block) + body + end,
      opened + FrameBytes(kHeaders, kEndHeaders, 1, indexed) + body + body + end,
      opened + FrameBytes(kHeaders, 0, 1, block.substr(0, 5)) +
          FrameBytes(kContinuation, kEndHeaders, 1, block.substr(5)) + end,
      opened + FrameBytes(kRstStream, 0, 1, std::string("\0\0\0\7", 4)),
      opened + FrameBytes(kGoAway, 0, 0, std::string("\0\0\0\0\0\0\0\0bye", 11)),
      settings + FrameBytes(kHeaders, kEndHeaders | kEndStream, 1, block + trailers),
      "HTTP/1.1 400 Bad Request\r\n\r\n",
  };
  std::vector<std::string> seeds;
  for (const std::string& bytes : streams) {
    seeds.push_back(std::string{'\0', '\2'} + bytes);
    seeds.push_back(std::string{'\x50', '\x10'} + bytes);
  }
  return seeds;
}

}  // namespace conductor::fuzz
