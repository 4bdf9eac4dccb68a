# SPDX-License-Identifier: MIT
"""Ranges of the domain `communication` around the calls of torch.distributed, for every backend
(gloo, in C++, can be hooked nowhere else), with the message of Ascend's frameworks, followed by the
root, the reduction and the members of the group.

A range covers its call; the range of an asynchronous call on CPU tensors lasts until its work has been
waited for, or is freed.  Nested calls are part of the outer one.  Backends that mark by themselves
(hccl) keep doing so.

For the detection of hangs the recorder also gets the sequence number of a call in its group, and
whether the call is asynchronous: such a call can hang only once a thread waits for it.

DistributedDataParallel reduces gradients in C++, without the functions of Python.  Where it would use
its own reduction over gloo it gets a hook that does the same by all_reduce, with bit-identical
results.
"""
import ctypes
import functools
import inspect
import sys
import threading
import weakref

import msprobe_functional
from msprobe_marks import guarded, range_end, range_start

DOMAIN = "communication"
TYPES = {
    "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8",
    "float16": "fp16", "float32": "fp32", "float64": "fp64", "bfloat16": "bfp16",
}
MESSAGE_MAX = 255  # the limit of MSPTI
# Function, official name, tensor argument, peer arguments (one of them is given) and their key.
CALLS = (
    ("all_reduce", "HcclAllreduce", "tensor", (), None),
    ("all_reduce_coalesced", "HcclAllreduce", "tensors", (), None),
    ("broadcast", "HcclBroadcast", "tensor", ("src", "group_src"), "rootRank"),
    ("_broadcast_coalesced", "HcclBroadcast", "tensors", ("src",), "rootRank"),
    ("reduce", "HcclReduce", "tensor", ("dst", "group_dst"), "rootRank"),
    ("all_gather", "HcclAllGather", "tensor", (), None),
    ("all_gather_coalesced", "HcclAllGather", "input_tensor_list", (), None),
    ("all_gather_into_tensor", "HcclAllGather", "input_tensor", (), None),
    ("all_gather_single", "HcclAllGather", "input_tensor", (), None),
    ("_all_gather_base", "HcclAllGather", "input_tensor", (), None),
    ("gather", "HcclGather", "tensor", ("dst", "group_dst"), "rootRank"),
    ("gather_single", "HcclGather", "tensor", ("dst", "group_dst"), "rootRank"),
    ("gather_into_tensor", "HcclGather", "tensor", ("dst", "group_dst"), "rootRank"),
    ("scatter", "HcclScatter", "tensor", ("src", "group_src"), "rootRank"),
    ("reduce_scatter", "HcclReduceScatter", "output", (), None),
    ("reduce_scatter_tensor", "HcclReduceScatter", "output", (), None),
    ("reduce_scatter_single", "HcclReduceScatter", "output", (), None),
    ("_reduce_scatter_base", "HcclReduceScatter", "output", (), None),
    ("all_to_all_single", "HcclAlltoAll", "input", (), None),
    ("all_to_all", "HcclAlltoAll", "input_tensor_list", (), None),
    ("send", "HcclSend", "tensor", ("dst", "group_dst"), "destRank"),
    ("isend", "HcclSend", "tensor", ("dst", "group_dst"), "destRank"),
    ("recv", "HcclRecv", "tensor", ("src", "group_src"), "srcRank"),
    ("irecv", "HcclRecv", "tensor", ("src", "group_src"), "srcRank"),
    ("barrier", "HcclBarrier", None, (), None),
    ("monitored_barrier", "HcclBarrier", None, (), None),
    # first call of DistributedDataParallel: verifies that all ranks have the same parameters
    ("_verify_params_across_processes", "HcclAllGather", None, (), None),
)
# Names of the parameters of C++ functions, which have no signature.
PARAMETERS = {
    "_broadcast_coalesced": ("group", "tensors", "buffer_size", "src"),
    "_verify_params_across_processes": ("group", "tensors", "logger"),
}


