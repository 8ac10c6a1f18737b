"""Files are judged by their bytes: what would run when it is loaded is refused, whatever its name says."""

import gzip
import io
import lzma
import os
import pickle
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from agent.acquire.content import formats
from agent.acquire.terms import Failed
from agent.wire import Format
from tests.agent.acquire.samples import safetensors
from tests.agent.acquire.test_pickles import Command

PAYLOAD = pickle.dumps(Command(), protocol=2)


def zipped(members: dict[str, bytes], packed: int = zipfile.ZIP_STORED) -> bytes:
    """A zip of these members."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", packed) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def tarred(kind: int = tarfile.USTAR_FORMAT) -> bytes:
    """A tar with one file."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=kind) as archive:
        member = tarfile.TarInfo("x")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"x"))
    return out.getvalue()


def npy(descr: str, version: bytes = b"\x01\x00") -> bytes:
    """A NumPy file with such a type."""
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': (2,), }}".encode().ljust(117) + b"\n"
    length = len(header).to_bytes(2 if version == b"\x01\x00" else 4, "little")
    return b"\x93NUMPY" + version + length + header + b"\0" * 16


def old_tar() -> bytes:
    """As before POSIX: no mark, only the sum."""
    block = bytearray(tarred()[:512])
    block[257:265] = b"\0" * 8
    block[148:156] = b" " * 8
    block[148:156] = f"{sum(block):06o}\0 ".encode()
    return bytes(block) + b"\0" * 1024


