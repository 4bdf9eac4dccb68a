/* SPDX-License-Identifier: MIT
 *
 * reproduce_script: the text of the program. Names of the dump become names in Python only when they
 * are made of letters, digits, underscores and dots; texts stay between their quotes.
 */
#include "compare/reproduce/reproduce_int.h"

#include "probe/base/num.h"

#include <math.h>

/* Where the functions of a prefix are. "": methods of the first argument. */
static const struct {
    const char *prefix, *torch, *mindspore;
} homes[] = {
    {"Functional", "torch.nn.functional.", "mindspore.ops."},
    {"Torch", "torch.", NULL},
    {"Tensor", "", ""},
    {"Mint", NULL, "mindspore.mint."},
    {"MintFunctional", NULL, "mindspore.mint.nn.functional."},
    {"NPU", "torch_npu.", NULL},
};

/* Functions that do what a module does with its input and its parameters. */
static const struct {
    const char *module, *call;
} modules[] = {
    {"Linear", "torch.nn.functional.linear(*args, **kwargs)"},
    {"LayerNorm",
     "torch.nn.functional.layer_norm(*args, kwargs[\"weight\"].shape, kwargs[\"weight\"], "
     "kwargs.get(\"bias\"))"},
    {"Embedding", "torch.nn.functional.embedding(*args, **kwargs)"},
    {"ReLU", "torch.nn.functional.relu(*args)"},
    {"GELU", "torch.nn.functional.gelu(*args)"},
    {"SiLU", "torch.nn.functional.silu(*args)"},
};

static const char top[] = "import os\n"
                          "import numpy\n"
                          "import %s\n"
                          "\n"
                          "HERE = os.path.dirname(os.path.abspath(__file__))\n"
                          "\n"
                          "\n"
                          "def load(name):\n"
                          "    path = os.path.join(HERE, name + \".npy\")\n"
                          "    return numpy.load(path) if os.path.exists(path) else None\n"
                          "\n"
                          "\n";

static const char torch_parts[] =
    "def tensor(name, dtype, wide):\n"
    "    dtype = getattr(torch, dtype)\n"
    "    x = torch.from_numpy(load(name))\n"
    "    return x.to(torch.float64 if wide and dtype.is_floating_point else dtype)\n"
    "\n"
    "\n"
    "def leaves(x):\n"
    "    if isinstance(x, dict):\n"
    "        x = list(x.values())\n"
    "    if isinstance(x, (list, tuple)):\n"
    "        return [leaf for item in x for leaf in leaves(item)]\n"
    "    return [x] if torch.is_tensor(x) else []\n"
    "\n"
    "\n"
    "def run(wide):\n"
    "    args, kwargs = arguments(wide)\n"
    "    if not SEEDS:\n"
    "        return leaves(call(args, kwargs))\n"
    "    inputs = [x.requires_grad_() for x in leaves([args, kwargs]) if x.is_floating_point()]\n"
    "    out = leaves(call([x.clone() if torch.is_tensor(x) else x for x in args], kwargs))\n"
    "    seeds = [tensor(name, dtype, wide) for name, dtype in SEEDS]\n"
    "    pairs = [(y, g) for y, g in zip(out, seeds) if y.requires_grad and y.shape == g.shape]\n"
    "    return [g for g in torch.autograd.grad([y for y, _ in pairs], inputs, [g for _, g in "
    "pairs],\n"
    "                                           allow_unused=True) if g is not None]\n"
    "\n"
    "\n"
    "def arrays(results):\n"
    "    return [x.detach().to(torch.float64).cpu().numpy() for x in results]\n"
    "\n"
    "\n";

static const char mindspore_parts[] =
    "def tensor(name, dtype, wide):\n"
    "    return mindspore.Tensor(load(name)).astype(getattr(mindspore, dtype.replace(\"bool\", "
    "\"bool_\")))\n"
    "\n"
    "\n"
    "def leaves(x):\n"
    "    if isinstance(x, (list, tuple)):\n"
    "        return [leaf for item in x for leaf in leaves(item)]\n"
    "    return [x] if isinstance(x, mindspore.Tensor) else []\n"
    "\n"
    "\n"
    "def run(wide):\n"
    "    args, kwargs = arguments(wide)\n"
    "    if not SEEDS:\n"
    "        return leaves(call(args, kwargs))\n"
    "    at = [i for i, x in enumerate(args) if isinstance(x, mindspore.Tensor) and \"Float\" in "
    "str(x.dtype)]\n"
    "    seed = tensor(*SEEDS[0], wide)\n"
    "\n"
    "    def weighed(*floats):\n"
    "        whole = list(args)\n"
    "        for i, x in zip(at, floats):\n"
    "            whole[i] = x\n"
    "        return (leaves(call(whole, kwargs))[0] * seed).sum()\n"
    "    return leaves(mindspore.grad(weighed, tuple(range(len(at))))(*[args[i] for i in at]))\n"
    "\n"
    "\n"
    "def arrays(results):\n"
    "    return [x.astype(mindspore.float32).asnumpy().astype(numpy.float64) for x in results]\n"
    "\n"
    "\n";

