// The snapshot socket of a fake SGLang engine: a ROUTER with a thread of its own that answers each
// request with the next of its scripts; the last one stays. A script is the messages of one answer.
#pragma once

#include <zmq.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "replay/wire/msgpack_writer.h"
#include "src/check.h"

namespace conductor::replay_test {

struct SnapshotMessage {
  std::string word;
  std::string body;
};
using SnapshotScript = std::vector<SnapshotMessage>;

struct SnapshotHeaderSpec {
  std::uint64_t resume = 0;
  std::string epoch = "a1";
  std::uint64_t rank = 0;
  std::uint64_t records = 0;
};
inline SnapshotMessage SnapshotHeaderMessage(const SnapshotHeaderSpec& spec) {
  MsgpackWriter writer;
  writer.WriteArrayHeader(7);
  writer.WriteUint64(1);
  writer.WriteText(spec.epoch);
  writer.WriteUint64(spec.rank);
  writer.WriteUint64(spec.resume);
  writer.WriteUint64(spec.resume == 0 ? 0 : spec.resume - 1);
  writer.WriteText("barrier");
  writer.WriteUint64(spec.records);
  return {"header", std::move(writer).Take()};
}

// Records of one block each: (parent, name).
using SnapshotPairs = std::vector<std::pair<std::optional<std::int64_t>, std::int64_t>>;
inline SnapshotMessage SnapshotChunkMessage(const SnapshotPairs& pairs) {
  MsgpackWriter writer;
  writer.WriteArrayHeader(static_cast<std::uint32_t>(pairs.size()));
  for (const auto& [parent, name] : pairs) {
    writer.WriteArrayHeader(2);
    parent ? writer.WriteInt64(*parent) : writer.WriteNil();
    writer.WriteArrayHeader(1);
    writer.WriteInt64(name);
  }
  return {"chunk", std::move(writer).Take()};
}

// A whole answer: a chain of `names`, two to a chunk.
inline SnapshotScript WholeSnapshot(SnapshotHeaderSpec spec,
                                    const std::vector<std::int64_t>& names) {
  spec.records = names.size();
  SnapshotScript script{SnapshotHeaderMessage(spec)};
  SnapshotPairs pairs;
  for (std::size_t i = 0; i < names.size(); ++i) {
    pairs.emplace_back(i == 0 ? std::nullopt : std::optional(names[i - 1]), names[i]);
    if (pairs.size() < 2 && i + 1 < names.size()) continue;
    script.push_back(SnapshotChunkMessage(pairs));
    pairs.clear();
  }
  script.push_back({"end", ""});
  return script;
}

class FakeSnapshotServer {
 public:
  explicit FakeSnapshotServer(std::vector<SnapshotScript> scripts) : scripts_(std::move(scripts)) {
    context_ = zmq_ctx_new();
    router_ = zmq_socket(context_, ZMQ_ROUTER);
    const int zero = 0;
    zmq_setsockopt(router_, ZMQ_LINGER, &zero, sizeof(zero));
    zmq_setsockopt(router_, ZMQ_SNDHWM, &zero, sizeof(zero));
    CHECK(zmq_bind(router_, "tcp://127.0.0.1:*") == 0);
    char text[256];
    std::size_t size = sizeof(text);
    CHECK(zmq_getsockopt(router_, ZMQ_LAST_ENDPOINT, text, &size) == 0);
    endpoint_ = text;
    server_ = std::thread([this] { Serve(); });
  }
  ~FakeSnapshotServer() {
    stop_ = true;
    server_.join();
    zmq_close(router_);
    zmq_ctx_term(context_);
  }

  const std::string& endpoint() const { return endpoint_; }
  // Requests that were ['', 'snapshot-v1'], and others.
  int requests() const { return requests_; }
  int bad_requests() const { return bad_requests_; }
  // From the next request on.
  void Answer(std::vector<SnapshotScript> scripts) {
    std::lock_guard lock(mutex_);
    scripts_ = std::move(scripts);
    next_ = 0;
  }

 private:
  void Serve() {
    while (!stop_) {
      zmq_pollitem_t item{router_, 0, ZMQ_POLLIN, 0};
      if (zmq_poll(&item, 1, 10) <= 0) continue;
      std::vector<std::string> parts;
      for (int more = 1; more != 0;) {
        zmq_msg_t message;
        zmq_msg_init(&message);
        if (zmq_msg_recv(&message, router_, 0) < 0) break;
        parts.emplace_back(static_cast<char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
        more = zmq_msg_more(&message);
        zmq_msg_close(&message);
      }
      if (parts.size() != 3 || !parts[1].empty() || parts[2] != "snapshot-v1") {
        ++bad_requests_;
        continue;
      }
      ++requests_;
      for (const SnapshotMessage& message : NextScript()) {
        zmq_send(router_, parts[0].data(), parts[0].size(), ZMQ_SNDMORE);
        zmq_send(router_, "", 0, ZMQ_SNDMORE);
        zmq_send(router_, message.word.data(), message.word.size(), ZMQ_SNDMORE);
        zmq_send(router_, message.body.data(), message.body.size(), 0);
      }
    }
  }
  SnapshotScript NextScript() {
    std::lock_guard lock(mutex_);
    const std::size_t script = next_ < scripts_.size() ? next_++ : scripts_.size() - 1;
    return scripts_[script];
  }

  void* context_ = nullptr;
  void* router_ = nullptr;
  std::string endpoint_;
  std::atomic<bool> stop_{false};
  std::atomic<int> requests_{0};
  std::atomic<int> bad_requests_{0};
  std::mutex mutex_;
  std::vector<SnapshotScript> scripts_;
  std::size_t next_ = 0;
  std::thread server_;
};

}  // namespace conductor::replay_test
