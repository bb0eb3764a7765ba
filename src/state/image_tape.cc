#include "src/state/image_tape.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace conductor {
namespace {

// A name that owns its digest.
struct KeptName {
  explicit KeptName(const ImageName& name)
      : scope(name.scope), projected(name.projected), digest(name.digest) {}
  ImageName View() const { return {scope, projected, digest}; }

  Scope scope;
  std::uint64_t projected;
  std::string digest;
};

template <typename T>
std::vector<T> Copy(std::span<const T> values) {
  return {values.begin(), values.end()};
}

std::optional<Digest> Copy(const Digest* digest) {
  return digest == nullptr ? std::nullopt : std::optional<Digest>(*digest);
}

}  // namespace

Status ImageTape::OnStart(const ImageStart& piece) {
  return Keep([=](ImageVisitor& visitor) { return visitor.OnStart(piece); });
}

Status ImageTape::OnContext(const ImageContext& piece) {
  return Keep([=](ImageVisitor& visitor) { return visitor.OnContext(piece); });
}

Status ImageTape::OnPool(const ImagePool& piece) {
  return Keep([=](ImageVisitor& visitor) { return visitor.OnPool(piece); });
}

Status ImageTape::OnRegistration(const ImageRegistration& piece) {
  return Keep([stream = piece.stream, registration = *piece.registration](ImageVisitor& visitor) {
    return visitor.OnRegistration({stream, &registration});
  });
}

Status ImageTape::OnHolder(const ImageHolder& piece) {
  return Keep([=](ImageVisitor& visitor) { return visitor.OnHolder(piece); });
}

Status ImageTape::OnSet(const ImageSet& piece) {
  return Keep([id = piece.id, holders = Copy(piece.holders)](ImageVisitor& visitor) {
    return visitor.OnSet({id, holders});
  });
}

Status ImageTape::OnRun(const ImageRun& piece) {
  return Keep([piece, parent = KeptName(piece.parent), fingerprints = Copy(piece.fingerprints),
               names = Copy(piece.names), sets = Copy(piece.sets),
               digest = Copy(piece.digest)](ImageVisitor& visitor) {
    ImageRun run = piece;
    run.parent = parent.View();
    run.fingerprints = fingerprints;
    run.names = names;
    run.sets = sets;
    run.digest = digest ? &*digest : nullptr;
    return visitor.OnRun(run);
  });
}

Status ImageTape::OnEntry(const ImageEntry& piece) {
  std::optional<KeptName> parent;
  if (piece.parent) parent.emplace(*piece.parent);
  return Keep([piece, name = KeptName(piece.name), parent,
               digest = Copy(piece.digest)](ImageVisitor& visitor) {
    ImageEntry entry = piece;
    entry.name = name.View();
    if (parent) entry.parent = parent->View();
    entry.digest = digest ? &*digest : nullptr;
    return visitor.OnEntry(entry);
  });
}

Status ImageTape::OnCopies(const ImageCopies& piece) {
  return Keep([piece, name = KeptName(piece.name)](ImageVisitor& visitor) {
    return visitor.OnCopies({piece.holder, name.View(), piece.copies});
  });
}

Status ImageTape::OnParts(const ImageParts& piece) {
  return Keep([piece, parts = Copy(piece.parts)](ImageVisitor& visitor) {
    return visitor.OnParts({piece.holder, piece.name, parts});
  });
}

Status ImageTape::OnStream(const StreamFacts& piece) {
  return Keep([=](ImageVisitor& visitor) { return visitor.OnStream(piece); });
}

Status ImageTape::OnEnd(const ImageEnd& piece) {
  end_ = piece;
  return Keep([=](ImageVisitor& visitor) { return visitor.OnEnd(piece); });
}

Status ImageTape::Play(ImageVisitor& visitor) const {
  for (const Piece& piece : pieces_) CONDUCTOR_RETURN_IF_ERROR(piece(visitor));
  return {};
}

Status ImageTape::PlayNext(ImageVisitor& visitor) {
  const Piece piece = std::move(pieces_.front());
  pieces_.pop_front();
  return piece(visitor);
}

}  // namespace conductor
