// The page at `/`: services and status for people, one file, nothing loaded from elsewhere.
#pragma once

#include <string_view>

namespace conductor::http {

std::string_view StatusPage();

}  // namespace conductor::http
