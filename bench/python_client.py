#!/usr/bin/env python3
"""Times queries of the Python client with a list of tokens; started by `conductor-bench front`.

Prints the median nanoseconds of a call, one line for each repeat. The tokens are those of the
bench's prompt number TOKENS (bench/workload.cc); every answer must be about the whole prompt.
"""

import argparse
import statistics
import sys
import time

from mooncake.conductor import OK, ConductorClient

BLOCK = 16
VOCABULARY = 128_000
CALLS = 300
WARM_UP = 30
PATIENCE_MS = 60_000  # a busy machine makes rows slow, never wrong
MASK = 2**64 - 1


def mix(x):
    x = (x + 0x9E3779B97F4A7C15) & MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def tokens_of(seed, prompt, count):
    tokens = []
    for block in range(count // BLOCK):
        state = mix((mix(seed ^ prompt) + block) & MASK)
        for _ in range(BLOCK // 2):
            state = mix(state)
            tokens.append((state & 0xFFFFFFFF) % VOCABULARY)
            tokens.append((state >> 32) % VOCABULARY)
    return tokens


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--address", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--instances", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    options = parser.parse_args()
    tokens = tokens_of(options.seed, options.tokens, options.tokens)
    with ConductorClient() as client:
        if client.setup(options.address, PATIENCE_MS, PATIENCE_MS) != OK:
            sys.exit(client.last_error)
        for _ in range(options.repeats):
            samples = []
            for call in range(WARM_UP + CALLS):
                begin = time.perf_counter_ns()
                result = client.query(options.model, block_size=BLOCK, token_ids=tokens)
                nanoseconds = time.perf_counter_ns() - begin
                if call >= WARM_UP:
                    samples.append(nanoseconds)
                hits = result["hits"]
                whole = [hit for hit in hits.values() if hit["longest_matched"] == options.tokens]
                if result["ret"] != OK or len(whole) != options.instances:
                    sys.exit(f"a wrong answer: {result}, {client.last_error}")
            print(statistics.median(samples), flush=True)


if __name__ == "__main__":
    main()
