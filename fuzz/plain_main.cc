// A target without libFuzzer, in every normal build, so that it cannot rot.
//   fuzz_x FILE|DIRECTORY...   runs each file once
//   fuzz_x                     runs the seeds, then seeded mutations of them
// CONDUCTOR_SEED=N chooses the mutations, CONDUCTOR_FUZZ_MUTATIONS=N how many. A broken property
// prints its input in hex: `xxd -r -p` makes the file of it.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <unistd.h>

#include "fuzz/mutator.h"
#include "fuzz/target.h"

namespace conductor::fuzz {
namespace {

// What runs now, for the report of a crash.
Bytes current_input;

void Write(const char* text, std::size_t size) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, size);
}

// Calls only what a signal handler may call.
void ReportInput(int signal) {
  constexpr char kHead[] = "input: ";
  constexpr char kDigits[] = "0123456789abcdef";
  Write(kHead, sizeof(kHead) - 1);
  for (const std::uint8_t byte : current_input) {
    const char digits[] = {kDigits[byte >> 4], kDigits[byte & 15]};
    Write(digits, sizeof(digits));
  }
  Write("\n", 1);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void Run(Bytes input) {
  current_input = input;
  RunInput(input);
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

int RunFiles(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> files;
  for (const std::string& argument : arguments) {
    if (!std::filesystem::exists(argument)) {
      std::fprintf(stderr, "%s: no such file or directory\n", argument.c_str());
      return 2;
    }
    if (!std::filesystem::is_directory(argument)) {
      files.emplace_back(argument);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(argument)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  for (const auto& file : files) {
    const std::string input = ReadFile(file);
    Run(AsBytes(input));
  }
  std::printf("%zu files\n", files.size());
  return 0;
}

std::uint64_t EnvironmentNumber(const char* name, std::uint64_t fallback) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : fallback;
}

int RunSeedsAndMutations() {
  const std::uint64_t seed = EnvironmentNumber("CONDUCTOR_SEED", 20'260'105);
  const std::uint64_t mutations =
      EnvironmentNumber("CONDUCTOR_FUZZ_MUTATIONS", CONDUCTOR_FUZZ_MUTATIONS_DEFAULT);
  std::printf("CONDUCTOR_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const std::vector<std::string> seeds = Seeds();
  if (seeds.empty()) {
    std::fprintf(stderr, "no seeds: the golden files were not read\n");
    return 1;
  }
  for (const std::string& input : seeds) Run(AsBytes(input));
  Mutator mutator(seed, seeds);
  for (std::uint64_t i = 0; i < mutations; ++i) {
    const std::string input = mutator.Next();
    Run(AsBytes(input));
  }
  std::printf("%zu seeds, %llu mutations\n", seeds.size(),
              static_cast<unsigned long long>(mutations));
  return 0;
}

}  // namespace
}  // namespace conductor::fuzz

int main(int argc, char** argv) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE, SIGBUS, SIGILL}) {
    std::signal(signal, conductor::fuzz::ReportInput);
  }
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return arguments.empty() ? conductor::fuzz::RunSeedsAndMutations()
                           : conductor::fuzz::RunFiles(arguments);
}
