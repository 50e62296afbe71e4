/* taskfile.h: a task, as read from tasks/SUITE/TASK.json.
 *
 * A task is data: named tensors, an op graph in SSA form (one op a line), and the names of its
 * outputs.  task_load() (load.c) infers shapes and dtypes and checks everything that needs no
 * GPU.  A loaded task is therefore well formed, and no later step checks it again.
 *
 * Shapes are row-major, slowest axis first.  Sizes are in elements unless a name says bytes. */
#ifndef KP_TASKFILE_H
#define KP_TASKFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most of each that there may be. */
enum {
    KP_MAX_DIMS = 8,      /* axes of a tensor or value */
    KP_MAX_RESULTS = 3,   /* results of an op */
    KP_MAX_ATTRS = 12,    /* attributes of an op */
    KP_MAX_OUTPUTS = 4,   /* outputs of a task */
    KP_MAX_TENSORS = 1000 /* inputs and parameters of a task */
};

/* Bytes of the name of a tensor or value, with its NUL. */
enum { KP_NAME = 64 };

/* Operands that an op can have by place or keyword: each may be absent.  An op that takes a list
 * has as many more as its line names. */
enum { KP_SLOTS = 8 };

enum kp_dtype { KP_F64, KP_F32, KP_F16, KP_BF16, KP_I64, KP_I32, KP_BOOL };

/* Size in bytes of one element, and the name used in task files ("f32"). */
size_t kp_dtype_size(enum kp_dtype t);
const char *kp_dtype_name(enum kp_dtype t);

/* The dtype called `name`.  False, with *out unchanged, if there is none. */
bool dtype_parse(const char *name, enum kp_dtype *out);

struct kp_shape {
    int n;                    /* number of axes; 0 is a scalar */
    int64_t dim[KP_MAX_DIMS]; /* slowest first */
};

/* Number of elements; 1 for a scalar. */
int64_t kp_shape_count(const struct kp_shape *s);

/* True if an array of this shape and of the largest type has at most 2^50 bytes: then no sum over
 * the arrays of a task, at several places, is beyond 64 bits. */
bool shape_fits(const struct kp_shape *s);

/* "[2,3]" in a buffer of the caller's; returns the buffer. */
enum { KP_SHAPE_TEXT = 160 };
const char *shape_text(const struct kp_shape *s, char out[KP_SHAPE_TEXT]);

/* How a tensor is filled.  In task files a string of this grammar:
 *   uniform(lo,hi)  normal(mean,std)  constant(c)  integers(lo,hi)   hi exclusive
 *   fan_in(n)             uniform in +-1/sqrt(n), computed, never rounded
 *   bernoulli(p)          0 or 1
 *   symmetric(FILL)       (U + U^T)/2 over the last two axes, U drawn from FILL
 *   upper(FILL) lower(FILL)  zero below / above the diagonal of the last two axes
 *   scaled(FILL)          FILL times one uniform(0,1) scalar for the whole tensor
 *   softmax(FILL)         softmax of FILL over the last axis
 *   signs()               -1 or +1
 *   values(c,c*n,...)     these, in order; c*n is n times c.  The domain is `declared`
 *   transposed(NAME)      the transpose (last two axes) of an earlier tensor of this task */
enum kp_fill_kind {
    KP_FILL_UNIFORM,
    KP_FILL_NORMAL,
    KP_FILL_CONSTANT,
    KP_FILL_INTEGERS,
    KP_FILL_FAN_IN,
    KP_FILL_BERNOULLI,
    KP_FILL_SIGNS,
    KP_FILL_VALUES,
    KP_FILL_TRANSPOSED
};
enum { KP_MOST_VALUES = 1 << 18 }; /* of values(...) */
enum kp_fill_wrap {                /* bits; at most one of SYMMETRIC, UPPER, LOWER */
                    KP_WRAP_SYMMETRIC = 1,
                    KP_WRAP_UPPER = 2,
                    KP_WRAP_LOWER = 4,
                    KP_WRAP_SCALED = 8,
                    KP_WRAP_SOFTMAX = 16
};
struct kp_fill {
    enum kp_fill_kind kind;
    int wrap;       /* bits of kp_fill_wrap */
    double a, b;    /* uniform lo,hi; normal mean,std; constant c; integers lo,hi; fan_in n; p;
                       values: all are in [a,b) */
    double *values; /* of values(...): one for each element, the task's; else NULL */
    int source;     /* tensor index, for transposed(NAME) */
};

/* The values that a tensor may hold.  Verification also draws from other distributions inside
 * this domain than the declared fill. */
enum kp_domain {
    KP_DOMAIN_REAL,     /* any finite value of any sign and of widely varying magnitude */
    KP_DOMAIN_MODERATE, /* any sign, near the declared magnitude (fed to exp, recurrent weights) */
    KP_DOMAIN_POSITIVE, /* > 0 */
    KP_DOMAIN_UNIT,     /* [0,1] */
    KP_DOMAIN_DECLARED  /* only what the fill declares (indices, masks, probabilities) */
};

struct kp_tensor { /* an input or a parameter */
    char name[KP_NAME];
    enum kp_dtype dtype;
    struct kp_shape shape;
    struct kp_fill fill;
    enum kp_domain domain;
    bool parameter; /* false: input.  Both change before every sample. */
};

struct kp_value { /* an SSA value: tensor i is value i, results of ops follow */
    char name[KP_NAME];
    enum kp_dtype dtype;
    struct kp_shape shape;
};

