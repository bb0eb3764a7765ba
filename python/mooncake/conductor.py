"""Client of Conductor, the index of which engine instance holds which KV cache blocks.

    from mooncake.conductor import ConductorClient, OK

    with ConductorClient() as client:
        if client.setup("127.0.0.1:50052") != OK:
            raise RuntimeError(client.last_error)
        result = client.query("my-model", block_size=16, token_ids=list(range(32)))
        print(result["ret"], result["hits"])

Calls return codes (or dicts with a code under ``ret``); they do not raise for anything that the
network or the server does. They raise TypeError or ValueError for wrong Python types, as each
method says. All counts are in tokens.

Threads and processes: a client may be shared by any number of threads, and every call releases the
GIL while it waits. After ``os.fork()`` a client made by the parent works in the child: the child's
calls open connections of their own.
"""

import operator
import threading

try:
    from mooncake import _conductor
except ImportError as error:
    raise ImportError(
        "mooncake.conductor: this installation has no Conductor support: the native extension "
        f"mooncake._conductor cannot be imported ({error}). Install a Mooncake package with "
        "Conductor support for this Python version, or rebuild with -DWITH_CONDUCTOR=ON."
    ) from error

__all__ = [
    "ConductorClient",
    "OK",
    "INTERNAL_ERROR",
    "INVALID_PARAMS",
    "RPC_FAIL",
    "RPC_TIMEOUT",
    "CONDUCTOR_UNAVAILABLE",
    "SERVICE_NOT_FOUND",
    "HEALTH_OK",
    "HEALTH_NOT_INITIALIZED",
    "HEALTH_UNREACHABLE",
]

OK = 0
INTERNAL_ERROR = -1
INVALID_PARAMS = -600
RPC_FAIL = -900
RPC_TIMEOUT = -901
CONDUCTOR_UNAVAILABLE = -2000
SERVICE_NOT_FOUND = -2001

HEALTH_OK = 0
HEALTH_NOT_INITIALIZED = 1
HEALTH_UNREACHABLE = 2

# Status codes of gRPC that have a return code of their own.
_INVALID_ARGUMENT = 3
_DEADLINE_EXCEEDED = 4
_NOT_FOUND = 5
_UNAVAILABLE = 14

_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1
_UINT32_MAX = 2**32 - 1
_UINT64_MAX = 2**64 - 1
_TIMEOUT_MS_MAX = 2**31 - 1

_PUBLISHER_TYPES = ("vLLM", "SGLang", "Mooncake")
_PROFILE_KEYS = ("strategy", "algorithm", "python_hash_seed", "index_projection")
# Key of register() -> field of the server's registration.
_TEXT_KEYS = {
    "instance_id": "instance_id",
    "endpoint": "endpoint",
    "model_name": "modelname",
    "replay_endpoint": "replay_endpoint",
    "publisher_type": "type",
    "lora_name": "lora_name",
    "tenant_id": "tenant_id",
    "topic": "topic",
    "snapshot_endpoint": "snapshot_endpoint",
}
_INTEGER_KEYS = ("block_size", "dp_rank", "cache_group")
_CONFIG_KEYS = (*_TEXT_KEYS, *_INTEGER_KEYS, "hash_profile", "pool_parts")

# The texts of a query, in the order in which they are judged and handed over.
_QUERY_TEXTS = ("model_name", "lora_name", "tenant_id", "cache_salt", "instance_filter")

_NOT_CONNECTED = "not connected: call setup() first"


def _return_code(failure):
    code, reason, _, _ = failure
    if code == _DEADLINE_EXCEEDED:
        return RPC_TIMEOUT
    if reason == "not_ready":
        return CONDUCTOR_UNAVAILABLE
    if code == _INVALID_ARGUMENT or reason == "too_large":
        return INVALID_PARAMS
    if code == _NOT_FOUND:
        return SERVICE_NOT_FOUND
    if code == _UNAVAILABLE:
        return RPC_FAIL
    return INTERNAL_ERROR


def _type_name(value):
    return type(value).__name__


def _text(name, value):
    if not isinstance(value, str):
        raise TypeError(f"{name}: expected str, got {_type_name(value)}")
    return value


def _integer(name, value):
    """An int or what stands for one (numpy's integers), never a bool."""
    if type(value) is int:
        return value
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}: expected int, got {_type_name(value)}")
    return operator.index(value)


def _int64(name, value):
    number = _integer(name, value)
    if not _INT64_MIN <= number <= _INT64_MAX:
        raise ValueError(f"{name}: expected a signed 64-bit integer, got {number}")
    return number


