/* family.h: tasks that differ in their sizes alone.
 *
 * tasks/SUITE/template.json is a task in which sizes have names, and tasks/SUITE/shapes is a list of
 * words.  The word 64_128_256 of the suite hgemm is the task hgemm_64_128_256.  The template's
 * member "shape" names the parts of the word, such as ["M", "N", "K"]; in every other string {M}
 * stands for the first part, and a string that is nothing but "{M}" becomes a number. */
#ifndef KP_FAMILY_H
#define KP_FAMILY_H

/* The task NAME of the template at PATH, as the JSON text of a task file.  Free it.  Ends the program
 * with KP_INPUT where the template is malformed or NAME is none of its tasks. */
char *family_expand(const char *path, const char *name);

#endif
