"""A study's answers in one file: packed, checked, and unpacked again.

An archive is a zip of ``manifest.json``, a Parquet table of each kind of record (``answers``, ``groups``, ``verdicts``,
``scores``, ``runs``), all other files once each by their sha256 (``contents.parquet``), estimators once each
(``estimators/*.skops.xz``) and users' own model files (``models/*.xz``). Models that the authors of a paper published
are not in it: the settings of their runs have their addresses and sha256. The same answers give the same bytes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.machinery
import json
import lzma
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from harness.core.caching import cache
from harness.core.errors import HarnessError, short
from harness.core.writing import replacing
from harness.models.canonical import canonical, zipped
from harness.models.files import PICKLES
from harness.store import tabled
from harness.store.rows import checked_version
from harness.store.tabled import Record, records_of

SUFFIX = ".ceh"
FORMAT, VERSION = "ce-harness archive", 1
ARCHIVES = "archives"  # the folder of archives beside the folders of studies
MANIFEST, CONTENTS = "manifest.json", "contents.parquet"
TABLES = {  # of which file of a run, and how it is written
    "answers": ("rows.jsonl", tabled.LINES),
    "groups": ("groups.jsonl", tabled.LINES),
    "verdicts": ("verdicts.jsonl", tabled.LINES),
    "scores": ("scores.csv", tabled.SHEET),
    "runs": ("cell.json", tabled.WHOLE),
}
MODEL = re.compile(r"(estimators/[0-9a-f]{64}\.skops|models/[0-9a-f]{64}\.\w+)\.xz", re.ASCII)
LARGEST, UNPACKED = 500_000_000, 2_000_000_000  # bytes of an archive, and of all that it holds
LISTED, MEMBERS = 50_000_000, 100_000  # bytes of a manifest; files in an archive
PLAIN = re.compile(r"(?!\.)[^/\\:\x00-\x1f]{1,255}")  # a file's name, which leads nowhere else
DESCRIBED = (  # of each run
    "dataset", "model", "method", "seed", "config", "space", "inputs", "classes", "threshold", "n_counterfactuals",
)  # fmt: skip
CODE = (*PICKLES, *importlib.machinery.all_suffixes())  # of files that are run where they are read, or imported
PACKINGS = {MANIFEST: {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}}  # that are unpacked no further than they are read
TABLES_OF = {file: name for name, (file, _) in TABLES.items()}
MEMORY = 100_000_000  # bytes that xz may take
SWEEPS, ANSWERS = "sweeps", "answers"  # folders of a study that are packed; all else is made of them
REMEDY = "get or pack it again"


def pack(study: str, runs: Mapping[str, Path], sweeps: Iterable[Path], file: Path) -> dict[str, Any]:
    """Write an archive of some runs, by name, and of the records of their sweeps; returns its manifest.

    Raises
    ------
    HarnessError
        For a run whose model is a pickle, for one that is damaged, and where the archive would be too large to read.
    """
    packed = _Packed()
    listed = {name: packed.run(name, folder) for name, folder in sorted(runs.items())}
    notes = {path.name: packed.content(path) for path in sorted(sweeps) if _belongs(path)}
    members = packed.members()
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "study": study,
        "runs": listed,
        SWEEPS: notes,
        "members": {name: _digest(content) for name, content in members.items()},
    }
    text = json.dumps(manifest, indent=1).encode()
    file.parent.mkdir(parents=True, exist_ok=True)
    with replacing(file) as temporary:
        temporary.write_bytes(zipped({MANIFEST: text, **members}, {MANIFEST}))
        Archive(temporary)  # whoever deletes the folder now can rely on it
    return manifest


class _Packed:
    """The members of an archive, as its runs bring them."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str, list[Record]]] = {name: {} for name in TABLES}
        self.contents: dict[str, dict[str, bytes]] = {}  # by the name of the file, and sha256
        self.files: dict[str, bytes] = {}  # estimators and models, by name of the member
        self.known: dict[str, str] = {}  # the member of an estimator, by the sha256 of its file

    def run(self, name: str, folder: Path) -> dict[str, str]:
        """Take in a run; returns where each of its files is."""
        path = folder / "cell.json"
        try:
            meta = checked_version(json.loads(path.read_text()), path)
        except ValueError as fault:
            raise HarnessError(f"{path} is damaged ({short(fault)}); delete {folder}, or run it again.") from fault
        absent = published(meta)
        entry = meta.get("model_file")
        if entry and (entry["trusted"] or Path(entry["file"]).suffix in PICKLES):
            raise HarnessError(
                f"{name} is of a model whose file runs code when it is read, which no archive may hold; save the model "
                "with skops.io.dump and run the study with that file."
            )
        found = {}
        tables = {file: (table, form) for table, (file, form) in TABLES.items()}
        for path in sorted(folder.iterdir()):
            if path.name in absent or path.suffix == ".tmp" or not _belongs(path):
                continue
            if path.suffix == ".skops" and not (entry and path.name == entry["file"]):
                found[path.name] = self.estimator(path)
            elif entry and path.name == entry["file"]:
                found[path.name] = self.put(f"models/{_digest(path.read_bytes())}{path.suffix}.xz", path.read_bytes())
            elif path.name in tables and (records := records_of(path.read_bytes(), tables[path.name][1])) is not None:
                found[path.name], self.tables[tables[path.name][0]][name] = tables[path.name][0], records
            else:
                found[path.name] = self.content(path)
        return found

    def content(self, path: Path) -> str:
        """Take in a file as it is; returns its sha256."""
        content = path.read_bytes()
        self.contents.setdefault(path.name, {})[digest := _digest(content)] = content
        return digest

    def estimator(self, path: Path) -> str:
        """Take in a fitted estimator; returns the name of its member."""
        if (raw := _digest(path.read_bytes())) not in self.known:
            digest, content = canonical(path)
            self.known[raw] = self.put(f"estimators/{digest}.skops.xz", content)
        return self.known[raw]

    def put(self, name: str, content: bytes) -> str:
        if name not in self.files:
            self.files[name] = lzma.compress(content)
        return name

    def members(self) -> dict[str, bytes]:
        """Every member but the manifest, by name."""
        tables = {f"{name}.parquet": tabled.parquet(runs) for name, runs in self.tables.items()}
        merged = {digest: content for _, named in sorted(self.contents.items()) for digest, content in named.items()}
        columns = {"sha256": pa.array(merged, pa.string()), "content": pa.array(merged.values(), pa.binary())}
        return {**tables, CONTENTS: tabled.written(pa.table(columns), {}), **dict(sorted(self.files.items()))}


