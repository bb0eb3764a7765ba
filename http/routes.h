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
  kPage,
  kUnknown,  // every other path; also what was refused before it had one
};
inline constexpr std::size_t kRouteCount = 12;

struct RouteRow {
  Route route;
  std::string_view path;
  std::string_view allow;  // the methods, as the Allow header spells them
  // Answered at once whatever the log does: never waits in line behind other requests.
  bool probe;
};

inline constexpr RouteRow kRoutes[kRouteCount] = {
    {Route::kRegister, "/register", "POST", false},
    {Route::kUnregister, "/unregister", "POST", false},
    {Route::kQuery, "/query", "POST", false},
    {Route::kQueryByHash, "/query_by_hash", "POST", false},
    {Route::kGlobalView, "/global_view", "GET, HEAD", false},
    {Route::kServices, "/services", "GET, HEAD", false},
    {Route::kHealthz, "/healthz", "GET, HEAD", true},
    {Route::kReadyz, "/readyz", "GET, HEAD", true},
    {Route::kMetrics, "/metrics", "GET, HEAD", false},
    {Route::kVersion, "/version", "GET, HEAD", true},
    {Route::kPage, "/", "GET, HEAD", true},
    {Route::kUnknown, "", "", true},
};

// The row of a path; kUnknown's when there is none.
constexpr const RouteRow& FindRoute(std::string_view path) {
  for (const RouteRow& row : kRoutes) {
    if (row.path == path && row.route != Route::kUnknown) return row;
  }
  return kRoutes[kRouteCount - 1];
}

}  // namespace conductor::http
