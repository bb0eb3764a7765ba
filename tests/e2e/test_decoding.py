"""Field cases of decoding: names of every shape, bad events among good ones, bombs."""

import pathlib

import pytest

from e2e_wire import A, B, C, D, ERAS, FX5, FX6, FX7, FX8, R, S

DIGEST_1 = bytes(range(32))
DIGEST_2 = b"\xff" + DIGEST_1[1:]  # differs in its first byte only


def ignored(daemon, reason, instance="i1"):
    return daemon.counter(f"ignored_{reason}_total", instance)


def test_bl_16_u64_and_negative_int64_are_the_same_bits(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    p1.send_payload(FX5)
    daemon.wait_matched(4, A)
    assert daemon.ctl("inspect", "block", "15760518052499183552")["holders"] != []
    p1.send_payload(FX6)
    daemon.wait_seq(1)
    assert daemon.matched(A) == 0
    assert daemon.counter("remove_unknown_total") == 0
    assert daemon.counter("decode_errors_total") == 0
    daemon.restart()
    assert daemon.matched(A) == 0


def test_bl_16_digests_are_compared_whole(daemon, publisher):
    p1, p2 = publisher(), publisher()
    daemon.register(p1, "i1").register(p2, "i2")
    p1.send_payload(FX5)
    p2.send_payload(FX7)
    p2.send(S([DIGEST_2], B))
    daemon.wait_seq(1, "i2")
    daemon.wait_matched(4, A, "i1")
    assert daemon.hits(A) == {"i1": 4, "i2": 4} and daemon.hits(B) == {"i1": 0, "i2": 4}
    p2.send(R([DIGEST_1]))
    daemon.wait_seq(2, "i2")

    def check():
        assert daemon.hits(A) == {"i1": 4, "i2": 0}, "names of publishers never mix"
        assert daemon.hits(B) == {"i1": 0, "i2": 4}, "the other digest is intact"

    check()
    daemon.restart()
    check()


def test_bl_17_one_bad_event_in_a_batch(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    p1.send_payload(FX8)  # good, bad, good
    p1.send_payload(b"\xff\xff\xff")
    p1.send(S([13], C, p=12))
    daemon.wait_matched(12, A + B + C)
    service = daemon.service()
    assert service["LastSeq"] == 2 and service["StreamState"] == "live"
    assert service["Counters"]["decode_errors_total"] == 2
    assert service["Counters"]["ignored_undecodable_frames_total"] == 1
    assert "frame 1" in service["LastError"]

    bad = [
        S([50], [-1, 2, 3, 4]),
        S([51], [2**32, 2, 3, 4]),
        S([52], A, block_size="4"),
        S([53, b"x" * 32], A + B),
        S([1.5], A),
    ]
    for event in bad:
        p1.send(event, S([14], D, p=13))
    p1.send(S([54], [1, 2, 3]))  # 3 tokens for a block of 4
    daemon.wait_seq(2 + len(bad) + 1)

    def check():
        assert daemon.matched(A + B + C + D) == 16
        assert daemon.counter("decode_errors_total") == 2 + len(bad)
        assert ignored(daemon, "ambiguous_length") == 1
        assert daemon.service()["Blocks"]["device"] == 4

    check()
    daemon.restart()
    check()
    daemon.verify()


def test_bl_19_hybrid_attention_groups(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    tokens = A + B + C + D
    p1.send(
        S([44], tokens, era="map", kind="mamba", group=0),
        S([41, 42, 43, 44], tokens, era="map", kind="full_attention", group=3),
    )
    daemon.wait_matched(16, tokens)
    p1.send(R([44], era="map", group=0))
    daemon.wait_seq(1)

    def check():
        assert daemon.matched(tokens) == 16
        assert daemon.matched(D) == 0
        assert ignored(daemon, "other_group") == 2

    check()
    daemon.restart()
    check()
    p1.send(R([44], era="map", group=3))
    daemon.wait_matched(12, tokens)


def test_bl_19_only_a_group_that_makes_no_prefix(daemon, publisher):
    p1 = publisher()
    daemon.register(p1)
    tokens = A + B + C + D
    p1.send(S([44], tokens, era="map", kind="mamba", group=0))
    daemon.wait_seq(0)
    assert [daemon.matched(prompt) for prompt in (tokens, D)] == [0, 0]
    assert ignored(daemon, "other_group") == 1


@pytest.mark.parametrize("era", ERAS)
def test_bl_19_the_ambiguous_one_is_rejected(daemon, publisher, era):
    p1 = publisher()
    daemon.register(p1)
    p1.send(S([1, 2, 3], A + B + C + D, era=era), S([9], B, era=era))
    daemon.wait_seq(0)
    assert daemon.matched(A + B + C + D) == 0 and daemon.matched(B) == 4
    assert ignored(daemon, "ambiguous_length") == 1


@pytest.mark.parametrize(
    "value, reason",
    [(None, "missing"), (0, "out_of_range"), (-1, "out_of_range"), ("64", "invalid_type"),
     (2**40, "out_of_range")],
)  # fmt: skip
def test_bl_20_a_bad_block_size_registers_nothing(daemon, publisher, value, reason):
    body = daemon.registration(publisher(), block_size=value)
    if value is None:
        del body["block_size"]
    answer = daemon.post("/register", body)
    assert answer.status == 400
    assert (answer.body["field"], answer.body["reason"]) == ("block_size", reason)
    assert daemon.ok(daemon.get("/services"))["count"] == 0
    assert daemon.global_view()["context_count"] == 0
    assert daemon.status()["log_last"] == 0


def test_bl_20_events_of_another_block_size(daemon, publisher):
    p1 = publisher()
    daemon.register(p1, block_size=64)
    tokens = list(range(64))
    p1.send(S([1, 2, 3, 4], tokens, block_size=16))
    daemon.wait_seq(0)

    def check():
        assert ignored(daemon, "block_size_mismatch") == 1
        assert daemon.matched(tokens, block_size=64) == 0
        unused = daemon.ok(daemon.ask(tokens, block_size=16, detail=True))
        assert unused["instances"] == {} and "block size 16" in unused["hint"]
        zero = daemon.ask(tokens, block_size=0)
        assert zero.status == 400 and zero.body["field"] == "block_size"

    check()
    error = daemon.service()["LastError"]
    assert "block size" in error and "64" in error and "16" in error
    findings = daemon.ctl("doctor", code=1)["findings"]
    assert any("block" in finding["code"] for finding in findings)
    daemon.restart()
    check()


def test_bl_21_lora_adapters(daemon, publisher):
    p1, p2 = publisher(), publisher()
    daemon.register(p1, "i1").register(p2, "i2")
    keys = [["ad-116"], ["ad-116"]]
    p1.send(
        S([1], A, era="keys"),
        S([2, 3], A + B, era="keys", lora_id=117, lora_name="ad-116", extra_keys=keys),
    )
    p2.send(S([2, 3], A + B, era="keys", lora_id=3, lora_name="ad-116", extra_keys=keys))
    daemon.wait_seq(0, "i1")
    daemon.wait_seq(0, "i2")

    def check(adapter):
        assert daemon.hits(A + B) == {"i1": 4, "i2": 0}
        assert daemon.hits(A + B, lora_name="ad-116") == {"i1": adapter, "i2": 8}
        assert daemon.hits(A + B, lora_name="ad-7") == {}
        both = daemon.ask(A + B, lora_name="ad-116", lora_id=4)
        assert both.status == 400 and both.body["field"] == "lora_id"

    check(8)
    daemon.restart()
    check(8)
    p1.send(R([2, 3], era="keys"))
    daemon.wait_seq(1)
    check(0)
    p1.send(S([5], A, era="keys", lora_id=9))
    daemon.wait_matched(4, A, lora_name="lora_id:9")
    assert daemon.matched(A) == 4


@pytest.mark.parametrize("era", ["keys", "map"])
def test_bl_23_tenant_salts(new_daemon, publisher, era):
    daemon = new_daemon(log_level="DEBUG")
    p1 = publisher()
    daemon.register(p1)
    p1.send(
        S([61], A, era=era, extra_keys=[["salt-T1"]]),
        S([62], A, era=era, extra_keys=[["salt-T2"]]),
    )
    daemon.wait_seq(0)

    def check(first):
        salts = [None, "salt-T1", "salt-T2", "salt-T3"]
        counts = [daemon.matched(A, **({"cache_salt": s} if s else {})) for s in salts]
        assert counts == [0, first, 4, 0]
        assert daemon.hits(A, cache_salt="salt-T1", tenant_id="other") == {}

    check(4)
    daemon.ctl("query", "--model", "m", "--block-size", "4", "--tokens", "1,2,3,4", "--salt",
               "salt-T1")  # fmt: skip
    daemon.restart()
    check(4)
    p1.send(R([61], era=era))
    daemon.wait_seq(1)
    check(0)

    spoken = [daemon.log(), daemon.get("/metrics").body]
    spoken += [str(daemon.get(path).body) for path in ("/global_view", "/services?detail=1")]
    for command in (["status"], ["services"], ["view"], ["inspect", "log"], ["inspect", "streams"],
                    ["inspect", "contexts"], ["inspect", "block", "62"]):  # fmt: skip
        spoken.append(str(daemon.ctl(*command)))
    assert not any("salt-T" in text for text in spoken)
    daemon.stop()
    assert salts_on_disk(daemon.data_dir) == []
    daemon.start()


def salts_on_disk(directory):
    files = [path for path in pathlib.Path(directory).rglob("*") if path.is_file()]
    assert files
    return [str(path) for path in files if b"salt-T" in path.read_bytes()]
