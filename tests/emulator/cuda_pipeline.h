/* cuda_pipeline.h: CUDA's header for tests/emulate: copies happen when they are waited for. */
#pragma once
#include "async.cuh"

inline void __pipeline_memcpy_async(void *to, const void *from, size_t bytes) {
    if (bytes != 16) emulator::fail("a copy of %d bytes", (int)bytes);
    copy_async(to, from);
}
inline void __pipeline_commit() {
    copy_commit();
}
inline void __pipeline_wait_prior(int pending) {
    copy_wait(pending);
}
