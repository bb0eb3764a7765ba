// The bytes of a v1.QueryResponse, written from a QueryAnswer and read into one without a message
// between: a message costs more than the walk that found the answer, most of it for the two maps of
// each instance. Only what every plain answer has is known here; whatever else a message may hold
// is left to protobuf (convert.h), which both functions agree with in every byte they take. Pure
// functions; any thread may call.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string_view>

#include "src/query.h"

namespace conductor::rpc {

// Calls `allocate` once, with the number of bytes, and fills what it returns. False, and nothing
// called: a text is not UTF-8, so the answer must go through FillQueryResponse. What comes only
// with detail is not written.
bool WritePlainAnswer(const QueryAnswer& answer,
                      const std::function<char*(std::size_t bytes)>& allocate);

// Nothing: the bytes are no message, or hold more than a plain answer does.
std::optional<QueryAnswer> ReadPlainAnswer(std::string_view bytes);

}  // namespace conductor::rpc
