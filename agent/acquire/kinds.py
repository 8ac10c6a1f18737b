"""What a file's name says about loading it: only data, or something that runs code and needs to be allowed by name."""

import re
from typing import Final

from agent.wire import Format

WHY: Final[dict[Format, str]] = {
    "pickle": "files that can run code when they are loaded",
    "code": "program code",
    "archive": "archives, which can hide anything",
    "other": "files of which nobody can tell that they only hold data",
}

_PICKLE = """bin pt pth ckpt pkl pickle joblib dill h5 hdf5 keras pdparams pdopt mar t7 ptl pyt torch sav cloudpickle"""
_CODE = """py pyc pyo pyd pyw pyx ipynb so dll dylib exe com msi sh bash zsh fish bat cmd ps1 js mjs cjs ts rb pl lua
php jar class wasm whl egg c cc cpp cxx cu cuh h hpp go rs java kt swift o a ko llamafile desktop service"""
_ARCHIVE = """tar tgz tbz tbz2 txz zip 7z rar gz bz2 xz zst lz4 lzma z nemo mlpackage cpio iso"""
_OTHER = """onnx onnx_data tflite pb mlmodel engine plan trt msgpack ot rknn dlc xmodel db sqlite"""
# npy and npz stand in neither: they hold plain numbers or pickled objects, and their headers tell which.
_TEXT = """json jsonl ndjson txt md rst yaml yml toml ini cfg csv tsv jinja jinja2 j2 vocab merges bpe tiktoken
gitattributes gitignore cff bib tex xml html css svg license lock"""
_DATA = """safetensors gguf ggml model spm npy npz png jpg jpeg gif webp avif bmp ico tif tiff pdf wav mp3 m4a
flac ogg opus mp4 webm parquet arrow ttf otf woff woff2"""

_BY_SUFFIX: Final[dict[str, Format]] = {
    **dict.fromkeys(_PICKLE.split(), "pickle"),
    **dict.fromkeys(_CODE.split(), "code"),
    **dict.fromkeys(_ARCHIVE.split(), "archive"),
    **dict.fromkeys(_OTHER.split(), "other"),
}
_VERSION: Final = re.compile(r"v\d+")
_PLAIN: Final = frozenset(_TEXT.split())
_KNOWN: Final = frozenset(_DATA.split()) | _PLAIN


def suffix(path: str) -> str:
    """What stands behind the last dot of the file's own name, in lower case: "gitattributes" of ".gitattributes".

    A version behind it is passed over: tokenizer.model.v3 is another tokenizer.model.
    """
    own, _, ending = path.rpartition("/")[2].lower().rpartition(".")
    if _VERSION.fullmatch(ending) and "." in own:
        ending = own.rpartition(".")[2]
    return ending if "." in path.rpartition("/")[2] else ""


def by_name(path: str, *, large: bool) -> Format | None:
    """The format that must be allowed for such a name; None where the name alone says nothing against it.

    A large file of an unknown ending is no text: nobody fetches gigabytes first to be told so. A small one is judged by
    its bytes when they are here.
    """
    ending = suffix(path)
    if ending in _BY_SUFFIX:
        return _BY_SUFFIX[ending]
    if large and ending not in _KNOWN:
        return "other"
    return None


def is_text(path: str) -> bool:
    """Whether a file of that name should hold text."""
    return suffix(path) in _PLAIN


def is_data(path: str) -> bool:
    """Whether a file of that name may hold bytes of any kind without being asked for more."""
    return suffix(path) in _KNOWN
