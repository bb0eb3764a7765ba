// How much longer a test waits for what must happen: instrumented builds are slower by that much.
// Only for deadlines that a healthy run never meets; no test compares times with it.
#pragma once

namespace conductor {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr int kSlowness = 10;
#else
inline constexpr int kSlowness = 1;
#endif

}  // namespace conductor
