"""ARCHITECTURE.md says which part may import what; the source keeps to it."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "vestnik"
MODULES = sorted(PACKAGE.rglob("*.py"))


def tables(text: str) -> dict[str, list[list[str]]]:
    """The Markdown tables in `text`, each by the title of its first column, as rows of cells."""
    found: dict[str, list[list[str]]] = {}
    rows: list[list[str]] | None = None
    for line in text.splitlines():
        if not line.startswith("|"):
            rows = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if rows is None:
            rows = found.setdefault(cells[0], [])
        elif not set(cells[0]) <= set("-:"):
            rows.append(cells)
    return found


def names(cell: str) -> set[str]:
    return {name.strip() for name in cell.split(",")} - {"-"}


TABLES = tables((ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8"))
ALLOWED = {row[0]: names(row[1]) for row in TABLES["part"]}
HOMES = {row[0]: names(row[1]) for row in TABLES["module"]}
LOADED_WHEN_USED = {row[0] for row in TABLES["module"] if row[2] == "when used"}


def part_of(module: str) -> str:
    """`vestnik.model.boxes` is in part `model`; the package's own names are in part `vestnik`."""
    first = [*module.split("."), ""][1]
    is_part = first and ((PACKAGE / first).is_dir() or (PACKAGE / f"{first}.py").is_file())
    return first if is_part else "vestnik"


class Import(NamedTuple):
    """At `line`, the module `target` is imported, or a name in it."""

    line: int
    target: str


def imports(tree: ast.AST, package: str) -> Iterator[Import]:
    """Every import anywhere in the module `tree` that lives in `package`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (Import(node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            yield from (Import(node.lineno, f"{base}.{alias.name}") for alias in node.names)


def offences(tree: ast.AST, module: str, package: str) -> list[str]:
    """The imports of `module` that the tables do not allow, each with its line and the reason."""
    here = part_of(module)
    if here not in ALLOWED:
        return [f"{module}: {here} is not in the table of parts"]
    wrong = []
    for line, target in imports(tree, package):
        top = target.partition(".")[0]
        if top == "vestnik":
            there = part_of(target)
            if there not in {here, "errors"} | ALLOWED[here] and "anything" not in ALLOWED[here]:
                wrong.append(f"{module}:{line}: {here} may not import {there}")
        elif top not in sys.stdlib_module_names:
            if top not in HOMES:
                wrong.append(f"{module}:{line}: {top} is not in the table of modules")
            elif here not in HOMES[top]:
                wrong.append(f"{module}:{line}: {top} may not be imported in {here}")
    return wrong


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_keep_to_the_tables(path: Path) -> None:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module = ".".join(part for part in parts if part != "__init__")
    package = ".".join(parts[:-1])
    assert offences(ast.parse(path.read_text(encoding="utf-8")), module, package) == []


def test_the_table_names_the_parts_that_exist() -> None:
    files = {path.stem for path in PACKAGE.glob("*.py")} - {"__init__"}
    folders = {path.parent.name for path in PACKAGE.glob("*/*.py")}
    assert set(ALLOWED) == files | folders | {"vestnik"}


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("from vestnik.matching import Matcher", "model may not import matching"),
        ("from ..matching.naive import match", "model may not import matching"),
        ("from .. import matching", "model may not import matching"),
        ("import vestnik.cli", "model may not import cli"),
        ("from vestnik import Event", "model may not import vestnik"),
        ("def f() -> None:\n    import numpy as np", "numpy may not be imported in model"),
        ("if TYPE_CHECKING:\n    from pyarrow import Table", "pyarrow may not be imported in model"),
        ("import polars", "polars is not in the table of modules"),
    ],
)
def test_an_offence_is_seen(source: str, reason: str) -> None:
    (offence,) = offences(ast.parse(source), "vestnik.model.boxes", "vestnik.model")
    assert offence.endswith(reason)


@pytest.mark.parametrize(
    "source", ["import ast", "from . import sets", "from ..errors import VestnikError", "import msgspec.json"]
)
def test_what_is_allowed_is_no_offence(source: str) -> None:
    assert offences(ast.parse(source), "vestnik.model.boxes", "vestnik.model") == []


MOST_OF_ITS_PART = 5
"""Modules of its own part that a module of one of these parts may import. More of them is more than one idea."""
NARROW_PARTS = ("broker", "recovery")
ROOTS = {
    "vestnik.broker.core": "makes all other parts of a broker, and says which of them handles which message",
    "vestnik.recovery.recovery": "makes all other parts of the recovery of a broker, and decides nothing of theirs",
}
"""The modules that may import more, each with the reason: what they wire together does not know what else is wired."""
NARROW = [path for path in MODULES if path.parent.name in NARROW_PARTS]


def of_its_part(tree: ast.AST, module: str, package: str) -> set[str]:
    """The other modules of its part that `module` imports anything from."""
    here = package.split(".")
    targets = [target.split(".") for _, target in imports(tree, package)]
    return {".".join(one[:3]) for one in targets if one[:2] == here and len(one) > 2} - {module}


def wide(tree: ast.AST, module: str, package: str) -> list[str]:
    """What `module` imports of its part, if that is too much."""
    found = sorted(of_its_part(tree, module, package))
    return found if len(found) > MOST_OF_ITS_PART else []


@pytest.mark.parametrize("path", NARROW, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_few_others_of_its_part(path: Path) -> None:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    module, package = ".".join(parts), ".".join(parts[:-1])
    found = wide(ast.parse(path.read_text(encoding="utf-8")), module, package)
    assert bool(found) == (module in ROOTS), f"{module} imports {', '.join(found) or 'few others, and is no root'}"


def test_the_roots_exist() -> None:
    assert set(ROOTS) <= {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in NARROW}


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from vestnik.recovery.a import A, B\nfrom vestnik.recovery.b import C", 0),
        ("\n".join(f"from vestnik.recovery.m{n} import A" for n in range(5)), 0),
        ("\n".join(f"from vestnik.recovery.m{n} import A" for n in range(6)), 6),
        ("\n".join(f"from .m{n} import A" for n in range(6)), 6),
        ("from . import a, b, c, d, e, f", 6),
        ("def f() -> None:\n    from . import a, b, c, d, e, f", 6),
        ("\n".join(f"from vestnik.broker.m{n} import A" for n in range(6)), 0),
    ],
)
def test_a_module_of_many_ideas_is_seen(source: str, count: int) -> None:
    assert len(wide(ast.parse(source), "vestnik.recovery.x", "vestnik.recovery")) == count


ROOMS = [path for path in MODULES if path.parent.name in ("broker", "recovery", "observe", "session")]
CHANGES = frozenset(
    "append appendleft clear discard extend insert pop popitem popleft remove setdefault update".split()
)
"""The methods that change a list, a set or a dictionary, but `add`: classes of the project have that, too."""


def is_own(base: ast.expr) -> bool:
    return isinstance(base, ast.Name) and base.id in ("self", "cls")


def field_of(target: ast.expr) -> ast.Attribute | None:
    """The field that is written when something is assigned to `target`, to an item of it, or deleted."""
    while isinstance(target, ast.Subscript):
        target = target.value
    return target if isinstance(target, ast.Attribute) else None


def written(tree: ast.AST) -> Iterator[ast.Attribute]:
    """Every field that is written: by assignment, by deletion, or by a method that changes what it holds."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CHANGES:
            targets = [node.func.value]
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                field = field_of(one)
                if field is not None:
                    yield field


