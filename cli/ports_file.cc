#include "cli/ports_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "cli/disk_error.h"
#include "cli/json_fields.h"
#include "cli/text.h"

namespace conductor::cli {

namespace {

constexpr std::size_t kPortsFileBytesMax = 4'096;

std::string PathIn(const std::string& data_dir) {
  return data_dir + "/" + kPortsFile;
}

bool WriteAll(int file, const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = write(file, bytes.data() + done, bytes.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

}  // namespace

Status WritePortsFile(const std::string& data_dir, const PortsFile& ports) {
  const Json json = {{"pid", ports.pid},
                     {"listen_address", ports.listen_address},
                     {"http_port", ports.http_port},
                     {"rpc_port", ports.rpc_port}};
  const std::string path = PathIn(data_dir);
  const std::string unfinished = path + ".tmp";
  const auto fail = [&](const std::string& what) {
    return MakeError(DiskErrorCode(errno), what + ": " + std::strerror(errno));
  };
  const int file = open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (file < 0) return fail(unfinished + ": cannot be written");
  const bool written =
      WriteAll(file, json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  const bool closed = close(file) == 0;
  if (!written || !closed) return fail(unfinished + ": cannot be written");
  if (std::rename(unfinished.c_str(), path.c_str()) != 0) {
    return fail(path + ": cannot be put in place");
  }
  return {};
}

Result<PortsFile> ReadPortsFile(const std::string& data_dir) {
  CONDUCTOR_ASSIGN_OR_RETURN(const std::string text,
                             ReadFile(PathIn(data_dir), kPortsFileBytesMax));
  CONDUCTOR_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  std::optional<std::string> listen_address;
  std::int64_t pid = 0, http_port = 0, rpc_port = 0;
  JsonFields fields(json, PathIn(data_dir));
  fields.Integer("pid", {1, 1LL << 31}, &pid);
  fields.Text("listen_address", &listen_address);
  fields.Integer("http_port", {1, 65'535}, &http_port);
  fields.Integer("rpc_port", {1, 65'535}, &rpc_port);
  CONDUCTOR_RETURN_IF_ERROR(fields.Finish());
  return PortsFile{pid, listen_address.value_or(""), static_cast<std::uint16_t>(http_port),
                   static_cast<std::uint16_t>(rpc_port)};
}

void RemovePortsFile(const std::string& data_dir) {
  std::remove(PathIn(data_dir).c_str());
}

}  // namespace conductor::cli
