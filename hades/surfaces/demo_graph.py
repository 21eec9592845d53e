"""A small graph of real content: which modules of the standard library import which, read from their sources."""

from __future__ import annotations

import ast
import math
import sysconfig
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from schemas.edges import Provenance, Relation, RelationType
from schemas.ids import content_key, edge_key, entity_key, node_id, sha256_text
from schemas.nodes import Document, Entity, EntityType, SourceKind

STARTS = ("http.server", "json.tool", "asyncio", "sqlite3", "email.message")
MAX_MODULES = 80


@dataclass(frozen=True)
class Module:
    """A source file: its dotted name, its path in the library, and where it imports what."""

    name: str
    path: str
    text: str
    summary: str
    imports: dict[str, tuple[int, int]]


@dataclass(frozen=True)
class DemoGraph:
    """Rows for three collections."""

    documents: list[Document]
    entities: list[Entity]
    relations: list[Relation]


def standard_library_graph() -> DemoGraph:
    """The modules reached from `STARTS` by following imports, breadth first, and the imports between them."""
    modules = _reached(Path(sysconfig.get_paths()["stdlib"]))
    imported = Counter(target for module in modules.values() for target in module.imports if target in modules)
    documents = [_document(module) for module in modules.values()]
    entities = [_entity(module, imported[module.name]) for module in modules.values()]
    relations = [
        _relation(module, target, span, imported[target])
        for module in modules.values()
        for target, span in module.imports.items()
        if target in modules and target != module.name
    ]
    return DemoGraph(documents, entities, relations)


def module_id(name: str) -> str:
    """The `_id` of a module's entity."""
    return node_id("entities", entity_key(name, EntityType.CODE_SYMBOL))


def _reached(library: Path) -> dict[str, Module]:
    found: dict[str, Module] = {}
    waiting = deque(STARTS)
    while waiting and len(found) < MAX_MODULES:
        name = waiting.popleft()
        path = _path_of(library, name)
        if name in found or path is None:
            continue
        found[name] = _read(library, name, path)
        waiting.extend(found[name].imports)
    return found


def _path_of(library: Path, name: str) -> Path | None:
    stem = library.joinpath(*name.split("."))
    candidates = (stem.with_name(f"{stem.name}.py"), stem / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _read(library: Path, name: str, path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    starts = [0]
    for line in text.split("\n"):  # not splitlines: a form feed ends no line of Python
        starts.append(starts[-1] + len(line) + 1)
    imports: dict[str, tuple[int, int]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            span = (starts[node.lineno - 1], starts[node.end_lineno or node.lineno])
            for target in _targets(library, package, node):
                imports.setdefault(target, span)
    summary = (ast.get_docstring(tree) or "").strip().partition("\n\n")[0].replace("\n", " ")
    return Module(name, path.relative_to(library).as_posix(), text, summary, imports)


def _targets(library: Path, package: str, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Names of the library's modules a statement imports; `from x import y` may mean the module x.y."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        parents = package.split(".")
        base = ".".join(parents[: len(parents) - node.level + 1]) if node.level else ""
        module = ".".join(part for part in (base, node.module or "") if part)
        deeper = [f"{module}.{alias.name}" for alias in node.names]
        names = [name if _path_of(library, name) else module for name in deeper]
    yield from (name for name in names if name and _path_of(library, name))


def _document(module: Module) -> Document:
    return Document(
        key=content_key("doc", module.path),
        origin=module.path,
        source=SourceKind.WORKSPACE,
        title=module.name,
        mime="text/x-python",
        text=module.text,
        sha256=sha256_text(module.text),
    )


def _entity(module: Module, importers: int) -> Entity:
    return Entity(
        key=entity_key(module.name, EntityType.CODE_SYMBOL),
        name=module.name,
        name_lower=module.name.lower(),
        type=EntityType.CODE_SYMBOL,
        canonical_name=module.name,
        summary=module.summary,
        frequency=importers,
        deg_out=len(module.imports),
    )


def _relation(module: Module, target: str, span: tuple[int, int], importers: int) -> Relation:
    """An import. What everybody imports says little, so the weight falls with the number of importers."""
    source_id, target_id = module_id(module.name), module_id(target)
    weight = 1.0 / math.sqrt(1.0 + importers)
    return Relation(
        key=edge_key(source_id, RelationType.REFERS_TO, target_id),
        source=source_id,
        target=target_id,
        type=RelationType.REFERS_TO,
        weight=weight,
        cost=-math.log(weight),
        label="imports",
        provenance=Provenance(doc=node_id("documents", content_key("doc", module.path)), span=span),
    )
