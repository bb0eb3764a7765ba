// The part of the doctor that looks at one stream. Pure.
#pragma once

#include <vector>

#include "cli/doctor.h"

namespace conductor::cli {

void DiagnoseStream(const ServiceView& service, std::vector<Finding>& findings);

}  // namespace conductor::cli
