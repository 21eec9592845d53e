"""Files of the learned ranker, by the generation that they belong to."""

from __future__ import annotations

import hashlib
import zipfile
from io import BytesIO
from pathlib import Path

import numpy as np

from hades.files import write_whole
from models.ranker.infer import BadModel, RankerModel, pack, unpack

# A ranker as a file under HADES_HOME, named by the hash of what it holds: what publishing puts into
# a snapshot. Plain arrays and JSON, no pickle: reading an old or a foreign one runs nobody's code.
# Equal models give equal bytes.
FOLDER = "ranker"


def generation_of(model: RankerModel) -> str:
    """The hash of everything a model is."""
    signature, numbers = pack(model)
    return hashlib.sha256(signature + b"\0" + numbers.tobytes()).hexdigest()


def write_model(path: Path, model: RankerModel) -> None:
    """Put a model into a file."""
    signature, numbers = pack(model)
    content = BytesIO()
    np.savez(
        content,
        signature=np.frombuffer(signature, np.uint8),
        numbers=numbers,
    )
    write_whole(path, content.getvalue())


def read_model(path: Path) -> RankerModel:
    """The model of a file; `BadModel` names the file and what is wrong with it."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return unpack(arrays["signature"].tobytes(), arrays["numbers"])
    except FileNotFoundError as error:
        raise BadModel(f"{path} is not there; train again with `hades run train_ranker`") from error
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise BadModel(
            f"{path} cannot be used: {error}; train again with `hades run train_ranker`"
        ) from error


def save_ranker(home: Path, model: RankerModel) -> str:
    """Keep a model where publishing finds it; its generation."""
    generation = generation_of(model)
    write_model(path_of(home, generation), model)
    return generation


def load_ranker(home: Path, generation: str) -> RankerModel:
    """The model of a generation; one whose bytes are not those of its name is refused."""
    model = read_model(path_of(home, generation))
    if generation_of(model) != generation:
        raise BadModel(f"{path_of(home, generation)} was changed after it was written; train again")

    return model


def path_of(home: Path, generation: str) -> Path:
    """Where a generation is kept."""
    return home / FOLDER / f"{generation}.npz"