def _is_utf8(*texts):
    """False for texts with lone surrogates: no byte on the wire stands for them."""
    try:
        for text in texts:
            if not text.isascii():
                text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _extra_keys(blocks):
    """Checks and copies: for each block its list of str, int, bytes or (str, int)."""
    if not isinstance(blocks, (list, tuple)):
        raise TypeError(f"extra_keys: expected a list of lists, got {_type_name(blocks)}")
    checked = []
    for index, keys in enumerate(blocks):
        name = f"extra_keys[{index}]"
        if not isinstance(keys, (list, tuple)):
            raise TypeError(f"{name}: expected a list, got {_type_name(keys)}")
        block = []
        for key in keys:
            if isinstance(key, tuple) and len(key) == 2:
                block.append((_text(name, key[0]), _int64(name, key[1])))
            elif isinstance(key, (str, bytes)):
                block.append(key)
            else:
                block.append(_int64(name, key))
        checked.append(block)
    return checked


def _checked_keys(name, mapping, known):
    if not isinstance(mapping, dict):
        raise ValueError(f"{name}: expected a dict, got {_type_name(mapping)}")
    for key in mapping:
        if not isinstance(key, str):
            raise ValueError(f"{name}: expected str keys, got {key!r}")
        if known is not None and key not in known:
            raise ValueError(f"{name}: unknown key {key!r}, expected one of {', '.join(known)}")
    return mapping


def _config_text(name, value):
    if not isinstance(value, str):
        raise ValueError(f"{name}: expected str, got {_type_name(value)}")
    if not _is_utf8(value):
        raise ValueError(f"{name}: the text cannot be encoded as UTF-8")
    return value


def _config_integer(name, value):
    try:
        return _int64(name, value)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _registration(config):
    """The server's fields for a register() config, or ValueError."""
    _checked_keys("config", config, _CONFIG_KEYS)
    fields = {"type": "vLLM", "dp_rank": 0}
    for key, field in _TEXT_KEYS.items():
        if key in config:
            fields[field] = _config_text(key, config[key])
    if fields["type"] not in _PUBLISHER_TYPES:
        raise ValueError(
            f"publisher_type: expected one of {', '.join(_PUBLISHER_TYPES)}, got {fields['type']!r}"
        )
    for key in _INTEGER_KEYS:
        if key in config and not (key == "cache_group" and config[key] is None):
            fields[key] = _config_integer(key, config[key])
    if "hash_profile" in config:
        profile = _checked_keys("hash_profile", config["hash_profile"], _PROFILE_KEYS)
        fields["hash_profile"] = {
            key: _config_text(f"hash_profile.{key}", value) for key, value in profile.items()
        }
    if "pool_parts" in config:
        parts = _checked_keys("pool_parts", config["pool_parts"], None)
        fields["pool_parts"] = {
            _config_text("pool_parts", key): _config_integer(f"pool_parts.{key}", value)
            for key, value in parts.items()
        }
    return fields


