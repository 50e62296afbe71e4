/* search_turn.c: choose the turn of an attempt by its mode; see search.h. */
#include "gen/search.h"
#include "base/error.h"
#include "base/json.h"

#include <string.h>

void search_turn(const struct search_options *o, const char *mode, int round, int index,
                 const struct attempts *past, const struct prompt_cell *cell,
                 struct prompt_turn *turn) {
    struct search s = {o, mode, round, index, past, cell, turn};
    char *name = text_format("%s.r%da%d", mode, round, index), of[24];
    int r, i;
    if (!attempt_parse(name, of, &r, &i) || (index == 0 && !attempt_mode(mode, "branching")))
        die(KP_USAGE,
            "%s is no attempt: the mode is one_shot, best_of_n, repair, contrastive or "
            "branching, and rounds and attempts count from 1",
            name);
    *turn =
        (struct prompt_turn){.attempt = name, .number = index, .of = o->width, .idea_index = -1};
    if (attempt_mode(mode, "repair"))
        search_repair(&s);
    else if (attempt_mode(mode, "contrastive"))
        search_contrastive(&s);
    else if (attempt_mode(mode, "branching"))
        search_branching(&s);
    else if (attempt_mode(mode, "best_of_n") && o->seed_kernel && cell->current &&
             attempt_ok(cell->current))
        search_optimise(&s, cell->current);
    else
        search_fresh(&s);
    /* The control draws independently: no sample knows of others. */
    if (attempt_mode(mode, "best_of_n")) turn->number = turn->of = 1;
    if (turn->of < turn->number) turn->of = turn->number;
}
