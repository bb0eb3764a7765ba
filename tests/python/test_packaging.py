"""What is laid out: a namespace package, the import error, the stubs."""

import ast
import os
import pathlib
import shutil
import subprocess
import sys

import mooncake
from mooncake import conductor

PACKAGE = pathlib.Path(conductor.__file__).parent


def run(path, code):
    # Without the sanitizer's library, if there is one: nothing native is loaded here.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment["PYTHONPATH"] = str(path)
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60
    )


def test_mooncake_is_a_namespace_package():
    assert getattr(mooncake, "__file__", None) is None
    assert not (PACKAGE / "__init__.py").exists()


def test_another_distribution_may_own_the_rest(tmp_path):
    (tmp_path / "mooncake").mkdir()
    (tmp_path / "mooncake" / "other.py").write_text("NAME = 'other'\n")
    environment = dict(os.environ, PYTHONPATH=f"{tmp_path}{os.pathsep}{PACKAGE.parent}")
    subprocess.run(
        [sys.executable, "-c", "import mooncake.other, mooncake.conductor"],
        env=environment,
        check=True,
        timeout=60,
    )


def test_without_the_extension_the_import_says_what_to_do(tmp_path):
    (tmp_path / "mooncake").mkdir()
    shutil.copy(PACKAGE / "conductor.py", tmp_path / "mooncake")
    result = run(tmp_path, "import mooncake.conductor")
    assert result.returncode != 0
    last = result.stderr.strip().splitlines()[-1]
    assert last.startswith("ImportError: ")
    assert "Conductor support" in last
    assert "WITH_CONDUCTOR=ON" in last


def signatures(path, name):
    """Method name -> argument names and defaults, of a class in a source or stub file."""
    tree = ast.parse(path.read_text())
    (found,) = [n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name]
    result = {}
    for method in found.body:
        if isinstance(method, ast.FunctionDef):
            arguments = method.args
            for argument in arguments.args + arguments.kwonlyargs:
                argument.annotation = None
            result[method.name] = ast.unparse(arguments)
    return result


def test_the_stubs_describe_the_module():
    stubs = signatures(PACKAGE / "conductor.pyi", "ConductorClient")
    source = signatures(PACKAGE / "conductor.py", "ConductorClient")
    public = {k: v for k, v in source.items() if not k.startswith("_") or k.startswith("__")}
    assert stubs == public
    names = {
        node.target.id
        for node in ast.parse((PACKAGE / "conductor.pyi").read_text()).body
        if isinstance(node, ast.AnnAssign)
    }
    assert names | {"ConductorClient"} == set(conductor.__all__)
    assert (PACKAGE / "py.typed").exists()
