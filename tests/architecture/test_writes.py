"""What goes into a work's folder is written by jobs/disk.py, whose every call the tests cut, and by nothing else."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src" / "raison"
METHODS = {
    "chmod", "mkdir", "rename", "rmdir", "savefig", "save_file", "save_pretrained", "symlink_to", "to_csv",
    "to_parquet", "to_pickle", "touch", "unlink", "write_bytes", "write_text",
}  # fmt: skip
"""Names of functions and methods that write, or take something away, whatever they belong to."""
OF_MODULES = {
    "os": {"link", "makedirs", "mkdir", "open", "remove", "removedirs", "rename", "replace", "symlink", "truncate"},
    "shutil": {"copy", "copy2", "copyfile", "copytree", "move", "rmtree", "unpack_archive"},
    "torch": {"save"},
    "json": {"dump"},
    "pickle": {"dump"},
    "np": {"save", "savez", "savez_compressed", "savetxt"},
}
"""Functions that do so by their module: their names alone mean other things, too."""
WHOLE = {"whole_file", "whole_files"}
"""Inside these contexts of disk.py other libraries write, to a place that is put into the folder when they close."""
ELSEWHERE = {
    "jobs/disk.py": "the one place",
    "jobs/folder.py": "the folder itself and its lock, which hold nothing of the work",
    "models/loading/ready_made/wheels.py": "the cache of downloads",
    "models/loading/ready_made/base_weights.py": "the cache of downloads",
    "models/loading/convert.py": "models that a person converts",
    "models/served/answer_store.py": "the cache of servers' answers",
    "models/loading/ready_made/shipped.py": "the list of shipped files, when one of them was trained anew",
    "studies/made.py": "the cache of models that a study makes",
    "numerics/shapley/progressive.py": "the cache of sampled values",
    "report/figures/canvas.py": "pictures in memory",
    "report/tables/results.py": "a table as text",
    "report/figures/scores.py": "a picture in memory",
}
"""Files that write outside of a work's folder, each with what it writes to."""


def writes(source: str) -> Iterator[tuple[int, str]]:
    """Line and call of everything that writes outside of `WHOLE`."""
    yield from _found(ast.parse(source), False)


def _found(node: ast.AST, inside: bool) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.With):
        inside = inside or any(_name(item.context_expr) in WHOLE for item in node.items)
    if isinstance(node, ast.Call) and not inside and _writes(node):
        yield node.lineno, ast.unparse(node)
    for child in ast.iter_child_nodes(node):
        yield from _found(child, inside)


def _name(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _writes(node: ast.Call) -> bool:
    name = _name(node)
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name):
        module = node.func.value.id
        if module in OF_MODULES:
            return name in OF_MODULES[module] or name in METHODS
    if name == "open":
        return not _only_reads(node)
    return name in METHODS


def _only_reads(node: ast.Call) -> bool:
    """Of `open`, as a function with the file first or as a method: whether its mode is a constant that reads."""
    place = 1 if isinstance(node.func, ast.Name) or ast.unparse(node.func) == "gzip.open" else 0
    given = [keyword.value for keyword in node.keywords if keyword.arg == "mode"] or node.args[place : place + 1]
    if not given:
        return True
    mode = given[0]
    # The member of an archive is opened by its name, to be read.
    if not isinstance(mode, ast.Constant):
        return False
    return isinstance(mode.value, str) and not set(mode.value) & set("wax+")


def test_nothing_writes_to_a_folder_of_work_by_itself() -> None:
    paths = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    found = {name: list(writes(path.read_text(encoding="utf-8"))) for name, path in paths.items()}
    assert {name: calls for name, calls in found.items() if calls and name not in ELSEWHERE} == {}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_every_exception_is_needed(name: str) -> None:
    assert list(writes((SOURCE / name).read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    "line",
    [
        'open(path, "w")',
        'open(path, mode="a")',
        "open(path, mode)",
        'path.open("r+")',
        'path.open(mode="xb")',
        'gzip.open(path, "wb")',
        "path.write_text(content)",
        "frame.to_csv(path)",
        "model.save_pretrained(path)",
        "save_file(tensors, path)",
        "torch.save(state, path)",
        "json.dump(content, file)",
        "shutil.copytree(one, other)",
        "os.replace(one, other)",
        "path.unlink()",
        "with path.open() as file:\n    path.write_text(file.read())",
        "with whole_file(path) as part:\n    pass\npath.write_text(content)",
    ],
)
def test_what_writes_is_found(line: str) -> None:
    assert len(list(writes(line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "open(path)",
        'open(path, "rb")',
        "path.open()",
        'path.open(encoding="utf-8")',
        'gzip.open(path, "rb")',
        "text.replace(one, other)",
        "json.dumps(content)",
        "torch.load(path)",
        "with disk.whole_file(path) as part:\n    save_file(tensors, part)",
        "with quiet(), disk.whole_files(path) as part:\n    model.save_pretrained(part)",
    ],
)
def test_what_reads_or_is_put_in_its_place_whole_is_not(line: str) -> None:
    assert not list(writes(line))
