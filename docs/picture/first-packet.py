"""Draws first-packet.svg from the waves of one packet in the card: scripts/wave-picture FILE.fst FILE.svg.

A clock's value is what a signal has before the clock's rising edge. Clock 0 is the packet's first beat at a MAC port.
"""

import sys

import pywellen

WIDTH, LEFT, RIGHT, TOP, ROW, HIGH = 960, 206, 18, 62, 36, 18
CLOCKS_MAX = 400

FONTS = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', Helvetica, Arial, sans-serif"
STYLE = """
    .ink { fill: #1f2328 } .dim { fill: #59636e } .grid { stroke: #d1d9e0; stroke-width: 1 }
    .wave { fill: none; stroke: #59636e; stroke-width: 1.4 } .tip { fill: #59636e }
    .beat { fill: #d62728; fill-opacity: .22; stroke: #d62728; stroke-width: 1.4 }
    .record { fill: #8250df; fill-opacity: .22; stroke: #8250df; stroke-width: 1.4 }
    .span { stroke: #59636e; stroke-width: 1.2; fill: none }
    .b { font-weight: 600 } .s { font-size: 12px } .mid { text-anchor: middle } .end { text-anchor: end }
    .mono { font-family: ui-monospace, 'DejaVu Sans Mono', monospace; font-size: 12px }
    @media (prefers-color-scheme: dark) {
      .ink { fill: #e6edf3 } .dim { fill: #9198a1 } .grid { stroke: #2f353d } .wave, .span { stroke: #9198a1 }
      .tip { fill: #9198a1 } .beat { fill: #ff6b6b; stroke: #ff6b6b } .record { fill: #a371f7; stroke: #a371f7 }
    }
"""


class Waves:
    """Signals of hue_card by their names there, clock by clock."""

    def __init__(self, path):
        waveform = pywellen.Waveform(path)
        self._found = {}
        for var in waveform.all_vars():
            self._found.setdefault(var.full_name, var)
        clock = self._var("hue_card.clk_i").signal
        self._edges = self._rising(waveform, clock)
        self._signals = {}

    def _var(self, name):
        matches = [full for full in self._found if full.endswith("." + name) or full == name]
        if not matches:
            raise SystemExit(f"wave-picture: no signal {name} in the waves")
        return self._found[min(matches, key=len)]

    @staticmethod
    def _rising(waveform, clock):
        """Times of the clock's rising edges, in order."""
        times = []
        waveform.stream_time_steps(lambda time, *_: times.append(time), None)
        before, edges = 0, []
        for time in times:
            value = int(clock.value_at(time) or 0)
            if value == 1 and before == 0:
                edges.append(time)
            before = value
        return edges

    @property
    def clocks(self):
        return len(self._edges)

    @property
    def period(self):
        return self._edges[1] - self._edges[0]

    def at(self, name, clock, bit=0):
        if name not in self._signals:
            self._signals[name] = self._var(name).signal
        value = self._signals[name].value_at(self._edges[clock] - 1)
        return int(value or 0) >> bit & 1


def first(waves, name, bits):
    """The first clock and bit in which a signal is 1."""
    for clock in range(waves.clocks):
        for bit in range(bits):
            if waves.at(name, clock, bit):
                return clock, bit
    raise SystemExit(f"wave-picture: {name} is never 1 in these waves")


def svg(waves):
    start, port_in = first(waves, "hue_card.s_tvalid_i", 4)
    _, port_out = first(waves, "hue_card.m_tvalid_o", 8)
    rows = [
        (f"s_tvalid_i[{port_in}]", f"bytes in at p{port_in}", "hue_card.s_tvalid_i", port_in, "beat"),
        (f"s_tlast_i[{port_in}]", "its last beat", "hue_card.s_tlast_i", port_in, "wave"),
        ("u_gather.s_valid_i", "gather reads it", "u_gather.s_valid_i", 0, "beat"),
        ("head_valid", "its head to the stages", "hue_card.head_valid", 0, "record"),
        ("verdict_valid", "what becomes of it", "hue_card.verdict_valid", 0, "record"),
        ("u_scatter.m_valid_o", "edited, out of the buffer", "u_scatter.m_valid_o", 0, "beat"),
        (f"m_tvalid_o[{port_out}]", f"bytes out at p{port_out}", "hue_card.m_tvalid_o", port_out, "beat"),
        (f"m_tlast_o[{port_out}]", "its last beat", "hue_card.m_tlast_o", port_out, "wave"),
    ]
    high = []
    for _, _, name, bit, _ in rows:
        clocks = range(start, min(waves.clocks, start + CLOCKS_MAX))
        high.append([clock - start for clock in clocks if waves.at(name, clock, bit)])
    # A last beat counts while there is a beat.
    high[1] = [clock for clock in high[1] if clock in high[0]]
    high[7] = [clock for clock in high[7] if clock in high[6]]
    end = high[7][0] + 3
    return draw(rows, high, end, waves.period)


