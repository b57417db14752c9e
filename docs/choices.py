"""Write the reference of all choices: a page a folder of ``conf``, and the lists of classes and metrics behind them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import yaml

CONF = Path(__file__).parents[1] / "conf"
GENERATED = Path(__file__).parent / "reference" / "generated"
TITLES = {
    "method": "Methods", "model": "Models", "dataset": "Data sets", "metrics": "Lists of metrics",
    "experiment": "Experiments", "hydra/launcher": "Launchers", "hydra/sweeper": "Sweepers",
}  # fmt: skip
SWEPT = "hydra.sweeper.params."  # of an experiment, before the name of what it runs over
HEAD = "| setting | value | what it is |\n| --- | --- | --- |\n"


class Setting(NamedTuple):
    """A line of a YAML."""

    name: str  # as the command line has it, after the folder's name: features.age.kind
    value: str  # as the YAML has it
    comment: str  # of that line


def settings(path: Path) -> list[Setting]:
    """All settings of a YAML and of the files that it builds upon, in the order of its defaults, and what these choose.

    What an experiment runs over has the name and the values that the command line has.
    """
    text = path.read_text()
    node = yaml.compose(text)
    own = {each.name: each for each in _leaves(node, "", text.splitlines())}
    defaults = yaml.safe_load(text).get("defaults", []) if isinstance(node, yaml.MappingNode) else []
    found: dict[str, Setting] = {}
    for entry in defaults if "_self_" in defaults else [*defaults, "_self_"]:
        (group, name), *_ = entry.items() if isinstance(entry, dict) else [("", entry)]
        chosen = group.removeprefix("override ").lstrip("/")
        if name == "_self_":
            found |= own
        elif group and not group.startswith("/"):
            found[chosen] = Setting(chosen, str(name), "")
        elif "/" not in name:
            file = CONF / chosen / f"{name}.yaml" if group else path.with_name(f"{name}.yaml")
            found |= {each.name: each for each in settings(file)}
    return list(found.values())


def _leaves(node: yaml.Node, prefix: str, lines: Sequence[str]) -> Iterator[Setting]:
    """A setting a value; of a block of them one more, without a value, where its line has a comment."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        name = f"{prefix}{key.value}"
        found = re.search(r"\s#\s*(.*)$", lines[key.start_mark.line])
        comment = found[1] if found else ""
        if isinstance(value, yaml.MappingNode) and (not value.flow_style or name in TITLES):
            yield from [Setting(name, "", comment)] if comment else []
            yield from _leaves(value, f"{name}.", lines)
        elif name not in ("defaults", "hydra.mode"):
            yield Setting(name.removeprefix(SWEPT), _text(value, lines), comment)


def _text(node: yaml.Node, lines: Sequence[str]) -> str:
    """What a value is in its file, in one line."""
    if isinstance(node, yaml.SequenceNode):
        return f"[{', '.join(_inner(item, lines) for item in node.value)}]"
    if isinstance(node, yaml.MappingNode):
        return f"{{{', '.join(f'{key.value}: {_inner(item, lines)}' for key, item in node.value)}}}"
    return lines[node.start_mark.line][node.start_mark.column : node.end_mark.column] or "null"


def _inner(node: yaml.Node, lines: Sequence[str]) -> str:
    """The same within brackets, where some characters have to be quoted."""
    text = _text(node, lines)
    quoted = isinstance(node, yaml.ScalarNode) and not node.style and not set("{}[],").isdisjoint(text)
    return json.dumps(text) if quoted else text


def cell(text: str) -> str:
    """A text in a Markdown table."""
    return text.replace("|", "\\|")


def literal(text: str) -> str:
    return f"`{cell(text)}`" if text else ""


def about(path: Path) -> str:
    """The comment that a YAML begins with; what is indented in it are commands."""
    comment = []
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            break
        comment += [] if "@package" in line else [line[1:].removeprefix(" ")]
    return re.sub(r"((?:^  .*\n)+)", r"\n```text\n\1```\n", "\n".join([*comment, ""]), flags=re.MULTILINE).strip()


def table(found: Sequence[Setting]) -> str:
    """Settings, a row each."""
    return HEAD + "".join(f"| {literal(s.name)} | {literal(s.value)} | {cell(s.comment)} |\n" for s in found)


def page(group: str, title: str) -> str:
    """A section a choice: what it is, and its settings as the command line takes them."""
    parts = [f"# {title}\n", f"Made of `conf/{group}`. A setting is typed as `{_typed(group)}`.\n"]
    for path in choices(group):
        name = path.relative_to(CONF / group).with_suffix("").as_posix()
        parts.append(f"## {name}\n\n{about(path)}\n\n{table(settings(path))}")
    return "\n".join(parts)


def choices(group: str) -> list[Path]:
    """The YAMLs of a folder; of experiments also their parts, each a file of a folder of its own."""
    folder = CONF / group
    return sorted(folder.rglob("*.yaml") if group == "experiment" else folder.glob("*.yaml"))


def _typed(group: str) -> str:
    return "SETTING=VALUE" if group == "experiment" else f"{group.replace('/', '.')}.SETTING=VALUE"


def everything() -> str:
    """The page of the settings that are of no choice."""
    found = [s for s in settings(CONF / "config.yaml") if not s.name.startswith(("hydra.", "hydra/"))]
    head = "# Settings of a run\n\nMade of `conf/config.yaml`. A setting is typed as `SETTING=VALUE`."
    return f"{head}\n\n{table(found)}"


def targets() -> list[str]:
    """The classes that methods are made of, by their address."""
    found = {s.value for path in (CONF / "method").glob("*.yaml") for s in settings(path) if s.name == "_target_"}
    return sorted(found)


def metrics() -> list[str]:
    """The metrics that lists name, by their address."""
    lists = [yaml.safe_load(path.read_text()) for path in (CONF / "metrics").glob("*.yaml")]
    return sorted({name for found in lists for key in ("names", "priced") for name in found.get(key, ())})


def sources() -> str:
    """Whose definitions metrics are, as their package says."""
    text = ast.get_docstring(ast.parse((CONF.parent / "metrics" / "__init__.py").read_text())) or ""
    return text[text.index("Docstrings name") :]


def summary(title: str, text: str, directive: str, names: Sequence[str]) -> str:
    """A page of what the docstrings of some objects say."""
    rows = "".join(f".. {directive}:: {name}\n" for name in names)
    return f"{title}\n{'=' * len(title)}\n\n{text}\n\n{rows}"


def write(folder: Path = GENERATED) -> None:
    """All pages, anew."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {f"{group.replace('/', '_')}.md": page(group, title) for group, title in TITLES.items()}
    pages["settings.md"] = everything()
    pages["classes.rst"] = summary(
        "Classes of methods", "What a YAML in ``conf/method`` names.", "autoclass", targets()
    )
    about_metrics = f"What a list in ``conf/metrics`` names. {sources()}"
    pages["functions.rst"] = summary("Metrics", about_metrics, "autofunction", metrics())
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:  # else Sphinx would read it again
            path.write_text(text)
