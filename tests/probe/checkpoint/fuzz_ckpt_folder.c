/* SPDX-License-Identifier: MIT
 *
 * fuzz_ckpt_folder: folders whose files are the input: Megatron's with one rank, or two when its args say
 * so; DeepSpeed's; distributed ones; an index. The first byte chooses.
 */
#include "tests/support/fuzz_ckpt.h"

#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_file(const char *folder, const char *name, const uint8_t *data, size_t size)
{
    char path[256];
    ckpt_must((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) < sizeof path);
    FILE *f = fopen(path, "wb");
    ckpt_must(f != NULL && fwrite(data, 1, size, f) == size && fclose(f) == 0);
}

static const char *const files[4][3] = {
    {"mp_rank_00/model_optim_rng.pt", "mp_rank_01/model_optim_rng.pt", NULL},
    {"mp_rank_00_model_states.pt", "zero_pp_rank_0_mp_rank_00_optim_states.pt", NULL},
    {".metadata", "__0_0.distcp", NULL},
    {"model.safetensors.index.json", "a.safetensors", NULL}};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char folders[4][64];
    if (size == 0)
        return 0;
    const int kind = data[0] % 4;
    char *folder = folders[kind], path[512];
    if (*folder == '\0') {
        snprintf(folder, sizeof folders[0], "/tmp/msprobe-fuzz-ckpt-%d-%d", (int)getpid(), kind);
        (void)mkdir(folder, 0700);
        for (int r = 0; kind == 0 && r < 2; r++) {
            snprintf(path, sizeof path, "%s/mp_rank_0%d", folder, r);
            (void)mkdir(path, 0700);
        }
    }
    struct probe_ckpt *c;
    struct ms_err e = {0};
    for (int i = 0; i < 2; i++)
        write_file(folder, files[kind][i], data + 1, size - 1);
    const enum ms_rc rc = probe_ckpt_open(&c, folder, &e);
    ckpt_must((rc == MS_OK) == (e.rc == MS_OK));
    if (rc == MS_OK)
        fuzz_ckpt(c);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[kind][i]);
        (void)unlink(path);
    }
    return 0;
}
