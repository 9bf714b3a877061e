"""Every example in README.md and docs/ runs.

In a `python` block, an expression with a trailing `# -> text` must have that repr. The blocks of one file run in
order and share their names.

Where a page connects to a broker, there is one, and VESTNIK_URL says where; where it asks for VESTNIK_GATEWAY, this
says where the broker's gateway is.

In a `console` block, what follows `$ vestnik ...` is the output expected of it, both streams; a line `...` stands for
any lines, and `...` within a line for any text. `$ cat FILE` shows a file that the commands after it read, `< FILE` at
their end gives it to them as standard input, `$ echo $?` is the exit code of the last one. Other commands are shown,
not run. The blocks of one file share a folder.
"""

from __future__ import annotations

import ast
import io
import os
import re
import shlex
import socket
import ssl
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

import pytest

from network.processes import HTTP, LISTENING, told
from vestnik.model import kinds, typed
from vestnik.routing import registry

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
VESTNIK = Path(sys.executable).with_name("vestnik")


class Block(NamedTuple):
    """A fenced block: the line its text begins at, and the text."""

    line: int
    text: str


def blocks(page: str, language: str) -> Iterator[Block]:
    """The blocks of `page` in `language`, dedented."""
    for found in re.finditer(r"^( *)```(\w+)\n(.*?)^\1```$", page, re.MULTILINE | re.DOTALL):
        indent, kind, text = found.groups()
        if kind == language:
            dedented = re.sub(f"^{indent}", "", text, flags=re.MULTILINE)
            yield Block(page.count("\n", 0, found.start()) + 2, dedented)


def promises(text: str) -> dict[int, str]:
    """What the `# -> ...` comments of `text` promise, by line."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT and token.string.startswith("# -> ")]
    return {token.start[0]: token.string.removeprefix("# -> ").strip() for token in comments}


def run_python(block: Block, page: str, names: dict[str, object]) -> None:
    """Run `block` among `names`, holding each `# -> ...` against the repr of the expression before it."""
    expected = promises(block.text)
    for statement in ast.parse(block.text).body:
        promise = expected.pop(statement.end_lineno or statement.lineno, None)
        where = block.line + statement.lineno - 1
        ast.increment_lineno(statement, block.line - 1)
        if promise is None:
            exec(compile(ast.Module([statement], []), page, "exec"), names)
            continue
        assert isinstance(statement, ast.Expr), f"{page}:{where}: only an expression can promise a value"
        value = eval(compile(ast.Expression(statement.value), page, "eval"), names)
        assert repr(value) == promise, f"{page}:{where}"
    assert not expected, f"{page}: a promise belongs at the end of a statement: {expected}"


@contextmanager
def served(folder: Path, *, with_gateway: bool) -> Iterator[dict[str, str]]:
    """A broker that stores in `folder`, and where it is, as variables."""
    command = [str(VESTNIK), "serve", "--name", "b1", "--listen", "127.0.0.1:0", "--data", str(folder)]
    if with_gateway:
        command += ["--http", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, encoding="utf-8") as process:
        try:
            variables = {"VESTNIK_URL": told(process.stderr, LISTENING)}
            if with_gateway:
                variables["VESTNIK_GATEWAY"] = told(process.stderr, HTTP)
            yield variables
        finally:
            process.terminate()


class Command(NamedTuple):
    """A line `$ ...` of a console block, and what is printed after it."""

    line: int
    text: str
    output: list[str]


def commands(block: Block) -> list[Command]:
    """The commands of `block`; a line that ends in a backslash goes on in the next one."""
    found: list[Command] = []
    for number, line in enumerate(block.text.splitlines(), block.line):
        if line.startswith("$ "):
            found.append(Command(number, line[2:], []))
        elif found and not found[-1].output and found[-1].text.endswith("\\"):
            joined = found[-1].text.removesuffix("\\") + line.removeprefix(">").lstrip()
            found[-1] = found[-1]._replace(text=joined)
        elif found:
            found[-1].output.append(line.rstrip())
    return found


def agrees(expected: list[str], printed: list[str]) -> bool:
    """Whether `printed` is as `expected`, where a line `...` stands for any lines, and elsewhere for any text."""
    dots = re.escape("...")
    lines = [re.escape(line).replace(dots, ".*") + r"\n" for line in expected]
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else found for line, found in zip(expected, lines, strict=True)
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


def vestnik(arguments: list[str], folder: Path, stdin: str = "") -> tuple[list[str], int]:
    """The lines that `vestnik` prints in `folder`, and its exit code."""
    plain = {"COLUMNS": "100", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8", "TERM": "dumb"}
    done = subprocess.run(
        [VESTNIK, *arguments],
        cwd=folder,
        env=os.environ | plain,
        input=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=60,
    )
    return [line.rstrip() for line in done.stdout.splitlines()], done.returncode


def run_console(page: str, text: str, folder: Path) -> None:
    """Run the console blocks of `text` in `folder`."""
    exit_code = 0
    for command in (command for block in blocks(text, "console") for command in commands(block)):
        match shlex.split(command.text):
            case ["vestnik", *words, "<", name]:
                printed, exit_code = vestnik(words, folder, (folder / name).read_text(encoding="utf-8"))
            case ["vestnik", *words] if "|" not in words:
                printed, exit_code = vestnik(words, folder)
            case ["cat", name]:
                (folder / name).write_text("".join(f"{line}\n" for line in command.output), encoding="utf-8")
                continue
            case ["echo", "$?"]:
                printed = [str(exit_code)]
            case _:
                continue
        expected = command.output
        while expected and not expected[-1]:
            expected.pop()
        assert agrees(expected, printed), f"{page}:{command.line}: {command.text}\nprinted:\n" + "\n".join(printed)


@pytest.fixture
def own_registries(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page registers is forgotten after it."""
    monkeypatch.setattr(kinds, "_registered", dict(kinds._registered))
    monkeypatch.setattr(registry, "_strategies", dict(registry._strategies))
    monkeypatch.setattr(typed, "_classes", {name: list(classes) for name, classes in typed._classes.items()})


