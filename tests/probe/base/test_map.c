/* SPDX-License-Identifier: MIT */
#include "probe/base/map.h"

#include "probe/base/mem.h"
#include "tests/support/check.h"

#define LEN(a) (sizeof(a) / sizeof *(a))

/* Key i of a large map, as the names of a dump look. */
static struct ms_str numbered(char buf[64], unsigned i)
{
    int n = snprintf(buf, 64, "Module.layers.%u.Linear.forward.%u", i / 10, i % 10);
    return (struct ms_str){buf, (uint32_t)n};
}

START_TEST(indices_count_first_appearances)
{
    static const struct {
        const char *key;
        uint32_t index;
        bool added;
    } table[] = {{"b", 0, true},  {"a", 1, true}, {"b", 0, false}, {"", 2, true},
                 {"ab", 3, true}, {"", 2, false}, {"a", 1, false}};
    struct ms_map m = {0};
    for (size_t i = 0; i < LEN(table); i++) {
        bool added = !table[i].added;
        ck_assert_uint_eq(ms_map_put(&m, ms_str_of(table[i].key), &added), table[i].index);
        ck_assert_int_eq(added, table[i].added);
    }
    ck_assert_uint_eq(m.keys.n, 4);
    ck_assert(ms_str_is(ms_map_key(&m, 3), "ab"));
    ms_map_free(&m);
}
END_TEST

START_TEST(an_empty_map_has_no_key)
{
    struct ms_map m = {0};
    ck_assert_uint_eq(ms_map_get(&m, MS_STR("a")), MS_MAP_NONE);
    ck_assert_uint_eq(ms_map_get(&m, MS_STR_NONE), MS_MAP_NONE);
    ms_map_free(&m);
    ck_assert_uint_eq(ms_map_put(&m, MS_STR("a"), NULL), 0);
    ms_map_free(&m);
    ck_assert_uint_eq(ms_map_get(&m, MS_STR("a")), MS_MAP_NONE);
}
END_TEST

START_TEST(keys_are_bytes_not_strings)
{
    struct ms_map m = {0};
    ck_assert_uint_eq(ms_map_put(&m, MS_STR("a\0b"), NULL), 0);
    ck_assert_uint_eq(ms_map_put(&m, MS_STR("a\0c"), NULL), 1);
    ck_assert_uint_eq(ms_map_put(&m, MS_STR("a"), NULL), 2);
    ck_assert_uint_eq(ms_map_get(&m, MS_STR("a\0c")), 1);
    ms_map_free(&m);
}
END_TEST

START_TEST(the_absent_slice_is_the_empty_key)
{
    struct ms_map m = {0};
    ck_assert_uint_eq(ms_map_put(&m, MS_STR_NONE, NULL), 0);
    ck_assert_uint_eq(ms_map_put(&m, MS_STR(""), NULL), 0);
    ck_assert_uint_eq(ms_map_get(&m, MS_STR_NONE), 0);
    ms_map_free(&m);
}
END_TEST

START_TEST(a_put_key_is_borrowed)
{
    char text[] = "key";
    struct ms_map m = {0};
    ms_map_put(&m, ms_str_of(text), NULL);
    ck_assert_ptr_eq(ms_map_key(&m, 0).p, text);
    ms_map_free(&m);
}
END_TEST

START_TEST(a_copied_key_outlives_its_text_and_is_copied_once)
{
    char text[] = "key";
    struct ms_map m = {0};
    struct ms_arena *a = ms_arena_new(1 << 20);
    ms_map_put_copy(&m, ms_str_of(text), a, NULL);
    size_t used = ms_arena_used(a);
    ck_assert_uint_eq(ms_map_put_copy(&m, ms_str_of(text), a, NULL), 0);
    ck_assert_uint_eq(ms_arena_used(a), used);
    text[0] = 'x';
    ck_assert_uint_eq(ms_map_get(&m, MS_STR("key")), 0);
    ck_assert_uint_eq(ms_map_get(&m, MS_STR("xey")), MS_MAP_NONE);
    ck_assert_str_eq(ms_map_key(&m, 0).p, "key");
    ms_map_free(&m);
    ms_arena_free(a);
}
END_TEST

