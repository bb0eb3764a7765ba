// Reading a snapshot file (docs/snapshot_format.md) from its first byte to its last, one frame in
// memory at a time. Nothing of a frame is believed before its checksum, no length before it was
// compared with its limit and with what is left of the file.
//
// Errors name the file, the offset, what was expected and what was found.
//   kDataLoss            damaged
//   kFailedPrecondition  whole, but of a newer release
// One thread per source; the functions keep nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "src/state/image.h"

namespace conductor::storage {

// Where the bytes come from.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // Fills `to`; less only at the end.
  virtual Result<std::size_t> Read(std::span<char> to) = 0;
};

struct SnapshotFileName {
  std::string path;  // for messages
  Seq seq = 0;       // the position that the file should have
  std::uint64_t bytes = 0;
};

Status ReadSnapshotBytes(const SnapshotFileName& file, ByteSource& source, ImageVisitor& visitor);

// What the two ends of a file say: its first kSnapshotHeaderBytes and its last kEndFrameBytes.
struct SnapshotEnds {
  std::string_view head, tail;
};
Result<ImageEnd> ReadSnapshotEnds(const SnapshotFileName& file, const SnapshotEnds& ends);

// Takes every piece and does nothing: for who wants only the checks.
class NullVisitor final : public ImageVisitor {
 public:
  Status OnStart(const ImageStart&) override { return {}; }
  Status OnContext(const ImageContext&) override { return {}; }
  Status OnPool(const ImagePool&) override { return {}; }
  Status OnRegistration(const ImageRegistration&) override { return {}; }
  Status OnHolder(const ImageHolder&) override { return {}; }
  Status OnSet(const ImageSet&) override { return {}; }
  Status OnRun(const ImageRun&) override { return {}; }
  Status OnEntry(const ImageEntry&) override { return {}; }
  Status OnCopies(const ImageCopies&) override { return {}; }
  Status OnParts(const ImageParts&) override { return {}; }
  Status OnStream(const StreamFacts&) override { return {}; }
  Status OnEnd(const ImageEnd&) override { return {}; }
};

}  // namespace conductor::storage
