#include "src/ports.h"

namespace conductor {

std::string_view ToString(StreamState state) {
  switch (state) {
    case StreamState::kConnecting: return "connecting";
    case StreamState::kCatchingUp: return "catching_up";
    case StreamState::kLive: return "live";
    case StreamState::kDegraded: return "degraded";
  }
  return "unknown";
}

}  // namespace conductor
