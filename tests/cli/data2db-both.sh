# A dump and monitor files side by side; a rank that cannot be read is named.
mkdir -p in/step7/rank0 in/step7/rank1 in/Aug14_10-21-07-rank0-1a2b3c4d
cat >in/step7/rank0/dump.json <<END
{"task": "statistics", "level": "L1", "framework": "pytorch", "dump_data_dir": null, "data": {
"Functional.relu.0.forward": {"input_args": [], "input_kwargs": {}, "output": [
{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.5, "Min": 0.0, "Mean": 1.0, "Norm": 2.5}]}}}
END
echo '{"data": {' >in/step7/rank1/dump.json
printf 'vpp_stage,name,step,norm\n0,loss,7,0.5\n' >in/Aug14_10-21-07-rank0-1a2b3c4d/other_7-7.csv
$MSPROBE data2db --data in --db out --micro_step false --process_num 4
status=$?
ls out
exit $status
