// NoMoreBytes: while it lives, no file of this process takes another byte, as on a full disk.
// (The error is EFBIG, not ENOSPC; names and directories can still be made.)
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

namespace conductor {

class NoMoreBytes {
 public:
  NoMoreBytes() : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    EXPECT_EQ(::getrlimit(RLIMIT_FSIZE, &before_), 0);
    const rlimit none{0, before_.rlim_max};
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &none), 0);
  }
  ~NoMoreBytes() {
    EXPECT_EQ(::setrlimit(RLIMIT_FSIZE, &before_), 0);
    ::signal(SIGXFSZ, handler_);
  }
  NoMoreBytes(const NoMoreBytes&) = delete;
  NoMoreBytes& operator=(const NoMoreBytes&) = delete;

 private:
  rlimit before_{};
  const sighandler_t handler_;
};

}  // namespace conductor
