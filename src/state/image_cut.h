// ImageCut: hands the state as it is at this moment to a visitor, in steps, while Apply goes on.
//
// Construction notes what the holders have, and hands over contexts and pools. After that each
// piece is handed over once, as it was then: by Step, at the last moment by whatever is about to
// change it (copy on write). Blocks that change before all holders were handed over are copied, and
// wait. So the cost to the writer is that of the pieces, spread; nothing stops, and nothing is
// locked.
//
// How a piece is known to be as it was: pieces that were born later, or handed over, are marked;
// names, links and sets of holders never change in place. A holder that was retired meanwhile is
// still in the sets of what has not been handed over: ids of holders and sets are used again only
// when no block names them any more. A retired one from before is left out.
//
// Owned by the thread that owns the state, which it outlives not; one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "src/index/change_watch.h"
#include "src/state/image.h"
#include "src/state/image_tape.h"
#include "src/state/state_machine.h"

namespace conductor {

class ImageCut final : public ChangeWatch {
 public:
  // `seq`: the last record that was applied. Both outlive the cut.
  ImageCut(StateMachine& state, Seq seq, ImageVisitor& visitor);
  ~ImageCut() override;
  ImageCut(const ImageCut&) = delete;
  ImageCut& operator=(const ImageCut&) = delete;

  // Hands over about `budget` blocks. True: everything was, OnEnd too, or an error ended it.
  bool Step(std::size_t budget);
  // The visitor's first error. After it nothing more is handed over.
  const Status& status() const { return status_; }
  // 0 to 1, of the blocks.
  double fraction() const;

  // The state's: the facts of a stream are about to change, or to go.
  void BeforeStream(const StreamFacts& stream);

  void BeforeBlock(EntryId id) override;
  void OnNewBlock(EntryId id) override;
  void BeforeCopies(std::uint32_t shard) override;
  void BeforeParts(const void* names, std::uint32_t shard) override;

 private:
  enum class Phase {
    kRegistrations,
    kHolders,
    kWaiting,
    kRuns,
    kEntries,
    kCopies,
    kParts,
    kStreams,
    kEnd,
    kDone
  };
  // Bits that grow on demand.
  class Marks {
   public:
    bool Has(std::size_t i) const { return i < bits_.size() && bits_[i]; }
    void Add(std::size_t i) {
      if (i >= bits_.size()) bits_.resize(i + i / 2 + 64);
      bits_[i] = true;
    }

   private:
    std::vector<bool> bits_;
  };
  // The names of which one holder has parts.
  struct PoolNames {
    HolderId holder = 0;
    const PartTable::Names* names = nullptr;
    std::size_t shards = 0;  // that there were
    Marks done;
  };

  // A holder as it was at the beginning.
  struct HolderThen {
    ImageHolder piece;
    PrefixIndex::HolderNames names;
    bool counts = false;  // in the digest: it has something
  };

  void HandOverTables(Seq seq);
  void NoteHolders();
  std::size_t StepOnce();
  // The stream's part of its holders' mixes; its registration is handed over when it was not.
  Sum128 SaveRegistration(StreamId id);
  void SaveHolder(const HolderThen& holder);
  // Where what names holders goes now.
  ImageVisitor& blocks() { return phase_ <= Phase::kWaiting ? waiting_ : visitor_; }
  std::size_t SaveRun(const RunTable::View& run);
  std::size_t SaveEntry(EntryId id);
  std::size_t SaveCopies(std::uint32_t shard);
  std::size_t SaveParts(PoolNames& pool, std::uint32_t shard);
  void SaveStream(const StreamFacts& stream);
  void Take(Status status) {
    if (status_ && !status) status_ = std::move(status);
  }
  ImageName NameOf(EntryId id) const;
  const HolderThen* HolderAt(HolderId id) const {
    return id < holder_at_.size() && holder_at_[id] != 0 ? &holders_[holder_at_[id] - 1] : nullptr;
  }
  // The set's id in the image, handed over when it is new; 0: none of it was live.
  StateId SaveSet(StateId id);
  bool HasEngine(StateId id) const { return sets_[id] == SetFate::kBlock; }

  StateMachine& state_;
  PrefixIndex& index_;
  ImageVisitor& visitor_;
  Status status_;
  Phase phase_ = Phase::kRegistrations;

  // As of the beginning.
  std::vector<HolderThen> holders_;
  std::vector<std::uint32_t> holder_at_;  // by HolderId: 1 + its place in holders_; 0: not live
  StreamId next_stream_;
  EntryId end_entry_;
  std::size_t copy_shards_;
  std::vector<PoolNames> pools_;
  ImageEnd end_;
  std::size_t slots_;

  StreamId registration_ = 1;
  std::size_t holder_ = 0;
  std::uint32_t run_position_ = 0;
  EntryId entry_ = 1;
  std::uint32_t copy_shard_ = 0;
  std::size_t pool_ = 0;
  std::uint32_t part_shard_ = 0;
  StreamId stream_ = 1;
  std::size_t saved_ = 0;

  ImageTape waiting_;
  // Ahead of the cursors: what is saved already, or was born later. Runs by position.
  Marks runs_, entries_;
  Marks copies_;
  std::unordered_map<StreamId, Sum128> registrations_;  // with their streams' identity mixes
  std::unordered_set<StreamId> streams_;
  enum class SetFate : std::uint8_t { kUnknown, kNobody, kName, kBlock };
  std::vector<SetFate> sets_;  // by StateId
  std::vector<HolderId> members_;
  std::vector<StateId> run_sets_;
  std::size_t set_cost_ = 0;  // of the sets that were handed over since the last step, in blocks
};

}  // namespace conductor
