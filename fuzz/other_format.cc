#include "fuzz/other_format.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "replay/wire/msgpack_writer.h"

namespace conductor::fuzz {
namespace {

using Kind = http::BodyEvent::Kind;

struct KeptEvent {
  http::BodyEvent event;
  std::string text;
  std::uint32_t children = 0;  // of a start: elements, or pairs
};

class Recorder final : public http::BodySink {
 public:
  bool OnEvent(const http::BodyEvent& event, Error*) override {
    if (event.IsEnd()) {
      open_.pop_back();
    } else if (!open_.empty() && !IsValueOfPair(event)) {
      ++events_[open_.back()].children;
    }
    last_was_key_ = event.kind == Kind::kKey;
    // The text of other kinds may be one that is gone.
    const bool has_text = event.kind == Kind::kText || event.kind == Kind::kKey;
    events_.push_back({event, has_text ? std::string(event.text) : std::string(), 0});
    if (event.IsStart()) open_.push_back(events_.size() - 1);
    return true;
  }
  const std::vector<KeptEvent>& events() const { return events_; }

 private:
  // A pair counts with its key.
  bool IsValueOfPair(const http::BodyEvent& event) const {
    return last_was_key_ && event.kind != Kind::kKey;
  }

  std::vector<KeptEvent> events_;
  std::vector<std::size_t> open_;
  bool last_was_key_ = false;
};

// A fraction stays one; its value decides nothing anywhere.
constexpr double kSomeFraction = 0.5;

bool WriteMsgpack(const KeptEvent& kept, MsgpackWriter& writer) {
  const auto& event = kept.event;
  switch (event.kind) {
    case Kind::kNull:
      writer.WriteNil();
      return true;
    case Kind::kBool:
      writer.WriteBool(event.boolean);
      return true;
    case Kind::kInteger:
      event.negative ? writer.WriteInt64(static_cast<std::int64_t>(event.bits))
                     : writer.WriteUint64(event.bits);
      return true;
    case Kind::kFloat:
      writer.WriteDouble(kSomeFraction);
      return true;
    case Kind::kText:
    case Kind::kKey:
      writer.WriteText(kept.text);
      return true;
    case Kind::kArrayStart:
      writer.WriteArrayHeader(kept.children);
      return true;
    case Kind::kObjectStart:
      writer.WriteMapHeader(kept.children);
      return true;
    case Kind::kArrayEnd:
    case Kind::kObjectEnd:
      return true;
    case Kind::kHuge:
    case Kind::kBytes:
    case Kind::kExt:
      return false;
  }
  return false;
}

bool IsValueStart(Kind kind) {
  return kind != Kind::kArrayEnd && kind != Kind::kObjectEnd;
}

bool WriteJson(const KeptEvent& kept, std::string& text) {
  const auto& event = kept.event;
  const bool after_value =
      !text.empty() && text.back() != '[' && text.back() != '{' && text.back() != ':';
  if (after_value && IsValueStart(event.kind)) text += ',';
  switch (event.kind) {
    case Kind::kNull:
      text += "null";
      return true;
    case Kind::kBool:
      text += event.boolean ? "true" : "false";
      return true;
    case Kind::kInteger:
      text += event.negative ? std::to_string(static_cast<std::int64_t>(event.bits))
                             : std::to_string(event.bits);
      return true;
    case Kind::kFloat:
      text += "0.5";
      return true;
    case Kind::kText:
      text += nlohmann::json(kept.text).dump();
      return true;
    case Kind::kKey:
      text += nlohmann::json(kept.text).dump() + ":";
      return true;
    case Kind::kArrayStart:
      text += '[';
      return true;
    case Kind::kObjectStart:
      text += '{';
      return true;
    case Kind::kArrayEnd:
      text += ']';
      return true;
    case Kind::kObjectEnd:
      text += '}';
      return true;
    case Kind::kHuge:
    case Kind::kBytes:
    case Kind::kExt:
      return false;
  }
  return false;
}

}  // namespace

Rewritten InOtherFormat(std::string_view body, http::BodyFormat format) {
  Recorder recorder;
  if (!http::ReadBody(body, format, recorder)) return {};
  MsgpackWriter writer;
  std::string text;
  for (const KeptEvent& kept : recorder.events()) {
    const bool written =
        format == http::BodyFormat::kJson ? WriteMsgpack(kept, writer) : WriteJson(kept, text);
    if (!written) return {true, std::nullopt};
  }
  if (format == http::BodyFormat::kJson) text = std::move(writer).Take();
  return {true, std::move(text)};
}

}  // namespace conductor::fuzz
