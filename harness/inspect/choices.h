/* choices.h: what choose and its contestant, which runs a kernel's choices, say to each other
 * beside gpu/protocol.h. */
#ifndef KP_CHOICES_H
#define KP_CHOICES_H

#include <limits.h>
#include <stdint.h>

/* A kernel's choices are one library, whose `launch` does the one whose number follows the inputs.
 * A process has as many placements as there are choices: each stands at its own. */
struct choices_told {
    char library[PATH_MAX];
    uint32_t ntensors, noutputs;
};

#endif
