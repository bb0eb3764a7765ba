// PieceDecoder: the payloads of a snapshot's frames as pieces of an image, every field of them
// checked: ranges, sizes, enum values, the order of the pieces, ids that are twice or nowhere.
//
//   kDataLoss            the bytes contradict the format or themselves
//   kFailedPrecondition  a kind, value or flag of a newer release (the frame's checksum was right)
// Errors of the visitor are returned as they are. One thread; the visitor is borrowed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/index/run_table.h"
#include "src/state/image.h"
#include "storage/field_bytes.h"
#include "storage/image_ids.h"
#include "storage/record_check.h"
#include "storage/snapshot_format.h"

namespace conductor::storage {

class PieceDecoder {
 public:
  // `name` is how errors call the file.
  PieceDecoder(std::string name, Seq seq, ImageVisitor& visitor)
      : name_(std::move(name)), seq_(seq), visitor_(visitor) {}

  // The whole pieces of one frame; `offset` is where the payload stands in the file.
  Status Decode(std::string_view payload, std::uint64_t offset);
  // After the last one: whether something was left open, and OnEnd.
  Status Finish(const ImageEnd& end);
  // Pieces so far, by kind - 1.
  const std::array<std::uint64_t, kPieceKinds>& pieces() const { return pieces_; }

 private:
  struct Stream {
    std::set<ContextId> contexts;
    bool complete = false;  // its kStream came
  };

  Status DecodePiece(PieceKind kind, FieldReader& in);
  Status Start(FieldReader& in);
  Status Context(FieldReader& in);
  Status Pool(FieldReader& in);
  Status OneRegistration(FieldReader& in);
  Status OneHolder(FieldReader& in);
  Status Set(FieldReader& in);
  Status Run(FieldReader& in);
  Status RunSets(FieldReader& in, std::size_t size, std::size_t stretches, ContextId context);
  Status Entry(FieldReader& in);
  Status Copies(FieldReader& in);
  Status Parts(FieldReader& in);
  Status StreamContexts(FieldReader& in);
  Status OneStream(FieldReader& in);
  Status StreamLists(FieldReader& in, StreamFacts* facts);

  Status CheckOrder(PieceKind kind);
  Status CheckContext(ContextId id);
  Status CheckSet(StateId id, ContextId context);
  Result<ImageName> TakeName(FieldReader& in);
  Result<std::string> TakeText(FieldReader& in, const char* field);
  template <typename Enum>
  Result<Enum> TakeEnum(FieldReader& in, const char* field);
  Result<std::uint8_t> TakeFlags(FieldReader& in, std::uint8_t known);
  Result<const Digest*> TakeDigest(FieldReader& in, bool present);
  Result<Stream*> FindStream(StreamId id);
  Result<Stream*> FindIncompleteStream(StreamId id);

  tl::unexpected<Error> Damaged(const std::string& what) const;
  tl::unexpected<Error> Newer(const std::string& what) const;
  tl::unexpected<Error> Short() const { return Damaged("fields go beyond the frame"); }
  std::string Place() const;

  const std::string name_;
  const Seq seq_;
  ImageVisitor& visitor_;

  // Where the piece being read stands, for messages.
  std::uint64_t offset_ = 0;
  std::uint8_t kind_ = 0;

  // What was seen. Contexts, pools: 1. Holders, sets: their context.
  ImageIds contexts_, pools_, holders_, sets_;
  std::unordered_map<StreamId, Stream> streams_;  // looked up, never iterated
  std::uint64_t streams_complete_ = 0;
  StreamId next_stream_ = 0;
  StateId open_set_ = 0;  // a set that goes on in the next piece
  std::array<std::uint64_t, kPieceKinds> pieces_{};

  // Of the piece being read: the visitor's spans and pointers lead here.
  std::array<std::uint64_t, kRunSlotsMax> fingerprints_, names_;
  std::array<StateId, kRunSlotsMax> run_sets_;
  std::vector<HolderId> set_holders_;
  std::vector<PartTable::Part> parts_;
  Digest digest_{};
};

template <typename Enum>
Result<Enum> PieceDecoder::TakeEnum(FieldReader& in, const char* field) {
  const auto value = in.Take<std::uint8_t>();
  if (!in.ok()) return Short();
  if (value == 0) return Damaged(std::string(field) + " 0");
  if (!IsKnown<Enum>(value)) return Newer(std::string(field) + " " + std::to_string(value));
  return static_cast<Enum>(value);
}

}  // namespace conductor::storage