def is_compiling():
    """Tells whether torch.compile traces the code instead of running it; marks must not be traced."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    ask = getattr(compiler, "is_compiling", None)
    return ask is not None and ask()


def names_of_groups(c10d):
    """Returns a function for the name of a group, which is the same on all of its ranks."""

    def name(group):
        known = getattr(c10d, "_pg_names", None)
        if known is None:
            known = getattr(getattr(c10d, "_world", None), "pg_names", {})
        if group is None:
            group = getattr(getattr(c10d, "GroupMember", None), "WORLD", None)
        return known.get(group) or "default_pg"

    return name


def facts_of_groups(c10d):
    """Returns a function for the fields of a group in a message: name, size and members, cached."""
    name_of = names_of_groups(c10d)
    known = weakref.WeakKeyDictionary()

    def facts(group):
        if group is None:
            group = getattr(getattr(c10d, "GroupMember", None), "WORLD", None)
        try:
            return known[group]
        except (KeyError, TypeError):
            pass
        ranks = getattr(c10d, "get_process_group_ranks", None)
        size = c10d.get_world_size(group)
        try:
            members = list(ranks(group)) if ranks else list(c10d._pg_group_ranks[group])
        except Exception:
            members = list(range(size)) if group is c10d.GroupMember.WORLD else []
        found = (name_of(group), size, " ".join(str(r) for r in members))
        try:
            known[group] = found
        except TypeError:
            pass
        return found

    return facts


def message(official, tensor, is_all, group, more, share=1):
    """Makes the message of a call.  `tensor` may be a list with one for each rank: then the count is
    that of the first, or with `is_all` the sum.  `share`: number of ranks that share the tensor, where
    the count is that of one rank."""
    first = tensor[0] if isinstance(tensor, (list, tuple)) and tensor else tensor
    count = first.numel() if hasattr(first, "numel") else 0
    if is_all and first is not tensor:
        count = sum(t.numel() for t in tensor)
    count //= share
    kind = TYPES.get(str(getattr(first, "dtype", "")).replace("torch.", ""), "na")
    name, size, ranks = group
    parts = [("count", count), ("dataType", kind), ("groupName", name), ("opName", official),
             ("streamId", 0), *more, ("groupSize", size)]
    quote = '\\"'
    text = ",".join(f"{quote}{k}{quote}: {quote}{v}{quote}" for k, v in parts)
    listed = f",{quote}groupRanks{quote}: {quote}{ranks}{quote}"
    if ranks and len(text) + len(listed) + 2 <= MESSAGE_MAX:
        text += listed
    return "{" + text + "}"


class Arguments:
    """Finds an argument by name, passed by keyword or by position."""

    def __init__(self, call):
        try:
            names = list(inspect.signature(call).parameters)
        except (TypeError, ValueError):
            names = PARAMETERS.get(getattr(call, "__name__", ""), [])
        self.place = {name: at for at, name in enumerate(names)}

    def get(self, args, kwargs, name):
        if name in kwargs:
            return kwargs[name]
        at = self.place.get(name)
        return args[at] if at is not None and at < len(args) else None


def reduction(op):
    """Returns the name of a reduction, which is an enumeration or an object that holds one."""
    op = getattr(op, "op", op)
    name = str(getattr(op, "name", op)).rsplit(".", 1)[-1].lower()
    return name if name.isidentifier() else "user"


class Recorder:
    """Functions that pass facts about a range to the recorder, beyond its text."""

    def __init__(self):
        program = ctypes.CDLL(None)
        self.call = self._function(program, "mstx_comm_framework_call", ctypes.c_uint64, ctypes.c_uint32)
        self.asynchronous = self._function(program, "mstx_comm_framework_async", ctypes.c_uint64)
        self.wait = self._function(program, "mstx_comm_framework_wait", ctypes.c_uint64)
        self.begin_wait = self._function(program, "mstx_comm_framework_wait_begin", result=ctypes.c_uint64)
        self.end_wait = self._function(program, "mstx_comm_end", ctypes.c_uint64)

        self.sample_use = self._function(program, "mstx_use_sample")
        self._count = self._function(program, "mstx_counter_int", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)

    def count(self, name, value):
        """Records the value of a counter in the default domain; 0 is not recorded."""
        if value:
            self._count(None, name.encode(), value)

    @staticmethod
    def _function(program, name, *types, result=None):
        """Looks a function up; without the recorder in the process it does nothing."""
        try:
            function = getattr(program, name)
        except AttributeError:
            return lambda *_: None
        function.argtypes = types
        function.restype = result
        return function


def counter(peer_key):
    """Returns a function that counts collective or point-to-point calls on each group."""
    peers = "p2p" if peer_key in ("destRank", "srcRank") else "all"

    def count(counts, group):
        key = (peers, group[0])
        n = counts.get(key, 0)
        counts[key] = n + 1
        return n

    return count


def describer(call, row, facts, counts):
    _, official, key, peers, peer_key = row
    count = counter(peer_key)
    arguments = Arguments(call)
    reduces = "op" in arguments.place and "reduce" in row[0]
    op_unless_given = inspect.signature(call).parameters["op"].default if reduces else None

    def describe(args, kwargs):
        get = functools.partial(arguments.get, args, kwargs)
        given = [v for v in map(get, peers) if v is not None]
        more = [(peer_key, given[0])] if given else []
        if reduces:
            op = get("op")
            more.append(("reduceOp", reduction(op_unless_given if op is None else op)))
        tensor = get(key) if key else None
        group = facts(get("group"))
        text = message(official, tensor, key == "tensors", group, more)
        return text, tensor, count(counts, group)

    return describe


class Pending:
    """Ranges that stay open until the work that a call returned has been waited for."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.opened = {}
        self.watched = set()
        self._end = guarded(self._end_range, is_end=True)
        self._begin_wait = guarded(self._tell_wait)

    def _end_range(self, key):
        opened, finalizer = self.opened.pop(key, (0, None))
        if opened:
            finalizer.detach()
            range_end(opened, DOMAIN)

    def hold(self, work, opened):
        """Keeps a range open until the work is waited for or freed.  False: it has to end now."""
        key = id(work)
        self._end(key)  # a tensor may be sent again before the first send is waited for
        try:
            finalizer = weakref.finalize(work, self._end, key)
        except TypeError:
            return False
        finalizer.atexit = False
        self.opened[key] = (opened, finalizer)
        self.recorder.asynchronous(opened)
        return True

    def keep(self, work, opened):
        """Keeps a range open for a work object, whose own `wait` ends the range."""
        try:
            self._watch(type(work))
        except (TypeError, AttributeError):
            return False
        return self.hold(work, opened)

    def wait(self, work, call):
        """Runs `call`, which waits for the work, then ends the range."""
        self._begin_wait(work)
        waiting = self.recorder.begin_wait()
        try:
            return call()
        finally:
            self._end(id(work))
            self.recorder.end_wait(waiting)

    def until_done(self, work, ended=lambda: None):
        """Returns a future of the result; the range lasts until then and counts as waited for."""
        self._begin_wait(work)

        def done(future):
            self._end(id(work))
            ended()
            return future.value()[0]

        return work.get_future().then(done)

    def _tell_wait(self, work):
        opened, _ = self.opened.get(id(work), (0, None))
        if opened:
            self.recorder.wait(opened)

    def _watch(self, kind):
        if kind in self.watched:
            return
        wait = kind.wait

        @functools.wraps(wait)
        def waited(work, *args, **kwargs):
            return self.wait(work, lambda: wait(work, *args, **kwargs))

        kind.wait = waited
        self.watched.add(kind)


