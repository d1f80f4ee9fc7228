"""Corrupts every field at a module's ports: the faults that scripts/formal plants in addition to those in proofs.toml.

A proof lists ports of its module (`fields` in rtl/formal/proofs.toml) with the condition under which the value is handed over. Each
field of each such port is then corrupted in turn. Packed structs are split into their fields, so a field that is added later is
included. The faults of a field are:

    zero        always zero
    ones        always ones
    neighbour   the value that was handed over before
    bit N       that bit is inverted

The proof must find each fault, with two exceptions. It must not find faults in fields that are listed as `ignored`, with a reason; of
these, zero and ones are tried, and if single bits are listed, each is inverted. For a field listed as `always_zero`, it must not find
zero, and must find ones and inverted bits.

To plant the faults, the module is renamed, and a wrapper with its name corrupts the values that pass. The solver chooses a constant
that selects the fault. So the design is read once, and ABC's `bmc3 -a` searches for counterexamples of all faults together. A second
search checks that the design without a fault has no counterexample.
"""

import dataclasses
import re
import subprocess

KINDS = ["zero", "ones", "neighbour", "bit"]
# Ports that need not be listed: handshakes and similar signals carry no part of a frame. Proofs of order and count cover them.
CONTROL = re.compile(
    r"^((s|m)_)?(clk|rst)_n?i$"
    r"|(^|_)((aw|ar|w|b|r)?(valid|ready)|idle|busy|wait|stall|error|full|empty|done|room|en|start|take|read|write|release)_[io]$")

# Longest runs for the faults that must not be found.
QUIET_CLOCKS = 8
# Fields that are handshakes too.
HANDSHAKES = {("tbl_req_t", "valid"), ("tbl_rsp_t", "done"), ("queue_req_t", "valid"), ("sram_req_t", "en")}


class Fault(Exception):
    """An error in a module or in a list of fields."""


@dataclasses.dataclass
class Port:
    """A port of a module: `kind` is its type, as in the source."""
    name: str
    output: bool
    kind: str


@dataclasses.dataclass
class Field:
    """A field of a port: `path` is relative to the port, '' for a port without fields; `bits` is its width."""
    port: Port
    path: str
    bits: int
    items: int  # elements of a port that is an array of structs, or 0

    @property
    def name(self):
        return self.port.name + (f".{self.path}" if self.path else "")


def uncommented(text):
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", text), flags=re.DOTALL)


def split(text):
    """The parts between commas outside brackets."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [part.strip() for part in [*parts, text[begin:]] if part.strip()]


def closing(text, at):
    """The position after the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] == "(") - (text[i] == ")")
        if depth == 0:
            return i + 1
    raise Fault("a bracket is not closed")


class Module:
    """The head of a module in `text`."""

    def __init__(self, text, name):
        clean = re.sub(r"^\s*`\w.*$", "", uncommented(text), flags=re.MULTILINE)
        found = re.search(rf"\bmodule\s+{name}\b", clean)
        if not found:
            raise Fault(f"no module {name}")
        at = found.end()
        first = re.compile(r"[#(]").search(clean, at).start()
        self.name, self.imports, self.parameters = name, clean[at:first].strip(), ""
        if clean[first] == "#":
            begin = clean.index("(", first)
            end = closing(clean, begin)
            self.parameters = clean[begin + 1:end - 1].strip()
            first = clean.index("(", end)
        self.ports_text = clean[first + 1:closing(clean, first) - 1].strip()
        self.ports = []
        for part in split(self.ports_text):
            direction, kind, port = re.fullmatch(r"(input|output)\s+(.*?)\s*(\w+)", part, re.DOTALL).groups()
            self.ports.append(Port(port, direction == "output", " ".join(kind.split())))

    def given(self):
        """Names of the parameters that an instance may set."""
        return [re.search(r"(\w+)\s*=", part)[1] for part in split(self.parameters) if not part.startswith("localparam")]

    def port(self, name):
        for port in self.ports:
            if port.name == name:
                return port
        raise Fault(f"{self.name} has no port {name}")

    def values(self, known, numbers):
        """Parameters and local parameters by name, if they are numbers, also of those of packages. Values in `known` have priority."""
        values = dict(known)
        for part in split(self.parameters):
            name, text = re.search(r"(\w+)\s*=\s*(.*)", part, re.DOTALL).groups()
            if name not in known:
                try:
                    values[name] = number(text, {**numbers, **values})
                except (SyntaxError, NameError, TypeError):
                    pass
        return values


