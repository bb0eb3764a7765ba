// What a vLLM engine puts on the wire for the bench's prompts: payloads with tokens and real chain
// names, encoded ahead. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/workload.h"

namespace conductor::bench {

struct MessageShape {
  std::size_t blocks;     // of all messages together
  std::size_t events;     // of one message, each of another prompt
  std::size_t per_event;  // blocks of one event
  std::size_t prompts;    // that grow side by side; a multiple of `events`
};

struct Messages {
  std::vector<std::string> payloads;
  std::size_t prompts = 0, blocks_per_prompt = 0;
  std::vector<std::uint64_t> last_names;  // of each prompt

  std::size_t blocks() const { return prompts * blocks_per_prompt; }
};

// The prompts are numbers [first_prompt, first_prompt + shape.prompts). Each grows by one event at
// a time, in turn.
Messages MakeMessages(const PromptSource& source, std::uint64_t first_prompt,
                      const MessageShape& shape);

}  // namespace conductor::bench