static const char bottom[] =
    "def nearest(results, like):\n"
    "    same = [x for x in results if x.shape == like.shape]\n"
    "    return min(same, key=lambda x: numpy.nansum(abs(x - like))) if same else None\n"
    "\n"
    "\n"
    "def ulps(x, exact, dtype):\n"
    "    bits, least = {\"float64\": (52, -1022), \"float32\": (23, -126), \"float16\": (10, "
    "-14),\n"
    "                   \"bfloat16\": (7, -126)}.get(dtype, (0, 0))\n"
    "    if not bits:\n"
    "        return float(numpy.max(abs(x - exact), initial=0))\n"
    "    with numpy.errstate(all=\"ignore\"):\n"
    "        exponent = numpy.floor(numpy.log2(abs(exact)))\n"
    "        unit = numpy.exp2(numpy.maximum(numpy.where(numpy.isfinite(exponent), exponent, "
    "least), least) - bits)\n"
    "        off = numpy.where((x == exact) | (numpy.isnan(x) & numpy.isnan(exact)), 0, abs(x - "
    "exact) / unit)\n"
    "    return float(numpy.max(numpy.where(numpy.isnan(off), numpy.inf, off), initial=0))\n"
    "\n"
    "\n"
    "def main():\n"
    "    here, wide, parts = arrays(run(False)), None, []\n"
    "    for name, dtype in RESULTS:\n"
    "        recorded, exact = load(name), load(\"exact.\" + name)\n"
    "        if exact is None:\n"
    "            wide = arrays(run(True)) if wide is None else wide\n"
    "            exact = nearest(wide, recorded)\n"
    "        mine = nearest(here, recorded)\n"
    "        if exact is None or mine is None:\n"
    "            parts.append(f\"{name} has another shape here\")\n"
    "            continue\n"
    "        parts.append(f\"{name} recorded {ulps(recorded, exact, dtype):.3g} ulp from float64, "
    "here \"\n"
    "                     f\"{ulps(mine, exact, dtype):.3g} ulp\")\n"
    "    print(f\"{RECORD}: \" + \"; \".join(parts))\n"
    "\n"
    "\n"
    "if __name__ == \"__main__\":\n"
    "    main()\n";

/* ---- values ------------------------------------------------------------------- */

static void put_number(struct ms_buf *out, const struct rec_value *v)
{
    char text[MS_NUM_MAX];
    if (v->is_int && fabs(v->number) < 0x1p53)
        ms_buf_printf(out, "%lld", (long long)v->number);
    else if (isfinite(v->number))
        ms_buf_put(out, text, ms_num_f64(text, v->number));
    else
        ms_buf_printf(out, "float(\"%s\")",
                      isnan(v->number) ? "nan"
                      : v->number > 0  ? "inf"
                                       : "-inf");
}

static void put_value(struct ms_buf *out, const struct rec_value *v);

static void put_list(struct ms_buf *out, const struct rec_value *v)
{
    ms_buf_putc(out, '[');
    for (size_t i = 0; i < v->n; i++) {
        if (i != 0)
            ms_buf_puts(out, ", ");
        put_value(out, &v->items[i]);
    }
    ms_buf_putc(out, ']');
}

static void put_value(struct ms_buf *out, const struct rec_value *v)
{
    switch (v->kind) {
    case REC_NONE:
        ms_buf_puts(out, "None");
        break;
    case REC_NUMBER:
        put_number(out, v);
        break;
    case REC_BOOL:
        ms_buf_puts(out, v->number != 0 ? "True" : "False");
        break;
    case REC_TEXT:
        if (v->is_dtype)
            ms_buf_printf(out, "DTYPES.%s", ms_dtype_torch(ms_dtype_parse(v->text)));
        else
            ms_buf_printf(out, "\"%.*s\"", MS_STR_ARG(v->text));
        break;
    case REC_LIST:
        put_list(out, v);
        break;
    case REC_TENSOR:
        ms_buf_printf(out, "tensor(\"%.*s\", \"%s\", wide)", MS_STR_ARG(v->path),
                      ms_dtype_torch(v->dtype));
        break;
    }
}

static bool is_plain_name(struct ms_str name)
{
    for (uint32_t i = 0; i < name.n; i++) {
        const char c = name.p[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '_' || c == '.'))
            return false;
    }
    return name.n != 0;
}

