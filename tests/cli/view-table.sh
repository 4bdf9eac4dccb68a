# Tables of compare open, alone or as the last of their folder.
mkdir tables
echo 'NPU Name,Bench Name' >tables/compare_result_20260101.csv
printf 'NPU Name,Bench Name,Result\na,a,pass\nb,c,error\n' >tables/compare_result_20260102.csv
: >keys
$MSPROBE view --script keys --size 60x10 tables
$MSPROBE view --script keys --size 60x10 tables/compare_result_20260101.csv
