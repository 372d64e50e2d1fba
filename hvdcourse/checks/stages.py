"""Makes what learners edit, and the files after each step, from the solutions.

A solution is an ordinary Python file that runs as it is. A block of it belongs to a step:

    # Step 2: Share the images: every image belongs to exactly one rank.
    #: rows = np.arange(len(images))
    # Every size-th image, from this rank's own number on.
    rows = np.arange(rank, len(images), size)
    # End of step 2.

The comment that opens the block says what must be true. Lines that start with ``#:`` hold the code
that stands there before the step is done (a bare ``#:`` where there is none). The rest, up to the
end, is the solution. A step may have several blocks. One that opens with ``# Step 2 is done here.``
leaves no TODO where it stands: in a lab, the place is what learners have to find.

A solution that is written anew, and so has no steps, lies beside the file that learners start from:
``NAME_before.py``, which is copied to ``source_code/NAME.py``.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

from hvdcourse.paths import PROJECT, SOLUTIONS, SOURCE_CODE

WIDTH = 100
_BEFORE_ENDING = "_before.py"

_BEGIN = re.compile(r"^\s*# Step (?P<step>\d+)(?:: .+|(?P<unmarked> is done here\.))$")
_END = re.compile(r"^\s*# End of step (?P<step>\d+)\.$")
_BEFORE = re.compile(r"^(?P<indent>\s*)#:(?: (?P<code>.*))?$")
_COMMENT = re.compile(r"^\s*# ")


class BadMarkers(ValueError):
    """The marks of a step are wrong; the message names the file, the line and the mistake."""


@dataclass
class Block:
    """One block of a step, as lines: what must be true, the code before, and the solution."""

    step: int
    description: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)

    def render(self, solved: bool) -> list[str]:
        """Return the block's lines as they stand before or after the step is done."""
        if solved:
            return self.description + self.after
        begin = _BEGIN.match(self.description[0])
        if begin and begin["unmarked"]:
            return self.before
        indent, _, first = self.description[0].partition("# ")
        rest = (line.partition("# ")[2] for line in self.description[1:])
        text = " ".join(["TODO:", first, *rest])
        return wrap(text, WIDTH, initial_indent=indent + "# ", subsequent_indent=indent + "# ") + (
            self.before
        )


def parse(text: str, name: str) -> list[str | Block]:
    """Split a solution into its plain lines and its blocks.

    Raises:
        BadMarkers: a block has no end, no ``#:`` line, another step's end, or a block within it.
    """
    parts: list[str | Block] = []
    block: Block | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{name}, line {number}"
        begin, end, before = _BEGIN.match(line), _END.match(line), _BEFORE.match(line)
        if block is None:
            if end or before:
                raise BadMarkers(f"{where}: {line.strip()!r} stands outside any step")
            block = Block(int(begin["step"]), [line]) if begin else None
            parts += [] if begin else [line]
        elif begin:
            raise BadMarkers(f"{where}: step {begin['step']} begins before step {block.step} ends")
        elif end:
            if int(end["step"]) != block.step or not block.before:
                raise BadMarkers(f"{where}: step {block.step} needs a '#:' line and its own end")
            block.before = [code for code in block.before if code]
            parts.append(block)
            block = None
        elif before:
            block.before.append(before["indent"] + before["code"] if before["code"] else "")
        elif not block.before and _COMMENT.match(line):
            block.description.append(line)
        elif not block.before:
            raise BadMarkers(f"{where}: step {block.step} has code before its '#:' line")
        else:
            block.after.append(line)
    if block is not None:
        raise BadMarkers(f"{name}: step {block.step} has no '# End of step {block.step}.'")
    return parts


def render(parts: list[str | Block], solved: set[int]) -> str:
    """Return the script in which exactly these steps are done."""
    lines: list[str] = []
    for part in parts:
        lines += [part] if isinstance(part, str) else part.render(part.step in solved)
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)) + "\n"


def steps_of(parts: list[str | Block]) -> list[int]:
    """Return the numbers of the steps, in order."""
    return sorted({part.step for part in parts if isinstance(part, Block)})


def generated_files(solution: Path, source_code: Path) -> dict[Path, str]:
    """Return every file that is made from one solution, with its text.

    Raises:
        BadMarkers: its marks are wrong, or it has steps although it lies beside a ``_before`` file.
    """
    before = solution.with_name(f"{solution.stem}{_BEFORE_ENDING}")
    parts = parse(solution.read_text(), solution.name)
    steps = steps_of(parts)
    if before.exists():
        if steps:
            raise BadMarkers(f"{solution.name} has steps, and {before.name} too: keep one of them")
        return {source_code / solution.name: before.read_text()}
    files = {source_code / solution.name: render(parts, set())}
    for step in steps:
        path = solution.with_name(f"{solution.stem}_after_step_{step:02d}.py")
        files[path] = render(parts, {number for number in steps if number <= step})
    return files


def solutions_in(folder: Path) -> list[Path]:
    """Return the solutions that are edited by hand."""
    return sorted(
        path
        for path in folder.glob("*.py")
        if "_after_step_" not in path.name and not path.name.endswith(_BEFORE_ENDING)
    )


def generate(solutions: Path, source_code: Path) -> list[Path]:
    """Write every generated file whose text has changed, and return those."""
    written = []
    for solution in solutions_in(solutions):
        for path, text in generated_files(solution, source_code).items():
            if not path.exists() or path.read_text() != text:
                path.write_text(text)
                written.append(path)
    return written


def main() -> None:
    """Make all generated files anew: ``python -m hvdcourse.checks.stages``."""
    for path in generate(SOLUTIONS, SOURCE_CODE):
        print(f"wrote {path.relative_to(PROJECT)}")


if __name__ == "__main__":
    main()
