// One registered stream whose payloads go through the translator into the log and the state. What
// must hold, whatever the bytes: exactly one Frame fact comes out, last, with the number and the
// fingerprint that went in; before it at most the CountingGroup, once per life; the log takes both;
// the state that is rebuilt from the log is the live one. One thread.
#pragma once

#include <cstdint>
#include <optional>

#include "fuzz/logged_record.h"
#include "fuzz/target.h"
#include "replay/digest_cache.h"
#include "replay/translator.h"
#include "src/fact.h"
#include "src/ports.h"

namespace conductor::fuzz {

class Translation {
 public:
  // States cost far more than decoding: only some inputs have them.
  Translation(const Registration& registration, bool with_states);

  struct Outcome {
    Frame frame;
    std::string logged;      // the record's bytes
    std::string last_error;  // the translator's
  };
  Outcome Run(Bytes payload);
  void StartNewLife();

 private:
  struct NoDigests : DigestSource {
    std::optional<Digest> FindDigest(StreamId, const std::string&,
                                     const BlockName&) const override {
      return std::nullopt;
    }
  };

  std::string Log(const Record& record);

  const StreamSeed seed_;
  NoDigests digests_;
  DigestCache cache_{64};
  Translator translator_;
  std::optional<LivePair> states_;
  std::uint64_t number_ = 0;
  bool group_is_known_ = false;
};

// What a batch and the Frame made of it must agree about: nothing disappears without being counted.
struct EventCounts {
  std::uint64_t decoded = 0;   // events of the batch that were decoded
  std::uint64_t rejected = 0;  // and that were not
  std::uint64_t empty = 0;     // decoded stores and removals of no block at all
};
void RequireNothingLost(const Frame& frame, const EventCounts& counts);

// A salt that stands in the payload once, and so cannot also be a name, stays out of log and texts.
void RequireSecret(const std::string& salt, Bytes payload, const Translation::Outcome& outcome);

// The payload of a refused message counts once and brings nothing.
void RequireRefused(const Frame& frame, const Error& error);

}  // namespace conductor::fuzz
