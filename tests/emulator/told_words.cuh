/* told_words.cuh: optimized/include/told_words.cuh for tests/emulate. */
#pragma once
namespace kp {
template <class State> struct ToldState {
    static_assert(sizeof(State) == 8 || sizeof(State) == 16, "one access");
    enum { WORDS = sizeof(State) / 8 };
    unsigned long long word[WORDS];
    bool there() const { return word[0] != ~0ull && word[WORDS - 1] != ~0ull; }
    State state() const {
        State s;
        memcpy(&s, word, sizeof s);
        return s;
    }
};
template <class State> void tell_state(State *to, const State &s) {
    ToldState<State> t;
    memcpy(t.word, &s, sizeof s);
    for (unsigned long long &w : t.word) w -= w == ~0ull;
    memcpy((void *)to, t.word, sizeof t);
}
template <class State> ToldState<State> told_state(const State *from) {
    ToldState<State> t;
    memcpy(t.word, (const void *)from, sizeof t);
    return t;
}
inline void count_told(unsigned *count) {
    ++*count;
}
inline unsigned told_count(const unsigned *count) {
    return *count;
}
} // namespace kp
