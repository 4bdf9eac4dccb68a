# comment --no 1
GPT_ARGS="
    --tensor-model-parallel-size ${TP} \
    --num-layers 32   # layers
    --lr $LR
"
DATA_ARGS="--data-path $DATA --split 949,50,1"
TP=2
LR=1.5e-4
DATA=/data/x_text
python3 -m torch.distributed.launch $DISTRIBUTED_ARGS pretrain.py $GPT_ARGS $DATA_ARGS --distributed-backend nccl | tee log
echo --after 1
