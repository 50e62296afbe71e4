/* terms.cu: the ops of define/terms.h. */
#include "cuda_ops/elementwise.cuh"

#define ELEMENTWISE FORM
#include "define/terms.h"
#define ELEMENTWISE ELEMENTWISE_IMPL
#include "define/terms.h"
