"""Rank the documents of an index for a question: BM25 as SQL over postings that are clustered by term."""

import math
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any, NamedTuple

from memex.search.part import Part, sql
from memex.search.query import Query
from memex.search.tokens import query_tokens, words_in

if TYPE_CHECKING:
    import duckdb

MAX_TOKENS = 128
"""Tokens of a question that count, the rarest: a long one is mostly common words."""
FEW = 12
"""Terms whose postings are read one by one."""
MAX_READ = 4096
"""Tokens of a question that are looked up."""

REFUSED = "SELECT part, doc FROM found WHERE refusal > 0 GROUP BY part, doc, refusal, size HAVING count(*) = size"
NOTHING = (
    "SELECT 0 AS part, 0::UINTEGER AS doc, 0.0::DOUBLE AS tf, 0.0::DOUBLE AS len, 0 AS must, 0 AS refusal, 0 AS size, "
    "0.0::DOUBLE AS idf WHERE false"
)


class _Term(NamedTuple):
    """A token of the question, which `must` be there, or may.

    With a `refusal`, all the tokens of that number, `size` of them, must not be there.
    """

    token: str
    must: bool = False
    refusal: int = 0
    size: int = 1


def ranked(
    connection: "duckdb.DuckDBPyConnection", parts: Sequence[Part], query: Query, limit: int
) -> list[dict[str, Any]]:
    """Find the best documents: the columns of Doc, and `score`. Without a word to rank by, the newest.

    The parts are attached to the connection as p0, p1, …
    """
    needed = dict.fromkeys(token for phrase in query.phrases for token in words_in(phrase))
    tokens = dict.fromkeys([*needed, *query_tokens(query.text)])
    asked = [_Term(token, token in needed) for token in list(tokens)[:MAX_READ]]
    refused = [
        _Term(token, False, number, len(tokens))
        for number, tokens in enumerate(map(query_tokens, query.without), 1)
        for token in tokens
    ]
    condition, values = query.as_sql()
    if not asked and not values:
        return []
    docs = sum(part.docs for part in parts)
    known = [_terms(connection, number, [*asked, *refused]) for number in range(len(parts))]
    having = {term.token: sum(of_part.get(term.token, (0, 0))[1] for of_part in known) for term in [*asked, *refused]}
    if len(asked) > MAX_TOKENS:
        known_ones = (term for term in asked if having[term.token])
        asked = sorted(known_ones, key=lambda term: (not term.must, having[term.token]))[:MAX_TOKENS]
    mean = sum(part.length for part in parts) / max(1, docs)
    text = sql("search_bm25" if asked else "search_newest").format(
        found=_found([*asked, *refused], known, {token: _idf(n, docs) for token, n in having.items()}),
        docs=_union("SELECT {n} AS part, * FROM p{n}.docs", parts),
        without=_without(parts, bool(refused), condition if values else "", joined=bool(asked)),
        asked=len(asked),
        having=f"HAVING sum(must) = {must}" if (must := sum(term.must for term in asked)) else "",
        mean=f"{max(1.0, mean)!r}::DOUBLE",
        limit=limit,
    )
    return _read(connection, connection.execute(text, values or None).fetchall())


def count_documents(connection: "duckdb.DuckDBPyConnection", parts: int, tokens: Sequence[str]) -> dict[str, int]:
    """Count the documents that have each of some tokens, over as many parts."""
    terms = [_Term(token) for token in tokens]
    known = [_terms(connection, number, terms) for number in range(parts)]
    return {token: sum(of_part.get(token, (0, 0))[1] for of_part in known) for token in tokens}


def _read(connection: "duckdb.DuckDBPyConnection", best: Sequence[tuple[int, int, float]]) -> list[dict[str, Any]]:
    """Read documents, given as (part, number, score), in this order. With them, one query would take twice as long."""
    wanted: dict[int, list[int]] = {}
    for part, doc, _score in best:
        wanted.setdefault(part, []).append(doc)
    queries = [sql("read_docs").format(number=part, docs=", ".join(map(str, of))) for part, of in wanted.items()]
    if not queries:
        return []
    cursor = connection.execute(" UNION ALL ".join(queries))
    names = [column[0] for column in cursor.description or ()]
    rows = (dict(zip(names, row, strict=True)) for row in cursor.fetchall())
    by_place = {(row.pop("part"), row.pop("doc")): row for row in rows}
    for row in by_place.values():
        row["ts"] = row["ts"] and row["ts"].replace(tzinfo=UTC)
    return [by_place[part, doc] | {"score": score} for part, doc, score in best]


