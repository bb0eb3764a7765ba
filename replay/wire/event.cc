#include "replay/wire/event.h"

namespace conductor {

std::string_view ToString(EventFault fault) {
  switch (fault) {
    case EventFault::kNone:
      return "none";
    case EventFault::kEventType:
      return "event_type";
    case EventFault::kUnknownTag:
      return "unknown_tag";
    case EventFault::kMissingField:
      return "missing_field";
    case EventFault::kFieldType:
      return "field_type";
    case EventFault::kFieldRange:
      return "field_range";
    case EventFault::kHashType:
      return "hash_type";
    case EventFault::kHashTooShort:
      return "hash_too_short";
    case EventFault::kHashTooLong:
      return "hash_too_long";
    case EventFault::kTokenType:
      return "token_type";
    case EventFault::kTokenRange:
      return "token_range";
    case EventFault::kBlockSize:
      return "block_size";
    case EventFault::kDuplicateKey:
      return "duplicate_key";
    case EventFault::kKeyType:
      return "key_type";
    case EventFault::kInvalidUtf8:
      return "invalid_utf8";
    case EventFault::kExtraKeys:
      return "extra_keys";
    case EventFault::kTooManyKeys:
      return "too_many_keys";
    case EventFault::kConflict:
      return "conflict";
  }
  return "unknown";
}

Medium ParseMedium(std::string_view text) {
  if (text == "GPU" || text == "NPU") return Medium::kDevice;
  if (text == "CPU" || text == "CPU_PINNED") return Medium::kCpu;
  if (text == "DISK" || text == "STORAGE") return Medium::kDisk;
  if (text == "EXTERNAL") return Medium::kExternal;
  return Medium::kUnknown;
}

SpecKind ParseSpecKind(std::string_view text) {
  if (text == "full_attention") return SpecKind::kFullAttention;
  if (text == "mla_attention") return SpecKind::kMlaAttention;
  if (text == "sink_full_attention") return SpecKind::kSinkFullAttention;
  if (text == "sliding_window") return SpecKind::kSlidingWindow;
  return SpecKind::kOther;
}

Locality ParseLocality(std::string_view text) {
  if (text == "LOCAL") return Locality::kLocal;
  if (text == "REMOTE") return Locality::kRemote;
  return Locality::kOther;
}

bool IsFullAttentionLike(SpecKind kind) {
  return kind == SpecKind::kFullAttention || kind == SpecKind::kMlaAttention ||
         kind == SpecKind::kSinkFullAttention;
}

bool JoinBigramTokens(const WireEvent& event, std::vector<std::int32_t>* joined) {
  const auto& flat = event.token_ids;
  joined->clear();
  if (!event.bigram || flat.empty() || flat.size() % 2 != 0) return false;
  joined->reserve(flat.size() / 2 + 1);
  joined->push_back(flat[0]);
  for (std::size_t i = 0; i < flat.size(); i += 2) {
    if (flat[i] != joined->back()) return false;
    joined->push_back(flat[i + 1]);
  }
  return true;
}

}  // namespace conductor
