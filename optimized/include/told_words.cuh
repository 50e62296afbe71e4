/* told_words.cuh: states that blocks tell each other through memory, without a fence (sm_70).
 *
 * A place for a state is all ones until the state is told; who reads it until no word of 8 bytes is
 * all ones has it. Each word says by itself that it is there, so nothing has to be ordered:
 * accesses are relaxed, and a warp that tells does not wait for what it has stored before. (With a
 * fence it does, behind all that its multiprocessor has stored.) A memset before the kernel makes
 * all places all ones, in each run anew.
 *
 * A word that happens to be all ones is told with its last bit 0, which makes one NaN of another.
 * So a state may have no integers that make up a word and are all -1.
 * Reaches: see drawn_rows.cuh. */
#pragma once
#include <string.h>

namespace kp {

/* A state as it lies in memory. */
template <class State> struct ToldState {
    static_assert(sizeof(State) == 8 || sizeof(State) == 16, "one access");
    static constexpr int WORDS = sizeof(State) / 8;
    unsigned long long word[WORDS];

    __device__ __forceinline__ bool there() const {
        return word[0] != ~0ull && word[WORDS - 1] != ~0ull;
    }
    __device__ __forceinline__ State state() const {
        State s;
        memcpy(&s, word, sizeof s);
        return s;
    }
};

/* Tells a state; `to` is aligned to its size. */
template <class State> __device__ __forceinline__ void tell_state(State *to, const State &s) {
    ToldState<State> t;
    memcpy(t.word, &s, sizeof s);
#pragma unroll
    for (unsigned long long &w : t.word) w -= w == ~0ull;
    if constexpr (t.WORDS == 1)
        asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(t.word[0]) : "memory");
    else
        asm volatile("st.relaxed.gpu.global.v2.b64 [%0], {%1, %2};" ::"l"(to), "l"(t.word[0]),
                     "l"(t.word[1])
                     : "memory");
}

/* What is told by now, if it is. */
template <class State> __device__ __forceinline__ ToldState<State> told_state(const State *from) {
    ToldState<State> t;
    if constexpr (t.WORDS == 1)
        asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];"
                     : "=l"(t.word[0])
                     : "l"(from)
                     : "memory");
    else
        asm volatile("ld.relaxed.gpu.global.v2.b64 {%0, %1}, [%2];"
                     : "=l"(t.word[0]), "=l"(t.word[1])
                     : "l"(from)
                     : "memory");
    return t;
}

/* Counts one more, and says how many: a hint when it is worth looking, which orders nothing. */
__device__ __forceinline__ void count_told(unsigned *count) {
    asm volatile("red.relaxed.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
}
__device__ __forceinline__ unsigned told_count(const unsigned *count) {
    unsigned n;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(n) : "l"(count) : "memory");
    return n;
}

} // namespace kp
