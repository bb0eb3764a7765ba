// The bytes this thread has asked operator new for, in this test binary: bounds on allocation
// without a clock or memory statistics. Per thread, so that other threads do not disturb it.
#pragma once

#include <cstddef>

namespace conductor::wire_test {

std::size_t AllocatedBytes();

}  // namespace conductor::wire_test
