/* test_descriptors.c: open files through a socket: all that were passed on are taken, or none stays
 * open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/descriptors.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MORE = KP_MOST_DESCRIPTORS + 8 };

/* How many files this process has open. */
static int open_files(void) {
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    assert_non_null(d);
    while (readdir(d)) n++;
    closedir(d);
    return n;
}

/* Pass on `count` times standard output, more than descriptors_give() does. */
static void give_many(int socket, int count) {
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(MORE * sizeof(int))];
    } c;
    struct iovec one = {"", 1};
    struct msghdr m = {.msg_iov = &one, .msg_iovlen = 1, .msg_control = &c};
    size_t bytes = (size_t)count * sizeof(int);
    memset(&c, 0, sizeof c);
    m.msg_controllen = CMSG_SPACE(bytes);
    c.header = (struct cmsghdr){CMSG_LEN(bytes), SOL_SOCKET, SCM_RIGHTS};
    for (int i = 0, fd = 1; i < count; i++)
        memcpy(CMSG_DATA(&c.header) + (size_t)i * sizeof fd, &fd, sizeof fd);
    assert_int_equal(sendmsg(socket, &m, 0), 1);
}

/* As many as were passed on are taken, and close on exec. */
static void test_taken(void **state) {
    int pair[2], fd[2] = {-1, -1};
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    int before = open_files();
    assert_true(descriptors_give(pair[0], (const int[]){0, 1}, 2));
    assert_true(descriptors_take(pair[1], fd, 2));
    assert_int_equal(open_files(), before + 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fcntl(fd[i], F_GETFD), FD_CLOEXEC);
        close(fd[i]);
    }
    close(pair[0]);
    assert_false(descriptors_take(pair[1], fd, 2)); /* the other end is gone */
    close(pair[1]);
}

/* Fewer, more, and more than fit are refused, and none of them stays open. */
static void test_refused(void **state) {
    static const struct {
        int given, taken;
    } cases[] = {{1, 2}, {3, 2}, {MORE, 2}, {MORE, KP_MOST_DESCRIPTORS}};
    int pair[2], fd[KP_MOST_DESCRIPTORS];
    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    int before = open_files();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        give_many(pair[0], cases[i].given);
        assert_false(descriptors_take(pair[1], fd, cases[i].taken));
        assert_int_equal(open_files(), before);
    }
    assert_int_equal(write(pair[0], "", 1), 1); /* a byte without any */
    assert_false(descriptors_take(pair[1], fd, 2));
    close(pair[0]);
    close(pair[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_taken),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
