#!/usr/bin/env python3
"""Makes manifests/examples/digits/*.csv from the UCI digits that scikit-learn carries.

    python3 -m venv venv && venv/bin/pip install scikit-learn && venv/bin/python make_digits.py FOLDER

1797 images of handwritten digits, 8x8 pixels from 0 to 16. A stratified 80/20 split into train.csv and
test.csv; train.csv is dealt out once more to client-01.csv … client-10.csv in proportions drawn for
each class from Dirichlet(0.5), so that the clients differ in size and in their digits. Everything is
seeded: the files come out the same each time.
"""

import pathlib
import sys

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

CLIENTS = 10
ALPHA = 0.5
SMALLEST_CLIENT = 30


def write(path: pathlib.Path, pixels: np.ndarray, labels: np.ndarray) -> None:
    header = ",".join(f"pixel{i}" for i in range(pixels.shape[1])) + ",label"
    rows = np.column_stack([pixels, labels]).astype(int)
    path.write_text(header + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))


def split(labels: np.ndarray, random: np.random.RandomState) -> list:
    parts = [[] for _ in range(CLIENTS)]
    for label in range(10):
        rows = np.flatnonzero(labels == label)
        random.shuffle(rows)
        ends = np.round(np.cumsum(random.dirichlet([ALPHA] * CLIENTS)) * len(rows)).astype(int)
        for part, piece in zip(parts, np.split(rows, ends[:-1])):
            part.extend(piece)
    return [np.sort(part).astype(int) for part in parts]


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    digits = load_digits()
    train, test = train_test_split(
        np.arange(len(digits.target)), test_size=360, stratify=digits.target, random_state=0
    )
    train, test = np.sort(train), np.sort(test)
    write(folder / "train.csv", digits.data[train], digits.target[train])
    write(folder / "test.csv", digits.data[test], digits.target[test])
    random = np.random.RandomState(1)  # the generator whose sequence NumPy keeps for all time
    parts = split(digits.target[train], random)
    while min(map(len, parts)) < SMALLEST_CLIENT:
        parts = split(digits.target[train], random)
    for number, part in enumerate(parts, start=1):
        rows = train[part]
        write(folder / f"client-{number:02}.csv", digits.data[rows], digits.target[rows])
        counts = " ".join(f"{c:3}" for c in np.bincount(digits.target[rows], minlength=10))
        print(f"client-{number:02}: {len(rows):4} rows; of each digit {counts}")


if __name__ == "__main__":
    main()
