// A ConductorService with everything around it in memory: a log whose faults a test decides, a
// source of streams that only records what it was told, and a clock that stands still. Tests wait
// for conditions, never for time.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "src/memory_event_log.h"
#include "src/service/conductor_service.h"
#include "tests/model/memory_snapshots.h"
#include "tests/src/state/state_world.h"

namespace conductor {

// Wakes those who wait for a condition when something may have changed. Thread-safe.
class Changes {
 public:
  // Takes no lock: it is called under locks that conditions take too. A change that is missed is
  // seen at the next look.
  void Notify() { changed_.notify_all(); }
  // False: not within half a minute. Looks again now and then, as not every change is announced.
  template <typename Condition>
  bool WaitFor(const Condition& condition) {
    std::unique_lock lock(mutex_);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      changed_.wait_for(lock, std::chrono::milliseconds(2));
    }
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
};

// MemoryEventLog with a gate before Append, faults that last, and a count of what was asked.
// Thread-safe.
class FaultyLog : public EventLog {
 public:
  Result<Seq> Append(std::span<const Record> records, Durability durability) override {
    {
      std::unique_lock lock(mutex_);
      ++waiting_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !held_; });
      --waiting_;
      if (durability == Durability::kSynced) ++synced_appends_;
      if (appends_until_failure_ > 0 && --appends_until_failure_ == 0) {
        inner.FailNextAppendForTest(*append_failure_, /*written=*/false);
      }
    }
    for (const Record& record : records) {
      if (HasRefusedName(record)) {
        return MakeError(ErrorCode::kInvalidArgument, "fact 0 (frame): a name is too long");
      }
    }
    return inner.Append(records, durability);
  }
  Status Sync() override {
    bool fails = false;
    {
      std::unique_lock lock(mutex_);
      ++syncs_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !sync_held_; });
      fails = std::exchange(sync_loses_tail_, false);
      if (sync_fails_) return MakeError(ErrorCode::kUnavailable, "fsync: no space left");
    }
    if (!fails) return inner.Sync();
    inner.CrashForTest(/*lose_unsynced=*/true);
    return MakeError(ErrorCode::kUnavailable, "fsync: input/output error");
  }
  Result<Seq> Reopen() override {
    {
      const std::lock_guard lock(mutex_);
      ++reopens_;
      if (reopen_fails_) return MakeError(ErrorCode::kUnavailable, "reopen: no space left");
    }
    return inner.Reopen();
  }
  Status DropBelow(Seq first) override { return inner.DropBelow(first); }
  Seq FirstSeq() const override { return inner.FirstSeq(); }
  Seq LastSeq() const override { return inner.LastSeq(); }
  Status Read(Seq from, Seq to,
              const std::function<Status(Seq, const Record&)>& visit) const override {
    if (damaged) return MakeError(ErrorCode::kDataLoss, "record 1: crc 1, expected 2");
    if (unreadable) return MakeError(ErrorCode::kUnavailable, "record 1: Input/output error");
    return inner.Read(from, to, visit);
  }

  // Appends wait at the gate until Release.
  void Hold() { Set(held_, true); }
  void Release() { Set(held_, false); }
  void WaitForHeldAppend() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return waiting_ > 0; });
  }
  void SetReopenFails(bool fails) { Set(reopen_fails_, fails); }
  // The next Sync fails, and what was not synced is gone, as after a real fsync error.
  void LoseTailAtNextSync() { Set(sync_loses_tail_, true); }
  void HoldSync() { Set(sync_held_, true); }
  void ReleaseSync() { Set(sync_held_, false); }
  void WaitForSync(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return syncs_ >= count; });
  }
  void SetSyncFails(bool fails) { Set(sync_fails_, fails); }
  // The n-th append from now (1: the next) fails and writes nothing.
  void FailAppend(int n, Error error) {
    const std::lock_guard lock(mutex_);
    appends_until_failure_ = n;
    append_failure_ = std::move(error);
  }
  int reopens() const { return Get(reopens_); }
  int syncs() const { return Get(syncs_); }
  int synced_appends() const { return Get(synced_appends_); }

  // A block of this name is something the log's format does not take, as RocksDbEventLog says it
  // of a text that is too long.
  static constexpr std::uint64_t kRefusedName = 100 + 666;

  MemoryEventLog inner;
  std::atomic<bool> damaged{false};
  std::atomic<bool> unreadable{false};  // now; the disk may give it back later

 private:
  static bool HasRefusedName(const Record& record) {
    for (const Fact& fact : record.facts) {
      const auto* frame = std::get_if<Frame>(&fact);
      if (frame == nullptr) continue;
      for (const Event& event : frame->events) {
        const auto* stored = std::get_if<Stored>(&event);
        if (stored != nullptr && stored->blocks.front().name.projected == kRefusedName) return true;
      }
    }
    return false;
  }
  template <typename T>
  void Set(T& field, T value) {
    const std::lock_guard lock(mutex_);
    field = value;
    changed_.notify_all();
  }
  int Get(const int& field) const {
    const std::lock_guard lock(mutex_);
    return field;
  }

  mutable std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  bool held_ = false, reopen_fails_ = false, sync_loses_tail_ = false, sync_fails_ = false,
       sync_held_ = false;
  int appends_until_failure_ = 0;
  std::optional<Error> append_failure_;
  int waiting_ = 0, reopens_ = 0, syncs_ = 0, synced_appends_ = 0;
};

