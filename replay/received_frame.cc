#include "replay/received_frame.h"

#include <algorithm>
#include <utility>

namespace conductor {
namespace {

bool NumberBelow(const ReceivedFrame& frame, std::uint64_t number) {
  return frame.number < number;
}

}  // namespace

bool FrameBuffer::Insert(ReceivedFrame&& frame) {
  if (!HasRoom(frame)) return false;
  auto place = frames_.end();
  if (!frames_.empty() && frames_.back().number >= frame.number) {
    place = std::lower_bound(frames_.begin(), frames_.end(), frame.number, NumberBelow);
    if (place->number == frame.number) return false;
  }
  bytes_ += frame.payload.size();
  frames_.insert(place, std::move(frame));
  return true;
}

bool FrameBuffer::Append(ReceivedFrame&& frame) {
  if (!HasRoom(frame)) return false;
  bytes_ += frame.payload.size();
  frames_.push_back(std::move(frame));
  return true;
}

ReceivedFrame FrameBuffer::PopFront() {
  ReceivedFrame frame = std::move(frames_.front());
  frames_.pop_front();
  bytes_ -= frame.payload.size();
  return frame;
}

ReceivedFrame FrameBuffer::PopBack() {
  ReceivedFrame frame = std::move(frames_.back());
  frames_.pop_back();
  bytes_ -= frame.payload.size();
  return frame;
}

std::optional<std::uint64_t> FrameBuffer::FindFingerprint(std::uint64_t number) const {
  const auto place = std::lower_bound(frames_.begin(), frames_.end(), number, NumberBelow);
  if (place == frames_.end() || place->number != number) return std::nullopt;
  return place->fingerprint;
}

void FrameBuffer::Clear() {
  frames_.clear();
  bytes_ = 0;
}

}  // namespace conductor
