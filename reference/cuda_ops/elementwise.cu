/* elementwise.cu: the ops of define/elementwise.h. */
#include "cuda_ops/elementwise.cuh"

#define ELEMENTWISE FORM
#include "define/elementwise.h"

template <> constexpr bool takes_mask<form_mul> = true;

#define ELEMENTWISE ELEMENTWISE_IMPL
#include "define/elementwise.h"
