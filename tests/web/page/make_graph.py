# SPDX-License-Identifier: MIT
"""A dump of many small operators for measurements: modules of 1,000 operators each.

    make_graph.py DIRECTORY NODES
"""
import os
import sys

top, nodes = sys.argv[1], int(sys.argv[2])
PER_MODULE = 1000
LEAF = '{"type":"torch.Tensor","dtype":"torch.float32","shape":[2],"Max":%d.5,"Min":0.0,"Mean":0.25,"Norm":1.0,"requires_grad":true}'
KINDS = ["matmul", "softmax", "layer_norm", "add", "gelu"]

os.makedirs(os.path.join(top, "step0", "rank0"))
with open(os.path.join(top, "step0", "rank0", "dump.json"), "w") as dump, \
        open(os.path.join(top, "step0", "rank0", "construct.json"), "w") as construct:
    dump.write('{"task":"statistics","level":"mix","framework":"pytorch","dump_data_dir":null,"data":{')
    construct.write("{")
    separator = ""
    for m in range(max(1, nodes // PER_MODULE)):
        module = f"Module.blocks.{m}.Block.forward.0"
        for i in range(PER_MODULE - 1):
            name = f"Torch.{KINDS[i % 5]}.{m * 200 + i // 5}.forward"
            dump.write(f'{separator}"{name}":{{"input_args":[],"output":[{LEAF % (i % 9)}]}}')
            construct.write(f'{separator}"{name}":"{module}"')
            separator = ","
        dump.write(f',"{module}":{{"input_args":[],"output":[{LEAF % 3}]}}')
        construct.write(f',"{module}":null')
    dump.write("}}")
    construct.write("}")
