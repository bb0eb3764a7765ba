#include "bench/trace_prompts.h"

#include <fstream>

namespace conductor::bench {

Result<std::vector<enginesim::TraceRequest>> ReadTrace(const std::string& path) {
  std::ifstream in(path);
  if (!in) return MakeError(ErrorCode::kNotFound, path + ": cannot be read");
  enginesim::TraceReader reader(in, path);
  std::vector<enginesim::TraceRequest> requests;
  for (;;) {
    CONDUCTOR_ASSIGN_OR_RETURN(auto request, reader.Next());
    if (!request) break;
    if (!request->hash_ids.empty()) requests.push_back(std::move(*request));
  }
  if (requests.empty()) return MakeError(ErrorCode::kInvalidArgument, path + ": no requests");
  return requests;
}

Prompt TracePrompt(const PromptSource& source, const enginesim::TraceRequest& request,
                   std::size_t blocks_per_id) {
  std::vector<Content> path;
  path.reserve(request.hash_ids.size() * blocks_per_id);
  for (std::uint64_t id : request.hash_ids) {
    for (std::size_t i = 0; i < blocks_per_id; ++i) path.push_back({id, i});
  }
  return MakePrompt(source, path);
}

}  // namespace conductor::bench
