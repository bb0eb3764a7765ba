#include "bench/baseline_radix_tree.h"

namespace conductor::bench {

Depth* RadixTreeBaseline::FindOwner(Node& node, Owner owner) {
  const auto at = std::lower_bound(node.owners.begin(), node.owners.end(), owner,
                                   [](const Depth& depth, Owner o) { return depth.owner < o; });
  return at != node.owners.end() && at->owner == owner ? &*at : nullptr;
}

void RadixTreeBaseline::Split(Node& node, std::size_t offset) {
  auto tail = std::make_unique<Node>();
  const auto at = static_cast<std::ptrdiff_t>(offset);
  tail->parent = &node;
  tail->fingerprints.assign(node.fingerprints.begin() + at, node.fingerprints.end());
  tail->names.assign(node.names.begin() + at, node.names.end());
  node.fingerprints.resize(offset);
  node.names.resize(offset);
  node.fingerprints.shrink_to_fit();
  node.names.shrink_to_fit();
  tail->children = std::move(node.children);
  tail->children.ForEach(
      [&](std::uint64_t, std::unique_ptr<Node>& child) { child->parent = tail.get(); });
  node.children = {};
  for (Depth& depth : node.owners) {
    if (depth.blocks <= offset) continue;
    tail->owners.push_back({depth.owner, depth.blocks - offset});
    for (std::size_t i = 0; i < depth.blocks - offset; ++i) {
      *places_[depth.owner].Find(tail->names[i]) = {tail.get(), static_cast<std::uint32_t>(i)};
    }
    depth.blocks = offset;
  }
  const std::uint64_t first = tail->fingerprints.front();
  node.children[first] = std::move(tail);
}

void RadixTreeBaseline::Store(Owner owner, std::optional<std::uint64_t> parent,
                              std::span<const std::uint64_t> names,
                              std::span<const std::uint64_t> fingerprints) {
  FlatMap<Place>& places = places_[owner];
  Node* node = &root_;
  std::size_t offset = 0;
  if (parent) {
    const Place* place = places.Find(*parent);
    if (place == nullptr) return;  // an orphan
    node = place->node;
    offset = place->offset + 1;
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (offset < node->fingerprints.size() && node->fingerprints[offset] != fingerprints[i]) {
      Split(*node, offset);
    }
    if (offset == node->fingerprints.size()) {
      const bool extend = node != &root_ && node->children.size() == 0;
      if (extend) {
        node->fingerprints.push_back(fingerprints[i]);
        node->names.push_back(names[i]);
      } else {
        std::unique_ptr<Node>& child = node->children[fingerprints[i]];
        if (child == nullptr) {
          child = std::make_unique<Node>();
          child->parent = node;
          child->fingerprints.push_back(fingerprints[i]);
          child->names.push_back(names[i]);
        }
        node = child.get();
        offset = 0;
      }
    }
    Depth* depth = FindOwner(*node, owner);
    if (depth == nullptr) {
      const auto at = std::lower_bound(node->owners.begin(), node->owners.end(), owner,
                                       [](const Depth& d, Owner o) { return d.owner < o; });
      depth = &*node->owners.insert(at, {owner, 0});
    }
    depth->blocks = std::max(depth->blocks, offset + 1);
    places[names[i]] = {node, static_cast<std::uint32_t>(offset)};
    ++offset;
  }
}

void RadixTreeBaseline::Remove(Owner owner, std::span<const std::uint64_t> names) {
  FlatMap<Place>& places = places_[owner];
  for (std::uint64_t name : names) {
    const Place* found = places.Find(name);
    if (found == nullptr) continue;
    const Place place = *found;
    places.Erase(name);
    Depth* depth = FindOwner(*place.node, owner);
    if (depth == nullptr || depth->blocks <= place.offset) continue;
    depth->blocks = place.offset;
    if (depth->blocks == 0) {
      place.node->owners.erase(place.node->owners.begin() + (depth - place.node->owners.data()));
    }
    Trim(*place.node);
    FreeIfUnused(place.node);
  }
}

void RadixTreeBaseline::Trim(Node& node) {
  if (node.children.size() > 0) return;
  std::size_t longest = 1;  // its first fingerprint names the node in its parent
  for (const Depth& depth : node.owners) longest = std::max(longest, depth.blocks);
  node.fingerprints.resize(longest);
  node.names.resize(longest);
}

void RadixTreeBaseline::FreeIfUnused(Node* node) {
  while (node != &root_ && node->owners.empty() && node->children.size() == 0) {
    Node* parent = node->parent;
    parent->children.Erase(node->fingerprints.front());
    node = parent;
  }
}

std::vector<Depth> RadixTreeBaseline::Match(std::span<const std::uint64_t> fingerprints) const {
  std::vector<Depth> done;
  std::vector<Owner> left;
  const Node* node = &root_;
  std::size_t at = 0;
  while (at < fingerprints.size()) {
    const std::unique_ptr<Node>* child = node->children.Find(fingerprints[at]);
    if (child == nullptr) break;
    const bool first = node == &root_;
    node = child->get();
    const std::size_t length = std::min(node->fingerprints.size(), fingerprints.size() - at);
    const auto mismatch =
        std::mismatch(node->fingerprints.begin(),
                      node->fingerprints.begin() + static_cast<std::ptrdiff_t>(length),
                      fingerprints.begin() + static_cast<std::ptrdiff_t>(at));
    const auto same = static_cast<std::size_t>(mismatch.first - node->fingerprints.begin());
    if (first) {
      for (const Depth& depth : node->owners) left.push_back(depth.owner);
    }
    // Two sorted lists side by side: who goes on has the whole node.
    std::size_t kept = 0;
    auto here = node->owners.begin();
    for (Owner owner : left) {
      while (here != node->owners.end() && here->owner < owner) ++here;
      const bool has = here != node->owners.end() && here->owner == owner;
      const std::size_t blocks = has ? std::min(here->blocks, same) : 0;
      if (has && blocks == node->fingerprints.size()) {
        left[kept++] = owner;
      } else {
        done.push_back({owner, at + blocks});
      }
    }
    left.resize(kept);
    at += same;
    if (left.empty() || same < node->fingerprints.size()) break;
  }
  for (Owner owner : left) done.push_back({owner, at});
  return done;
}

}  // namespace conductor::bench
