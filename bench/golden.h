// The checksums of `conductor-bench all --quick`: the same on every machine. A row that prints
// another one has done other work than before; whoever means that writes the new value here.
#pragma once

#include <cstdint>
#include <string_view>

namespace conductor::bench {

struct Golden {
  std::string_view group, work;
  std::uint64_t checksum;
};

inline constexpr Golden kGoldenQuick[] = {
    {"memory", "runs of 64, 1 holder: the index's gauge", 0x6253b57eb79c14f3},
    {"memory", "runs of 64, 1 holder: resident growth", 0x6253b57eb79c14f3},
    {"memory", "runs of 64, 8 holders: the index's gauge", 0x43a5ab76b7316fa3},
    {"memory", "runs of 64, 8 holders: resident growth", 0x43a5ab76b7316fa3},
    {"memory", "runs of 64, 64 holders: the index's gauge", 0x5d8c432b49402a9b},
    {"memory", "runs of 64, 64 holders: resident growth", 0x5d8c432b49402a9b},
    {"memory", "runs of 1, 1 holder: the index's gauge", 0x8a854671c2e4fc5a},
    {"memory", "runs of 1, 1 holder: resident growth", 0x8a854671c2e4fc5a},
    {"state", "stored while growing to the index size", 0x2f2c9a8f91460d30},
    {"state", "worst single 64-block event while growing", 0x2f2c9a8f91460d30},
    {"state", "stored at the index size", 0x2f2c9a8f91460d30},
    {"state", "removed at the index size, LRU order", 0x2f2c9a8f91460d30},
    {"query", "hit, 1024 tokens, 1 instances", 0xa44779f373e720db},
    {"query", "miss, best 8, 1024 tokens, 1 instances", 0x211f9c280e4645b5},
    {"query", "hit, 8192 tokens, 1 instances", 0xa2ec2b6a98a2cd0b},
    {"query", "miss, best 8, 8192 tokens, 1 instances", 0x211f9c280e4645b5},
    {"query", "hit, 1024 tokens, 8 instances", 0x2ac632f09e1c52d8},
    {"query", "miss, best 8, 1024 tokens, 8 instances", 0x04638e4afa1d86ff},
    {"query", "hit, 8192 tokens, 8 instances", 0xdea022093977cdc0},
    {"query", "miss, best 8, 8192 tokens, 8 instances", 0x04638e4afa1d86ff},
    {"query", "hit, 1024 tokens, 64 instances", 0xb0d82caaaad09f51},
    {"query", "miss, best 8, 1024 tokens, 64 instances", 0x04638e4afa1d86ff},
    {"query", "hit, 8192 tokens, 64 instances", 0x7d725a08d7546a7b},
    {"query", "miss, best 8, 8192 tokens, 64 instances", 0x04638e4afa1d86ff},
    {"log", "offered to visible, 64-block events", 0x922ce2e34490135f},
    {"log", "offered to visible, 1-block events", 0xc4a22a6483be2df6},
    {"rebuild", "DigestOfLog, 64-block events", 0xd0c6593cb71a38f9},
    {"rebuild", "DigestOfLog, 64-block events, by event", 0xd0c6593cb71a38f9},
    {"rebuild", "service start to ready, 64-block events", 0xd0c6593cb71a38f9},
    {"rebuild", "DigestOfLog, 1-block events", 0x651748b8d11059f7},
    {"rebuild", "DigestOfLog, 1-block events, by event", 0x651748b8d11059f7},
    {"rebuild", "service start to ready, 1-block events", 0x651748b8d11059f7},
    {"stream", "64-block prefill messages", 0xebb865debf89ad4c},
    {"stream", "messages of 16 one-block events", 0x6ea0ef290257ab6e},
    {"stream", "1-block messages", 0x7850c7a85cc8c6e6},
    {"freshness", "one 1-block message on an idle service", 0x1fbe694010327f12},
};

}  // namespace conductor::bench
