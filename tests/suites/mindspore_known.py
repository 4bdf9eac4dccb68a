# SPDX-License-Identifier: MIT
"""What differs between our dumps of MindSpore programs and the official tool's, and stays so.

Each with its reason, and a pattern of "program label difference" as mindspore_oracle.py has it.
"""
import re

KNOWN = [
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
    ("Several calls of a cell whose inputs need no gradient.  One flag of the cell tells the official "
     "tool in which order the gradients are, and the first call to end takes it down for all: its "
     "own records of the others have them the other way round.",
     r"^(methods|recurrent|network_(gan|batches|critics|heat|prototypes)) .*"
     r"(Cell\.\S+\.backward\.\d+/(in|out)put/0: (None and |.* and None$)"
     r"|files \[('\S+/Cell\.\S+\.backward\.\d+\.output\.0\.npy'(, )?)+\] "
     r"and \[('\S+/(Cell\.\S+\.backward\.\d+\.input\.0|Functional\.cat\.\d+\.backward\.output\.\d+)\.npy'"
     r"(, )?)+\]$)"),
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


def is_known(line):
    """Whether a difference is one of these."""
    return any(re.search(pattern, line) for _, pattern in KNOWN)
