# SPDX-License-Identifier: MIT
"""What large trainings put together: tensor and sequence parallel layers, shards over two dimensions, pipelines in
one process, optimizers of shards, checkpoints of distributed states."""
import io

import torch
from torch import distributed as dist
from torch import nn
from torch.nn import functional as F

from harness import run_ranks, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


def in_two(run, func):
    run_ranks(run, 2, func)


def split_function(world, rank, gather):
    """A pair of Megatron's mappings between regions, as an autograd.Function."""
    class Mapping(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if not gather:
                return x.chunk(world, dim=-1)[rank].contiguous()
            parts = [torch.empty_like(x) for _ in range(world)]
            dist.all_gather(parts, x.contiguous())
            return torch.cat(parts, dim=-1)

        @staticmethod
        def backward(ctx, grad):
            if gather:
                return grad.chunk(world, dim=-1)[rank].contiguous()
            parts = [torch.empty_like(grad) for _ in range(world)]
            dist.all_gather(parts, grad.contiguous())
            return torch.cat(parts, dim=-1)
    return Mapping


@way
def megatron_columns_rows_and_a_vocabulary_in_parallel(run):
    class Embedding(nn.Module):
        def __init__(self, rank):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5, 4))
            self.first = 5 * rank

        def forward(self, ids):
            mask = (ids < self.first) | (ids >= self.first + 5)
            local = ids.clone() - self.first
            local[mask] = 0
            out = F.embedding(local, self.weight)
            out[mask, :] = 0.0
            dist.all_reduce(out)
            return out

    def main(run, rank, world):
        torch.manual_seed(rank)
        split, gather = split_function(world, rank, False), split_function(world, rank, True)
        model = Calls(lambda self, ids: gather.apply(self.column(self.embedding(ids))).pow(2).mean() +
                      self.row(split.apply(self.embedding(ids))).mean(),
                      embedding=Embedding(rank), column=nn.Linear(4, 2), row=nn.Linear(2, 4, bias=False))
        for p in model.parameters():
            p.tensor_model_parallel, p.partition_dim = True, 0
        run.train(model, lambda m, i: m(torch.tensor([[1, 7, 3], [9, 0, 2]])))
        run.note("marks", [(p.tensor_model_parallel, p.partition_dim) for p in model.parameters()])
    in_two(run, main)


@way
def megatron_overlaps_the_reduction_with_the_gradient_of_the_weight(run):
    class Overlapping(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, weight):
            ctx.save_for_backward(x, weight)
            return x @ weight.t()

        @staticmethod
        def backward(ctx, grad):
            x, weight = ctx.saved_tensors
            into = grad @ weight
            handle = dist.all_reduce(into, async_op=True)
            weight.main_grad.add_(grad.t() @ x)
            weight.grad_added_to_main_grad = True
            handle.wait()
            return into, torch.zeros_like(weight)

    def main(run, rank, world):
        torch.manual_seed(0)
        model = Calls(lambda self, x: Overlapping.apply(self.norm(x), self.up.weight).pow(2).sum(),
                      norm=nn.LayerNorm(4), up=nn.Linear(4, 4, bias=False))
        model.up.weight.main_grad = torch.zeros(4, 4)
        run.train(model, lambda m, i: m(X))
        run.note("main_grad", (model.up.weight.main_grad, model.up.weight.grad_added_to_main_grad))
    in_two(run, main)


@way
def buckets_of_gradients_reduced_by_hooks(run):
    """As distributed optimizers do: parameters are views of one buffer, hooks on accumulators reduce it."""
    def main(run, rank, world):
        model = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1))
        parameters = list(model.parameters())
        flat, grads = torch.cat([p.detach().reshape(-1) for p in parameters]), torch.zeros(sum(p.numel() for p in parameters))
        works, kept, at = [], [], 0
        for p in parameters:
            p.data = flat[at:at + p.numel()].view_as(p)
            p.main_grad = grads[at:at + p.numel()].view_as(p)
            at += p.numel()

            def reduce(*_, p=p):
                p.main_grad.add_(p.grad)
                p.grad = None
                works.append(dist.all_reduce(p.main_grad, async_op=True))
            node = p.expand_as(p).grad_fn.next_functions[0][0]
            node.register_hook(reduce)
            kept.append(node)
        for _ in range(3):
            with run.dump(model):
                grads.zero_()
                model(X[rank::world]).pow(2).mean().backward()
                for work in works:
                    work.wait()
                works.clear()
                flat.add_(grads, alpha=-0.1)
            run.note("flat", (flat, grads))
        run.note("views", [p.data_ptr() - flat.data_ptr() for p in parameters])
    in_two(run, main)


@way
def a_schedule_of_micro_batches_between_two_ranks(run):
    """1F1B as Megatron writes it: send_forward, recv_backward, and a backward from a gradient that came."""
    def main(run, rank, world):
        torch.manual_seed(rank)
        part = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        with run.dump(part):
            held, works = [], []
            for i in range(3):
                if rank == 0:
                    out = part(X[2 * i:2 * i + 2])
                    dist.send(out.detach(), 1)
                    held.append(out)
                else:
                    came = torch.empty(2, 4)
                    dist.recv(came, 0)
                    came.requires_grad_()
                    part(came).pow(2).sum().backward()
                    works.append(dist.isend(came.grad, 0))
            for out in held:
                grad = torch.empty(2, 4)
                dist.recv(grad, 1)
                torch.autograd.backward(out, grad_tensors=grad)
            for work in works:
                work.wait()
        run.note_model(part)
    in_two(run, main)


