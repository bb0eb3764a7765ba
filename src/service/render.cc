// Records for people, and the digest of a log: what `inspect` and `verify` use offline and live.
#include "src/hex.h"
#include "src/service/conductor_service.h"
#include "src/state/state_machine.h"

namespace conductor {
namespace {

std::string Name(const BlockName& name) {
  return name.digest.empty() ? std::to_string(name.projected)
                             : "digest:" + std::to_string(name.projected);
}

std::string Render(const Registration& r) {
  return "instance=" + r.instance_id + " tenant=" + r.tenant_id +
         " dp_rank=" + std::to_string(r.dp_rank) + " type=" + std::string(ToString(r.type)) +
         " endpoint=" + r.endpoint + " model=" + r.model_name +
         " block_size=" + std::to_string(r.block_size) +
         " origin=" + (r.origin == RegistrationOrigin::kStatic ? "static" : "dynamic");
}

struct EventText {
  std::string operator()(const Stored& e) const {
    std::string text = "stored tier=" + std::string(ToString(e.tier)) +
                       " blocks=" + std::to_string(e.blocks.size());
    if (!e.blocks.empty()) {
      text += " first=" + Name(e.blocks.front().name) + " last=" + Name(e.blocks.back().name);
    }
    if (e.lora_name) text += " lora=" + *e.lora_name;
    if (!e.has_tokens) return text + " tokens=none";
    text += e.parent ? " parent=" + Name(*e.parent) : (e.salt ? " root=salted" : " root=plain");
    std::uint64_t checks[4] = {0, 0, 0, 0};
    for (const StoredBlock& block : e.blocks) ++checks[static_cast<int>(block.check)];
    return text + " block_length=" + std::to_string(e.block_length) +
           " equal=" + std::to_string(checks[1]) + " differs=" + std::to_string(checks[2]) +
           " not_computed=" + std::to_string(checks[3]);
  }
  std::string operator()(const Removed& e) const {
    return "removed tier=" + std::string(ToString(e.tier)) +
           " blocks=" + std::to_string(e.names.size()) +
           (e.names.empty() ? "" : " first=" + Name(e.names.front()));
  }
  std::string operator()(const Cleared& e) const {
    return e.all_tiers ? "cleared tiers=all" : "cleared";
  }
  std::string operator()(const PoolStored& e) const {
    return "pool_stored tier=" + std::string(ToString(e.tier)) + " block=" + Name(e.name);
  }
  std::string operator()(const PoolRemoved& e) const {
    return "pool_removed tier=" + std::string(ToString(e.tier)) + " block=" + Name(e.name);
  }
  std::string operator()(const PoolCleared& e) const {
    return "pool_cleared backend=" + e.backend_id;
  }
};

struct FactText {
  std::string Stream(StreamId id) const { return " stream=" + std::to_string(id); }
  std::string operator()(const Registered& f) const {
    return "registered " + Render(f.registration);
  }
  std::string operator()(const Unregistered& f) const {
    return "unregistered instance=" + f.key.instance_id + " tenant=" + f.key.tenant_id +
           " dp_rank=" + std::to_string(f.key.dp_rank);
  }
  std::string operator()(const Frame& f) const {
    std::string text = "frame" + Stream(f.stream) + " number=" + std::to_string(f.number) +
                       " time_us=" + std::to_string(f.publisher_time_us) +
                       " fingerprint=" + std::to_string(f.fingerprint);
    for (const auto& [reason, count] : f.ignored) {
      text += " ignored_" + std::to_string(static_cast<int>(reason)) + "=" + std::to_string(count);
    }
    for (const Event& event : f.events) text += " {" + std::visit(EventText{}, event) + "}";
    return text;
  }
  std::string operator()(const NewEpoch& f) const { return "new_epoch" + Stream(f.stream); }
  std::string operator()(const CountingGroup& f) const {
    return "counting_group" + Stream(f.stream) + " group=" + std::to_string(f.group);
  }
  std::string operator()(const HistoryStart& f) const {
    return "history_start" + Stream(f.stream) + " number=" + std::to_string(f.number);
  }
  std::string operator()(const Lost& f) const {
    return "lost" + Stream(f.stream) + " from=" + std::to_string(f.from) +
           " to=" + std::to_string(f.to);
  }
  std::string operator()(const Dropped& f) const {
    return "dropped" + Stream(f.stream) + " reason=" +
           (f.reason == DropReason::kLostEvents     ? "lost_events"
            : f.reason == DropReason::kDisconnected ? "disconnected"
                                                    : "operator");
  }
  std::string operator()(const Evicted& f) const {
    return "evicted" + Stream(f.stream) + " tier=" + std::string(ToString(f.tier)) +
           " block=" + Name(f.name);
  }
  std::string operator()(const PublisherSnapshot& f) const {
    return "publisher_snapshot" + Stream(f.stream) + " links=" + std::to_string(f.links.size());
  }
};

// 0: of no stream that has an id yet, or any more.
StreamId StreamOf(const Fact& fact) {
  return std::visit(
      [](const auto& f) -> StreamId {
        if constexpr (requires { f.stream; }) return f.stream;
        return 0;
      },
      fact);
}

}  // namespace

std::vector<std::string> RenderRecord(Seq seq, const Record& record, StreamId stream) {
  std::vector<std::string> lines;
  lines.reserve(record.facts.size());
  for (const Fact& fact : record.facts) {
    if (stream != 0 && StreamOf(fact) != stream) continue;
    lines.push_back("seq=" + std::to_string(seq) + " " + std::visit(FactText{}, fact));
  }
  return lines;
}

Result<Service::LogLines> InspectRecords(const EventLog& log, Seq from, std::uint32_t count_max,
                                         StreamId stream) {
  Service::LogLines found;
  found.last = log.LastSeq();
  const Seq first = log.FirstSeq();
  if (from == 0) from = first;
  if (from < first) {
    return tl::unexpected(Error{ErrorCode::kOutOfRange,
                                "record " + std::to_string(from) +
                                    " was dropped: a snapshot holds what it said; the log begins "
                                    "at " +
                                    std::to_string(first),
                                "out_of_range", "", -1});
  }
  found.next = from;
  if (count_max == 0 || from > found.last) return found;
  const Seq to = std::min<Seq>(found.last, from + count_max - 1);
  CONDUCTOR_RETURN_IF_ERROR(log.Read(from, to, [&](Seq seq, const Record& record) -> Status {
    for (std::string& line : RenderRecord(seq, record, stream)) {
      found.lines.push_back(std::move(line));
    }
    found.next = seq + 1;
    return {};
  }));
  return found;
}

Result<std::string> DigestOfLog(const EventLog& log, Seq until,
                                const std::function<void(Seq)>& progress) {
  constexpr Seq kProgressEvery = 4'096;
  constexpr std::size_t kCleanupEntries = 2'048;
  StateMachine state;
  if (log.FirstSeq() <= until) {
    CONDUCTOR_RETURN_IF_ERROR(
        log.Read(log.FirstSeq(), until, [&](Seq seq, const Record& record) -> Status {
          state.Apply(record);
          state.CleanupSlice(kCleanupEntries);
          if (progress && seq % kProgressEvery == 0) progress(seq);
          return {};
        }));
  }
  return Hex128(state.Digest());
}

}  // namespace conductor
