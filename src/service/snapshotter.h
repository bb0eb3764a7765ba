// Snapshotter: takes images of the state and has them written, while the apply thread goes on.
//
//   apply thread     decides when (events, time, on demand), cuts the image, encodes it in slices
//                    between its other work, and hands over frames
//   snapshot thread  writes the frames, syncs, has the file read back, drops what is not needed
//                    any more: snapshots but for the newest two, and the log below the older of
//                    them
//
// The frames between them are bounded: above snapshot_buffer_bytes_max the slices wait for the
// disk, while what changes meanwhile is still encoded before it does; above
// snapshot_set_aside_bytes_max the snapshot is given up and tried again later.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/limits.h"
#include "src/mutex.h"
#include "src/ports.h"
#include "src/snapshot_store.h"
#include "src/state/image_cut.h"

namespace conductor {

// Good snapshots that stay: the older one is there for the day the newer one is damaged.
inline constexpr std::size_t kSnapshotsKept = 2;

class Snapshotter {
 public:
  struct Options {
    std::uint64_t interval_events = 0;  // events of frames since the last one; 0: off
    std::uint32_t interval_s = 0;       // 0: off
    std::size_t buffer_bytes_max = 0, set_aside_bytes_max = 0;
    // Everything up to this position on disk, or an error. Called by the snapshot thread.
    std::function<Status(Seq)> sync_log;
    std::function<void()> wake;  // the apply thread has something to do for a snapshot
    std::function<void(bool error, const std::string& line)> log_line;
  };
  using Outcome = Result<SnapshotInfo>;

  Snapshotter(SnapshotStore& store, EventLog& log, const Clock& clock, Options options);
  // Stop was called, or Start was not.
  ~Snapshotter();

  // --- the apply thread -------------------------------------------------------------------------
  void Start();
  // The state was recovered from this snapshot, or (0) without one, and from so many events of the
  // log behind it: restarts do not put the next one off.
  void StartAt(Seq snapshot, std::uint64_t events_behind);
  void CountEvents(std::uint64_t events) { events_ += events; }
  // Some work for a snapshot, if one is due or being taken: `state` is as it is after record `seq`.
  // True: there is more to do at once.
  bool Step(StateMachine& state, Seq seq);
  // Whether what is being taken still needs the state.
  bool cutting() const { return cut_ != nullptr; }
  // Gives up what is being taken: its state goes.
  void Abandon(const std::string& why);
  // The apply thread will not come to it soon: gives up what it is cutting, and refuses those who
  // wait for the next one.
  void Refuse(const std::string& why);

  // --- any thread -------------------------------------------------------------------------------
  // One of the state as it is when the apply thread comes to it.
  std::future<Outcome> Request();
  Result<std::vector<SnapshotInfo>> Prune(std::size_t keep);
  // Gives up, and ends the thread. What was requested is refused.
  void Stop();

  struct View {
    Seq seq = 0;  // of the newest good one; 0: none
    std::int64_t age_ms = -1;
    std::uint64_t bytes = 0;
    double percent = -1;  // of the one that is being taken; -1: none is
    std::uint64_t made = 0, failed = 0;
    std::uint64_t duration_ms = 0;  // of the last one
    std::string error;
  };
  View Look() const;

 private:
  // What goes from the apply thread to the snapshot thread.
  struct Job {
    Seq seq = 0;
    std::deque<std::string> frames;
    std::size_t bytes = 0;
    bool complete = false;  // the last frame is there
    std::string abandoned;  // why the apply thread gave it up; empty: it did not
  };

  bool IsDue(Seq seq) const;
  // Whoever asked is answered without a new one, because there is nothing new. False: nobody asked.
  bool AnswerFromLast(Seq seq);
  void EndJob();
  void Begin(StateMachine& state, Seq seq);
  void HandOver(bool complete);
  void Loop();
  // Writes the job's frames as they come. The job is over when it returns.
  Outcome Write(Seq seq);
  void Finish(const Outcome& outcome);
  // Good ones, newest first.
  Result<std::vector<SnapshotInfo>> Good() const;

  SnapshotStore& store_;
  EventLog& log_;
  const Clock& clock_;
  const Options options_;

  // The apply thread's.
  bool active_ = false;  // a job was begun, and its end not yet seen
  std::unique_ptr<ImageEncoder> encoder_;
  std::unique_ptr<ImageCut> cut_;
  std::uint64_t events_ = 0;
  Seq last_seq_ = 0;  // of the last one that was begun, or that there was
  std::int64_t last_ms_ = 0;
  bool retry_ = false;  // the last one failed
  std::int64_t retry_at_ms_ = 0;

  mutable Mutex mutex_;
  CondVar changed_;
  std::optional<Job> job_ GUARDED_BY(mutex_);
  std::vector<std::promise<Outcome>> waiting_ GUARDED_BY(mutex_);  // for the next one
  std::vector<std::promise<Outcome>> taking_ GUARDED_BY(mutex_);   // for this one
  bool stopping_ GUARDED_BY(mutex_) = false;
  View view_ GUARDED_BY(mutex_);
  std::optional<SnapshotInfo> newest_ GUARDED_BY(mutex_);  // good one
  std::int64_t begun_ms_ GUARDED_BY(mutex_) = 0;
  int failures_in_a_row_ GUARDED_BY(mutex_) = 0;
  std::atomic<bool> requested_{false};
  std::atomic<bool> over_{false};  // the job ended, well or not
  Mutex files_mutex_;              // removals: by the thread, and by Prune
  std::thread thread_;
};

}  // namespace conductor
