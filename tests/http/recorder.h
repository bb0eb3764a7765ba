// Writes every event of a body down: "{ k:a [ 1 -2 ] k:b t:x }". Whether integers come alone or in
// runs makes no difference.
#pragma once

#include <string>

#include "http/body_event.h"

namespace conductor::http {

class Recorder final : public BodySink {
 public:
  enum class Runs { kRefused, kTaken };

  explicit Recorder(Runs runs = Runs::kRefused) : runs_(runs) {}

  bool OnEvent(const BodyEvent& event, Error*) override {
    if (event.IsStart()) last_start_ = event.kind;
    Put(Spell(event));
    return true;
  }
  // Only directly inside an array, as the contract of WantsInt32s says.
  bool WantsInt32s() const override {
    return runs_ == Runs::kTaken && last_start_ == BodyEvent::Kind::kArrayStart;
  }
  bool OnInt32s(std::span<const std::int32_t> elements, Error*) override {
    ++runs;
    for (const std::int32_t element : elements) Put(std::to_string(element));
    return true;
  }

  std::string text;
  int runs = 0;

 private:
  void Put(const std::string& word) {
    if (!text.empty()) text += ' ';
    text += word;
  }

  static std::string Spell(const BodyEvent& event) {
    using Kind = BodyEvent::Kind;
    switch (event.kind) {
      case Kind::kNull:
        return "null";
      case Kind::kBool:
        return event.boolean ? "true" : "false";
      case Kind::kInteger:
        return event.negative ? std::to_string(static_cast<std::int64_t>(event.bits))
                              : std::to_string(event.bits);
      case Kind::kHuge:
        return "huge";
      case Kind::kFloat:
        return "float";
      case Kind::kText:
        return "t:" + std::string(event.text);
      case Kind::kBytes:
        return "b:" + std::to_string(event.text.size());
      case Kind::kExt:
        return "ext";
      case Kind::kKey:
        return "k:" + std::string(event.text);
      case Kind::kArrayStart:
        return "[";
      case Kind::kArrayEnd:
        return "]";
      case Kind::kObjectStart:
        return "{";
      case Kind::kObjectEnd:
        return "}";
    }
    return "?";
  }

  const Runs runs_;
  BodyEvent::Kind last_start_ = BodyEvent::Kind::kNull;
};

}  // namespace conductor::http
