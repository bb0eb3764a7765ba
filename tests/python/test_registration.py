"""register and unregister: every field, every ValueError, every code."""

import pytest

from mooncake.conductor import (
    CONDUCTOR_UNAVAILABLE,
    INVALID_PARAMS,
    OK,
    SERVICE_NOT_FOUND,
    ConductorClient,
)

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1


def registered(client):
    result = client.list_services(detail=True)
    assert result["ret"] == OK
    (service,) = result["services"]
    return service


def test_the_published_example_registers(client, config):
    assert client.register(config) == OK, client.last_error


def test_every_field_arrives(client, config):
    config.update(
        replay_endpoint="tcp://127.0.0.1:5558",
        lora_name="l",
        tenant_id="t",
        dp_rank=3,
        cache_group=0,
        topic="kv",
    )
    assert client.register(config) == OK, client.last_error
    service = registered(client)
    assert service["ReplayEndpoint"] == "tcp://127.0.0.1:5558"
    assert (service["LoraName"], service["TenantID"], service["DPRank"]) == ("l", "t", 3)
    assert service["CacheGroup"] == 0
    assert service["Topic"] == "kv"


def test_the_defaults_are_the_published_ones(client, config):
    for key in ("publisher_type", "dp_rank"):
        del config[key]
    assert client.register(config) == OK, client.last_error
    service = registered(client)
    assert service["ReplayEndpoint"] == ""
    assert service["Type"] == "vLLM"
    assert service["LoraName"] == ""
    assert service["TenantID"] == "default"
    assert service["DPRank"] == 0
    assert service["CacheGroup"] is None


def test_empty_tenant_and_no_group_are_the_defaults(client, config):
    config.update(tenant_id="", cache_group=None)
    assert client.register(config) == OK, client.last_error
    service = registered(client)
    assert service["TenantID"] == "default"
    assert service["CacheGroup"] is None


@pytest.mark.parametrize("algorithm", ["sha256", "sha256_cbor"])
@pytest.mark.parametrize("seed", ["0", "4294967295", "random"])
def test_the_vllm_recipes_register(client, config, algorithm, seed):
    config["hash_profile"].update(algorithm=algorithm, python_hash_seed=seed)
    assert client.register(config) == OK, client.last_error
    assert registered(client)["HashProfile"]["python_hash_seed"] == seed


@pytest.mark.parametrize("strategy", ["sglang", "sglang_bigram"])
def test_the_sglang_recipes_register_without_a_seed(client, config, strategy):
    config["publisher_type"] = "SGLang"
    config["hash_profile"] = {
        "strategy": strategy,
        "algorithm": "sha256_raw",
        "index_projection": "first64_be",
    }
    assert client.register(config) == OK, client.last_error
    assert registered(client)["HashProfile"] == {
        "strategy": strategy,
        "algorithm": "sha256_raw",
        "python_hash_seed": "0",
        "root_digest": "0" * 64,
        "index_projection": "first64_be",
    }


def test_a_pool_registers_with_its_parts(client, config):
    del config["instance_id"]
    config.update(publisher_type="Mooncake", pool_parts={"tp": 8, "kv": 2})
    assert client.register(config) == OK, client.last_error
    service = registered(client)
    assert service["Type"] == "Mooncake"
    assert service["PoolParts"] == {"tp": 8, "kv": 2}


def test_the_same_again_is_ok_and_a_conflict_is_invalid(client, config):
    assert client.register(config) == OK
    assert client.register(config) == OK
    assert client.list_services()["count"] == 1
    config["endpoint"] = "tcp://127.0.0.1:5559"
    assert client.register(config) == INVALID_PARAMS
    assert "endpoint" in client.last_error


@pytest.mark.parametrize(
    "key", ["instance_id", "endpoint", "model_name", "block_size", "hash_profile"]
)
def test_a_missing_required_field_is_invalid_params(client, config, key):
    del config[key]
    assert client.register(config) == INVALID_PARAMS
    assert client.last_error


@pytest.mark.parametrize("key", ["strategy", "algorithm", "index_projection", "python_hash_seed"])
def test_a_missing_part_of_the_recipe_is_invalid_params(client, config, key):
    del config["hash_profile"][key]
    assert client.register(config) == INVALID_PARAMS


@pytest.mark.parametrize(
    "key, value",
    [
        ("endpoint", ""),
        ("model_name", ""),
        ("instance_id", ""),
        ("block_size", 0),
        ("block_size", -1),
        ("block_size", INT64_MIN),
        ("block_size", INT64_MAX),
        ("dp_rank", -1),
        ("dp_rank", INT64_MAX),
        ("cache_group", 1),
        ("cache_group", -1),
    ],
)
def test_wrong_values_are_judged_by_the_server(client, config, key, value):
    config[key] = value
    assert client.register(config) == INVALID_PARAMS
    assert client.list_services()["count"] == 0