def draw(rows, high, end, period_ps):
    step = (WIDTH - LEFT - RIGHT) / end
    height = TOP + ROW * len(rows) + 62

    def x(clock):
        return round(LEFT + step * clock, 1)

    total = high[6][0]
    stages = high[4][0] - high[3][0]
    mhz = 1_000_000 / period_ps
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title desc"',
        f'     font-family="{FONTS}" font-size="14">',
        '  <title id="title">The first packet through the card, clock by clock</title>',
        f'  <desc id="desc">Its {len(high[0])} beats come in from clock 0 on; its head goes to the stages in clock',
        f"    {high[3][0]}, the verdict comes {stages} clocks later, and its first beat leaves in clock {total}.</desc>",
        f"  <style>{STYLE}  </style>",
        '  <defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"',
        '    orient="auto-start-reverse"><path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>',
        f'  <text class="dim s end" x="{LEFT - 12}" y="24">clock, {mhz:g} MHz</text>',
    ]
    bottom = TOP + ROW * len(rows) - 8
    for clock in range(0, end + 1, 5):
        out.append(f'  <path class="grid" d="M{x(clock)} 32V{bottom}"/>')
        out.append(f'  <text class="dim s mid" x="{x(clock)}" y="24">{clock}</text>')
    for at, (label, what, _, _, kind) in enumerate(rows):
        base = TOP + ROW * at + HIGH
        out.append(f'  <text class="ink mono end" x="{LEFT - 12}" y="{base - 9}">{label}</text>')
        out.append(f'  <text class="dim s end" x="{LEFT - 12}" y="{base + 5}">{what}</text>')
        path, clock = f"M{x(0)} {base}", 0
        for begin in high[at]:
            if begin < clock or begin >= end:
                continue
            clock = begin
            while clock in high[at] and clock < end:
                clock += 1
            path += f"H{x(begin)}V{base - HIGH}H{x(clock)}V{base}"
        out.append(f'  <path class="wave" d="{path}H{x(end)}"/>')
        if kind != "wave":
            for clock in (clock for clock in high[at] if clock < end):
                place = f'x="{x(clock)}" y="{base - HIGH}" width="{step:.1f}" height="{HIGH}"'
                out.append(f'  <rect class="{kind}" {place}/>')
    # From head to verdict, and from the first beat in to the first beat out.
    y = TOP + ROW * 3 + HIGH - 5
    out.append(f'  <path class="span" d="M{x(high[3][0] + 1)} {y}H{x(high[4][0])}" marker-end="url(#tip)"/>')
    out.append(f'  <text class="dim s mid" x="{(x(high[3][0]) + x(high[4][0])) / 2:.1f}" y="{y - 6}">'
               f"stages: design select, meter, trie, next hop: {stages} clocks</text>")
    y = bottom + 16
    out.append(f'  <path class="span" d="M{x(0)} {y - 6}V{y + 6}M{x(total)} {y - 6}V{y + 6}"/>')
    out.append(f'  <path class="span" d="M{x(0)} {y}H{x(total)}" marker-start="url(#tip)" marker-end="url(#tip)"/>')
    out.append(f'  <text class="ink s mid" x="{(x(0) + x(total)) / 2:.1f}" y="{y + 20}">'
               f"first beat in to first beat out: {total} clocks, {total * period_ps / 1000:g} ns</text>")
    out.append("</svg>")
    return "\n".join(out) + "\n"


def main():
    if len(sys.argv) != 3:
        raise SystemExit("usage: scripts/wave-picture FILE.fst FILE.svg")
    picture = svg(Waves(sys.argv[1]))
    with open(sys.argv[2], "w", encoding="utf-8") as out:
        out.write(picture)
    print(f"wave-picture: {sys.argv[2]}")


if __name__ == "__main__":
    main()