START_TEST(a_full_arena_refuses_new_keys_only)
{
    struct ms_map m = {0};
    struct ms_arena *a = ms_arena_new(8);
    bool added;
    ck_assert_uint_eq(ms_map_put_copy(&m, MS_STR("1234567"), a, &added), 0);
    ck_assert(added);
    ck_assert_uint_eq(ms_map_put_copy(&m, MS_STR("x"), a, &added), MS_MAP_NONE);
    ck_assert(!added);
    ck_assert_uint_eq(ms_map_put_copy(&m, MS_STR("1234567"), a, &added), 0);
    ck_assert_uint_eq(ms_map_get(&m, MS_STR("x")), MS_MAP_NONE);
    ck_assert_uint_eq(m.keys.n, 1);
    ms_map_free(&m);
    ms_arena_free(a);
}
END_TEST

START_TEST(a_sealed_map_knows_keys_by_their_index)
{
    struct ms_map m = {0};
    bool added;
    ms_map_put(&m, MS_STR("a"), NULL);
    ms_map_put(&m, MS_STR("b"), NULL);
    ms_map_seal(&m);
    ck_assert_ptr_null(m.slots);
    ck_assert(ms_str_is(ms_map_key(&m, 1), "b"));
    ck_assert_uint_eq(ms_map_get(&m, MS_STR("b")), MS_MAP_NONE);
    ck_assert_uint_eq(ms_map_put(&m, MS_STR("c"), &added), 2); /* makes all keys known again */
    ck_assert(added);
    ck_assert_uint_eq(ms_map_get(&m, MS_STR("b")), 1);
    ms_map_free(&m);
}
END_TEST

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Keys whose stored hash is that of another key. */
static size_t colliding(const struct ms_map *m)
{
    size_t n = 0;
    uint32_t *h = malloc(m->keys.n * sizeof *h);
    for (size_t i = 0; i < m->keys.n; i++)
        h[i] = m->keys.p[i].hash;
    qsort(h, m->keys.n, sizeof *h, by_value);
    for (size_t i = 1; i < m->keys.n; i++)
        n += h[i] == h[i - 1];
    free(h);
    return n;
}

/* With a million keys about 116 pairs share their 32 hash bits by chance, so this also
 * shows that equal hashes are told apart by the text. */
START_TEST(a_million_keys_keep_their_indices_also_when_hashes_collide)
{
    enum { KEYS = 1000000 };
    struct ms_map m = {0};
    struct ms_arena *a = ms_arena_new((size_t)256 << 20);
    char buf[64];
    for (unsigned i = 0; i < KEYS; i++) {
        if (ms_map_put_copy(&m, numbered(buf, i), a, NULL) != i)
            ck_abort_msg("key %u has another index", i);
    }
    for (unsigned i = 0; i < KEYS; i++) {
        struct ms_str key = numbered(buf, i);
        if (ms_map_get(&m, key) != i || !ms_str_eq(ms_map_key(&m, i), key))
            ck_abort_msg("key %u was not found", i);
    }
    for (unsigned i = KEYS; i < KEYS + 1000; i++)
        ck_assert_uint_eq(ms_map_get(&m, numbered(buf, i)), MS_MAP_NONE);
    size_t same_hash = colliding(&m);
    ck_assert_uint_gt(same_hash, 0);
    ck_assert_uint_lt(same_hash, 1000);
    ms_map_free(&m);
    ms_arena_free(a);
}
END_TEST

