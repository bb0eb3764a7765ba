// Counts what a thread allocates: linking counted_new.cc replaces the program's operator new.
#pragma once

#include <cstddef>

namespace conductor::ingest_test {

// Calls of operator new by this thread since it began.
std::size_t Allocations();

}  // namespace conductor::ingest_test
