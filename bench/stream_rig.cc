#include "bench/stream_rig.h"

#include <algorithm>

#include "bench/harness.h"

namespace conductor::bench {

Result<StreamRig> StartStreamRig(const std::string& directory) {
  StreamRig rig;
  CONDUCTOR_ASSIGN_OR_RETURN(rig.scratch, ScratchDirectory::Make(directory));
  rig.context = std::make_unique<enginesim::ZmqContext>();
  enginesim::PublisherOptions options;
  options.endpoint = "tcp://127.0.0.1:*";
  options.send_hwm = 0;  // nothing is lost here, however fast it is published
  CONDUCTOR_ASSIGN_OR_RETURN(rig.publisher, enginesim::Publisher::Start(*rig.context, options));
  CONDUCTOR_ASSIGN_OR_RETURN(rig.service,
                             ServiceRig::Start(rig.scratch->data_dir(), ServiceRig::Streams::kZmq));
  CONDUCTOR_RETURN_IF_ERROR(rig.service->Register(0, rig.publisher->endpoint()));
  const bool subscribed = rig.publisher->WaitUntil(
      [](const enginesim::PublisherStats& stats) { return stats.subscriptions == 1; }, kPatience);
  if (!subscribed) return Wrong("the service does not subscribe");
  return rig;
}

Result<std::uint64_t> CheckStream(const PromptSource& source, std::uint64_t first_prompt,
                                  const Messages& messages, ServiceRig& rig) {
  Checksum sum;
  for (std::size_t p = 0; p < messages.prompts;
       p += std::max<std::size_t>(1, messages.prompts / 16)) {
    CONDUCTOR_ASSIGN_OR_RETURN(
        const std::uint64_t matched,
        rig.MatchedBlocks(source.Tokens(first_prompt + p, messages.blocks_per_prompt)));
    if (matched != messages.blocks_per_prompt) {
      return Wrong("prompt " + std::to_string(p) + " matches " + std::to_string(matched) +
                   " blocks, expected " + std::to_string(messages.blocks_per_prompt));
    }
    sum.Add(messages.last_names[p]);
    sum.Add(matched);
  }
  CONDUCTOR_ASSIGN_OR_RETURN(const auto views, rig.service().ListServices());
  if (views.size() != 1 || views[0].hash_check != "verified" || !views[0].lost_ranges.empty()) {
    return Wrong("the stream is not verified, or lost something");
  }
  if (views[0].blocks_by_tier[0] != messages.blocks()) {
    return Wrong(std::to_string(views[0].blocks_by_tier[0]) + " blocks, expected " +
                 std::to_string(messages.blocks()));
  }
  sum.Add(messages.blocks());
  return sum.value();
}

}  // namespace conductor::bench
