// Baseline T: a compressed radix tree over block fingerprints that are ready. A node is a stretch
// of blocks without a branch; each owner of it has the first so many of them. Each owner has a map
// from block name to (node, offset), by which parents and removals are found.
//
// A removal cuts what the owner has of the node: right when the deepest block goes first, as an
// engine's LRU does it; the benches remove in that order only. Nodes are split, never merged; one
// that nobody owns any more is freed when it has no children.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>

#include "bench/baseline.h"
#include "bench/flat_map.h"

namespace conductor::bench {

class RadixTreeBaseline {
 public:
  // `owners`: how many there can be.
  explicit RadixTreeBaseline(std::size_t owners) : places_(owners) {}

  // Blocks that follow each other below `parent` (none: the root).
  void Store(Owner owner, std::optional<std::uint64_t> parent, std::span<const std::uint64_t> names,
             std::span<const std::uint64_t> fingerprints);
  void Remove(Owner owner, std::span<const std::uint64_t> names);
  // Unsorted.
  std::vector<Depth> Match(std::span<const std::uint64_t> fingerprints) const;

 private:
  struct Node {
    Node* parent = nullptr;
    std::vector<std::uint64_t> fingerprints, names;
    std::vector<Depth> owners;                // sorted; of this node's own blocks, > 0
    FlatMap<std::unique_ptr<Node>> children;  // by first fingerprint
  };
  struct Place {
    Node* node = nullptr;
    std::uint32_t offset = 0;
  };

  static Depth* FindOwner(Node& node, Owner owner);
  // The node ends before `offset`; what follows becomes its one child.
  void Split(Node& node, std::size_t offset);
  // Forgets blocks at the end of a leaf that nobody has any more.
  static void Trim(Node& node);
  void FreeIfUnused(Node* node);

  Node root_;  // has no blocks
  std::vector<FlatMap<Place>> places_;
};

}  // namespace conductor::bench
