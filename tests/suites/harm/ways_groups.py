# SPDX-License-Identifier: MIT
"""Groups of processes in their rarer forms: averages after local steps, hooks of communication written by the program,
futures, calls on other ranks, shards in two dimensions, schedules of several
stages, states saved beside a step, and ranks that are threads."""
import io
import os
import threading

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import checkpoint

from harness import run_ranks, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)


def in_two(run, func):
    run_ranks(run, 2, func)


def model_of(seed=5):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 4))


def mesh_of(shape, **options):
    from torch.distributed.device_mesh import init_device_mesh
    return init_device_mesh("cpu", shape, **options)


def note_whole(run, model):
    """The parameters of a sharded model, put together."""
    run.note("parameters", [p.full_tensor() for p in model.parameters()])
    run.note("gradients", [None if p.grad is None else p.grad.full_tensor() for p in model.parameters()])


# ---- gradients between ranks ----------------------------------------------------------------------


@way
def parameters_averaged_after_steps_of_each_rank(run):
    from torch.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as post
    from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
    from torch.distributed.optim import PostLocalSGDOptimizer

    def main(run, rank, world):
        model = DistributedDataParallel(model_of())
        alone = dist.new_subgroups(group_size=1)[0]
        model.register_comm_hook(post.PostLocalSGDState(None, alone, 1), post.post_localSGD_hook)
        opt = PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
                                    PeriodicModelAverager(period=2, warmup_steps=1))
        for i in range(4):
            with run.dump(model):
                opt.zero_grad()
                loss = model(X[rank::world]).pow(2).mean()
                loss.backward()
                opt.step()
            run.note(f"loss {i}", loss)
        run.note("state", opt.state_dict())
        run.note_model(model)
    in_two(run, main)


@way
def hooks_of_communication_that_look_into_buckets(run):
    def main(run, rank, world):
        seen = []

        def halved(state, bucket):
            seen.append((bucket.index(), bucket.is_last(), [tuple(g.shape) for g in bucket.gradients()],
                         [tuple(p.shape) for p in bucket.parameters()]))
            small = bucket.buffer().to(torch.float16) / world
            return dist.all_reduce(small, async_op=True).get_future().then(
                lambda done: bucket.buffer().copy_(done.value()[0] * state["scale"]))
        model = DistributedDataParallel(model_of(), bucket_cap_mb=0.0001, gradient_as_bucket_view=True)
        model.register_comm_hook({"scale": 1.5}, halved)
        run.train(model, lambda m, i: m(X[rank::world]).pow(2).mean())
        run.note("seen", seen)
    in_two(run, main)


@way
def hooks_of_communication_that_wrap_each_other(run):
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, quantization_hooks

    def main(run, rank, world):
        for hook in (default_hooks.fp16_compress_wrapper(default_hooks.allreduce_hook),
                     quantization_hooks.quantization_pertensor_hook):
            model = DistributedDataParallel(model_of())
            model.register_comm_hook(None, hook)
            run.raises("trained", lambda model=model: run.train(model, lambda m, i: m(X[rank::world]).mean(), steps=2))
    in_two(run, main)


@way
def ddp_that_leaves_parameters_out_and_evaluates_between(run):
    def main(run, rank, world):
        base = Calls(lambda self, x: checkpoint(self.a, self.own(x), use_reentrant=False).mean() + self.seen.sum(),
                     a=model_of(), own=nn.Linear(4, 4))
        base.register_buffer("seen", torch.full((2,), float(rank)))
        DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(base, ["own.weight", "own.bias", "seen"])
        model = DistributedDataParallel(base, find_unused_parameters=True)
        run.train(model, lambda m, i: m(X[rank::world]))
        model.eval()
        with torch.no_grad(), run.dump(model):
            run.note("evaluated", model(X))
        model.train()
        run.train(model, lambda m, i: m(X[rank::world]), steps=1)
    in_two(run, main)


@way
def joins_of_a_model_and_a_sharded_optimizer(run):
    from torch.distributed.algorithms.join import Join
    from torch.distributed.optim import ZeroRedundancyOptimizer

    def main(run, rank, world):
        model = DistributedDataParallel(model_of())
        opt = ZeroRedundancyOptimizer(model.parameters(), torch.optim.SGD, lr=0.1)
        run.start(model)
        with Join([model, opt]):
            for _ in range(1 + 2 * rank):
                opt.zero_grad()
                model(X[rank::world]).sum().backward()
                opt.step()
        run.stop()
        run.step()
        run.note_model(model)
    in_two(run, main)


