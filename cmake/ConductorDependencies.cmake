# Every dependency, declared once. The names are those of Debian 12; scripts/bootstrap.sh installs them.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Protobuf REQUIRED)  # before gRPC, whose config expects it
find_package(gRPC CONFIG REQUIRED)
find_package(Boost REQUIRED)
find_package(RocksDB CONFIG REQUIRED)
find_package(CLI11 CONFIG REQUIRED)
find_package(GTest CONFIG REQUIRED)
find_package(nlohmann_json CONFIG REQUIRED)
find_package(simdjson CONFIG REQUIRED)
find_package(spdlog CONFIG REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
pkg_check_modules(HTTPLIB REQUIRED IMPORTED_TARGET cpp-httplib)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(ZMQ REQUIRED IMPORTED_TARGET libzmq)
# What its .pc file adds (include paths of its own dependencies) is not needed, and CMake 3.25 spells
# it another way at every second configuration, which would compile everything again.
set_target_properties(PkgConfig::ZMQ PROPERTIES INTERFACE_COMPILE_OPTIONS ""
                                                INTERFACE_INCLUDE_DIRECTORIES "")
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
