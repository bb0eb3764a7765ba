"""KV events as engines put them on the wire, and the byte fixtures of the field cases.

S (stored), R (removed) and CLEAR make one event in one of three eras:
  "array"  slots up to the medium: extra keys are not on the wire;
  "keys"   arrays with lora_name, extra_keys and group_idx;
  "map"    maps that leave absent fields out.
"""

import time

import msgpack

A, B, C, D = ([4 * i + 1, 4 * i + 2, 4 * i + 3, 4 * i + 4] for i in range(4))
ERAS = ("array", "keys", "map")

FX5 = bytes.fromhex(
    "93cb3ff00000000000009197ab426c6f636b53746f72656491cfdab89baa7b5857c0c0940102030404c0a34750"
    "5500"
)
FX6 = bytes.fromhex(
    "93cb3ff00000000000009193ac426c6f636b52656d6f76656491d3dab89baa7b5857c0a347505500"
)
FX7 = bytes.fromhex(
    "93cb3ff00000000000009197ab426c6f636b53746f72656491c420000102030405060708090a0b0c0d0e0f1011"
    "12131415161718191a1b1c1d1e1fc0940102030404c0a347505500"
)
FX8 = bytes.fromhex(
    "93cb3ff00000000000009397ab426c6f636b53746f726564910bc0940102030404c0a347505597ab426c6f636b"
    "53746f726564c0c0940506070804c0a347505597ab426c6f636b53746f726564910c0b940506070804c0a34750"
    "5500"
)
FX9 = bytes.fromhex("93cb3ff00000000000009191b0416c6c426c6f636b73436c656172656400")


def _set(target, **fields):
    target.update((name, value) for name, value in fields.items() if value is not None)
    return target


def S(
    h,
    t,
    p=None,
    medium="GPU",
    era="array",
    block_size=4,
    lora_id=None,
    lora_name=None,
    extra_keys=None,
    group=None,
    kind=None,
):
    if era == "map":
        event = {
            "type": "BlockStored",
            "block_hashes": h,
            "parent_block_hash": p,
            "token_ids": t,
            "block_size": block_size,
            "lora_id": lora_id,
            "medium": medium,
            "lora_name": lora_name,
        }
        return _set(event, extra_keys=extra_keys, group_idx=group, kv_cache_spec_kind=kind)
    event = ["BlockStored", h, p, t, block_size, lora_id, medium]
    if era == "keys":
        event += [lora_name, extra_keys, group]
    else:
        assert lora_name is None and extra_keys is None and group is None, "no slot for it"
    assert kind is None, "only maps have it"
    return event


def R(h, medium="GPU", era="array", group=None):
    if era == "map":
        return _set({"type": "BlockRemoved", "block_hashes": h, "medium": medium}, group_idx=group)
    return ["BlockRemoved", h, medium] + ([group] if era == "keys" else [])


def CLEAR(era="array"):
    return {"type": "AllBlocksCleared"} if era == "map" else ["AllBlocksCleared"]


def batch(events, rank=0):
    """The payload of one frame: era B's envelope, which era C kept."""
    return msgpack.packb([time.time(), list(events), rank], use_bin_type=True)


def chain(start, count, tokens_from=1000, per_event=None, block_size=4, era="array"):
    """Events for one chain of `count` blocks named start, start+1, ..., and its tokens."""
    per_event = per_event or count
    tokens = list(range(tokens_from, tokens_from + count * block_size))
    events = []
    for first in range(0, count, per_event):
        names = list(range(start + first, start + min(first + per_event, count)))
        own = tokens[first * block_size : (first + len(names)) * block_size]
        events.append(
            S(names, own, p=start + first - 1 if first else None, block_size=block_size, era=era)
        )
    return events, tokens