def number(text, values):
    """The value of a constant expression."""
    text = re.sub(r"\d*'d(\d+)", r"\1", text.replace("$clog2", "clog2")).replace("?", " and ").replace(":", " or ").replace("/", "//")
    scope = {"clog2": lambda n: max(0, (n - 1).bit_length()), "__builtins__": {}, **values}
    return int(eval(text, scope))  # pylint: disable=eval-used


class Types:
    """Packed structs and numbers of the packages."""

    def __init__(self, texts):
        self.structs, self.numbers = {}, {}
        for text in map(uncommented, texts):
            for name, value in re.findall(r"localparam int unsigned (\w+)\s*=\s*([^;]*);", text):
                try:
                    self.numbers[name] = number(value, self.numbers)
                except (SyntaxError, NameError, TypeError):
                    pass
            for body, name in re.findall(r"typedef struct packed \{(.*?)\}\s*(\w+);", text, re.DOTALL):
                self.structs[name] = [line.strip() for line in body.split(";") if line.strip()]

    def size(self, dimensions, values):
        """Bits of `[a:b][c:d]…`."""
        size = 1
        for high, low in re.findall(r"\[([^:\]]*):([^\]]*)\]", dimensions):
            size *= number(high, values) - number(low, values) + 1
        return size

    def leaves(self, kind, values):
        """(path, bits) of each field of a type."""
        base, dimensions = re.fullmatch(r"([\w:]+)\s*((?:\[[^\]]*\]\s*)*)", kind).groups()
        struct = self.structs.get(base.split("::")[-1])
        if struct is None:
            return [("", self.size(dimensions, values))]
        if dimensions:
            raise Fault(f"an array of structs inside a struct: {kind}")
        found = []
        for member in struct:
            inner, name = re.fullmatch(r"(.*?)\s*(\w+)", member, re.DOTALL).groups()
            for path, bits in self.leaves(" ".join(inner.split()), values):
                found.append((name + (f".{path}" if path else ""), bits))
        return found

    def fields(self, module, port, values):
        """Fields of a port."""
        values = {**self.numbers, **values}
        base, dimensions = re.fullmatch(r"([\w:]+)\s*((?:\[[^\]]*\]\s*)*)", port.kind).groups()
        if base.split("::")[-1] in self.structs:
            items = self.size(dimensions, values) if dimensions else 0
            name = base.split("::")[-1]
            return [Field(port, path, bits, items) for path, bits in self.leaves(base, values)
                    if (name, path) not in HANDSHAKES]
        if base != "logic":
            raise Fault(f"{module.name}: port {port.name} has the unknown type {port.kind}")
        return [Field(port, "", self.size(dimensions, values), 0)]


@dataclasses.dataclass
class Plant:
    """A fault: its number, the field and how it is corrupted."""
    number: int
    field: Field
    kind: str
    bit: int = 0
    ignored: bool = False

    @property
    def name(self):
        return f"{self.field.name}: {self.kind}" + (f" {self.bit}" if self.kind == "bit" else "")


def unused_bits(ignored, field):
    """The bits of a field that `ignored` lists, as in `port.field[255:99]`. Removes these entries from `ignored`."""
    bits = set()
    for name in list(ignored):
        found = re.fullmatch(re.escape(field.name) + r"\[(\d+)(?::(\d+))?\]", name)
        if found:
            del ignored[name]
            bits.update(range(int(found[2] or found[1]), int(found[1]) + 1))
    return bits


def plants_of(module, border, types, values, first):
    """All faults of a module's listed ports, numbered from `first` on. The faults of the single bits of a field share a number."""
    plants, stale, zeros = [], dict(border.get("ignored", {})), dict(border.get("always_zero", {}))
    for name, take in border["ports"].items():
        for field in types.fields(module, module.port(name), values):
            ignored = stale.pop(field.name, None) is not None
            unused = unused_bits(stale, field)
            zero = zeros.pop(field.name, None) is not None
            for kind in ["zero", "ones"] if ignored else KINDS:
                if kind == "neighbour" and (not take or zero):
                    continue
                plants += [Plant(first, field, kind, bit, ignored or (kind == "bit" and bit in unused) or (kind == "zero" and zero))
                           for bit in range(field.bits if kind == "bit" else 1)]
                first += 1
    if stale or zeros:
        raise Fault(f"{module.name}: no field {', '.join([*stale, *zeros])}")
    return plants


def own_plants(texts, border, types, parameters, first):
    """The module of an entry in `fields`, and its faults."""
    module = Module(texts[f"{border['module']}.sv"], border["module"])
    known = {key: value for key, value in {**parameters, **border.get("parameters", {})}.items() if key in module.given()}
    return module, plants_of(module, border, types, module.values(known, types.numbers), first)