TORCH = {"archive/data.pkl": PAYLOAD, "archive/data/0": b"\0" * 64, "archive/version": b"3\n"}
RUNS: dict[str, tuple[str, bytes, set[Format]]] = {
    "pickle-named-safetensors": ("model.safetensors", PAYLOAD, {"pickle"}),
    "pickle-named-json": ("config.json", pickle.dumps(Command(), protocol=0), {"pickle"}),
    "pickle-named-model": ("tokenizer.model", pickle.dumps(Command(), protocol=4), {"pickle"}),
    "pickle-without-a-name": ("weights", PAYLOAD, {"pickle"}),
    "torch-zip": ("model.gguf", zipped(TORCH), {"pickle"}),
    "torch-zip-packed": ("model.gguf", zipped(TORCH, zipfile.ZIP_DEFLATED), {"pickle"}),
    "torch-zip-with-a-pickle-of-another-name": ("x.json", zipped({"a/data": PAYLOAD}), {"pickle"}),
    "torch-zip-with-code": ("x.json", zipped(TORCH | {"archive/code/x.py": b"import os"}), {"pickle", "code"}),
    "zip-without-its-list": ("x.json", zipped(TORCH)[:-60], {"archive", "pickle", "code"}),
    "zip-with-a-broken-list": ("x", zipped(TORCH).replace(b"PK\x01\x02", b"PK\x01\x03"), {"archive", "pickle", "code"}),
    "zip-packed-as-nobody-does": ("x", zipped({"a": b"x"}, zipfile.ZIP_LZMA), {"archive", "pickle", "code"}),
    "zip-behind-something": ("x.json", b"{}" + zipped(TORCH), {"pickle"}),
    "zip-of-texts": ("x.json", zipped({"a.txt": b"x"}), {"archive"}),
    "empty-zip": ("x.json", zipped({}), {"archive"}),
    "jar": ("x.json", zipped({"A.class": b"\xca\xfe\xba\xbe"}), {"archive", "code"}),
    "npy-of-objects": ("x.npy", npy("'|O'"), {"pickle"}),
    "npy-of-structures": ("x.npy", npy("[('a', '<f4'), ('b', '|O')]"), {"pickle"}),
    "npy-of-version-2-of-objects": ("x.npy", npy("'O'", b"\x02\x00"), {"pickle"}),
    "npy-of-objects-told-twice": ("x.npy", npy("'<f4', 'descr': '|O'"), {"pickle"}),
    "npy-of-objects-with-a-remark": ("x.npy", npy("'|O', 'shape': (2,)} # 'descr': '<f4'"), {"pickle"}),
    "npy-of-an-expression": ("x.npy", npy("f()"), {"pickle"}),
    "npy-nested-without-end": ("x.npy", npy("(" * 4000 + "'<f4'"), {"pickle"}),
    "npy-cut-short": ("x.npy", npy("'<f4'")[:20], {"pickle"}),
    "npz-with-objects": ("x.npz", zipped({"a.npy": npy("'<f4'"), "b.npy": npy("'|O'")}), {"pickle"}),
    "joblib-packed": ("x.json", zlib.compress(PAYLOAD), {"pickle"}),
    "zlib": ("x.json", zlib.compress(b"text"), {"archive"}),
    "hdf5": ("weights.dat", b"\x89HDF\r\n\x1a\n" + b"\0" * 64, {"pickle"}),
    "hdf5-behind-a-block": ("weights.dat", b"\0" * 512 + b"\x89HDF\r\n\x1a\n", {"pickle"}),
    "hdf5-behind-a-large-block": ("tokenizer.model", b"\0" * 16_384 + b"\x89HDF\r\n\x1a\n", {"pickle"}),
    "joblib-packed-by-lzma": ("tokenizer.model", lzma.compress(PAYLOAD, lzma.FORMAT_ALONE), {"archive"}),
    "elf": ("model.safetensors", b"\x7fELF\x02\x01\x01" + b"\0" * 64, {"code"}),
    "windows-program": ("x.json", b"MZ" + b"\x90\0" * 29 + b"\x40\0\0\0PE\0\0", {"code"}),
    "java-class": ("x.txt", b"\xca\xfe\xba\xbe\0\0\0\x34", {"code"}),
    "wasm": ("x.txt", b"\0asm\x01\0\0\0", {"code"}),
    "compiled-python": ("x.txt", b"\xa7\r\r\n\0\0\0\0" + b"\0" * 8, {"code"}),
    "script": ("README.md", b"#!/bin/sh\nrm -rf /\n", {"code"}),
    "script-with-a-blank": ("x.txt", b"#! /usr/bin/env python\n", {"code"}),
    "python": ("modeling.py", b"import os\n", {"code"}),
    "notebook": ("demo.ipynb", b'{"cells": []}', {"code"}),
    "tar": ("x.txt", tarred(), {"archive"}),
    "tar-of-gnu": ("x.txt", tarred(tarfile.GNU_FORMAT), {"archive"}),
    "tar-of-old": ("x.txt", old_tar(), {"archive"}),
    "gzip": ("x.txt", gzip.compress(b"x"), {"archive"}),
    "bzip2": ("x.txt", b"BZh91AY&SY" + b"\0" * 20, {"archive"}),
    "7z": ("x.txt", b"7z\xbc\xaf\x27\x1c" + b"\0" * 20, {"archive"}),
    "unknown-bytes": ("weights.xyz", b"\0\1\2\3", {"other"}),
    "unknown-bytes-named-text": ("notes.txt", b"\0\1\2\3", {"other"}),
    "bin-of-anything": ("x.bin", b"\0\1\2\3", {"pickle"}),
}


ALL: set[Format] = {"pickle", "code", "archive", "other"}


def judge(tmp_path: Path, name: str, content: bytes, allowed: set[Format]) -> None:
    """Look at a file of these bytes."""
    path = tmp_path / "file"
    path.write_bytes(content)
    formats.inspect(path, name, allowed)


@pytest.mark.parametrize("case", RUNS)
def test_what_may_run_is_refused_and_names_the_formats_that_would_have_to_be_allowed(tmp_path: Path, case: str) -> None:
    name, content, needed = RUNS[case]
    with pytest.raises(Failed) as caught:
        judge(tmp_path, name, content, set())
    assert caught.value.code == "manifest_refused"
    assert name in caught.value.detail
    assert all(f"'{kind}'" in caught.value.detail for kind in needed)


@pytest.mark.parametrize("case", [case for case in RUNS if not RUNS[case][0].endswith((".safetensors", ".gguf"))])
def test_allowing_exactly_those_formats_lets_it_pass_and_one_less_does_not(tmp_path: Path, case: str) -> None:
    name, content, needed = RUNS[case]
    judge(tmp_path, name, content, needed)
    for kind in needed:
        with pytest.raises(Failed, match=f"'{kind}'"):
            judge(tmp_path, name, content, ALL - {kind})


