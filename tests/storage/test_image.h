// TestImage: an image that owns what its pieces point to, so that tests can build one, spoil one
// piece of it and play it into a visitor. It knows no state: the numbers are made up.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/state/image.h"

namespace conductor::storage {

struct TestName {
  Scope scope = kSharedScope;
  std::uint64_t projected = 0;
  std::string digest;

  ImageName View() const { return {scope, projected, digest}; }
};

struct TestRun {
  ImageRun piece;  // without what is below
  TestName parent;
  std::vector<std::uint64_t> fingerprints, names;
  std::vector<StateId> sets;
  std::optional<Digest> digest;
};

struct TestEntry {
  ImageEntry piece;  // without what is below
  TestName name;
  std::optional<TestName> parent;
  std::optional<Digest> digest;
};

struct TestImage {
  ImageStart start;
  std::vector<ImageContext> contexts;
  std::vector<ImagePool> pools;
  std::vector<std::pair<StreamId, Registration>> registrations;
  std::vector<ImageHolder> holders;
  std::vector<std::pair<StateId, std::vector<HolderId>>> sets;
  std::vector<TestRun> runs;
  std::vector<TestEntry> entries;
  struct Copies {
    HolderId holder = 0;
    TestName name;
    std::uint32_t copies = 2;
  };
  std::vector<Copies> copies;
  struct Parts {
    HolderId holder = 0;
    std::uint64_t name = 0;
    std::vector<PartTable::Part> parts;
  };
  std::vector<Parts> parts;
  std::vector<StreamFacts> streams;
  ImageEnd end;

  Status Play(ImageVisitor& visitor) const;
};

// One of everything, and small: two engines and a store share a context.
TestImage SmallImage(Seq seq);
// Everything at random, in the ranges of the format.
TestImage RandomImage(Seq seq, std::uint64_t seed);
// `blocks` blocks in full runs: for speed and size.
TestImage LongImage(Seq seq, std::uint64_t blocks);

// As the file's bytes; an error is a failure of the test.
std::string Encode(const TestImage& image);
std::vector<std::string> TextsOf(const TestImage& image);

}  // namespace conductor::storage
