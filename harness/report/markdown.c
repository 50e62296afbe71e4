/* markdown.c: see markdown.h. */
#include "report/markdown.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char generated[] =
    "<!-- `make report` generates this page from results/: do not edit it. -->\n\n";

void put_plain(const char *s, int most, FILE *out) {
    for (int n = 0; *s && n < most; s++, n++) {
        if ((unsigned char)*s < ' ')
            fputc(' ', out);
        else if (strchr("|<>&`[]*\\", *s))
            fprintf(out, "&#%d;", *s);
        else
            fputc(*s, out);
    }
    while (((unsigned char)*s & 0xc0) == 0x80) fputc(*s++, out); /* never half a character */
    if (*s) fputs("...", out);
}

int time_decimals(double us) {
    return us >= 1000 ? 0 : us >= 100 ? 1 : us >= 10 ? 2 : 3;
}

void put_time(double us, FILE *out) {
    if (us > 0)
        fprintf(out, " %.*f |", time_decimals(us), us);
    else
        fputs(" - |", out);
}

void put_share(int n, int of, FILE *out) {
    if (of)
        fprintf(out, " %.0f %% |", 100.0 * n / of);
    else
        fputs(" - |", out);
}

void put_geomean(double mean, double reach, FILE *out) {
    fprintf(out, " %.3f", mean);
    if (reach > 0) fprintf(out, " (%.3f to %.3f)", mean * exp(-reach), mean * exp(reach));
    fputs(" |", out);
}

void page_write(const char *path, const char *text) {
    char *page = text_format("%s%s", generated, text);
    file_update(path, page);
    free(page);
}
