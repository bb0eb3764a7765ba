#include "storage/synced_mark.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <string_view>

#include "storage/log_format.h"
#include "storage/storage_error.h"

namespace conductor::storage {
namespace {

// "00000000000000000042 1a2b3c4d\n": the position in decimal, the low 32 bits of XXH3-64 over
// those 20 digits in hexadecimal. One line of fixed length, overwritten in place.
constexpr std::size_t kDigits = 20;
constexpr std::size_t kLineBytes = kDigits + 1 + 8 + 1;

std::string MakeLine(Seq seq) {
  char line[kLineBytes + 1];
  std::snprintf(line, sizeof line, "%020llu", static_cast<unsigned long long>(seq));
  const auto check = static_cast<std::uint32_t>(XXH3_64bits(line, kDigits));
  std::snprintf(line + kDigits, sizeof line - kDigits, " %08x\n", check);
  return {line, kLineBytes};
}

std::string PathOf(const std::string& data_dir) {
  return data_dir + "/" + kSyncedFile;
}

}  // namespace

std::optional<Seq> SyncedMark::Read(const std::string& data_dir) {
  const int file = ::open(PathOf(data_dir).c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  char line[kLineBytes];
  const ssize_t bytes = ::pread(file, line, sizeof line, 0);
  ::close(file);
  if (bytes != static_cast<ssize_t>(kLineBytes)) return std::nullopt;
  Seq seq = 0;
  const auto parsed = std::from_chars(line, line + kDigits, seq);
  if (parsed.ec != std::errc() || parsed.ptr != line + kDigits) return std::nullopt;
  if (std::string_view(line, kLineBytes) != MakeLine(seq)) return std::nullopt;
  return seq;
}

Result<std::unique_ptr<SyncedMark>> SyncedMark::Open(const std::string& data_dir) {
  const std::string path = PathOf(data_dir);
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0) {
    return tl::unexpected(WithAdvice(
        FromErrno(errno, "data directory " + data_dir + " is not writable (file synced)")));
  }
  return std::unique_ptr<SyncedMark>(new SyncedMark(file));
}

SyncedMark::~SyncedMark() {
  ::close(file_);
}

void SyncedMark::Advance(Seq seq) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (seq > seq_) Write(seq);
}

void SyncedMark::Reset(Seq seq) {
  const std::lock_guard<std::mutex> lock(mutex_);
  Write(seq);
}

void SyncedMark::Write(Seq seq) {
  const std::string line = MakeLine(seq);
  if (::pwrite(file_, line.data(), line.size(), 0) == static_cast<ssize_t>(line.size())) {
    seq_ = seq;
  }
}

}  // namespace conductor::storage
