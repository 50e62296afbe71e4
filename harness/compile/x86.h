/* x86.h: instructions of x86-64 that host code of a kernel may not have: calls of the system, and
 * accesses to the thread block by its address from %fs or %gs. */
#ifndef KP_X86_H
#define KP_X86_H

#include <stddef.h>

/* The name of the first forbidden instruction in n bytes of code, and *at, where it is; NULL if
 * there is none.  It is looked for at every byte, so a constant in the code, or the distance of a
 * jump, can look like one: of 33 kernels of networks two did so by chance.  harness/compile/compile
 * tries another layout then.  An access by a register, %fs:(%rax), is too short to be looked for:
 * nearly every library has bytes like it. */
const char *x86_forbidden(const unsigned char *code, size_t n, size_t *at);

#endif
