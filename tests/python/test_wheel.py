"""The source distribution and the wheel made of it: what is in them, and that they work away from the source tree.

Built without optimisation, which takes half the time; what is in the archives and how they link does not depend on it. Even so
the wheel is a build of its own, a minute and a half of a processor: it is left to `make check-long` (SMELT_TEST_FULL)."""
import configparser
import email
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

# `make check-long` runs everything once without the sampling that keeps `make check` short.
FULL = "SMELT_TEST_FULL" in os.environ
PRELUDES = {"smelt/lib/metal-safe.pch", "smelt/lib/mlx-safe.pch"}
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


@pytest.fixture(scope="session")
def distributions(source_folder, tmp_path_factory):
    """The folder with the archives: of the source, and with FULL the wheel. Everything that it takes is in build/venv: no
    network."""
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run([sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source_folder,
                           "-Ccmake.build-type=None", *([] if FULL else ["--sdist"])], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return folder


@pytest.fixture(scope="session")
def sdist_names(distributions):
    """Paths in the source distribution, below its one folder."""
    archive, = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        return {name.partition("/")[2] for name in tar.getnames()}


@pytest.fixture(scope="session")
def wheel(distributions):
    if not FULL:
        pytest.skip("building the wheel takes long: make check-long does")
    archive, = distributions.glob("*.whl")
    return zipfile.ZipFile(archive)


@pytest.fixture(scope="session")
def installed(wheel, tmp_path_factory):
    """An environment with nothing but the wheel in it."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    subprocess.run([sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "install", "--quiet", "--no-deps",
                    "--no-index", "--disable-pip-version-check", wheel.filename], check=True)
    return venv


def header_version(source_folder):
    text = (pathlib.Path(source_folder) / "include/smelt/smelt.h").read_text(encoding="utf-8")
    return ".".join(re.search(rf"SMELT_VERSION_{part} (\d+)", text)[1] for part in ("MAJOR", "MINOR", "PATCH"))


def run_away(command, folder, **changes):
    """Runs a program of the environment where nothing points to the build or the source."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    return subprocess.run(command, cwd=folder, env={**environment, **changes}, capture_output=True, text=True, check=False)


def test_the_source_distribution_has_what_the_build_reads(sdist_names):
    top = {name.partition("/")[0] for name in sdist_names} - {""}
    assert top == {"CMakeLists.txt", "LICENSE", "PKG-INFO", "README.md", "bench", "cli", "cmake", "include", "kernels",
                   "licenses", "packages.txt", "prelude", "pyproject.toml", "python", "src"}
    assert [name for name in sdist_names if name.endswith((".pyc", ".so", ".o", ".a"))] == []


def test_the_source_distribution_has_every_file_of_those_folders(sdist_names, source_folder):
    done = subprocess.run(["git", "ls-files", "--", "bench", "cli", "cmake", "include", "kernels", "licenses", "prelude", "python", "src"],
                          cwd=source_folder, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"git lists no files here: {done.stderr.strip()}")
    assert set(done.stdout.split()) - sdist_names == set()


def test_names_and_version_are_of_the_header(wheel, source_folder):
    version = header_version(source_folder)
    assert os.path.basename(wheel.filename) == f"smelt-{version}-cp311-abi3-linux_x86_64.whl"
    metadata = email.message_from_bytes(wheel.read(f"smelt-{version}.dist-info/METADATA"))
    assert (metadata["Name"], metadata["Version"], metadata["Requires-Python"]) == ("smelt", version, ">=3.11")
    assert metadata["License-Expression"] == "MIT"
    texts = {f"licenses/{path.name}" for path in (pathlib.Path(source_folder) / "licenses").iterdir()}
    assert "licenses/LLVM.txt" in texts
    assert set(metadata.get_all("License-File")) == {"LICENSE", *texts}
    below = f"smelt-{version}.dist-info/licenses/"
    assert {below + name for name in ("LICENSE", *texts)} <= set(wheel.namelist())


def test_the_wheel_holds_the_package_and_its_libraries(wheel, source_folder):
    sources = pathlib.Path(source_folder)
    package = sources / "python" / "smelt"
    wanted = {f"smelt/{path.relative_to(package)}" for path in package.rglob("*")
              if path.suffix in (".py", ".pyi") or path.name == "py.typed"}
    wanted |= {f"smelt/include/smelt/{path.name}" for path in (sources / "include" / "smelt").iterdir()}
    wanted |= {"smelt/_smelt.abi3.so", "smelt/lib/libsmelt.so", "smelt/bin/smelt"}
    compilers = {"smelt/lib/smelt-cc1", "smelt/lib/libsmelt_compiler.so"}
    wanted |= compilers & set(wheel.namelist())
    assert len(wanted & compilers) == 1
    if "smelt/lib/smelt-cc1" in wanted:
        wanted |= PRELUDES
    assert {name for name in wheel.namelist() if ".dist-info/" not in name} == wanted
    assert "smelt/py.typed" in wanted
    scripts = configparser.ConfigParser()
    scripts.read_string(wheel.read(next(name for name in wheel.namelist() if name.endswith("entry_points.txt"))).decode())
    assert dict(scripts["console_scripts"]) == {"smelt": "smelt.__main__:main"}
    assert dict(scripts["pytest11"]) == {"smelt": "smelt.pytest_plugin"}


def dynamic_section(path):
    """What an ELF file needs, and where it looks for it."""
    text = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"\(NEEDED\).*\[(.+)\]", text)), re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text)


