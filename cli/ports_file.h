// <data_dir>/ports.json: where a running daemon listens, for whoever started it with port 0.
// Written atomically once the ports are bound, removed when the daemon stops in good order.
//
//   {"pid":4711,"listen_address":"127.0.0.1","http_port":40123,"rpc_port":40124}
#pragma once

#include <cstdint>
#include <string>

#include "src/result.h"

namespace conductor::cli {

inline constexpr char kPortsFile[] = "ports.json";

struct PortsFile {
  std::int64_t pid = 0;
  std::string listen_address;
  std::uint16_t http_port = 0;
  std::uint16_t rpc_port = 0;
};

Status WritePortsFile(const std::string& data_dir, const PortsFile& ports);
Result<PortsFile> ReadPortsFile(const std::string& data_dir);
// A file that is not there is fine.
void RemovePortsFile(const std::string& data_dir);

}  // namespace conductor::cli