def counts(texts, border, types, parameters):
    """Numbers of fields and faults of an entry, and its fields that are ignored or always zero: names by reason."""
    _, plants = own_plants(texts, border, types, parameters, 1)
    fields = {plant.field.name for plant in plants if not plant.ignored}
    ignored, zeros = {}, {}
    for reasons, listed in ((ignored, "ignored"), (zeros, "always_zero")):
        for name, why in border.get(listed, {}).items():
            reasons.setdefault(why, []).append(name)
    return len(fields), sum(not plant.ignored for plant in plants), ignored, zeros


def missing(known, texts):
    """Ports on a packet's way that carry a part of it, and that neither a proof nor `elsewhere` lists."""
    borders = [border for proof in known["proof"] for border in proof.get("fields", [])]
    named = {(one["module"], port) for one in borders + known["elsewhere"] for port in one["ports"]}
    ports = {(name, port.name) for name in known["way"] for port in Module(texts[name], name).ports}
    unused = {(one["module"], port) for one in known["elsewhere"] for port in one["ports"]}
    unused &= {(one["module"], port) for one in borders for port in one["ports"]}
    stale = sorted({one for one in named if one[0] in known["way"]} - ports | unused)
    if stale:
        raise Fault(f"no such port, or listed twice: {', '.join('.'.join(one) for one in stale)}")
    return [f"{module}.{port}" for module, port in sorted(ports - named) if not CONTROL.search(port)]


def corrupted(field, kind):
    """The assignment that plants a fault."""
    at = f"passed_{field.port.name}" + ("[i]" if field.items else "") + (f".{field.path}" if field.path else "")
    before = f"before_{field.port.name}_q" + ("[i]" if field.items else "") + (f".{field.path}" if field.path else "")
    value = {"zero": "'0", "ones": "'1", "neighbour": before, "bit": f"{at} ^ ({field.bits}'(1) << hue_bit)"}[kind]
    text = f"{at} = {value};"
    if kind == "neighbour":
        text = f"if (begun_{field.port.name}_q) {text}"
    return f"for (int i = 0; i < {field.items}; i++) {text}" if field.items else text


def around(module, border, plants, top):
    """The wrapper around the renamed module."""
    clock, reset = border.get("clock", "clk_i"), border.get("reset", "rst_ni")
    lines = [f"module {module.name} {module.imports} " + (f"#({module.parameters}) " if module.parameters else "")
             + f"({module.ports_text});", "  logic [15:0] hue_plant, hue_bit;",
             f"  assign hue_plant = {top}.hue_plant;", f"  assign hue_bit = {top}.hue_bit;"]
    for name, take in border["ports"].items():
        port = module.port(name)
        inner, outer = (f"inner_{name}", name) if port.output else (name, f"inner_{name}")
        # A module with two clocks has ports in both clock domains.
        own_clock, own_reset = next((side for begins, side in border.get("sides", {}).items() if name.startswith(begins)), (clock, reset))
        lines += [f"  {port.kind} inner_{name}, passed_{name}, before_{name}_q;", f"  logic begun_{name}_q;",
                  f"  initial begun_{name}_q = 1'b0;", f"  assign {outer} = passed_{name};", "  always_comb begin", f"    passed_{name} = {inner};"]
        if any(plant.field.port.name == name and plant.kind == "neighbour" for plant in plants):
            lines.insert(-2, f"  always_ff @(posedge {own_clock}) begin\n    if ({take}) before_{name}_q <= {inner};\n"
                         f"    begun_{name}_q <= {own_reset} && (begun_{name}_q || ({take}));\n  end")
        numbers = {plant.number: plant for plant in plants if plant.field.port.name == name}
        lines += [f"    if (hue_plant == 16'd{number}) begin {corrupted(plant.field, plant.kind)} end"
                  for number, plant in numbers.items()]
        lines += ["  end"]
    given = ", ".join(f".{name}({name})" for name in module.given())
    ports = ", ".join(f".{port.name}({'inner_' if port.name in border['ports'] else ''}{port.name})" for port in module.ports)
    lines += [f"  {module.name}_inner " + (f"#({given}) " if given else "") + f"u_inner ({ports});", "endmodule"]
    return "\n".join(lines) + "\n"


