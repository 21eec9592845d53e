"""The machine code of a kernel in a file: a process that asks once calls it without loading the compiler.

`write_code` compiles a kernel for arguments of some types and writes what LLVM made of it; `read_code` gives the file
to LLVM's loader, which is there in a twentieth of the compiler's time. A file counts for one text of the kernel's
module, one processor and one version of LLVM, and its name says which. One that is damaged, or was written for other
types of arguments, is not called.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, cast

import numpy as np

Call = Callable[..., Any]
_SUFFIX = ".machine-code"
_DIGEST_BYTES = 32
_PLAIN = {"bool": ctypes.c_bool, "int": ctypes.c_int64, "float": ctypes.c_double}


def write_code(function: FunctionType, arguments: Sequence[Any]) -> Path | None:
    """Compile for arguments like these and write the file.

    The function reads and writes elements of arrays and returns whether it is done. None where no folder can be
    written, or where this version of the compiler makes it call what only the compiler knows.
    """
    import numba

    kinds = [_kind_of(one) for one in arguments]
    options: dict[str, Any] = {"error_model": "numpy", "_nrt": False}  # arrays have no owner, so nobody counts holders
    compiled: Any = numba.njit(**options)(function)
    compiled.compile(tuple(map(cast(Call, numba.typeof), arguments)))
    (signature,) = compiled.signatures
    name = compiled.overloads[signature].fndesc.llvm_func_name
    code = _object_code(compiled.inspect_llvm(signature), name)
    if code is None:
        return None
    body = json.dumps({"name": name, "kinds": kinds}).encode() + b"\n" + code
    for folder in _folders(function):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / _file_name(function)
            partial = path.with_suffix(f".{os.getpid()}")
            partial.write_bytes(hashlib.sha256(body).digest() + body)
            partial.replace(path)
        except OSError:
            continue
        return path
    return None


def read_code(function: FunctionType) -> Call | None:
    """The function as machine code, or None where no file fits; the call itself gives None for other arguments."""
    if not any(any(folder.glob(f"{function.__name__}-*{_SUFFIX}")) for folder in _folders(function)):
        return None  # the loader of machine code need not be loaded
    for folder in _folders(function):
        try:
            content = (folder / _file_name(function)).read_bytes()
        except OSError:
            continue
        body = content[_DIGEST_BYTES:]
        if hashlib.sha256(body).digest() == content[:_DIGEST_BYTES]:
            head, _, code = body.partition(b"\n")
            facts = json.loads(head)
            return _callable(_address(code, facts["name"]), facts["kinds"])
    return None


def _object_code(assembly: str, name: str) -> bytes | None:
    """The one function without what only the compiler's own callers need; None where it cannot be loaded alone."""
    import llvmlite.binding as llvm

    module = llvm.parse_assembly(assembly)
    for function in module.functions:
        if function.name != name and not function.is_declaration:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration:
            variable.linkage = "internal"
    machine = _machine()
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=0)))
    called = [one.name for one in module.functions if one.is_declaration and not one.name.startswith("llvm.")]
    return None if called else bytes(machine.emit_object(module))


@cache
def _machine() -> Any:
    """This processor, as LLVM knows it."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = _processor()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu, features=features, opt=3, codemodel="jitdefault", jit=True
    )


def _processor() -> tuple[str, str]:
    """The name of the processor and what it can do; nothing of the second where LLVM does not know it."""
    import llvmlite.binding as llvm

    try:
        return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    except RuntimeError:
        return llvm.get_host_cpu_name(), ""


_engines: list[Any] = []  # an engine that is dropped takes its code with it


def _address(code: bytes, name: str) -> int:
    import llvmlite.binding as llvm

    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    _engines.append(engine)
    return int(engine.get_function_address(name))


def _callable(address: int, kinds: Sequence[str]) -> Call:
    types: list[Any] = []
    for kind in kinds:
        dimensions = int(kind.partition(" ")[2] or 0)
        # Owner and its counter, number and size of elements, address, lengths, strides: an array as numba passes it.
        array = [ctypes.c_void_p] * 2 + [ctypes.c_int64] * 2 + [ctypes.c_void_p] + [ctypes.c_int64] * (2 * dimensions)
        types += array if dimensions else [_PLAIN[kind]]
    call = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *types)(address)

    def run(*arguments: Any) -> bool | None:
        if [_kind_of(one) for one in arguments] != list(kinds):
            return None
        given: list[Any] = []
        for one in arguments:
            given += _parts(one) if isinstance(one, np.ndarray) else [one]
        is_done, problem = ctypes.c_uint8(), ctypes.c_void_p()
        call(ctypes.addressof(is_done), ctypes.addressof(problem), *given)
        return bool(is_done.value)

    return run


def _parts(array: np.ndarray[Any, Any]) -> list[Any]:
    address = array.__array_interface__["data"][0]
    return [None, None, array.size, array.itemsize, address, *array.shape, *array.strides]


def _kind_of(argument: Any) -> str:
    """The type as a file knows it; an array that does not lie in one piece has none."""
    if isinstance(argument, np.ndarray):
        return f"{argument.dtype.str} {argument.ndim}" if argument.flags.c_contiguous else ""
    return type(argument).__name__


def _folders(function: FunctionType) -> tuple[Path, ...]:
    """Beside the module, or in the user's folder where that cannot be written; a service's user may have none."""
    home = os.path.expanduser("~")
    users = (Path(home) / ".cache" / "hades",) if os.path.isabs(home) else ()
    return Path(function.__code__.co_filename).parent / "__pycache__", *users


def _file_name(function: FunctionType) -> str:
    import llvmlite

    text = Path(function.__code__.co_filename).read_bytes()
    digest = hashlib.sha256(json.dumps([llvmlite.__version__, *_processor()]).encode() + text).hexdigest()
    return f"{function.__name__}-{digest[:16]}{_SUFFIX}"
