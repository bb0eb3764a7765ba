#include "src/hash/pickle.h"

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "src/hash/sha256.h"

namespace conductor {
namespace {

enum Opcode : std::uint8_t {
  kProto = 0x80,
  kFrame = 0x95,
  kMark = 0x28,
  kStop = 0x2e,
  kNone = 0x4e,
  kBinInt = 0x4a,
  kBinInt1 = 0x4b,
  kBinInt2 = 0x4d,
  kLong1 = 0x8a,
  kShortBinBytes = 0x43,
  kBinBytes = 0x42,
  kBinBytes8 = 0x8e,
  kShortBinUnicode = 0x8c,
  kBinUnicode = 0x58,
  kBinUnicode8 = 0x8d,
  kTuple = 0x74,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kMemoize = 0x94,
  kBinGet = 0x68,
  kLongBinGet = 0x6a,
};
constexpr std::uint8_t kProtocol = 5;
constexpr std::size_t kFrameHeaderBytes = 9;
constexpr std::size_t kFrameBytesMin = 4;
constexpr std::size_t kFrameBytesTarget = 64 * 1024;
constexpr std::size_t kIntBytesMax = 5;

// Which of CPython's shared strings a text is: "" or one character up to U+00FF.
std::optional<std::size_t> SharedString(std::string_view text) {
  constexpr std::size_t kEmptyString = 256;
  if (text.empty()) return kEmptyString;
  const auto first = static_cast<std::uint8_t>(text[0]);
  if (text.size() == 1) return first;
  if (text.size() == 2 && (first == 0xc2 || first == 0xc3)) {
    return (first & 3u) << 6 | (static_cast<std::uint8_t>(text[1]) & 0x3fu);
  }
  return std::nullopt;
}

class Pickler {
 public:
  explicit Pickler(ByteBuffer& out) : out_(out) {
    out_.Put(kProto);
    out_.Put(kProtocol);
  }

  // Each Save* is one save() of CPython: the place where a full frame ends.
  void SaveText(std::string_view text) {
    CommitFrame();
    if (const std::optional<std::size_t> shared = SharedString(text)) {
      for (const SharedMemo& memo : shared_memos_) {
        if (memo.string == *shared) return WriteReference(memo.index);
      }
      shared_memos_.push_back({*shared, memo_size_});
    }
    WritePayload(text, {kShortBinUnicode, kBinUnicode, kBinUnicode8});
    Memoize();
  }

  void SaveBytes(std::string_view bytes) {
    CommitFrame();
    WritePayload(bytes, {kShortBinBytes, kBinBytes, kBinBytes8});
    Memoize();
  }

  void SaveInteger(std::int64_t value) {
    CommitFrame();
    OpenFrame();
    if (value == static_cast<std::int32_t>(value)) {
      return out_.SetEnd(WriteInt32(static_cast<std::int32_t>(value), out_.Reserve(kIntBytesMax)));
    }
    // The fewest bytes whose two's complement is the value.
    int bytes = 5;
    while (bytes < 8 && value >> (8 * bytes - 1) != 0 && value >> (8 * bytes - 1) != -1) ++bytes;
    out_.Put(kLong1);
    out_.Put(static_cast<std::uint8_t>(bytes));
    out_.PutLittleEndian(static_cast<std::uint64_t>(value), bytes);
  }

  void SaveNone() {
    CommitFrame();
    Write(kNone);
  }

  void BeginTuple(std::size_t items) {
    CommitFrame();
    if (items > 3) Write(kMark);
  }
  void EndTuple(std::size_t items) {
    constexpr std::array<Opcode, 4> kSmall = {kTuple, kTuple1, kTuple2, kTuple3};
    Write(items > 3 ? kTuple : kSmall[items]);
    Memoize();
  }

  void SaveTokens(std::span<const std::int32_t> tokens) {
    BeginTuple(tokens.size());
    OpenFrame();
    const std::size_t bytes_max = tokens.size() * kIntBytesMax;
    if (FrameBytes() + bytes_max < kFrameBytesTarget) {
      std::uint8_t* end = out_.Reserve(bytes_max);
      for (const std::int32_t token : tokens) end = WriteInt32(token, end);
      out_.SetEnd(end);
    } else {
      for (const std::int32_t token : tokens) SaveInteger(token);
    }
    EndTuple(tokens.size());
  }

  void SaveExtraKey(const ExtraKeyView& key) {
    switch (key.kind) {
      case ExtraKey::Kind::kText:
        return SaveText(key.text);
      case ExtraKey::Kind::kInteger:
        return SaveInteger(key.integer);
      case ExtraKey::Kind::kItem:
        BeginTuple(2);
        SaveText(key.text);
        SaveInteger(key.integer);
        return EndTuple(2);
      case ExtraKey::Kind::kBytes:
        return SaveBytes(key.text);
    }
  }

