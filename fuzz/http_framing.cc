// Where one HTTP request ends and the next begins.
// Property: however the bytes are cut on their way, the same requests come out, or the same
// refusal; all bytes are taken until then; no body is larger than its limit.
//
// Input: flags, where to cut, then the connection's bytes.
#include "fuzz/target.h"
#include "http/request_framing.h"

namespace conductor::fuzz {
namespace {

constexpr std::uint8_t kSmallLimitsFlag = 1;
constexpr http::FramingLimits kUsual{16u << 10, 64u << 10};
constexpr http::FramingLimits kSmall{64, 16};

// Everything that a connection learns, in words.
class Transcript {
 public:
  explicit Transcript(const http::FramingLimits& limits) : limits_(limits), framing_(limits) {}

  // False: refused, the connection would be closed.
  bool Feed(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::size_t taken = framing_.Feed(bytes);
      Require(taken <= bytes.size(), "no more is taken than there is");
      bytes.remove_prefix(taken);
      if (!framing_.Finished()) {
        Require(bytes.empty(), "an unfinished request takes every byte");
        break;
      }
      if (framing_.state() == http::RequestFraming::State::kRefused) {
        text += "refused " + std::to_string(framing_.status()) + " " + framing_.error().reason +
                " " + framing_.error().message;
        Require(framing_.status() >= 400 && !framing_.error().reason.empty(), "a refusal is named");
        return false;
      }
      AddRequest();
      framing_.Reset();
    }
    return true;
  }

  void End() {
    text += "state " + std::to_string(static_cast<int>(framing_.state())) + " " +
            std::to_string(framing_.BufferedBytes());
  }

  std::string text;

 private:
  void AddRequest() {
    const std::string body = framing_.TakeBody();
    Require(body.size() <= limits_.body_bytes_max, "a body has its limit");
    Require(framing_.header().ends_with("\r\n\r\n"), "a header ends with a blank line");
    text += framing_.header();
    text += framing_.path();
    text += framing_.content_type() + "|" + framing_.accept() + "|" +
            std::to_string(framing_.TakeExpectContinue()) + "|" + std::to_string(body.size()) +
            ":" + body + "\n";
  }

  const http::FramingLimits limits_;
  http::RequestFraming framing_;
};

}  // namespace

void RunInput(Bytes input) {
  InputReader reader(input);
  const auto& limits = (reader.Byte() & kSmallLimitsFlag) != 0 ? kSmall : kUsual;
  const std::size_t cut = 1 + reader.Byte();
  const std::string_view bytes = AsText(reader.rest());
  Transcript whole(limits);
  if (whole.Feed(bytes)) whole.End();
  for (const std::size_t step : {cut, std::size_t{1}}) {
    Transcript pieces(limits);
    bool open = true;
    for (std::size_t at = 0; open && at < bytes.size(); at += step) {
      open = pieces.Feed(bytes.substr(at, step));
    }
    if (open) pieces.End();
    Require(pieces.text == whole.text, "cuts have no meaning", whole.text + "\n" + pieces.text);
  }
}

std::vector<std::string> Seeds() {
  const std::string get = "GET /services?detail=1 HTTP/1.1\r\nHost: h\r\nAccept: */*\r\n\r\n";
  const std::string post =
      "POST /query HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
      "Content-Length: 13\r\nExpect: 100-continue\r\n\r\n{\"model\":\"m\"}";
  const std::string chunked =
      "POST /query HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
      "5;x=y\r\n{\"a\":\r\n2\r\n1}\r\n0\r\nTrailer: t\r\n\r\n";
  const std::string wrong = "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab";
  std::vector<std::string> seeds;
  for (const std::string& bytes :
       {get, post, chunked, wrong, get + post + chunked + get, chunked + "\r\n" + get}) {
    seeds.push_back(std::string{'\0', '\2'} + bytes);
    seeds.push_back(std::string{'\1', '\6'} + bytes);
  }
  return seeds;
}

}  // namespace conductor::fuzz
