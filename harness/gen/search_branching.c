/* search_branching.c: first ideas in words, then several kernels of each.
 *
 * A round begins with a call for ideas, which shows the best kernels so far and the outcome of
 * every earlier idea.  Attempt A of the round implements idea mod K and starts from a seed:
 * the best kernel so far or, in every second pass over the ideas, the second best of the bank, so
 * that one line of descent does not take over. */
#define _GNU_SOURCE
#include "gen/search.h"
#include "base/error.h"
#include "base/json.h"

#include <stdlib.h>
#include <string.h>

enum { BANK = 3, MOST_IDEAS = 32, IDEA_BYTES = 1500 };

/* ---- The bank --------------------------------------------------------------------- */

/* Whether two kernels implement the same idea.  A kernel without an idea equals no other. */
static bool same_idea(const struct attempt *a, const struct attempt *b) {
    return a->idea >= 0 && a->idea == b->idea && a->round == b->round && !strcmp(a->mode, b->mode);
}

/* The best kernel so far, then the best of each other idea, best first.  Returns their number. */
static int fill_bank(const struct search *s, const struct attempt *bank[BANK]) {
    const struct attempt **pool;
    int n = search_pool(s, &pool), kept = 0;
    while (kept < BANK) {
        const struct attempt *best = NULL;
        for (int i = 0; i < n; i++) {
            bool known = false;
            for (int k = 0; k < kept; k++)
                known |= bank[k] == pool[i] || same_idea(bank[k], pool[i]);
            if (!known && (!best || attempt_better(pool[i], best))) best = pool[i];
        }
        if (!best) break;
        bank[kept++] = best;
    }
    free(pool);
    return kept;
}

/* ---- The outcomes of ideas -------------------------------------------------------- */

static const cJSON *ideas_of(const struct attempt *a) {
    return cJSON_GetObjectItemCaseSensitive(a->gen, "ideas");
}

/* The outcome of an idea: of the best of its kernels, else of the last. */
static const char *idea_outcome(const struct search *s, int round, int idea) {
    const struct attempt *best = NULL, *last = NULL;
    for (int i = 0; i < s->past->n; i++) {
        const struct attempt *a = &s->past->a[i];
        if (!search_earlier(s, a) || a->round != round || a->idea != idea) continue;
        const struct attempt *r = search_resolve(s, a);
        last = a;
        if (r && attempt_ok(r) && (!best || attempt_better(r, best))) best = r;
    }
    if (best)
        return text_format("worked, %.3fx (%.3f to %.3f), %s", best->ratio, best->low, best->high,
                           best->class);
    return last ? text_format("failed: %s", search_outcome(s, last)) : "untried";
}

/* Every idea of earlier rounds with its outcome; NULL if there was none. */
static const char *idea_ledger(const struct search *s) {
    char *text = NULL;
    for (int i = 0; i < s->past->n; i++) {
        const struct attempt *a = &s->past->a[i];
        const cJSON *idea;
        int k = 0;
        if (!search_earlier(s, a) || a->index != 0) continue;
        cJSON_ArrayForEach(idea, ideas_of(a)) {
            char *longer = text_format("%s- round %d: %s\n  %s\n", text ? text : "", a->round,
                                       cJSON_IsString(idea) ? idea->valuestring : "?",
                                       idea_outcome(s, a->round, k++));
            free(text);
            text = longer;
        }
    }
    return text;
}

/* The idea that this attempt implements, and its number in *at; NULL if this round has none.  If
 * there are more ideas than requested, the first ones count. */
static const char *idea_for(const struct search *s, int *at, int *pass) {
    for (int i = 0; i < s->past->n; i++) {
        const struct attempt *a = &s->past->a[i];
        if (strcmp(a->mode, s->mode) || a->round != s->round || a->index != 0) continue;
        int k = cJSON_GetArraySize(ideas_of(a));
        if (k > s->o->ideas) k = s->o->ideas;
        if (k < 1) return NULL;
        *at = (s->index - 1) % k;
        *pass = (s->index - 1) / k;
        const cJSON *idea = cJSON_GetArrayItem(ideas_of(a), *at);
        return cJSON_IsString(idea) ? idea->valuestring : NULL;
    }
    return NULL;
}

