# A json of msprobe 1 that asks for trees of .npy files.
npy() { # FILE BYTES
    mkdir -p "$(dirname "$1")"
    printf '\223NUMPY\1\0v\0%-117s\n%b' "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" \
        "$2" >"$1"
}
npy t/x_0_1.npy '\0\0\0200?\0\0\0@'
npy b/y_0_1.npy '\0\0\0200?\0\0\0@'
npy t/in/a_b_0_1.npy '\0\0\0200?\0\0\0@'
npy b/in/a_b_0_1.npy '\0\0\0200?\0\0\0200?'
npy t/two/zero_0_1.npy '\0\0\0\0\0\0\0\0'
npy b/two/zero_0_1.npy '\0\0\0200?\0\0\0\0'
single() { npy "$1" "$2" && sed -i 's/(2,)/(1,)/' "$1" && truncate -s 132 "$1"; }
single t/two/one_0_1.npy '\0\0\0200?'
single b/two/one_0_1.npy '\0\0\0\0100'
echo '{"npu_path": "t", "bench_path": "b", "common": true, "map_dict": {"x": "y"}}' >i.json
$MSPROBE compare -i i.json -o out
cat out/in/result.csv out/two/result.csv
