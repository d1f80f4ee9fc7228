"""Images of the card for the tools: the parameters in rtl/images/NAME.toml and the files of rtl/.

An image is `NAME`, or `NAME.TARGET`: the image with the values of its table `target.TARGET`, for an FPGA of rtl/targets.

Used by scripts/images (Verilator) and scripts/synth (Yosys).
"""

import os
import pathlib
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
# Packages that other packages use come first; modules are found by name.
PACKAGES = ["hue_kinds_pkg.sv", "hue_regs_pkg.sv", "hue_pkg.sv"]
LIBRARY = ["common", "demux", "tables", "planes", "card"]
LAYOUTS = {"tcam": 1, "dag36": 2, "sram": 3, "dir": 4}
ZERO = ["mac_rows", "station_rows", "pattern_rows", "tunnel_rows", "route_rows", "local_rows", "level0_words", "level1_words", "level2_words", "level3_words", "sram_words", "cam_rows",
        "slot_rows", "range_rows", "pair_rows", "rule_rows"]
NAME_BYTES_MAX = 16


class Fault(Exception):
    """An error that stops the build, in one line."""


def kind_ids():
    kinds = [tomllib.loads(path.read_text()) for path in sorted((ROOT / "spec/kinds").glob("*.toml"))]
    return {kind["name"]: kind["id"] for kind in kinds}


def parameters(name, image):
    """Parameters of hue_card, as Verilog texts."""
    values = {key: 0 for key in ZERO} | image
    file = file_of(name)
    try:
        values["layout"] = LAYOUTS[values["layout"]]
        ids = kind_ids()
        values["kinds"] = sum(1 << ids[kind] for kind in values["kinds"])
    except KeyError as error:
        raise Fault(f"{file}: {error} is missing or unknown") from error
    for key, value in values.items():
        if not isinstance(value, int):
            raise Fault(f"{file}: {key} = {value!r}: expected a number")
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


def file_of(name):
    """The file of an image, relative to the project's folder."""
    return f"rtl/images/{name.partition('.')[0]}.toml"


def names(wanted):
    """The images in `wanted`, or, if it is empty, all images, without those for a target."""
    known = sorted(path.stem for path in (ROOT / "rtl/images").glob("*.toml"))
    for name in wanted:
        image, _, target = name.partition(".")
        if image not in known:
            raise Fault(f"no image '{image}' in rtl/images; available: {', '.join(known)}")
        if target and target not in overrides(image):
            made = ", ".join(overrides(image)) or "none"
            raise Fault(f"{file_of(image)}: no table 'target.{target}'; targets of this image: {made}")
    return list(wanted) or known


def targets():
    """The FPGAs of rtl/targets and their resources, by name."""
    return {path.stem: tomllib.loads(path.read_text()) for path in sorted((ROOT / "rtl/targets").glob("*.toml"))}


def overrides(image):
    """The values that an image overrides for targets, by target."""
    made = tomllib.loads((ROOT / file_of(image)).read_text()).get("target", {})
    for target in made:
        if target not in targets():
            raise Fault(f"{file_of(image)}: target.{target}: no such target in rtl/targets; available: {', '.join(targets())}")
    return made


def describe(name):
    """The parameters of an image, for its target if it names one."""
    _, _, target = name.partition(".")
    image = tomllib.loads((ROOT / file_of(name)).read_text())
    made = image.pop("target", {})
    return image | made[target] if target else image


def for_target(image, target):
    """The name of an image for a target: the plain name if the image overrides nothing for this target."""
    return f"{image}.{target}" if target in overrides(image) else image
