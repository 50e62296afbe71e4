/* environment.h: what other programs get of the environment. */
#ifndef KP_ENVIRONMENT_H
#define KP_ENVIRONMENT_H

/* What CUDA needs of the environment, and nothing else: no secret.  At most KP_MOST_VARIABLES, then
 * NULL.  Valid until the next call. */
enum { KP_MOST_VARIABLES = 16 };
char **cuda_environment(void);

#endif