# ---- works, futures, objects and calls ----------------------------------------------------------------


def without_frames(future):
    """Raises what a callback of the future has raised, without its frames: the callback runs in whatever thread is
    there when the work ends."""
    try:
        future.wait()
    except RuntimeError as why:
        raise RuntimeError(str(why).partition("\n\nAt:")[0]) from None


@way
def futures_of_works_and_what_follows_them(run):
    def main(run, rank, world):
        model = model_of()
        with run.dump(model):
            y = model(X[rank::world])
            future = dist.all_reduce(y.detach(), async_op=True).get_future()
            doubled = future.then(lambda done: [t * 2 for t in done.value()]).then(lambda done: done.wait()[0].sum())
            failing = future.then(lambda done: done.value()[7])
            own = torch.futures.Future()
            threading.Thread(target=lambda: own.set_result(torch.relu(torch.tensor(-rank - 1.0)))).start()
            both = torch.futures.collect_all([doubled, own])
            run.note("values", [f.value() for f in both.wait()])
            run.raises("failing", lambda: without_frames(failing))
            y.sum().backward()
        run.note_model(model)
    in_two(run, main)


@way
def objects_between_ranks_and_a_barrier_that_is_watched(run):
    def main(run, rank, world):
        import datetime
        model = model_of()
        with run.dump(model):
            y = model(X).detach()
            got = [None, None]
            if rank == 0:
                dist.send_object_list([{"y": y}, "text"], 1)
            else:
                dist.recv_object_list(got, 0)
            told = [{"x": X, "of": rank}, 3]
            dist.broadcast_object_list(told, 1)
            mine = [None]
            dist.scatter_object_list(mine, [[1], {"two": 2}] if rank == 0 else None, 0)
            gathered = [None] * world if rank == 0 else None
            dist.gather_object((rank, y.shape), gathered, 0)
            dist.monitored_barrier(timeout=datetime.timedelta(seconds=60), wait_all_ranks=True)
        run.note("objects", (got, told, mine, gathered))
    in_two(run, main)


@way
def sends_and_receives_in_batches(run):
    def main(run, rank, world):
        model = model_of()
        with run.dump(model):
            y, came = model(X).detach(), torch.empty(6, 4)
            works = dist.batch_isend_irecv([dist.P2POp(dist.isend, y * (rank + 1), 1 - rank),
                                            dist.P2POp(dist.irecv, came, 1 - rank)])
            for work in works:
                work.wait()
            whole, part = torch.zeros(12, 4), torch.zeros(3, 4)
            run.raises("gathered", lambda: dist.all_gather_into_tensor(whole, y))
            run.raises("scattered", lambda: dist.reduce_scatter_tensor(part, y))
            run.raises("exchanged", lambda: dist.all_to_all_single(torch.empty(6, 4), y))
            run.note("values", (came, whole, part, len(works)))
            model(came).sum().backward()
        run.note_model(model)
    in_two(run, main)


def _remote_loss(reference, x):
    return reference.local_value()(x).pow(2).sum()


def _remote_part():
    return model_of(9)


@way
def calls_on_other_ranks_and_their_gradients(run):
    """The engine of distributed gradients runs backward in its own threads and keeps gradients in contexts."""
    def main(run, rank, world):
        from torch.distributed import autograd as distant
        from torch.distributed import rpc
        os.environ.setdefault("TP_SOCKET_IFNAME", "lo")
        model = model_of()  # before the other rank can ask for a part, which sets the seed anew
        options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{os.path.abspath('calls')}", num_worker_threads=4)
        rpc.init_rpc(f"rank{rank}", rank=rank, world_size=world, rpc_backend_options=options)
        if rank == 0:
            part = rpc.remote("rank1", _remote_part)
            for i in range(2):
                run.start(model)
                with distant.context() as context:
                    loss = rpc.rpc_sync("rank1", _remote_loss, args=(part, model(X)))
                    distant.backward(context, [loss])
                    gradients = distant.get_gradients(context)
                    run.note(f"gradients {i}", [gradients[p] for p in model.parameters()])
                run.stop()
                run.step()
                run.note(f"loss {i}", loss)
        rpc.shutdown()
        run.note_model(model)
    in_two(run, main)


