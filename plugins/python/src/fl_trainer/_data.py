"""Reading the datasets that the built-in trainers read, for examples and small programs."""

import csv
import pathlib
import urllib.parse
from typing import Any, Tuple

import numpy as np

from fl_trainer._contract import ContractError


def path_of(uri: str) -> pathlib.Path:
    """The path of a ``file:`` URI. Relative ones are relative to the working directory."""
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or not parts.path:
        raise ContractError(f"dataset {uri!r} is not a file: URI")
    if parts.fragment:
        raise ContractError(
            f"dataset {uri!r} is one part of a partition, which built-in trainers alone can read; "
            "give each client a file of its own"
        )
    return pathlib.Path(urllib.parse.unquote(parts.path))


def read_csv(uri: str) -> Tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Features (float32, [rows, columns]) and labels (int64, [rows]) of ``file:PATH.csv``.

    The first line names the columns; ``label``, or what ``?label=NAME`` says, holds the labels.
    """
    path = path_of(uri)
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(uri).query)
    label = query.get("label", ["label"])[0]
    with open(path, newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(file)
        names = [name.strip() for name in next(rows, [])]
        if names.count(label) != 1:
            raise ContractError(f"{path}: {names.count(label)} columns are named {label!r}")
        table = []
        for row in rows:
            if not row:
                continue
            if len(row) != len(names):
                raise ContractError(
                    f"{path} line {rows.line_num}: {len(row)} fields, the header has {len(names)}"
                )
            try:
                table.append([float(field) for field in row])
            except ValueError as error:
                raise ContractError(f"{path} line {rows.line_num}: {error}") from None
    values = np.array(table, dtype=np.float64).reshape(len(table), len(names))
    at = names.index(label)
    return np.delete(values, at, axis=1).astype(np.float32), values[:, at].astype(np.int64)
