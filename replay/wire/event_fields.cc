// The values of an event's fields, and where each may be wrong.
#include <algorithm>
#include <limits>

#include "replay/wire/event_decoder.h"

namespace conductor {
namespace {

// Entries reserved on the word of a header; longer lists grow as they are read.
constexpr std::uint32_t kReserveMax = 1u << 14;

std::string_view TextOf(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

bool EventDecoder::Spend(std::uint64_t items) {
  if (items > items_left_) {
    limit_exceeded_ = true;
    return false;
  }
  items_left_ -= items;
  return true;
}

DecodeFault EventDecoder::ReadHashes() {
  std::uint32_t count = 0;
  if (reader_.TryArrayHeader(&count) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kFieldType, "block_hashes", "an array");
  }
  if (!Spend(count)) return {EventFault::kFieldRange, "block_hashes", "a batch's limit", "more"};
  event_->names.reserve(std::min(count, kReserveMax));
  const MsgpackType first = reader_.PeekType();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (reader_.PeekType() != first) {
      return Mistyped(reader_, EventFault::kHashType, "block_hashes", "the type of the first", i);
    }
    if (auto fault =
            ReadBlockName(reader_, sglang_, "block_hashes", i, &event_->names.emplace_back()))
      return fault;
  }
  return {};
}

DecodeFault EventDecoder::ReadParent() {
  if (reader_.TryNil() == MsgpackFault::kNone) return {};
  return ReadBlockName(reader_, sglang_, "parent_block_hash", -1, &event_->parent.emplace());
}

DecodeFault EventDecoder::ReadTokens() {
  std::uint32_t count = 0;
  if (reader_.TryArrayHeader(&count) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kFieldType, "token_ids", "an array");
  }
  auto& tokens = event_->token_ids;
  event_->bigram = sglang_ && count > 0 && reader_.PeekType() == MsgpackType::kArray;
  if (!event_->bigram) return ReadPlainTokens(count);
  tokens.reserve(2 * std::size_t{std::min(count, kReserveMax)});
  for (std::uint32_t i = 0; i < count; ++i) {
    std::int32_t token = 0;
    std::uint32_t pair = 0;
    if (reader_.TryArrayHeader(&pair) != MsgpackFault::kNone) {
      return Mistyped(reader_, EventFault::kTokenType, "token_ids", "a pair like the first", i);
    }
    if (pair != 2) {
      return {EventFault::kTokenType, "token_ids", "two integers", "another number of them", i};
    }
    for (std::uint32_t half = 0; half < pair; ++half) {
      if (auto fault = ReadToken(i, &token)) return fault;
      tokens.push_back(token);
    }
  }
  return {};
}

// A token is a byte at least, so no more are made room for than can be there.
DecodeFault EventDecoder::ReadPlainTokens(std::uint32_t count) {
  auto& tokens = event_->token_ids;
  tokens.resize(std::min<std::size_t>(count, reader_.Remaining()));
  std::size_t read = reader_.TakeTokens(tokens);
  while (read < count) {
    // Another spelling, or the reason why the event is refused.
    std::int32_t token = 0;
    if (auto fault = ReadToken(static_cast<std::int64_t>(read), &token)) return fault;
    tokens[read++] = token;
    read += reader_.TakeTokens(std::span(tokens).subspan(read));
  }
  return {};
}

DecodeFault EventDecoder::ReadToken(std::int64_t item, std::int32_t* token) {
  MsgpackInteger integer;
  if (reader_.TryInteger(&integer) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kTokenType, "token_ids", "an integer", item);
  }
  if (integer.negative || integer.bits > std::numeric_limits<std::int32_t>::max()) {
    return {EventFault::kTokenRange, "token_ids", "an integer in 0..2147483647", "another", item};
  }
  *token = static_cast<std::int32_t>(integer.bits);
  return {};
}

