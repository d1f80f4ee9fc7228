"""Pages of the guide as steps: the files that a page tells its reader to write, and its commands with the output that it shows.

A file is a fenced block after a line that ends with its name, as in "`lab.yaml`:". A command is an indented line that begins with `$`;
one that ends with a backslash continues on the next line. The indented lines after it are its output.
"""

import dataclasses
import re

# From here on, a page needs the source tree: scripts/rtl-page runs the commands.
SOURCE = "## With the source tree"
FILE = re.compile(r"^(?P<how>Add to |Add before the last line of )?(?:.*[ (])?`(?P<path>[\w/.-]+)`:$")


@dataclasses.dataclass
class File:
    """A file to write: `how` is empty, or says where its text is added to an existing file."""

    path: str
    text: str
    how: str
    section: str


@dataclasses.dataclass
class Command:
    """A command, the lines that the page shows after it, the number of its line, and the heading above it."""

    line: str
    shown: list
    number: int
    section: str


def steps(text):
    """The steps of a page, in their order."""
    found, section, named, lines = [], "", None, text.splitlines()
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith("## "):
            section = line
        if line.startswith("```"):
            end = lines.index("```", at)
            if named:
                body = "".join(f"{text}\n" for text in lines[at:end])
                found.append(File(named["path"], body, named["how"] or "", section))
            named, at = None, end + 1
        elif line.startswith("    $ "):
            number, command = at, line[6:]
            while command.endswith("\\"):
                command = f"{command}\n{lines[at][4:]}"
                at += 1
            shown = []
            while at < len(lines) and lines[at].startswith("    ") and not lines[at].startswith("    $ "):
                shown.append(lines[at][4:])
                at += 1
            found.append(Command(command, shown, number, section))
        elif line:
            named = FILE.match(line)
    return found


def differs(shown, printed, steady):
    """Why the output is not what the page shows, or None. `…` alone stands for any lines, at the end of a line for any end."""
    shown, printed = [steady(line) for line in shown], [steady(line) for line in printed]
    # reached[n]: the lines so far can be the first n lines of the output.
    reached, last = {0}, 0
    for line in shown:
        if line == "…":
            reached = set(range(min(reached), len(printed) + 1))
            continue
        fits = (lambda is_: is_.startswith(line[:-1])) if line.endswith("…") else (lambda is_: is_ == line)
        reached = {n + 1 for n in reached if n < len(printed) and fits(printed[n])}
        if not reached:
            return f"the page shows, but the command does not print there: {line}"
        last = max(reached)
    if len(printed) not in reached:
        return f"the command prints, but the page does not show: {printed[last]}"
    return None
