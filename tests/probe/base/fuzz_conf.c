/* SPDX-License-Identifier: MIT
 *
 * Any text: it is refused with a place, or it is well-formed, and then the
 * library behind the tree must agree and each getter either delivers or names
 * the key.
 */
#include "probe/base/conf.h"

#include "probe/base/jread.h"
#include "probe/base/mem.h"

#include <stdlib.h>

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond))                                                                               \
            abort();                                                                               \
    } while (0)

static const char *const keys[] = {"a", "b", "task", "rank", "list", ""};
enum { KEYS = sizeof keys / sizeof *keys, DEPTH = 4 };

/* A getter that fails says so; which of them succeed tells the type. */
static int ask(const struct ms_conf_value *at, const char *key)
{
    const char *text = NULL;
    bool flag;
    int good = 0;
    struct ms_err err[2] = {0};
    good += ms_conf_str(at, key, &text, &err[0]) == MS_OK;
    good += ms_conf_bool(at, key, &flag, &err[1]) == MS_OK;
    for (int i = 0; i < 2; i++)
        MUST(err[i].rc == MS_OK || strstr(err[i].msg, "expected") != NULL);
    return good;
}

static void visit(const struct ms_conf_value *at, int depth)
{
    for (int i = 0; i < KEYS; i++) {
        const struct ms_conf_value *object = NULL;
        const struct ms_conf_value *list = NULL;
        int good = ask(at, keys[i]);
        good += ms_conf_object(at, keys[i], &object, NULL) == MS_OK;
        good += ms_conf_list(at, keys[i], &list, NULL) == MS_OK;
        /* Absent pleases everybody, any value one; a number none of them. */
        MUST(good == 4 || good <= 1);
        if (object != NULL && depth < DEPTH)
            visit(object, depth + 1);
        const char *text;
        int64_t n;
        for (size_t k = 0; list != NULL && k < ms_conf_len(list); k++) {
            MUST(!(ms_conf_item_str(list, k, &text) && ms_conf_item_int(list, k, &n)));
            struct ms_err err = {0};
            MUST(ms_conf_str(ms_conf_item(list, k), "a", &text, &err) == MS_OK ||
                 strstr(err.msg, "expected") != NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ms_conf *conf;
    struct ms_err err = {0};
    size_t live = ms_mem_live();
    struct ms_str text = {(const char *)data, (uint32_t)size};
    enum ms_rc rc = ms_conf_parse(&conf, "fuzz", text, &err);
    /* Out of memory would mean that cJSON refused what the strict reader took. */
    MUST(rc == MS_OK || rc == MS_E_FORMAT || rc == MS_E_LIMIT);
    MUST((rc == MS_OK) == (conf != NULL) && rc == err.rc);
    if (conf != NULL)
        visit(ms_conf_root(conf), 0);
    ms_conf_close(conf);
    MUST(ms_mem_live() == live);
    return 0;
}