def is_on_cpu(tensor):
    first = tensor[0] if isinstance(tensor, (list, tuple)) and tensor else tensor
    return getattr(getattr(first, "device", None), "type", None) == "cpu"


def ranged(call, describe, keep, inside, recorder):
    """Returns `call` with a range around it.  `keep` gets the result of the call and returns true
    if it keeps the range open."""

    def begin_range(args, kwargs):
        opened = 0
        try:
            if getattr(inside, "call", False) or is_compiling():
                return 0, None
            text, tensor, number = describe(args, kwargs)
            opened = range_start(text, DOMAIN)
            if opened:
                recorder.call(opened, number)
            return opened, tensor
        except Exception:
            if opened:
                range_end(opened, DOMAIN)
            return 0, None  # invalid arguments: the call itself will raise

    begin = guarded(begin_range, (0, None))
    can_end_later = guarded(lambda work, tensor, opened: is_on_cpu(tensor) and keep(work, opened), False)

    @functools.wraps(call)
    def marked(*args, **kwargs):
        opened, tensor = begin(args, kwargs)
        if not opened:
            return call(*args, **kwargs)
        inside.call = True
        work = None
        try:
            work = call(*args, **kwargs)
        finally:
            inside.call = False
            if work is None or not can_end_later(work, tensor, opened):
                range_end(opened, DOMAIN)
        return work

    return marked