@pytest.mark.parametrize(
    "key, value",
    [
        ("strategy", "vllm_v2"),
        ("algorithm", "sha256_raw"),
        ("algorithm", "md5"),
        ("index_projection", "first64_be"),
        ("python_hash_seed", "-1"),
        ("python_hash_seed", "4294967296"),
        ("python_hash_seed", "x"),
    ],
)
def test_an_unsupported_recipe_is_invalid_params(client, config, key, value):
    config["hash_profile"][key] = value
    assert client.register(config) == INVALID_PARAMS


@pytest.mark.parametrize("wrong", [None, [], "x", [("endpoint", "tcp://a:1")], 5])
def test_a_config_that_is_no_dict_is_a_value_error(offline, wrong):
    with pytest.raises(ValueError):
        offline.register(wrong)


@pytest.mark.parametrize("key", ["modelname", "type", "root_digest", "Endpoint", "", 5, None, b"x"])
def test_an_unknown_or_non_text_key_is_a_value_error(offline, config, key):
    config[key] = "x"
    with pytest.raises(ValueError):
        offline.register(config)


@pytest.mark.parametrize("key", ["root_digest", "seed", "", 5, None])
def test_an_unknown_key_of_the_recipe_is_a_value_error(offline, config, key):
    config["hash_profile"][key] = "x"
    with pytest.raises(ValueError):
        offline.register(config)


TEXTS = ["instance_id", "endpoint", "model_name", "replay_endpoint", "publisher_type", "lora_name",
         "tenant_id", "topic", "snapshot_endpoint"]


@pytest.mark.parametrize("value", [None, 5, b"x", True, ["x"], "bad\udc80"])
@pytest.mark.parametrize("key", TEXTS)
def test_a_text_of_another_type_is_a_value_error(offline, config, key, value):
    config[key] = value
    with pytest.raises(ValueError):
        offline.register(config)


@pytest.mark.parametrize("value", ["16", 16.0, True, False, [1], INT64_MAX + 1, INT64_MIN - 1])
@pytest.mark.parametrize("key", ["block_size", "dp_rank", "cache_group"])
def test_an_integer_of_another_type_or_size_is_a_value_error(offline, config, key, value):
    config[key] = value
    with pytest.raises(ValueError, match=key):
        offline.register(config)


@pytest.mark.parametrize("key", ["block_size", "dp_rank"])
def test_only_the_cache_group_may_be_none(offline, config, key):
    config[key] = None
    with pytest.raises(ValueError, match=key):
        offline.register(config)


@pytest.mark.parametrize("value", [None, [], "vllm_v1", {"strategy": 5}, {"strategy": None},
                                   {"python_hash_seed": 0}])
def test_a_recipe_of_another_type_is_a_value_error(offline, config, value):
    config["hash_profile"] = value
    with pytest.raises(ValueError, match="hash_profile"):
        offline.register(config)


@pytest.mark.parametrize("value", [None, [], {5: 1}, {"tp": "8"}, {"tp": True}, {"tp": 2**63}])
def test_pool_parts_of_another_type_are_a_value_error(offline, config, value):
    config["pool_parts"] = value
    with pytest.raises(ValueError, match="pool_parts"):
        offline.register(config)


@pytest.mark.parametrize("value", ["vllm", "VLLM", "sglang", "mooncake", "", "other"])
def test_an_unknown_publisher_type_is_a_value_error(offline, config, value):
    config["publisher_type"] = value
    with pytest.raises(ValueError, match="publisher_type"):
        offline.register(config)


def test_value_errors_come_before_the_connection(config):
    with pytest.raises(ValueError):
        ConductorClient().register({"unknown": 1})
    assert ConductorClient().register(config) == CONDUCTOR_UNAVAILABLE


def test_the_config_is_not_changed(client, config):
    before = {**config, "hash_profile": dict(config["hash_profile"])}
    client.register(config)
    assert config == before


def test_unregister_names_the_whole_key(client, config):
    config.update(tenant_id="t", dp_rank=2)
    assert client.register(config) == OK
    assert client.unregister("vllm-0") == SERVICE_NOT_FOUND
    assert client.unregister("vllm-0", "t") == SERVICE_NOT_FOUND
    assert client.unregister("vllm-0", "other", 2) == SERVICE_NOT_FOUND
    assert client.unregister("vllm-0", tenant_id="t", dp_rank=2) == OK
    assert client.unregister("vllm-0", "t", 2) == SERVICE_NOT_FOUND


def test_an_empty_tenant_unregisters_the_default_one(client, config):
    assert client.register(config) == OK
    assert client.unregister("vllm-0", "") == OK


@pytest.mark.parametrize("rank", [-1, 2**40, 2**70])
def test_a_rank_that_cannot_be_is_invalid_params(client, rank):
    assert client.unregister("vllm-0", dp_rank=rank) == INVALID_PARAMS


def test_an_empty_instance_is_invalid_params(client):
    assert client.unregister("") == INVALID_PARAMS
    assert client.unregister("bad\udc80") == INVALID_PARAMS


@pytest.mark.parametrize("arguments", [(None,), (5,), ("i", None), ("i", "t", "0"), ("i", "t", True)])
def test_wrong_types_in_unregister_are_type_errors(offline, arguments):
    with pytest.raises(TypeError):
        offline.unregister(*arguments)
