// The routes of the contract: one row each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace conductor::http {

enum class Route : std::uint8_t {
  kRegister,
  kUnregister,
  kQuery,
  kQueryByHash,
  kGlobalView,
  kServices,
  kHealthz,
  kReadyz,
  kMetrics,
  kVersion,
  kStatus,
  kPage,
  kUnknown,  // every other path; also what was refused before it had one
};
inline constexpr std::size_t kRouteCount = 13;

struct RouteRow {
  std::string_view path;
  std::string_view allow;  // the methods, as the Allow header spells them
  Route route;
  // Answered at once whatever the log does: never waits in line behind other requests.
  bool probe;
};

inline constexpr RouteRow kRoutes[kRouteCount] = {
    {"/register", "POST", Route::kRegister, false},
    {"/unregister", "POST", Route::kUnregister, false},
    {"/query", "POST", Route::kQuery, false},
    {"/query_by_hash", "POST", Route::kQueryByHash, false},
    {"/global_view", "GET, HEAD", Route::kGlobalView, false},
    {"/services", "GET, HEAD", Route::kServices, false},
    {"/healthz", "GET, HEAD", Route::kHealthz, true},
    {"/readyz", "GET, HEAD", Route::kReadyz, true},
    {"/metrics", "GET, HEAD", Route::kMetrics, false},
    {"/version", "GET, HEAD", Route::kVersion, true},
    {"/status", "GET, HEAD", Route::kStatus, false},
    {"/", "GET, HEAD", Route::kPage, true},
    {"", "", Route::kUnknown, false},
};

// The row of a path; kUnknown's when there is none.
constexpr const RouteRow& FindRoute(std::string_view path) {
  for (const RouteRow& row : kRoutes) {
    if (row.path == path && row.route != Route::kUnknown) return row;
  }
  return kRoutes[kRouteCount - 1];
}

}  // namespace conductor::http