// Remembers what it was told, in words: "start 1", "stop 1", "stop all". Thread-safe.
class RecordingSource : public StreamSource {
 public:
  explicit RecordingSource(Changes& changes) : changes_(changes) {}

  Status Start(const StreamSeed& seed) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back("start " + std::to_string(seed.stream));
    seeds_[seed.stream] = seed;
    changes_.Notify();
    if (refuse_) return InvalidField("invalid_value", "endpoint", "endpoint: no such device");
    running_.insert(seed.stream);
    return {};
  }
  void Stop(StreamId stream) override {
    const std::lock_guard lock(mutex_);
    calls_.push_back("stop " + std::to_string(stream));
    running_.erase(stream);
  }
  std::optional<StreamStatus> GetStatus(StreamId stream) const override {
    const std::lock_guard lock(mutex_);
    if (!running_.contains(stream)) return std::nullopt;
    StreamStatus status;
    status.state = StreamState::kLive;
    status.first_catch_up_done = caught_up_;
    return status;
  }
  void StopAll() override {
    const std::lock_guard lock(mutex_);
    calls_.emplace_back("stop all");
    running_.clear();
  }

  std::vector<std::string> calls() const {
    const std::lock_guard lock(mutex_);
    return calls_;
  }
  int Count(const std::string& call) const {
    const std::vector<std::string> all = calls();
    return static_cast<int>(std::count(all.begin(), all.end(), call));
  }
  // The seed a stream was started with last.
  StreamSeed seed(StreamId stream) const {
    const std::lock_guard lock(mutex_);
    return seeds_.at(stream);
  }
  void Refuse(bool refuse) {
    const std::lock_guard lock(mutex_);
    refuse_ = refuse;
  }
  void SetCaughtUp(bool caught_up) {
    const std::lock_guard lock(mutex_);
    caught_up_ = caught_up;
  }

 private:
  Changes& changes_;
  mutable std::mutex mutex_;  // guards everything below
  std::vector<std::string> calls_;
  std::map<StreamId, StreamSeed> seeds_;
  std::set<StreamId> running_;
  bool refuse_ = false, caught_up_ = true;
};

