# Tables of compare are not what a viewer opens, alone or in their folder.
mkdir tables
echo 'NPU Name,Bench Name' >tables/compare_result_20260101.csv
$MSPROBE serve tables
$MSPROBE serve tables/compare_result_20260101.csv