# The constant that selects the fault: chosen in the first clock, in which the module is reset, and kept.
CHOICE = """
  (* anyseq *) logic [31:0] hue_any;
  logic [31:0] hue_choice_q;
  logic [15:0] hue_plant, hue_bit;
  logic hue_begun_q;
  initial hue_begun_q = 1'b0;
  always_ff @(posedge {clock}) begin
    hue_begun_q <= 1'b1;
    if (!hue_begun_q) hue_choice_q <= hue_any;
  end
  assign {{hue_plant, hue_bit}} = hue_begun_q ? hue_choice_q : '0;
endmodule
"""
# With two clocks, registers lose their names, so an input has the same value.
PICK = "  input logic [31:0] hue_pick_i,\n"
PICKED = "  always_comb assume (hue_pick_i == {hue_plant, hue_bit});\nendmodule\n"


def planted(texts, top, borders, types, values):
    """The sources with a wrapper around each module in `borders`, and the faults. Number 0 means no fault."""
    texts, plants = dict(texts), []
    for border in borders:
        name = border["module"]
        file = f"{name}.sv"
        module, own = own_plants(texts, border, types, values, (plants[-1].number if plants else 0) + 1)
        plants += own
        renamed = re.sub(rf"\bmodule\s+{name}\b", f"module {name}_inner", texts[file], count=1)
        texts[file] = around(module, border, own, top) + renamed
    # Paths into the module, and into a second copy of it.
    harness = re.sub(r"\b(u_dut|u_other)\.", r"\1.u_inner.", texts[f"{top}.sv"])
    end = harness.rindex("endmodule")
    made = harness[:end] + CHOICE.format(clock=borders[0].get("clock", "clk_i"))
    if any("sides" in border for border in borders):
        at = made.index("(\n  input") + 2
        made = made[:at] + PICK + made[at:made.rindex("endmodule")] + PICKED
    texts[f"{top}.sv"] = made
    return texts, plants


# The commands of SymbiYosys for a bounded proof by ABC, after read_slang, in one script.
AIGER = """setundef -undriven -anyseq
prep -flatten -top {top}
memory_map
opt -full
hierarchy -smtcheck
scc -select; simplemap; select -clear
memory_nordff
{clocks}
chformal -assume -early
opt_clean
formalff -setundef -clk2ff -ff2anyinit -hierarchy
chformal -live -fair -cover -remove
opt_clean
setundef -undriven -anyseq
opt -fast
delete */t:$print
formalff -assume
setattr -unset keep
delete -output
opt -full
techmap
opt -fast
memory_map -formal
formalff -clk2ff -ff2anyinit
simplemap
dffunmap
aigmap
opt_clean
write_aiger -I -B -zinit -no-startoffset -map design.aim design.aig
"""


class Aiger:
    """A design in the binary format AIGER 1.9, to which gates are added (Biere, Heljanko, Wieringa, 2011)."""

    def __init__(self, data):
        end = data.index(b"\n")
        word, *counts = data[:end].split()
        if word != b"aig":
            raise Fault("not an AIGER file")
        self.max, self.inputs, self.latches, outputs, self.ands, bads, constraints = [*map(int, counts), 0, 0][:7]
        at, lines = end + 1, []
        for _ in range(self.latches + outputs + bads + constraints):
            end = data.index(b"\n", at)
            lines.append(data[at:end])
            at = end + 1
        self.latch_lines = lines[:self.latches]
        self.bads = [int(line) for line in lines[self.latches + outputs:][:bads]]
        self.constraints = lines[self.latches + outputs + bads:]
        begin = at
        for _ in range(2 * self.ands):
            while data[at] & 0x80:
                at += 1
            at += 1
        self.gates = bytearray(data[begin:at])

    def both(self, a, b):
        """The literal of `a` and `b`."""
        if a == 0 or b == 0:
            return 0
        if a == 1 or b == 1:
            return b if a == 1 else a
        self.max += 1
        self.ands += 1
        made = 2 * self.max
        high, low = max(a, b), min(a, b)
        for delta in (made - high, high - low):
            while delta >= 0x80:
                self.gates.append(delta & 0x7f | 0x80)
                delta >>= 7
            self.gates.append(delta)
        return made

    def all(self, literals):
        literals = sorted(set(literals)) or [1]
        while len(literals) > 1:
            literals = [self.both(*literals[i:i + 2]) if i + 1 < len(literals) else literals[i]
                        for i in range(0, len(literals), 2)]
        return literals[0]

    def equals(self, bits, value):
        """Whether the literals `bits`, lowest first, are `value`."""
        return self.all([literal ^ (not value >> i & 1) for i, literal in enumerate(bits)])

    def written(self, bads):
        head = f"aig {self.max} {self.inputs} {self.latches} 0 {self.ands} {len(bads)} {len(self.constraints)} 0 0\n"
        lines = [*self.latch_lines, *(str(bad).encode() for bad in bads), *self.constraints]
        return head.encode() + b"".join(line + b"\n" for line in lines) + bytes(self.gates)


