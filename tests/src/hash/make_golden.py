#!/usr/bin/env python3
"""Writes tests/golden/hash_cpython.json and tests/golden/fingerprint_v1.json.

The vectors come from CPython's own pickler, cbor2 and python-xxhash (Debian: python3-cbor2,
python3-xxhash), not from the code under test. Both files are stored; this script is their record.
fingerprint_v1.json is a disk format: a run that changes it is a mistake.
"""

import hashlib
import json
import pathlib
import pickle
import struct

import cbor2
import xxhash

GOLDEN = pathlib.Path(__file__).resolve().parents[2] / "golden"
MASK = (1 << 64) - 1


def text(value, repeat=1):
    return {"kind": "text", "text": value, "repeat": repeat}


def integer(value):
    return {"kind": "integer", "integer": str(value)}


def item(identifier, offset):
    return {"kind": "item", "text": identifier, "integer": str(offset), "repeat": 1}


def raw(hex_digits, repeat=1):
    return {"kind": "bytes", "hex": hex_digits, "repeat": repeat}


def python_value(key):
    """The object the engine would hold: texts are decoded afresh, as msgspec does."""
    if key["kind"] == "text":
        return (key["text"] * key["repeat"]).encode().decode()
    if key["kind"] == "integer":
        return int(key["integer"])
    if key["kind"] == "item":
        return (key["text"].encode().decode(), int(key["integer"]))
    return bytes.fromhex(key["hex"]) * key["repeat"]


def serialise(algorithm, value):
    if algorithm == "sha256":
        return pickle.dumps(value, protocol=5)
    return cbor2.dumps(value, canonical=True)


EMBEDS = "00112233445566778899aabbccddeeff" * 2
BIG = 65536
BLOCKS = {
    "item": ([1, 2, 3, 4], [item("a1b2c3", 0)]),
    "item_negative_offset": ([1, 2, 3, 4], [item("a1b2c3", -7)]),
    "two_items": ([1, 2, 3, 4], [item("a1b2c3", -40), item("ffee", 2)]),
    "same_identifier_twice_is_written_twice": ([1, 2], [item("a1b2", 0), item("a1b2", 1)]),
    "lora_item_salt_embeds": (
        [1, 2, 3, 4],
        [text("sql-adapter"), item("a1b2c3", 1), text("tenant-a"), raw(EMBEDS)],
    ),
    "embeds_alone": ([5], [raw(EMBEDS)]),
    "bytes_255": ([5], [raw("ab", 255)]),
    "bytes_256": ([5], [raw("ab", 256)]),
    "old_image_identifiers": ([5, 6], [text("image-one"), text("image-two"), text("salt")]),
    **{
        f"lora_id_{value}": ([7, 8, 9], [integer(value)])
        for value in [0, 1, 23, 24, 255, 256, 65535, 65536, 2**31 - 1, 2**31, 2**32, 2**39 - 1]
        + [2**39, 2**47, 2**55, 2**63 - 1, -1, -25, -257, -(2**31), -(2**31) - 1, -(2**39)]
        + [-(2**39) - 1, -(2**55), -(2**63)]
    },
    "alias_ascii": ([1, 2, 3, 4], [text("x"), text("x")]),
    "alias_nul": ([1, 2, 3, 4], [text("\0"), text("\0")]),
    "alias_latin1": ([1], [text("é"), item("é", 3), text("é")]),
    "alias_last_latin1": ([1], [text("\u00ff"), text("\u00ff")]),
    "alias_first_two_byte": ([1], [text("\u0080"), text("\u0080")]),
    "no_alias_beyond_latin1": ([1], [text("\u0100"), text("\u0100")]),
    "no_alias_two_characters": ([1], [text("xx"), text("xx")]),
    "alias_empty_identifier": ([1], [item("", 0), item("", 4)]),
    "alias_different_characters": ([1, 2], [text("x"), text("y"), text("x"), text("y")]),
    "alias_far_back": (
        [1, 2],
        [text("a")] + [text(f"k{i}") for i in range(300)] + [text("z"), text("a"), text("z")],
    ),
    "tiny_frame": ([1, 2, 3, 4], [text("a", BIG), text("b", BIG)]),
    "tiny_frames": ([1, 2, 3, 4], [text("a", BIG), raw("00", BIG), text("b", BIG + 1)]),
    "small_frame": ([1, 2, 3, 4], [text("a", BIG), text("b"), text("c", BIG)]),
    "text_just_inside_a_frame": ([1, 2, 3, 4], [text("a", BIG - 1), text("b", BIG - 1)]),
    "text_just_outside_a_frame": ([1, 2, 3, 4], [text("a", BIG)]),
    "bytes_outside_a_frame": ([1, 2, 3, 4], [raw("cd", BIG), integer(3)]),
    "frame_ends_between_texts": (
        [1, 2, 3, 4],
        [text("a", 40000), text("b", 40000), text("c", 40000), item("d", 5), integer(6)],
    ),
    "frame_ends_before_none": ([70000] * 13100, []),
    "frame_ends_before_extra_keys": ([70000] * 13100, [text("lora")]),
    **{
        f"frame_ends_near_token_{count}": ([70000] * count, [text("lora"), text("x"), text("x")])
        for count in range(13095, 13104)
    },
    "three_frames_of_tokens": ([-3] * 30000, []),
    "array_of_23": (list(range(23)), []),
    "array_of_256": (list(range(256)), []),
}