void search_branching(struct search *s) {
    const struct attempt *bank[BANK];
    int n = fill_bank(s, bank), at = -1, pass = 0;
    if (s->index == 0) {
        s->turn->ask = "ideas";
        s->turn->number = s->turn->of = 1;
        s->turn->ideas_wanted = s->o->ideas;
        s->turn->ledger = idea_ledger(s);
        while (n > 0) s->turn->shown[s->turn->nshown++] = bank[--n]; /* slowest first */
        return;
    }
    const char *idea = idea_for(s, &at, &pass);
    const struct attempt *seed = n == 0 ? NULL : bank[n > 1 && pass % 2 ? 1 : 0];
    if (!idea && seed)
        search_optimise(s, seed);
    else if (!idea)
        search_fresh(s);
    else {
        s->turn->ask = "implement";
        s->turn->idea = idea;
        s->turn->idea_index = at;
        if (seed) s->turn->shown[s->turn->nshown++] = seed;
    }
}

/* ---- Ideas in an answer ----------------------------------------------------------- */

/* Add an idea as one trimmed line, cut between characters if it is too long.  Ignores an empty
 * one. */
static void add_idea(cJSON *ideas, const char *text, size_t size) {
    char line[IDEA_BYTES + 1];
    size_t n = 0, i = 0;
    for (; i < size && n < IDEA_BYTES; i++) {
        char c = (unsigned char)text[i] <= ' ' ? ' ' : text[i];
        if (c != ' ' || (n > 0 && line[n - 1] != ' ')) line[n++] = c;
    }
    if (i < size && ((unsigned char)text[i] & 0xc0) == 0x80) {
        while (n > 0 && ((unsigned char)line[n - 1] & 0xc0) == 0x80) n--;
        if (n > 0) n--;
    }
    while (n > 0 && line[n - 1] == ' ') n--;
    line[n] = 0;
    if (n == 0 || cJSON_GetArraySize(ideas) >= MOST_IDEAS) return;
    if (!cJSON_AddItemToArray(ideas, cJSON_CreateString(line))) die(KP_MACHINE, "out of memory");
}

static cJSON *new_list(void) {
    cJSON *list = cJSON_CreateArray();
    if (!list) die(KP_MACHINE, "out of memory");
    return list;
}

/* The ideas of one JSON array; NULL if it holds anything else.  *objects: they are objects, as
 * requested, not bare strings. */
static cJSON *ideas_of_array(const cJSON *array, bool *objects) {
    cJSON *found = new_list(), *item;
    *objects = false;
    cJSON_ArrayForEach(item, array) {
        const char *text = cJSON_IsString(item) ? item->valuestring : json_text(item, "idea", NULL);
        if (!text) continue;
        *objects |= cJSON_IsObject(item);
        add_idea(found, text, strlen(text));
    }
    if (cJSON_GetArraySize(found)) return found;
    cJSON_Delete(found);
    return NULL;
}

/* The last array of ideas in the answer; objects win over strings.  NULL if there is none.
 * Tries at most 1000 positions, so that an answer of brackets alone takes little time. */
static cJSON *json_ideas(const char *answer) {
    cJSON *best = NULL;
    bool best_objects = false;
    const char *p = answer;
    for (int tries = 0; tries < 1000 && (p = strchr(p, '['));) {
        const char *first = p + 1 + strspn(p + 1, " \t\r\n"), *end = NULL;
        cJSON *array = NULL;
        if (*first == '{' || *first == '"') {
            tries++;
            array = cJSON_ParseWithOpts(p, &end, 0);
        }
        if (!array) {
            p++;
            continue;
        }
        bool objects;
        cJSON *found = ideas_of_array(array, &objects);
        if (found && objects >= best_objects) {
            cJSON_Delete(best);
            best = found;
            best_objects = objects;
        } else {
            cJSON_Delete(found);
        }
        cJSON_Delete(array);
        p = end;
    }
    return best;
}

cJSON *search_ideas(const char *answer) {
    cJSON *ideas = json_ideas(answer);
    return ideas ? ideas : new_list();
}
