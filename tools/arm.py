"""Run Python of ARM64 (Debian's, under qemu) with this numjet.

    python tools/arm.py [--root FOLDER] ARGUMENTS...      as `python ARGUMENTS...` there

The first time the folder (build/arm64) is filled: Debian's packages of Python, unpacked, and wheels
of what numjet and its tests need. No package's scripts run, nothing is installed on this machine;
debootstrap wants to be root, running does not. Python starts other Pythons by the same script, so
that tests in processes of their own work. What is missing here is said, with status 2.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
RELEASE, PYTHON = "trixie", "3.13"
PACKAGES = "numpy scipy llvmlite ml_dtypes opt_einsum pytest hypothesis mpmath".split()
PLATFORMS = ("manylinux_2_28_aarch64", "manylinux_2_27_aarch64", "manylinux2014_aarch64")
# NumPy's products raise these there although no number in them does (see tests/conftest.py, too).
FLAGS = ("divide by zero", "overflow", "invalid value")
EMULATORS = ("qemu-aarch64", "qemu-aarch64-static")


def tool(*names: str) -> str:
    """The path of the first of these programs that is there."""
    for name in names:
        found = shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        if found:
            return found
    print(
        f"tools/arm.py: {' or '.join(names)} is not here. On Debian: apt-get install debootstrap "
        "qemu-user (10 or newer: three times as fast) or qemu-user-static",
        file=sys.stderr,
    )
    sys.exit(2)


def fill(root: Path, emulator: str) -> None:
    """Debian's Python, the wheels, and the script that starts them."""
    debian, wheels = root / "debian", root / "wheels"
    subprocess.run(
        [tool("debootstrap"), "--arch=arm64", "--foreign", "--variant=minbase",
         "--include=python3,python3-venv", RELEASE, debian], check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    for package in sorted(debian.glob("var/cache/apt/archives/*.deb")):
        subprocess.run([tool("dpkg-deb"), "-x", package, debian], check=True)
    platforms = [word for name in PLATFORMS for word in ("--platform", name)]
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--only-binary=:all:", *platforms,
         "--python-version", PYTHON, "--dest", wheels, *PACKAGES], check=True,
    )  # fmt: skip
    for wheel in wheels.glob("*.whl"):
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(root / "site")
    script = debian / "usr" / "bin" / "python"
    script.write_text(
        f'#!/bin/sh\nexec {emulator} -L {debian} -0 "$0" {debian}/usr/bin/python{PYTHON} "$@"\n'
    )
    script.chmod(0o755)
    (root / "filled").touch()


def main() -> None:
    """Fill the folder, and run."""
    arguments = sys.argv[1:]
    if arguments[:1] in ([], ["-h"], ["--help"]):
        sys.exit(__doc__)
    root = HERE / "build" / "arm64"
    if arguments[:1] == ["--root"]:
        root, arguments = Path(arguments[1]).resolve(), arguments[2:]
    emulator = tool(*EMULATORS)
    if not (root / "filled").exists():
        fill(root, emulator)
    python = root / "debian" / "usr" / "bin" / "python"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{root / 'site'}:{HERE}",
        # Compiled once: under the emulator that takes minutes.
        "PYTHONDONTWRITEBYTECODE": "",
        "PYTHONPYCACHEPREFIX": str(root / "bytecode"),
        # OpenBLAS's kernels for SVE (NumPy 2.5) multiply wrongly under qemu 10, those for NEON not.
        "OPENBLAS_CORETYPE": "ARMV8",
        "PYTHONWARNINGS": ",".join([f"ignore:{flag} encountered in matmul" for flag in FLAGS]),
    }
    os.execve(python, [str(python), *arguments], environment)


if __name__ == "__main__":
    main()
