// The elements of a container from the last to the first (std::views::reverse, which clang 14 cannot
// compile with this standard library).
#pragma once

namespace conductor {

template <typename Container>
class Reversed {
 public:
  explicit Reversed(const Container& container) : container_(container) {}
  auto begin() const { return container_.rbegin(); }
  auto end() const { return container_.rend(); }

 private:
  const Container& container_;
};

}  // namespace conductor
