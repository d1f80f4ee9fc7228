"""Images of the card as its tools see them: the parameters in rtl/images/NAME.toml and the files of rtl/.

Used by scripts/images (Verilator) and scripts/synth (Yosys).
"""

import os
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
# Packages that others use come first; modules are found by name.
PACKAGES = ["hue_kinds_pkg.sv", "hue_regs_pkg.sv", "hue_pkg.sv"]
LIBRARY = ["common", "demux", "tables", "planes", "card"]
LAYOUTS = {"tcam": 1, "dag36": 2, "sram": 3}
ZERO = ["mac_rows", "route_rows", "local_rows", "level0_words", "level1_words", "level2_words", "level3_words", "sram_words"]
NAME_BYTES_MAX = 16


class Fault(Exception):
    """What stops the build, in one line."""


def kind_ids():
    spec = tomllib.loads((ROOT / "spec/kinds.toml").read_text())
    return {kind["name"]: kind["id"] for kind in spec["kind"]}


def parameters(name, image):
    """Parameters of hue_card, as Verilog texts."""
    values = {key: 0 for key in ZERO} | image
    try:
        values["layout"] = LAYOUTS[values["layout"]]
        ids = kind_ids()
        values["kinds"] = sum(1 << ids[kind] for kind in values["kinds"])
    except KeyError as error:
        raise Fault(f"rtl/images/{name}.toml: {error} is missing or unknown") from error
    for key, value in values.items():
        if not isinstance(value, int):
            raise Fault(f"rtl/images/{name}.toml: {key} = {value!r}: expected a number")
    texts = {"".join(part.capitalize() for part in key.split("_")): str(value) for key, value in values.items()}
    if len(name.encode()) > NAME_BYTES_MAX:
        raise Fault(f"image '{name}': a name has at most {NAME_BYTES_MAX} bytes")
    texts["ImageName"] = f"128'h{int.from_bytes(name.encode(), 'little'):032x}"
    return texts


def sources(rtl):
    files = [path for folder in LIBRARY for path in sorted((rtl / folder).glob("*.sv"))]
    packages = [path for path in files if path.name.endswith("_pkg.sv")]
    packages.sort(key=lambda path: PACKAGES.index(path.name) if path.name in PACKAGES else len(PACKAGES))
    return packages, [path for path in files if path not in packages]


def names(wanted):
    """The images wanted, or all of them."""
    known = sorted(path.stem for path in (ROOT / "rtl/images").glob("*.toml"))
    for name in wanted:
        if name not in known:
            raise Fault(f"no image '{name}': there are {', '.join(known)}")
    return list(wanted) or known


def describe(name, twin=False):
    """What rtl/images/NAME.toml says: of the card, or of its twin, where its table `twin` says otherwise."""
    image = tomllib.loads((ROOT / "rtl/images" / f"{name}.toml").read_text())
    other = image.pop("twin", {})
    return image | other if twin else image
