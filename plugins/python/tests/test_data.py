import numpy as np
import pytest

import fl_trainer
from conftest import DIGITS


def test_digits():
    features, labels = fl_trainer.read_csv(f"file://{DIGITS}/test.csv")
    assert features.shape == (360, 64) and features.dtype == np.float32
    assert sorted(set(labels)) == list(range(10))


def test_label_column_and_quoting(tmp_path):
    (tmp_path / "a b.csv").write_bytes(b'\xef\xbb\xbfdigit,"x, y"\r\n1,"2.5"\r\n\r\n0,3\r\n')
    features, labels = fl_trainer.read_csv(f"file:{tmp_path}/a%20b.csv?label=digit")
    assert features.tolist() == [[2.5], [3.0]]
    assert labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    "text, message",
    [
        ("a,b\n1,2\n", "0 columns are named 'label'"),
        ("a,label\n1,2\n3\n", "line 3: 1 fields"),
        ("a,label\nx,2\n", "line 2"),
    ],
)
def test_errors_name_the_line(tmp_path, text, message):
    (tmp_path / "data.csv").write_text(text)
    with pytest.raises(fl_trainer.ContractError, match=message):
        fl_trainer.read_csv(f"file:{tmp_path}/data.csv")


@pytest.mark.parametrize("uri", ["data.csv", "s3://bucket/x", "file:", "file:x#partition=iid,parts=2"])
def test_uris(uri):
    with pytest.raises(fl_trainer.ContractError):
        fl_trainer.read_csv(uri)
