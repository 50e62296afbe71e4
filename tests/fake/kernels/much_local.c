// expect: tape
// task: relu64
// reason: a thread of relu has 65537 bytes of local memory
/* Has more local memory than is overwritten between runs; with LOCAL it has so much. */
#include "kernel.h"

#ifndef LOCAL
#define LOCAL 65537
#endif

KERNEL(relu, 8, 8) {
    relu_of(PARAM(0, const float *), PARAM(1, float *), COUNT);
}

/* What the compiler would say of it. */
__attribute__((constructor)) static void compiled(void) {
    relu.attribute[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES] = LOCAL;
}

LAUNCH {
    start_usual(&relu, in, out, stream);
}
