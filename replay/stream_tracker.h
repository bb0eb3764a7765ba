// The state machine of one stream: which frame is applied, which is a duplicate, what is missing,
// and when the publisher's process is a new one. It has no socket, no thread and no clock: what
// happened and the time go in, facts and a wanted replay come out. Same input, same output.
//
// C is the cursor (last number applied or lost), A the last number applied whose fingerprint is
// kept, n a number that arrives, F the first number of a life (0; a store's is 1).
//
// clang-format off
//   row  what happens                              without replay endpoint   with one
//   L1   nothing applied, n <= F                   delivered at once         the same
//   L2   nothing applied, n > F                    HistoryStart n, deliver   waits, ask F
//   L3   n == C+1                                  deliver                   waits if something does,
//                                                                            or while disconnected
//   L4   n > C+1                                   Lost C+1..n-1, deliver    waits, ask A
//   L5   n <= C, fingerprint kept and equal        duplicate                 the same
//   L6   n <= C, kept and different                new life, then L1/L2 [*]  the same
//   L7   n <= C, not kept                          new life, then L1/L2 [*]  suspect: waits, ask A
//   L8   n below a waiting one, not among them     -                         suspect: waits, ask A
//   L9   n waits already with other content        -                         new life, then L1/L2
//   L10  no room to wait                           -                         dropped; missing later
//   C1   connected (first time, or again)          live                      ask A (F when nothing)
//   R1   reply's first number == A, equal          the life goes on; suspects were duplicates
//   R2   reply's first number == A, different      new life, ask F
//   R3   first number above the asked one          what waits below it is delivered; Lost what is in
//                                                  neither (nothing applied: HistoryStart)
//   R3a  first number == A+1 of an asked A         ask A again, twice; then nothing is lost
//   R4   a number applied before, equal / not kept skipped
//   R5   a number applied before, different        new life, ask F (also against a waiting frame)
//   R6   next number                               deliver, then the waiting ones that follow
//   R7   a hole                                    ask A again, a few times; then Lost, go on
//   E1   end alone, no live frame >= A since C1    new life, ask F
//   E2   end alone although there was one          asked again a few times, then what is missing is lost
//   E3   end, something is missing                 ask A again, a few times; then Lost
//   E4   end, nothing is missing                   live
//   T1   no reply within replay_first_reply_ms     missing is lost, waiting frames applied, degraded,
//                                                  probes with back-off; suspects: new life
//   T2   no progress within replay_progress_ms     as E3
//   P1   probe (nothing waits for it)              R1 settles, R2/E1 new life, no reply: a later probe
//                                                  a hole, also at its start: waits, ask A
//   D1   disconnected                              no conclusion is drawn until C1, which its caller
//                                                  says when what was queued before is read
//   D2   disconnected for disconnected_drop_ms     Dropped; everything forgotten, F on return
//   N1   live frame with another epoch text        new life, then L1/L2, whatever its number
//   N2   the life's own text, n <= C, not kept     duplicate
//
// With a snapshot endpoint (SGLang; tracker_snapshot.cc), whether or not there is a replay one:
//   S1   something is lost, or the history starts  live frames wait, the snapshot is asked for
//        late, and no replay is open
//   S2   it is whole and of this life              PublisherSnapshot; C = resume-1; the waiting go on
//   S3   another epoch text than the life's, or    new life, then S2
//        none is known and resume <= C
//   S4   another epoch text than the live frames', refused: S5
//        or the same and resume <= C
//   S5   error, wrong, no reply or progress, late  waiting frames applied; asked again with back-off,
//                                                  unwaited for if it had not answered at all
//   S6   a number below resume comes after S2      skipped, once: it is in the snapshot
//
// [*] Duplicates F..n-1 right before it were the new life's beginning, which said the same: they are
//     delivered first.
// clang-format on
// Every question asked of the replay endpoint has an id; replies to an older id are ignored.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "replay/received_frame.h"
#include "replay/recent_frames.h"
#include "src/fact.h"
#include "src/limits.h"
#include "src/ports.h"

namespace conductor {

struct TrackerOptions {
  Limits limits;
  UnverifiedBlocks unverified_blocks = UnverifiedBlocks::kContent;
  bool drop_on_lost_events = false;
  std::int64_t disconnected_drop_ms = 0;  // 0: never
};

// A replay to be asked for, from this number on.
struct WantedReplay {
  std::uint64_t id = 0;
  std::uint64_t from = 0;
  bool operator==(const WantedReplay&) const = default;
};

// What a publisher says in answer to a request for its snapshot, before it is whole.
struct SnapshotStart {
  std::uint64_t resume_number = 0;
  std::string_view epoch;
};

struct TrackerCounters {
  std::uint64_t frames = 0;  // delivered
  std::uint64_t duplicates = 0;
  std::uint64_t gaps = 0;
  std::uint64_t replays = 0;
  std::uint64_t replay_frames = 0;
  std::uint64_t replay_failures = 0;  // no reply, no progress, broken answers
  std::uint64_t lost_numbers = 0;
  std::uint64_t snapshots = 0;  // asked for
  std::uint64_t snapshot_failures = 0;
  std::uint64_t epoch_changes = 0;
  std::uint64_t buffer_overflows = 0;
  std::uint64_t connects = 0;
  std::uint64_t disconnects = 0;
};

class StreamTracker {
 public:
  // What it says, in order. ReceivedFrame: to be translated and applied.
  using Output =
      std::variant<NewEpoch, HistoryStart, Lost, Dropped, PublisherSnapshot, ReceivedFrame>;

