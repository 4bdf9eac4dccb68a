# SPDX-License-Identifier: MIT
"""What differs between our dumps of MindSpore programs and the official tool's, and stays so.

Each with its reason, and a pattern of "program label difference" as mindspore_oracle.py has it.
"""
import re

KNOWN = [
    ("Parameters' gradients are listed as they come, and which comes first depends on the graph of "
     "hooks around a primitive, which is another one here.",
     r"parameters_grad\.\d+: keys in another order$"),
    ("The official tool puts the backward of a primitive in its place when the first gradient comes, "
     "here it is there when all have come; between them the program's own hook calls a function.",
     r"^hooked .*keys in another order$"),
    ("Of what writes to its arguments no gradient is watched here: another tensor in the place of "
     "one that is written to could be noticed.",
     r"keys \[('Tensor\.__i\w+__\.\d+\.backward'(, )?)+\]$"),
    ("The framework's maximum on the CPU passes over NaN; the figures here do not.",
     r"/(Max|Min): \S+ and nan$"),
    ("What the kernel of BatchNorm leaves in its further results when it infers is whatever was in "
     "memory.",
     r"Primitive\.bn_infer\.BatchNorm\.\d+\.forward/output/[1-4]/"),
    ("Several calls of a cell whose inputs need no gradient: the official tool takes the gradients "
     "of outputs for those of inputs in all but the last.",
     r"^(methods|recurrent) .*Cell\.\S+\.backward\.\d+/(in|out)put/0: (None and |.* and None$)"),
    ("Backwards of cells may end after those around them.  The official tool ends whichever began "
     "last, here each ends by itself, so another one is open when the next begins.",
     r"^recurrent .*construct\.json/Cell\.step\.Step\.backward\.\d+: "),
    ("A record is written when it is complete: gradients of saved values after what was saved "
     "meanwhile, a cell that raises after the cells in it.",
     r"^(saved_with_gradients|raising) .*keys in another order$"),
    ("A gradient of a primitive's input that nobody asks for: the hook here hears of it.",
     r"^training_cells .*Primitive\.matmul\.MatMul\.\d+\.backward/output: "),
    ("With ranks chosen, a single process that has no rank: the official tool dumps nothing.",
     r"^(another_rank|the_only_rank) .*files "),
    ("In a cell of mixed precision the official tool's own operators are cast as well: its figures "
     "of parameters are of numbers that were rounded, here they are of the parameters.",
     r"^halves \S+ \S+/(Primitive\.(matmul\.MatMul|bias_add\.BiasAdd)\.\d+\."
     r"(forward/input_args/1|backward/output/0)|Cell\.fc\.Dense\.forward\.0/parameters/\w+)/"
     r"(dtype|Max|Min|Mean|Norm): "),
]


def is_known(line):
    """Whether a difference is one of these."""
    return any(re.search(pattern, line) for _, pattern in KNOWN)
