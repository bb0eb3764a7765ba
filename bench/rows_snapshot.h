// The part of the snapshot rows that is about the whole service: rows_snapshot.cc calls it last.
#pragma once

#include "bench/rows.h"

namespace conductor::bench {

Status RunServiceSnapshots(const Settings& settings, Report& report);

}  // namespace conductor::bench
