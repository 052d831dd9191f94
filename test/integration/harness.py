"""What the integration tests share: the programs under test, and safetensors files made by hand."""

import json
import os
import pathlib
import struct
import subprocess

BIN = pathlib.Path(os.environ.get("FL_BIN", "build/dev/bin")).resolve()
SOURCE = pathlib.Path(os.environ.get("FL_SOURCE", ".")).resolve()
FL = str(BIN / "fl")

_SIZES = {"BOOL": 1, "U8": 1, "I8": 1, "F16": 2, "BF16": 2, "I16": 2, "U16": 2,
          "F32": 4, "I32": 4, "U32": 4, "F64": 8, "I64": 8, "U64": 8}
_FORMATS = {"BOOL": "?", "U8": "B", "I8": "b", "F16": "e", "I16": "h", "U16": "H", "F32": "f",
            "I32": "i", "U32": "I", "F64": "d", "I64": "q", "U64": "Q"}


def environment(**changes):
    """This process's environment without what would point fl somewhere."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("FL_")}
    clean.pop("NO_COLOR", None)
    clean.update(changes)
    return clean


def fl(*arguments, stdin="", cwd=None, **changes):
    """Runs fl and returns the finished process, text streams captured."""
    return subprocess.run([FL, *map(str, arguments)], input=stdin, capture_output=True, text=True,
                          timeout=120, env=environment(**changes), cwd=cwd, check=False)


def tensor(dtype, shape, values):
    """A tensor of a safetensors file; BF16 values are given as their 16 bits."""
    code = "H" if dtype == "BF16" else _FORMATS[dtype]
    return dtype, shape, struct.pack(f"<{len(values)}{code}", *values)


def write_safetensors(path, tensors, metadata=None):
    """Writes {name: tensor(...)} in the order given."""
    header = {"__metadata__": metadata} if metadata else {}
    offset = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            out.write(data)
    return str(path)


def read_safetensors(path):
    """{name: (dtype, shape, values)}, bits for BF16."""
    blob = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", blob)
    header = json.loads(blob[8:8 + length])
    header.pop("__metadata__", None)
    result = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        data = blob[8 + length + begin:8 + length + end]
        code = "H" if entry["dtype"] == "BF16" else _FORMATS[entry["dtype"]]
        count = len(data) // _SIZES[entry["dtype"]]
        result[name] = (entry["dtype"], entry["shape"], list(struct.unpack(f"<{count}{code}", data)))
    return result
