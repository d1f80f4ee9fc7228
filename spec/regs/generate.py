#!/usr/bin/env python3
"""Writes the files that are generated from spec/regs: the SystemVerilog package, the Rust constants and rows, the reference page.

    spec/regs/generate.py [--check]

With --check it writes nothing and exits with 1 if a file is stale. Needs systemrdl-compiler, which scripts/regs installs.
"""

import pathlib
import sys
import textwrap

from systemrdl import RDLCompiler

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = "Generated from spec/regs by spec/regs/generate.py: edit those files, then `make generate`."
SV = "rtl/card/hue_regs_pkg.sv"
RUST = "crates/card/src/generated/regs.rs"
DOCS = "docs/reference/card.md"
RUST_WIDTH = 110
ACCESS = {"r": "read", "rw": "read, write", "w": "write", "rw1": "read, write", "w1": "write"}


def compiled(name):
    """The registers of a description, in order."""
    compiler = RDLCompiler()
    compiler.compile_file(str(ROOT / "spec/regs" / name))
    return list(compiler.elaborate().top.children(unroll=False))


def fields(reg):
    return sorted(reg.fields(), key=lambda field: field.low)


def count(reg):
    return reg.array_dimensions[0] if reg.is_array else 1


def reset(reg):
    return sum((field.get_property("reset") or 0) << field.low for field in reg.fields())


def camel(name):
    return "".join(part.capitalize() for part in name.split("_"))


def title(name):
    return camel(name.removesuffix("_e"))


def access(reg):
    kinds = {field.get_property("sw").name for field in reg.fields()}
    cleared = any(field.get_property("woclr") for field in reg.fields())
    text = ", ".join(sorted({ACCESS[kind] for kind in kinds}))
    return text + (", a written 1 clears" if cleared else "")


def encodings(registers):
    """Enumerations used by fields, each once."""
    found = {}
    for reg in registers:
        for field in fields(reg):
            encode = field.get_property("encode")
            if encode is not None:
                found.setdefault(encode.type_name, (field.width, encode))
    return found


# SystemVerilog


def sv_struct(reg, name, width):
    """A packed struct, highest bits first, with the gaps named."""
    rows, at = [], 0
    for field in fields(reg):
        if field.low > at:
            rows.append((field.low - at, f"gap{at}"))
        rows.append((field.width, field.inst_name))
        at = field.high + 1
    if width > at:
        rows.append((width - at, f"gap{at}"))
    lines = [f"  typedef struct packed {{"]
    for bits, text in reversed(rows):
        kind = "logic       " if bits == 1 else f"logic [{bits - 1}:0]".ljust(12)
        lines.append(f"    {kind} {text};")
    lines.append(f"  }} {name};")
    return lines


def sv(registers, tables):
    # No module uses all constants of a package.
    out = [f"// {HEAD}", "/* verilator lint_off UNUSEDPARAM */", "package hue_regs_pkg;", "  // Byte addresses of registers, and their values after reset."]
    for reg in registers:
        name = reg.inst_name.upper()
        out.append(f"  localparam logic [23:0] ADDR_{name} = 24'h{reg.raw_address_offset:06x};")
        if reg.is_array:
            out.append(f"  localparam int unsigned COUNT_{name} = {count(reg)};")
        out.append(f"  localparam logic [31:0] RESET_{name} = 32'h{reset(reg):08x};")
    for name, (width, encode) in encodings(registers).items():
        out += ["", f"  // {camel(name.removesuffix('_e'))}."]
        for member in encode:
            out.append(
                f"  localparam logic [{width - 1}:0] {name.removesuffix('_e').upper()}_{member.name.upper()}"
                f" = {width}'d{member.value};"
            )
    out += ["", "  // Registers, 32 bits."]
    for reg in registers:
        out += sv_struct(reg, f"reg_{reg.inst_name}_t", 32)
    out += ["", "  // Tables behind the access unit: numbers, and rows without the unused bits above them."]
    for reg in tables:
        out.append(f"  localparam logic [7:0] TABLE_{reg.inst_name.upper()} = 8'd{reg.get_property('table_id')};")
    for reg in tables:
        out += sv_struct(reg, f"row_{reg.inst_name}_t", fields(reg)[-1].high + 1)
    out += ["endpackage", "/* verilator lint_on UNUSEDPARAM */", ""]
    return "\n".join(out)