class ConductorClient:
    """A connection to the RPC service of a ``mooncake_conductor`` process.

    A new client is not connected: call :meth:`setup`. Used in a ``with`` statement it is closed at
    the end; entering does not connect. Safe to share between threads; usable after ``fork()``.
    """

    def __init__(self):
        # Assigned whole and read once per call, both under the GIL: no lock, and so none that
        # could be held by another thread when the process forks.
        self._native = None
        self._failed = threading.local()

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback):
        self.close()

    @property
    def last_error(self):
        """Why the calling thread's last call on this client failed; ``""`` when it did not."""
        return getattr(self._failed, "text", "")

    def setup(self, conductor_addr, connect_timeout_ms=1000, request_timeout_ms=3000):
        """Connects to ``conductor_addr`` ("host:port", no URL scheme); returns a code.

        Waits at most ``connect_timeout_ms`` until the server is usable: a peer that accepts the
        connection and stays silent is RPC_FAIL. ``request_timeout_ms`` bounds every later call.
        Replaces an earlier connection; after a failure the client is not connected. May be called
        again at any time.

        Returns OK, INVALID_PARAMS (no host:port, or a timeout below 1 ms) or RPC_FAIL.
        Raises TypeError for wrong types; the client then keeps the connection it has.
        """
        _text("conductor_addr", conductor_addr)
        connect_ms = _integer("connect_timeout_ms", connect_timeout_ms)
        request_ms = _integer("request_timeout_ms", request_timeout_ms)
        self._native = None
        for name, value in (("connect_timeout_ms", connect_ms), ("request_timeout_ms", request_ms)):
            if not 1 <= value <= _TIMEOUT_MS_MAX:
                return self._fail(
                    INVALID_PARAMS, f"{name}: expected 1..{_TIMEOUT_MS_MAX}, got {value}"
                )
        if not _is_utf8(conductor_addr):
            return self._fail(INVALID_PARAMS, "conductor_addr: the text is not an address")
        failure, native = _conductor.connect(conductor_addr, connect_ms, request_ms)
        if failure is None:
            self._native = native
        return self._code(failure)

    def close(self):
        """Releases the connection; always OK. Publishers stay registered. May be repeated."""
        self._native = None
        self._failed.text = ""
        return OK

    def health_check(self):
        """HEALTH_OK, HEALTH_NOT_INITIALIZED (no successful setup) or HEALTH_UNREACHABLE."""
        native = self._native
        if native is None:
            self._failed.text = _NOT_CONNECTED
            return HEALTH_NOT_INITIALIZED
        failure, _ = native.probe()
        return HEALTH_OK if self._code(failure) == OK else HEALTH_UNREACHABLE

    def query(
        self,
        model_name,
        *,
        lora_name="",
        block_size,
        tenant_id="default",
        token_ids,
        cache_salt="",
        instance_filter="",
    ):
        """How many tokens of a prompt each instance has cached, from the prompt's start.

        model_name: nonempty, as registered. block_size: tokens per block, as registered.
        token_ids: a list or tuple of int, or a one-dimensional integer buffer (array.array, numpy,
        memoryview); a contiguous int32 buffer is sent without a copy per element and must not be
        changed during the call. Each id fits a signed 32-bit integer. lora_name: "" is the base
        model. tenant_id: "" is "default". cache_salt: as the publisher hashes it, "" is none.
        instance_filter: only this instance, "" is all of them.

        Returns ``{"ret": code, "hits": {...}}``. hits maps instance ids to ``longest_matched``,
        ``device``, ``cpu_local``, ``cpu_share``, ``disk`` (int, tokens, cumulative: each tier
        includes the ones before it), ``dp`` (rank as str -> device tokens) and ``rank_matches``
        (rank as str -> the four tiers). On failure ret is negative and hits is empty:
        INVALID_PARAMS for an empty model, a block size below 1 or a token outside int32;
        CONDUCTOR_UNAVAILABLE, RPC_TIMEOUT, RPC_FAIL, INTERNAL_ERROR.

        Raises TypeError for wrong types; a bool is no int.
        """
        ret, value = self._query(
            token_ids,
            model_name=model_name,
            lora_name=lora_name,
            block_size=block_size,
            tenant_id=tenant_id,
            cache_salt=cache_salt,
            instance_filter=instance_filter,
        )
        return {"ret": ret, "hits": value["hits"] if value else {}}

    def query_detailed(
        self,
        model_name,
        *,
        lora_name="",
        block_size,
        tenant_id="default",
        token_ids,
        cache_salt="",
        instance_filter="",
        extra_keys=(),
        top_k=0,
        min_tokens=0,
    ):
        """As :meth:`query`, with what the answer rests on.

        extra_keys: for each block the list of its extra keys in engine order, each a str, an int,
        (identifier, offset) of a multimodal item, or the 32 bytes of a prompt-embeds digest.
        top_k: at most so many instances, best first, 0 is all. min_tokens: only instances with at
        least so many tokens.

        Returns the keys of query() and ``log_seq`` (the log position the answer started from),
        ``degraded`` (list of instance ids whose stream is not live), ``context_known``, ``hint``
        (why nothing matched, else "") and ``nearest_contexts`` (list of dict). Each instance in
        hits also has ``stream_state``: "connecting", "catching_up", "live" or "degraded".
        """
        ret, value = self._query(
            token_ids,
            model_name=model_name,
            lora_name=lora_name,
            block_size=block_size,
            tenant_id=tenant_id,
            cache_salt=cache_salt,
            instance_filter=instance_filter,
            extra_keys=extra_keys,
            top_k=top_k,
            min_tokens=min_tokens,
            detail=True,
        )
        result = {"ret": ret, "hits": {}, "log_seq": 0, "degraded": [], "context_known": False}
        result.update(hint="", nearest_contexts=[])
        if value:
            result["hits"] = value["hits"]
            result.update(value["detail"])
        return result

    def register(self, config):
        """Subscribes the server to one publisher; returns a code.

        config keys: ``endpoint``, ``model_name``, ``block_size``, ``hash_profile`` (required),
        ``instance_id`` (required for vLLM and SGLang), ``replay_endpoint``, ``publisher_type``
        ("vLLM", "SGLang", "Mooncake"; default "vLLM"), ``lora_name``, ``tenant_id``, ``dp_rank``
        (default 0), ``cache_group`` (None or 0), ``topic``, ``snapshot_endpoint``, ``pool_parts``
        (dict of str to int). hash_profile keys: ``strategy``, ``algorithm``,
        ``python_hash_seed``, ``index_projection``, all str.

        The answer comes when the registration is on disk. Registering the identical configuration
        again is OK and changes nothing; a conflict is INVALID_PARAMS (see last_error).

        Raises ValueError when config is no dict, has unknown or non-string keys, a value of the
        wrong type (a bool is no int), an integer beyond 64 bits or an unknown publisher type.
        """
        fields = _registration(config)
        native = self._native
        if native is None:
            return self._fail(CONDUCTOR_UNAVAILABLE, _NOT_CONNECTED)
        failure, _ = native.register(fields)
        return self._code(failure)

    def unregister(self, instance_id, tenant_id="default", dp_rank=0):
        """Ends one subscription and forgets what it contributed; returns a code.

        Returns OK, SERVICE_NOT_FOUND, or another negative code. Raises TypeError for wrong types.
        """
        _text("instance_id", instance_id)
        _text("tenant_id", tenant_id)
        rank = _integer("dp_rank", dp_rank)
        native = self._native
        if native is None:
            return self._fail(CONDUCTOR_UNAVAILABLE, _NOT_CONNECTED)
        if not _INT64_MIN <= rank <= _INT64_MAX:
            return self._fail(INVALID_PARAMS, f"dp_rank: expected a rank, got {rank}")
        if not _is_utf8(instance_id, tenant_id):
            return self._fail(INVALID_PARAMS, "instance_id, tenant_id: not UTF-8")
        failure, _ = native.unregister(instance_id, tenant_id, rank)
        return self._code(failure)

    def get_global_view(self):
        """The indexed contexts: ``{"ret": code, "context_count": int, "contexts": list}``.

        Each context has ``model_name``, ``lora_name``, ``block_size``, ``tenant_id``,
        ``prefix_count``, ``hash_profile`` (dict of str, with ``root_digest``) and ``instances``
        (dict of instance id to the set of its registered ranks).
        """
        ret, contexts = self._read(lambda native: native.get_global_view())
        return {"ret": ret, "context_count": len(contexts), "contexts": contexts}

    def list_services(self, *, detail=False):
        """The registered publishers: ``{"ret": code, "count": int, "services": list}``.

        Each service has the keys ``Endpoint``, ``ReplayEndpoint``, ``Type``, ``ModelName``,
        ``LoraName``, ``TenantID``, ``InstanceID``, ``BlockSize``, ``DPRank``, ``CacheGroup`` (None
        or int) and ``HashProfile``; with ``detail`` also what HTTP's ``?detail=1`` adds
        (``StreamState``, ``LastSeq``, ``LostRanges``, ``HashCheck``, ``Counters``, ...).
        """
        ret, services = self._read(lambda native: native.list_services(bool(detail)))
        return {"ret": ret, "count": len(services), "services": services}

    def _query(
        self,
        token_ids,
        *,
        model_name,
        lora_name,
        block_size,
        tenant_id,
        cache_salt,
        instance_filter,
        extra_keys=(),
        top_k=0,
        min_tokens=0,
        detail=False,
    ):
        """(code, value); value is None unless the code is OK. Types are judged first."""
        texts = (model_name, lora_name, tenant_id, cache_salt, instance_filter)
        for name, value in zip(_QUERY_TEXTS, texts):
            if type(value) is not str:
                _text(name, value)
        size = _integer("block_size", block_size)
        best = _integer("top_k", top_k)
        least = _integer("min_tokens", min_tokens)
        tokens = _conductor.TokenIds(token_ids)
        problem = self._query_problem(texts, size, best, least) or tokens.problem
        try:
            keys = _extra_keys(extra_keys) if extra_keys else []
        except ValueError as error:
            problem = str(error)
        native = self._native
        if native is None:
            return self._fail(CONDUCTOR_UNAVAILABLE, _NOT_CONNECTED), None
        if problem:
            return self._fail(INVALID_PARAMS, problem), None
        failure, value = native.query(tokens, *texts, size, keys, best, least, detail)
        return self._code(failure), value

    @staticmethod
    def _query_problem(texts, block_size, top_k, min_tokens):
        if not texts[0]:
            return "model_name: expected a name, got an empty text"
        if not _is_utf8(*texts):
            return f"{', '.join(_QUERY_TEXTS)}: not UTF-8"
        if not 1 <= block_size <= _UINT32_MAX:
            return f"block_size: expected a positive number of tokens, got {block_size}"
        if not 0 <= top_k <= _UINT32_MAX:
            return f"top_k: expected 0 or more, got {top_k}"
        if not 0 <= min_tokens <= _UINT64_MAX:
            return f"min_tokens: expected 0 or more, got {min_tokens}"
        return ""

    def _read(self, call):
        native = self._native
        if native is None:
            return self._fail(CONDUCTOR_UNAVAILABLE, _NOT_CONNECTED), []
        failure, value = call(native)
        return self._code(failure), [] if failure else value

    def _code(self, failure):
        if failure is None:
            self._failed.text = ""
            return OK
        return self._fail(_return_code(failure), failure[3] or failure[1])

    def _fail(self, code, text):
        self._failed.text = text
        return code
