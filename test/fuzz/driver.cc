// Runs a fuzz target without libFuzzer: every file of the folders given, each prefix-cut and
// mutated a fixed number of times. Deterministic, so that a failure comes again.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/encoding.h"
#include "base/file.h"
#include "base/random.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

constexpr int kMutations = 500;  // of each file

void Run(const std::string& input) {
  const std::span<const uint8_t> bytes = fl::base::AsBytes(input);
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

/// One change of the kinds that break parsers: a bit, a byte, a cut, a repetition, digits.
void Mutate(std::string& text, fl::base::SeededRandom& random) {
  const size_t at = random.Below(text.size() + 1);
  switch (random.Below(6)) {
    case 0:
      if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << random.Below(8)));
      break;
    case 1:
      if (at < text.size()) text[at] = static_cast<char>(random.Below(256));
      break;
    case 2:
      text.resize(at);
      break;
    case 3:
      text.erase(at, random.Below(9));
      break;
    case 4:
      text.insert(at, text.substr(random.Below(text.size() + 1), random.Below(64)));
      break;
    default:
      text.insert(at, std::to_string(random.Uint64() >> random.Below(64)));
  }
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < count; ++i) {
    if (std::filesystem::is_directory(arguments[i])) {
      for (const auto& entry : std::filesystem::recursive_directory_iterator(arguments[i])) {
        if (entry.is_regular_file()) files.push_back(entry.path());
      }
    } else {
      files.emplace_back(arguments[i]);
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "usage: %s FILE-OR-FOLDER...\n", arguments[0]);
    return EXIT_FAILURE;
  }
  fl::base::SeededRandom random({20260101});
  for (const std::filesystem::path& file : files) {
    const fl::base::Result<std::string> content = fl::base::ReadFile(file);
    if (!content.ok()) {
      std::fprintf(stderr, "%s\n", content.status().ToString().c_str());
      return EXIT_FAILURE;
    }
    Run(*content);
    for (int i = 0; i < kMutations; ++i) {
      std::string changed = *content;
      for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) Mutate(changed, random);
      Run(changed);
    }
  }
  std::printf("%zu files, %d mutations of each\n", files.size(), kMutations);
  return EXIT_SUCCESS;
}