# Rust


def rust_type(width):
    return next(f"u{bits}" for bits in (8, 16, 32, 64) if width <= bits)


def rust_value(field):
    return "bool" if field.width == 1 else rust_type(field.width)


def rust_doc(text, pad=""):
    """A documentation comment, wrapped."""
    lines, line = [], ""
    for word in text.split():
        if line and len(pad) + len(line) + len(word) + 6 > RUST_WIDTH:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [f"{pad}/// {line}" for line in [*lines, line]]


def rust_row(reg):
    name = camel(reg.inst_name) + "Row"
    out = [""] + rust_doc(f"{reg.get_property('name')}: {reg.get_property('desc')}")
    out.append("#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]")
    out.append(f"pub struct {name} {{")
    for field in fields(reg):
        out += rust_doc(field.get_property("desc"), "    ")
        out.append(f"    pub {field.inst_name}: {rust_value(field)},")
    out += ["}", "", f"impl Row for {name} {{"]
    table = reg.inst_name.upper()
    out.append(f"    const TABLE: Table = {table};")
    out += ["", "    fn pack(&self) -> Result<Words, FieldError> {", "        let mut words = [0; ROW_WORDS];"]
    for field in fields(reg):
        value = f"self.{field.inst_name}" if rust_value(field) == "u64" else f"u64::from(self.{field.inst_name})"
        call = f'put(&mut words, "{reg.inst_name}.{field.inst_name}", {field.low}, {field.width}, {value})?;'
        out.append(f"        {call}")
    out += ["        Ok(words)", "    }", "", "    fn unpack(words: &Words) -> Self {"]
    values = []
    for field in fields(reg):
        kind = rust_value(field)
        value = f"get(words, {field.low}, {field.width})"
        value = {"bool": f"{value} != 0", "u64": value}.get(kind, f"{value} as {kind}")
        values.append(f"{field.inst_name}: {value}")
    line = "        Self { " + ", ".join(values) + " }"
    if len(line) <= RUST_WIDTH:
        out.append(line)
    else:
        out += ["        Self {", *[f"            {value}," for value in values], "        }"]
    return out + ["    }", "}"]


def writable(reg):
    """Bits of a register that a driver may write."""
    mine = [field for field in reg.fields() if "w" in field.get_property("sw").name]
    return sum((1 << field.width) - 1 << field.low for field in mine)


def rust(registers, tables):
    out = [f"// {HEAD}", "use crate::rows::{FieldError, ROW_WORDS, Row, Table, Words, get, put};"]
    for reg in registers:
        out += [""] + rust_doc(f"{reg.get_property('name')}: {reg.get_property('desc')}")
        size = count(reg)
        if size > 1:
            places = [f"0x{reg.raw_address_offset + 4 * place:03x}" for place in range(size)]
            line = f"pub const {reg.inst_name.upper()}: [u32; {size}] = [{', '.join(places)}];"
            if len(line) <= RUST_WIDTH:
                out.append(line)
            else:
                # Filled like rustfmt fills lines of short numbers.
                text = textwrap.fill(", ".join(places) + ",", RUST_WIDTH, initial_indent="    ", subsequent_indent="    ")
                out.append(f"pub const {reg.inst_name.upper()}: [u32; {size}] = [\n{text}\n];")
        else:
            out.append(f"pub const {reg.inst_name.upper()}: u32 = 0x{reg.raw_address_offset:03x};")
        if reset(reg):
            out += rust_doc("Its value after reset.")
            out.append(f"pub const {reg.inst_name.upper()}_RESET: u32 = 0x{reset(reg):08x};")
        if len(fields(reg)) > 1 or fields(reg)[0].width == 1:
            for field in fields(reg):
                mask = (1 << field.width) - 1 << field.low
                out += rust_doc(f"{field.get_property('desc')} Mask.")
                out.append(f"pub const {reg.inst_name.upper()}_{field.inst_name.upper()}: u32 = 0x{mask:08x};")
    places = [(reg.raw_address_offset + 4 * place, writable(reg)) for reg in registers for place in range(count(reg))]
    places = sorted((address, bits) for address, bits in places if bits)
    out += [""] + rust_doc("Registers that can be written, by address, and which bits of them.")
    out.append(f"pub const WRITABLE: [(u32, u32); {len(places)}] = [")
    out += [f"    (0x{address:03x}, 0x{bits:08x})," for address, bits in places] + ["];"]
    for name, (_, encode) in encodings(registers).items():
        for member in encode:
            out += [""] + rust_doc(f"{title(name)}: {member.rdl_desc}")
            out.append(f"pub const {name.removesuffix('_e').upper()}_{member.name.upper()}: u32 = {member.value};")
    for reg in tables:
        out += [""] + rust_doc(f"{reg.get_property('name')}. Index: {reg.get_property('row_index')}.")
        out.append(
            f"pub const {reg.inst_name.upper()}: Table = Table {{ name: \"{reg.inst_name}\", "
            f"id: {reg.get_property('table_id')}, bits: {fields(reg)[-1].high + 1} }};"
        )
    for reg in tables:
        out += rust_row(reg)
    return "\n".join(out) + "\n"


