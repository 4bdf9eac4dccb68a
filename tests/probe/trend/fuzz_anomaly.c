/* SPDX-License-Identifier: MIT
 *
 * fuzz_anomaly: any bytes as a rank's anomaly.json. What is read is sorted, and what is written is read again as
 * the same alarms in the same order.
 */
#include "probe/base/io.h"
#include "probe/base/mem.h"
#include "probe/trend/anomaly.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char folder[64], input[96], copy[96], output[112];

static void prepare(void)
{
    if (folder[0] != '\0')
        return;
    snprintf(folder, sizeof folder, "/tmp/msprobe-fuzz-anomaly-XXXXXX");
    assert(mkdtemp(folder) != NULL);
    snprintf(input, sizeof input, "%s/in/rank0", folder);
    snprintf(copy, sizeof copy, "%s/out/rank0", folder);
    struct ms_err err = {0};
    assert(ms_mkdirs(input, &err) == MS_OK && ms_mkdirs(copy, &err) == MS_OK);
    snprintf(output, sizeof output, "%s/anomaly.json", copy);
}

static void write_input(const uint8_t *p, size_t n)
{
    char path[112];
    snprintf(path, sizeof path, "%s/anomaly.json", input);
    FILE *f = fopen(path, "w");
    assert(f != NULL && fwrite(p, 1, n, f) == n && fclose(f) == 0);
}

static struct probe_anomalies *sorted(const char *dir)
{
    struct probe_anomalies *a;
    struct ms_err err = {0};
    char path[96];
    snprintf(path, sizeof path, "%s/%s", folder, dir);
    if (probe_anomalies_read(&a, path, NULL, NULL, &err) != MS_OK)
        return NULL;
    assert(probe_anomalies_choose(a, SIZE_MAX, NULL, 0, &err) == MS_OK);
    return a;
}

static void compare(const struct probe_anomalies *a, const struct probe_anomalies *b)
{
    assert(probe_anomalies_count(b) <= probe_anomalies_count(a)); /* of one key the last counts */
    for (size_t i = 0;
         probe_anomalies_count(a) == probe_anomalies_count(b) && i < probe_anomalies_count(a);
         i++) {
        const struct probe_anomaly *x = probe_anomalies_at(a, i), *y = probe_anomalies_at(b, i);
        assert(x->step == y->step && x->call_id == y->call_id && ms_str_eq(x->tag, y->tag) &&
               ms_str_eq(x->message, y->message) && ms_str_eq(x->mates, y->mates));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct ms_err err = {0};
    prepare();
    write_input(p, n);
    const size_t before = ms_mem_live();
    struct probe_anomalies *a = sorted("in");
    if (a != NULL) {
        assert(probe_anomalies_write(a, output, &err) == MS_OK);
        struct probe_anomalies *b = sorted("out");
        assert(b != NULL);
        compare(a, b);
        probe_anomalies_free(b);
    }
    probe_anomalies_free(a);
    assert(ms_mem_live() == before);
    return 0;
}
