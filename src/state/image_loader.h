// ImageLoader: builds a state from the pieces of an image, and proves that it is the state they
// were taken from: every holder's sum is computed again, block by block.
//
//   ImageLoader loader;
//   CONDUCTOR_RETURN_IF_ERROR(store.ReadSnapshot(seq, loader));
//   std::unique_ptr<StateMachine> state = loader.Take();
//
// It takes no piece on trust: one that contradicts another is kDataLoss. Owned by one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/state/image.h"
#include "src/state/state_machine.h"

namespace conductor {

class ImageLoader final : public ImageVisitor {
 public:
  ImageLoader();
  ~ImageLoader() override;

  Status OnStart(const ImageStart& piece) override;
  Status OnContext(const ImageContext& piece) override;
  Status OnPool(const ImagePool& piece) override;
  Status OnRegistration(const ImageRegistration& piece) override;
  Status OnHolder(const ImageHolder& piece) override;
  Status OnSet(const ImageSet& piece) override;
  Status OnRun(const ImageRun& piece) override;
  Status OnEntry(const ImageEntry& piece) override;
  Status OnCopies(const ImageCopies& piece) override;
  Status OnParts(const ImageParts& piece) override;
  Status OnStream(const StreamFacts& piece) override;
  Status OnEnd(const ImageEnd& piece) override;

  // After OnEnd: the state, and its position. Once.
  std::unique_ptr<StateMachine> Take() { return std::move(state_); }
  Seq seq() const { return seq_; }
  std::uint64_t blocks() const { return blocks_; }  // read so far

 private:
  // What the image says of a holder, and its id here.
  struct Expected {
    HolderId id = 0;
    Sum128 sum = 0;
    std::uint64_t blocks = 0;
  };
  struct PendingCopies {
    HolderId holder;
    ContextId context;
    Scope scope;
    std::uint64_t projected;
    std::string digest;
    std::uint32_t copies;
  };

  Result<ContextId> ContextOf(ContextId image_id) const;
  Result<StateId> SetIdOf(StateId image_id, ContextId context) const;
  // What hangs below it is put there, whether it has come yet or not.
  EntryId Parent(ContextId context, const ImageName& name);
  bool IsTakenByEntry(ContextId context, std::uint64_t name) const;
  void TakeOverChildren(EntryId slot);
  // Slots [begin, end) of a run, all in one set.
  void AddHolders(const RunTable::View& run, std::uint32_t begin, std::uint32_t end);
  Status PlaceCopies(const PendingCopies& pending);
  Status CheckSums(const ImageEnd& piece) const;

  std::unique_ptr<StateMachine> state_;
  PrefixIndex& index_;
  Seq seq_ = 0;
  StreamId next_stream_ = 1;
  std::uint64_t blocks_ = 0;
  std::unordered_map<ContextId, ContextId> contexts_;
  std::unordered_map<PoolId, PoolId> pools_;
  std::map<HolderId, Expected> holders_;
  std::unordered_map<StateId, StateId> sets_;
  std::vector<PendingCopies> copies_;
  std::vector<StateId> run_sets_;
};

}  // namespace conductor
