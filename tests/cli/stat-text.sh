# One dump: what it holds. The time and the rate differ each time.
mkdir -p step3/rank1
cat >step3/rank1/dump.json <<'END'
{"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": null, "data": {
"Functional.linear.0.forward": {"input_args": [
 {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1000, 3], "Max": NaN, "Min": 0.0},
 {"type": "torch.Tensor", "dtype": "torch.bfloat16", "shape": [4], "Max": Infinity}, null],
 "input_kwargs": {"n": {"type": "int", "value": 3}},
 "output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [], "md5_index": 4}]},
"Module.fc.Linear.forward.0": {}, "Module.fc.Linear.parameters_grad.0": {},
"Functional.linear.0.backward": {}, "odd \u001b[2J\n": {}}}
END
$MSPROBE stat step3
