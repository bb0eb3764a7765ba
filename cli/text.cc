#include "cli/text.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>

namespace conductor::cli {

namespace {

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

tl::unexpected<Error> FileError(const std::string& path, int error_number) {
  const ErrorCode code = error_number == ENOENT   ? ErrorCode::kNotFound
                         : error_number == EACCES ? ErrorCode::kPermissionDenied
                                                  : ErrorCode::kInvalidArgument;
  return MakeError(code, path + ": cannot be read: " + std::strerror(error_number));
}

}  // namespace

std::size_t EditDistance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      const std::size_t substitute = diagonal + (Lower(a[i - 1]) == Lower(b[j - 1]) ? 0 : 1);
      row[j] = std::min({above + 1, row[j - 1] + 1, substitute});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string Nearest(std::string_view name, const std::vector<std::string>& known) {
  // A name far longer than any known one is nearest to whatever its beginning is nearest to.
  const std::string_view head = name.substr(0, 128);
  std::string nearest;
  std::size_t best = 0;
  for (const std::string& candidate : known) {
    const std::size_t distance = EditDistance(head, candidate);
    if (nearest.empty() || distance < best) {
      nearest = candidate;
      best = distance;
    }
  }
  return nearest;
}

Result<std::string> ExpandHome(const std::string& path) {
  if (path != "~" && !path.starts_with("~/")) return path;
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') {
    return MakeError(ErrorCode::kInvalidArgument,
                     path + ": HOME is not set; name the path in full");
  }
  return home + path.substr(1);
}

std::string LogValue(std::string_view value) {
  const bool plain = !value.empty() && std::all_of(value.begin(), value.end(), [](char c) {
    return c > ' ' && c != '"' && c != '=' && c != '\\' && c != 0x7f;
  });
  if (plain) return std::string(value);
  std::string quoted = "\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f) {
      quoted += '?';
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

Result<std::string> ReadFile(const std::string& path, std::size_t bytes_max) {
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) return FileError(path, errno);
  struct stat info;
  if (fstat(fileno(file.get()), &info) == 0 && S_ISDIR(info.st_mode)) {
    return FileError(path, EISDIR);
  }
  std::string bytes;
  char buffer[1 << 14];
  while (true) {
    const std::size_t count = std::fread(buffer, 1, sizeof buffer, file.get());
    bytes.append(buffer, count);
    if (bytes.size() > bytes_max) {
      return MakeError(
          ErrorCode::kInvalidArgument,
          path + ": expected at most " + std::to_string(bytes_max) + " bytes, got more");
    }
    if (count < sizeof buffer) break;
  }
  if (std::ferror(file.get())) return FileError(path, errno);
  return bytes;
}

}  // namespace conductor::cli