def named(aiger, names, kind, wanted):
    """Literals of a register or an input of the harness, from the map that Yosys writes."""
    bits = {}
    for line in names.splitlines():
        word, *rest = line.split()
        if word == kind and rest[2] == wanted:
            bits[int(rest[1])] = 2 * ((aiger.inputs if kind == "latch" else 0) + int(rest[0]) + 1)
    return bits


def faults(aiger, names, plants):
    """Literals of the counterexamples: without a fault, then for each fault in `plants`."""
    bits = named(aiger, names, "input", "hue_pick_i") or named(aiger, names, "latch", "hue_choice_q")
    for bit in range(32):
        bits.setdefault(bit, 0)
    low, high = [bits[i] for i in range(16)], [bits[i + 16] for i in range(16)]
    fails = aiger.all([bad ^ 1 for bad in aiger.bads]) ^ 1
    # The first clock has no fault yet.
    fails = aiger.both(fails, named(aiger, names, "latch", "hue_begun_q").get(0, 1))
    outputs = [aiger.both(fails, aiger.equals(high, 0))]
    for plant in plants:
        here = aiger.equals(high, plant.number)
        if plant.kind == "bit":
            here = aiger.both(here, aiger.equals(low, plant.bit))
        outputs.append(aiger.both(fails, here))
    return outputs


class Search:
    """Runs of Yosys and ABC in the folder `where`."""

    def __init__(self, where, yosys, abc, seconds):
        self.where, self.yosys, self.abc, self.seconds = where, yosys, abc, seconds

    def read(self, script):
        """Runs Yosys."""
        (self.where / "fields.ys").write_text(script)
        with (self.where / "fields.log").open("w") as log:
            done = subprocess.run([self.yosys, "-ql", "yosys.log", "fields.ys"], cwd=self.where, stdout=log, stderr=log, check=False)
        if done.returncode != 0:
            raise Fault(f"Yosys failed: {self.where}/yosys.log")

    def outputs(self, name, design, depth):
        """Which outputs of a design have a counterexample within `depth` clocks."""
        (self.where / f"{name}.aig").write_bytes(design)
        command = f"read_aiger {name}.aig; fold; strash; bmc3 -a -g -F {depth} -T {self.seconds}"
        with (self.where / f"{name}.log").open("w") as log:
            subprocess.run([self.abc, "-c", command], cwd=self.where, stdout=log, stderr=log, check=False)
        text = (self.where / f"{name}.log").read_text(errors="replace")
        if "imeout" in text or "Time =" not in text:
            raise Fault(f"ABC did not finish: {self.where}/{name}.log")
        return {int(number) for number in re.findall(r"Output\s+(\d+) was asserted in frame", text)}

    def wrong(self, plants, depth):
        """A message about faults that were found or not found against expectation, or an empty text."""
        aiger = Aiger((self.where / "design.aig").read_bytes())
        literals = faults(aiger, (self.where / "design.aim").read_text(), plants)
        must = [(plant, literal) for plant, literal in zip(plants, literals[1:]) if not plant.ignored]
        must_not = [("no fault", literals[0])]
        must_not += [(f"{plant.name}, which is ignored", literal) for plant, literal in zip(plants, literals[1:]) if plant.ignored]
        none = aiger.all([literal ^ 1 for _, literal in must_not]) ^ 1
        found = self.outputs("must", aiger.written([literal for _, literal in must]), depth)
        lost = [plant.name for at, (plant, _) in enumerate(must) if at not in found]
        said = []
        if lost:
            said.append(f"not found, {len(lost)} of {len(must)}: {'; '.join(lost[:40])}{' …' if len(lost) > 40 else ''}")
        # All in one search: showing that none can be found takes as long as the proof, and longer for each further clock.
        depth = min(depth, QUIET_CLOCKS)
        if self.outputs("must_not", aiger.written([none]), depth):
            found = sorted(self.outputs("which", aiger.written([literal for _, literal in must_not]), depth))
            names = ["no fault at all"] if 0 in found else [must_not[at][0] for at in found[:40]]
            said.append(f"a counterexample with {'; '.join(names)}{' …' if len(found) > 40 else ''}")
        return "\n".join([*said, str(self.where)]) if said else ""
