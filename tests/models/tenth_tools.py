# SPDX-License-Identifier: MIT
"""Mistakes as edits of code, whose truth is read from the edited statement.

A family of the tenth set has two lists of edits: `mistakes` and `harmless`. An edit is (where, name, old, new) and,
for a mistake, more operators that are right as well (behind an @: anywhere) and "back" where gradients alone change. `where` is the class
of a module (its last instance), "Kind*" (each instance), "Kind@path", "" (the model), "loss" (the function of the
loss) or "Kind#function" (a function of the file that holds the class). Right is an operator or a module that the
edited statement calls, before or after the edit, at that place.
"""
import ast
import inspect
import re
import sys
import textwrap

from changes import ANY, Change, anywhere, on_model
from ninth_edits import compiled, root
from unseen_changes import clean

SIGNS = {"Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "Pow": "pow", "MatMult": "matmul", "Mod": "mod",
         "FloorDiv": "floordiv", "USub": "neg", "Invert": "invert", "Eq": "eq", "NotEq": "ne", "Lt": "lt", "LtE": "le",
         "Gt": "gt", "GtE": "ge", "BitAnd": "and", "BitOr": "or"}
OTHER_NAMES = {"truediv": "|div_?", "invert": "|bitwise_not|logical_not", "neg": "|neg", "and": "|bitwise_and",
               "or": "|bitwise_or"}


class Edit:
    def __init__(self, where, name, old, new, ops="", back=""):
        self.where, self.name, self.back = where, name, back
        self.ops = "|".join(n for n in ops.split("|") if not n.startswith("@"))
        self.far = [n[1:] for n in ops.split("|") if n.startswith("@")]
        self.old, self.new = (t.replace("\n        ", "\n    ") if self.of_method() else t for t in (old, new))

    def of_method(self):
        return self.where != "loss" and "#" not in self.where


# ---- what a statement calls ----------------------------------------------------------------------

def covered(text, part):
    """Simple statements, and heads of others, on the lines of a part of a text."""
    first = text[:text.index(part)].count("\n") + 1
    last = first + part.count("\n")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.stmt):
            heads = [node] if not hasattr(node, "body") else [getattr(node, k) for k in ("test", "iter") if hasattr(node, k)]
            yield from (h for h in heads if h.lineno <= last and h.end_lineno >= first)


def attribute_path(node):
    """a.b of self.a.b; None where it does not begin with self."""
    names = []
    while isinstance(node, (ast.Attribute, ast.Subscript)):
        if isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
        node = node.value
    return ".".join(names) if isinstance(node, ast.Name) and node.id == "self" else None


def called_names(statements):
    """Names of operators, and paths behind self that are called."""
    ops, paths = set(), set()
    for node in (n for s in statements for n in ast.walk(s)):
        sign = getattr(node, "op", None)
        if sign is not None and type(sign).__name__ in SIGNS:
            ops.add(SIGNS[type(sign).__name__])
        if isinstance(node, ast.Compare):
            ops.update(SIGNS[type(s).__name__] for s in node.ops if type(s).__name__ in SIGNS)
        if isinstance(node, ast.Subscript):
            ops.add("setitem" if isinstance(node.ctx, ast.Store) else "getitem")
        if isinstance(node, ast.Call):
            path = attribute_path(node.func)
            if path:
                paths.add(path)
            if isinstance(node.func, ast.Attribute):
                ops.add(node.func.attr)
            if isinstance(node.func, ast.Name):
                ops.add("add" if node.func.id == "sum" else node.func.id)
    return ops, paths


def with_functions(ops, function):
    """Names, and for those of functions beside the edited one, what these call."""
    more = set()
    for name in ops:
        other = function.__globals__.get(name)
        if inspect.isfunction(other) and other.__module__ == function.__module__:
            more |= called_names(ast.parse(source_of(other)).body)[0]
    return ops | more


def operators(names, more=""):
    plain = {n for n in more.split("|") if n.isidentifier()}
    found = [rf"(?:__[ri]?)?{n.strip('_')}_*{OTHER_NAMES.get(n, '')}" for n in sorted({*names, *plain})]
    return "|".join(found + [n for n in more.split("|") if n and n not in plain]) or "nothing"


def source_of(function):
    text = textwrap.dedent(inspect.getsource(function))
    return text[text.index("def "):]


def method_with(owner, old):
    """Name and function of the method of a class that holds a text, forward before others."""
    for kind in owner.__mro__:
        for name, value in sorted(vars(kind).items(), key=lambda item: item[0] != "forward"):
            function = inspect.unwrap(value) if callable(value) else None
            if inspect.isfunction(function) and "def " in inspect.getsource(function) and old in source_of(function):
                return name, function
    raise ValueError(f"{owner.__name__}: no {old!r}")


