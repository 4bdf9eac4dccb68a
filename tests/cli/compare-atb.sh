# Dumps of the ATB library: statistics of both sides by operator.
head='Device and PID,Execution Count,Op Name,Op Type,Op Id,Input/Output,Index,Dtype,Format,Shape'
head="$head,Max,Min,Mean,Norm,Tensor Path"
mkdir t b
{
    echo "$head"
    echo '0_1,0,Model/Add,T,0_1,intensor,0,float,ND,"2,3",4,1,2,5,N/A'
    echo '0_1,0,Model/Mul,T,0_2,intensor,0,float,ND,2,4,1,2,5,N/A'
} >t/statistic.csv
{
    echo "$head"
    echo '0_2,0,Model/Add,T,0_1,intensor,0,float,ND,"2,3",1,1,0,N/A,N/A'
} >b/statistic.csv
$MSPROBE compare -m atb -tp t -gp b -o out | sed 's/[0-9]\{14\}/TIME/'
$MSPROBE compare -m atb -tp t -gp b -o out --compat strict --format json |
    sed 's/[0-9]\{14\}/TIME/'
$MSPROBE compare -m atb -tp t/statistic.csv -gp b -o out
