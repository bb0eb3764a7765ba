// ImageTape: pieces of an image, copied, and handed over again: what has to wait for its turn, or a
// whole snapshot without a disk. One thread.
#pragma once

#include <deque>
#include <functional>
#include <utility>

#include "src/state/image.h"

namespace conductor {

class ImageTape final : public ImageVisitor {
 public:
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

  // All of them.
  Status Play(ImageVisitor& visitor) const;
  // The first one, which is then gone.
  Status PlayNext(ImageVisitor& visitor);
  bool Empty() const { return pieces_.empty(); }
  const ImageEnd& end() const { return end_; }

 private:
  using Piece = std::function<Status(ImageVisitor&)>;
  Status Keep(Piece piece) {
    pieces_.push_back(std::move(piece));
    return {};
  }

  std::deque<Piece> pieces_;
  ImageEnd end_;
};

}  // namespace conductor
