// Every field of facts as text, so that two records can be compared for the same meaning. Nothing
// is left out and nothing is rounded: two texts are equal exactly when the values are.
#pragma once

#include <string>

#include "src/fact.h"
#include "src/registration.h"

namespace conductor::fuzz {

std::string Text(const Record& record);
std::string Text(const Registration& registration);

}  // namespace conductor::fuzz
