# An unreadable file is named, so that its name cannot command a terminal, and the rest is converted.
mkdir -p dump/deep
{
    printf '$Version=1.0\ndtype=27\ndims=2\n$Object.data=0,4\n$End=1\n'
    printf '\200\077\000\300'
} >dump/deep/intensor0.bin
echo text >dump/bad.pt
echo text >"dump/red$(printf '\033[31m').pt"
echo '{}' >dump/dump.json
$MSPROBE parse -d dump -t npy -o out
status=$?
find out -type f
head -c 128 out/deep/intensor0.npy | tr -d '\223\001\000' | tr -s ' '
tail -c 8 out/deep/intensor0.npy | od -An -tf4
exit $status
