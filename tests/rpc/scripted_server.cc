// The real gRPC server over the scripted Service, as a process of its own for the tests that fork
// and for Python. Prints its port, serves until its standard input ends, so it never outlives the
// test that started it. With an argument: that port.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "rpc/rpc_server.h"
#include "tests/rpc/scripted_service.h"

int main(int argc, char** argv) {
  conductor::rpc::InitializeRpcProcess();
  conductor::rpc::ScriptedService service;
  const auto port = static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 0);
  auto server = conductor::rpc::RpcServer::Start(service, {.port = port});
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message.c_str());
    return 2;
  }
  std::printf("%d\n", (*server)->port());
  std::fflush(stdout);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
    if (byte == 'r') service.Release();
  }
  service.Release();
  (*server)->Stop(0);
  return 0;
}
