/* hacks.h: the catalogue of known cheats (harness/judge/hacks.json), and those most similar to a
 * kernel.
 *
 * Similarity is the cosine of two feature vectors.  The features of a source are its
 * identifiers, its includes, the words of its strings, and the static rules that it matches
 * (@own-stream: a launch on a stream other than the given one).  A hack has the features of its
 * sample and its signs.  A feature that few hacks have weighs more.  Nothing is trained and
 * nothing is random: a source always has the same neighbours.  A model sees them as examples; no
 * verdict depends on them. */
#ifndef KP_HACKS_H
#define KP_HACKS_H

#include "judge/hacks_features.h"

struct hack {
    const char *id, *class, *title, *why, *test;
    char *looks; /* the sample, its lines joined */
    struct features vector;
    double length; /* of the weighted vector */
};
struct hacks {
    int n;
    struct hack *h;
    void *json; /* owns the strings */
};

/* Read the file.  Ends the program with KP_INPUT and the entry's id if an entry is malformed,
 * repeats an id, or has a sign that no source can have. */
struct hacks hacks_load(const char *path);
void hacks_free(struct hacks *l);

struct hack *hacks_find(const struct hacks *l, const char *id);

/* The `n` hacks most similar to a source without comments, best first, with their cosines; ties
 * keep the order of the file. */
void hacks_nearest(const struct hacks *l, const char *source, int n, const struct hack **nearest,
                   double *cosine);

#endif
