# Every command with "-" for a file that it reads or writes: it works as with a file, or says why it cannot.
export TMPDIR="$PWD"
leaf='{"type":"torch.Tensor","dtype":"torch.float32","shape":[2],"Max":1,"Min":0,"Mean":0.5,"Norm":1,"requires_grad":false}'
echo "{\"task\":\"statistics\",\"level\":\"mix\",\"framework\":\"pytorch\",\"dump_data_dir\":null,\"data\":{\"Torch.add.0.forward\":{\"input_args\":[$leaf],\"input_kwargs\":{},\"output\":[$leaf]}}}" >dump.json
cp dump.json other.json
mkdir -p whole && cp dump.json whole/
printf 'rank,lane,name,begin_ns,end_ns\n0,main,step,0,1000\n0,main,load,100,300\n' >trace.csv
"$MSPROBE" import trace.csv -o run.db >/dev/null
echo 'NPU Name,Bench Name,Result' >table.csv
echo 'a,a,pass' >>table.csv
printf 'start_time_stamp,end_time_stamp,device_addr,stream_id,pool_type,size,actual_peak_memory,file_name,line_num,type,tag,is_persistent,is_small\n1,9,0x1000,0,0,4096,4096,net.py,3,kWeight,Dense,1,0\n' >memory_block.csv
echo '{}' >map.json
echo 'api: [Torch.add.0.forward]' >merge.yaml
echo 'lr: 1' >train.yaml
: >keys
echo j >more_keys
with() { # INPUT COMMAND...
    input=$1
    shift
    "$MSPROBE" "$@" <"$input" >said 2>why
    printf '%s: %s' "$*" "$?"
    sed -e "s|$PWD/||g;s/standard-input-[A-Za-z0-9]*/standard-input/;s/, [0-9.]* [mu]s$//;s/[0-9]* variables, [0-9]* pack/N variables, N pack/;s/^/ /" -e 1q why | tr -d '\n'
    echo
}
reads() { with "$@"; }
writes() { # COMMAND...: one that writes the same to standard output and to a file
    with /dev/null "$@"
    head -c 6 said | tr -c '[:print:]' '.'
    echo
}
reads dump.json stat -
reads dump.json -
reads trace.csv -
reads dump.json parse -d - -o arrays
reads dump.json overflow_check -i -
reads dump.json data2db --db trends --data -
reads map.json data2db --db trends --data whole --mapping -
reads dump.json monitor -
reads dump.json monitor -d -
reads dump.json trend -
reads dump.json trend dump.json --golden -
reads map.json run -o made --dump - -- true
reads map.json run -o made --monitor - -- true
reads dump.json ctl - status
reads trace.csv import - -o again.db
reads run.db report -
reads run.db report run.db --against -
reads trace.csv whatif -
reads memory_block.csv memory -
reads memory_block.csv memory memory_block.csv --against -
reads dump.json dryrun --device_memory 1g -
reads run.db cluster -d - -o made
reads run.db export -f csv - -o out.csv
reads run.db sql - 'select 1'
reads /dev/null sql - -
"$MSPROBE" stat - <dump.json >/dev/full 2>why
echo "a full disk: $?, $(cat why)"
reads dump.json compare -tp - -gp other.json -o out
reads dump.json compare -tp other.json -gp - -o out
reads map.json compare -tp dump.json -gp other.json -dm - -o out
reads train.yaml config_check -d -
reads train.yaml config_check -c - train.yaml
reads dump.json quantise - --as mxfp4
reads dump.json check -
reads dump.json check --resume - dump.json
reads dump.json judge - other.json
reads dump.json reproduce - Torch.add.0.forward -o bug
reads dump.json calibrate - other.json
reads table.csv merge_result -i - -o out -config merge.yaml
reads merge.yaml merge_result -i whole -o out -config -
reads dump.json graph_visualize -tp - -o graphs
reads dump.json graph_visualize -tp whole -gp - -o graphs
reads dump.json view --script keys -
reads table.csv view --script keys -
reads run.db view --script keys -
reads more_keys view --script - table.csv
reads table.csv drop-in -
reads table.csv doctor --python - --format json
reads table.csv selftest -
echo
writes import trace.csv -o -
writes export -f chrome run.db -o -
writes export -f csv run.db -o -
writes calibrate dump.json other.json -o -
writes config_check -d train.yaml -o -
writes stat dump.json --trace_self -
writes compare -tp dump.json -gp other.json -o -
writes parse -d dump.json -o -
writes graph_visualize -tp whole -o -
writes reproduce dump.json Torch.add.0.forward -o -
writes cluster -d made -o -
writes data2db --db - --data whole
writes overflow_check -i dump.json -o -
writes bisect --good true --bad false -o -
writes run -o - -- true
ls -d ./*standard* ./- 2>/dev/null
exit 0
