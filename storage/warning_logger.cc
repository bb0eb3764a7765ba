#include "storage/warning_logger.h"

#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <optional>
#include <utility>

namespace conductor::storage {
namespace {

constexpr std::size_t kLineBytesMax = 1'024;  // longer lines are cut
constexpr std::size_t kDropsMax = 16;         // one is the rule; more tell nothing new

// The words of db_impl_open.cc: "<source place> <path>: dropping <n> bytes; <reason>".
std::optional<WalDrop> ParseDrop(std::string_view line) {
  constexpr std::string_view kDropping = ": dropping ";
  constexpr std::string_view kBytes = " bytes; ";
  const std::size_t dropping = line.find(kDropping);
  if (dropping == std::string_view::npos) return std::nullopt;
  const std::string_view after = line.substr(dropping + kDropping.size());
  const std::size_t bytes = after.find(kBytes);
  if (bytes == std::string_view::npos) return std::nullopt;
  WalDrop drop;
  std::from_chars(after.data(), after.data() + bytes, drop.bytes);
  std::string_view path = line.substr(0, dropping);
  if (const std::size_t slash = path.rfind('/'); slash != std::string_view::npos) {
    path = path.substr(slash + 1);
  }
  drop.file = path;
  drop.reason = after.substr(bytes + kBytes.size());
  return drop;
}

// Each checkpoint says at the level of warnings that files are kept while it is made.
bool IsNormalCourse(std::string_view line) {
  return line.find("] File Deletions ") != std::string_view::npos;
}

}  // namespace

void WarningLogger::Logv(const char* format, va_list arguments) {
  char buffer[kLineBytesMax];
  const int length = std::vsnprintf(buffer, sizeof buffer, format, arguments);
  if (length <= 0) return;
  const std::string_view line(buffer,
                              std::min(static_cast<std::size_t>(length), sizeof buffer - 1));
  if (std::optional<WalDrop> drop = ParseDrop(line)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (drops_.size() < kDropsMax) drops_.push_back(*std::move(drop));
  }
  if (on_warning_ && !IsNormalCourse(line)) on_warning_(line);
}

std::vector<WalDrop> WarningLogger::TakeDrops() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(drops_, {});
}

}  // namespace conductor::storage
