"""The native module behind mooncake.conductor. Private: shapes may change with it."""

from typing import Any, Dict, List, Optional, Tuple

# (grpc code, reason, field, message)
_Failure = Tuple[int, str, str, str]

class TokenIds:
    def __init__(self, source: object) -> None: ...
    def __len__(self) -> int: ...
    @property
    def problem(self) -> str: ...

class Client:
    def query(
        self,
        tokens: TokenIds,
        model_name: str,
        lora_name: str,
        tenant_id: str,
        cache_salt: str,
        instance_filter: str,
        block_size: int,
        extra_keys: List[List[Any]],
        top_k: int,
        min_tokens: int,
        detail: bool,
        /,
    ) -> Tuple[Optional[_Failure], Dict[str, Any]]: ...
    def register(self, fields: Dict[str, Any]) -> Tuple[Optional[_Failure], str]: ...
    def unregister(
        self, instance_id: str, tenant_id: str, dp_rank: int
    ) -> Tuple[Optional[_Failure], str]: ...
    def probe(self) -> Tuple[Optional[_Failure], int]: ...
    def list_services(
        self, detail: bool
    ) -> Tuple[Optional[_Failure], List[Dict[str, Any]]]: ...
    def get_global_view(self) -> Tuple[Optional[_Failure], List[Dict[str, Any]]]: ...

def connect(
    address: str, connect_timeout_ms: int, request_timeout_ms: int
) -> Tuple[Optional[_Failure], Optional[Client]]: ...
