// The configuration file: what is accepted, and above all what is refused and how it is named.
#include "cli/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "cli/config_limits.h"
#include "cli/registration_json.h"
#include "cli/text.h"

namespace conductor::cli {
namespace {

using testing::HasSubstr;

constexpr char kPublisher[] = R"({"endpoint": "tcp://127.0.0.1:5557", "type": "vLLM",
  "modelname": "m", "instance_id": "vllm-0", "block_size": 16, "dp_rank": 0,
  "hash_profile": {"strategy": "vllm_v1", "algorithm": "sha256_cbor", "python_hash_seed": "0",
                   "index_projection": "low64_be"}})";

using Edits = std::vector<std::pair<std::string, std::string>>;

// kPublisher with the first occurrence of each text replaced.
std::string Publisher(const Edits& edits) {
  std::string text = kPublisher;
  for (const auto& [from, to] : edits) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  return text;
}
std::string Publisher(const std::string& from, const std::string& to) {
  return Publisher(Edits{{from, to}});
}

std::string Two(const std::string& second) {
  return std::string(R"({"kvevent_instance": {"one": )") + kPublisher + R"(, "two": )" + second +
         "}}";
}

std::string Static(const std::string& publisher) {
  return R"({"kvevent_instance": {"one": )" + publisher + "}}";
}

struct Refusal {
  const char* name;
  std::string text;
  std::string field;    // what the error names
  std::string message;  // what the text must say
};

void PrintTo(const Refusal& refusal, std::ostream* out) {
  *out << refusal.name;
}

class ConfigRefusalTest : public testing::TestWithParam<Refusal> {};

