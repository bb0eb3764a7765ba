// With CONDUCTOR_TRACE in the environment the simulation says what happens, a line each: for a seed
// that fails. grep for a publisher's name.
#pragma once

#include <cstdlib>
#include <iostream>
#include <string>

namespace conductor::simulation {

inline bool Tracing() {
  static const bool tracing = std::getenv("CONDUCTOR_TRACE") != nullptr;
  return tracing;
}

template <typename... Parts>
void Trace(const std::string& name, const Parts&... parts) {
  if (!Tracing()) return;
  std::cerr << "trace " << name;
  ((std::cerr << " " << parts), ...);
  std::cerr << "\n";
}

}  // namespace conductor::simulation
