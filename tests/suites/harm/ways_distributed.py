# SPDX-License-Identifier: MIT
"""More processes than one: collectives, DDP in all forms, FSDP, DTensor and pipelines."""
import copy

import torch
from torch import distributed as dist
from torch import nn

from harness import VERSION, run_ranks, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


def model_of():
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def ddp(run, rank, world, prepare=None, model=None, loss_of=None, **options):
    from torch.nn.parallel import DistributedDataParallel
    base = model or model_of()
    parallel = DistributedDataParallel(base, **options)
    if prepare:
        prepare(parallel)
    x = X[rank::world]
    run.train(parallel, loss_of or (lambda m, i: m(x).pow(2).mean()), steps=3)


def in_two(run, func):
    run_ranks(run, 2, func)


@way
def collectives_of_all_kinds(run):
    def main(run, rank, world):
        model = nn.Sequential(nn.Linear(4, 4))
        with run.dump(model):
            t = model(X[rank:rank + 1]).detach()
            dist.all_reduce(t)
            work = dist.all_reduce(t, async_op=True)
            work.wait()
            parts = [torch.empty_like(t) for _ in range(world)]
            dist.all_gather(parts, t * (rank + 1))
            dist.broadcast(t, 1)
            objects = [None, None]
            dist.all_gather_object(objects, {"rank": rank})
            dist.reduce(t, 0, op=dist.ReduceOp.MAX)
            if rank == 0:
                dist.send(t, 1)
            else:
                got = torch.empty_like(t)
                dist.recv(got, 0)
                run.note("received", got)
            dist.barrier()
            out = torch.empty(4)
            dist.scatter(out, [torch.ones(4), torch.ones(4) * 2] if rank == 0 else None, 0)
        run.note("t", (t, parts, objects, out, type(work).__name__))
    in_two(run, main)


@way
def collectives_that_fail(run):
    def main(run, rank, world):
        model = nn.Sequential(nn.Linear(4, 4))
        with run.dump(model):
            model(X)
            try:
                dist.all_gather([torch.empty(3)], torch.empty(4))
                run.note("raised", "nothing")
            except Exception as error:
                run.note("raised", type(error).__name__)
            run.raises("root", lambda: dist.broadcast(torch.ones(1).to_sparse(), "no"))
    in_two(run, main)


@way
def ddp_plain(run):
    in_two(run, ddp)


@way
def ddp_with_views_and_a_static_graph(run):
    in_two(run, lambda run, rank, world: ddp(run, rank, world, gradient_as_bucket_view=True, static_graph=True))


@way
def ddp_that_finds_unused_parameters(run):
    def main(run, rank, world):
        model = Calls(lambda self, x, i=0: (self.a if (i + rank) % 2 else self.b)(x).sum(), a=model_of(), b=model_of())
        ddp(run, rank, world, model=model, loss_of=lambda m, i: m(X[rank::world], i), find_unused_parameters=True)
    in_two(run, main)


@way
def ddp_without_synchronising_each_step(run):
    from torch.nn.parallel import DistributedDataParallel

    def main(run, rank, world):
        model = DistributedDataParallel(model_of(), bucket_cap_mb=1, broadcast_buffers=False)
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            with run.dump(model):
                opt.zero_grad()
                with model.no_sync():
                    model(X[rank::world]).sum().backward()
                model(X[rank::world] * 2).sum().backward()
                opt.step()
        run.note_model(model)
    in_two(run, main)


@way
def ddp_with_hooks_of_communication(run):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook

    def main(run, rank, world):
        ddp(run, rank, world, prepare=lambda m: m.register_comm_hook(None, default_hooks.allreduce_hook))
        state = powerSGD_hook.PowerSGDState(None, start_powerSGD_iter=2)
        ddp(run, rank, world, prepare=lambda m: m.register_comm_hook(state, powerSGD_hook.powerSGD_hook))
    in_two(run, main)


@way
def ddp_with_synchronised_batch_norm_and_buffers(run):
    def main(run, rank, world):
        model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        ddp(run, rank, world, model=model)
    in_two(run, main)


