"""`python -m numjet.as_jax`: scripts, modules, lines, pytest, processes they start, install."""
from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from python_process import ROOT, run


def test_scripts_modules_and_lines_run_as_python_runs_them(tmp_path):
    body = ("import sys, jax, beside\n"
            "print(__name__, sys.argv, jax.__version__, beside.x, "
            "sys.modules['__main__'].__name__)")
    (tmp_path / "beside.py").write_text("x = 7\n")
    (tmp_path / "script.py").write_text(body)
    script = tmp_path / "script.py"
    done = run("-m", "numjet.as_jax", str(script), "-a", "b", cwd=ROOT)
    assert done.stdout.strip() == f"__main__ ['{script}', '-a', 'b'] 0.10.2 7 __main__", done.stderr
    done = run("-m", "numjet.as_jax", "-m", "script", "-a", cwd=tmp_path)
    assert done.stdout.strip() == f"__main__ ['{script}', '-a'] 0.10.2 7 __main__", done.stderr
    done = run("-m", "numjet.as_jax", "-c", body, "-a", cwd=tmp_path)
    assert done.stdout.strip() == "__main__ ['-c', '-a'] 0.10.2 7 __main__", done.stderr


def test_bad_command_lines():
    assert "option -m needs an argument" in run("-m", "numjet.as_jax", "-m").stderr
    assert "unknown option '-x'" in run("-m", "numjet.as_jax", "-x").stderr
    assert "script.py arguments" in run("-m", "numjet.as_jax").stdout


def test_pytest_and_the_processes_that_tests_start(tmp_path):
    (tmp_path / "test_it.py").write_text(textwrap.dedent("""
        import multiprocessing, subprocess, sys
        import jax, jax.numpy as jnp

        def double(x):
            return jax.jit(lambda y: 2 * y)(x)

        def test_subprocess():
            code = "import jax, sys; print(jax.__version__, 'numjet' in sys.modules)"
            told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            assert told.stdout.split()[0] == "0.10.2" and "True" in told.stdout, told.stderr

        def test_arrays_cross_processes():
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                assert pool.map(double, [jnp.ones(2)])[0].tolist() == [2.0, 2.0]
    """))
    done = run("-m", "numjet.as_jax", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider",
               "test_it.py", cwd=tmp_path)
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_install_and_uninstall(tmp_path):
    home = tmp_path / "env"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(home)], check=True)
    python = home / "bin" / "python"
    site = next(home.glob("lib/python*/site-packages"))
    (site / "numjet_and_what_it_needs.pth").write_text(
        "\n".join([str(ROOT), *[p for p in sys.path if p.endswith("site-packages")]]))

    def call(*arguments: str) -> subprocess.CompletedProcess:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        return subprocess.run([str(python), *arguments], capture_output=True, text=True,
                              timeout=120, env=environment, cwd=tmp_path)

    assert "nothing to remove" in call("-m", "numjet.as_jax", "uninstall").stdout
    done = call("-m", "numjet.as_jax", "install")
    assert "numjet answers to jax and jaxlib 0.10.2" in done.stdout, done.stderr
    assert call("-m", "numjet.as_jax", "install").returncode == 0, "a second time changes nothing"
    code = ("import importlib.metadata as m, sys, jax, jax.numpy as jnp, jaxlib\n"
            "print(jax.__version__, 'numjet' in sys.modules, jnp.__name__, m.version('jaxlib'), "
            "[f.size for f in m.files('jax') if f.name == 'METADATA'][0] > 0)")
    done = call("-c", code)
    assert done.stdout.split() == ["0.10.2", "True", "jax.numpy", "0.10.2", "True"], done
    done = call("-m", "numjet.as_jax", "uninstall")
    assert "Removed jax and jaxlib of numjet" in done.stdout, done.stderr
    assert not list(site.glob("jax*"))

    done = call("-m", "numjet.as_jax", "install", "--version", "0.11.1")
    assert "numjet answers to jax and jaxlib 0.11.1" in done.stdout, done.stderr
    assert call("-c", code).stdout.split()[3] == "0.11.1", "what libraries ask for is told"
    assert "0.10.2" in call("-m", "numjet.as_jax", "install").stdout
    assert [path.name for path in site.glob("jax-*")] == ["jax-0.10.2.dist-info"]
    done = call("-m", "numjet.as_jax", "install", "--version", "new")
    assert "'new' is no version" in done.stderr
    assert "does not know --all" in call("-m", "numjet.as_jax", "uninstall", "--all").stderr
    call("-m", "numjet.as_jax", "uninstall")
    assert not list(site.glob("jax*"))

    (site / "jax-0.10.1.dist-info").mkdir()
    (site / "jax-0.10.1.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: jax\nVersion: 0.10.1\n")
    done = call("-m", "numjet.as_jax", "install")
    assert done.returncode and "jax 0.10.1 is installed in this environment" in done.stderr
    assert "pip uninstall jax jaxlib" in done.stderr
    done = call("-m", "numjet.as_jax", "uninstall")
    assert done.returncode and "is not numjet's: nothing removed" in done.stderr


def test_the_alias_keeps_its_files_in_the_cache(tmp_path):
    done = run("-m", "numjet.as_jax", "-c", "import os; print(os.environ['PYTHONPATH'])",
               NUMJET_CACHE_DIR=str(tmp_path))
    assert done.stdout.split(":")[0] == str(tmp_path / "as_jax"), done.stderr
    assert Path(tmp_path / "as_jax/jax/__init__.py").exists()

def test_a_lazy_loader_may_load_the_installed_alias(tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax/__init__.py").write_text("import numjet.as_jax\n")
    code = textwrap.dedent("""
        import importlib.util as u, sys
        spec = u.find_spec("jax")
        loader = spec.loader = u.LazyLoader(spec.loader)
        lazy = sys.modules["jax"] = u.module_from_spec(spec)
        loader.exec_module(lazy)
        print("numjet" in sys.modules, lazy.numpy.ones(2).tolist())
        import jax, jax.nn
        print(jax is lazy, jax.nn.relu(-1.0), jax.__version__, "grad" in dir(jax))
    """)
    done = run("-c", code, cwd=ROOT, PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert done.stdout.split("\n")[:2] == ["False [1.0, 1.0]", "True 0.0 0.10.2 True"], done.stderr
