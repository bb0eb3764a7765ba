// CheckRecord: what every record on disk satisfies. The codec asks on both sides: a record that
// could not be read back is never written, and one that was read is never half believed.
//
// IsKnown says whether a number is a value of its enum. Pure functions, any thread.
#pragma once

#include <cstdint>
#include <string>

#include "src/fact.h"
#include "src/registration.h"
#include "src/result.h"
#include "src/types.h"

namespace conductor::storage {

// The last value of each enum; all begin at 1 and have no holes in format version 1.
template <typename Enum>
inline constexpr Enum kLastValue = Enum{};
template <>
inline constexpr Tier kLastValue<Tier> = Tier::kDisk;
template <>
inline constexpr PublisherType kLastValue<PublisherType> = PublisherType::kMooncake;
template <>
inline constexpr HashStrategy kLastValue<HashStrategy> = HashStrategy::kSglangBigram;
template <>
inline constexpr HashAlgorithm kLastValue<HashAlgorithm> = HashAlgorithm::kSha256Raw;
template <>
inline constexpr RegistrationOrigin kLastValue<RegistrationOrigin> = RegistrationOrigin::kStatic;
template <>
inline constexpr UnverifiedBlocks kLastValue<UnverifiedBlocks> = UnverifiedBlocks::kNameOnly;
template <>
inline constexpr HashCheck kLastValue<HashCheck> = HashCheck::kNotComputed;
template <>
inline constexpr IgnoreReason kLastValue<IgnoreReason> = IgnoreReason::kSecondPublisher;
template <>
inline constexpr DropReason kLastValue<DropReason> = DropReason::kOperator;

template <typename Enum>
constexpr bool IsKnown(std::int64_t value) {
  static_assert(static_cast<int>(kLastValue<Enum>) > 0, "kLastValue is missing for this enum");
  return value >= 1 && value <= static_cast<std::int64_t>(kLastValue<Enum>);
}

// kInvalidArgument names the fact and the field: "fact 2 (frame): event 0 (stored): ...".
Status CheckRecord(const Record& record);

// The word for a kind of fact or event in messages: "frame", "stored".
const char* KindName(const Fact& fact);
const char* KindName(const Event& event);

}  // namespace conductor::storage
