"""Field cases of tiers and stores: copies on several tiers, and a publisher without a past."""

import time

import msgpack
import pytest

from e2e_publisher import Publisher
from e2e_wire import A, ERAS, R, S

# 0xdab89baa7b5857c0, and the same bits as the signed integer of the legacy list.
NAME, SIGNED = 15760518052499183552, -2686226021210368064


def tiers(daemon, tokens):
    row = daemon.ok(daemon.ask(tokens))["instances"]["i1"]
    return [row[name] for name in ("device", "cpu_local", "disk", "longest_matched")]


@pytest.mark.parametrize("era", ERAS)
def test_bl_27_removing_the_copy_on_one_tier_keeps_the_others(daemon, publisher, era):
    p = publisher()
    daemon.register(p)
    expected = []
    for event, counts in (
        (S([1], A, medium="GPU", era=era), [4, 4, 4, 4]),
        (S([1], A, medium="CPU", era=era), [4, 4, 4, 4]),
        (S([1], A, medium="STORAGE", era=era), [4, 4, 4, 4]),
        (R([1], "GPU", era=era), [0, 4, 4, 4]),
        (R([1], "CPU", era=era), [0, 0, 4, 4]),
        (R([1], "STORAGE", era=era), [0, 0, 0, 0]),
    ):
        p.send(event)
        expected.append(counts)
        daemon.wait_seq(len(expected) - 1)
        assert tiers(daemon, A) == counts
    p.send(S([2], A, medium="GPU", era=era))
    p.send(R([2], "CPU", era=era))
    daemon.wait_seq(7)
    assert tiers(daemon, A) == [4, 4, 4, 4], "it was only ever on the device"
    assert daemon.counter("remove_unknown_total") == 1
    daemon.restart()
    assert tiers(daemon, A) == [4, 4, 4, 4]


def object_event(event_id, now_ms, **more):
    """The first era of a store's master: hashes beside, or only, the object's key."""
    return {
        "event_id": event_id,
        "timestamp": now_ms,
        "event_type": "stored",
        "type": "BlockStored",
        "model_name": None,
        "block_size": None,
        "tenant_id": "default",
        "backend_id": "n1",
        "group_id": None,
        "medium": "cpu",
        "dp_rank": None,
        **more,
    }


def test_bl_10_a_store_has_gaps_and_no_past(daemon, publisher):
    engine = publisher()
    daemon.register(engine)
    store = Publisher(replay=False)
    try:
        store.next_seq = 1
        daemon.register(store, "pool", type="Mooncake")
        now_ms = int(time.time() * 1000)

        def send(seq, *events):
            payload = msgpack.packb([now_ms, list(events), 0], use_bin_type=True)
            store.send_payload(payload, ring=False, seq=seq)

        send(1, object_event(1, now_ms, seq_hashes=[NAME], block_hashes=[SIGNED]))
        daemon.wait_seq(1, "pool")
        send(
            5,
            object_event(2, now_ms, seq_hashes=[], block_hashes=[], object_key="m@k@0"),
            object_event(3, now_ms, seq_hashes=[7], block_hashes=[7]),
        )
        daemon.wait_seq(5, "pool")
        service = daemon.service("pool")
        assert service["LostRanges"] == [[2, 4]] and service["StreamState"] == "degraded"
        counters = service["Counters"]
        assert counters["lost_total"] == 3
        assert counters["blocks_stored_total"] == 2, "two spellings are one block; the rest applies"
        assert counters["ignored_unparsable_key_total"] == 1
        assert counters["replay_requests_total"] == 0 and counters["replay_failures_total"] == 0
        assert daemon.service()["StreamState"] == "live", "no engine stream is degraded"
        assert "replay" not in service["LastError"]

        # The block of that name, whichever way it is spelled.
        engine.send(S([NAME], A))
        daemon.wait_seq(0)
        row = daemon.ok(daemon.ask(A))["instances"]["i1"]
        assert (row["device"], row["cpu_share"]) == (4, 4)
        engine.send(R([NAME]))
        daemon.wait_seq(1)
        answer = daemon.post(
            "/query_by_hash", {"model": "m", "block_size": 4, "seq_hashes": [SIGNED]}
        )
        row = daemon.ok(answer)["instances"]["i1"]
        assert (row["device"], row["cpu_share"]) == (0, 4)
        assert answer.headers["Conductor-Degraded"] == "i1", "it rests on the pool alone"
    finally:
        store.stop()