# The reference page


def docs(registers, tables):
    out = [
        f"<!-- {HEAD} -->",
        "# Registers and tables of the card",
        "",
        "This is the interface of a driver, the same for a real card and for the twin.",
        "",
        "- **Registers** are 32 bits wide, at byte addresses. An access to any other address answers with an error and sets a bit in the",
        "  interrupt status.",
        "- **Tables and counters** are behind one access unit. Write the table, the row, for a write the row data, and then the command. Read the",
        "  result until it is not busy. After a read command, read the row data.",
        "- **Route words** are written in bursts. Write the place of the first word, then each word with one register write. Read the result of",
        "  the burst until it is not busy.",
        "",
        "## Registers",
        "",
        "| address | register | bits | access | description |",
        "| --- | --- | --- | --- | --- |",
    ]
    for reg in registers:
        first, size = reg.raw_address_offset, count(reg)
        place = f"`0x{first:03x}`" if size == 1 else f"`0x{first:03x}` to `0x{first + 4 * size - 4:03x}`"
        out.append(f"| {place} | `{reg.inst_name}` | | {access(reg)} | **{reg.get_property('name')}.** {reg.get_property('desc')} |")
        for field in fields(reg):
            bits = f"{field.high}..{field.low}" if field.width > 1 else f"{field.low}"
            after = field.get_property("reset")
            after = f" After reset 0x{after:x}." if after else ""
            out.append(f"| | `{field.inst_name}` | {bits} | | {field.get_property('desc')}{after} |")
    out += ["", "## Codes", "", "| code | value | meaning |", "| --- | --- | --- |"]
    for name, (_, encode) in encodings(registers).items():
        for member in encode:
            out.append(f"| `{name.removesuffix('_e')}` | {member.value} `{member.name}` | {member.rdl_desc} |")
    out += ["", "## Tables", ""]
    for reg in tables:
        may = "read, write" if reg.get_property("row_writable") else "read, read and clear"
        out += [
            f"### {reg.get_property('table_id')} `{reg.inst_name}`: {reg.get_property('name')}",
            "",
            f"{reg.get_property('desc')} Index: {reg.get_property('row_index')}. Access: {may}.",
            "",
            "| bits | field | meaning |",
            "| --- | --- | --- |",
        ]
        for field in fields(reg):
            bits = f"{field.high}..{field.low}" if field.width > 1 else f"{field.low}"
            out.append(f"| {bits} | `{field.inst_name}` | {field.get_property('desc')} |")
        out.append("")
    return "\n".join(out)


def main(arguments):
    if arguments not in ([], ["--check"]):
        print(f"generate.py: found {' '.join(arguments)}, expected nothing or --check", file=sys.stderr)
        return 2
    registers, tables = compiled("card.rdl"), compiled("tables.rdl")
    stale = []
    for name, emit in [(SV, sv), (RUST, rust), (DOCS, docs)]:
        path, wanted = ROOT / name, emit(registers, tables)
        if path.exists() and path.read_text() == wanted:
            continue
        if arguments:
            stale.append(name)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted)
            print(f"wrote {name}")
    for name in stale:
        print(f"{name} is stale: run `make generate`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
