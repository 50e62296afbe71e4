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

static const uint64_t address = 0x7f1234567890;

typedef CUresult encoder(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                         const cuuint64_t *, const cuuint32_t *, const cuuint32_t *,
                         CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                         CUtensorMapFloatOOBfill);

/* Ask for the largest map of all, but for its rank and the first side of its box. */
static CUresult ask(encoder *encode, CUtensorMap *to, uint64_t at, cuuint32_t rank,
                    cuuint32_t first) {
    const cuuint64_t dimension[] = {1ull << 32, 1, 3, 4, 5}, stride[] = {16, 1ull << 39, 48, 64};
    const cuuint32_t box[] = {first, 1, 2, 3, 4}, element_stride[] = {8, 1, 2, 3, 4};
    return encode(to, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ, rank, (void *)(uintptr_t)at, dimension,
                  stride, box, element_stride, CU_TENSOR_MAP_INTERLEAVE_32B,
                  CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
}

static CUresult note(CUtensorMap *to, cuuint32_t rank, cuuint32_t first) {
    return ask(tensor_map_note, to, address, rank, first);
}

static CUtensorMap driver_s(uint64_t at) {
    CUtensorMap map;
    KP_CU(ask(cu.cuTensorMapEncodeTiled, &map, at, 5, 256));
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
        CUtensorMap form, meant = driver_s(0xabcdef0123450);
        memset(params, 0x5a, sizeof params);
        assert_int_equal(note(&form, 5, 256), CUDA_SUCCESS);
        memcpy(params + at, &form, sizeof form);
        memcpy(before, params, sizeof params);
        int words = 0;
        for (size_t i = 0; i < sizeof form; i += 8)
            if (!memcmp(params + at + i, &address, 8)) {
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
    CUtensorMap map = driver_s(address), form, copy = map;
    (void)state;
    assert_true(made((uint8_t *)&map, sizeof map, message));
    assert_memory_equal(&map, &copy, sizeof map);
    assert_int_equal(note(&form, 5, 256), CUDA_SUCCESS);
    copy = form;
    assert_true(made((uint8_t *)&form, sizeof form - 8, message)); /* half a form */
    assert_memory_equal(&form, &copy, sizeof form);
}

/* A map that the driver would not make: of no use, or a forgery. */
static void test_refused(void **state) {
    char message[KP_TAPE_MESSAGE] = "";
    CUtensorMap form, untouched = {{7}};
    (void)state;
    form = untouched;
    assert_int_equal(note(&form, 5, 257), CUDA_ERROR_INVALID_VALUE);
    assert_memory_equal(&form, &untouched, sizeof form);
    CUtensorMap two;
    uint8_t *of_one = (uint8_t *)&form, *of_two = (uint8_t *)&two;
    assert_int_equal(note(&form, 1, 256), CUDA_SUCCESS);
    assert_int_equal(note(&two, 2, 256), CUDA_SUCCESS);
    int ranks = 0; /* bytes that may be the rank */
    for (size_t i = 0; i < sizeof form; i++)
        if (of_one[i] == 1 && of_two[i] == 2) of_one[i] = 6, ranks++;
    assert_int_equal(ranks, 1);
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
