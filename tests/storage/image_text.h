// ImageText: every field of every piece of an image as a line of text, so that tests compare images
// without the codec.
#pragma once

#include <string>
#include <vector>

#include "src/state/image.h"

namespace conductor::storage {

class ImageText final : public ImageVisitor {
 public:
  const std::vector<std::string>& lines() const { return lines_; }

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

 private:
  std::vector<std::string> lines_;
};

}  // namespace conductor::storage
