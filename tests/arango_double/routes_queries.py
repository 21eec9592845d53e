"""HTTP routes of AQL: cursors, explain, parse, running queries."""

import time
from typing import Any

from tests.arango_double.context import Limits, QueryContext
from tests.arango_double.errors import NotInDouble, ServerError
from tests.arango_double.execute import run_query
from tests.arango_double.explain import explain
from tests.arango_double.parser import parse
from tests.arango_double.routing import ROUTER, Request, Response
from tests.arango_double.state import Cursor, State
from tests.arango_double.transactions import Transaction
from tests.arango_double.validate import check_binds, check_sources, find_sources
from tests.arango_double.values import Value

_TOP = {"query", "count", "batchSize", "ttl", "bindVars", "memoryLimit", "options", "cache"}
_OPTIONS = {
    "fullCount", "fillBlockCache", "maxNumberOfPlans", "maxPlans", "optimizer", "failOnWarning", "profile",
    "maxTransactionSize", "maxWarningCount", "intermediateCommitCount", "intermediateCommitSize", "satelliteSyncWait",
    "stream", "skipInaccessibleCollections", "maxRuntime", "allowRetry", "forceOneShardAttributeValue", "cache",
    "usePlanCache", "memoryLimit", "allowDirtyReads", "maxNodesPerCallstack", "maxDNFConditionMembers",
    "spillOverThresholdMemoryUsage", "spillOverThresholdNumRows", "count",
}  # fmt: skip
_DEFAULT_BATCH = 1000
_DEFAULT_TTL = 30.0


@ROUTER.route("POST", "/_api/cursor")
def create_cursor(request: Request) -> Response:
    request.allow()
    body, options = _read_body(request)
    batch_size = _positive(body.get("batchSize", _DEFAULT_BATCH), "batchSize")
    if options.get("stream") and (body.get("count") or options.get("fullCount") or options.get("cache")):
        raise ServerError(10, "cannot use 'count', 'fullCount' or 'cache' with a stream query")
    context, results = _run(request, body, options)
    count = len(results) if body.get("count") else None
    extra = {"warnings": context.warnings, "stats": context.stats.body(time.monotonic() - context.started)}
    return Response(201, _first_batch(request, results, batch_size, count, extra, body, options))


def _read_body(request: Request) -> tuple[dict[str, Any], dict[str, Any]]:
    body = request.object()
    options = dict(body.get("options") or {})
    options.update({name: value for name, value in body.items() if name in _OPTIONS and name not in options})
    unknown = (set(body) - _TOP - _OPTIONS) | (set(options) - _OPTIONS)
    if unknown:
        raise ServerError(10, f"the test double knows no query option {', '.join(sorted(unknown))}")
    if not isinstance(body.get("query"), str):
        raise ServerError(1502, "query is empty" if body.get("query") is None else "invalid query string")
    binds = body.get("bindVars")
    if binds is not None and not isinstance(binds, dict):
        raise ServerError(1550, "invalid structure of bind parameters")
    if options.get("profile"):
        raise NotInDouble("profile")
    return body, options


def _limits(options: dict[str, Any]) -> Limits:
    return Limits(
        fail_on_warning=bool(options.get("failOnWarning")),
        max_warning_count=options.get("maxWarningCount", 10),
        max_runtime=float(options.get("maxRuntime") or 0.0),
        memory_limit=int(options.get("memoryLimit") or 0),
    )


def _run(request: Request, body: dict[str, Any], options: dict[str, Any]) -> tuple[QueryContext, list[Value]]:
    state = request.state
    parsed = parse(body["query"], state.language)
    with request.transaction() as transaction:
        context = _context(request, transaction, body, options)
        state.queries[context.id] = context
        try:
            return context, run_query(parsed, context)
        finally:
            state.queries.pop(context.id, None)


def _context(request: Request, transaction: Transaction, body: dict[str, Any], options: dict[str, Any]) -> QueryContext:
    return QueryContext(
        request.database,
        transaction,
        request.state.language,
        user=request.access.user,
        binds=body.get("bindVars") or {},
        limits=_limits(options),
        text=body["query"],
        id=str(request.state.next_number()),
    )


