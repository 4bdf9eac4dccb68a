# "-" is standard input and output where a file is expected, and is refused where a folder is.
export TMPDIR="$PWD"
dump='{"task":"statistics","level":"mix","framework":"pytorch","dump_data_dir":null,"data":{"Torch.add.0.forward":{"input_args":[{"type":"torch.Tensor","dtype":"torch.float32","shape":[2],"Max":1,"Min":0,"Mean":0.5,"Norm":1,"requires_grad":false}],"input_kwargs":{},"output":[{"type":"torch.Tensor","dtype":"torch.float32","shape":[2],"Max":NaN,"Min":NaN,"Mean":NaN,"Norm":NaN,"requires_grad":false}]}}}'
echo "$dump" | "$MSPROBE" check - | head -1
echo "$dump" >golden.json
echo "$dump" | "$MSPROBE" compare -tp - -gp golden.json -o out | tail -3 | head -1
printf 'rank,lane,name,begin_ns,end_ns\n0,main,step,0,1000\n0,main,load,100,300\n' | "$MSPROBE" import - -o run.db >/dev/null
"$MSPROBE" export run.db -f chrome -o - | "$MSPROBE" import - -o again.db >/dev/null
"$MSPROBE" sql again.db "select name, dur_ns from events order by 1"
"$MSPROBE" export run.db -f ascend-db -o - >nothing
echo "a folder to standard output: $?"
echo "$dump" | "$MSPROBE" compare -tp - -gp - -o out
echo "twice: $?"
"$MSPROBE" stat - </dev/null
echo "empty: $?"
echo "$dump" | "$MSPROBE" compare -tp golden.json -gp golden.json -o -
echo "results to standard output: $?"
ls -d ./*standard* ./- 2>/dev/null
exit 0