class BackwardWait:
    """The wait of DistributedDataParallel for its reductions.  It waits in C++ when backward is done; a
    callback that is queued at the first reduction runs right before that."""

    def __init__(self, torch, recorder):
        self.engine = getattr(getattr(torch.autograd, "Variable", None), "_execution_engine", None)
        self.recorder, self.lock = recorder, threading.Lock()
        self.left, self.waiting, self.is_queued = 0, 0, False
        self.begun = guarded(self._count)
        self.ended = guarded(self._discount, is_end=True)
        self.computed = guarded(self._wait, is_end=True)

    def _count(self):
        """Counts a reduction of this backward."""
        with self.lock:
            self.left += 1
            queue, self.is_queued = not self.is_queued, True
        if queue:
            try:
                self.engine.queue_callback(self.computed)
            except Exception:
                pass  # another version of torch: its wait is not recorded

    def _wait(self):
        waiting = self.recorder.begin_wait()
        with self.lock:
            self.is_queued = False
            if self.left:
                waiting, self.waiting = 0, waiting
        self.recorder.end_wait(waiting)

    def _discount(self):
        with self.lock:
            self.left -= 1
            waiting = 0
            if not self.left:
                waiting, self.waiting = self.waiting, 0
        self.recorder.end_wait(waiting)


class Gradients:
    """The gradient reduction of DistributedDataParallel, in Python, where it can be recorded."""

    def __init__(self, ddp, c10d, pending, backward):
        self.group, self.pending, self.c10d = ddp.process_group, pending, c10d
        self.backward = backward
        self.size = c10d.get_world_size(self.group)
        self.model = weakref.ref(ddp)
        self.left = None  # inside of join(): the reduction that counts the ranks left
        self.theirs = None

    def sharers(self):
        """Returns the divisor of the gradients: the number of ranks, or of the ranks left inside of
        join() where join() is configured so."""
        ddp = self.model()
        joined = getattr(getattr(ddp, "_join_config", None), "enable", False)
        if not joined or getattr(ddp, "_divide_by_initial_world_size", True) or not self.left:
            return self.size
        self.left.wait()
        return int(self.left.result()[0].item())

    def reduce(self, _, bucket):
        if self.theirs:
            return self.theirs[1](self.theirs[0], bucket)
        buffer = bucket.buffer()
        if buffer.is_sparse:
            buffer.div_(self.sharers())
        else:
            buffer.mul_(1.0 / self.sharers())
        self.backward.begun()
        return self.pending.until_done(
            self.c10d.all_reduce(buffer, group=self.group, async_op=True), self.backward.ended)

    @staticmethod
    def fits(ddp, c10d):
        """Tells whether the results are bit-identical.  DistributedDataParallel divides gradients that
        are views of the buckets, and multiplies others by the reciprocal.  The backend on the CPU is
        gloo, also where a group has a backend for each kind of device."""
        size = c10d.get_world_size(ddp.process_group)
        return (all(p.device.type == "cpu" for p in ddp.parameters())
                and c10d.get_backend(ddp.process_group) not in ("mpi", "ucc")
                and (not ddp.gradient_as_bucket_view or size & (size - 1) == 0))


