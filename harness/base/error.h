/* error.h: the one error path, and the exit codes of every program here.
 *
 * A bad candidate is a result: a verdict, exit 0.  Everything else that goes wrong ends a program
 * with one of these codes, and one line on stderr that says what failed, where, and what to do. */
#ifndef KP_ERROR_H
#define KP_ERROR_H

enum {
    KP_OK = 0,      /* done; a verdict about a bad candidate counts as done */
    KP_USAGE = 2,   /* the command line is wrong */
    KP_INPUT = 3,   /* a file that was read is malformed or does not fit */
    KP_MACHINE = 4, /* no GPU, wrong GPU, driver or library failure: try again elsewhere */
    KP_IO = 5,      /* a file could not be written (disk full, no permission) */
    KP_BUDGET = 6,  /* a cap on spending was reached */
    KP_BUG = 70     /* an internal check failed: please report it */
};

#ifdef __cplusplus
#define KP_NORETURN [[noreturn]]
extern "C" {
#else
#define KP_NORETURN _Noreturn
#endif

/* Name that die() puts in front of its line, e.g. "verify".  Not copied. */
void kp_program(const char *name);

/* Print "PROGRAM: MESSAGE\n" to stderr and exit with `code`.  Never returns. */
KP_NORETURN void die(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Write out what was printed; die with KP_IO if standard output could not take all of it. */
void output_end(void);

/* Print "PROGRAM: MESSAGE\n" to stderr and go on. */
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#ifdef __cplusplus
}
#endif
#endif
