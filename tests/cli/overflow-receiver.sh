# A NaN that rank 1 makes and sends: the sender's operator is named, not the receiver.
tensor='{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": %s, "Min": %s}'
good=$(printf "$tensor" 1.5 -0.25)
bad=$(printf "$tensor" NaN NaN)
mkdir -p step3/rank0 step3/rank1
cat >step3/rank0/dump.json <<END
{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {
"Functional.relu.0.forward": {"input_args": [$good], "input_kwargs": {}, "output": [$good]},
"Distributed.recv.0.forward": {"input_args": [null, {"type": "int", "value": 1}], "input_kwargs": {}, "output": [$bad]}}}
END
cat >step3/rank1/dump.json <<END
{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {
"Distributed.all_reduce.0.forward": {"input_args": [$good], "input_kwargs": {"group": {"type": "torch.ProcessGroup", "group_ranks": [1]}}, "output": [$good]},
"Functional.sqrt.0.forward": {"input_args": [$good], "input_kwargs": {}, "output": [[$bad]]},
"Distributed.send.0.forward": {"input_args": [$bad, {"type": "int", "value": 0}], "input_kwargs": {}, "output": []}}}
END
$MSPROBE overflow_check -i step3 -o out --exit-code
status=$?
grep -c op_name out/anomaly_analyze_*.json
exit $status
