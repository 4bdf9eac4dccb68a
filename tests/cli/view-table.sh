# Tables of compare are not what the terminal opens, alone or in their folder.
mkdir tables
echo 'NPU Name,Bench Name' >tables/compare_result_20260101.csv
: >keys
$MSPROBE view --script keys tables
$MSPROBE view --script keys tables/compare_result_20260101.csv