DecodeFault EventDecoder::ReadExtraKeys() {
  if (reader_.TryNil() == MsgpackFault::kNone) return {};
  std::uint32_t count = 0;
  if (reader_.TryArrayHeader(&count) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kFieldType, "extra_keys", "an array or nil");
  }
  if (!Spend(count)) return {EventFault::kFieldRange, "extra_keys", "a batch's limit", "more"};
  extra_keys_count_ = count;
  // Most events have none at all, and then hold no bounds either.
  std::optional<std::size_t> first_bound;
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t keys_before = extra_keys_ ? extra_keys_->keys.size() : 0;
    if (auto fault = ReadKeysOfBlock(i)) return fault;
    if (!first_bound) {
      if (!extra_keys_ || extra_keys_->keys.size() == keys_before) continue;
      first_bound = extra_keys_->bounds.size();
      extra_keys_->bounds.insert(extra_keys_->bounds.end(), i + 1,
                                 static_cast<std::uint32_t>(keys_before));
    }
    extra_keys_->bounds.push_back(static_cast<std::uint32_t>(extra_keys_->keys.size()));
  }
  if (first_bound) event_->extra_keys = BlockExtraKeys(*extra_keys_, *first_bound, count);
  return {};
}

// Nil, or a list of keys.
DecodeFault EventDecoder::ReadKeysOfBlock(std::uint32_t block) {
  if (reader_.TryNil() == MsgpackFault::kNone) return {};
  std::uint32_t keys = 0;
  if (reader_.TryArrayHeader(&keys) != MsgpackFault::kNone) {
    return Mistyped(reader_, EventFault::kFieldType, "extra_keys", "an array or nil", block);
  }
  if (!Spend(keys)) {
    return {EventFault::kFieldRange, "extra_keys", "a batch's limit", "more", block};
  }
  if (keys > 0 && !extra_keys_) extra_keys_ = std::make_unique<ExtraKeyStore>();
  for (std::uint32_t k = 0; k < keys; ++k) {
    if (auto fault = ReadExtraKey(block, &extra_keys_->keys.emplace_back())) return fault;
  }
  return {};
}

DecodeFault EventDecoder::ReadExtraKey(std::int64_t item, ExtraKeyView* key) {
  const std::size_t start = reader_.Offset();
  std::string_view text;
  std::span<const std::uint8_t> bytes;
  MsgpackInteger integer;
  MsgpackFault fault = reader_.TryText(&text);
  if (fault == MsgpackFault::kNone) {
    key->kind = ExtraKey::Kind::kText;
    key->text = text;
    return {};
  }
  if (reader_.TryInteger(&integer) == MsgpackFault::kNone && integer.FitsInt64()) {
    key->kind = ExtraKey::Kind::kInteger;
    key->integer = integer.AsInt64();
    return {};
  }
  reader_.Seek(start);
  key->kind = ExtraKey::Kind::kBytes;
  if (reader_.TryBytes(&bytes) == MsgpackFault::kNone) {
    key->text = TextOf(bytes);
    return {};
  }
  if (fault != MsgpackFault::kUtf8) fault = ReadItemKey(key);
  if (fault == MsgpackFault::kNone) return {};
  reader_.Seek(start);
  if (fault == MsgpackFault::kUtf8) {
    return {EventFault::kInvalidUtf8, "extra_keys", "UTF-8", "other bytes", item};
  }
  if (auto skipped = SkipValue(reader_)) return skipped;
  key->text = TextOf(reader_.BytesSince(start));
  event_->opaque_extra_keys = true;
  return {};
}

// (identifier, offset of the item from the block's first token).
MsgpackFault EventDecoder::ReadItemKey(ExtraKeyView* key) {
  std::uint32_t count = 0;
  std::string_view identifier;
  MsgpackInteger offset;
  MsgpackFault fault = reader_.TryArrayHeader(&count);
  if (fault == MsgpackFault::kNone && count != 2) fault = MsgpackFault::kType;
  if (fault == MsgpackFault::kNone) fault = reader_.TryText(&identifier);
  if (fault == MsgpackFault::kNone) fault = reader_.TryInteger(&offset);
  if (fault == MsgpackFault::kNone && !offset.FitsInt64()) fault = MsgpackFault::kRange;
  if (fault != MsgpackFault::kNone) return fault;
  key->kind = ExtraKey::Kind::kItem;
  key->text = identifier;
  key->integer = offset.AsInt64();
  return MsgpackFault::kNone;
}

}  // namespace conductor
