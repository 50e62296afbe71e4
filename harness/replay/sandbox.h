/* sandbox.h: what the recorder gives up before it opens a candidate's library. */
#ifndef KP_SANDBOX_H
#define KP_SANDBOX_H

#include <stddef.h>

/* Give up privileges for good.  No new ones; no exec, fork, socket or ptrace; no file but system
 * libraries, device nodes and `library`; no writing; limits on memory and CPU time.  Threads stay
 * allowed, because the CUDA driver uses them.  RLIMIT_AS would break CUDA, which reserves terabytes
 * of address space; RLIMIT_DATA does not.
 *
 * Writes to `level` what is in force, as JSON: {"no_new_privs":true,"seccomp":true,
 * "landlock":true,"limits":true}.  Where something is not in force, a string says why. */
void sandbox_enter(const char *library, char *level, size_t size);

#endif
