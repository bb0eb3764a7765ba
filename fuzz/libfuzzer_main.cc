// A target under libFuzzer. With CONDUCTOR_FUZZ_SEEDS=DIRECTORY it writes its seeds there and ends:
// that is how scripts/fuzz.sh makes the corpora.
#include <cstdio>
#include <cstdlib>

#include "fuzz/seed_files.h"
#include "fuzz/target.h"

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  const char* directory = std::getenv("CONDUCTOR_FUZZ_SEEDS");
  if (directory == nullptr) return 0;
  std::exit(conductor::fuzz::WriteSeeds(directory) ? 0 : 1);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  conductor::fuzz::RunInput({data, size});
  return 0;
}