def _terms(connection: "duckdb.DuckDBPyConnection", part: int, terms: Sequence[_Term]) -> dict[str, tuple[int, int]]:
    """Look terms up in a part: the number of each, and how many documents have it.

    They are written into the query: for values beside it DuckDB looks for pandas each time, which takes longer.
    """
    tokens = dict.fromkeys(term.token.replace("'", "''") for term in terms)
    wanted = ", ".join(f"'{token}'" for token in tokens)
    rows = connection.execute(sql("find_terms").format(part=f"p{part}", terms=wanted)).fetchall() if wanted else []
    return {token: (tid, df) for token, tid, df in rows}


def _found(terms: Sequence[_Term], known: Sequence[Mapping[str, tuple[int, int]]], weights: Mapping[str, float]) -> str:
    """Write the query for the postings of the terms: numbers as literals, so that only their rows are read."""
    queries = []
    for number, of_part in enumerate(known):
        rows = [
            (of_part[term.token][0], int(term.must), term.refusal, term.size, f"{weights[term.token]!r}::DOUBLE")
            for term in terms
            if term.token in of_part
        ]
        queries += _scans(number, rows) if len(terms) <= FEW else _joined_scan(number, rows)
    return " UNION ALL ".join(queries) or NOTHING


def _scans(part: int, rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Read the postings of each term by a query of its own: the fastest for a few."""
    return [
        f"SELECT {part} AS part, doc, tf::DOUBLE AS tf, len::DOUBLE AS len, {must} AS must, {refusal} AS refusal, "
        f"{size} AS size, {idf} AS idf FROM p{part}.postings WHERE tid = {tid}"
        for tid, must, refusal, size, idf in rows
    ]


def _joined_scan(part: int, rows: Sequence[tuple[Any, ...]]) -> list[str]:
    """Read the postings of all terms in one go."""
    if not rows:
        return []
    asked = ", ".join(f"({', '.join(map(str, row))})" for row in rows)
    return [
        f"SELECT {part} AS part, doc, tf::DOUBLE AS tf, len::DOUBLE AS len, must, refusal, size, idf "
        f"FROM p{part}.postings JOIN (VALUES {asked}) AS asked (tid, must, refusal, size, idf) USING (tid) "
        f"WHERE tid IN ({', '.join(str(row[0]) for row in rows)})"
    ]


def _idf(having: int, docs: int) -> float:
    return math.log(1 + (docs - having + 0.5) / (having + 0.5))


def _without(parts: Sequence[Part], refusing: bool, condition: str, joined: bool) -> str:
    """Write what documents must meet, and no more: each join takes time, also when it leaves nothing out."""
    clauses = []
    if any(part.void for part in parts):
        clauses.append(f"ANTI JOIN ({_void(parts)}) USING (part, doc)")
    if refusing:
        clauses.append(f"ANTI JOIN ({REFUSED}) USING (part, doc)")
    if condition and joined:
        clauses.append(f"JOIN ({_union('SELECT {n} AS part, * FROM p{n}.docs', parts)}) USING (part, doc)")
    return " ".join(clauses) + (f" WHERE {condition}" if condition else "")


def _void(parts: Sequence[Part]) -> str:
    """Write the query for the documents that later parts made void."""
    names = ", ".join(f"({number}, '{part.name}')" for number, part in enumerate(parts))
    void = _union("SELECT part AS name, doc FROM p{n}.void", parts)
    return f"SELECT names.part, doc FROM ({void}) JOIN (VALUES {names}) AS names (part, name) USING (name)"


def _union(query: str, parts: Sequence[Part]) -> str:
    return " UNION ALL ".join(query.format(n=number) for number in range(len(parts)))
