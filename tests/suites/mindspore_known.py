# SPDX-License-Identifier: MIT
"""What differs between our dumps of MindSpore programs and the official tool's, and stays so.

Each with its reason, and a pattern of "program label difference" as mindspore_oracle.py has it.
"""
import re

KNOWN = [
    ("Where the program has a hook before a cell, the stack of that cell begins in the line of MindSpore that calls the "
     "program's hook, behind which ours runs: in a place of its own it would end programs whose hooks remove themselves.",
     r"^hooked (mix|tensor|md5|L0) step\d+/stack\.json(:|/\d)"),
    ("Parameters' gradients are listed as they come, and which comes first depends on the graph of "
     "hooks around what uses them: the program's own hooks move ours and not theirs.",
     r"parameters_grad\.\d+: keys in another order$"),
    ("The official tool puts the backward of a primitive in its place when the first gradient comes, "
     "here it is there when all have come; between them the program's own hook calls a function.",
     r"^hooked .*keys in another order$"),
    ("The framework's maximum on the CPU passes over NaN; the figures here do not.",
     r"/(Max|Min): \S+ and nan$"),
    ("What the kernel of BatchNorm leaves in its further results when it infers is whatever was in "
     "memory.",
     r"Primitive\.bn_infer\.BatchNorm\.\d+\.forward(/output/[1-4]/|\.output\.[1-4]\.npy$)"),
    ("A cell whose inputs need no gradient.  One flag of the cell tells the official tool in which order the "
     "gradients are, and the first call to end takes it down for all: its own records of the others have them the "
     "other way round.",
     r"^(\S+ .*Cell\.\S+\.backward\.\d+/(in|out)put/\d: (None and \{.*|\{.* and None)$"
     r"|network_(batches|click|prefer|prototypes|triplet|sequence|views) \S+ files \[.*Cell\.\S+\.backward\..*\] and \[.*\]$)"),
    ("A result that its cell uses further has its whole gradient here, and there the part from outside the cell.",
     r"^network_(forest|lstm|ranking|sparse|states|vae|video) .*Cell\.\w+\.(Tree|LongShort|Factors|Codes|Scan|Encoder|"
     r"Frame)\.backward\.\d+(/|\.)input"),
    ("A tensor that is given twice has the sum of its gradients at the first place, there one at each.",
     r"^network_click .*Cell\.early\.Cross\.backward\.0(/|\.)output"),
    ("Cells whose inputs have no gradient end with the backward, and functions whose gradient nothing needs are never "
     "run backward: the official tool's operators stand where those would, and run last or in another order.",
     r"^network_(hyper|pupil|prefer|spectral|states|switches|routes|sequence) .*(keys in another order$|"
     r"construct\.json/(Functional\.g[te]|Cell\.(first\.Scan|steps\.Steps))\.)"),
    ("A forward within a backward ends the cells whose inputs have no gradient.",
     r"^recomputed .*(keys in another order$|construct\.json/Cell\.first\._recompute_cell\.wrap_cell\.)"),
    ("A gradient that the training has no need of is not computed for a record.",
     r"^training_cells .*Tensor\.__sub__\.0\.backward/output/1: \{.* and None$"),
    ("Backwards of cells may end after those around them.  The official tool takes the newest off its "
     "stack whichever ends, here each ends by itself, so another one is open when the next begins.",
     r"^(recurrent .*construct\.json/Cell\.step\.Step\.backward\.\d+"
     r"|network_diffusion .*construct\.json/Cell\.(first\.Hidden|enter\.Conv2d)\.backward\.0"
     r"|network_copies .*construct\.json/(Cell\.(read|words)|Functional\.tanh|Primitive\.(reshape|gather))\.\S+"
     r"|network_routes .*construct\.json/Functional\.gt\.0\.backward): "),
    ("A cell whose inputs have no gradient ends its backward as it begins there, so the backwards of what "
     "it calls are outside any; here their parent is the backward of the cell that called them.  With "
     "`strict` they are outside, too.",
     r"^(?!\S+ strict)\S+ \S+ step\d+/construct\.json/Cell\.\S+\.backward\.\d+: None and "
     r"'Cell\.\S+\.backward\.\d+'$"),
    ("The official tool looks for tensors that need a gradient among the arguments themselves, so a "
     "function of a list of tensors has no gradients of its arguments.  Here it has: those of cat "
     "have together the maximum and the minimum of the gradient of its result.",
     r"/Functional\.(cat|concat|stack)\.\d+\.backward/output: \[\] and \[|"
     r"files \[\] and \[('step\d+/dump_tensor_data/Functional\.(cat|concat|stack)\.\d+\.backward\."
     r"output\.\d+\.npy'(, )?)+\]$"),
    ("A record is written when it is complete: gradients of saved values after what was saved "
     "meanwhile, a cell that raises after the cells in it.",
     r"^((saved_with_gradients|raising) .*|\S+ debug_\w+ step\d+/debug\.json/data: )keys in another order$"),
    ("A record is written when it is complete: one that has inputs alone, as a strict scope ends in it, "
     "comes after those of what it calls.",
     r"^block strict_scope(_L0)? step\d+/dump\.json/data: keys in another order$"),
    ("The record of a primitive waits for gradients of all its arguments, and when one has none, for "
     "the next backward or the end: what is called after the last backward of a step comes before it.",
     r"^momentum .*keys in another order$"),
    ("In a cell of mixed precision the official tool's own operators are cast as well: a parameter "
     "of float32 has figures that were rounded to float16 there, as 0.5 for 0.49995592.",
     r"^halves \S+ \S+/(Primitive\.(matmul\.MatMul|bias_add\.BiasAdd)\.\d+\."
     r"(forward/input_args/1|backward/output/0)|Cell\.fc\.Dense\.forward\.0/parameters/\w+)/"
     r"(dtype|Max|Min|Mean|Norm): "),
    ("The official tool's scope begins and ends within calls: what is around the first name has "
     "outputs alone, the second name and what is around it inputs alone, and what is called in it is "
     "not there.  Here a call that began in the scope is whole.",
     r"^block scope\S* .*(keys \['output'(, 'parameters')?\]$|keys in another order$|"
     r"Primitive\.dense\.Dense\.4\.forward'\])"),
]

