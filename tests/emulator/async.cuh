/* async.cuh: optimized/include/async.cuh for tests/emulate: copies happen when they are waited for.
 */
#pragma once
#include <deque>

namespace emulator {
struct Copy {
    void *to;
    const void *from; /* NULL: the end of a group */
};
inline std::map<Thread *, std::deque<Copy>> copies;
} // namespace emulator

inline void copy_async(void *to, const void *from) {
    if ((uintptr_t)to % 16 || (uintptr_t)from % 16) emulator::fail("a copy is not aligned");
    emulator::copies[emulator::self].push_back({to, from});
    memset(to, 0xff, 16);
}
inline void copy_commit() {
    emulator::copies[emulator::self].push_back({nullptr, nullptr});
}
inline void copy_wait(int pending) {
    auto &mine = emulator::copies[emulator::self];
    int groups = 0;
    for (const auto &c : mine) groups += !c.from;
    for (; groups > pending; mine.pop_front()) {
        if (mine.front().from)
            memcpy(mine.front().to, mine.front().from, 16);
        else
            groups--;
    }
}
