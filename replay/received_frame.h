// One numbered batch of a publisher as it came off a socket, and the bounded, ordered room in which
// live ones wait while something before them may be missing. Pure values; one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

namespace conductor {

struct ReceivedFrame {
  std::uint64_t number = 0;
  std::uint64_t fingerprint = 0;  // XXH3-64 of the payload
  std::string payload;
};

// Ordered by number, without duplicates. Limited in frames and in bytes of payload.
class FrameBuffer {
 public:
  FrameBuffer(std::size_t frames_max, std::size_t bytes_max)
      : frames_max_(frames_max), bytes_max_(bytes_max) {}

  bool empty() const { return frames_.empty(); }
  std::size_t size() const { return frames_.size(); }
  std::size_t bytes() const { return bytes_; }
  const ReceivedFrame& front() const { return frames_.front(); }
  const ReceivedFrame& back() const { return frames_.back(); }

  // False: full, or the number is there already; nothing was taken.
  bool Insert(ReceivedFrame&& frame);
  // At the end, whatever its number: for a line of frames whose order is still in doubt.
  bool Append(ReceivedFrame&& frame);
  ReceivedFrame PopFront();
  ReceivedFrame PopBack();
  std::optional<std::uint64_t> FindFingerprint(std::uint64_t number) const;
  void Clear();

 private:
  bool HasRoom(const ReceivedFrame& frame) const {
    return frames_.size() < frames_max_ && bytes_ + frame.payload.size() <= bytes_max_;
  }

  std::size_t frames_max_;
  std::size_t bytes_max_;
  std::size_t bytes_ = 0;  // Invariant: the sum of the payload sizes; bytes_ <= bytes_max_.
  std::deque<ReceivedFrame> frames_;
};

}  // namespace conductor