@way(needs=(2, 6))
def fully_sharded_layers_with_prefetching_and_accumulation(run):
    def main(run, rank, world):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        mesh = init_device_mesh("cpu", (world,))
        torch.manual_seed(0)
        model = nn.Sequential(*[nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(3)])
        for layer in model:
            fully_shard(layer, mesh=mesh, reshard_after_forward=True)
        fully_shard(model, mesh=mesh)
        model[0].set_modules_to_forward_prefetch([model[1]])
        opt = torch.optim.AdamW(model.parameters(), lr=0.01)
        for step in range(2):
            with run.dump(model):
                for micro in range(2):
                    model.set_requires_gradient_sync(micro == 1)
                    model(X[rank::world]).pow(2).mean().backward()
                run.note("norm", nn.utils.clip_grad_norm_(model.parameters(), 0.5).full_tensor())
                opt.step()
                opt.zero_grad()
        run.note("parameters", [p.full_tensor() for p in model.parameters()])
    in_two(run, main)


@way(needs=(2, 6))
def tensor_parallel_under_fully_sharded(run):
    def main(run, rank, world):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
        mesh = init_device_mesh("cpu", (1, world), mesh_dim_names=("dp", "tp"))
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4))
        parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
        fully_shard(model, mesh=mesh["dp"])
        run.train(model, lambda m, i: m(X).pow(2).sum())
    in_two(run, main)


@way(needs=(2, 6))
def distributed_tensors_through_functions_of_all_kinds(run):
    def main(run, rank, world):
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_tensor, zeros
        mesh = init_device_mesh("cpu", (world,))

        def forward(self, x):
            y = torch.relu(self.fc(x.to_local()))
            d = DTensor.from_local(y, mesh, [Shard(0)])
            whole = d.redistribute(placements=[Replicate()])
            part = DTensor.from_local(y.sum(), mesh, [Partial()])
            run.note("placements", (str(d.placements), str(whole.placements), d.shape, part.full_tensor()))
            z = zeros(6, 4, device_mesh=mesh, placements=[Shard(0)])
            return (torch.softmax(d, -1) + z).sum().full_tensor() + whole.to_local().mean()
        model = Calls(forward, fc=nn.Linear(4, 4))
        run.train(model, lambda m, i: m(distribute_tensor(X, mesh, [Shard(0)])))
    in_two(run, main)


@way
def states_of_sharded_optimizers_gathered_and_loaded(run):
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def main(run, rank, world):
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)))
        opt = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
        for _ in range(2):
            with run.dump(model):
                opt.zero_grad()
                model(X[rank::world]).sum().backward()
                opt.step()
                opt.consolidate_state_dict(to=0)
        if rank == 0:
            kept = io.BytesIO()
            torch.save(opt.state_dict(), kept)
            kept.seek(0)
            run.note("state", torch.load(kept)["state"])
        run.note_model(model)
    in_two(run, main)


@way(needs=(2, 6))
def checkpoints_of_distributed_states(run):
    def main(run, rank, world):
        from torch.distributed import checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
        fully_shard(model, mesh=init_device_mesh("cpu", (world,)))
        opt = torch.optim.Adam(model.parameters(), lr=0.1)
        with run.dump(model):
            model(X[rank::world]).sum().backward()
            opt.step()
            states = get_state_dict(model, opt)
            dcp.save({"model": states[0], "optimizer": states[1]}, checkpoint_id="kept")
        with run.dump(model):
            model(X[rank::world]).sum().backward()
            opt.step()
            loaded = {"model": states[0], "optimizer": states[1]}
            dcp.load(loaded, checkpoint_id="kept")
            set_state_dict(model, opt, model_state_dict=loaded["model"], optim_state_dict=loaded["optimizer"])
        run.note("parameters", [p.full_tensor() for p in model.parameters()])
    in_two(run, main)


@way(needs=(2, 2))
def functional_collectives(run):
    def main(run, rank, world):
        import torch.distributed._functional_collectives as funcol
        group = dist.group.WORLD
        model = nn.Sequential(nn.Linear(4, 4))

        def loss_of(model, _step):
            y = model(X[rank:rank + 2])
            total = funcol.all_reduce(y.detach(), "sum", group)
            both = funcol.all_gather_tensor(y.detach(), 0, group)
            part = funcol.reduce_scatter_tensor(y.detach(), "sum", 0, group)
            run.note("types", [type(t).__name__ for t in (total, both, part)])
            run.note("values", [funcol.wait_tensor(t) for t in (total, both, part)])
            return y.pow(2).sum()
        run.train(model, loss_of)
    in_two(run, main)


@way(needs=(2, 5))
def compiled_collectives(run):
    def main(run, rank, world):
        import torch.distributed._functional_collectives as funcol
        model = Calls(lambda self, x: funcol.all_reduce(self.fc(x), "sum", dist.group.WORLD).sum() + self.fc(x).sum(),
                      fc=nn.Linear(4, 4))
        fast = torch.compile(model, backend="eager")
        run.train(model, lambda m, i: fast(X), backward=lambda loss: None)
    in_two(run, main)


@way
def a_rank_that_stops_early(run):
    """One rank dumps a step more than the other."""
    def main(run, rank, world):
        torch.manual_seed(0)
        model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)))
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(3):
            if step < 2 or rank == 0:
                run.start(model)
            opt.zero_grad()
            model(X[rank::world]).sum().backward()
            opt.step()
            run.stop()
            run.step()
        run.note_model(model)
    in_two(run, main)