def watch_joins(seen):
    """Keeps the reduction at the start of each step inside of join(), which counts the ranks left."""
    join = sys.modules.get("torch.distributed.algorithms.join")
    if join is None:
        return
    notify = join.Join.notify_join_context

    @functools.wraps(notify)
    def notified(joinable):
        work = notify(joinable)
        ours = seen.get(joinable)
        if ours:
            ours.left = work
        return work

    join.Join.notify_join_context = staticmethod(notified)


def attach_data_parallel(torch, c10d, pending):
    kind = getattr(torch.nn.parallel, "DistributedDataParallel", None)
    if not hasattr(kind, "register_comm_hook"):
        return
    forward, register = kind.forward, kind.register_comm_hook
    seen = weakref.WeakKeyDictionary()  # None: keeps its own reduction
    watch_joins(seen)

    def begin(ddp):
        seen[ddp] = None
        try:
            if Gradients.fits(ddp, c10d):
                ours = Gradients(ddp, c10d, pending, BackwardWait(torch, pending.recorder))
                register(ddp, None, ours.reduce)
                seen[ddp] = ours
                # remove our hook from the list of hooks, which are copied and saved with the module
                listed = getattr(ddp, "_comm_hooks", None)
                if listed:
                    listed.pop()
        except Exception:
            pass  # another kind of module: its calls are not recorded

    @guarded
    def begin_once(ddp):
        if not is_compiling() and ddp not in seen:
            begin(ddp)

    @functools.wraps(forward)
    def begun(ddp, *args, **kwargs):
        begin_once(ddp)
        return forward(ddp, *args, **kwargs)

    def told(method):
        """Lets the program register its own hook as if ours were not registered."""

        @functools.wraps(method)
        def wrapped(ddp, *args, **kwargs):
            if seen.get(ddp) is None:
                seen[ddp] = None
                return method(ddp, *args, **kwargs)
            ours = seen[ddp]

            def hand_over(state, hook):
                ddp._check_comm_hook(hook)
                ours.theirs = (state, hook)

            if method is register and not ours.theirs:
                return hand_over(*args, **kwargs)
            return method(ddp, *args, **kwargs)

        return wrapped

    kind.forward = begun
    for name in ("register_comm_hook", "_register_builtin_comm_hook", "_register_fused_optim"):
        if hasattr(kind, name):
            setattr(kind, name, told(getattr(kind, name)))


def attach(torch):
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available():
        return
    c10d = sys.modules.get("torch.distributed.distributed_c10d", distributed)
    facts, inside, recorder, counts = facts_of_groups(c10d), threading.local(), Recorder(), {}
    pending = Pending(recorder)

    def text_of(official, peer_key, tensor, group, more, op, share):
        found = facts(group)
        if op is not None:
            more = [*more, ("reduceOp", reduction(op))]
        text = message(official, tensor, True, found, more, share)
        return text, tensor, counter(peer_key)(counts, found)

    def operator_ranged(call, describe, keep):
        return ranged(call, describe, keep, inside, recorder)

    for row in CALLS:
        call = getattr(c10d, row[0], getattr(distributed, row[0], None))
        if call is None:
            continue
        marked = ranged(call, describer(call, row, facts, counts), pending.keep, inside, recorder)
        for module in (c10d, distributed):
            if getattr(module, row[0], None) is call:
                setattr(module, row[0], marked)
    attach_data_parallel(torch, c10d, pending)
    msprobe_functional.attach(torch, c10d, operator_ranged, text_of, pending)
