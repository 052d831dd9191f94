// Built with -march=x86-64-v3 (lib/CMakeLists.txt).
#if defined(__x86_64__)
#define FL_KERNELS kX86V3Kernels
#define FL_KERNEL_NAME "x86-64-v3"
#define Eigen EigenX86V3
#include "trainer/builtin/kernel.inc"
#endif
