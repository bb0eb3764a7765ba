// CHECK: for our own bugs, on in every build. Input, disk and network are never CHECKed.
#pragma once

#include <cstdio>
#include <cstdlib>

#define CHECK(condition)                                                                        \
  do {                                                                                          \
    if (!(condition)) [[unlikely]] {                                                            \
      std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", __FILE__, __LINE__, #condition);        \
      std::abort();                                                                             \
    }                                                                                           \
  } while (false)