def _belongs(path: Path) -> bool:
    """Whether something in a folder of answers is to be packed: files that are not hidden, as macOS leaves some.

    Raises
    ------
    HarnessError
        For a file that no archive may have.
    """
    if path.name.startswith(".") or not path.is_file():
        return False
    if not PLAIN.fullmatch(path.name) or path.name.lower().endswith(CODE):
        raise HarnessError(f"{path} is none of a study's files; move it away.")
    return True


def published(meta: Mapping[str, Any]) -> set[str]:
    """The files of a run that hold models of a paper's authors, which are not passed on."""
    config = meta.get("config", {})
    equations = config.get("dataset", {}).get("causality") or {}
    theirs = {feature for feature, entry in equations.items() if entry and "published" in entry}
    found = {e["model"] for e in meta.get("equations", ()) if e["feature"] in theirs}
    return found | ({"estimator.skops"} if "family" in config.get("model", {}) else set())


class Archive:
    """An archive that is read. It is checked before anything is built from it, and none of its files is code.

    Raises
    ------
    HarnessError
        If it is no archive, damaged, of a later version, or larger than archives are.
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        try:
            if file.stat().st_size > LARGEST:
                raise HarnessError(f"it has more than {LARGEST:,} bytes")
            with zipfile.ZipFile(file) as archive:
                _look(archive.infolist())
                with archive.open(MANIFEST) as listed:
                    self.manifest = _manifest(listed.read(LISTED))
                self.members = {name: archive.read(name) for name in archive.namelist() if name != MANIFEST}
            sums = {name: _digest(content) for name, content in self.members.items()}
            if wrong := dict(sums.items() ^ self.manifest["members"].items()):
                raise HarnessError(f"it is damaged in {', '.join(sorted(wrong))}")
            self._unpack()
            self._complete()
        except (FileNotFoundError, IsADirectoryError):
            raise HarnessError(f"there is no archive {file}; give the path of a file that ends in {SUFFIX}.") from None
        except HarnessError as fault:
            raise HarnessError(f"{file} is no archive of answers that can be read: {fault}; {REMEDY}.") from fault
        except Exception as fault:  # of a file that anybody may have made
            raise HarnessError(f"{file} is no archive of answers, or damaged ({short(fault)}); {REMEDY}.") from fault

    def _unpack(self) -> None:
        """Read the tables, and unpack the models."""
        self.records: dict[str, dict[str, list[Record]]] = {}
        self.contents: dict[str, bytes] = {}
        left = UNPACKED
        for name in [name for name in self.members if name.endswith(".xz")]:
            unpacking = lzma.LZMADecompressor(lzma.FORMAT_XZ, MEMORY)
            self.contents[name] = unpacking.decompress(self.members.pop(name), left + 1)
            left -= len(self.contents[name])
            if left < 0 or not unpacking.eof:
                raise HarnessError(f"{name} is damaged, or all of it has more than {UNPACKED:,} bytes unpacked")
        for name in [*TABLES, CONTENTS.removesuffix(".parquet")]:
            table, size = tabled.opened(self.members.pop(f"{name}.parquet"), left)
            left -= size
            if name in TABLES:
                self.records[name] = tabled.records(table)
            else:
                columns = table.to_pydict()
                self.contents |= dict(zip(columns["sha256"], columns["content"], strict=True))

    def _complete(self) -> None:
        """Raise ``HarnessError`` unless all that the manifest names is there, and is what it is named."""
        for name, content in self.contents.items():
            if not name.startswith("estimators/") and _digest(content) not in name:
                raise HarnessError(f"{name} has another content")
        left = UNPACKED
        for name, files in self.manifest["runs"].items():
            for file, where in {"cell.json": None, **files}.items():
                if where not in (self.contents if where not in TABLES else {TABLES_OF.get(file)}):
                    raise HarnessError(f"{file} of {name} is not in it")
                left -= 0 if where in TABLES or MODEL.fullmatch(where) else len(self.contents[where])
            if left < 0:
                raise HarnessError(f"its files would have more than {UNPACKED:,} bytes")
            meta = json.loads(self.content(name, "cell.json"))
            if lacking := [key for key in DESCRIBED if key not in meta]:
                raise HarnessError(f"cell.json of {name} has no {', '.join(lacking)}")
            texts = all(isinstance(meta[key], str) for key in ("dataset", "model", "method"))
            nested = [meta["config"], meta.get("environment") or {}, meta.get("scored") or {}]
            if not (texts and all(isinstance(part, dict) for part in nested)):
                raise HarnessError(f"cell.json of {name} describes no run")
            if theirs := published(meta) & files.keys():
                raise HarnessError(f"{min(theirs)} of {name} is of a paper's authors, and no archive holds it")
            own = (meta.get("model_file") or {}).get("file")
            if odd := [f for f, at in files.items() if (f == own or f.endswith(".skops")) and not MODEL.fullmatch(at)]:
                raise HarnessError(f"{odd[0]} of {name} is a model, and not among its models")
        if lacking := [name for name in self.manifest[SWEEPS].values() if name not in self.contents]:
            raise HarnessError(f"{lacking[0]} is not in it")

    def metas(self) -> dict[str, dict[str, Any]]:
        """What was asked, of what and where, by run."""
        return {name: json.loads(self.content(name, "cell.json")) for name in self.manifest["runs"]}

    def content(self, run: str, file: str) -> bytes:
        """A file of a run; empty where the run has none of that name."""
        where = self.manifest["runs"][run].get(file)
        if where in TABLES:
            return TABLES[where][1].write(self.records[where].get(run, []))
        return b"" if where is None else self.contents[where]

    def unpack(self, folder: Path) -> None:
        """Write the study's folder. A model that several runs share is one file with several names."""
        written: dict[str, Path] = {}
        (folder / SWEEPS).mkdir(parents=True)
        for name, files in self.manifest["runs"].items():
            (place := folder / ANSWERS / name).mkdir(parents=True)
            for file, where in sorted(files.items(), key=lambda entry: entry[0] == "done"):
                if where in written:
                    _same(written[where], place / file)
                else:
                    (place / file).write_bytes(self.content(name, file))
                    if MODEL.fullmatch(where):
                        written[where] = place / file
        for note, where in self.manifest[SWEEPS].items():
            (folder / SWEEPS / note).write_bytes(self.contents[where])