# ---- shards ----------------------------------------------------------------------------------------


@way(needs=(2, 6))
def shards_in_one_dimension_and_copies_in_the_other(run):
    def main(run, rank, world):
        from torch.distributed.fsdp import fully_shard
        for shape in ((2, 1), (1, 2)):
            model = model_of()
            mesh = mesh_of(shape, mesh_dim_names=("copies", "shards"))
            for layer in (model[0], model[2]):
                fully_shard(layer, mesh=mesh)
            fully_shard(model, mesh=mesh)
            opt = torch.optim.SGD(model.parameters(), lr=0.1)
            for i in range(2):
                with run.dump(model):
                    opt.zero_grad()
                    model.set_requires_all_reduce(i == 1)
                    loss = model(X[rank::world]).pow(2).mean()
                    loss.backward()
                    opt.step()
                run.note(f"loss {i}", loss)
            note_whole(run, model)
    in_two(run, main)


@way(needs=(2, 6))
def shards_that_are_checkpointed_unsharded_and_called_by_other_names(run):
    def main(run, rank, world):
        from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.body, self.head = model_of(), nn.Linear(4, 1)

            def features(self, x):
                return self.body(x)

            def forward(self, x):
                return self.head(self.features(x))
        torch.manual_seed(0)
        model, mesh = Model(), mesh_of((world,))
        apply_activation_checkpointing(model, check_fn=lambda m: isinstance(m, nn.Sequential))
        fully_shard(model.body, mesh=mesh, reshard_after_forward=False)
        fully_shard(model, mesh=mesh)
        register_fsdp_forward_method(model, "features")
        for i in range(2):
            with run.dump(model):
                model.set_is_last_backward(i == 1)
                handle = model.unshard(async_op=True)
                handle.wait()
                loss = model(X[rank::world]).pow(2).mean() + model.features(X).mean()
                loss.backward()
                model.reshard()
            run.note(f"loss {i}", loss)
        note_whole(run, model)
    in_two(run, main)


@way(needs=(2, 6))
def shards_kept_by_a_policy_elsewhere_and_frozen_in_part(run):
    def main(run, rank, world):
        from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
        model = model_of()
        model[0].requires_grad_(False)
        for layer in (model[0], model[2], model):
            fully_shard(layer, mesh=mesh_of((world,)), offload_policy=CPUOffloadPolicy(pin_memory=False))
        run.train(model, lambda m, i: m(X[rank::world]).pow(2).mean())
    in_two(run, main)


@way(needs=(2, 4))
def shards_of_the_first_generation_accumulate_and_tell_their_states(run):
    def main(run, rank, world):
        from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision, StateDictType
        mixed = MixedPrecision(buffer_dtype=torch.bfloat16)
        base = model_of()
        base[0] = FullyShardedDataParallel(base[0], device_id=torch.device("cpu"), mixed_precision=mixed)
        model = FullyShardedDataParallel(base, device_id=torch.device("cpu"), mixed_precision=mixed)
        opt = torch.optim.AdamW(model.parameters(), lr=0.01)
        for i in range(2):
            with run.dump(model):
                with model.no_sync():
                    model(X[rank::world]).float().pow(2).mean().backward()
                model(X[rank::world] * 2).float().pow(2).mean().backward()
                run.note("norm", model.clip_grad_norm_(0.5))
                opt.step()
                opt.zero_grad()
            run.note(f"parts {i}", list(model.parameters()))
        with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT):
            run.note("state", model.state_dict())
        run.note("optimizer", FullyShardedDataParallel.full_optim_state_dict(model, opt))
    in_two(run, main)


