#include "cli/interrupt.h"

#include <poll.h>

namespace conductor::cli {

namespace {

// Written by a signal handler, read by the thread it interrupts.
volatile std::sig_atomic_t interrupted = 0;

void OnSignal(int) {
  interrupted = 1;
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  sigaction(SIGINT, &action, &old_interrupt_);
  sigaction(SIGTERM, &action, &old_terminate_);
}

InterruptGuard::~InterruptGuard() {
  sigaction(SIGINT, &old_interrupt_, nullptr);
  sigaction(SIGTERM, &old_terminate_, nullptr);
}

bool InterruptGuard::Interrupted() {
  return interrupted != 0;
}

void InterruptGuard::Pause(int ms) {
  if (!Interrupted()) poll(nullptr, 0, ms);
}

}  // namespace conductor::cli