def _look(members: Sequence[zipfile.ZipInfo]) -> None:
    """Raise ``HarnessError`` unless a zip's table of contents is an archive's; nothing is unpacked."""
    names = [member.filename for member in members]
    tables = {MANIFEST, CONTENTS, *(f"{name}.parquet" for name in TABLES)}
    if lacking := tables - set(names):
        raise HarnessError(f"it has no {min(lacking)}")
    if odd := [name for name in names if name not in tables and not MODEL.fullmatch(name)]:
        raise HarnessError(f"it holds a file {odd[0]!r}")
    if len(names) > MEMBERS or len(set(names)) < len(names) or any(member.flag_bits & 1 for member in members):
        raise HarnessError(f"it holds more than {MEMBERS:,} files, or two of one name, or encrypted ones")
    packed = [m for m in members if m.compress_type not in PACKINGS.get(m.filename, {zipfile.ZIP_STORED})]
    if packed or sum(member.file_size for member in members) > LARGEST + LISTED:
        raise HarnessError(f"it holds more than {LARGEST:,} bytes, or compresses them otherwise")


def _manifest(content: bytes) -> dict[str, Any]:
    """The manifest, where it is one, and every name in it is that of a file in a folder of its own."""
    found = json.loads(content)
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise HarnessError("its manifest is another format's")
    if found["version"] != VERSION:
        raise HarnessError(f"it is in version {found['version']}, and this ce-harness reads version {VERSION}")
    files = {file for files in found["runs"].values() for file in files}
    for name in (found["study"], *found["runs"], *files, *found[SWEEPS]):
        if not PLAIN.fullmatch(name):
            raise HarnessError(f"{name!r} is no name of a file or folder")
    if bad := [file for file in (*files, *found[SWEEPS]) if file.lower().endswith(CODE)]:
        raise HarnessError(f"{bad[0]} would be run where it is read")
    if "cell.json" in found[SWEEPS]:
        raise HarnessError("a record of a sweep has the name of a run's")
    return found