def calls_of(function, old, new):
    """What the statements call that an edit changes, before and after it."""
    text = source_of(function)
    if old not in text:
        raise ValueError(f"no {old!r}")
    after = text.replace(old, new, 1)
    ops, paths = called_names(covered(text, old))
    at = text.index(old)
    lines = after[:at].count("\n"), after[:at + len(new)].count("\n")
    part = "\n".join(after.split("\n")[lines[0]:lines[1] + 1])
    more = called_names(covered(after, part))
    return with_functions(ops | more[0], function), paths | more[1]


def method_calls(owner, old, new):
    """As calls_of, for a method of a class, with the methods of its own that the statement calls looked into."""
    ops, paths = calls_of(method_with(owner, old)[1], old, new)
    for path in list(paths):
        method = getattr(owner, path, None)
        if inspect.isfunction(method):
            found = called_names(ast.parse(source_of(method)).body)
            ops, paths = ops | found[0], paths | found[1]
    return ops, paths


# ---- places --------------------------------------------------------------------------------------

def instances(model, where):
    """Paths of the modules that `where` names."""
    kind, _, path = where.partition("@")
    if kind.rstrip("*") == "":
        return [""]
    found = [n for n, m in model.named_modules() if type(m).__name__ == kind.rstrip("*") and (not path or n == path)]
    return found if kind.endswith("*") else found[-1:]


def right_at(path, ops, children, direction):
    own = rf"^(?:[A-Za-z]+\.(?:{ops})\.\d+\.{direction}|Module\.\S+\.{direction}(?:\.\d+)?) @ {re.escape(path)}$"
    own = root(ops, direction) if not path else own
    kids = [rf" @ {re.escape((path + '.' if path else '') + c)}(?:\.\d+)?$" for c in children]
    return "|".join([own, *(rf"\.{direction}(?:\.\d+)?{k}" for k in kids)])


def module_edit(model, e):
    paths = instances(model, e.where)
    if not paths:
        raise ValueError(f"{e.where}: no such module")
    ops, calls = set(), set()
    for path in paths:
        found = method_calls(type(model.get_submodule(path)), e.old, e.new)
        ops, calls = ops | found[0], calls | found[1]
    direction = ANY if e.back else "forward"
    names = operators(ops, e.ops)
    def kids(path):
        module = model.get_submodule(path)
        return [c for c in calls if hasattr(module, c.split(".")[0])]
    truth = "|".join(right_at(p, names, kids(p), direction) for p in paths)
    if e.back:
        truth += "|" + "|".join(rf"\.(?:backward|parameters_grad)(?:\.\d+)? @ {re.escape(p)}(?:\.\S+)?$" for p in paths if p)
    def change(m):
        for path in paths:
            module = m.get_submodule(path)
            name, function = method_with(type(module), e.old)
            setattr(module, name, compiled(function, e.old, e.new).__get__(module))
    return on_model(change), truth


def loss_edit(family, e):
    ops, _ = calls_of(family.loss, e.old, e.new)
    def apply(step):
        step.loss = compiled(family.loss, e.old, e.new)
    return apply, root(operators(ops, e.ops), ANY if e.back else "forward") + (r"|\.backward\.\d+ @ $" if e.back else "")


def function_edit(model, e):
    kind, _, name = e.where.partition("#")
    owner = type(model.get_submodule(instances(model, kind)[0])) if kind else type(model)
    names = vars(sys.modules[owner.__module__])
    plain = inspect.unwrap(names[name])
    ops, _ = calls_of(plain, e.old, e.new)
    def change(m):
        names[name] = compiled(plain, e.old, e.new)
    return on_model(change), rf"^[A-Za-z]+\.(?:{operators(ops, e.ops)})\.\d+\.{ANY if e.back else 'forward'} @ "


def applied(family, model, e):
    if e.where == "loss":
        return loss_edit(family, e)
    return function_edit(model, e) if "#" in e.where else module_edit(model, e)


def mistakes_of(family, model):
    for row in getattr(family, "mistakes", ()):
        e = Edit(*row)
        apply, truth = applied(family, model, e)
        truth = "|".join([truth, *map(anywhere, e.far)])
        yield Change(e.name, f"{e.where or 'model'}: {e.new or 'without ' + e.old}", apply, truth, "code")


def harmless_of(family, model):
    for row in getattr(family, "harmless", ()):
        e = Edit(*row)
        yield clean(e.name, f"{e.where or 'model'}: {e.new}", applied(family, model, e)[0])