@pytest.mark.parametrize("name, own, runpath", [
    ("_smelt.abi3.so", {"libsmelt.so"}, ["$ORIGIN/lib"]),
    ("bin/smelt", {"libsmelt.so"}, ["$ORIGIN/../lib"]),
    ("lib/libsmelt.so", set(), []),
    ("lib/libsmelt_compiler.so", {"LLVM 19"}, []),
    ("lib/smelt-cc1", set(), []),
])
def test_binaries_need_the_system_s_libraries_and_their_neighbours(wheel, tmp_path, name, own, runpath):
    if f"smelt/{name}" not in wheel.namelist():
        pytest.skip("the wheel has the other of the two compilers")
    needed, found = dynamic_section(wheel.extract(f"smelt/{name}", tmp_path))
    # Distributions call LLVM's library libLLVM.so.19.1 or libLLVM-19.so.1.
    needed = {"LLVM 19" if re.fullmatch(r"libLLVM(\.so\.19\.\d|-19\.so.*)", library) else library for library in needed}
    assert needed - SYSTEM_LIBRARIES == own
    assert found == runpath


def test_the_installed_command_runs_a_kernel(installed, tmp_path):
    body = tmp_path / "twice.body"
    body.write_text("uint i = thread_position_in_grid.x;\nout[i] = 2 * inp[i];\n", encoding="utf-8")
    for command in ([installed / "bin" / "smelt"], [installed / "bin" / "python", "-m", "smelt"]):
        done = run_away([*command, "run", "--body", body, "-i", "inp=arange:float32:4", "-o", "out:float32:4", "--grid",
                         "4", "--threadgroup", "4"], tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.strip().endswith("[0, 2, 4, 6]")


def test_the_installed_command_s_exit_status_is_the_program_s(installed, tmp_path):
    done = run_away([installed / "bin" / "smelt", "no-such-command"], tmp_path)
    assert done.returncode == 2 and "no-such-command" in done.stderr


def test_the_installed_package_imports(installed, tmp_path, source_folder):
    done = run_away([installed / "bin" / "python", "-c", "import smelt; print(smelt.__version__, smelt.__file__)"], tmp_path)
    assert done.returncode == 0, done.stderr
    version, path = done.stdout.split()
    assert version == header_version(source_folder)
    assert pathlib.Path(path).is_relative_to(installed)


def test_the_installed_package_s_doctor_runs_kernels(installed, tmp_path):
    done = run_away([installed / "bin" / "python", "-m", "smelt.doctor", "--json"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert found["llvm"]["path"].endswith(("/smelt/lib/smelt-cc1", "/smelt/lib/libsmelt_compiler.so"))
    assert set(found["packages"].values()) == {None}


def test_the_first_kernel_compiles_no_prelude(installed, wheel, tmp_path):
    if "smelt/lib/smelt-cc1" not in wheel.namelist():
        pytest.skip("the wheel has no smelt-cc1")
    body = tmp_path / "one.body"
    body.write_text("out[0] = 1;\n", encoding="utf-8")
    done = run_away([installed / "bin" / "smelt", "run", "--body", body, "-o", "out:float32:1", "--grid", "1", "--threadgroup", "1"],
                    tmp_path, SMELT_CACHE_DIR=str(tmp_path / "cache"), SMELT_CLANG="")
    assert done.returncode == 0, done.stderr
    assert [path.suffix for path in (tmp_path / "cache").iterdir() if path.suffix == ".pch"] == []


def test_a_build_without_llvm_names_the_debian_package(source_folder, tmp_path):
    tools = {"CMAKE_MAKE_PROGRAM": "ninja", "CMAKE_C_COMPILER": "cc"}
    settings = {name: shutil.which(tool) for name, tool in tools.items()}
    settings |= {"SKBUILD": "2", "Python3_EXECUTABLE": sys.executable, "CMAKE_IGNORE_PATH": "/usr/bin;/bin"}
    done = subprocess.run(["cmake", "-S", source_folder, "-B", tmp_path, "-G", "Ninja",
                           *(f"-D{name}={value}" for name, value in settings.items())],
                          capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "smelt needs these Debian packages, which are not installed: llvm-19-dev" in " ".join(done.stderr.split())