@way(needs=(2, 6))
def states_saved_beside_the_step_that_follows(run):
    def main(run, rank, world):
        from torch.distributed import checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
        from torch.distributed.fsdp import fully_shard
        model = model_of()
        fully_shard(model, mesh=mesh_of((world,)))
        opt, waiting, beside = torch.optim.SGD(model.parameters(), lr=0.1), None, dist.new_group()
        for i in range(3):
            with run.dump(model):
                opt.zero_grad()
                model(X[rank::world]).sum().backward()
                if waiting is not None:
                    waiting.result()
                waiting = dcp.async_save({"model": model.state_dict()}, checkpoint_id=f"kept{i}",
                                         process_group=beside)
                opt.step()
        waiting.result()
        whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
        run.note("whole", whole)
        loaded = {"model": model.state_dict()}
        dcp.load(loaded, checkpoint_id="kept1")
        run.note("loaded", [t.full_tensor() for t in loaded["model"].values()])
    in_two(run, main)


# ---- tensor parallelism ----------------------------------------------------------------------------------


@way(needs=(2, 6))
def inputs_prepared_for_layers_in_tensor_parallel(run):
    def main(run, rank, world):
        from torch.distributed.tensor import Replicate, Shard
        from torch.distributed.tensor.parallel import (ColwiseParallel, PrepareModuleInput, PrepareModuleOutput,
                                                       RowwiseParallel, SequenceParallel, loss_parallel,
                                                       parallelize_module)
        torch.manual_seed(0)
        mesh = mesh_of((world,))

        def block(self, x, scale=None):
            return self.down(torch.relu(self.up(self.norm(x)))) * scale
        model = Calls(lambda self, x: self.head(self.block(x, scale=2.0)),
                      block=Calls(block, norm=nn.LayerNorm(4), up=nn.Linear(4, 8), down=nn.Linear(8, 4)), head=nn.Linear(4, 6))
        parallelize_module(model, mesh, {
            "block": PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(0),)),
            "block.norm": SequenceParallel(sequence_dim=0),
            "block.up": ColwiseParallel(input_layouts=Shard(0)),
            "block.down": RowwiseParallel(output_layouts=Shard(0), use_local_output=False),
            "head": ColwiseParallel(input_layouts=Shard(0), output_layouts=Shard(-1), use_local_output=False)})
        parallelize_module(model.block, mesh, PrepareModuleOutput(output_layouts=Shard(0), desired_output_layouts=Shard(0),
                                                                  use_local_output=False))
        for i in range(2):
            with run.dump(model), loss_parallel():
                loss = nn.functional.cross_entropy(model(X), torch.arange(6))
                loss.backward()
            run.note(f"loss {i}", loss.full_tensor())
        note_whole(run, model)
    in_two(run, main)


@way(needs=(2, 6))
def functions_that_run_on_local_parts_of_tensors(run):
    def main(run, rank, world):
        from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module, distribute_tensor
        from torch.distributed.tensor.experimental import local_map
        mesh = mesh_of((world,))
        seen = []

        def part(name, module, mesh):
            for key, p in list(module.named_parameters(recurse=False)):
                module.register_parameter(key, nn.Parameter(distribute_tensor(p.data, mesh, [Shard(0)])))
        model = distribute_module(model_of(), mesh, part,
                                  input_fn=lambda m, args, mesh: DTensor.from_local(args[0], mesh, [Replicate()]),
                                  output_fn=lambda m, out, mesh: out.redistribute(placements=[Replicate()]))
        squared = local_map(lambda t: (seen.append(type(t).__name__), torch.sin(t) ** 2)[1], out_placements=[Replicate()],
                            in_placements=([Replicate()],), device_mesh=mesh)
        run.train(model, lambda m, i: squared(m(X)).sum().to_local())
        run.note("seen", seen)
    in_two(run, main)


# ---- schedules of several stages ------------------------------------------------------------------------


def staged(run, rank, world, kind, stages_of, count=2):
    """A pipeline with more stages than ranks, whose backward may be in two halves."""
    from torch.distributed.pipelining import PipelineStage
    torch.manual_seed(rank)
    parts = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Tanh()) for _ in range(count))
    stages = [PipelineStage(part, index, world * count, torch.device("cpu"), input_args=(X[:1].clone().requires_grad_(index > 0),),
                            output_args=(X[:1].clone().requires_grad_(),)) for part, index in zip(parts, stages_of)]
    schedule, losses = kind(stages, 4, loss_fn=lambda y, t: (y - t).pow(2).mean()), []
    x, last = X[:4], world * count - 1
    for i in range(2):
        with run.dump(parts):
            schedule.step(*([x] if 0 in stages_of else []), **({"target": x * 2, "losses": losses} if last in stages_of else {}))
        run.note(f"losses {i}", losses)
    run.note_model(parts)


