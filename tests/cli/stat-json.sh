# The same for programs.
mkdir -p step0/rank0
cat >step0/rank0/dump.json <<'END'
{"task": "statistics", "level": "L1", "framework": "pytorch", "data": {
"Functional.x.0.forward": {"output": [
 {"type": "torch.Tensor", "dtype": "torch.int64", "shape": [2], "Max": 1, "md5": "00000000"},
 {"type": "torch.Tensor", "dtype": "torch.float16", "shape": [2], "Max": NaN}]}}}
END
echo '{' >step0/rank0/bad.json
$MSPROBE stat --format json step0 | sed 's/"seconds": .*/"seconds": S,/'
$MSPROBE stat --format=json step0/rank0/bad.json | grep error
