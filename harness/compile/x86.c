/* x86.c: see x86.h. */
#include "compile/x86.h"

#include <stdbool.h>
#include <string.h>

enum { FS = 0x64, GS = 0x65, REP = 0xf3, ESCAPE = 0x0f, MOST_PREFIXES = 14 };

/* How many prefixes are in front of an opcode at p, where n bytes are left; *segment is the last of
 * %fs and %gs among them, or 0. */
static size_t prefixes(const unsigned char *p, size_t n, unsigned char *segment) {
    size_t i = 0;
    *segment = 0;
    for (; i < n && i < MOST_PREFIXES; i++) {
        if (p[i] == FS || p[i] == GS) *segment = p[i];
        bool rex = (p[i] & 0xf0) == 0x40;
        if (!rex && (!p[i] || !strchr("\xf0\xf2\xf3\x2e\x36\x3e\x26\x64\x65\x66\x67", p[i]))) break;
    }
    return i;
}

/* The bytes of an opcode, with what comes before it in VEX and EVEX. */
static size_t opcode_bytes(const unsigned char *p, size_t n) {
    switch (p[0]) {
    case 0x62: return 5;
    case 0xc4: return 4;
    case 0xc5: return 3;
    case ESCAPE: return n > 1 && (p[1] == 0x38 || p[1] == 0x3a) ? 3 : 2;
    default: return 1;
    }
}

/* Whether the operand at p is an address, but not that of the stack protector's word in %fs. */
static bool is_address(const unsigned char *p, size_t n, unsigned char segment) {
    return n >= 6 && (p[0] & 0xc7) == 0x04 && p[1] == 0x25 &&
           (segment == GS || memcmp(p + 2, "\x28\0\0\0", 4) != 0);
}

/* The name of the instruction that the n > 0 bytes at p are or look like, or NULL. */
static const char *looks_like(const unsigned char *p, size_t n) {
    unsigned char segment;
    if (n >= 2 && p[0] == ESCAPE && p[1] == 0x05) return "syscall";
    if (n >= 2 && p[0] == ESCAPE && p[1] == 0x34) return "sysenter";
    if (n >= 2 && p[0] == 0xcd && p[1] == 0x80) return "int 0x80";
    if (p[0] != REP && p[0] != FS && p[0] != GS) return NULL;
    size_t i = prefixes(p, n, &segment);
    if (p[0] == REP && n - i >= 3 && p[i] == ESCAPE && p[i + 1] == 0xae && p[i + 2] >= 0xc0 &&
        p[i + 2] <= 0xdf)
        return "rdfsbase or its kin";
    if (!segment || i == n) return NULL;
    i += opcode_bytes(p + i, n - i);
    return i < n && is_address(p + i, n - i, segment) ? "an access through %fs or %gs" : NULL;
}

const char *x86_forbidden(const unsigned char *code, size_t n, size_t *at) {
    const char *what = NULL;
    for (*at = 0; *at < n && !what; ++*at) what = looks_like(code + *at, n - *at);
    if (what) --*at;
    return what;
}
