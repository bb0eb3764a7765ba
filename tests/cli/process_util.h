// The real programs as child processes of a test: started, watched with deadlines, never left over.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/json_fields.h"
#include "tests/cli/temp_dir.h"
#include "tests/slowness.h"

namespace conductor::cli {

inline constexpr std::chrono::seconds kDeadline{30 * kSlowness};
// What the contract allows a daemon between SIGTERM and its end.
inline constexpr std::chrono::seconds kStopDeadline{5 * kSlowness};

// Asks again and again until `condition` holds; false: not before the deadline.
bool WaitUntil(const std::function<bool()>& condition, std::chrono::milliseconds deadline);

using Environment = std::map<std::string, std::string>;

class Process {
 public:
  // `environment` on top of the test's own, minus every CONDUCTOR_ variable. HOME is a directory of
  // this process's own.
  explicit Process(const std::vector<std::string>& arguments, const Environment& environment = {});
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process();  // kills it

  // The exit code, or minus the signal it died of; none: it runs on after the deadline.
  std::optional<int> Wait(std::chrono::milliseconds deadline = kDeadline);
  void Signal(int number) const;
  std::string out() const;
  std::string err() const;

 private:
  TempDir directory_;
  pid_t pid_ = -1;
  std::optional<int> exit_;
};

struct Finished {
  int code = -1;
  std::string out, err;
  Json json() const;  // of `out`
};

// Runs a program to its end; fails the test when that takes longer than the deadline.
Finished RunProgram(const std::vector<std::string>& arguments, const Environment& environment = {});
Finished RunCtlProgram(std::vector<std::string> arguments);
std::string DaemonProgram();

// A daemon on ports of its own choice, with what it takes to talk to it.
class TestDaemon {
 public:
  // `config` is the JSON of the configuration without the ports: "" or "\"log_sync\": \"never\"".
  explicit TestDaemon(const std::string& data_dir, const std::string& config = "");

  // Waits until it listens, or has ended.
  bool WaitListening();
  bool WaitReady();
  Process& process() { return *process_; }
  Finished Ctl(std::vector<std::string> arguments) const;
  Json Status() const;
  std::uint16_t http_port() const { return http_port_; }
  std::uint16_t rpc_port() const { return rpc_port_; }

 private:
  TempDir directory_;
  const std::string data_dir_;
  std::unique_ptr<Process> process_;
  std::uint16_t http_port_ = 0, rpc_port_ = 0;
};

// The status code of `GET path`, 0 when there was no answer.
int HttpGet(std::uint16_t port, const std::string& path);

// A client that connects and never says a word.
class SilentConnection {
 public:
  explicit SilentConnection(std::uint16_t port);
  ~SilentConnection();

 private:
  int socket_;
};

// A listening socket that keeps a port of the loopback for as long as it lives.
class OccupiedPort {
 public:
  OccupiedPort();
  ~OccupiedPort();
  std::uint16_t port() const { return port_; }

 private:
  int socket_;
  std::uint16_t port_ = 0;
};

}  // namespace conductor::cli