@way(needs=(2, 5))
def schedules_that_interleave_stages(run):
    def main(run, rank, world):
        from torch.distributed.pipelining import ScheduleInterleaved1F1B, ScheduleLoopedBFS
        for kind in (ScheduleInterleaved1F1B, ScheduleLoopedBFS):
            staged(run, rank, world, kind, [rank, rank + world])
    in_two(run, main)


@way(needs=(2, 6))
def schedules_whose_backward_comes_in_two_halves(run):
    """The gradient of a stage's input comes first, that of its weights later: the graph is taken apart."""
    def main(run, rank, world):
        from torch.distributed.pipelining import schedules
        staged(run, rank, world, schedules.ScheduleInterleavedZeroBubble, [rank, rank + world])
        zigzag = getattr(schedules, "ScheduleZBVZeroBubble", None)
        if zigzag is not None:
            staged(run, rank, world, zigzag, [rank, 2 * world - 1 - rank])
    in_two(run, main)


@way(needs=(2, 5))
def pipelines_cut_from_a_traced_model(run):
    def main(run, rank, world):
        from torch.distributed.pipelining import ScheduleGPipe, SplitPoint, pipeline
        torch.manual_seed(0)
        model = Calls(lambda self, x: self.second(self.first(x)), first=nn.Linear(4, 4), second=nn.Linear(4, 4))
        with run.dump(model):
            model(X).sum().backward()
            cut = pipeline(model, mb_args=(X[:2],), split_spec={"second": SplitPoint.BEGINNING})
        stage = cut.build_stage(rank, torch.device("cpu"))
        schedule, losses = ScheduleGPipe(stage, 3, loss_fn=lambda y, t: (y - t).pow(2).mean()), []
        with run.dump(stage.submod):
            if rank == 0:
                schedule.step(X)
            else:
                schedule.step(target=X * 2, losses=losses)
        run.note("losses", losses)
        run.note_model(stage.submod)
    in_two(run, main)


# ---- groups without processes ---------------------------------------------------------------------------


@way(needs=(2, 1))
def ranks_that_are_threads(run):
    """As tests of distributed code run: each rank is a thread with a world of its own."""
    from torch.testing._internal.distributed import multi_threaded_pg as threaded
    model, results, failures = model_of(), {}, []
    threaded._install_threaded_pg()
    torch._C._distributed_c10d._set_thread_isolation_mode(True)
    store = dist.HashStore()

    def rank_main(rank):
        try:
            dist.init_process_group("threaded", rank=rank, world_size=2, store=store)
            y = model(X[rank::2])
            total = y.detach().clone()
            dist.all_reduce(total)
            parts = [torch.empty_like(total) for _ in range(2)]
            dist.all_gather(parts, y.detach())
            results[rank] = total, torch.cat(parts), torch.autograd.grad(y.pow(2).sum(), list(model.parameters()))
        except Exception as error:
            failures.append(repr(error))
    with run.dump(model):
        threads = [threading.Thread(target=rank_main, args=(rank,)) for rank in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    torch._C._distributed_c10d._set_thread_isolation_mode(False)
    threaded._uninstall_threaded_pg()
    run.note("results", [results.get(rank) for rank in range(2)])
    run.note("failures", failures)


@way(needs=(2, 3))
def a_world_of_ranks_that_are_not_there(run):
    from torch.testing._internal.distributed.fake_pg import FakeStore
    dist.init_process_group("fake", rank=1, world_size=8, store=FakeStore())
    model = model_of()

    def loss_of(m, _step):
        y = m(X)
        dist.all_reduce(y.detach())
        return y.pow(2).mean()
    run.train(model, loss_of)
    with run.dump(model):
        parts = [torch.zeros(4) for _ in range(8)]
        dist.all_gather(parts, model(X)[0].detach())
        kept = io.BytesIO()
        torch.save([p.shape for p in parts], kept)
    run.note("sizes", (dist.get_rank(), dist.get_world_size(), len(kept.getvalue())))
    dist.destroy_process_group()
