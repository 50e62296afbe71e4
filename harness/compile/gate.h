/* gate.h: what a compiled kernel may contain, checked before anything runs it.
 *
 * The gate looks at objects, not at source text: comments and macro tricks
 * cannot fool it.  It is a first filter, cheap and explainable, and not the
 * security boundary: host code that it passes still runs in the recorder's
 * sandbox only, and device code only in a runner that holds nothing secret. */
#ifndef KP_GATE_H
#define KP_GATE_H

#include "base/elf.h"

#include <stdbool.h>
#include <stddef.h>

/* Whether the host object keeps to the contract.  `cubins` are the device code
 * compiled from the same source: their kernels may be defined by name.  If not,
 * `reason` is one line: "object: what was found: what to do". */
bool gate_object(const struct elf *object, struct elf *const *cubins, size_t ncubins, char *reason,
                 size_t size);

/* The same for one cubin ("cubin: ..."). */
bool gate_cubin(const struct elf *cubin, char *reason, size_t size);

#endif