def declared(tree: ast.AST) -> set[str]:
    """The fields of the classes of a module."""
    bodies = [node.body for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    stated = {
        one.target.id
        for body in bodies
        for one in body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    return stated | {field.attr for field in written(tree) if is_own(field.value)}


def meddling(tree: ast.AST) -> list[str]:
    """The fields of classes of other modules that a module writes."""
    own = declared(tree)
    return [ast.unparse(one) for one in written(tree) if not is_own(one.value) and one.attr not in own]


@pytest.mark.parametrize("path", ROOMS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_object_writes_the_fields_of_another(path: Path) -> None:
    assert meddling(ast.parse(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    ("source", "fields"),
    [
        ("reader.window = 1", ["reader.window"]),
        ("reader.window += 1", ["reader.window"]),
        ("a, self._b.c = 1, 2", ["self._b.c"]),
        ("client.held[1][2] = 3", ["client.held"]),
        ("del client.held[1]", ["client.held"]),
        ("client.held.pop(1)", ["client.held"]),
        (
            "class A:\n    def f(self) -> None:\n        self.held = 1\n        self.other.kept.append(1)",
            ["self.other.kept"],
        ),
        ("class A:\n    held: int\ndef f(one: A) -> None:\n    one.held = 1", []),
        ("known = reader.window", []),
        ("client.take(1)", []),
    ],
)
def test_meddling_is_seen(source: str, fields: list[str]) -> None:
    assert meddling(ast.parse(source)) == fields


@pytest.mark.parametrize(
    "action",
    [
        "import vestnik",
        "from vestnik.cli import main\ntry:\n    main(['--help'])\nexcept SystemExit as end:\n    assert not end.code",
    ],
    ids=["import vestnik", "vestnik --help"],
)
def test_nothing_slow_is_loaded_before_it_is_used(action: str) -> None:
    report = "import sys\nprint(*sorted(sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", f"{action}\n{report}"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    loaded = {name.partition(".")[0] for name in done.stderr.splitlines()[-1].split()}
    assert loaded & LOADED_WHEN_USED == set()
