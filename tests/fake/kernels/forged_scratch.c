// expect: tape
// task: relu64
// reason: tampered with it
/* The same as forged_tape.c, with more scratch than there is memory anywhere. */
#define SCRATCH ~0ull
#include "forged_tape.c"
