"""Bytes come verified from the package, the data folder or an address, or not at all."""

import gzip
import hashlib
import io
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.core.errors import DatasetError
from harness.data import Source, data_folder, fetch, read_bytes

CONTENT = b"a,b\n1,2\n"
PACKED = gzip.compress(CONTENT)


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def zipped(**members: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return stream.getvalue()


PLAIN = Source("toy/toy.csv", digest(CONTENT))
COMPRESSED = Source("toy/toy.csv.gz", digest(PACKED), sha256_uncompressed=digest(CONTENT))


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and under /short an answer that breaks off after half of what it promised."""

    def do_GET(self) -> None:
        if self.path != "/short":
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[:4])

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty data folder."""
    folder = tmp_path / "data"
    monkeypatch.setenv("CE_HARNESS_DATA", str(folder))
    return folder


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, Path]]:
    """Address and folder of a server on loopback."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder))) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{http.server_address[1]}", folder
        http.shutdown()
        thread.join()


def put(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_packaged_file_needs_no_folder(data):
    """A packaged file is read from the package; the data folder is not even made."""
    assert fetch(Source("packaged/pima.csv")).parent.name == "raw"
    assert not data.exists()


def test_folder_defaults_to_a_cache(monkeypatch):
    """Without CE_HARNESS_DATA the folder is a cache of the user."""
    monkeypatch.delenv("CE_HARNESS_DATA", raising=False)
    assert "ce-harness" in str(data_folder())


@pytest.mark.parametrize("source", [PLAIN, COMPRESSED], ids=["plain", "compressed"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("toy.csv", CONTENT),
        ("toy.csv.gz", PACKED),
        ("toy.csv.gz", gzip.compress(CONTENT, compresslevel=1, mtime=7)),
        ("toy.csv.zip", zipped(anything=CONTENT)),
    ],
    ids=["plain", "gz", "gz of another program", "zip"],
)
def test_file_put_by_hand(data, source, name, content):
    """The same content is accepted compressed or not, whatever the source names."""
    if name == "toy.csv.zip" and source is COMPRESSED:
        name = "toy.csv.gz"  # recognised by its first bytes, not by its name
    path = put(data, f"toy/{name}", content)
    assert fetch(source) == path
    assert read_bytes(source) == CONTENT


def test_read_only_folder(data, monkeypatch):
    """A file that is there is read without anything being written."""
    path = put(data, "toy/toy.csv", CONTENT)
    monkeypatch.setattr("harness.data.sources.write_whole", lambda *_: pytest.fail("wrote into the folder"))
    path.parent.chmod(0o500)
    assert read_bytes(PLAIN) == CONTENT
    path.parent.chmod(0o700)


def test_absolute_path_without_checksum(tmp_path):
    """A user's own file needs neither the folder nor a checksum."""
    path = put(tmp_path, "mine.csv", CONTENT)
    assert read_bytes(Source(str(path))) == CONTENT


def test_member_of_an_archive(data):
    """One of several files of an archive is read by name; a wrong name says which exist."""
    archive = zipped(**{"one.csv": CONTENT, "two.csv": b"other"})
    put(data, "toy/toy.zip", archive)
    source = Source("toy/toy.zip", digest(archive), member="one.csv")
    assert read_bytes(source) == CONTENT
    with pytest.raises(
        DatasetError, match=r"no member 'on\.csv'; did you mean 'one\.csv'\? Allowed: one\.csv, two\.csv"
    ):
        read_bytes(replace(source, member="on.csv"))


def test_wrong_checksum_by_hand(data):
    """The error names the file, both checksums and the remedy; the file is left alone and nothing is downloaded."""
    path = put(data, "toy/toy.csv", b"altered")
    with pytest.raises(DatasetError) as error:
        fetch(replace(PLAIN, urls=("http://127.0.0.1:9/toy.csv",)))
    for part in (str(path), digest(b"altered"), digest(CONTENT), "delete it", "http://127.0.0.1:9/toy.csv"):
        assert part in str(error.value)
    assert path.read_bytes() == b"altered"


def test_damaged_archive(data):
    """An archive cut short is a wrong checksum, or without a checksum an error of its own."""
    put(data, "toy/toy.csv.gz", PACKED[:-6])
    with pytest.raises(DatasetError, match=digest(PACKED[:-6])):
        fetch(COMPRESSED)
    with pytest.raises(DatasetError, match="damaged"):
        read_bytes(Source("toy/toy.csv.gz"))