TEST_P(ConfigRefusalTest, IsRefusedByName) {
  const auto config = ParseConfig(GetParam().text);
  ASSERT_FALSE(config.has_value()) << GetParam().text;
  EXPECT_EQ(config.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(config.error().field, GetParam().field) << config.error().message;
  EXPECT_THAT(config.error().message, HasSubstr(GetParam().message));
}

const Refusal kRefusals[] = {
    {"Empty", "", "", "not JSON"},
    {"Truncated", R"({"http_server_port": )", "", "line 1"},
    {"TrailingText", "{} x", "", "not JSON"},
    {"Comment", "{} // x", "", "not JSON"},
    {"TooDeep", std::string(100, '[') + std::string(100, ']'), "", "nested deeper than 16"},
    {"Array", "[]", "", "expected an object, got an array"},
    {"KeyTwice", R"({"rpc_server_port": 1, "rpc_server_port": 2})", "rpc_server_port",
     "comes twice"},
    {"UnknownKey", R"({"http_sever_port": 1})", "http_sever_port",
     "the nearest known one is http_server_port"},
    {"UnknownKeyOfCase", R"({"Data_Dir": "/x"})", "Data_Dir", "known one is data_dir"},
    {"PortNegative", R"({"http_server_port": -1})", "http_server_port", "0..65535, got -1"},
    {"PortTooLarge", R"({"http_server_port": 65536})", "http_server_port", "got 65536"},
    {"PortHuge", R"({"rpc_server_port": 18446744073709551615})", "rpc_server_port", "0..65535"},
    {"PortText", R"({"rpc_server_port": "50052"})", "rpc_server_port", "got text '50052'"},
    {"PortFraction", R"({"rpc_server_port": 50052.0})", "rpc_server_port", "fraction"},
    {"PortBool", R"({"rpc_server_port": true})", "rpc_server_port", "got true"},
    {"PortNull", R"({"rpc_server_port": null})", "rpc_server_port", "got null"},
    {"PortsEqual", R"({"rpc_server_port": 80, "http_server_port": 80})", "rpc_server_port",
     "expected another one"},
    {"AddressEmpty", R"({"listen_address": ""})", "listen_address", "empty"},
    {"AddressUrl", R"({"listen_address": "http://0.0.0.0"})", "listen_address", "URL"},
    {"AddressWithPort", R"({"listen_address": "0.0.0.0:80"})", "listen_address", "key of its own"},
    {"AddressStar", R"({"listen_address": "*"})", "listen_address", "got '*'"},
    {"DataDirEmpty", R"({"data_dir": ""})", "data_dir", "expected a path"},
    {"DataDirNumber", R"({"data_dir": 7})", "data_dir", "expected text, got 7"},
    {"UnverifiedWord", R"({"unverified_blocks": "names"})", "unverified_blocks",
     "content, name_only, got 'names'"},
    {"SyncWord", R"({"log_sync": "Always"})", "log_sync", "always, interval, never"},
    {"SyncIntervalZero", R"({"log_sync_interval_ms": 0})", "log_sync_interval_ms", "1..60000"},
    {"LostWord", R"({"on_lost_events": true})", "on_lost_events", "expected text, got true"},
    {"DropNegative", R"({"disconnected_drop_s": -1})", "disconnected_drop_s", "got -1"},
    {"SnapshotText", R"({"snapshot_interval_s": "1"})", "snapshot_interval_s", "integer"},
    {"Auth", R"({"auth": {}})", "auth", "unsupported"},
    {"Tls", R"({"tls": null})", "tls", "unsupported"},
    {"AllowedEndpoints", R"({"allowed_endpoints": []})", "allowed_endpoints", "unsupported"},
    {"SnapshotEventsNegative", R"({"snapshot_interval_events": -1})", "snapshot_interval_events",
     "got -1"},
    {"SnapshotEventsFraction", R"({"snapshot_interval_events": 0.5})", "snapshot_interval_events",
     "integer"},
    {"SnapshotSecondsTooMany", R"({"snapshot_interval_s": 315360001})", "snapshot_interval_s",
     "0..315360000"},
    {"MaxBlocks", R"({"limits": {"max_blocks": 999}})", "limits.max_blocks",
     "expected 0 (no cap) or at least 1000, got 999"},
    {"MaxBytes", R"({"limits": {"max_bytes": 16777215}})", "limits.max_bytes",
     "expected 0 (no cap) or at least 16777216, got 16777215"},
    {"MaxBlocksNegative", R"({"limits": {"max_blocks": -1}})", "limits.max_blocks", "got -1"},
    {"LimitsArray", R"({"limits": []})", "limits", "expected an object"},
    {"LimitUnknown", R"({"limits": {"token_max": 1}})", "limits.token_max",
     "known one is tokens_max"},
    {"LimitZero", R"({"limits": {"tokens_max": 0}})", "limits.tokens_max", "1..100000000"},
    {"LimitText", R"({"limits": {"tokens_max": "1"}})", "limits.tokens_max", "got text"},
    {"ReconnectOrder", R"({"limits": {"reconnect_ms_min": 9000}})", "limits.reconnect_ms_min",
     "at most reconnect_ms_max (1000), got 9000"},
    {"HeartbeatOrder", R"({"limits": {"heartbeat_interval_ms": 31000}})",
     "limits.heartbeat_interval_ms", "at most heartbeat_dead_ms"},
    {"PublishersArray", R"({"kvevent_instance": []})", "kvevent_instance", "expected an object"},
    {"PublisherText", Static("\"x\""), "kvevent_instance.one", "expected an object"},
    {"PublisherName", R"({"kvevent_instance": {"": {}}})", "kvevent_instance.", "1..1024 bytes"},
    {"PublisherMissing", Static("{}"), "kvevent_instance.one.endpoint", "required"},
    {"PublisherUnknownKey", Static(Publisher("modelname", "model_name")),
     "kvevent_instance.one.model_name", "known one is modelname"},
    {"PublisherType", Static(Publisher("vLLM", "vllm")), "kvevent_instance.one.type",
     "expected vLLM, SGLang or Mooncake"},
    {"PublisherBlockSizeText", Static(Publisher("16", "\"16\"")), "kvevent_instance.one.block_size",
     "got text '16'"},
    {"PublisherBlockSizeZero", Static(Publisher("16", "0")), "kvevent_instance.one.block_size",
     "got 0"},
    {"PublisherProfileText",
     Static(Publisher(R"({"strategy": "vllm_v1", "algorithm")", R"({"strategy": 1, "algorithm")")),
     "kvevent_instance.one.hash_profile.strategy", "expected text, got 1"},
    {"PublisherProfileKey", Static(Publisher("index_projection", "root_digest")),
     "kvevent_instance.one.hash_profile.root_digest", "unknown key"},
    {"PublisherAlgorithm", Static(Publisher("sha256_cbor", "md5")),
     "kvevent_instance.one.algorithm", "md5"},
    {"PublisherEndpoint", Static(Publisher("tcp://", "http://")), "kvevent_instance.one.endpoint",
     "kvevent_instance.one.endpoint: expected tcp://"},
    {"PublisherCacheGroup",
     Static(Publisher(R"("dp_rank": 0)", R"("dp_rank": 0, "cache_group": 1)")),
     "kvevent_instance.one.cache_group", "only 0"},
    {"SameKey", Two(Publisher("5557", "5558")), "kvevent_instance.two.instance_id",
     "as kvevent_instance.one"},
    {"SameEndpoint", Two(Publisher("vllm-0", "vllm-1")), "kvevent_instance.two.endpoint",
     "as kvevent_instance.one"},
    {"OtherProfile",
     Two(Publisher(Edits{{"vllm-0", "vllm-1"}, {"5557", "5558"}, {"sha256_cbor", "sha256"}})),
     "kvevent_instance.two.hash_profile", "not that of kvevent_instance.one"},
    {"TooManyPublishers",
     R"({"limits": {"registrations_max": 1}, "kvevent_instance": {"one": )" +
         std::string(kPublisher) + R"(, "two": )" +
         Publisher(Edits{{"vllm-0", "vllm-1"}, {"5557", "5558"}}) + "}}",
     "kvevent_instance", "limits.registrations_max (1)"},
};

INSTANTIATE_TEST_SUITE_P(All, ConfigRefusalTest, testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

Config Parsed(const std::string& text) {
  const auto config = ParseConfig(text);
  EXPECT_TRUE(config.has_value()) << config.error().message;
  return config.value_or(Config{});
}

TEST(ConfigTest, EmptyObjectIsTheDefaults) {
  const Config config = Parsed("{}");
  EXPECT_EQ(config.http_server_port, 13333);
  EXPECT_EQ(config.rpc_server_port, 50052);
  EXPECT_EQ(config.listen_address, "127.0.0.1");
  EXPECT_EQ(config.data_dir, "~/.mooncake/conductor");
  EXPECT_EQ(config.unverified_blocks, UnverifiedBlocks::kContent);
  EXPECT_EQ(config.log_sync, LogSync::kInterval);
  EXPECT_EQ(config.log_sync_interval_ms, 100u);
  EXPECT_EQ(config.on_lost_events, OnLostEvents::kKeep);
  EXPECT_EQ(config.disconnected_drop_s, 0u);
  EXPECT_EQ(config.limits.tokens_max, 1'000'000u);
  EXPECT_TRUE(config.publishers.empty());
}

TEST(ConfigTest, QuickStartOfTheApiPageIsAccepted) {
  const Config config =
      Parsed(R"({"http_server_port": 8080, "rpc_server_port": 50052, "kvevent_instance": {}})");
  EXPECT_EQ(config.http_server_port, 8080);
}

TEST(ConfigTest, ExamplesAreAccepted) {
  for (const auto& entry : std::filesystem::directory_iterator(CONDUCTOR_SOURCE_DIR "/examples")) {
    const std::string name = entry.path().filename().string();
    if (entry.path().extension() != ".json") continue;
    const auto text = ReadFile(entry.path().string(), kConfigBytesMax);
    ASSERT_TRUE(text.has_value());
    if (name.starts_with("conductor")) {
      EXPECT_TRUE(ParseConfig(*text).has_value()) << name;
    } else if (name.starts_with("register")) {
      const auto request = ReadRegistration(*ParseJson(*text), "");
      ASSERT_TRUE(request.has_value()) << name;
      EXPECT_TRUE(MakeRegistration(*request).has_value()) << name;
    }
  }
}

TEST(ConfigTest, PortBoundsAreAccepted) {
  const Config config = Parsed(R"({"http_server_port": 0, "rpc_server_port": 65535})");
  EXPECT_EQ(config.http_server_port, 0);
  EXPECT_EQ(config.rpc_server_port, 65535);
}

TEST(ConfigTest, BothPortsMayBeAnyFreeOne) {
  EXPECT_EQ(Parsed(R"({"http_server_port": 0, "rpc_server_port": 0})").rpc_server_port, 0);
}

TEST(ConfigTest, ListenAddressesOfEveryKindAreAccepted) {
  for (const std::string address : {"0.0.0.0", "[::]", "::1", "localhost", "fe80::1%eth0"}) {
    EXPECT_EQ(Parsed(R"({"listen_address": ")" + address + "\"}").listen_address, address);
  }
}

TEST(ConfigTest, EveryWordOfAChoiceIsAccepted) {
  EXPECT_EQ(Parsed(R"({"log_sync": "always"})").log_sync, LogSync::kAlways);
  EXPECT_EQ(Parsed(R"({"log_sync": "never"})").log_sync, LogSync::kNever);
  EXPECT_EQ(Parsed(R"({"on_lost_events": "drop"})").on_lost_events, OnLostEvents::kDrop);
  EXPECT_EQ(Parsed(R"({"unverified_blocks": "name_only"})").unverified_blocks,
            UnverifiedBlocks::kNameOnly);
}

TEST(ConfigTest, AutomaticSnapshotsAreOnUnlessSwitchedOff) {
  EXPECT_EQ(Parsed("{}").snapshot_interval_events, 1'000'000u);
  EXPECT_EQ(Parsed("{}").snapshot_interval_s, 900u);
  const Config off = Parsed(R"({"snapshot_interval_events": 0, "snapshot_interval_s": 0})");
  EXPECT_EQ(off.snapshot_interval_events, 0u);
  EXPECT_EQ(off.snapshot_interval_s, 0u);
  const Config other = Parsed(R"({"snapshot_interval_events": 5000000000,
                                  "snapshot_interval_s": 60})");
  EXPECT_EQ(other.snapshot_interval_events, 5'000'000'000u);
  EXPECT_EQ(other.snapshot_interval_s, 60u);
}

TEST(ConfigTest, PublisherBecomesAStaticRegistration) {
  const Config config = Parsed(Static(kPublisher));
  ASSERT_EQ(config.publishers.size(), 1u);
  const Registration& registration = config.publishers[0];
  EXPECT_EQ(registration.origin, RegistrationOrigin::kStatic);
  EXPECT_EQ(registration.static_name, "one");
  EXPECT_EQ(registration.instance_id, "vllm-0");
  EXPECT_EQ(registration.endpoint, "tcp://127.0.0.1:5557");
  EXPECT_EQ(registration.block_size, 16u);
  EXPECT_EQ(registration.tenant_id, "default");
  EXPECT_EQ(registration.hash_profile.algorithm, HashAlgorithm::kSha256Cbor);
}

TEST(ConfigTest, NullOptionalFieldsOfAPublisherAreAbsent) {
  const Config config = Parsed(Static(
      Publisher(R"("dp_rank": 0)", R"("dp_rank": 0, "cache_group": null, "lora_name": null)")));
  ASSERT_EQ(config.publishers.size(), 1u);
  EXPECT_FALSE(config.publishers[0].has_cache_group);
}

TEST(ConfigTest, TwoRanksOfOneInstanceAreAccepted) {
  const Config config =
      Parsed(Two(Publisher(Edits{{R"("dp_rank": 0)", R"("dp_rank": 1)"}, {"5557", "5558"}})));
  EXPECT_EQ(config.publishers.size(), 2u);
}

TEST(ConfigTest, OptionalFieldsOfAPublisherAreKept) {
  const Config config = Parsed(
      Static(Publisher(R"("dp_rank": 0)",
                       R"("dp_rank": 3, "replay_endpoint": "tcp://127.0.0.1:5600", "topic": "kv",
         "tenant_id": "t", "lora_name": "a", "pool_parts": {"tp": 8})")));
  ASSERT_EQ(config.publishers.size(), 1u);
  const Registration& registration = config.publishers[0];
  EXPECT_EQ(registration.replay_endpoint, "tcp://127.0.0.1:5600");
  EXPECT_EQ(registration.topic, "kv");
  EXPECT_EQ(registration.tenant_id, "t");
  EXPECT_EQ(registration.lora_name, "a");
  EXPECT_EQ(registration.dp_rank, 3u);
  EXPECT_EQ(registration.pool_parts.at("tp"), 8u);
}

TEST(ConfigLimitsTest, NamesAreThoseOfTheLimitsHeader) {
  std::ifstream header(CONDUCTOR_SOURCE_DIR "/src/limits.h");
  std::stringstream text;
  text << header.rdbuf();
  std::string body = text.str();
  body = body.substr(body.find("struct Limits {"));
  body = body.substr(0, body.find("};"));
  std::vector<std::string> names;
  const std::regex field(R"((?:size_t|uint32_t|uint64_t) (\w+) = )");
  for (std::sregex_iterator it(body.begin(), body.end(), field), end; it != end; ++it) {
    names.push_back((*it)[1]);
  }
  EXPECT_EQ(LimitNames(), names);
}

// The offset of the only byte that differs when the limit goes up by one.
std::size_t OffsetOfLimit(const std::string& name) {
  const auto set = [&](int value) {
    return ParseConfig(R"({"limits": {")" + name + "\": " + std::to_string(value) + "}}");
  };
  for (const int value : {50, 5'000, 2'000'000, 500'000'000}) {
    const auto low = set(value), high = set(value + 1);
    if (!low || !high) continue;
    std::vector<std::size_t> offsets;
    const auto* a = reinterpret_cast<const unsigned char*>(&low->limits);
    const auto* b = reinterpret_cast<const unsigned char*>(&high->limits);
    for (std::size_t i = 0; i < sizeof(Limits); ++i) {
      if (a[i] != b[i]) offsets.push_back(i);
    }
    EXPECT_EQ(offsets.size(), 1u) << name;
    return offsets.empty() ? 0 : offsets.front();
  }
  ADD_FAILURE() << name << ": no value was accepted";
  return 0;
}

TEST(ConfigLimitsTest, EveryNameSetsItsOwnMember) {
  std::size_t last = 0;
  for (const std::string& name : LimitNames()) {
    const std::size_t offset = OffsetOfLimit(name);
    EXPECT_TRUE(offset > last || name == LimitNames().front()) << name;
    last = offset;
  }
}

TEST(ConfigLimitsTest, TheSmallestCapsAreAccepted) {
  const Config config = Parsed(R"({"limits": {"max_blocks": 1000, "max_bytes": 16777216}})");
  EXPECT_EQ(config.limits.max_blocks, 1'000u);
  EXPECT_EQ(config.limits.max_bytes, 16u << 20);
}

TEST(ConfigLimitsTest, NoCapIsZero) {
  const Config config = Parsed(R"({"limits": {"max_blocks": 0, "max_bytes": 0}})");
  EXPECT_EQ(config.limits.max_blocks, 0u);
  EXPECT_EQ(config.limits.max_bytes, 0u);
}

}  // namespace
}  // namespace conductor::cli
