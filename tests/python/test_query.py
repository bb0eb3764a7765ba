"""query and query_detailed: what arrives, what comes back, what is refused and how."""

import array

import pytest

from mooncake.conductor import (
    CONDUCTOR_UNAVAILABLE,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    OK,
)

try:
    import numpy
except ImportError:
    numpy = None  # not a dependency; its arrays are tested where it is installed

INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


def echo(client, token_ids, **arguments):
    """What the server saw, as a dict of str."""
    result = client.query("echo", block_size=16, token_ids=token_ids, **arguments)
    assert result["ret"] == OK, client.last_error
    ((text, _),) = result["hits"].items()
    return dict(part.split("=", 1) for part in text.split(" "))


def test_the_answer_has_exactly_the_published_shape(client):
    assert client.query("ranks", block_size=16, token_ids=list(range(32))) == {
        "ret": OK,
        "hits": {
            "a": {
                "longest_matched": 48,
                "dp": {"0": 16, "1": 32},
                "rank_matches": {
                    "0": {"device": 16, "cpu_local": 32, "cpu_share": 32, "disk": 48},
                    "1": {"device": 32, "cpu_local": 32, "cpu_share": 32, "disk": 32},
                },
                "device": 32,
                "cpu_local": 32,
                "cpu_share": 32,
                "disk": 48,
            },
            "b": {
                "longest_matched": 0,
                "dp": {"0": 0},
                "rank_matches": {"0": {"device": 0, "cpu_local": 0, "cpu_share": 0, "disk": 0}},
                "device": 0,
                "cpu_local": 0,
                "cpu_share": 0,
                "disk": 0,
            },
        },
    }


def test_no_instance_is_ok_and_empty(client):
    assert client.query("empty", block_size=16, token_ids=[1]) == {"ret": OK, "hits": {}}


def test_the_defaults_arrive(client):
    seen = echo(client, [1, 2, 3])
    assert seen == {
        "n": "3",
        "sum": "6",
        "tenant": "default",
        "lora": "",
        "salt": "",
        "filter": "",
        "top_k": "0",
        "min_tokens": "0",
        "keys": "0",
    }


def test_every_argument_arrives(client):
    seen = echo(
        client, [1], lora_name="l", tenant_id="t", cache_salt="s\u00e9", instance_filter="i"
    )
    assert (seen["lora"], seen["tenant"], seen["salt"], seen["filter"]) == ("l", "t", "s\u00e9", "i")


def test_an_empty_tenant_is_the_default_one(client):
    assert echo(client, [], tenant_id="")["tenant"] == "default"


def test_all_but_the_model_is_keyword_only(offline):
    with pytest.raises(TypeError):
        offline.query("echo", "", 16, "default", [1])
    with pytest.raises(TypeError):
        offline.query("echo", token_ids=[1])
    with pytest.raises(TypeError):
        offline.query("echo", block_size=16)
    with pytest.raises(TypeError):
        offline.query("echo", block_size=16, token_ids=[1], top_k=1)


