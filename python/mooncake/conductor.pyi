from types import TracebackType
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple, Type, Union

from typing_extensions import Buffer, Literal, SupportsIndex, TypedDict

OK: Literal[0]
INTERNAL_ERROR: Literal[-1]
INVALID_PARAMS: Literal[-600]
RPC_FAIL: Literal[-900]
RPC_TIMEOUT: Literal[-901]
CONDUCTOR_UNAVAILABLE: Literal[-2000]
SERVICE_NOT_FOUND: Literal[-2001]

HEALTH_OK: Literal[0]
HEALTH_NOT_INITIALIZED: Literal[1]
HEALTH_UNREACHABLE: Literal[2]

TokenIds = Union[Sequence[int], Buffer]
ExtraKey = Union[str, int, bytes, Tuple[str, int]]

class TierCounts(TypedDict):
    device: int
    cpu_local: int
    cpu_share: int
    disk: int

class InstanceHits(TierCounts):
    longest_matched: int
    dp: Dict[str, int]
    rank_matches: Dict[str, TierCounts]

class DetailedInstanceHits(InstanceHits):
    stream_state: str

class QueryResult(TypedDict):
    ret: int
    hits: Dict[str, InstanceHits]

class ContextName(TypedDict):
    model_name: str
    lora_name: str
    block_size: int
    tenant_id: str

class DetailedQueryResult(TypedDict):
    ret: int
    hits: Dict[str, DetailedInstanceHits]
    log_seq: int
    degraded: List[str]
    context_known: bool
    hint: str
    nearest_contexts: List[ContextName]

class HashProfile(TypedDict):
    strategy: str
    algorithm: str
    python_hash_seed: str
    root_digest: str
    index_projection: str

class Context(ContextName):
    prefix_count: int
    hash_profile: HashProfile
    instances: Dict[str, Set[int]]

class GlobalView(TypedDict):
    ret: int
    context_count: int
    contexts: List[Context]

class Service(TypedDict):
    Endpoint: str
    ReplayEndpoint: str
    Type: str
    ModelName: str
    LoraName: str
    TenantID: str
    InstanceID: str
    BlockSize: int
    DPRank: int
    CacheGroup: Optional[int]
    HashProfile: HashProfile

class ServiceList(TypedDict):
    ret: int
    count: int
    services: List[Service]

class ConductorClient:
    def __init__(self) -> None: ...
    def __enter__(self) -> ConductorClient: ...
    def __exit__(
        self,
        exc_type: Optional[Type[BaseException]],
        exc_value: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None: ...
    @property
    def last_error(self) -> str: ...
    def setup(
        self,
        conductor_addr: str,
        connect_timeout_ms: SupportsIndex = 1000,
        request_timeout_ms: SupportsIndex = 3000,
    ) -> int: ...
    def close(self) -> int: ...
    def health_check(self) -> int: ...
    def query(
        self,
        model_name: str,
        *,
        lora_name: str = "",
        block_size: SupportsIndex,
        tenant_id: str = "default",
        token_ids: TokenIds,
        cache_salt: str = "",
        instance_filter: str = "",
    ) -> QueryResult: ...
    def query_detailed(
        self,
        model_name: str,
        *,
        lora_name: str = "",
        block_size: SupportsIndex,
        tenant_id: str = "default",
        token_ids: TokenIds,
        cache_salt: str = "",
        instance_filter: str = "",
        extra_keys: Sequence[Sequence[ExtraKey]] = (),
        top_k: SupportsIndex = 0,
        min_tokens: SupportsIndex = 0,
    ) -> DetailedQueryResult: ...
    def register(self, config: Dict[str, Any]) -> int: ...
    def unregister(
        self, instance_id: str, tenant_id: str = "default", dp_rank: SupportsIndex = 0
    ) -> int: ...
    def get_global_view(self) -> GlobalView: ...
    def list_services(self, *, detail: bool = False) -> ServiceList: ...
