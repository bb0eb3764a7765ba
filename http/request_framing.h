// Finds where one HTTP/1.1 request ends, while its bytes arrive: header, Content-Length or chunked
// body, with limits that hold before anything is buffered. What the request *says* is the
// library's business (library_exchange.h): it gets the request line and the few headers this API
// has a use for, rebuilt here, so that ranges, compression and folded lines cannot reach it.
//
// Feed takes bytes until the request is complete or refused; what it did not take belongs to the
// next request. Pure; one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/result.h"

namespace conductor::http {

struct FramingLimits {
  std::size_t header_bytes_max = 0;
  std::size_t body_bytes_max = 0;
};

class RequestFraming {
 public:
  enum class State { kHeader, kBody, kChunkSize, kChunkData, kChunkEnd, kTrailer, kDone, kRefused };

  explicit RequestFraming(FramingLimits limits) : limits_(limits) {}

  // Returns how many of the bytes were taken.
  std::size_t Feed(std::string_view bytes);
  // Ready for the next request of the connection.
  void Reset();

  State state() const { return state_; }
  bool Finished() const { return state_ == State::kDone || state_ == State::kRefused; }
  // Whether a byte of the request has come.
  bool Started() const { return state_ != State::kHeader || !header_.empty(); }
  // The client waits for "100 Continue" before it sends the body. True once per request.
  bool TakeExpectContinue();
  std::size_t BufferedBytes() const { return header_.size() + body_.size(); }

  // kDone: the request line and the headers that matter, each with CRLF, and the blank line.
  const std::string& header() const { return header_; }
  std::string TakeBody() { return std::move(body_); }
  // The request target as sent, without its query. Empty until the header is complete.
  std::string_view path() const;

  // kRefused: what is wrong, and the HTTP status that says it.
  const Error& error() const { return error_; }
  int status() const { return status_; }
  const std::string& content_type() const { return content_type_; }
  const std::string& accept() const { return accept_; }

 private:
  std::size_t FeedHeader(std::string_view bytes);
  std::size_t FeedBody(std::string_view bytes);
  std::size_t FeedLine(std::string_view bytes);
  std::size_t FeedChunkData(std::string_view bytes);
  void OnHeaderComplete();
  // One header line; false: refused.
  bool OnHeaderLine(std::string_view line, std::string* kept);
  bool OnBodyHeader(const std::string& name, std::string_view value);
  void OnChunkLine();
  void Refuse(int status, std::string reason, std::string message);

  FramingLimits limits_;
  State state_ = State::kHeader;
  std::string header_;  // as it came until complete, then rebuilt
  std::string body_;
  std::string line_;  // a chunk's size line or a trailer, so far
  std::string content_type_, accept_;
  std::optional<std::uint64_t> content_length_;
  bool chunked_ = false;
  bool expect_continue_ = false;
  std::uint64_t owed_ = 0;  // bytes of the body or of the chunk that are still to come
  std::size_t trailer_bytes_ = 0;
  int status_ = 0;
  Error error_;
};

}  // namespace conductor::http
