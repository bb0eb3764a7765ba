#include "tools/trace.h"

#include <nlohmann/json.hpp>

#include "src/check.h"

namespace conductor::enginesim {
namespace {

using Json = nlohmann::json;

tl::unexpected<Error> BadLine(const std::string& what) {
  return MakeError(ErrorCode::kInvalidArgument, what);
}

Result<std::uint64_t> ReadNumber(const Json& object, const char* field, bool required) {
  const auto found = object.find(field);
  if (found == object.end()) {
    if (!required) return 0;
    return BadLine(std::string(field) + " is missing");
  }
  if (found->is_number_unsigned()) return found->get<std::uint64_t>();
  // Some tools write timestamps as 27482.0.
  if (found->is_number_float()) {
    const double value = found->get<double>();
    if (value >= 0 && value < 9e15) return static_cast<std::uint64_t>(value);
  }
  return BadLine(std::string(field) + ": expected a number from 0, got " + found->dump());
}

}  // namespace

std::uint64_t SplitMix64(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::vector<std::int32_t> ExpandTrace(const TraceRequest& request, std::uint32_t trace_block) {
  CHECK(request.input_length <= request.hash_ids.size() * trace_block);
  std::vector<std::int32_t> tokens(request.input_length);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint64_t id = request.hash_ids[i / trace_block];
    tokens[i] = static_cast<std::int32_t>(SplitMix64(id * trace_block + i % trace_block) %
                                          kTraceVocabulary);
  }
  return tokens;
}

Result<TraceRequest> ParseTraceLine(const std::string& line, std::uint32_t trace_block) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return BadLine("expected one JSON object");
  TraceRequest request;
  CONDUCTOR_ASSIGN_OR_RETURN(request.timestamp_ms, ReadNumber(object, "timestamp", true));
  CONDUCTOR_ASSIGN_OR_RETURN(request.input_length, ReadNumber(object, "input_length", true));
  CONDUCTOR_ASSIGN_OR_RETURN(request.output_length, ReadNumber(object, "output_length", false));
  if (request.input_length > kTraceInputTokensMax) {
    return BadLine("input_length: at most " + std::to_string(kTraceInputTokensMax) + ", got " +
                   std::to_string(request.input_length));
  }
  const auto ids = object.find("hash_ids");
  if (ids == object.end()) return BadLine("hash_ids is missing");
  if (!ids->is_array()) return BadLine("hash_ids: expected an array");
  for (const Json& id : *ids) {
    if (!id.is_number_unsigned()) {
      return BadLine("hash_ids: expected numbers from 0, got " + id.dump());
    }
    request.hash_ids.push_back(id.get<std::uint64_t>());
  }
  const std::uint64_t needed = (request.input_length + trace_block - 1) / trace_block;
  if (request.hash_ids.size() != needed) {
    return BadLine("hash_ids: expected " + std::to_string(needed) + " ids for input_length " +
                   std::to_string(request.input_length) + ", got " +
                   std::to_string(request.hash_ids.size()));
  }
  return request;
}

tl::unexpected<Error> TraceReader::errorHere(ErrorCode code, const std::string& what) const {
  return MakeError(code, name_ + " line " + std::to_string(line_) + ": " + what);
}

Result<bool> TraceReader::readLine(std::string& line) {
  line.clear();
  std::streambuf* buffer = input_.rdbuf();
  bool any = false;
  for (int byte = buffer->sbumpc(); byte != std::char_traits<char>::eof();
       byte = buffer->sbumpc()) {
    if (!any) ++line_;
    any = true;
    if (byte == '\n') break;
    if (line.size() == kTraceLineBytesMax) {
      return errorHere(ErrorCode::kInvalidArgument,
                       "longer than " + std::to_string(kTraceLineBytesMax) + " bytes");
    }
    line.push_back(static_cast<char>(byte));
  }
  return any;
}

Result<std::optional<TraceRequest>> TraceReader::Next() {
  std::string line;
  while (true) {
    CONDUCTOR_ASSIGN_OR_RETURN(const bool any, readLine(line));
    if (!any) return std::nullopt;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    Result<TraceRequest> request = ParseTraceLine(line, trace_block_);
    if (!request) return errorHere(request.error().code, request.error().message);
    return std::optional<TraceRequest>(std::move(*request));
  }
}

}  // namespace conductor::enginesim
