"""Where raw bytes come from: a packaged file, the user's data folder, or a verified download into that folder."""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
import math
import os
import time
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import pooch

from harness.core.errors import DatasetError, choices
from harness.core.packages import locate
from harness.core.writing import write_whole

RAW = Path(__file__).with_name("raw")
PACKAGED = "packaged"  # first part of the path of a file that comes with this package
PLUGGED = "package://"  # what the path of a file of another package begins with: package://name/file.csv
COMPRESSED = (".gz", ".zip")
TIMEOUT = 60  # seconds without a byte before an address is given up
AGAIN = 60.0  # seconds until servers that failed are asked again for the same file
_failed: dict[tuple[Path, tuple[str, ...]], tuple[float, str]] = {}  # when, and why

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A raw file and what its bytes have to be.

    Parameters
    ----------
    file
        Path within the data folder, ``<dataset>/<file>``; ``packaged/<file>`` comes with this package,
        ``package://name/<file>`` with another, an absolute path is taken as it stands.
    sha256
        Checksum of the file. None takes a local file unverified.
    urls
        Addresses in the order they are tried; ``https://host/archive.zip#name`` is one file of a zip archive,
        and ``#inner.zip#name`` one of an archive within it.
    member
        The file wanted, where ``file`` is a zip archive of several.
    sha256_uncompressed
        Checksum of the content of a compressed ``file``: the same content is then accepted uncompressed or compressed
        by another program.
    """

    file: str
    sha256: str | None = None
    urls: tuple[str, ...] = ()
    member: str | None = None
    sha256_uncompressed: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "urls", tuple(self.urls))
        if self.urls and self.sha256 is None:
            raise DatasetError(
                f"source {self.file} has addresses but no sha256; give one, since downloads are verified."
            )

    @property
    def packaged(self) -> bool:
        """Whether the file comes with this package."""
        return Path(self.file).parts[:1] == (PACKAGED,)

    @property
    def path(self) -> Path:
        """Where the file is kept."""
        if self.packaged:
            return RAW.joinpath(*Path(self.file).parts[1:])
        if self.file.startswith(PLUGGED):
            return _plugged(self.file)
        return data_folder() / Path(self.file).expanduser()


def _plugged(file: str) -> Path:
    """Where a file of an installed package is kept."""
    package, *parts = file.removeprefix(PLUGGED).split("/")
    folder = locate(package)
    if folder is None:
        raise DatasetError(
            f"{file} is of the package {package!r}, which is not installed; install it, or give the path of the file."
        )
    return folder.joinpath(*parts)


def data_folder() -> Path:
    """The folder of files that are not packaged: ``CE_HARNESS_DATA``, else a cache folder of the user."""
    return Path(os.environ.get("CE_HARNESS_DATA") or pooch.os_cache("ce-harness")).expanduser()


def read_bytes(source: Source) -> bytes:
    """Verified content of a source, decompressed.

    Raises
    ------
    DatasetError
        As ``fetch``, and for an archive without the member.
    """
    return _unpack(fetch(source).read_bytes(), source.member)


def fetch(source: Source) -> Path:
    """Path of a verified local file, downloaded if there is none.

    The name may differ from ``source.file`` by ``.gz`` or ``.zip``: files put there by hand may be compressed or not.

    Raises
    ------
    DatasetError
        For a wrong checksum, or where there is neither a file nor a working address.
    """
    path = source.path
    found = [candidate for candidate in _candidates(path) if candidate.is_file()]
    for candidate in found:
        if _sound(candidate.read_bytes(), source):
            return candidate
    if found:
        raise DatasetError(f"{found[0]} {_mismatch(found[0].read_bytes(), source)}; {_remedy(source)}.")
    if source.packaged or source.file.startswith(PLUGGED):
        raise DatasetError(f"{path} is missing; {_remedy(source)}.")
    return _download(source, path)


def _candidates(path: Path) -> list[Path]:
    unpacked = [path.with_suffix("")] if path.suffix in COMPRESSED else []
    return [path, *unpacked, *(path.with_name(path.name + suffix) for suffix in COMPRESSED)]


def _download(source: Source, path: Path) -> Path:
    at, failure = _failed.get((path, source.urls), (-math.inf, ""))
    if (ago := time.monotonic() - at) < AGAIN:  # each run of a sweep would wait for the same servers
        raise DatasetError(f"{failure} (Tried {math.ceil(ago)} s ago, and again after {AGAIN:g} s.)")
    tried = []
    for url in source.urls:
        logger.info("downloading %s from %s", source.file, url)
        address, *members = url.split("#")
        try:
            data = _get(address)
            for member in members:
                data = _unpack(data, member)
        except (OSError, DatasetError) as fault:
            tried.append(f"{url} ({_reason(fault)})")
            continue
        if _sound(data, source):
            _write(path, data)
            return path
        tried.append(f"{url} ({_mismatch(data, source)})")
    why = f" and could not be downloaded from {', '.join(tried)}" if tried else ""
    failure = (
        f"{source.file} is not in {data_folder()}{why}; "
        f"put it at {path}, or set CE_HARNESS_DATA to the folder that holds {source.file}."
    )
    if tried:
        _failed[path, source.urls] = time.monotonic(), failure
    raise DatasetError(failure)


def _get(address: str) -> bytes:
    content = io.BytesIO()
    pooch.HTTPDownloader(chunk_size=1 << 16, timeout=TIMEOUT)(address, content, None)
    return content.getvalue()


def _reason(fault: Exception) -> str:
    """A few words: the network library's own messages run to several lines."""
    response = getattr(fault, "response", None)
    if response is not None:
        return f"HTTP status {response.status_code}"
    return str(fault).rstrip(".") if isinstance(fault, DatasetError) else type(fault).__name__


def _write(path: Path, data: bytes) -> None:
    """Write a download: a file cut short must never look complete."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
    except OSError as fault:
        raise DatasetError(
            f"{path} cannot be written ({fault.strerror}); set CE_HARNESS_DATA to a folder that can."
        ) from fault


def _sound(data: bytes, source: Source) -> bool:
    if source.sha256 is None or _digest(data) == source.sha256:
        return True
    try:
        return _digest(_unpack(data, source.member)) == (source.sha256_uncompressed or source.sha256)
    except DatasetError:
        return False


def _mismatch(data: bytes, source: Source) -> str:
    content = f" (uncompressed: {source.sha256_uncompressed})" if source.sha256_uncompressed else ""
    return f"has sha256 {_digest(data)}, but {source.sha256}{content} is expected"


def _remedy(source: Source) -> str:
    if source.packaged:
        return "install ce-harness again"
    if source.file.startswith(PLUGGED):
        return f"install the package of {source.file} again"
    if source.urls:
        return f"delete it to have it downloaded again, or put the right file there, from {', '.join(source.urls)}"
    return f"delete it and put the right {source.file} there"


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _unpack(data: bytes, member: str | None = None) -> bytes:
    """Content of a gzip file or of one file of a zip archive, by the first bytes; other bytes as they are."""
    try:
        if data.startswith(b"\x1f\x8b"):
            return gzip.decompress(data)
        if data.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                names = archive.namelist()
                wanted = names[0] if member is None and len(names) == 1 else member
                if wanted not in names:
                    raise DatasetError(f"the archive has no member {wanted!r}; {choices(wanted, names)}.")
                return archive.read(str(wanted))
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile) as fault:
        raise DatasetError(f"the archive is damaged ({fault}).") from fault
    return data