// Moves only when it is told to.
class StillClock : public Clock {
 public:
  std::int64_t MonotonicMs() const override { return now_ms_.load(); }
  std::int64_t UnixMs() const override { return now_ms_.load() + 1'000; }
  void Advance(std::int64_t ms) { now_ms_.fetch_add(ms); }

 private:
  std::atomic<std::int64_t> now_ms_{1'000};
};

inline RegistrationRequest Request(const std::string& instance) {
  RegistrationRequest request;
  request.instance_id = instance;
  request.endpoint = "inproc://" + instance;
  request.type = "vLLM";
  request.modelname = "m";
  request.block_size = kTestBlockSize;
  request.dp_rank = 0;
  request.hash_profile = RegistrationRequest::Profile{"vllm_v1", "sha256_cbor", "0", "low64_be"};
  return request;
}

inline Registration Static(const std::string& instance) {
  Registration registration = *MakeRegistration(Request(instance));
  registration.origin = RegistrationOrigin::kStatic;
  registration.static_name = instance;
  return registration;
}

class ServiceFixture : public ::testing::Test {
 protected:
  ServiceFixture() : source_(changes_) {
    options_.log_sync_interval_ms = 1;
    options_.logger = [this](LogLevel, const std::string& line) {
      const std::lock_guard lock(lines_mutex_);
      lines_.push_back(line);
      changes_.Notify();
    };
  }
  ~ServiceFixture() override {
    log_.SetReopenFails(false);
    log_.Release();
    snapshots_.Release();
  }

  ConductorService& Start(std::vector<Registration> statics = {}) {
    service_ = std::make_unique<ConductorService>(options_, log_, snapshots_, clock_);
    service_->Start(source_, std::move(statics));
    return *service_;
  }
  ConductorService& StartReady(std::vector<Registration> statics = {}) {
    ConductorService& service = Start(std::move(statics));
    EXPECT_TRUE(changes_.WaitFor([&] { return service.GetReadiness().ready; }));
    return service;
  }
  double queued_commands() const {
    for (const MetricSample& sample : service_->CollectMetrics()) {
      if (sample.name == "queue_commands") return sample.value;
    }
    return -1;
  }
  StreamId MustRegister(const std::string& instance) {
    const auto outcome = service_->Register(Request(instance));
    EXPECT_TRUE(outcome) << outcome.error().message;
    return View(instance).stream;
  }
  ServiceView View(const std::string& instance) const {
    const auto services = service_->ListServices();
    if (services) {
      for (const ServiceView& view : *services) {
        if (view.registration.instance_id == instance) return view;
      }
    }
    return {};
  }

  // A frame that stores the block of content `number` at the root, named 100 + number.
  static Frame MakeFrame(StreamId stream, std::uint64_t number) {
    Frame frame;
    frame.stream = stream;
    frame.number = number;
    frame.fingerprint = 7'000 + number;
    Stored stored;
    stored.extra_keys_on_wire = true;
    stored.block_length = kTestBlockSize;
    const std::vector<std::int32_t> tokens = TokensOf({static_cast<int>(number)});
    stored.blocks = {{Name(100 + number), FingerprintV1(tokens, {}), HashCheck::kEqual}};
    frame.events.emplace_back(std::move(stored));
    return frame;
  }
  bool Offer(StreamId stream, std::uint64_t number) {
    std::vector<Fact> facts = {MakeFrame(stream, number)};
    return service_->Offer(stream, facts, 100);
  }
  std::uint64_t Hits(const std::string& instance, std::uint64_t number) const {
    const std::vector<std::int32_t> tokens = TokensOf({static_cast<int>(number)});
    PromptQuery query;
    query.context = StateWorld::Key();
    query.token_ids = tokens;
    const auto answer = service_->Query(query);
    EXPECT_TRUE(answer) << answer.error().message;
    if (!answer) return 0;
    for (const InstanceHits& hits : answer->instances) {
      if (hits.instance_id == instance) return hits.best.disk;
    }
    return 0;
  }
  bool WaitForHits(const std::string& instance, std::uint64_t number) {
    return changes_.WaitFor([&] { return Hits(instance, number) == kTestBlockSize; });
  }
  bool WaitForLine(const std::string& part) {
    return changes_.WaitFor([&] {
      const std::lock_guard lock(lines_mutex_);
      return std::any_of(lines_.begin(), lines_.end(), [&](const std::string& line) {
        return line.find(part) != std::string::npos;
      });
    });
  }
  // The numbers of the frames of a stream that the log holds, in order.
  std::vector<std::uint64_t> LoggedNumbers(StreamId stream) const {
    std::vector<std::uint64_t> numbers;
    ForFacts([&](const Fact& fact) {
      const auto* frame = std::get_if<Frame>(&fact);
      if (frame != nullptr && frame->stream == stream) numbers.push_back(frame->number);
    });
    return numbers;
  }
  template <typename Visit>
  void ForFacts(const Visit& visit) const {
    EXPECT_TRUE(log_.inner.Read(1, log_.LastSeq(), [&](Seq, const Record& record) -> Status {
      for (const Fact& fact : record.facts) visit(fact);
      return {};
    }));
  }
  // What the service believes is what its log says.
  void ExpectStateIsTheLogs() const {
    const auto status = service_->GetStatus();
    ASSERT_TRUE(status);
    const auto digest = DigestOfLog(log_, log_.LastSeq(), {});
    ASSERT_TRUE(digest);
    EXPECT_EQ(status->digest, *digest);
    EXPECT_EQ(status->log_applied, log_.LastSeq());
  }

  Changes changes_;
  FaultyLog log_;
  RecordingSource source_;
  model::MemorySnapshots snapshots_;
  StillClock clock_;
  ServiceOptions options_;
  mutable std::mutex lines_mutex_;
  std::vector<std::string> lines_;  // guarded by lines_mutex_
  std::unique_ptr<ConductorService> service_;
};

inline Error DiskError() {
  return {ErrorCode::kUnavailable, "write: no space left", "", "", -1};
}

using Numbers = std::vector<std::uint64_t>;

}  // namespace conductor
