"""The packed structs of the card's packages as a C++ header, for the benches of rtl/tests.

Verilator reads the packages, so widths and places are those of the modules. A struct `hue_pkg::hue_verdict_t` becomes a C++ struct of
that name in a namespace of that name, with its width and, for each field, its place:

    namespace hue_pkg {
    struct hue_verdict_t {
      static constexpr unsigned Bits = 178;
      static constexpr bench::Field verdict{176, 2};
"""

import pathlib
import tempfile
import xml.etree.ElementTree

import verilator

HEAD = """\
// Made by scripts/rtl-test from the packages in rtl/: where the fields of packed structs are.
#ifndef HUE_LAYOUT_H
#define HUE_LAYOUT_H

#include "bench.h"

"""


def header(packages):
    """The text of the header for the structs of these files."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        top = folder / "hue_layout.sv"
        top.write_text("module hue_layout; endmodule\n")
        command = ["verilator", "--xml-only", "-Wno-fatal", "--Mdir", str(folder), "--top-module", "hue_layout"]
        verilator.run([*command, *map(str, packages), str(top)], folder / "log")
        netlist = xml.etree.ElementTree.parse(folder / "Vhue_layout.xml").getroot()
    types = {one.get("id"): one for table in netlist.iter("typetable") for one in table}
    structs = [one for one in types.values() if one.tag == "structdtype"]
    if not structs:
        raise verilator.Fault("Verilator found no packed struct in the packages")
    # In the order of the packages, so that a struct comes behind those that it has as fields.
    return HEAD + "\n".join(struct_text(one, types) for one in structs) + "\n#endif\n"


def struct_text(struct, types):
    package, name = struct.get("name").split("::")
    bits = at = width(struct, types)
    lines = [f"namespace {package} {{", f"struct {name} {{", f"  static constexpr unsigned Bits = {bits};"]
    for member in struct:
        size = width(member, types)
        at -= size
        lines.append(f"  static constexpr bench::Field {member.get('name')}{{{at}, {size}}};")
    return "\n".join([*lines, "};", f"}}  // namespace {package}"]) + "\n"


def width(kind, types):
    """Width of a type in bits."""
    if kind.tag == "structdtype":
        return sum(width(member, types) for member in kind)
    if kind.tag == "packarraydtype":
        first, last = (int(one.get("name").split("h")[-1], 16) for one in kind.find("range"))
        return (abs(first - last) + 1) * width(types[kind.get("sub_dtype_id")], types)
    if kind.tag == "basicdtype":
        return abs(int(kind.get("left", 0)) - int(kind.get("right", 0))) + 1
    if kind.tag in ("memberdtype", "refdtype", "enumdtype"):
        return width(types[kind.get("sub_dtype_id")], types)
    raise verilator.Fault(f"the packages have a type of an unknown sort: {kind.tag}")
