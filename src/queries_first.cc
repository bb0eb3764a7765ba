#include "src/queries_first.h"

#include <pthread.h>
#include <sched.h>

namespace conductor {
namespace {

bool SetPolicy(int policy) {
  const sched_param none{};
  return pthread_setschedparam(pthread_self(), policy, &none) == 0;
}

// Another policy than the usual one is somebody's decision, and stays.
bool BecomeBatch() {
  int policy = SCHED_OTHER;
  sched_param param{};
  return pthread_getschedparam(pthread_self(), &policy, &param) == 0 && policy == SCHED_OTHER &&
         SetPolicy(SCHED_BATCH);
}

}  // namespace

QueriesFirst::QueriesFirst() : changed_(BecomeBatch()) {}

QueriesFirst::~QueriesFirst() {
  if (changed_) SetPolicy(SCHED_OTHER);
}

}  // namespace conductor
