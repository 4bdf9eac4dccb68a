EPOCHS=3
EPOCHS=4
msrun --worker_num=8 --local_worker_num 8 run.py --config a.yaml --epochs ${EPOCHS} --flag --other 1