def tokens_json(tokens):
    if len(tokens) > 1000:
        assert len(set(tokens)) == 1
        return {"value": tokens[0], "count": len(tokens)}
    return tokens


def hash_cases():
    for algorithm in ["sha256", "sha256_cbor"]:
        root = hashlib.sha256(serialise(algorithm, "0")).digest()
        for name, (tokens, keys) in BLOCKS.items():
            extra = tuple(python_value(key) for key in keys) or None
            value = (root, tuple(tokens), extra)
            serialised = serialise(algorithm, value)
            yield {
                "name": name,
                "algorithm": algorithm,
                "tokens": tokens_json(tokens),
                "extra_keys": keys,
                "serialised_bytes": len(serialised),
                "digest": hashlib.sha256(serialised).hexdigest(),
            }


def fingerprint(tokens, keys):
    data = struct.pack(f"<{len(tokens)}i", *tokens)
    for key in keys:
        value = python_value(key)
        if key["kind"] == "text":
            data += struct.pack("<BI", 1, len(value.encode())) + value.encode()
        elif key["kind"] == "integer":
            data += struct.pack("<Bq", 2, value)
        elif key["kind"] == "item":
            identifier = value[0].encode()
            data += struct.pack("<BI", 3, len(identifier)) + identifier
            data += struct.pack("<q", value[1])
        else:
            data += struct.pack("<BI", 4, len(value)) + value
    return xxhash.xxh3_64_intdigest(data, seed=len(tokens))


def token_stream(state):
    """splitmix64, the low 32 bits as int32."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) & MASK
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        low = (z ^ (z >> 31)) & 0xFFFFFFFF
        yield low - (1 << 32) if low >> 31 else low


FINGERPRINTS = [
    ([], []),
    ([0], []),
    ([0, 0], []),
    ([1, 2, 3, 4], []),
    ([-1, -2147483648, 2147483647, 0], []),
    (list(range(16)), []),
    (list(range(17)), []),
    (list(range(64)), []),
    (list(range(256)), []),
    ([1, 2, 3, 4], [text("image-one")]),
    ([1, 2, 3, 4], [text("")]),
    ([1, 2, 3, 4], [text("图像")]),
    ([1, 2, 3, 4], [integer(5)]),
    ([1, 2, 3, 4], [integer(-(2**63))]),
    ([1, 2, 3, 4], [item("a1b2c3", -7)]),
    ([1, 2, 3, 4], [item("a1b2c3", -7), item("a1b2c3", 9)]),
    ([1, 2, 3, 4], [raw(EMBEDS)]),
    ([1, 2, 3, 4], [text("x", 3000)]),
    (list(range(16)), [item("a1b2c3", 3), text("salt"), raw(EMBEDS)]),
    ([], [text("no tokens")]),
]


def stability_fold():
    fold = 0
    stream = token_stream(1)
    for count in range(1025):
        tokens = [next(stream) for _ in range(count)]
        fold = (fold * 0x100000001B3 + fingerprint(tokens, [])) & MASK
    for count in range(65):
        tokens = [next(stream) for _ in range(count)]
        for key in [text("k", count), integer(-count), item("i", count), raw("5a", count)]:
            fold = (fold * 0x100000001B3 + fingerprint(tokens, [key])) & MASK
    return fold


def write(name, document):
    lines = [json.dumps(case, ensure_ascii=True) for case in document.pop("cases")]
    head = json.dumps(document, indent=1)[:-2]
    body = ",\n  ".join(lines)
    (GOLDEN / name).write_text(f'{head},\n "cases": [\n  {body}\n ]\n}}\n')


def main():
    write(
        "hash_cpython.json",
        {
            "description": "One vLLM block after the root of seed 0, hashed by CPython's pickler "
            "(sha256) and cbor2 (sha256_cbor), with the extra keys and sizes at which the "
            "encodings change. repeat: the text or bytes, that many times.",
            "generator": "tests/src/hash/make_golden.py",
            "cases": list(hash_cases()),
        },
    )
    write(
        "fingerprint_v1.json",
        {
            "description": "Fingerprint v1, a frozen disk format: src/hash/fingerprint.h.",
            "generator": "tests/src/hash/make_golden.py",
            "stability_fold": str(stability_fold()),
            "cases": [
                {"tokens": tokens, "extra_keys": keys, "fingerprint": str(fingerprint(tokens, keys))}
                for tokens, keys in FINGERPRINTS
            ],
        },
    )


main()