@way
def ddp_with_uneven_inputs(run):
    from torch.nn.parallel import DistributedDataParallel

    def main(run, rank, world):
        model = DistributedDataParallel(model_of())
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        run.start(model)
        with model.join():
            for _ in range(2 + rank):
                opt.zero_grad()
                model(X[rank::world]).sum().backward()
                opt.step()
        run.stop()
        run.step()
        run.note_model(model)
    in_two(run, main)


@way
def ddp_of_the_model_that_is_watched_inside(run):
    from torch.nn.parallel import DistributedDataParallel

    def main(run, rank, world):
        base = model_of()
        parallel = DistributedDataParallel(base)
        run.train(base, lambda m, i: parallel(X[rank::world]).sum())
    in_two(run, main)


@way
def ddp_wrapped_after_start(run):
    from torch.nn.parallel import DistributedDataParallel

    def main(run, rank, world):
        base = model_of()
        run.start(base)
        parallel = DistributedDataParallel(base)
        parallel(X[rank::world]).sum().backward()
        run.stop()
        run.step()
        run.note_model(base)
    in_two(run, main)


@way
def ddp_with_checkpoints(run):
    from torch.utils.checkpoint import checkpoint

    def main(run, rank, world):
        model = Calls(lambda self, x: checkpoint(self.a, x, use_reentrant=False).sum(), a=model_of())
        ddp(run, rank, world, model=model, loss_of=lambda m, i: m(X[rank::world]))
    in_two(run, main)


@way(needs=(2, 1))
def ddp_that_is_compiled(run):
    from torch.nn.parallel import DistributedDataParallel

    def main(run, rank, world):
        model = DistributedDataParallel(model_of())
        fast = torch.compile(model, backend="aot_eager")
        run.train(model, lambda m, i: fast(X[rank::world]).sum())
    in_two(run, main)


@way
def sharded_optimizers(run):
    from torch.distributed.optim import ZeroRedundancyOptimizer
    from torch.nn.parallel import DistributedDataParallel

    def main(run, rank, world):
        model = DistributedDataParallel(model_of())
        opt = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
        for _ in range(2):
            with run.dump(model):
                opt.zero_grad()
                model(X[rank::world]).sum().backward()
                opt.step()
        run.note_model(model)
    in_two(run, main)


def fsdp(run, rank, world, model=None, **options):
    from torch.distributed.fsdp import FullyShardedDataParallel
    options.setdefault("device_id", torch.device("cpu"))
    sharded = FullyShardedDataParallel(model or model_of(), **options)
    run.train(sharded, lambda m, i: m(X[rank::world]).pow(2).mean())


@way(needs=(2, 4))
def fsdp_of_the_first_generation(run):
    in_two(run, fsdp)


@way(needs=(2, 4))
def fsdp_with_the_original_parameters(run):
    in_two(run, lambda run, rank, world: fsdp(run, rank, world, use_orig_params=True))


@way(needs=(2, 4))
def fsdp_of_each_layer(run):
    from torch.distributed.fsdp import ShardingStrategy
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy
    in_two(run, lambda run, rank, world: fsdp(run, rank, world, auto_wrap_policy=ModuleWrapPolicy({nn.Linear}),
                                              sharding_strategy=ShardingStrategy.SHARD_GRAD_OP))


@way(needs=(2, 6))
def fsdp_of_the_second_generation(run):
    def main(run, rank, world):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
        mesh = init_device_mesh("cpu", (world,))
        model = model_of()
        for layer in (model[0], model[2]):
            fully_shard(layer, mesh=mesh, mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))
        fully_shard(model, mesh=mesh)
        run.train(model, lambda m, i: m(X[rank::world]).float().pow(2).mean())
        run.note("type", type(model[0].weight).__name__)
    in_two(run, main)


