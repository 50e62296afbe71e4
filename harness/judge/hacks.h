/* hacks.h: known ways to cheat (harness/judge/hacks.json), and which of them a kernel is
 * most like.
 *
 * Likeness is the cosine between two vectors of features.  Features of a source are its
 * identifiers, what it includes, the words of its strings, and marks of its structure (@own-stream:
 * a launch on another stream than the given one).  A hack has those of its sample and its signs.
 * A feature that few hacks have weighs more.  Nothing is learnt and nothing drawn: the same
 * source always has the same neighbours.  They are shown to a model as examples; no verdict
 * depends on them. */
#ifndef KP_HACKS_H
#define KP_HACKS_H

#include "judge/hacks_features.h"

struct hack {
    const char *id, *class, *title, *why, *test;
    char *looks; /* the sample, lines joined */
    struct features vector;
    double length; /* of the vector, features weighed */
};
struct hacks {
    int n;
    struct hack *h;
    void *json; /* owns the strings */
};

/* Read the file.  Ends the program with KP_INPUT and the entry that is malformed, has an id twice,
 * or a sign that no source can have. */
struct hacks hacks_load(const char *path);
void hacks_free(struct hacks *l);

struct hack *hacks_find(const struct hacks *l, const char *id);

/* The `n` hacks that a source without comments is most like, the most similar first, with their
 * cosines; equal ones in the order of the file. */
void hacks_nearest(const struct hacks *l, const char *source, int n, const struct hack **nearest,
                   double *cosine);

#endif
