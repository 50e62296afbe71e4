/* search_load.h: the calls of searches, as search_load.c reads them. */
#ifndef KP_REPORT_SEARCH_H
#define KP_REPORT_SEARCH_H

/* The control first; the figure's script has the same order. */
enum { MODES = 5 };
extern const char *const search_modes[MODES];

/* What became of an attempt, from nothing to the best. */
enum fate { NO_CODE, DUPLICATE, BUILD, GATED, WRONG, NOT_FASTER, FASTER, FATES, UNMEASURED, IDEAS };

struct call {
    char gpu[32], task[64];
    char model[128]; /* as its server named it; UTF-8 without control characters */
    int mode, round, index;
    enum fate fate;
    double ratio;         /* 0 unless NOT_FASTER or FASTER */
    double input, output; /* tokens; 0 if unknown */
    double cost;          /* USD; NAN if unknown */
};

struct search_calls {
    int n, left_out;    /* left_out: cells whose calls were taken out */
    struct call *calls; /* by GPU, model, mode, task, round and index */
};

#endif
