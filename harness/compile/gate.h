/* gate.h: what a compiled kernel may contain, checked before anything runs it.
 *
 * The gate reads objects, not source text, so comments and macros cannot deceive it.  It is a first
 * filter, cheap and easy to explain.  It is not the security boundary: the host code that passes
 * runs only in the recorder's sandbox, and the device code only in a runner that holds no secret.
 */
#ifndef KP_GATE_H
#define KP_GATE_H

#include "base/elf.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the host object keeps to the contract.  It may define the kernels of `cubins`, the device
 * code that was compiled from the same source.  If it does not, `reason` is one line of all that
 * was found, "object: what was found: what to do; object: ...", and how much had no room. */
bool gate_object(const struct elf *object, struct elf *const *cubins, size_t ncubins, char *reason,
                 size_t size);

/* The same for the library that is linked of such an object ("library: ..."): its code, of which
 * the linker has filled in what was left open. */
bool gate_library(const struct elf *library, char *reason, size_t size);

/* The same for one cubin ("cubin: ..."). */
bool gate_cubin(const struct elf *cubin, char *reason, size_t size);

#endif
