#include "http/request_framing.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

#include "http/http_limits.h"

namespace conductor::http {

namespace {

// The headers the library gets to see.
constexpr std::string_view kKeptHeaders[] = {"host", "connection", "content-type", "accept",
                                             "authorization"};

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Takes the next line off `text`, without its LF or CRLF.
std::string_view NextLine(std::string_view& text) {
  const auto end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Where the blank line that ends the header ends; npos while it has not come.
std::size_t HeaderEnd(std::string_view header, std::size_t from) {
  for (auto at = header.find('\n', from); at != std::string_view::npos;
       at = header.find('\n', at + 1)) {
    const std::string_view rest = header.substr(at + 1, 2);
    if (rest.starts_with('\n')) return at + 2;
    if (rest == "\r\n") return at + 3;
  }
  return std::string_view::npos;
}

}  // namespace

void RequestFraming::Refuse(int status, std::string reason, std::string message) {
  state_ = State::kRefused;
  status_ = status;
  error_ =
      Error{reason == "too_large" ? ErrorCode::kResourceExhausted : ErrorCode::kInvalidArgument,
            std::move(message), std::move(reason), "", -1};
  header_ = {};
  body_ = {};
}

void RequestFraming::Reset() {
  std::string header = std::move(header_);
  header.clear();
  *this = RequestFraming(limits_);
  header_ = std::move(header);
}

bool RequestFraming::TakeExpectContinue() {
  return std::exchange(expect_continue_, false);
}

std::string_view RequestFraming::path() const {
  if (state_ == State::kHeader || state_ == State::kRefused) return {};
  std::string_view line = header_;
  const auto target = line.find(' ');
  if (target == std::string_view::npos) return {};
  line.remove_prefix(target + 1);
  return line.substr(0, line.find_first_of(" ?\r"));
}

std::size_t RequestFraming::Feed(std::string_view bytes) {
  std::size_t taken = 0;
  while (taken < bytes.size() && !Finished()) {
    const std::string_view rest = bytes.substr(taken);
    switch (state_) {
      case State::kHeader:
        taken += FeedHeader(rest);
        break;
      case State::kBody:
        taken += FeedBody(rest);
        break;
      case State::kChunkData:
        taken += FeedChunkData(rest);
        break;
      default:
        taken += FeedLine(rest);
        break;
    }
  }
  return taken;
}

std::size_t RequestFraming::FeedHeader(std::string_view bytes) {
  if (header_.empty()) {
    // Blank lines before a request are allowed.
    const auto start = bytes.find_first_not_of("\r\n");
    if (start == std::string_view::npos) return bytes.size();
    if (start > 0) return start;
  }
  const std::size_t before = header_.size();
  header_.append(bytes.substr(0, limits_.header_bytes_max + 1 - before));
  const std::size_t end = HeaderEnd(header_, before < 2 ? 0 : before - 2);
  if (end != std::string::npos && end <= limits_.header_bytes_max) {
    header_.resize(end);
    OnHeaderComplete();
    return end - before;
  }
  const std::size_t taken = header_.size() - before;
  if (header_.size() > limits_.header_bytes_max) {
    Refuse(431, "too_large",
           "header: expected at most " + std::to_string(limits_.header_bytes_max) + " bytes");
  }
  return taken;
}

void RequestFraming::OnHeaderComplete() {
  const std::string raw = std::exchange(header_, {});
  std::string_view rest = raw;
  std::string kept(NextLine(rest));
  kept += "\r\n";
  while (!rest.empty()) {
    const std::string_view line = NextLine(rest);
    if (line.empty()) break;
    if (!OnHeaderLine(line, &kept)) return;
  }
  kept += "\r\n";
  header_ = std::move(kept);
  if (chunked_ && content_length_) {
    return Refuse(400, "invalid_value", "header: both Content-Length and Transfer-Encoding");
  }
  if (chunked_) {
    state_ = State::kChunkSize;
    return;
  }
  owed_ = content_length_.value_or(0);
  if (owed_ > limits_.body_bytes_max) {
    return Refuse(413, "too_large",
                  "body: expected at most " + std::to_string(limits_.body_bytes_max) +
                      " bytes, got a Content-Length of " + std::to_string(owed_));
  }
  if (owed_ == 0) {
    state_ = State::kDone;
    return;
  }
  // Not more: a declared length is only a claim.
  body_.reserve(std::min<std::uint64_t>(owed_, kReservedBodyBytesMax));
  state_ = State::kBody;
}

bool RequestFraming::OnHeaderLine(std::string_view line, std::string* kept) {
  const auto colon = line.find(':');
  const std::string name = LowerCase(line.substr(0, std::min(colon, line.size())));
  if (colon == std::string_view::npos || name.empty() ||
      name.find_first_of(" \t") != std::string::npos) {
    Refuse(400, "invalid_value", "header: expected 'name: value' in every line");
    return false;
  }
  std::string_view value = Trim(line.substr(colon + 1));
  // The library knows this spelling only.
  if (name == "connection" && LowerCase(value).find("close") != std::string::npos) value = "close";
  if (name == "content-type") content_type_ = value;
  if (name == "accept") {
    if (!accept_.empty()) accept_ += ",";
    accept_ += value;
  }
  if (std::find(std::begin(kKeptHeaders), std::end(kKeptHeaders), name) != std::end(kKeptHeaders)) {
    kept->append(name).append(": ").append(value).append("\r\n");
  }
  return OnBodyHeader(name, value);
}

bool RequestFraming::OnBodyHeader(const std::string& name, std::string_view value) {
  if (name == "content-length") {
    std::uint64_t length = 0;
    const char* end = value.data() + value.size();
    const auto parsed = std::from_chars(value.data(), end, length);
    // More digits than 64 bits hold are a number all the same, and one that is too large.
    if (parsed.ec == std::errc::result_out_of_range) length = UINT64_MAX;
    const bool number = parsed.ec != std::errc::invalid_argument && parsed.ptr == end;
    if (!number || (content_length_ && *content_length_ != length)) {
      Refuse(400, "invalid_value", "Content-Length: expected one decimal number");
      return false;
    }
    content_length_ = length;
  } else if (name == "transfer-encoding") {
    if (chunked_ || LowerCase(value) != "chunked") {
      Refuse(400, "unsupported", "Transfer-Encoding: expected chunked");
      return false;
    }
    chunked_ = true;
  } else if (name == "content-encoding") {
    if (LowerCase(value) != "identity") {
      Refuse(415, "unsupported_content_type", "Content-Encoding: expected none");
      return false;
    }
  } else if (name == "expect") {
    expect_continue_ = LowerCase(value) == "100-continue";
  }
  return true;
}

std::size_t RequestFraming::FeedBody(std::string_view bytes) {
  const std::size_t taken = std::min<std::uint64_t>(owed_, bytes.size());
  body_.append(bytes.substr(0, taken));
  owed_ -= taken;
  if (owed_ == 0) state_ = State::kDone;
  return taken;
}

std::size_t RequestFraming::FeedChunkData(std::string_view bytes) {
  const std::size_t taken = std::min<std::uint64_t>(owed_, bytes.size());
  body_.append(bytes.substr(0, taken));
  owed_ -= taken;
  if (owed_ == 0) state_ = State::kChunkEnd;
  return taken;
}

std::size_t RequestFraming::FeedLine(std::string_view bytes) {
  const auto newline = bytes.find('\n');
  const std::size_t taken = newline == std::string_view::npos ? bytes.size() : newline + 1;
  if (line_.size() + taken > kChunkLineBytesMax) {
    Refuse(413, "too_large",
           "chunked body: a line of more than " + std::to_string(kChunkLineBytesMax) + " bytes");
    return taken;
  }
  line_.append(bytes.substr(0, taken));
  if (newline != std::string_view::npos) OnChunkLine();
  return taken;
}

void RequestFraming::OnChunkLine() {
  const std::string whole = std::exchange(line_, {});
  std::string_view rest = whole;
  const std::string_view line = NextLine(rest);
  if (state_ == State::kChunkEnd) {
    if (!line.empty()) return Refuse(400, "invalid_value", "chunked body: expected a line end");
    state_ = State::kChunkSize;
    return;
  }
  if (state_ == State::kTrailer) {
    trailer_bytes_ += whole.size();
    if (line.empty()) {
      state_ = State::kDone;
    } else if (trailer_bytes_ > kTrailerBytesMax) {
      Refuse(413, "too_large", "chunked body: trailers too large");
    }
    return;
  }
  const std::string_view digits = Trim(line.substr(0, line.find(';')));
  std::uint64_t size = 0;
  const char* end = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), end, size, 16);
  if (parsed.ec == std::errc::invalid_argument || parsed.ptr != end) {
    return Refuse(400, "invalid_value", "chunked body: expected a chunk size in hex digits");
  }
  if (parsed.ec != std::errc() || size > limits_.body_bytes_max - body_.size()) {
    return Refuse(413, "too_large",
                  "body: expected at most " + std::to_string(limits_.body_bytes_max) + " bytes");
  }
  owed_ = size;
  state_ = size == 0 ? State::kTrailer : State::kChunkData;
}

}  // namespace conductor::http