class Index:
    """What numpy's integers are: not int, but with __index__."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@pytest.mark.parametrize(
    "token_ids",
    [
        [5, -7, INT32_MAX, INT32_MIN],
        (5, -7, INT32_MAX, INT32_MIN),
        [Index(5), -7, Index(INT32_MAX), INT32_MIN],
        array.array("i", [5, -7, INT32_MAX, INT32_MIN]),
        array.array("q", [5, -7, INT32_MAX, INT32_MIN]),
        memoryview(array.array("i", [5, -7, INT32_MAX, INT32_MIN])),
        memoryview(array.array("i", [0, 5, -7, INT32_MAX, INT32_MIN, 0]))[1:5],
        memoryview(array.array("i", [5, 0, -7, 0, INT32_MAX, 0, INT32_MIN]))[::2],
        memoryview(array.array("i", [INT32_MIN, INT32_MAX, -7, 5]))[::-1],
    ],
    ids=["list", "tuple", "index", "int32", "int64", "view", "slice", "stride", "reversed"],
)
def test_every_form_of_tokens_arrives_whole(client, token_ids):
    seen = echo(client, token_ids)
    assert (seen["n"], seen["sum"]) == ("4", str(5 - 7 + INT32_MAX + INT32_MIN))


@pytest.mark.parametrize("code", "hHiIlLqQ")
def test_every_integer_buffer_arrives(client, code):
    assert echo(client, array.array(code, [1, 2, 3]))["sum"] == "6"


def test_a_range_is_tokens(client):
    assert echo(client, range(100))["sum"] == "4950"


def test_no_tokens_are_fine(client):
    assert echo(client, [])["n"] == "0"
    assert echo(client, array.array("i"))["n"] == "0"


def test_a_million_tokens_fit(client):
    assert echo(client, array.array("i", [1]) * 1_000_000)["sum"] == "1000000"
    assert echo(client, [1] * 1_000_000)["sum"] == "1000000"


def test_an_int32_buffer_is_held_only_during_the_call(client):
    tokens = array.array("i", [1, 2])
    echo(client, tokens)
    tokens.append(3)  # raises BufferError while it is exported


@pytest.mark.parametrize(
    "token_ids",
    [
        None,
        5,
        "12",
        b"\x01\x00\x00\x00",
        bytearray(4),
        {1, 2},
        {1: 2},
        iter([1]),
        [1.0],
        [1, None],
        ["1"],
        [True],
        (1, False),
        array.array("d", [1.0]),
        array.array("b", [1]),
        memoryview(bytes(8)),
        memoryview(bytes(16)).cast("i", (2, 2)),
        memoryview(bytes(8)).cast("?"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_wrong_types_of_tokens_are_type_errors(offline, token_ids):
    with pytest.raises(TypeError, match="token_ids"):
        offline.query("echo", block_size=16, token_ids=token_ids)


def test_a_broken_index_is_a_type_error(offline):
    with pytest.raises(TypeError, match=r"token_ids\[1\]"):
        offline.query("echo", block_size=16, token_ids=[1, Index("x")])


def test_a_list_that_shrinks_while_it_is_read_is_safe(client):
    tokens = [1, 2]

    class Clear:
        def __index__(self):
            tokens.clear()
            return 9

    tokens.insert(0, Clear())
    assert echo(client, tokens)["n"] == "1"


@pytest.mark.parametrize(
    "name, value",
    [
        ("lora_name", None),
        ("tenant_id", 5),
        ("cache_salt", b"s"),
        ("instance_filter", ["i"]),
        ("block_size", "16"),
        ("block_size", 16.0),
        ("block_size", True),
        ("block_size", None),
    ],
)
def test_wrong_types_are_type_errors(offline, name, value):
    with pytest.raises(TypeError, match=name):
        offline.query("echo", **{"block_size": 16, "token_ids": [1], name: value})


@pytest.mark.parametrize("model_name", [None, 5, b"m"])
def test_a_model_that_is_no_text_is_a_type_error(offline, model_name):
    with pytest.raises(TypeError, match="model_name"):
        offline.query(model_name, block_size=16, token_ids=[1])


@pytest.mark.parametrize(
    "arguments",
    [
        {"model_name": ""},
        {"model_name": "bad\udc80"},
        {"cache_salt": "bad\udc80"},
        {"block_size": 0},
        {"block_size": -16},
        {"block_size": 2**32},
        {"block_size": 2**70},
        {"block_size": -(2**70)},
        {"token_ids": [1, INT32_MAX + 1]},
        {"token_ids": [INT32_MIN - 1]},
        {"token_ids": [2**70]},
        {"token_ids": [-(2**70)]},
        {"token_ids": array.array("q", [1, 2**31])},
        {"token_ids": array.array("Q", [2**64 - 1])},
        {"token_ids": [0] * 1_000_001},
    ],
    ids=lambda value: repr(value)[:40],
)
def test_wrong_values_are_invalid_params(client, arguments):
    call = {"model_name": "echo", "block_size": 16, "token_ids": [1], **arguments}
    assert client.query(call.pop("model_name"), **call) == {"ret": INVALID_PARAMS, "hits": {}}
    assert client.last_error


def test_the_first_token_that_does_not_fit_is_named(client):
    client.query("echo", block_size=16, token_ids=[1, 2**31, 2**32])
    assert client.last_error == (
        "token_ids[1]: expected a signed 32-bit integer, got 2147483648"
    )


def test_a_wrong_type_after_a_wrong_value_is_still_a_type_error(offline):
    with pytest.raises(TypeError, match=r"token_ids\[1\]"):
        offline.query("echo", block_size=16, token_ids=[2**31, None])


def test_a_server_that_rebuilds_is_unavailable(client):
    assert client.query("not-ready", block_size=16, token_ids=[1]) == {
        "ret": CONDUCTOR_UNAVAILABLE,
        "hits": {},
    }


def test_a_failure_of_the_server_is_an_internal_error(client):
    assert client.query("internal", block_size=16, token_ids=[1]) == {
        "ret": INTERNAL_ERROR,
        "hits": {},
    }


def test_an_id_that_is_not_utf8_is_still_an_answer(client):
    assert list(client.query("bytes", block_size=16, token_ids=[])["hits"]) == ["bad\ufffdid"]


def test_detail_says_what_the_answer_rests_on(client):
    result = client.query_detailed("ranks", block_size=16, token_ids=[1])
    assert result["ret"] == OK
    assert result["log_seq"] == 42
    assert result["degraded"] == ["b"]
    assert result["context_known"] is True
    assert list(result["hits"]) == ["a", "b"], "best first"
    assert result["hits"]["a"]["stream_state"] == "live"
    assert result["hits"]["b"]["stream_state"] == "degraded"
    assert result["hits"]["a"]["dp"] == {"0": 16, "1": 32}


def test_detail_says_why_nothing_matched(client):
    assert client.query_detailed("empty", block_size=16, token_ids=[1]) == {
        "ret": OK,
        "hits": {},
        "log_seq": 42,
        "degraded": [],
        "context_known": False,
        "hint": "no context 'empty'",
        "nearest_contexts": [
            {"model_name": "ranks", "lora_name": "", "block_size": 16, "tenant_id": "default"}
        ],
    }


def test_detail_takes_limits_and_extra_keys(client):
    result = client.query_detailed(
        "echo",
        block_size=16,
        token_ids=[1],
        top_k=3,
        min_tokens=2**40,
        extra_keys=[["lora", 5, ("image", -3), bytes(32)], []],
    )
    assert result["ret"] == OK, client.last_error
    assert f"top_k=3 min_tokens={2**40} keys=2" in next(iter(result["hits"]))


@pytest.mark.parametrize(
    "arguments",
    [{"top_k": -1}, {"top_k": 2**32}, {"min_tokens": -1}, {"min_tokens": 2**64},
     {"extra_keys": [[2**63]]}, {"extra_keys": [[b"short"]]}],
)
def test_wrong_values_of_detail_are_invalid_params(client, arguments):
    result = client.query_detailed("echo", block_size=16, token_ids=[1], **arguments)
    assert result["ret"] == INVALID_PARAMS
    assert result["hits"] == {}
    assert result["log_seq"] == 0


@pytest.mark.parametrize(
    "arguments",
    [{"top_k": True}, {"min_tokens": 1.5}, {"extra_keys": "x"}, {"extra_keys": ["x"]},
     {"extra_keys": [[None]]}, {"extra_keys": [[True]]}, {"extra_keys": [[("i", "0")]]}],
)
def test_wrong_types_of_detail_are_type_errors(offline, arguments):
    with pytest.raises(TypeError):
        offline.query_detailed("echo", block_size=16, token_ids=[1], **arguments)


if numpy is not None:

    def test_numpy_arrays_are_tokens(client):
        for dtype in ("int32", "int64", "uint16"):
            assert echo(client, numpy.arange(10, dtype=dtype))["sum"] == "45"
        assert echo(client, list(numpy.arange(10)))["sum"] == "45"
        with pytest.raises(TypeError):
            client.query("echo", block_size=16, token_ids=numpy.zeros((2, 2), dtype="int32"))