  StreamTracker(const StreamSeed& seed, const TrackerOptions& options, std::int64_t now_ms);

  void OnConnected(std::int64_t now_ms);
  void OnDisconnected(std::int64_t now_ms);
  // `epoch`: the publisher's own word for its life, if it says one.
  void OnLiveFrame(ReceivedFrame frame, std::int64_t now_ms, std::string_view epoch = {});

  // The replay that is to be open now. Another id than that of the open one: close it, ask anew.
  std::optional<WantedReplay> wanted_replay() const;
  void OnReplaySent(std::uint64_t id, std::int64_t now_ms);
  // It could not even be asked.
  void OnReplayFailed(std::uint64_t id, std::int64_t now_ms, std::string why);
  void OnReplayFrame(std::uint64_t id, ReceivedFrame frame, std::int64_t now_ms);
  void OnReplayEnd(std::uint64_t id, std::int64_t now_ms);

  // The snapshot request that is to be open now; as with wanted_replay.
  std::optional<std::uint64_t> wanted_snapshot() const;
  void OnSnapshotSent(std::uint64_t id, std::int64_t now_ms);
  void OnSnapshotStart(std::uint64_t id, const SnapshotStart& start, std::int64_t now_ms);
  void OnSnapshotProgress(std::uint64_t id, std::int64_t now_ms);
  // It is whole.
  void OnSnapshot(std::uint64_t id, PublisherSnapshot snapshot, std::int64_t now_ms);
  void OnSnapshotFailed(std::uint64_t id, std::int64_t now_ms, std::string why);

  void OnTick(std::int64_t now_ms);
  // We did not read for a while: what had arrived meanwhile is not late.
  void OnResumed(std::int64_t now_ms);

  std::deque<Output>& outputs() { return outputs_; }
  // What the reader of the stream knows: `degraded` means that its life is in question. That
  // numbers are lost, and when that ends, the state knows.
  StreamState state() const;
  bool first_catch_up_done() const { return first_catch_up_done_; }
  bool connected() const { return connected_; }
  std::int64_t disconnected_since_ms() const { return disconnected_since_ms_; }
  std::optional<std::uint64_t> cursor() const { return cursor_; }
  std::string_view last_error() const { return last_error_; }
  const TrackerCounters& counters() const { return counters_; }
  std::size_t waiting_frames() const { return buffer_.size() + suspects_.size(); }

 private:
  // One question to the replay endpoint.
  struct Ask {
    enum class Phase : std::uint8_t { kIdle, kDelayed, kWanted, kSent };
    Phase phase = Phase::kIdle;
    bool probe = false;  // nothing waits for the answer
    bool any_reply = false;
    std::uint64_t id = 0;
    std::uint64_t from = 0;
    std::optional<std::uint64_t> fingerprint;  // of `from`, when it was applied
    std::optional<std::uint64_t> last_number;  // of the reply
    std::optional<std::uint64_t> cursor_before;
    std::int64_t due_ms = 0;
    std::int64_t progress_ms = 0;
  };

  // One request for a snapshot.
  struct SnapshotAsk {
    enum class Phase : std::uint8_t { kIdle, kWanted, kSent };
    Phase phase = Phase::kIdle;
    bool holds = false;  // live frames wait for it. Invariant: holds implies waiting_.
    bool started = false;
    std::uint64_t id = 0;
    std::int64_t sent_ms = 0;
    std::int64_t progress_ms = 0;
  };

  // stream_tracker.cc: the live side.
  void ReadInbox(std::int64_t now_ms);
  void JudgeLive(ReceivedFrame frame, std::int64_t now_ms);
  void JudgeOld(ReceivedFrame frame, std::int64_t now_ms);
  void JudgeWaiting(ReceivedFrame frame, std::int64_t now_ms);
  void JudgeFresh(ReceivedFrame frame, std::int64_t now_ms);
  void Suspect(ReceivedFrame frame, std::int64_t now_ms);
  void Wait(ReceivedFrame&& frame);
  void NoteRepeat(ReceivedFrame&& frame);
  void Deliver(ReceivedFrame&& frame);
  void DeliverAfterLoss(ReceivedFrame&& frame);
  void DeliverWaitingBelow(std::uint64_t number);
  void Lose(std::uint64_t from, std::uint64_t to);
  void NewLife(std::int64_t now_ms);
  void NewLifeAndAsk(std::int64_t now_ms);
  std::int64_t ChurnDelayMs(std::int64_t now_ms) const;
  void ReturnSuspects();
  bool DrainBuffer();
  bool MayDeliver(std::uint64_t waiting) const;
  void DropDisconnected();
  void ForgetLife();
  bool BeginsLife(std::uint64_t number) const { return !cursor_ && number <= first_number_; }
  void NoteSeen(std::uint64_t number);