def test_wrong_checksum_of_a_packaged_file():
    """A damaged installation says so."""
    with pytest.raises(DatasetError, match=r"pima\.csv has sha256 .* install ce-harness again"):
        fetch(Source("packaged/pima.csv", "0" * 64))
    with pytest.raises(DatasetError, match=r"none\.csv is missing; install ce-harness again"):
        fetch(Source("packaged/none.csv"))


def test_download_once(data, server):
    """A download is kept under the source's name, alone, and used from then on."""
    address, served = server
    offered = put(served, "x.csv", CONTENT)
    source = replace(PLAIN, urls=(f"{address}/x.csv",))
    assert fetch(source) == data / "toy/toy.csv"
    offered.unlink()
    assert read_bytes(source) == CONTENT
    assert [path.name for path in (data / "toy").iterdir()] == ["toy.csv"]


@pytest.mark.parametrize("bad", ["absent.csv", "corrupt.csv", "short", "corrupt.zip#x", "good.zip#y", "good.zip#x#x"])
def test_mirror(data, server, bad):
    """After an address that fails in whatever way, the next one is tried; a member of an archive may be one."""
    address, served = server
    put(served, "corrupt.csv", b"<html>log in</html>")
    put(served, "corrupt.zip", b"PK\x03\x04 and no more")
    put(served, "good.zip", zipped(x=CONTENT))
    source = replace(PLAIN, urls=(f"{address}/{bad}", f"{address}/good.zip#x"))
    assert read_bytes(source) == CONTENT
    assert fetch(source).read_bytes() == CONTENT


def test_archive_within_an_archive(data, server):
    """An address leads through as many archives as it names members."""
    address, served = server
    put(served, "outer.zip", zipped(**{"inner.zip": zipped(x=CONTENT, y=b"other"), "z": b"other"}))
    assert read_bytes(replace(PLAIN, urls=(f"{address}/outer.zip#inner.zip#x",))) == CONTENT


def test_mirror_compressed_otherwise(data, server):
    """A mirror may have compressed the same content with another program."""
    address, served = server
    put(served, "x.gz", gzip.compress(CONTENT, compresslevel=1, mtime=7))
    assert read_bytes(replace(COMPRESSED, urls=(f"{address}/x.gz",))) == CONTENT


def test_every_download_fails(data, server):
    """The error names each address with its fault, both checksums, and where to put the file; nothing is kept."""
    address, served = server
    put(served, "corrupt.csv", b"corrupt")
    urls = tuple(f"{address}/{name}" for name in ("absent.csv", "short", "corrupt.csv"))
    with pytest.raises(DatasetError) as error:
        fetch(replace(PLAIN, urls=urls))
    for part in (*urls, "HTTP status 404", digest(b"corrupt"), digest(CONTENT), str(data / "toy/toy.csv")):
        assert part in str(error.value)
    assert not data.exists()


def test_servers_that_fail_are_asked_once_by_a_sweep(data, server, caplog, monkeypatch):
    """Until a minute later, or the file is put there."""
    address, served = server
    source = replace(PLAIN, urls=(f"{address}/absent.csv",))
    with caplog.at_level("INFO"):
        faults = []
        for _ in range(2):
            with pytest.raises(DatasetError) as error:
                fetch(source)
            faults.append(str(error.value))
        assert faults[1] == f"{faults[0]} (Tried 1 s ago, and again after 60 s.)"
        assert caplog.text.count("downloading") == 1
        with pytest.raises(DatasetError, match=r"other\.csv \(HTTP status 404\)"):  # another address is asked
            fetch(replace(source, urls=(f"{address}/other.csv",)))
        monkeypatch.setattr("harness.data.sources.AGAIN", 0.0)
        put(served, "absent.csv", CONTENT)
        assert fetch(source) == data / "toy/toy.csv"


def test_no_file_and_no_address(data):
    """The error says where to put the file."""
    with pytest.raises(DatasetError) as error:
        fetch(PLAIN)
    assert str(error.value) == (
        f"toy/toy.csv is not in {data}; put it at {data}/toy/toy.csv, "
        "or set CE_HARNESS_DATA to the folder that holds toy/toy.csv."
    )


def test_folder_that_cannot_be_written(data, server):
    """A download into an impossible folder says which setting to change."""
    address, served = server
    put(served, "x.csv", CONTENT)
    data.write_text("a file where the folder should be")
    with pytest.raises(DatasetError, match=r"toy\.csv cannot be written .* set CE_HARNESS_DATA"):
        fetch(replace(PLAIN, urls=(f"{address}/x.csv",)))


def test_download_needs_a_checksum():
    """Nothing unverified is downloaded."""
    with pytest.raises(DatasetError, match=r"toy\.csv has addresses but no sha256"):
        Source("toy.csv", urls=("http://127.0.0.1:9/x",))
