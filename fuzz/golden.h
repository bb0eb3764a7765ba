// The captured messages of tests/golden/frames_visible.json, as seeds. A missing or unreadable file
// aborts: a fuzzer that starts from nothing finds nothing. One thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/types.h"

namespace conductor::fuzz {

struct GoldenFrame {
  PublisherType publisher = PublisherType::kVllm;
  HashStrategy strategy = HashStrategy::kVllmV1;
  std::uint8_t block_size = 4;     // of its first stored event
  std::vector<std::string> parts;  // topic, number, payload (as far as captured)
  std::vector<std::string> object_keys;
};
std::vector<GoldenFrame> LoadGoldenFrames();

// Each transcript: the messages of one replay, each of several parts.
using Message = std::vector<std::string>;
std::vector<std::vector<Message>> LoadGoldenReplays();

}  // namespace conductor::fuzz