enum kp_attr_kind { KP_ATTR_INT, KP_ATTR_FLOAT, KP_ATTR_BOOL, KP_ATTR_LIST, KP_ATTR_WORD };
struct kp_attr { /* key=value after the semicolon of an op line */
    char key[32];
    enum kp_attr_kind kind;
    double number;             /* INT, FLOAT, BOOL (0 or 1) */
    int n;                     /* LIST */
    int64_t list[KP_MAX_DIMS]; /* LIST: [2,3] */
    char word[96];             /* WORD: a bare word (mean) or a quoted string ("ij,jk->ik") */
};

struct kp_operand {
    bool is_scalar;
    double scalar; /* if is_scalar */
    int value;     /* else: index into kp_task.values; -1 if an optional operand is absent */
};

struct kp_op_def; /* op.h */

struct kp_op {
    const struct kp_op_def *def;
    int nin;
    struct kp_operand *in; /* positional; named ones at their slot in def; KP_SLOTS at least */
    int nout;
    int out[KP_MAX_RESULTS]; /* value indices */
    int nattr;
    struct kp_attr attr[KP_MAX_ATTRS];
    int line; /* in the task file, for messages */
};

struct kp_task {
    char name[64];  /* l1_040_layer_norm: unique over all suites, equals the file name */
    char suite[24]; /* level1: equals the folder name */
    char title[128];
    char source[160]; /* where the task comes from */
    char path[256];   /* the file it was read from */
    double precision; /* a speedup need be known no better than to this share; 0: as all are */
    int ntensors;     /* inputs first, then parameters, in file order */
    int ninputs;
    struct kp_tensor *tensors;
    int nvalues;
    struct kp_value *values; /* tensors, then op results in order */
    int nops;
    struct kp_op *ops;
    int noutputs;
    int outputs[KP_MAX_OUTPUTS]; /* value indices */
    int nnotes;
    char **notes;
    int nflags;
    char **flags; /* e.g. "degenerate: output is identically 0", "identity-on-declared-inputs" */
};

/* Read and check one task file.  Never returns NULL: on any error it ends the program through
 * die(KP_INPUT, ...) with "FILE:LINE: what was found; expected what".  task_load_error() returns
 * NULL instead and stores the message, for callers that go on (tests). */
struct kp_task *task_load(const char *path);
struct kp_task *task_load_error(const char *path, char *message, size_t size);

/* The same of a text, as family_expand() makes it; `path` is for messages. */
struct kp_task *task_parse(const char *text, const char *path, char *message, size_t size);
void task_free(struct kp_task *t);

/* Tasks that differ in their sizes alone are a family.  tasks/SUITE/template.json is a task in
 * which sizes have names, and tasks/SUITE/shapes is a list of words.  The word 64_128_256 of the
 * suite hgemm is the task hgemm_64_128_256.  The template's member "shape" names the parts of the
 * word, such as ["M", "N", "K"]; in every other string {M} stands for the first part, and a string
 * that is nothing but "{M}" becomes a number.
 *
 * The task NAME of the template at PATH, as the JSON text of a task file.  Free it.  Ends the
 * program with KP_INPUT where the template is malformed or NAME is none of its tasks;
 * family_expand_error() returns NULL instead and stores the message, unless the template is no
 * JSON.
 */
char *family_expand(const char *path, const char *name);
char *family_expand_error(const char *path, const char *name, char *message, size_t size);

/* Index of the value called `name`, or -1. */
int value_find(const struct kp_task *t, const char *name);

/* Mark the values that some output needs.  live has t->nvalues entries. */
void task_live(const struct kp_task *t, bool *live);

/* Whether operand `slot` of an op is there, and no number. */
bool op_has(const struct kp_op *op, int slot);

/* Attribute `key` of an op, or NULL. */
const struct kp_attr *op_attr(const struct kp_op *op, const char *key);

/* Attributes of an op, with the default for an absent key. */
int64_t op_int(const struct kp_op *op, const char *key, int64_t otherwise);
double op_float(const struct kp_op *op, const char *key, double otherwise);
bool op_bool(const struct kp_op *op, const char *key, bool otherwise);
const char *op_word(const struct kp_op *op, const char *key, const char *otherwise);
/* Write n entries to out: the list; or a single number n times; or, if the key is absent,
 * `otherwise` n times.  A list of another length is a bug: the loader refuses it. */
void op_list(const struct kp_op *op, const char *key, int n, int64_t otherwise, int64_t *out);

/* The least work that a task needs, computed from the graph (cost.c).
 * bytes: every tensor that reaches an output is read once, every output is written once.
 * flops: additions and multiplications of the ops; a multiply-add counts 2, and a convolution's
 * padding counts as work.  mm_flops: those in matrix products and convolutions, which tensor
 * cores can do. */
struct kp_cost {
    double bytes_in, bytes_out, flops, mm_flops;
};
struct kp_cost task_cost(const struct kp_task *t);
double kp_value_bytes(const struct kp_value *v); /* as the task stores it */

/* The share of a task's bytes or flops, whichever is larger, that a kernel need not do if it leaves
 * a tensor out: 1 if nothing is left of the outputs then; next to 0 for a bias. */
double task_share(const struct kp_task *t, int tensor);

struct cJSON; /* an object of base/json.h */

/* The times, in microseconds, that hardly any kernel of a class beats: of its bytes and of its
 * products, at a machine's measured peaks (peaks.json).  0 where the peak is not known. */
struct kp_floor {
    double bytes_us, flops_us;
};
struct kp_floor task_floor(const struct kp_cost *c, const struct cJSON *peaks,
                           const char *of_class);

#ifdef __cplusplus
}
#endif
#endif
