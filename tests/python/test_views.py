"""get_global_view and list_services: the published keys and types, exactly."""

from mooncake.conductor import OK

RECIPE_KEYS = {"strategy", "algorithm", "python_hash_seed", "root_digest", "index_projection"}


def test_an_empty_server_has_empty_views(client):
    assert client.get_global_view() == {"ret": OK, "context_count": 0, "contexts": []}
    assert client.list_services() == {"ret": OK, "count": 0, "services": []}


def test_the_global_view_has_exactly_the_published_shape(client, config):
    for rank in (0, 1):
        config.update(dp_rank=rank, endpoint=f"tcp://127.0.0.1:{6000 + rank}")
        assert client.register(config) == OK
    view = client.get_global_view()
    (context,) = view["contexts"]
    assert set(view) == {"ret", "context_count", "contexts"}
    assert (view["ret"], view["context_count"]) == (OK, 1)
    profile = context.pop("hash_profile")
    assert context == {
        "model_name": "my-model",
        "lora_name": "",
        "block_size": 16,
        "tenant_id": "default",
        "prefix_count": 7,
        "instances": {"vllm-0": {0, 1}},
    }
    assert isinstance(context["instances"]["vllm-0"], set)
    assert set(profile) == RECIPE_KEYS
    assert all(isinstance(value, str) for value in profile.values())
    assert len(profile["root_digest"]) == 64


def test_a_service_has_exactly_the_published_shape(client, config):
    assert client.register(config) == OK
    result = client.list_services()
    (service,) = result["services"]
    assert set(result) == {"ret", "count", "services"}
    assert result["count"] == 1
    profile = service.pop("HashProfile")
    assert service == {
        "Endpoint": "tcp://127.0.0.1:5557",
        "ReplayEndpoint": "",
        "Type": "vLLM",
        "ModelName": "my-model",
        "LoraName": "",
        "TenantID": "default",
        "InstanceID": "vllm-0",
        "BlockSize": 16,
        "DPRank": 0,
        "CacheGroup": None,
    }
    assert set(profile) == RECIPE_KEYS


def test_detail_adds_what_http_adds(client, config):
    assert client.register(config) == OK
    (service,) = client.list_services(detail=True)["services"]
    assert service["StreamState"] == "degraded"
    assert service["Epoch"] == 2
    assert service["LastSeq"] == 9
    assert service["HistoryFrom"] is None
    assert service["LostRanges"] == [[4, 6]]
    assert service["HashCheck"] == "verified"
    assert service["LastFrameAgeMs"] == 12
    assert service["DisconnectedForMs"] == -1
    assert service["LastError"] == "connection refused"
    assert service["Counters"] == {"frames_total": 3, "blocks_stored_total": 5}
    assert service["Topic"] is None
    assert service["SnapshotEndpoint"] == ""
    assert service["PoolParts"] == {}
