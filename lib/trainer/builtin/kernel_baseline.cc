#define FL_KERNELS kBaselineKernels
#define FL_KERNEL_NAME "baseline"
#define Eigen EigenBaseline
#include "trainer/builtin/kernel.inc"
