// Queries as nearly every client sends them, without the library: a request line and the few
// headers whose meaning is plain are read here, and the answer has the library's form. What is
// anything more (another route, a parameter, a header that says something about the connection, a
// value that is spelled in an unusual way) is the library's (library_exchange.h): parsing and
// formatting there cost as much as the query. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "http/router.h"

namespace conductor::http {

// `header` as RequestFraming rebuilt it. Nothing: the request is not plain, and nothing was done.
// The connection stays open after the answer.
std::optional<std::string> RunPlain(const Router& router, std::string_view header,
                                    std::string_view body);

}  // namespace conductor::http
