/* test_tensor_map.c: a map's form keeps what was asked, its address is a word of its own, and the
 * driver's map takes its place.  On the pretend GPU. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "gpu/driver.h"
#include "replay/tensor_map.h"

static const struct tensor_map most = {.address = 0x7f1234567890,
                                       .stride = {16, 1ull << 39, 48, 64},
                                       .dimension = {1ull << 32, 1, 3, 4, 5},
                                       .box = {256, 1, 2, 3, 4},
                                       .element_stride = {8, 1, 2, 3, 4},
                                       .type = CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
                                       .rank = 5,
                                       .interleave = CU_TENSOR_MAP_INTERLEAVE_32B,
                                       .swizzle = CU_TENSOR_MAP_SWIZZLE_64B,
                                       .promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                       .fill = 1};

static CUtensorMap driver_s(const struct tensor_map *m, uint64_t address) {
    CUtensorMap map;
    KP_CU(cu.cuTensorMapEncodeTiled(
        &map, (CUtensorMapDataType)m->type, m->rank, (void *)(uintptr_t)address,
        (const cuuint64_t *)m->dimension, (const cuuint64_t *)m->stride, m->box, m->element_stride,
        (CUtensorMapInterleave)m->interleave, (CUtensorMapSwizzle)m->swizzle,
        (CUtensorMapL2promotion)m->promotion, (CUtensorMapFloatOOBfill)m->fill));
    return map;
}

/* Make the maps of one launch with these parameters. */
static bool made(uint8_t *params, size_t bytes, char *message) {
    struct tape_node n = {.type = TAPE_KERNEL,
                          .name = (char *)(uintptr_t) "copy",
                          .param_bytes = (uint32_t)bytes,
                          .params = params};
    struct tape t = {.nnodes = 1, .nodes = &n};
    return tensor_maps_make(&t, message);
}

/* At every place of a block, to its last byte; what lies around it stays. */
static void test_places(void **state) {
    char message[KP_TAPE_MESSAGE] = "";
    (void)state;
    for (size_t at = 0; at <= 64; at += 8) {
        uint8_t params[192], before[192];
        CUtensorMap form, meant = driver_s(&most, 0xabcdef0123450);
        memset(params, 0x5a, sizeof params);
        assert_int_equal(tensor_map_note(&form, &most), CUDA_SUCCESS);
        memcpy(params + at, &form, sizeof form);
        memcpy(before, params, sizeof params);
        int words = 0;
        for (size_t i = 0; i < sizeof form; i += 8)
            if (!memcmp(params + at + i, &most.address, 8)) {
                words++;
                memcpy(params + at + i, &(uint64_t){0xabcdef0123450}, 8);
            }
        assert_int_equal(words, 1);
        if (!made(params, at + sizeof form, message)) fail_msg("%s", message);
        assert_memory_equal(params + at, &meant, sizeof meant);
        assert_memory_equal(params, before, at);
        assert_memory_equal(params + at + sizeof form, before + at + sizeof form, 64 - at);
    }
}

/* What is no form, and the driver's own maps, are parameters like others. */
static void test_others(void **state) {
    char message[KP_TAPE_MESSAGE] = "";
    CUtensorMap map = driver_s(&most, most.address), form, copy = map;
    (void)state;
    assert_true(made((uint8_t *)&map, sizeof map, message));
    assert_memory_equal(&map, &copy, sizeof map);
    assert_int_equal(tensor_map_note(&form, &most), CUDA_SUCCESS);
    copy = form;
    assert_true(made((uint8_t *)&form, sizeof form - 8, message)); /* half a form */
    assert_memory_equal(&form, &copy, sizeof form);
}

/* A map that the driver would not make: of no use, or a forgery. */
static void test_refused(void **state) {
    char message[KP_TAPE_MESSAGE] = "";
    CUtensorMap form, untouched = {{7}};
    struct tensor_map m = most;
    (void)state;
    m.box[0] = 257;
    form = untouched;
    assert_int_equal(tensor_map_note(&form, &m), CUDA_ERROR_INVALID_VALUE);
    assert_memory_equal(&form, &untouched, sizeof form);
    m = most, m.rank = 1;
    assert_int_equal(tensor_map_note(&form, &m), CUDA_SUCCESS);
    CUtensorMap two = form;
    m.rank = 2;
    assert_int_equal(tensor_map_note(&two, &m), CUDA_SUCCESS);
    for (size_t i = 0; i < sizeof form; i++) /* the byte of the rank */
        if (((uint8_t *)&form)[i] != ((uint8_t *)&two)[i]) ((uint8_t *)&form)[i] = 6;
    assert_false(made((uint8_t *)&form, sizeof form, message));
    assert_string_equal(message,
                        "the driver refuses a tensor map of copy: CUDA_ERROR_INVALID_VALUE");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places), cmocka_unit_test(test_others),
                                       cmocka_unit_test(test_refused)};
    driver_open();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