@way(needs=(2, 6))
def tensors_that_are_distributed(run):
    def main(run, rank, world):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import Replicate, Shard, distribute_tensor
        mesh = init_device_mesh("cpu", (world,))
        w = nn.Parameter(distribute_tensor(torch.ones(4, 4) * 0.5, mesh, [Shard(0)]))
        model = Calls(lambda self, x: torch.relu(x @ self.w.t()).sum().redistribute(placements=[Replicate()]).to_local())
        model.w = w
        x = distribute_tensor(X, mesh, [Replicate()])
        run.train(model, lambda m, i: m(x))
    in_two(run, main)


@way(needs=(2, 6))
def layers_in_tensor_parallel(run):
    def main(run, rank, world):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
        mesh = init_device_mesh("cpu", (world,))
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
        parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
        assert SequenceParallel
        run.train(model, lambda m, i: m(X).pow(2).sum())
    in_two(run, main)


@way(needs=(2, 5))
def pipelines(run):
    def main(run, rank, world):
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe
        for kind in (ScheduleGPipe, Schedule1F1B):
            torch.manual_seed(rank)
            part = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
            stage = PipelineStage(part, rank, world, torch.device("cpu"), input_args=(X[:2].clone().requires_grad_(rank > 0),),
                                  output_args=(X[:2].clone().requires_grad_(),))
            schedule = kind(stage, 3, loss_fn=lambda y, t: (y - t).pow(2).mean())
            losses = []
            with run.dump(part):
                if rank == 0:
                    schedule.step(X)
                else:
                    schedule.step(target=X * 2, losses=losses)
            run.note("losses", losses)
            run.note_model(part, kind.__name__)
    in_two(run, main)


@way
def functions_of_communication_with_gradients(run):
    def main(run, rank, world):
        import torch.distributed.nn.functional as df
        model = nn.Sequential(nn.Linear(4, 4))
        run.train(model, lambda m, i: sum(df.all_gather(m(X[rank:rank + 1]))).pow(2).sum() + df.all_reduce(m(X[rank:rank + 1])).sum())
    in_two(run, main)


@way
def megatron_copies_to_the_tensor_parallel_region(run):
    class Copy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            dist.all_reduce(grad)
            return grad

    class Reduce(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            x = x.contiguous()
            dist.all_reduce(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad

    def main(run, rank, world):
        torch.manual_seed(rank)
        model = Calls(lambda self, x: Reduce.apply(self.down(torch.relu(self.up(Copy.apply(self.norm(x)))))).sum(),
                      norm=nn.LayerNorm(4), up=nn.Linear(4, 4), down=nn.Linear(4, 4, bias=False))
        run.train(model, lambda m, i: m(X))
    in_two(run, main)


@way
def megatron_pipeline_that_frees_outputs(run):
    """deallocate_output_tensor: the data of an output goes once it is sent, its graph stays."""
    def step(model):
        out = model(X)
        sent = out.detach().clone()
        out.data = torch.empty((1,), dtype=out.dtype)
        torch.autograd.Variable._execution_engine.run_backward(
            tensors=(out,), grad_tensors=(torch.ones_like(sent),), keep_graph=False, create_graph=False, inputs=tuple(),
            allow_unreachable=True, accumulate_grad=True)
        return sent
    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)))
    for _ in range(2):
        with run.dump(model):
            run.note("sent", step(model))
    run.note_model(model)


@way
def new_groups_and_their_ranks(run):
    def main(run, rank, world):
        group = dist.new_group([0, 1])
        alone = dist.new_group([0])
        model = nn.Sequential(nn.Linear(4, 4))
        with run.dump(model):
            t = model(X).detach()
            dist.all_reduce(t, group=group)
            if rank == 0:
                dist.all_reduce(t, group=alone)
            run.note("sizes", (dist.get_world_size(group), dist.get_rank(group), dist.get_backend()))
        run.note("t", t)
    in_two(run, main)


@way
def data_parallel_without_devices(run):
    model = nn.DataParallel(model_of())
    run.train(model, lambda m, i: m(X).sum())
    run.note("copy", copy.deepcopy(model)(X))
    assert VERSION
