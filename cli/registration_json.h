// A registration as people write it in JSON: the field names of HTTP /register, in the daemon's
// configuration and in the files of `conductorctl register`. Only keys and types are judged here;
// MakeRegistration decides the rest. Pure.
#pragma once

#include <string>

#include "cli/json_fields.h"
#include "src/registration.h"

namespace conductor::cli {

// `path` names the object in error texts: "kvevent_instance.vllm-0", or empty.
Result<RegistrationRequest> ReadRegistration(const Json& json, const std::string& path);

}  // namespace conductor::cli