  void Stop() {
    Write(kStop);
    CloseFrame();
  }

 private:
  struct PayloadOpcodes {
    Opcode up_to_8_bits, up_to_32_bits, beyond;
  };
  struct SharedMemo {
    std::size_t string;  // As SharedString() numbers it.
    std::uint32_t index;
  };

  static std::uint8_t* WriteInt32(std::int32_t value, std::uint8_t* out) {
    const auto bits = static_cast<std::uint32_t>(value);
    out[1] = static_cast<std::uint8_t>(bits);
    if (bits <= 0xff) {
      out[0] = kBinInt1;
      return out + 2;
    }
    out[2] = static_cast<std::uint8_t>(bits >> 8);
    if (bits <= 0xffff) {
      out[0] = kBinInt2;
      return out + 3;
    }
    out[0] = kBinInt;
    out[3] = static_cast<std::uint8_t>(bits >> 16);
    out[4] = static_cast<std::uint8_t>(bits >> 24);
    return out + kIntBytesMax;
  }

  void Write(std::uint8_t byte) {
    OpenFrame();
    out_.Put(byte);
  }

  void WritePayload(std::string_view payload, PayloadOpcodes opcodes) {
    const bool outside_frames = payload.size() >= kFrameBytesTarget;
    if (outside_frames) {
      CloseFrame();
    } else {
      OpenFrame();
    }
    if (payload.size() <= 0xff) {
      out_.Put(opcodes.up_to_8_bits);
      out_.PutLittleEndian(payload.size(), 1);
    } else if (payload.size() <= 0xffffffff) {
      out_.Put(opcodes.up_to_32_bits);
      out_.PutLittleEndian(payload.size(), 4);
    } else {
      out_.Put(opcodes.beyond);
      out_.PutLittleEndian(payload.size(), 8);
    }
    out_.Append(BytesOf(payload));
  }

  void Memoize() {
    Write(kMemoize);
    ++memo_size_;
  }

  void WriteReference(std::uint32_t index) {
    if (index <= 0xff) {
      Write(kBinGet);
      return out_.Put(static_cast<std::uint8_t>(index));
    }
    Write(kLongBinGet);
    out_.PutLittleEndian(index, 4);
  }

  // Frames open at the first byte written, with room for a header that CloseFrame fills in.
  void OpenFrame() {
    if (frame_open_) return;
    frame_begin_ = out_.size();
    out_.SetEnd(out_.Reserve(kFrameHeaderBytes) + kFrameHeaderBytes);
    frame_open_ = true;
  }
  std::size_t FrameBytes() const { return out_.size() - frame_begin_ - kFrameHeaderBytes; }
  void CommitFrame() {
    if (frame_open_ && FrameBytes() >= kFrameBytesTarget) CloseFrame();
  }
  void CloseFrame() {
    if (!frame_open_) return;
    frame_open_ = false;
    const std::size_t bytes = FrameBytes();
    std::uint8_t* header = out_.data() + frame_begin_;
    if (bytes < kFrameBytesMin) {
      std::memmove(header, header + kFrameHeaderBytes, bytes);
      return out_.SetEnd(header + bytes);
    }
    header[0] = kFrame;
    for (int i = 0; i < 8; ++i) header[1 + i] = static_cast<std::uint8_t>(bytes >> (8 * i));
  }

  ByteBuffer& out_;
  bool frame_open_ = false;
  std::size_t frame_begin_ = 0;  // Of the open frame, or of the last one.
  std::uint32_t memo_size_ = 0;
  // The shared strings already written: at most 257, nearly always none.
  std::vector<SharedMemo> shared_memos_;
};

}  // namespace

void EncodePickleText(std::string_view text, ByteBuffer& out) {
  Pickler pickler(out);
  pickler.SaveText(text);
  pickler.Stop();
}

void EncodePickleBlock(const Digest& parent, std::span<const std::int32_t> tokens,
                       ExtraKeyList extra_keys, ByteBuffer& out) {
  Pickler pickler(out);
  pickler.BeginTuple(3);
  pickler.SaveBytes({reinterpret_cast<const char*>(parent.data()), parent.size()});
  pickler.SaveTokens(tokens);
  if (extra_keys.empty()) {
    pickler.SaveNone();
  } else {
    pickler.BeginTuple(extra_keys.size());
    for (std::size_t i = 0; i < extra_keys.size(); ++i) pickler.SaveExtraKey(extra_keys[i]);
    pickler.EndTuple(extra_keys.size());
  }
  pickler.EndTuple(3);
  pickler.Stop();
}

}  // namespace conductor