BENIGN = {
    "empty": ("x.json", b""),
    "json": ("config.json", b'{"auto_map": {"AutoModel": "modeling.Model"}}'),
    "json-over-the-head": ("tokenizer.json", b'{"a": "' + b"x" * 10_000 + b'"}'),
    "text": ("notes.txt", "Größe\n".encode()),
    "x-squared": ("notes.txt", b"x^2 + y^2 = 1\n"),
    "markdown-with-a-shebang-inside": ("README.md", b"# Usage\n#!/bin/sh\n"),
    "rust-attribute": ("notes.txt", b"#![allow(x)]\n"),
    "begins-with-mz": ("notes.txt", b"MZ is a short name.\n" * 10),
    "license": ("LICENSE", b"Permission is hereby granted\n"),
    "gitattributes": (".gitattributes", b"*.bin filter=lfs\n"),
    "template": ("chat_template.jinja", b"{% for m in messages %}{{ m }}{% endfor %}"),
    "safetensors": ("model.safetensors", safetensors()),
    "gguf": ("model.gguf", b"GGUF\3\0\0\0" + b"\0" * 100),
    "sentencepiece": ("tokenizer.model", b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02"),
    "picture": ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    "npy": ("x.npy", npy("'<f4'")),
    "npy-of-version-3": ("x.npy", npy("'<f4'", b"\x03\x00")),
    "npz": ("x.npz", zipped({"a.npy": npy("'<i8'"), "b.npy": npy("'<U3'")}, zipfile.ZIP_DEFLATED)),
    "text-without-a-known-ending": ("notes.xyz", b"just text\n"),
    "mentions-a-zip": ("notes.txt", b"the mark PK\x05\x06 ends a zip, " + b"x" * 100),
}


@pytest.mark.parametrize("case", BENIGN)
def test_what_only_holds_data_passes(tmp_path: Path, case: str) -> None:
    name, content = BENIGN[case]
    judge(tmp_path, name, content, set())


def test_a_safetensors_header_is_checked_whatever_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="no safetensors file"):
        judge(tmp_path, "x.safetensors", safetensors()[:-1], ALL)
    with pytest.raises(Failed, match="no safetensors file"):
        judge(tmp_path, "x.safetensors", PAYLOAD, {"pickle"})


def test_a_gguf_must_begin_as_one(tmp_path: Path) -> None:
    with pytest.raises(Failed, match="no GGUF file"):
        judge(tmp_path, "x.gguf", b"\1\2\3\0", set())


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("{}")
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(OSError, match="symbolic"):
        formats.inspect(tmp_path / "link", "x.json")


@pytest.mark.timeout(10)
def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="not a regular file"):
        formats.inspect(tmp_path / "pipe", "x.json")


def test_a_zip_that_claims_an_enormous_list_is_not_read(tmp_path: Path) -> None:
    content = bytearray(b"PK\x03\x04" + b"\0" * 100 + b"PK\x05\x06" + b"\0" * 18)
    content[-10:-6] = (0xF0000000).to_bytes(4, "little")
    with pytest.raises(Failed, match="'archive' and 'code' and 'pickle'"):
        judge(tmp_path, "x.json", bytes(content), set())


def test_a_zip_of_very_many_members_is_not_walked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.acquire.content.zips._MOST_MEMBERS", 3)
    judge(tmp_path, "x.npz", zipped({f"{n}.npy": npy("'<f4'") for n in range(3)}), set())
    with pytest.raises(Failed, match="'archive'"):
        judge(tmp_path, "x.npz", zipped({f"{n}.npy": npy("'<f4'") for n in range(4)}), set())


def test_a_member_that_unpacks_to_gigabytes_is_only_begun(tmp_path: Path) -> None:
    bomb = zipped({"a.npy": npy("'<f4'") + b"\0" * 50_000_000}, zipfile.ZIP_DEFLATED)
    judge(tmp_path, "x.npz", bomb, set())
