#include "trainer/builtin/kernel.h"

#include <atomic>

#include "trainer/builtin.h"

namespace fl::trainer {
namespace builtin {
namespace {

std::vector<const Kernels*> Available() {
  std::vector<const Kernels*> kernels;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("x86-64-v3")) kernels.push_back(&kX86V3Kernels);
#endif
  kernels.push_back(&kBaselineKernels);
  return kernels;
}

const std::vector<const Kernels*>& All() {
  static const std::vector<const Kernels*> kernels = Available();
  return kernels;
}

std::atomic<const Kernels*> chosen{nullptr};

}  // namespace

const Kernels& ActiveKernels() {
  const Kernels* const kernels = chosen.load();
  return kernels != nullptr ? *kernels : *All().front();
}

}  // namespace builtin

std::vector<std::string> InstructionSets() {
  std::vector<std::string> names;
  for (const builtin::Kernels* kernels : builtin::All()) names.emplace_back(kernels->name);
  return names;
}

base::Status UseInstructionSet(std::string_view name) {
  for (const builtin::Kernels* kernels : builtin::All()) {
    if (kernels->name == name) {
      builtin::chosen.store(kernels);
      return base::OkStatus();
    }
  }
  return base::NotFound("this machine has no instruction set \"" + std::string(name) + "\"");
}

}  // namespace fl::trainer