# The official tool's operators at the borders of calls add gradients up in another order, and its training goes on
# with the other last bits.  Here nothing is added to the graph.
_OF_A_GRADIENT = re.compile(r"/([^/]*\.(?:backward|parameters_grad)[^/]*)/\S+/(Max|Min|Mean|Norm|md5): (\S+) and (\S+)$")
_BYTES = re.compile(r"^the bytes of \S+/(\S+\.(?:backward|parameters_grad)\.)")
_LOSS = re.compile(r"^(loss) (\S+) and (\S+)$")


def _is_near(a, b):
    return abs(float(a) - float(b)) <= 1e-4 * max(abs(float(a)), abs(float(b)))


def sums_in_another_order(lines):
    """Returns the lines in which a gradient has other last bits, and what its files and sums of bytes say of it."""
    figures = [(line, found) for line in lines for found in [_OF_A_GRADIENT.search(line)] if found]
    far = {found[1] for _, found in figures if found[2] != "md5" and not _is_near(found[3], found[4])}
    near = {line for line, found in figures if found[1] not in far}
    near |= {line for line in lines for found in [_LOSS.search(line)] if found and _is_near(found[2], found[3])}
    return near | {line for line in lines for found in [_BYTES.search(line)]
                   if found and not any(name.startswith(found[1]) for name in far)}


def unknown(title, lines):
    """Returns the lines that are not explained by any of these."""
    last_bits = sums_in_another_order(lines)
    return [line for line in lines if line not in last_bits and
            not any(re.search(pattern, f"{title} {line}") for _, pattern in KNOWN)]
