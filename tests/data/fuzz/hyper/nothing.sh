python train.py --lr 0.1