/* Blocks that are equal under the hash: a word that cancels what came before it. */
START_TEST(keys_with_one_hash_are_all_found)
{
    enum { KEYS = 500 };
    static char text[KEYS][32];
    const uint64_t cancels = 0xD6E8FEB86659FD93U;
    struct ms_map m = {0};
    for (uint64_t i = 0; i < KEYS; i++) {
        memcpy(text[i], &i, sizeof i);
        memcpy(text[i] + 16, &cancels, sizeof cancels);
        ck_assert_uint_eq(ms_map_put(&m, (struct ms_str){text[i], 32}, NULL), i);
    }
    ck_assert_uint_eq(colliding(&m), KEYS - 1);
    for (uint32_t i = 0; i < KEYS; i++)
        ck_assert_uint_eq(ms_map_get(&m, (struct ms_str){text[i], 32}), i);
    ms_map_free(&m);
}
END_TEST

START_TEST(at_most_two_thirds_of_the_slots_are_taken)
{
    struct ms_map m = {0};
    struct ms_arena *a = ms_arena_new(1 << 20);
    char buf[64];
    for (unsigned i = 0; i < 5000; i++) {
        ms_map_put_copy(&m, numbered(buf, i), a, NULL);
        ck_assert_uint_le(m.keys.n * 3, ((size_t)m.mask + 1) * 2);
    }
    ms_map_free(&m);
    ms_arena_free(a);
}
END_TEST

START_TEST(more_keys_than_an_index_can_count_are_refused)
{
    struct ms_map m = {0};
    ck_assert(!ms_map_reserve(&m, UINT32_MAX));
    ck_assert(!ms_map_reserve(&m, SIZE_MAX));
    ck_assert_uint_eq(ms_map_put(&m, MS_STR("a"), NULL), 0);
    ms_map_free(&m);
}
END_TEST

/* Every put either gives the right index or fails and leaves the map whole. */
static bool fill(struct ms_map *m, struct ms_arena *a)
{
    bool good = true;
    char buf[64];
    for (unsigned i = 0; i < 200 && good; i++) {
        size_t before = m->keys.n;
        uint32_t got = ms_map_put_copy(m, numbered(buf, i), a, NULL);
        good = got == i;
        ck_assert(good || (got == MS_MAP_NONE && m->keys.n == before));
    }
    for (unsigned i = 0; i < m->keys.n; i++)
        ck_assert_uint_eq(ms_map_get(m, numbered(buf, i)), i);
    return good;
}

START_TEST(out_of_memory_leaves_a_whole_map_and_leaks_nothing)
{
    size_t live = ms_mem_live();
    uint64_t n = 1;
    for (bool failed = true; failed; n++) {
        struct ms_map m = {0};
        struct ms_arena *a = ms_arena_new(1 << 20);
        ms_mem_fail_at(n);
        bool good = fill(&m, a);
        failed = ms_mem_failed();
        ms_mem_fail_at(0);
        ck_assert_int_eq(good, !failed);
        ms_map_free(&m);
        ms_arena_free(a);
        ck_assert_uint_eq(ms_mem_live(), live);
    }
    ck_assert_uint_gt(n, 8);
}
END_TEST

START_TEST(reserved_keys_are_put_without_allocating)
{
    static char text[1000][8];
    struct ms_map m = {0};
    ck_assert(ms_map_reserve(&m, 1000));
    ms_mem_fail_at(1);
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(text[i], sizeof text[i], "%u", i);
        ck_assert_uint_eq(ms_map_put(&m, ms_str_of(text[i]), NULL), i);
    }
    ck_assert(!ms_mem_failed());
    ms_mem_fail_at(0);
    ms_map_free(&m);
}
END_TEST

TEST_MAIN("map", indices_count_first_appearances, an_empty_map_has_no_key,
          keys_are_bytes_not_strings, the_absent_slice_is_the_empty_key, a_put_key_is_borrowed,
          a_copied_key_outlives_its_text_and_is_copied_once, a_full_arena_refuses_new_keys_only,
          a_sealed_map_knows_keys_by_their_index,
          a_million_keys_keep_their_indices_also_when_hashes_collide,
          keys_with_one_hash_are_all_found, at_most_two_thirds_of_the_slots_are_taken,
          more_keys_than_an_index_can_count_are_refused,
          out_of_memory_leaves_a_whole_map_and_leaks_nothing,
          reserved_keys_are_put_without_allocating)