@pytest.mark.usefixtures("own_registries")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_examples(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    names: dict[str, object] = {"__name__": "__example__"}
    text = path.read_text(encoding="utf-8")
    with_gateway = "VESTNIK_GATEWAY" in text
    is_served = with_gateway or "vestnik.connect" in text
    with served(tmp_path, with_gateway=with_gateway) if is_served else nullcontext({"VESTNIK_URL": ""}) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        for block in blocks(text, "python"):
            run_python(block, str(path.relative_to(ROOT)), names)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_console_examples(path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    is_served = re.search(r"^\$ vestnik (pub|sub|fetch|why)", text, re.MULTILINE)
    with served(tmp_path, with_gateway=False) if is_served else nullcontext({"VESTNIK_URL": ""}) as variables:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        run_console(str(path.relative_to(ROOT)), text, tmp_path)


def test_the_first_example_as_a_program_of_its_own(tmp_path: Path) -> None:
    """As whoever reads the README runs it: saved to a file, with a broker that is there already."""
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    program = next(blocks(page, "python")).text
    runs = (command for block in blocks(page, "console") for command in commands(block))
    shown = next(command for command in runs if command.text.startswith("python "))
    assert len(program.splitlines()) <= 15
    (tmp_path / shown.text.split()[1]).write_text(program, encoding="utf-8")
    with served(tmp_path / "data", with_gateway=False) as variables:
        done = subprocess.run(
            [sys.executable, *shown.text.split()[1:]],
            cwd=tmp_path,
            env=os.environ | variables,
            capture_output=True,
            encoding="utf-8",
            timeout=60,
        )
    assert (done.stdout.splitlines(), done.stderr) == (list(filter(None, shown.output)), "")


def test_the_recipe_for_certificates(tmp_path: Path) -> None:
    """Follow the recipe with `openssl`: the broker is on a free port, and a client is strict."""
    page = (ROOT / "docs" / "guide" / "security.md").read_text(encoding="utf-8")
    recipe = page[page.index("### Certificates of your own") : page.index("### The gateway")]
    certificates, use = [block.text for block in blocks(recipe, "sh")]
    done = subprocess.run(["sh", "-e", "-c", certificates], cwd=tmp_path, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    serve, publish = use.splitlines()
    command = [str(VESTNIK), *shlex.split(serve.removesuffix(" &").replace(":8020", ":0"))[1:]]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, encoding="utf-8") as running:
        try:
            port = int(told(running.stderr, LISTENING).rpartition(":")[2])
            setting, *words = shlex.split(publish.replace(":8020", f":{port}"))
            name, _, value = setting.partition("=")
            command = [str(VESTNIK), *words[1:]]
            done = subprocess.run(
                command, cwd=tmp_path, env=os.environ | {name: value}, capture_output=True, timeout=60
            )
            assert (done.returncode, done.stderr) == (0, b"")
            context = ssl.create_default_context(cafile=tmp_path / "ca.pem")
            context.verify_flags |= ssl.VERIFY_X509_STRICT  # as newer versions of Python do
            with (
                socket.create_connection(("127.0.0.1", port), timeout=20) as plain,
                context.wrap_socket(plain, server_hostname="127.0.0.1") as secure,
            ):
                assert secure.version() == "TLSv1.3"
        finally:
            running.terminate()


def example(text: str) -> None:
    (block,) = blocks(f"Text.\n\n```python\n{text}\n```\n", "python")
    run_python(block, "page.md", {})


def test_a_kept_promise_passes() -> None:
    example("x = 'a'\n[x,\n x]  # -> ['a', 'a']\nx  # no promise")


@pytest.mark.parametrize("text", ["1 + 1  # -> 3", "x = 2  # -> 2", "[\n  1,  # -> 1\n]"])
def test_a_broken_promise_fails(text: str) -> None:
    with pytest.raises(AssertionError, match=r"page\.md"):
        example(text)


@pytest.mark.parametrize(
    ("expected", "printed", "verdict"),
    [
        (["a", "b"], ["a", "b"], True),
        (["a"], ["a", "b"], False),
        (["a", "..."], ["a"], True),
        (["a", "...", "d"], ["a", "b", "c", "d"], True),
        (["...", "d"], ["a", "e"], False),
        (["a ... c"], ["a b c"], True),
        (["a ... c"], ["a b d"], False),
        (["a ..."], ["a b", "c"], False),
    ],
)
def test_dots_stand_for_any_lines(expected: list[str], printed: list[str], verdict: bool) -> None:
    assert agrees(expected, printed) is verdict


def test_commands_may_span_lines() -> None:
    (block,) = blocks("```console\n$ vestnik filter \\\n    check 'a = 1'\nok\n$ cat f\n```\n", "console")
    assert commands(block) == [Command(2, "vestnik filter check 'a = 1'", ["ok"]), Command(5, "cat f", [])]
