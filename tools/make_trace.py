#!/usr/bin/env python3
"""Writes a small request trace of our own making, in the Mooncake format (tools/trace.h).

Multi-turn conversations on top of a few shared system prompts: each turn's prompt is the whole
conversation so far, so it repeats the full 512-token blocks of the turn before. The same seed
writes the same bytes on every machine.

  python3 tools/make_trace.py > examples/trace_small.jsonl
"""

import argparse
import json
import math
import random
import sys

BLOCK = 512
SYSTEM_PROMPTS = (700, 1536, 2100, 3300)  # tokens; the shorter ones are used more often
SYSTEM_WEIGHTS = (0.4, 0.3, 0.2, 0.1)
INPUT_TOKENS_MAX = 9_000


def pick(rng, weights):
    at = rng.random()
    for index, weight in enumerate(weights):
        at -= weight
        if at < 0:
            return index
    return len(weights) - 1


def length(rng, median, low, high):
    """A length with a long tail: log-normal around the median, cut to the limits."""
    # Sum of uniforms instead of gauss(): the same numbers in every Python release.
    normal = sum(rng.random() for _ in range(12)) - 6
    return max(low, min(high, int(median * math.exp(0.8 * normal))))


def conversation(rng, number, start_ms):
    """The turns of one conversation as (timestamp, input length, output length, block keys)."""
    system = pick(rng, SYSTEM_WEIGHTS)
    tokens = SYSTEM_PROMPTS[system]
    shared_blocks = tokens // BLOCK
    now = start_ms
    while True:
        tokens += length(rng, 180, 10, 3_000)
        if tokens > INPUT_TOKENS_MAX:
            return
        output = length(rng, 160, 5, 1_000)
        keys = []
        for block in range((tokens + BLOCK - 1) // BLOCK):
            filled = min(BLOCK, tokens - block * BLOCK)
            shared = block < shared_blocks
            keys.append(("s", system, block) if shared else (number, block, filled))
        yield round(now), tokens, output, keys
        if rng.random() < 0.22:  # about 4.5 turns
            return
        tokens += output
        now += output * 25 + length(rng, 12_000, 1_000, 180_000)


def make(requests, seed, minutes):
    rng = random.Random(seed)
    turns = []
    number = 0
    while len(turns) < requests:
        start = rng.random() * minutes * 60_000
        turns.extend(conversation(rng, number, start))
        number += 1
    turns.sort(key=lambda turn: turn[0])  # stable: equal times keep the order of their making
    ids = {}
    for timestamp, tokens, output, keys in turns[:requests]:
        yield {
            "timestamp": timestamp,
            "input_length": tokens,
            "output_length": output,
            "hash_ids": [ids.setdefault(key, len(ids)) for key in keys],
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--requests", type=int, default=1_500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=20, help="span of the first turns")
    options = parser.parse_args()
    for request in make(options.requests, options.seed, options.minutes):
        sys.stdout.write(json.dumps(request) + "\n")


if __name__ == "__main__":
    main()
