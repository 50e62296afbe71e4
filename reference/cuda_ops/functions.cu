/* functions.cu: the ops of define/functions.h. */
#include "cuda_ops/elementwise.cuh"

#define ELEMENTWISE FORM
#include "define/functions.h"
#define ELEMENTWISE ELEMENTWISE_IMPL
#include "define/functions.h"
