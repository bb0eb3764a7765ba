#include "tests/storage/image_text.h"

#include <cstdio>
#include <string_view>

#include "src/hex.h"
#include "tests/storage/record_text.h"

namespace conductor::storage {
namespace {

std::string Hex(std::string_view bytes) {
  std::string text = "'";
  for (const unsigned char byte : bytes) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", byte);
    text += digits;
  }
  return text + "'";
}
std::string Hex(const Digest& digest) {
  return Hex(std::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

// One line; each call adds what it is given.
class Line {
 public:
  explicit Line(const char* kind) : text_(kind) {}

  template <typename Number>
  requires(std::is_integral_v<Number> && sizeof(Number) <= 8) Line& Add(Number value) {
    return Raw(std::to_string(value));
  }
  template <typename Enum>
  requires std::is_enum_v<Enum> Line& Add(Enum value) {
    return Raw(std::to_string(static_cast<int>(value)));
  }
  Line& Add(Sum128 value) { return Raw(Hex128(value)); }
  Line& Add(const std::string& value) { return Raw(Hex(std::string_view(value))); }
  Line& Add(const Digest* digest) { return Raw(digest == nullptr ? "none" : Hex(*digest)); }
  Line& Add(const ImageName& name) {
    return Raw("name").Add(name.scope).Add(name.projected).Raw(Hex(name.digest));
  }
  template <typename Value>
  Line& Add(const std::optional<Value>& value) {
    return value ? Add(*value) : Raw("none");
  }
  template <typename First, typename Second>
  Line& Add(const std::pair<First, Second>& pair) {
    return Add(pair.first).Add(pair.second);
  }
  template <typename List>
  Line& AddAll(const List& list) {
    Raw("[");
    for (const auto& item : list) Add(item);
    return Raw("]");
  }
  std::string Take() { return std::move(text_); }

 private:
  Line& Raw(const std::string& text) {
    text_ += " " + text;
    return *this;
  }
  std::string text_;
};

}  // namespace

Status ImageText::OnStart(const ImageStart& piece) {
  lines_.push_back(Line("start").Add(piece.seq).Add(piece.next_stream).Take());
  return {};
}

Status ImageText::OnContext(const ImageContext& piece) {
  Line line("context");
  line.Add(piece.id).Add(piece.key.tenant_id).Add(piece.key.model_name).Add(piece.key.lora_name);
  line.Add(piece.key.block_size).Add(piece.has_engine_profile);
  if (piece.profile) {
    line.Add(piece.profile->strategy).Add(piece.profile->algorithm);
    line.Add(piece.profile->python_hash_seed).Add(&piece.profile->root_digest);
  }
  lines_.push_back(line.Take());
  return {};
}

Status ImageText::OnPool(const ImagePool& piece) {
  lines_.push_back(Line("pool").Add(piece.id).Add(piece.backend_id).Add(piece.tenant_id).Take());
  return {};
}

Status ImageText::OnRegistration(const ImageRegistration& piece) {
  const Record record{{Registered{*piece.registration, UnverifiedBlocks::kContent}}};
  lines_.push_back(Line("registration").Add(piece.stream).Take() + RecordText(record));
  return {};
}

Status ImageText::OnHolder(const ImageHolder& piece) {
  Line line("holder");
  line.Add(piece.id).Add(piece.key.stream).Add(piece.key.context).Add(piece.key.tier);
  line.Add(piece.key.unproven).Add(piece.key.pool).Add(piece.sum).Add(piece.blocks);
  lines_.push_back(line.Take());
  return {};
}

Status ImageText::OnSet(const ImageSet& piece) {
  lines_.push_back(Line("set").Add(piece.id).AddAll(piece.holders).Take());
  return {};
}

Status ImageText::OnRun(const ImageRun& piece) {
  Line line("run");
  line.Add(piece.context).Add(piece.check).Add(piece.extra_keys_on_wire).Add(piece.parent);
  line.AddAll(piece.fingerprints).AddAll(piece.names).AddAll(piece.sets);
  line.Add(piece.digest_slot).Add(piece.digest);
  lines_.push_back(line.Take());
  return {};
}

Status ImageText::OnEntry(const ImageEntry& piece) {
  Line line("entry");
  line.Add(piece.context).Add(piece.name).Add(piece.parent).Add(piece.fingerprint);
  line.Add(piece.length).Add(piece.check).Add(piece.extra_keys_on_wire).Add(piece.block_class);
  lines_.push_back(line.Add(piece.set).Add(piece.digest).Take());
  return {};
}

Status ImageText::OnCopies(const ImageCopies& piece) {
  lines_.push_back(Line("copies").Add(piece.holder).Add(piece.name).Add(piece.copies).Take());
  return {};
}

Status ImageText::OnParts(const ImageParts& piece) {
  Line line("parts");
  line.Add(piece.holder).Add(piece.name);
  for (const PartTable::Part& part : piece.parts) line.Add(part.slot).Add(part.id);
  lines_.push_back(line.Take());
  return {};
}

Status ImageText::OnStream(const StreamFacts& piece) {
  Line line("stream");
  line.Add(piece.id).Add(piece.unverified_blocks).Add(piece.epoch).Add(piece.cursor);
  line.Add(piece.history_from).Add(piece.counting_group).Add(piece.verified_ever);
  line.Add(piece.differs_ever).Add(piece.seen_full_size_block).AddAll(piece.lost);
  line.Add(piece.publisher_epoch).AddAll(piece.recent).AddAll(piece.contexts);
  line.Add(piece.last_publisher_time_us).Add(piece.frames).Add(piece.blocks_stored);
  line.Add(piece.blocks_removed).Add(piece.remove_unknown).Add(piece.blocks_rejected);
  line.Add(piece.fragments_rejected).Add(piece.clears).Add(piece.epoch_changes);
  line.Add(piece.numbers_lost).Add(piece.drops).Add(piece.evictions).Add(piece.snapshots);
  lines_.push_back(line.AddAll(piece.ignored).Take());
  return {};
}

Status ImageText::OnEnd(const ImageEnd& piece) {
  lines_.push_back(Line("end").Add(piece.digest).Add(piece.blocks).Add(piece.fragments).Take());
  return {};
}

}  // namespace conductor::storage
