// Which endpoints a registration may name, and what is said about the others.
#include <gtest/gtest.h>

#include "src/limits.h"
#include "src/registration.h"

namespace conductor {
namespace {

RegistrationRequest Request(const std::string& endpoint) {
  RegistrationRequest request;
  request.instance_id = "s1";
  request.endpoint = endpoint;
  request.type = "SGLang";
  request.modelname = "m";
  request.block_size = 16;
  request.dp_rank = 0;
  request.hash_profile = {"sglang", "sha256_raw", "0", "first64_be"};
  return request;
}

void ExpectRefused(const RegistrationRequest& request, const std::string& field,
                   const std::string& text) {
  const auto made = MakeRegistration(request);
  ASSERT_FALSE(made) << text;
  EXPECT_EQ(made.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(made.error().reason, "invalid_value");
  EXPECT_EQ(made.error().field, field);
  EXPECT_NE(made.error().message.find(text), std::string::npos) << made.error().message;
}

TEST(EndpointTest, HostsAddressesAndPathsAreTaken) {
  for (const char* endpoint : {"tcp://127.0.0.1:5557", "tcp://[::1]:5557", "tcp://[fe80::1%eth0]:1",
                               "tcp://engine-0.engines.svc:65535", "tcp://node_1:5557",
                               "ipc:///run/engine.sock", "ipc://@engine"}) {
    EXPECT_TRUE(MakeRegistration(Request(endpoint))) << endpoint;
    EXPECT_FALSE(IsWildcardEndpoint(endpoint)) << endpoint;
  }
}

TEST(EndpointTest, AWildcardHostMeansThatWeBind) {
  for (const char* endpoint : {"tcp://*:5557", "tcp://0.0.0.0:5557", "tcp://[::]:5557"}) {
    EXPECT_TRUE(MakeRegistration(Request(endpoint))) << endpoint;
    EXPECT_TRUE(IsWildcardEndpoint(endpoint)) << endpoint;
  }
  ExpectRefused(Request("tcp://*:*"), "endpoint", "port 1..65535");
  ExpectRefused(Request("tcp://*:0"), "endpoint", "port 1..65535");
  ExpectRefused(Request("ipc://*"), "endpoint", "path that the publisher binds");
}

TEST(EndpointTest, OnlyTheLiveSocketMayBeAWildcard) {
  RegistrationRequest request = Request("tcp://*:5557");
  request.replay_endpoint = "tcp://0.0.0.0:5558";
  ExpectRefused(request, "replay_endpoint", "publishers bind this socket");
  request = Request("tcp://*:5557");
  request.snapshot_endpoint = "tcp://[::]:5559";
  ExpectRefused(request, "snapshot_endpoint", "publishers bind this socket");
}

TEST(EndpointTest, WhatCannotBeAnEndpointIsRefusedWithTheReason) {
  const std::pair<const char*, const char*> refused[] = {
      {"127.0.0.1:5557", "expected tcp://HOST:PORT, ipc://PATH or inproc://NAME"},
      {"udp://127.0.0.1:5557", "expected tcp://HOST:PORT"},
      {"tcp://127.0.0.1", "no port"},
      {"tcp://[::1]", "no port"},
      {"tcp://127.0.0.1:", "no port"},
      {"tcp://127.0.0.1:65536", "port 1..65535"},
      {"tcp://127.0.0.1:5557x", "port 1..65535"},
      {"tcp://:5557", "expected a host"},
      {"tcp://[]:5557", "expected a host"},
      {"tcp://::1:5557", "an IPv6 host goes in brackets"},
      {"tcp://[::g]:5557", "expected an IPv6 address"},
      {"tcp://[engine]:5557", "expected an IPv6 address"},
      {"tcp://256.0.0.1:5557", "not an IPv4 address"},
      {"tcp://10.0.0:5557", "not an IPv4 address"},
      {"tcp://an engine:5557", "not a host name"},
      {"tcp://user@engine:5557", "not a host name"},
      {"ipc://", "no path"},
      {"inproc://", "nothing follows"},
  };
  for (const auto& [endpoint, text] : refused) {
    ExpectRefused(Request(endpoint), "endpoint", text);
    RegistrationRequest replay = Request("tcp://127.0.0.1:5557");
    replay.replay_endpoint = endpoint;
    ExpectRefused(replay, "replay_endpoint", text);
  }
  ExpectRefused(Request("ipc:///" + std::string(107, 'p')), "endpoint", "at most 107 bytes");
  EXPECT_TRUE(MakeRegistration(Request("ipc:///" + std::string(106, 'p'))));
}

TEST(EndpointTest, LongerThanTheLimitIsTooLarge) {
  const auto made =
      MakeRegistration(Request("tcp://" + std::string(kEndpointBytesMax, 'h') + ":1"));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().field, "endpoint");
  EXPECT_EQ(made.error().reason, "too_large");
}

}  // namespace
}  // namespace conductor
