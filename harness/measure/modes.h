/* modes.h: two more ways of timing, beside the headline's, for what others quote (METHOD.md, *Other
 * modes*).  Nothing empties the L2: what is in it is what a turn over all placements leaves there,
 * sets of operands that exceed it where the task is large enough.
 *
 * Offline: replays back to back, timed as one.  Server: one replay after a gap on the host, which
 * is drawn from an exponential law, the same for all contestants of a round. */
#ifndef KP_MODES_H
#define KP_MODES_H

#include "measure/rounds.h"

enum kp_mode { KP_MODE_OFFLINE, KP_MODE_SERVER, KP_MODES };
extern const char *const kp_mode_name[KP_MODES];

enum { KP_MODE_ROUNDS = 80 }; /* of a mode, unless the cap comes first */

struct modes {
    double gap_us;      /* the mean of the gaps */
    uint64_t gap_state; /* of the numbers that they are drawn from */
    double before_us;   /* the candidate's replay, behind a flush */
    double tick_us;     /* of the clock */
    int sets;           /* of processes, one after the other: several for short kernels */
    int placements[KP_MODES], turns;
    struct {
        int rounds, set[KP_MODE_ROUNDS]; /* the set that each round ran in */
        double event_us[KP_MAX_RUNNERS][KP_MODE_ROUNDS], host_us[KP_MAX_RUNNERS][KP_MODE_ROUNDS];
    } of[KP_MODES];
};

/* How many placements a cell is measured at in these modes: as many as make all operands together
 * exceed twice the L2, if they can. */
int modes_placements(const struct kp_task *task);

/* The bytes of the operands of so many placements. */
size_t modes_bytes(const struct kp_task *task, int placements);

/* Measure both modes with the runners that rounds_start() has started.  False: t->verdict is set.
 */
bool modes_run(struct modes *m, struct rounds *t);

/* Let the samples of t be those of a mode. */
void modes_take(const struct modes *m, enum kp_mode mode, struct rounds *t);

#endif