  // tracker_replay.cc: the replay side.
  void StartCatchUp(std::int64_t now_ms, std::int64_t delay_ms = 0);
  void ScheduleAsk(bool probe, std::int64_t due_ms);
  void PrepareAsk();
  void CancelAsk() { ask_.phase = Ask::Phase::kIdle; }
  bool IsOpen(std::uint64_t id) const { return ask_.phase == Ask::Phase::kSent && ask_.id == id; }
  void JudgeReply(ReceivedFrame frame, bool first, std::int64_t now_ms);
  bool ProofMayBeMissing(std::uint64_t first);
  bool ConfirmLife();
  bool EndsBelowWhatIsKnown() const;
  bool SomethingMissing() const;
  bool RetryAllowed() const;
  void Settle();
  void Retry(std::int64_t now_ms);
  void RetryOrConclude(bool life_known, std::int64_t now_ms, std::string_view why);
  void Conclude(bool life_known, std::int64_t now_ms);
  void AdoptSuspects(std::int64_t now_ms);
  void ScheduleProbe(std::int64_t now_ms);
  void OnAskTimeout(std::int64_t now_ms);
  std::int64_t ProbeMsMax() const { return options_.limits.replay_probe_ms_max; }

  // tracker_snapshot.cc.
  bool MayAskSnapshot(std::int64_t now_ms) const;
  bool IsOpenSnapshot(std::uint64_t id) const {
    return snapshot_.phase == SnapshotAsk::Phase::kSent && snapshot_.id == id;
  }
  void TickSnapshot(std::int64_t now_ms);
  std::string Contradiction(const SnapshotStart& start) const;
  void AdoptSnapshot(PublisherSnapshot&& snapshot, std::int64_t now_ms);
  void AbandonSnapshot() { snapshot_ = SnapshotAsk{}; }
  void StopHolding(std::int64_t now_ms);
  bool SkipCovered(std::uint64_t number);

  const StreamId stream_;
  const TrackerOptions options_;
  const bool has_replay_;
  const bool has_snapshot_;
  const std::uint64_t first_number_;
  const std::int64_t started_ms_;

  std::optional<std::uint64_t> cursor_;
  RecentFrames recent_;
  bool has_lost_ranges_;  // at the latest since the last restart; a snapshot would help
  // Live frames wait: something before them may be missing, or their life is in question.
  bool waiting_;
  // The replay endpoint owes us an answer to whether the life is still the one we know.
  bool unsettled_ = false;
  // The last frame that is surely of the life we know: what came since may be of another, and would
  // confirm itself. Only while unsettled.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> anchor_;
  FrameBuffer buffer_;  // ascending, all above the cursor
  // The highest number that waited when the connection came back: up to it they may be of a process
  // that is gone, and one that repeats its work looks the same. They are delivered only as far as
  // an answer of the new connection has come; one that ends below it is not of their life.
  std::optional<std::uint64_t> old_until_;
  // The suspects that were there then: of no life that is found new.
  std::size_t old_suspects_ = 0;
  FrameBuffer suspects_;             // from the first doubtful frame on, in order of arrival
  std::deque<ReceivedFrame> inbox_;  // live frames to be judged; empty between calls
  FrameBuffer repeats_;  // duplicates F, F+1, ... that came last; only without a replay endpoint
  // The highest live number since the question about the life was raised.
  std::optional<std::uint64_t> seen_;

  Ask ask_;
  SnapshotAsk snapshot_;
  std::int64_t snapshot_due_ms_ = 0;  // not before
  std::int64_t snapshot_delay_ms_ = 0;
  bool snapshot_answered_ = true;  // the last time it was asked for, or never asked
  // Numbers below a snapshot's that may still come in live.
  std::optional<std::pair<std::uint64_t, std::uint64_t>> covered_;
  bool history_starts_late_;

  std::string publisher_epoch_;  // of this life; empty: not known
  bool epoch_is_live_ = false;   // said by a frame of the connection that is up

  std::uint64_t last_ask_id_ = 0;
  std::uint32_t attempts_ = 0;  // asks without progress, of this catch-up
  std::uint32_t rounds_ = 0;    // all asks of this catch-up
  std::uint32_t unproved_ =
      0;                  // answers that began right behind the frame that was to prove a life
  bool replied_ = false;  // to any ask of this catch-up
  std::int64_t probe_delay_ms_ = 0;
  std::int64_t churn_delay_ms_ = 0;
  std::optional<std::int64_t> last_new_life_ms_;

  bool connected_ = false;
  bool first_catch_up_done_ = false;
  std::int64_t disconnected_since_ms_;
  std::string last_error_;
  TrackerCounters counters_;
  std::deque<Output> outputs_;
};

}  // namespace conductor
