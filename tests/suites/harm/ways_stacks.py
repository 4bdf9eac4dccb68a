# SPDX-License-Identifier: MIT
"""The stacks that people train with: transformers, accelerate, timm and diffusers themselves where they are installed,
loops with closures and toggled optimizers, flows, exported and split models, compilers that are told what to do, and
values in containers that a program registers."""
import collections
import dataclasses
import os
import weakref

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from harness import VERSION, way
from ways_arguments import Calls

X = torch.linspace(-1, 1, 24).view(6, 4)
IDS = torch.arange(24).view(4, 6) % 11


class Block(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.fc, self.norm = nn.Linear(width, width), nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(F.gelu(self.fc(x)) + x)


def model_of():
    return nn.Sequential(Block(), Block(), nn.Linear(4, 2))


def loss_of(model, _step):
    return model(X).pow(2).mean()


def read(path):
    """The bytes of a file, None where there is none."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as f:
        return f.read()


def alone():
    """Libraries ask for nothing that is not here."""
    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", HF_HUB_DISABLE_TELEMETRY="1",
                      ACCELERATE_USE_CPU="true", HF_HOME=os.path.abspath("home"))
    if not torch.cuda.is_available():  # this ends a process whose driver is missing
        torch.cuda.is_current_stream_capturing = lambda: False


# ---- libraries themselves -----------------------------------------------------------------------------


def language_model(**settings):
    alone()
    import transformers
    torch.manual_seed(1)
    config = transformers.LlamaConfig(vocab_size=11, hidden_size=8, intermediate_size=12, num_hidden_layers=2,
                                      num_attention_heads=2, num_key_value_heads=1, max_position_embeddings=16, **settings)
    return transformers.LlamaForCausalLM(config)


@way(slow=True)
def the_trainer_of_transformers(run):
    model = language_model()
    import transformers

    class Rows(torch.utils.data.Dataset):
        def __len__(self):
            return len(IDS)

        def __getitem__(self, at):
            return {"input_ids": IDS[at], "labels": IDS[at]}

    class Steps(transformers.TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            run.start(model)

        def on_step_end(self, args, state, control, **kwargs):
            run.stop()
            run.step()
    arguments = transformers.TrainingArguments("out", max_steps=3, per_device_train_batch_size=2, report_to=[], use_cpu=True,
                                               gradient_accumulation_steps=2, gradient_checkpointing=True, disable_tqdm=True,
                                               save_strategy="no", logging_strategy="no", max_grad_norm=0.5, seed=3)
    trainer = transformers.Trainer(model=model, args=arguments, train_dataset=Rows(), callbacks=[Steps()])
    trainer.remove_callback(transformers.PrinterCallback)  # it prints times
    run.note("loss", trainer.train().training_loss)
    run.note_model(model)


@way(slow=True)
def outputs_recorded_and_generated_by_transformers(run):
    model = language_model(attn_implementation="eager")
    run.start(model)
    out = model(IDS, labels=IDS, output_hidden_states=True, output_attentions=True, use_cache=True)
    out.loss.backward()
    run.stop()
    run.step()
    run.note("out", (out.loss, out.hidden_states, out.attentions, type(out.past_key_values).__name__, list(out)))
    model.eval()
    with run.dump(model):
        run.note("greedy", model.generate(IDS[:, :3], max_new_tokens=4, do_sample=False, pad_token_id=0))
        run.note("sampled", model.generate(IDS[:, :3], max_new_tokens=4, do_sample=True, top_k=5, pad_token_id=0))
        run.note("beams", model.generate(IDS[:, :3], max_new_tokens=4, num_beams=2, do_sample=False, pad_token_id=0))
    run.note_model(model)


@way(slow=True)
def an_encoder_and_a_decoder_of_transformers(run):
    alone()
    import transformers
    torch.manual_seed(1)
    model = transformers.T5ForConditionalGeneration(transformers.T5Config(
        vocab_size=11, d_model=8, d_kv=4, d_ff=12, num_layers=2, num_heads=2, decoder_start_token_id=0))
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": True})
    model.train()
    model.enable_input_require_grads()
    run.train(model, lambda m, i: m(input_ids=IDS, labels=IDS[:, :4].contiguous()).loss)


def prepared(run, precision):
    alone()
    from accelerate import Accelerator
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2, mixed_precision=precision)
    model = model_of()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(opt, lambda step: 1 / (1 + step))
    model, opt, loader, schedule = accelerator.prepare(model, opt, DataLoader(TensorDataset(X), batch_size=2), schedule)
    for i, (x,) in enumerate(loader):
        with run.dump(model), accelerator.accumulate(model):
            loss = model(x).pow(2).mean()
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                run.note("norm", accelerator.clip_grad_norm_(model.parameters(), 1.0))
            opt.step()
            schedule.step()
            opt.zero_grad()
        run.note(f"loss {i}", (loss, accelerator.gather(loss)))
    accelerator.save_state("state")
    accelerator.load_state("state")
    bare = accelerator.unwrap_model(model)
    run.note("rate", (schedule.get_last_lr(), type(bare).__name__))
    run.note_model(bare)


@way(slow=True)
def a_loop_of_accelerate(run):
    prepared(run, "no")


@way(slow=True)
def a_loop_of_accelerate_in_mixed_precision(run):
    prepared(run, "bf16")


@way(slow=True)
def layers_moved_by_hooks_of_accelerate(run):
    alone()
    from accelerate.hooks import AlignDevicesHook, ModelHook, SequentialHook, add_hook_to_module, remove_hook_from_submodules

    class Scales(ModelHook):
        def pre_forward(self, module, *args, **kwargs):
            return (args[0] * 2, *args[1:]), kwargs

        def post_forward(self, module, output):
            return output / 2
    model = model_of()
    add_hook_to_module(model[0], SequentialHook(Scales(), AlignDevicesHook(execution_device="cpu", io_same_device=True)))
    add_hook_to_module(model[1], AlignDevicesHook(execution_device="cpu", offload=True))
    with run.dump(model):
        loss = loss_of(model, 0)
        loss.backward()
    with run.dump(model):
        remove_hook_from_submodules(model)
        loss_of(model, 1).backward()
    run.note("loss", loss)
    run.note_model(model)


@way(slow=True)
def a_network_of_timm_with_its_average_and_mixed_images(run):
    import timm
    from timm.data import Mixup
    from timm.loss import SoftTargetCrossEntropy
    from timm.optim import create_optimizer_v2
    from timm.utils import ModelEmaV3
    torch.manual_seed(1)
    model = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=5, depth=2, embed_dim=24, num_heads=2,
                              drop_path_rate=0.5)
    model.set_grad_checkpointing(True)
    opt, average = create_optimizer_v2(model, opt="lamb", lr=0.01), ModelEmaV3(model, decay=0.5)
    mixup, images = Mixup(num_classes=5, cutmix_alpha=1.0), torch.linspace(-1, 1, 4 * 3 * 32 * 32).view(4, 3, 32, 32)
    for i in range(2):
        with run.dump(model):
            opt.zero_grad()
            x, target = mixup(images.clone(), torch.arange(4))
            loss = SoftTargetCrossEntropy()(model(x), target)
            loss.backward()
            opt.step()
            average.update(model)
        run.note(f"loss {i}", loss)
    run.note("average", average.module.state_dict())
    run.note_model(model)


@way(slow=True)
def a_step_of_diffusers(run):
    alone()
    from diffusers import DDPMScheduler, UNet2DModel
    from diffusers.training_utils import EMAModel
    torch.manual_seed(1)
    model = UNet2DModel(sample_size=8, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 8),
                        norm_num_groups=4, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                        up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=4)
    model.enable_gradient_checkpointing()
    noises, average, x = DDPMScheduler(num_train_timesteps=10), EMAModel(model.parameters()), torch.ones(2, 1, 8, 8)

    def loss_of(model, step):
        noise = torch.randn_like(x)
        noisy = noises.add_noise(x, noise, torch.tensor([3, 7]))
        return F.mse_loss(model(noisy, torch.tensor([3, 7]), return_dict=False)[0], noise)
    run.train(model, loss_of, steps=2)
    average.step(model.parameters())
    run.note("average", list(average.shadow_params))


# ---- loops -----------------------------------------------------------------------------------------------


@way
def a_loop_that_toggles_optimizers_and_steps_by_closures(run):
    """As lightning runs manual and automatic optimization: requires_grad is switched around each closure."""
    first, second = model_of(), model_of()
    whole = nn.ModuleList([first, second])
    opts = [torch.optim.SGD(first.parameters(), lr=0.1), torch.optim.Adam(second.parameters(), lr=0.1)]
    state = {}

    def toggle(opt):
        kept = {p for group in opt.param_groups for p in group["params"]}
        for p in whole.parameters():
            state[p] = p.requires_grad
            p.requires_grad = p in kept

    def untoggle():
        for p, was in state.items():
            p.requires_grad = was
        state.clear()
    for i in range(3):
        with run.dump(whole):
            for opt, (one, other) in zip(opts, ((first, second), (second, first))):
                toggle(opt)

                def closure(one=one, other=other, opt=opt):
                    loss = (one(X) - other(X).detach()).pow(2).mean()
                    opt.zero_grad()
                    loss.backward()
                    return loss
                run.note(f"loss {i}", opt.step(closure))
                untoggle()
    run.note_model(whole)


@way
def flows_whose_transforms_remember_weakly(run):
    """Transforms of distributions keep their last pair by weak references and compare by identity."""
    from torch import distributions as d

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.loc, self.scale, self.net = nn.Parameter(torch.zeros(4)), nn.Parameter(torch.ones(4)), Block()

        def forward(self, x):
            steps = [d.AffineTransform(self.loc, self.scale.exp(), cache_size=1), d.SigmoidTransform(cache_size=1),
                     d.StickBreakingTransform(cache_size=1)]
            flow = d.TransformedDistribution(d.Independent(d.Normal(self.net(x), 1.0), 1), steps)
            drawn = flow.rsample()
            back = drawn
            for step in reversed(steps):
                back = step.inv(back)
            kept = [weakref.ref(t) for t in (drawn, back)]
            posterior = d.kl_divergence(d.Normal(self.loc, self.scale.exp()), d.Normal(0.0, 1.0)).sum()
            run.note("kept", [r() is not None for r in kept])
            return -flow.log_prob(drawn).mean() + posterior
    run.train(Flow(), lambda m, i: m(X))


@way
def loaders_that_pin_and_keep_their_place(run):
    rows = TensorDataset(X, torch.arange(6))
    generator = torch.Generator().manual_seed(4)
    model = model_of()

    def collate(batch):
        x, y = zip(*batch)
        return collections.OrderedDict(x=torch.stack(x), y=torch.stack(y))
    loader = DataLoader(rows, batch_size=2, shuffle=True, generator=generator, collate_fn=collate, num_workers=2,
                        prefetch_factor=1, worker_init_fn=lambda worker: torch.manual_seed(worker), pin_memory=True)
    run.start(model)
    for batch in loader:
        loss = F.cross_entropy(model(batch["x"]), batch["y"] % 2)
        loss.backward()
        run.stop()
        run.step()
        run.note("loss", (loss, type(batch).__name__, batch["y"]))
        run.start(model)
    run.stop()
    run.note("generator", generator.get_state())
    run.note_model(model)


@way(needs=(2, 1))
def states_that_are_assigned_to_a_model_without_memory(run):
    with torch.device("meta"):
        model = model_of()
    kept = {k: torch.linspace(-1, 1, p.numel()).view(p.shape) for k, p in model.state_dict().items()}
    model.load_state_dict(kept, assign=True)
    for i in range(3):
        with run.dump(model):
            loss = loss_of(model, i)
            loss.backward()
            with torch.no_grad():
                fresh = {k: p - 0.1 for k, p in model.state_dict().items()}
            model.load_state_dict(fresh, assign=True)
            run.note("same", [model.get_parameter(k).data_ptr() == t.data_ptr() for k, t in fresh.items()])
        run.note(f"loss {i}", loss)
    run.note_model(model)


# ---- graphs and compilers ----------------------------------------------------------------------------------


@way
def models_split_by_a_tracer_of_ones_own(run):
    from torch import fx
    from torch.fx.passes.split_module import split_module

    class Tracer(fx.Tracer):
        def is_leaf_module(self, module, name):
            return isinstance(module, Block) or super().is_leaf_module(module, name)

    class Counts(fx.Interpreter):
        def call_module(self, target, args, kwargs):
            counted[str(target)] += 1
            return super().call_module(target, args, kwargs)
    model, counted = model_of(), collections.Counter()
    with run.dump(model):
        graph = fx.GraphModule(model, Tracer().trace(model))
        parts = split_module(graph, model, lambda node: 0 if "0" in node.name else 1)
        Counts(graph).run(X).sum().backward()
    run.note("code", (graph.code, parts.code, dict(counted)))
    run.train(parts, loss_of)


@way(needs=(2, 4))
def exported_with_dimensions_unflattened_and_trained(run):
    from torch.export import Dim, export, unflatten
    model = model_of()
    with run.dump(model):
        program = export(model, (X,), dynamic_shapes={"input": {0: Dim("rows", min=2, max=64)}}, strict=False)
        flat = unflatten(program)
        loss_of(model, 0).backward()
    run.note("graph", program.graph_module.code)
    run.train(flat, lambda m, i: m(X[:4 + i]).pow(2).mean())
    run.note("again", program.run_decompositions().module()(X[:3]))


@way(needs=(2, 1))
def compilers_that_are_told_of_shapes_and_functions(run):
    from torch import _dynamo as dynamo
    dynamo.reset()
    model, graphs, asked = model_of(), [], []

    def backend(graph, examples):
        graphs.append([n.op for n in graph.graph.nodes].count("call_function") > 0)
        return graph.forward

    @dynamo.assume_constant_result
    def constant():
        asked.append(1)
        return 3

    @dynamo.allow_in_graph
    def opaque(x):
        return torch.sin(x) * 2

    @dynamo.disable
    def eager(x):
        return x + len(graphs)

    def step(x):
        return opaque(eager(model[0](x)) * constant()).sum() + model[1](x).mean()
    fast = torch.compile(step, backend=backend)
    for i in range(3):
        x = X[:3 + i].clone()
        dynamo.mark_dynamic(x, 0)
        with run.dump(model):
            loss = fast(x)
            loss.backward()
        run.note(f"loss {i}", loss)
    run.note("graphs", (all(graphs), len(graphs) > 0, len(asked) > 0))
    run.note_model(model)


@way(needs=(2, 4))
def policies_of_checkpoints_within_compiled_models(run):
    import functools

    from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

    def policy(_context, op, *_args, **_kwargs):
        return CheckpointPolicy.MUST_SAVE if op is torch.ops.aten.mm.default else CheckpointPolicy.PREFER_RECOMPUTE
    contexts = functools.partial(create_selective_checkpoint_contexts, policy)
    model = Calls(lambda self, x: checkpoint(self.block, x, use_reentrant=False, context_fn=contexts).sum(), block=Block())
    run.train(model, lambda m, i: m(X))
    fast = torch.compile(model, backend="aot_eager")
    run.train(model, lambda m, i: fast(X))


@way(needs=(2, 5))
def operators_with_rules_for_batches_kernels_and_modes(run):
    calls = collections.Counter()

    @torch.library.custom_op("harm_stacks::scaled", mutates_args=())
    def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
        calls["real"] += 1
        return x * by

    @scaled.register_fake
    def _(x, by):
        return torch.empty_like(x)

    @scaled.register_vmap
    def _(info, dims, x, by):
        calls["vmap"] += 1
        return scaled(x, by), dims[0]
    scaled.register_autograd(lambda ctx, g: (g * ctx.by, None),
                             setup_context=lambda ctx, inputs, output: setattr(ctx, "by", inputs[1]))
    model = Calls(lambda self, x: scaled(self.block(x), 0.5), block=Block())
    run.train(model, lambda m, i: m(X).sum())
    with run.dump(model):
        each = torch.vmap(model)(X.view(3, 2, 4))
        gradients = torch.autograd.grad(scaled(model(X), 2.0).sum(), list(model.parameters()))
        fast = torch.compile(model, backend="eager", fullgraph=VERSION >= (2, 6))(X)
    run.note("values", (each, gradients, fast))
    run.note("calls", calls["vmap"])


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    weights: dict
    name: str = "batch"


@way(needs=(2, 2))
def containers_that_a_program_registers_as_trees(run):
    pytree.register_pytree_node(Batch, lambda b: ([b.x, b.weights], b.name), lambda leaves, name: Batch(*leaves, name))

    class Takes(nn.Module):
        def __init__(self):
            super().__init__()
            self.block = Block()

        def forward(self, batch):
            return Batch(self.block(batch.x), {k: w * 2 for k, w in batch.weights.items()}, batch.name + "!")
    inner = Takes()
    model = Calls(lambda self, batch: checkpoint(self.inner, self.inner(batch), use_reentrant=False), inner=inner)
    batch = Batch(X, {"a": torch.ones(1, requires_grad=True)})

    def loss_of(model, _step):
        out = model(batch)
        run.note("out", (out.name, list(out.weights), pytree.tree_flatten(out)[1].num_leaves))
        return out.x.pow(2).mean() + out.weights["a"].sum()
    run.train(model, loss_of)
    with run.dump(model):
        run.note("mapped", torch.vmap(lambda b: inner(b).x)(Batch(X.view(3, 2, 4), {})))


@way(needs=(2, 3))
def attention_with_a_bias_that_is_a_class_of_tensors(run):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.nn.attention.bias import causal_lower_right, causal_upper_left
    model = Calls(lambda self, x, bias: F.scaled_dot_product_attention(*self.qkv(x).chunk(3, -1), attn_mask=bias).sum(),
                  qkv=nn.Linear(4, 12))

    def loss_of(model, step):
        bias = (causal_upper_left if step % 2 else causal_lower_right)(6, 6)
        run.note("bias", type(bias).__name__)
        with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
            return model(X[None, None], bias)
    run.train(model, loss_of)


@way(needs=(2, 1))
def quantised_by_graphs_that_were_exported(run):
    from torch._export import capture_pre_autograd_graph
    from torch.ao.quantization.quantize_pt2e import convert_pt2e, prepare_qat_pt2e
    from torch.ao.quantization.quantizer.xnnpack_quantizer import XNNPACKQuantizer, get_symmetric_quantization_config
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    with run.dump(model):
        loss_of(model, 0).backward()
        graph = capture_pre_autograd_graph(model, (X,))
        quantizer = XNNPACKQuantizer().set_global(get_symmetric_quantization_config(is_qat=True))
        prepared = prepare_qat_pt2e(graph, quantizer)
    run.train(prepared, loss_of)
    run.note("converted", convert_pt2e(prepared)(X))


@way(needs=(2, 5))
def buffers_that_are_made_like_parameters(run):
    class Norm(nn.Module):
        def __init__(self):
            super().__init__()
            self.mean = nn.Buffer(torch.zeros(4))
            self.count = nn.Buffer(torch.tensor(0), persistent=False)
            self.scale = nn.Parameter(torch.ones(4))

        def forward(self, x):
            if self.training:
                self.mean = nn.Buffer(self.mean.lerp(x.detach().mean(0), 0.1))
                self.count += 1
            return (x - self.mean) * self.scale / (self.count + 1)
    model = nn.Sequential(Block(), Norm(), nn.Linear(4, 1))
    run.train(model, loss_of)
    run.note("buffers", [(k, type(b).__name__, b) for k, b in model.named_buffers()])


@way(needs=(2, 0))
def graphs_that_the_compiler_exports(run):
    from torch import _dynamo as dynamo
    model = model_of()
    for i in range(2):
        with run.dump(model):
            loss_of(model, i).backward()
            graph, _guards = dynamo.export(model, X) if VERSION < (2, 2) else dynamo.export(model)(X)
            aten, _guards = dynamo.export(model, X, aten_graph=True) if VERSION < (2, 2) else \
                dynamo.export(model, aten_graph=True)(X)
        run.note(f"code {i}", (graph.code, aten.code, graph(X)))
    run.note_model(model)


@way(needs=(2, 1))
def parts_of_a_model_exported_while_the_whole_is_watched(run):
    model = model_of()
    export = torch.export.export
    with run.dump(model):
        loss_of(model, 0).backward()
        programs = [export(model[0], (X,)), export(model[2], (X,))]
        drafted = getattr(torch.export, "draft_export", None)
        programs += [] if drafted is None else [drafted(model, (X,))]
        trained = getattr(torch.export, "export_for_training", None)
        programs += [] if trained is None else [trained(model, (X,))]
    run.note("graphs", [str(p.graph) for p in programs])
    run.train(model, loss_of)


@way
def graphs_of_onnx_and_of_counters_of_operations(run):
    """They trace a model past torch.jit.trace."""
    model, kept = model_of(), []
    for i in range(2):
        with run.dump(model):
            loss_of(model, i).backward()
            graph, out = torch.jit._get_trace_graph(model, (X,))
            kept.append((str(graph), out))
            options = {} if VERSION < (2, 5) else {"dynamo": False}
            file = os.path.abspath(f"model{i}.onnx")
            run.raises(f"exported {i}", lambda file=file, options=options: torch.onnx.export(model, (X,), file, **options))
            kept.append(read(file))
    run.note("graphs", kept)
    run.train(model, loss_of)


@way(needs=(2, 1))
def graphs_with_their_backward_exported_ahead_of_time(run):
    from torch._functorch.aot_autograd import aot_export_module
    model = model_of()
    whole = Calls(lambda self, x: (self.inner(x).pow(2).mean(),), inner=model)
    with run.dump(model):
        loss_of(model, 0).backward()
        forward, signature = aot_export_module(whole, (X,), trace_joint=False)
        joint, _ = aot_export_module(whole, (X,), trace_joint=True, output_loss_index=0)
    run.note("code", (forward.code, joint.code, str(signature)[:500]))
    run.train(model, loss_of)
