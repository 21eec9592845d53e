"""INSERT, UPDATE, REPLACE, REMOVE and UPSERT of AQL."""

from collections.abc import Callable, Iterator

from tests.arango_double import syntax, writes
from tests.arango_double.context import QueryContext
from tests.arango_double.errors import NotInDouble, ServerError, aql_error
from tests.arango_double.evaluate import Compiler, Evaluator
from tests.arango_double.index_choice import Wish, choose
from tests.arango_double.indexes import Condition, Document
from tests.arango_double.options import WRITE_OPTIONS, read_options
from tests.arango_double.values import Row, Value, equal, truthy
from tests.arango_double.writes import Merge, Written

Stage = Callable[[Iterator[Row], Row], Iterator[Row]]


def modification_stage(compiler: Compiler, node: syntax.Modification) -> Stage:
    """Write for every input row; all rows are read before the first write."""
    context = compiler.context
    options = _options(context, node.kind, node.options)
    name = compiler.source_name(node.collection)
    document = compiler.compile(node.document)
    key = compiler.compile(node.key) if node.key is not None else None
    write = {"INSERT": _insert, "UPDATE": _update, "REPLACE": _replace, "REMOVE": _remove}[node.kind]
    return _writer(context, options, lambda row: write(context, name, document, key, options, row))


def upsert_stage(compiler: Compiler, node: syntax.Upsert) -> Stage:
    """Look up by example or condition, then insert or update; own writes are seen unless readOwnWrites is off."""
    context = compiler.context
    options = _options(context, "UPSERT", node.options)
    name = compiler.source_name(node.collection)
    find = _upsert_finder(compiler, node, name)
    insert, update = compiler.compile(node.insert), compiler.compile(node.update)

    own_writes = options.get("readOwnWrites", True)

    def write(row: Row) -> Written:
        old = find(row) if own_writes else row["$found"]
        if old is None:
            return writes.insert(context.transaction, name, insert({**row, "$OLD": None}))
        patch = update({**row, "$OLD": old})
        if node.kind == "REPLACE":
            return writes.replace(context.transaction, name, old["_key"], patch)
        return writes.update(context.transaction, name, old["_key"], patch, _merge(options))

    if own_writes:
        return _writer(context, options, write)
    return _writer(context, options, write, lambda row: {**row, "$found": find(row)})


def _writer(
    context: QueryContext,
    options: dict[str, Value],
    write: Callable[[Row], Written],
    prepare: Callable[[Row], Row] = lambda row: row,
) -> Stage:
    def stage(rows: Iterator[Row], base: Row) -> Iterator[Row]:
        done: list[Row] = []
        for row in [prepare(row) for row in rows]:
            context.check()
            try:
                written = write(row)
            except ServerError as error:
                if options.get("ignoreErrors") and error.number != 1500:
                    context.stats.writes_ignored += 1
                    continue
                raise _worded(error) from error
            if written.ignored:
                context.stats.writes_ignored += 1
            else:
                context.stats.writes_executed += 1
            old = None if written.ignored else written.old
            done.append({**row, "$OLD": old, "$NEW": written.new})
        yield from done

    return stage


def _worded(error: ServerError) -> ServerError:
    if error.message.startswith("AQL:"):
        return error
    return ServerError(error.number, f"AQL: {error.message} (while executing)")


def _options(context: QueryContext, kind: str, node: syntax.Object | None) -> dict[str, Value]:
    options = read_options(context, kind, node, WRITE_OPTIONS[kind])
    if "versionAttribute" in options:
        raise NotInDouble("versionAttribute")
    return options


def _merge(options: dict[str, Value]) -> Merge:
    return Merge(options.get("keepNull", True), options.get("mergeObjects", True))


def _selector(name: str, value: Value, options: dict[str, Value]) -> tuple[str, str | None]:
    if not isinstance(value, (str, dict)):
        aql_error(1227 if value is None else 1205, "invalid document selector", "executing")
    key, rev = writes.key_of(name, value)
    return key, rev if options.get("ignoreRevs") is False else None


def _insert(
    context: QueryContext, name: str, document: Evaluator, key: Evaluator | None, options: dict[str, Value], row: Row
) -> Written:
    mode = options.get("overwriteMode") or ("replace" if options.get("overwrite") else "conflict")
    return writes.insert(context.transaction, name, document(row), mode, _merge(options))


def _update(
    context: QueryContext, name: str, document: Evaluator, key: Evaluator | None, options: dict[str, Value], row: Row
) -> Written:
    patch = document(row)
    found, rev = _selector(name, key(row) if key is not None else patch, options)
    return writes.update(context.transaction, name, found, patch, _merge(options), rev)


def _replace(
    context: QueryContext, name: str, document: Evaluator, key: Evaluator | None, options: dict[str, Value], row: Row
) -> Written:
    body = document(row)
    found, rev = _selector(name, key(row) if key is not None else body, options)
    return writes.replace(context.transaction, name, found, body, rev)


def _remove(
    context: QueryContext, name: str, document: Evaluator, key: Evaluator | None, options: dict[str, Value], row: Row
) -> Written:
    found, rev = _selector(name, document(row), options)
    return writes.remove(context.transaction, name, found, rev)


def _upsert_finder(compiler: Compiler, node: syntax.Upsert, name: str) -> Callable[[Row], Document | None]:
    context = compiler.context
    if node.current is not None:
        current, condition = node.current, compiler.compile(node.search)

        def by_condition(row: Row) -> Document | None:
            for document in context.transaction.scan(name):
                if truthy(condition({**row, current: document})):
                    return document
            return None

        return by_condition
    example = compiler.compile(node.search)

    def by_example(row: Row) -> Document | None:
        wanted = example(row)
        if not isinstance(wanted, dict):
            aql_error(1553, "UPSERT example must be an object", "executing")
        for document in _candidates(context, name, wanted):
            if all(equal(document.get(attribute), value) for attribute, value in wanted.items()):
                return document
        return None

    return by_example


def _candidates(context: QueryContext, name: str, wanted: dict[str, Value]) -> list[Document]:
    wishes = [Wish(attribute, "==", syntax.Literal(value)) for attribute, value in wanted.items()]
    choice = choose(context.database.collection(name), wishes)
    if choice is None:
        return context.transaction.scan(name)
    if choice.buckets is None:
        key = wanted.get("_key", str(wanted.get("_id", "")).removeprefix(f"{name}/"))
        found = context.transaction.get(name, key) if isinstance(key, str) else None
        return [found] if found is not None else []
    if choice.index.sparse and any(wanted[wish.field] is None for wish in choice.wishes):
        return context.transaction.scan(name)
    conditions = [Condition(wish.field, "==", wanted[wish.field]) for wish in choice.wishes]
    return context.transaction.lookup(name, choice.buckets, conditions)