def _first_batch(
    request: Request,
    results: list[Value],
    batch_size: int,
    count: int | None,
    extra: dict[str, Any],
    body: dict[str, Any],
    options: dict[str, Any],
) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "result": results[:batch_size],
        "hasMore": len(results) > batch_size,
        "cached": False,
        "extra": extra,
        "error": False,
        "code": 201,
    }
    if answer["hasMore"]:
        state: State = request.state
        ttl = float(body.get("ttl") or _DEFAULT_TTL)
        cursor = Cursor(
            str(state.next_number()),
            request.database.name,
            results[batch_size:],
            batch_size,
            count,
            extra,
            time.monotonic() + ttl,
            ttl,
            bool(options.get("allowRetry")),
        )
        state.cursors[cursor.id] = cursor
        answer["id"] = cursor.id
        if cursor.allow_retry:
            answer["nextBatchId"] = "2"
    return answer


@ROUTER.route("POST", "/_api/cursor/{cursor_id}(/{batch})?")
def next_batch(request: Request, cursor_id: str, batch: str | None = None) -> Response:
    request.allow()
    state = request.state
    cursor = state.cursor(request.database.name, cursor_id)
    if batch is not None and cursor.last is not None and cursor.last[0] == batch:
        return Response(200, cursor.last[1])
    if batch is not None and batch != str(cursor.batch + 1):
        raise ServerError(1600)
    results, cursor.rest = cursor.rest[: cursor.batch_size], cursor.rest[cursor.batch_size :]
    cursor.batch += 1
    answer: dict[str, Any] = {
        "result": results,
        "hasMore": bool(cursor.rest),
        "cached": False,
        "extra": cursor.extra,
        "error": False,
        "code": 200,
    }
    if cursor.rest:
        answer["id"] = cursor.id
        if cursor.allow_retry:
            answer["nextBatchId"] = str(cursor.batch + 1)
    elif not cursor.allow_retry:
        state.cursors.pop(cursor.id, None)
    cursor.last = (str(cursor.batch), answer)
    return Response(200, answer)


@ROUTER.route("DELETE", "/_api/cursor/{cursor_id}")
def delete_cursor(request: Request, cursor_id: str) -> Response:
    request.allow()
    request.state.cursor(request.database.name, cursor_id)
    del request.state.cursors[cursor_id]
    return Response(202, {"id": cursor_id, "error": False, "code": 202})


@ROUTER.route("POST", "/_api/explain")
def explain_query(request: Request) -> Response:
    request.allow()
    body = request.object("query", "options", "bindVars")
    unknown = set(body.get("options") or {}) - {"allPlans", "maxNumberOfPlans", "optimizer"}
    if unknown:
        raise ServerError(10, f"the test double knows no explain option {', '.join(sorted(unknown))}")
    parsed = parse(body["query"], request.state.language)
    with request.transaction() as transaction:
        context = _context(request, transaction, body, {})
        check_binds(parsed, context.binds)
        check_sources(parsed, context)
        plan = explain(parsed, context)
    answer: dict[str, Any] = {"warnings": context.warnings, "stats": {"rulesExecuted": 0, "plansCreated": 1}}
    if (body.get("options") or {}).get("allPlans"):
        return Response(200, {"plans": [plan], **answer, "error": False, "code": 200})
    return Response(200, {"plan": plan, **answer, "cacheable": False, "error": False, "code": 200})


@ROUTER.route("POST", "/_api/query")
def parse_query(request: Request) -> Response:
    request.allow()
    body = request.object("query")
    parsed = parse(body["query"], request.state.language)
    return Response(
        200,
        {
            "parsed": True,
            "collections": find_sources(parsed.query, {}).names(),
            "bindVars": list(parsed.binds),
            "ast": [{"type": "root"}],
            "error": False,
            "code": 200,
        },
    )


def _positive(value: Any, name: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ServerError(17, f"expecting non-zero value for '{name}'")
    return value
