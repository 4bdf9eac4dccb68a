/* SPDX-License-Identifier: MIT
 *
 * ckpt_file: one file of a checkpoint, whatever its format.
 */
#include "probe/checkpoint/checkpoint_int.h"

#include <stdio.h>

enum ms_rc ckpt__read_bytes(struct probe_ckpt *c, const struct ckpt_file *f, const char *p,
                            size_t n, struct ms_err *err)
{
    if (n >= 4 && memcmp(p, "PK\3\4", 4) == 0) {
        snprintf(c->kind, sizeof c->kind, "PyTorch");
        return ckpt__pt_read(c, f, MS_STR(""), p, n, err);
    }
    if (ckpt__is_safetensors(p, n)) {
        snprintf(c->kind, sizeof c->kind, "safetensors");
        return ckpt__safetensors_read(c, f, p, n, err);
    }
    if (ckpt__is_mindspore(p, n)) {
        snprintf(c->kind, sizeof c->kind, "MindSpore");
        return ckpt__mindspore_read(c, f, p, n, err);
    }
    if (n >= 4 && memcmp(p, "\x80\x02\x8a\x0a", 4) == 0)
        return ms_fail_at(
            err, MS_E_UNSUPPORTED, 0, 0,
            "is of torch.save's form without a zip archive; load it and save it again");
    return ms_fail_at(err, MS_E_UNSUPPORTED, 0, 0,
                      "is no checkpoint: supported are safetensors, PyTorch's .pt, distributed "
                      "checkpoints, Megatron, DeepSpeed and MindSpore");
}

enum ms_rc ckpt__open_file(struct probe_ckpt **c, const char *path, struct ms_err *err)
{
    struct ckpt_file *f = NULL;
    MS_TRY(ckpt__new(c, err));
    enum ms_rc rc = ckpt__map(*c, path, &f, err);
    if (rc == MS_OK) {
        rc = ckpt__read_bytes(*c, f, f->map.p, f->map.n, err);
        if (rc != MS_OK)
            rc = ms_err_wrap(err, "%s", path);
    }
    if (rc != MS_OK) {
        probe_ckpt_close(*c);
        *c = NULL;
    }
    return rc;
}
