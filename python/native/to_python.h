// The client's answers as the dicts of the Python API. Every function needs the GIL.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

#include "src/query.h"
#include "src/result.h"
#include "src/service.h"

namespace conductor::python {

// (grpc code, reason, field, message); conductor.py turns it into a return code.
pybind11::tuple ToFailure(const Error& error);

// {"instance": {"longest_matched": ..., ...}}; with `detail` each also has "stream_state".
pybind11::dict ToHits(const QueryAnswer& answer, bool detail);
// What a detailed query adds: log_seq, degraded, context_known, hint, nearest_contexts.
pybind11::dict ToDetail(const QueryAnswer& answer);

// With `detail` the keys of HTTP's ?detail=1 as well.
pybind11::list ToServices(const std::vector<ServiceView>& services, bool detail);
pybind11::list ToContexts(const std::vector<ContextView>& contexts);

}  // namespace conductor::python
