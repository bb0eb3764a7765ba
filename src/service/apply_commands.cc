// Registrations on the apply thread: commands that do not touch the same names share one synced
// record, and each is answered when it is on disk, or when it is clear that it will not be soon.
#include <map>
#include <set>
#include <utility>

#include "src/service/service_impl.h"

namespace conductor {
namespace {

constexpr std::size_t kCommandsPerRecordMax = 256;

std::string KeyName(const ServiceKey& key) {
  return "key " + LogName(key);
}
std::string EndpointName(const Registration& registration) {
  return "endpoint " + registration.EndpointKey();
}

}  // namespace

struct ConductorService::Impl::Batch {
  Record record;
  std::vector<RegisterCommand> registers;
  std::vector<UnregisterCommand> unregisters;
  // What its facts turned out not to be good for: answered when they are taken back.
  std::vector<std::pair<RegisterCommand, Error>> undone;
  std::set<std::string> names;
  std::map<ContextKey, HashProfile> profiles;

  bool HasRoom() const { return record.facts.size() < kCommandsPerRecordMax; }
  bool Fits(const RegisterCommand& command) const {
    const Registration& registration = command.registration;
    const auto profile = profiles.find(registration.Context());
    return HasRoom() && !names.contains(KeyName(registration.Key())) &&
           !names.contains(EndpointName(registration)) &&
           (profile == profiles.end() || profile->second == registration.hash_profile);
  }
  bool Fits(const UnregisterCommand& command) const {
    return HasRoom() && !names.contains(KeyName(command.key));
  }
  void Answer(const Error& error) {
    for (auto& command : registers) command.done.set_value(tl::unexpected(error));
    for (auto& command : unregisters) command.done.set_value(tl::unexpected(error));
    AnswerUndone();
  }
  void AnswerUndone() {
    for (auto& [command, error] : undone) command.done.set_value(tl::unexpected(error));
  }
};

void ConductorService::Impl::Refuse(Command& command, const std::string& why) {
  std::visit([&](auto& c) { c.done.set_value(NotReady(why)); }, command);
}

void ConductorService::Impl::RefuseCommands(const std::string& why) {
  for (Command& command : queue_.TakeCommands()) Refuse(command, why);
}

void ConductorService::Impl::RefuseInHand(const std::string& why) {
  for (Command& command : in_hand_) Refuse(command, why);
  in_hand_.clear();
}

// A command is out of in_hand_ only while it is in the batch, or answered: who waits for the log
// knows all that wait with it.
void ConductorService::Impl::RunCommands(std::vector<Command> commands) {
  in_hand_.insert(in_hand_.end(), std::make_move_iterator(commands.begin()),
                  std::make_move_iterator(commands.end()));
  Batch batch;
  while (!in_hand_.empty()) {
    const bool fits = std::visit([&](const auto& c) { return batch.Fits(c); }, in_hand_.front());
    if (!fits) {
      FlushBatch(batch);
      continue;
    }
    Command command = std::move(in_hand_.front());
    in_hand_.pop_front();
    std::visit([&](auto& c) { AddToBatch(batch, std::move(c)); }, command);
  }
  FlushBatch(batch);
}

void ConductorService::Impl::AddToBatch(Batch& batch, RegisterCommand command) {
  const Registration& registration = command.registration;
  auto already = state().CheckRegister(registration);
  if (!already) {
    command.done.set_value(tl::unexpected(already.error()));
    return;
  }
  if (*already) {
    command.done.set_value(RegisterOutcome{registration.instance_id, true});
    return;
  }
  if (state().streams().size() + batch.registers.size() >= options_.limits.registrations_max) {
    command.done.set_value(tl::unexpected(
        Error{ErrorCode::kResourceExhausted,
              "registrations: at most " + std::to_string(options_.limits.registrations_max) +
                  " (limits.registrations_max)",
              "too_large", "", -1}));
    return;
  }
  batch.names.insert(KeyName(registration.Key()));
  batch.names.insert(EndpointName(registration));
  batch.profiles[registration.Context()] = registration.hash_profile;
  batch.record.facts.emplace_back(Registered{registration, options_.unverified_blocks});
  batch.registers.push_back(std::move(command));
}

void ConductorService::Impl::AddToBatch(Batch& batch, UnregisterCommand command) {
  const StreamFacts* facts = state().FindStream(command.key);
  if (facts == nullptr) {
    command.done.set_value(tl::unexpected(
        Error{ErrorCode::kNotFound,
              "not registered: instance '" + command.key.instance_id + "', tenant '" +
                  command.key.tenant_id + "', rank " + std::to_string(command.key.dp_rank),
              "not_found", "instance_id", -1}));
    return;
  }
  streams_->Stop(facts->id);
  batch.names.insert(KeyName(command.key));
  batch.names.insert(EndpointName(facts->registration));
  batch.record.facts.emplace_back(Unregistered{command.key});
  batch.unregisters.push_back(std::move(command));
}

void ConductorService::Impl::FlushBatch(Batch& batch) {
  if (batch.record.facts.empty()) return;
  auto seq = writer_.WriteSynced(batch.record);
  if (!seq && seq.error().code == ErrorCode::kInvalidArgument) {
    batch.Answer(seq.error());
    StartStreams();
    batch = Batch{};
    return;
  }
  if (!seq) {
    if (!RecoverBatch(batch, seq.error().message)) return;
    seq = writer_.appended();
  }
  Apply(batch.record, *seq);
  Batch undo;
  for (RegisterCommand& command : batch.registers) FinishRegister(command, undo);
  for (UnregisterCommand& command : batch.unregisters) {
    Log(LogLevel::kInfo, "event=unregistered " + LogName(command.key));
    command.done.set_value(command.key.instance_id + "|" + command.key.tenant_id + "|" +
                           std::to_string(command.key.dp_rank));
  }
  batch.AnswerUndone();
  batch = Batch{};
  FlushBatch(undo);
}

bool ConductorService::Impl::RecoverBatch(Batch& batch, const std::string& error) {
  bool answered = false;
  const auto refuse = [&](const std::string& why) {
    if (!std::exchange(answered, true)) batch.Answer(NotReady(why).value());
  };
  const Recovered recovered = RecoverLog(/*after_write=*/true, refuse);
  if (recovered == Recovered::kPresent && !answered) return true;
  // Refused and there nevertheless: asking again finds it done.
  if (recovered == Recovered::kPresent) Apply(batch.record, writer_.appended());
  refuse("the log cannot be written: " + error);
  // New ones, and those that were to be unregistered.
  if (recovered == Recovered::kPresent || recovered == Recovered::kRetry) StartStreams();
  batch = Batch{};
  return false;
}

void ConductorService::Impl::FinishRegister(RegisterCommand& command, Batch& undo) {
  const Registration& registration = command.registration;
  const StreamFacts* facts = state().FindStream(registration.Key());
  if (facts == nullptr) {
    command.done.set_value(MakeError(ErrorCode::kInternal, "registration vanished"));
    return;
  }
  if (auto status = streams_->Start(facts->Seed()); !status) {
    // Nothing reads this stream: take the registration back rather than keep a dead one.
    undo.record.facts.emplace_back(Unregistered{registration.Key()});
    undo.undone.emplace_back(std::move(command), status.error());
    return;
  }
  Log(LogLevel::kInfo, "event=registered " + LogName(registration.Key()) +
                           " type=" + std::string(ToString(registration.type)) + " endpoint=" +
                           registration.endpoint + " model=" + registration.model_name);
  command.done.set_value(RegisterOutcome{registration.instance_id, false});
}

}  // namespace conductor
