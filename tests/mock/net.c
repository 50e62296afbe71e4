/* net.c: a library to preload that logs, to the file NET_LOG, every host a program looks up and
 * every address it connects or sends to, except local sockets.  It lets through only 127.0.0.1
 * and ::1, so a test that something is never sent sends nothing even if it fails. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

static void *real(const char *name) {
    void *f = dlsym(RTLD_NEXT, name);
    if (!f) abort();
    return f;
}

static void note(const char *what, const char *where, int port) {
    const char *path = getenv("NET_LOG");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (!f) abort();
    fprintf(f, "%s %s %d\n", what, where, port);
    if (fclose(f) != 0) abort();
}

/* Whether an address may be reached; logs it if it is a network address. */
static bool allowed(const char *what, const struct sockaddr *a) {
    char name[INET6_ADDRSTRLEN] = "";
    if (!a || (a->sa_family != AF_INET && a->sa_family != AF_INET6)) return true;
    const struct sockaddr_in *v4 = (const void *)a;
    const struct sockaddr_in6 *v6 = (const void *)a;
    if (a->sa_family == AF_INET)
        inet_ntop(AF_INET, &v4->sin_addr, name, sizeof name);
    else
        inet_ntop(AF_INET6, &v6->sin6_addr, name, sizeof name);
    note(what, name, ntohs(a->sa_family == AF_INET ? v4->sin_port : v6->sin6_port));
    return !strncmp(name, "127.", 4) || !strcmp(name, "::1");
}

int connect(int fd, const struct sockaddr *a, socklen_t n) {
    int (*next)(int, const struct sockaddr *, socklen_t) = real("connect");
    if (allowed("connect", a)) return next(fd, a, n);
    errno = ENETUNREACH;
    return -1;
}

ssize_t sendto(int fd, const void *p, size_t size, int flags, const struct sockaddr *a,
               socklen_t n) {
    ssize_t (*next)(int, const void *, size_t, int, const struct sockaddr *, socklen_t) =
        real("sendto");
    if (allowed("sendto", a)) return next(fd, p, size, flags, a, n);
    errno = ENETUNREACH;
    return -1;
}

int getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                struct addrinfo **found) {
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **) =
        real("getaddrinfo");
    note("lookup", host ? host : "-", service ? atoi(service) : 0);
    bool local =
        host && (!strncmp(host, "127.", 4) || !strcmp(host, "localhost") || !strcmp(host, "::1"));
    return local ? next(host, service, hints, found) : EAI_NONAME;
}
