// An image: the whole state at exactly one log position, in pieces.
//
// The state hands its pieces to an ImageVisitor (ImageCut, state/image_cut.h); storage/ encodes
// them, and later hands the same pieces to the visitor that builds a state again
// (state/image_loader.h). Ids in an image (contexts, pools, holders, sets) are the image's own:
// they tie its pieces together and mean nothing outside.
//
// Order of the pieces: OnStart; the others in any order in which what is named (a context, a pool, a
// registration, a holder, a set) comes before what names it; OnEnd. A piece's spans and views are
// valid during the call only. A parent is given by its name and may come later, or never: then it is
// a place that nobody holds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "src/index/holder_table.h"
#include "src/index/part_table.h"
#include "src/result.h"
#include "src/state/stream_facts.h"
#include "src/types.h"

namespace conductor {

struct ImageStart {
  Seq seq = 0;  // every record up to it is in the image, none behind it
  StreamId next_stream = 1;
};

struct ImageContext {
  ContextId id = 0;
  ContextKey key;
  std::optional<HashProfile> profile;
  bool has_engine_profile = false;
};

struct ImagePool {
  PoolId id = 0;
  std::string backend_id, tenant_id;
};

// A registration and its id. What else the log says of the stream comes with OnStream.
struct ImageRegistration {
  StreamId stream = 0;
  const Registration* registration = nullptr;
};

struct ImageHolder {
  HolderId id = 0;
  HolderKey key;
  Sum128 sum = 0;            // of its blocks' mixes: what the loader must arrive at
  std::uint64_t blocks = 0;  // the same
};

// A set of live holders: never empty.
struct ImageSet {
  StateId id = 0;
  std::span<const HolderId> holders;  // ascending
};

// A block's name as others refer to it; a root's is its salt's digest.
struct ImageName {
  Scope scope = kSharedScope;
  std::uint64_t projected = 0;
  std::string_view digest;  // empty, or the whole name of 9 to 64 bytes
};

// Consecutive shared blocks of full length. `sets` may have zeros inside (places that nobody
// holds), never at the end.
struct ImageRun {
  ContextId context = 0;
  HashCheck check = HashCheck::kEqual;
  bool extra_keys_on_wire = false;
  ImageName parent;
  std::span<const std::uint64_t> fingerprints, names;
  std::span<const StateId> sets;  // all three of one size, 1 to kRunSlotsMax
  std::uint32_t digest_slot = 0;  // whose full digest `digest` is
  const Digest* digest = nullptr;
};

// Any other named block, or a name that only pools have (kNone, no parent).
struct ImageEntry {
  ContextId context = 0;
  ImageName name;
  std::optional<ImageName> parent;
  std::uint64_t fingerprint = 0;
  std::uint32_t length = 0;
  HashCheck check = HashCheck::kNotComputed;
  bool extra_keys_on_wire = false;
  BlockClass block_class = BlockClass::kNone;
  StateId set = 0;  // not 0
  const Digest* digest = nullptr;
};

// A holder has more than one copy of a block (in its own context).
struct ImageCopies {
  HolderId holder = 0;
  ImageName name;
  std::uint32_t copies = 2;
};

// The parts a pool's holder has of a name.
struct ImageParts {
  HolderId holder = 0;
  std::uint64_t name = 0;
  std::span<const PartTable::Part> parts;  // ascending
};

struct ImageEnd {
  Sum128 digest = 0;  // the state digest at ImageStart::seq
  std::uint64_t blocks = 0, fragments = 0;
};

// Takes the pieces. An error ends the image: nothing more is handed over.
class ImageVisitor {
 public:
  virtual ~ImageVisitor() = default;
  virtual Status OnStart(const ImageStart& piece) = 0;
  virtual Status OnContext(const ImageContext& piece) = 0;
  virtual Status OnPool(const ImagePool& piece) = 0;
  virtual Status OnRegistration(const ImageRegistration& piece) = 0;
  virtual Status OnHolder(const ImageHolder& piece) = 0;
  virtual Status OnSet(const ImageSet& piece) = 0;
  virtual Status OnRun(const ImageRun& piece) = 0;
  virtual Status OnEntry(const ImageEntry& piece) = 0;
  virtual Status OnCopies(const ImageCopies& piece) = 0;
  virtual Status OnParts(const ImageParts& piece) = 0;
  // Everything but `registration`, which OnRegistration brought.
  virtual Status OnStream(const StreamFacts& piece) = 0;
  virtual Status OnEnd(const ImageEnd& piece) = 0;
};

}  // namespace conductor