static bool is_omitted(const struct rec_value *v)
{
    return ms_str_is(v->name, "device") || !is_plain_name(v->name) || ms_str_has(v->name, ".");
}

static void put_arguments(const struct blame_work *s, struct ms_buf *out)
{
    ms_buf_puts(out, "def arguments(wide):\n    args = [");
    for (size_t i = 0; i < s->in.nargs; i++) {
        ms_buf_puts(out, i != 0 ? ",\n            " : "");
        put_value(out, &s->in.args[i]);
    }
    ms_buf_puts(out, "]\n    kwargs = {");
    for (size_t i = 0, n = 0; i < s->in.nnamed; i++) {
        const struct rec_value *v = &s->in.named[i];
        if (is_omitted(v))
            continue;
        ms_buf_printf(out, "%s\"%.*s\": ", n++ != 0 ? ",\n              " : "",
                      MS_STR_ARG(v->name));
        put_value(out, v);
    }
    ms_buf_puts(out, "}\n    return args, kwargs\n\n\n");
}

/* ---- the operator ---------------------------------------------------------------- */

static const char *module_call(struct ms_str name)
{
    for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++)
        if (ms_str_is(name, modules[i].module))
            return modules[i].call;
    return NULL;
}

static const char *home_of(struct ms_str prefix, bool mindspore)
{
    for (size_t i = 0; i < sizeof homes / sizeof homes[0]; i++)
        if (ms_str_is(prefix, homes[i].prefix))
            return mindspore ? homes[i].mindspore : homes[i].torch;
    return NULL;
}

static enum ms_rc put_call(const struct blame_work *s, bool mindspore, struct ms_buf *out,
                           struct ms_err *err)
{
    const struct ms_str record = probe_node_name(s->forward.dump, s->forward.node);
    const struct probe_name name = probe_name_parse(record);
    const struct ms_str op = blame_operator_of(record);
    const char *home = home_of(name.prefix, mindspore), *whole = NULL;
    if (name.kind == PROBE_NODE_MODULE && !mindspore)
        whole = module_call(op);
    if ((home == NULL && whole == NULL) || !is_plain_name(op))
        return ms_fail(err, MS_E_UNSUPPORTED,
                       "%.*s: no function of %s can be called for it; name an operator of level L1",
                       MS_STR_ARG(record), mindspore ? "MindSpore" : "PyTorch");
    ms_buf_puts(out, "def call(args, kwargs):\n");
    if (whole != NULL)
        ms_buf_printf(out, "    return %s\n\n\n", whole);
    else if (home[0] == 0)
        ms_buf_printf(out, "    return args[0].%.*s(*args[1:], **kwargs)\n\n\n", MS_STR_ARG(op));
    else
        ms_buf_printf(out, "    return %s%.*s(*args, **kwargs)\n\n\n", home, MS_STR_ARG(op));
    return MS_OK;
}

static void put_files(struct ms_buf *out, const char *name, const struct blame_results *list,
                      const char *before)
{
    ms_buf_printf(out, "%s = [", name);
    for (size_t i = 0; i < list->n; i++)
        ms_buf_printf(out, "%s(\"%s%.*s\", \"%s\")", i != 0 ? ", " : "", before,
                      MS_STR_ARG(list->list[i].path), ms_dtype_torch(list->list[i].dtype));
    ms_buf_puts(out, "]\n");
}

enum ms_rc reproduce__script(const struct blame_work *s, struct ms_buf *out, struct ms_err *err)
{
    const bool mindspore = s->record.dump->framework == PROBE_FW_MINDSPORE;
    const struct ms_str record = probe_node_name(s->record.dump, s->record.node);
    if (!is_plain_name(record))
        return ms_fail(err, MS_E_UNSUPPORTED, "the name of the record is no name in Python");
    ms_buf_printf(
        out,
        "#!/usr/bin/env python3\n\"\"\"%.*s of a training program, on its own.\n\nPrints one "
        "line: how far the recorded results, and those of this machine, are from float64.\n"
        "Needs %s and numpy.\"\"\"\n",
        MS_STR_ARG(record), mindspore ? "MindSpore" : "PyTorch");
    const char *module = mindspore ? "mindspore" : "torch";
    ms_buf_printf(out, top, module);
    ms_buf_printf(out, "DTYPES = %s\nRECORD = \"%.*s\"\n", module, MS_STR_ARG(record));
    put_files(out, "RESULTS", &s->out, "");
    put_files(out, "SEEDS", &s->seeds, "gradient.");
    ms_buf_puts(out, "\n\n");
    MS_TRY(put_call(s, mindspore, out, err));
    put_arguments(s, out);
    ms_buf_puts(out, mindspore ? mindspore_parts : torch_parts);
    ms_buf_puts(out, bottom);
    return ms_buf_check(out, err);
}
