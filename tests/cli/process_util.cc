#include "tests/cli/process_util.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <sstream>

#include "cli/ports_file.h"

extern char** environ;

namespace conductor::cli {

namespace {

constexpr std::chrono::milliseconds kPollInterval{10};

sockaddr_in Loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

std::string Slurp(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> MakeEnvironment(const Environment& added, const std::string& home) {
  std::map<std::string, std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || text.starts_with("CONDUCTOR_")) continue;
    variables[text.substr(0, equals)] = text.substr(equals + 1);
  }
  variables["HOME"] = home;
  for (const auto& [name, value] : added) variables[name] = value;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(name + "=" + value);
  return entries;
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

bool WaitUntil(const std::function<bool()>& condition, std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    poll(nullptr, 0, static_cast<int>(kPollInterval.count()));
  }
  return true;
}

Process::Process(const std::vector<std::string>& arguments, const Environment& environment) {
  std::vector<std::string> argv = arguments;
  std::vector<std::string> envp = MakeEnvironment(environment, directory_.path());
  const std::vector<char*> argv_pointers = Pointers(argv), envp_pointers = Pointers(envp);
  const std::string out = directory_.Path("out"), err = directory_.Path("err");
  pid_ = fork();
  if (pid_ == 0) {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC;
    if (dup2(open("/dev/null", O_RDONLY), 0) < 0 || dup2(open(out.c_str(), flags, 0600), 1) < 0 ||
        dup2(open(err.c_str(), flags, 0600), 2) < 0) {
      _exit(126);
    }
    execve(argv_pointers[0], argv_pointers.data(), envp_pointers.data());
    _exit(127);
  }
  EXPECT_GT(pid_, 0);
}

Process::~Process() {
  if (pid_ <= 0 || exit_) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::optional<int> Process::Wait(std::chrono::milliseconds deadline) {
  WaitUntil(
      [this] {
        int status = 0;
        if (!exit_ && waitpid(pid_, &status, WNOHANG) == pid_) {
          exit_ = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
        }
        return exit_.has_value();
      },
      deadline);
  return exit_;
}

void Process::Signal(int number) const {
  if (pid_ > 0 && !exit_) kill(pid_, number);
}

std::string Process::out() const {
  return Slurp(directory_.Path("out"));
}
std::string Process::err() const {
  return Slurp(directory_.Path("err"));
}

Json Finished::json() const {
  const Result<Json> json = ParseJson(out);
  EXPECT_TRUE(json.has_value()) << out << err;
  return json.value_or(Json::object());
}

Finished RunProgram(const std::vector<std::string>& arguments, const Environment& environment) {
  Process process(arguments, environment);
  const std::optional<int> code = process.Wait();
  EXPECT_TRUE(code.has_value()) << arguments[0] << " did not end: " << process.err();
  return {code.value_or(-1), process.out(), process.err()};
}

std::string DaemonProgram() {
  return CONDUCTOR_BINARY_DIR "/mooncake-conductor/mooncake_conductor";
}

Finished RunCtlProgram(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CONDUCTOR_BINARY_DIR "/mooncake-conductor/conductorctl");
  return RunProgram(arguments);
}

TestDaemon::TestDaemon(const std::string& data_dir, const std::string& config)
    : data_dir_(data_dir) {
  const std::string path =
      directory_.Write("config.json", R"({"http_server_port": 0, "rpc_server_port": 0)" +
                                          (config.empty() ? "" : ", " + config) + "}");
  process_ = std::make_unique<Process>(
      std::vector<std::string>{DaemonProgram(), "--config", path, "--data-dir", data_dir});
}

bool TestDaemon::WaitListening() {
  const bool settled = WaitUntil(
      [this] {
        const auto ports = ReadPortsFile(data_dir_);
        // A file of an earlier life says another pid's ports, on which nobody answers.
        if (ports && HttpGet(ports->http_port, "/healthz") == 200) {
          http_port_ = ports->http_port;
          rpc_port_ = ports->rpc_port;
        }
        return http_port_ != 0 || process_->Wait(std::chrono::milliseconds(0)).has_value();
      },
      kDeadline);
  EXPECT_TRUE(settled && http_port_ != 0) << process_->err();
  return http_port_ != 0;
}

bool TestDaemon::WaitReady() {
  return WaitListening() &&
         WaitUntil([this] { return HttpGet(http_port_, "/readyz") == 200; }, kDeadline);
}

Finished TestDaemon::Ctl(std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), {"--address", "127.0.0.1:" + std::to_string(rpc_port_)});
  return RunCtlProgram(std::move(arguments));
}

Json TestDaemon::Status() const {
  return Ctl({"-o", "json", "status"}).json();
}

int HttpGet(std::uint16_t port, const std::string& path) {
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const timeval timeout{5, 0};
  setsockopt(file, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  const sockaddr_in address = Loopback(port);
  std::string answer;
  if (connect(file, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) {
    const std::string request =
        "GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    char buffer[4096];
    if (send(file, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
      const ssize_t count = recv(file, buffer, sizeof buffer, 0);
      if (count > 0) answer.assign(buffer, static_cast<std::size_t>(count));
    }
  }
  close(file);
  const std::size_t space = answer.find(' ');
  return space == std::string::npos ? 0 : std::atoi(answer.c_str() + space);
}

SilentConnection::SilentConnection(std::uint16_t port)
    : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const sockaddr_in address = Loopback(port);
  EXPECT_EQ(connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
}

SilentConnection::~SilentConnection() {
  close(socket_);
}

OccupiedPort::OccupiedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof address;
  EXPECT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  EXPECT_EQ(listen(socket_, 1), 0);
  EXPECT_EQ(getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size), 0);
  port_ = ntohs(address.sin_port);
}

OccupiedPort::~OccupiedPort() {
  close(socket_);
}

}  // namespace conductor::cli
