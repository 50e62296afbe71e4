/* code_normal.h: what of a C or CUDA source the compiler sees. */
#ifndef KP_CODE_NORMAL_H
#define KP_CODE_NORMAL_H

/* The source without comments and without whitespace that C++ does not need.  String and
 * character literals, raw strings and line continuations stay.  Kernels with the same normal
 * form are the same kernel.  Free it. */
char *code_normal(const char *source);

/* The source without its static_assert(...);, which decide only whether it compiles.  Free it. */
char *code_unasserted(const char *source);

#endif