def _same(path: Path, other: Path) -> None:
    """Give a file another name, or, where the disk has none, a copy."""
    try:
        os.link(path, other)
    except OSError:
        shutil.copyfile(path, other)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def named(folder: Path) -> Path:
    """A folder by a path that ends in its name, which ``.`` and ``..`` do not."""
    return folder.resolve() if folder.name in {"", ".."} else folder


def packed_as(folder: Path) -> Path | None:
    """The archive of a study that is named by its folder: beside it, or in ``archives`` beside it; or the file itself.
    None where there is none."""
    folder = named(folder)
    if folder.suffix == SUFFIX:
        return folder
    name = f"{folder.name}{SUFFIX}"
    return next((p for p in (folder.with_name(name), folder.parent / ARCHIVES / name) if p.is_file()), None)


def folder_of(file: Path) -> Path:
    """The folder of the study that an archive is of: beside it, or beside ``archives`` where it lies there."""
    home = named(file.parent)
    return (home.parent if home.name == ARCHIVES else file.parent) / file.stem


def has_answers(folder: Path) -> bool:
    """Whether a folder holds stored runs."""
    return next(folder.glob("**/cell.json"), None) is not None


def answers_of(folder: Path) -> Path:
    """Where the answers of a study are to be read: in its folder, or else in the cache, unpacked from its archive.

    Raises
    ------
    HarnessError
        For an archive that cannot be read.
    """
    if (folder.is_file() or not has_answers(folder)) and (file := packed_as(folder)) is not None:
        return _cached(file)
    return folder


def studies(home: Path) -> list[Path]:
    """Where the answers of each study under a folder are to be read, by name."""
    names = {path.parent.name for path in home.glob(f"*/{ANSWERS}")}
    names |= {path.stem for pattern in (f"*{SUFFIX}", f"{ARCHIVES}/*{SUFFIX}") for path in home.glob(pattern)}
    return [answers_of(home / name) for name in sorted(names)]


def in_cache(path: Path) -> bool:
    """Whether a file or folder was unpacked from an archive, as a copy that stays as it is."""
    return cache() / ARCHIVES in path.parents


def _cached(file: Path) -> Path:
    """The folder in the cache that holds what an archive does; unpacked where it is not there yet."""
    if not file.is_file():
        return Archive(file).file  # which says that there is none
    if not (place := _place(file)).is_dir():
        unpack(file, place)
    return place


def _place(file: Path) -> Path:
    """The folder in the cache of an archive."""
    folder = folder_of(file.resolve())
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()[:32]
    return cache() / ARCHIVES / digest / folder.parent.name / folder.name


def unpacked_anew(archive: Archive) -> Path:
    """The folder in the cache that holds what an archive does, whatever became of what was there."""
    place = _place(archive.file)
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as temporary:
        archive.unpack(made := Path(temporary) / "now")
        if place.is_dir():
            place.replace(Path(temporary) / "before")
        made.replace(place)
    return place


def restore(folder: Path) -> Path | None:
    """Unpack a study's archive where its folder holds no answers, so that a sweep goes on from them; which one."""
    if has_answers(folder) or (file := packed_as(folder)) is None:
        return None
    unpack(file, folder)
    return file


def unpack(file: Path, folder: Path) -> None:
    """Write the folder of a study from its archive; its answers appear complete or not at all.

    Raises
    ------
    HarnessError
        For an archive that cannot be read, and for a folder that holds answers.
    """
    archive, folder = Archive(file), folder.resolve()
    if has_answers(folder):
        raise HarnessError(f"{folder} holds answers already; give another folder, or merge both.")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        archive.unpack(made := Path(temporary) / folder.name)
        if not folder.is_dir():  # or whoever stands in it would stand nowhere
            with contextlib.suppress(OSError):
                made.replace(folder)
                return
        if has_answers(folder):  # another command has unpacked it meanwhile, and may have gone on from it
            return
        (folder / SWEEPS).mkdir(parents=True, exist_ok=True)
        for note in (made / SWEEPS).iterdir():
            note.replace(folder / SWEEPS / note.name)
        shutil.rmtree(folder / ANSWERS, ignore_errors=True)  # it holds none
        (made / ANSWERS).replace(folder / ANSWERS)
