// conductorctl: see ctl.h; one cmd_*.cc per subcommand.
#include <unistd.h>

#include <csignal>
#include <iostream>

#include "cli/ctl.h"

int main(int argc, char** argv) {
  // A peer that closes its connection is an error of the call, not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  return static_cast<int>(conductor::cli::RunCtl(
      argc, argv, {std::cin, std::cout, std::cerr, isatty(STDERR_FILENO) == 1}));
}
