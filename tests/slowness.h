// How much longer a test waits for what must happen: instrumented builds are slower by that much.
// Only for deadlines that a healthy run never meets; no test compares times with it.
#pragma once

namespace conductor {

#ifdef CONDUCTOR_INSTRUMENTED
inline constexpr int kSlowness = 10;
#else
inline constexpr int kSlowness = 1;
#endif

}  // namespace conductor
