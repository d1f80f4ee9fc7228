"""Runs Verilator and the C++ compiler for scripts/images and scripts/rtl-test, and caches the results.

The cache is a folder outside the project; its keys are hashes of all inputs. So a second clone, or a build after `make clean`, does
not compile the same inputs again. The folder is HUEPLANE_CACHE, or `hueplane` in XDG_CACHE_HOME, or in ~/.cache.
"""

import functools
import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import threading
import time

from card_images import Fault

# When an entry is added, entries that have not been used for KEEP_SECONDS are removed, and the oldest ones beyond KEEP_MAX.
KEEP_SECONDS = 30 * 24 * 3600
KEEP_MAX = 64
# The runtime is compiled once for all threads of a process.
RUNTIME_LOCK = threading.Lock()


def digest(parts):
    total = hashlib.sha256()
    for part in parts:
        total.update(part if isinstance(part, bytes) else str(part).encode())
        total.update(b"\0")
    return total.hexdigest()


def tail(log):
    return "\n".join(log.read_text().splitlines()[-30:])


def run(command, log, **options):
    with log.open("a") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False, **options)
    if done.returncode != 0:
        raise Fault(f"{' '.join(str(part) for part in command[:4])} … failed, see {log}:\n{tail(log)}")


def compiler():
    """The C++ compiler, and what simulations depend on: its version, Verilator's version, and the kind of processor."""
    chosen = os.environ.get("CXX") or shutil.which("clang++") or shutil.which("g++")
    try:
        version = subprocess.run([chosen or "g++", "--version"], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Fault(f"the C++ compiler does not run ({error}): 'scripts/setup build' installs one") from error
    kinds = ("model name", "flags", "Features", "CPU part")
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    return chosen or "g++", [version, output("--version"), *sorted({line for line in lines if line.startswith(kinds)})]


@functools.cache
def output(option):
    try:
        return subprocess.run(["verilator", option], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise Fault(f"verilator does not run ({error}): 'scripts/setup build' installs it") from error


def include():
    """The folder of Verilator's headers and of its runtime's sources."""
    found = re.search(r"^\s*VERILATOR_ROOT\s*=\s*(\S+)\s*$", output("-V"), re.MULTILINE)
    if not found:
        raise Fault("verilator -V names no VERILATOR_ROOT")
    return pathlib.Path(found[1]) / "include"


def runs_once(unit):
    """Whether a file has code that runs once. It is not optimised, because that takes the compiler long."""
    return "__Slow" in unit.name or "__Trace" in unit.name or "Syms" in unit.name


def compile_units(cxx, units, folder, log, flags, jobs=2):
    """Compiles C++ files in parallel, at most one for each processor. Returns the objects' paths."""
    objects, running, queue = [], [], list(units)
    failed = None
    while queue or running:
        while queue and not failed and len(running) < min(jobs, os.cpu_count() or 1):
            unit = queue.pop(0)
            target = folder / f"{unit.stem}.o"
            command = [cxx, "-c", *flags, *(["-O0"] if runs_once(unit) else []), "-o", str(target), str(unit)]
            running.append((unit, subprocess.Popen(command, stdout=log.open("a"), stderr=subprocess.STDOUT)))
            objects.append(str(target))
        if not running:
            break
        unit, process = running.pop(0)
        if process.wait() != 0:
            failed, queue = unit, []
    if failed:
        raise Fault(f"{cxx} {failed.name} failed, see {log}:\n{tail(log)}")
    return objects


def runtime(names, cxx, machine, cflags, flags, log):
    """Compiles Verilator's runtime, which is the same for all simulations with the same `cflags`. Returns the objects' paths.

    `flags` are passed to the compiler but are not part of the key: they are folders of headers.
    """
    headers = include()
    made_from = digest([cflags, machine, *[(headers / f"{name}.cpp").read_bytes() for name in names]])
    folder = cache() / "runtime" / made_from[:16]
    objects = [folder / f"{name}.o" for name in names]
    with RUNTIME_LOCK:
        if not all(path.exists() for path in objects):
            partial = folder.with_name(f"{folder.name}.{os.getpid()}")
            partial.mkdir(parents=True, exist_ok=True)
            compile_units(cxx, [headers / f"{name}.cpp" for name in names], partial, log, cflags + flags)
            try:
                partial.rename(folder)
            except OSError:  # another process has compiled it meanwhile
                shutil.rmtree(partial)
            prune(folder.parent)
        os.utime(folder)
    return [str(path) for path in objects]


def cache():
    named = os.environ.get("HUEPLANE_CACHE")
    above = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache")
    return pathlib.Path(named) if named else above / "hueplane"


def kept(kind, key):
    """The cached file for this key, or None."""
    path = cache() / kind / key
    try:
        os.utime(path)
    except OSError:
        return None
    return path


def keep(kind, key, file):
    """Caches a copy of a file. If the folder cannot be written, this does not fail: the file is compiled again next time."""
    folder = cache() / kind
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial = folder / f"{key}.{os.getpid()}"
        shutil.copyfile(file, partial)
        partial.replace(folder / key)
        prune(folder)
    except OSError as error:
        print(f"{folder}: cannot cache the result: {error}")


def prune(folder):
    """Removes old entries: files and folders with names as `keep` and `runtime` give them."""
    entries = [path for path in folder.iterdir() if re.fullmatch(r"[0-9a-f]{16,64}(\.\d+)?", path.name)]
    entries.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    for place, path in enumerate(entries):
        if place >= KEEP_MAX or time.time() - path.stat().st_mtime > KEEP_SECONDS:
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)
