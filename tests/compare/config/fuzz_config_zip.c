/* SPDX-License-Identifier: MIT
 *
 * fuzz_config_zip: archives of configurations: the directory, members, and the JSON in them.
 */
#include "compare/config/config_value.h"
#include "compare/config/config_zip.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct cfg_zip z = {0};
    struct ms_err e = {0};
    char *copy = malloc(size + 1);
    struct ms_arena *a = ms_arena_new(16 << 20);
    if (size != 0)
        memcpy(copy, data, size);
    if (cfg_zip_parse(&z, "f", copy, size, &e) == MS_OK) {
        for (size_t i = 0; i < z.zip.members.n; i++) {
            const struct probe_zip_member *m = &z.zip.members.p[i];
            struct ms_err unused = {0};
            struct ms_str text;
            const struct ms_plain *v;
            if (m->name.p[0] == '/' || ms_str_find_str(m->name, MS_STR("..")) == 0)
                abort();
            if (cfg_zip_text(&z, m, a, &text, &unused) == MS_OK &&
                cfg_value_parse(&v, "m", text, a, &unused) == MS_OK) {
                struct ms_buf out = {.max = 1 << 20};
                cfg_value_repr(&out, v);
                ms_buf_free(&out);
            }
        }
    }
    cfg_zip_close(&z);
    ms_arena_free(a);
    free(copy);
    return 0;
}
