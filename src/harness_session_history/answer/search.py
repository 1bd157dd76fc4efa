"""The search operation: ranked rows become verified hits, with hints where there are few."""

from __future__ import annotations

import math
from collections.abc import Callable

import apsw

from ..request import SearchRequest
from ..response import SearchBody, Spans
from ..search.match import Matcher
from ..search.query import Query
from ..search.rank import Searcher, ordered_rows
from .hits import NAMED, VERIFY_SECONDS, Finder, render
from .sessions import SessionViews

#: With fewer results an answer has hints.
FEW = 5


def search(
    connection: apsw.Connection,
    searcher: Searcher,
    views: SessionViews,
    request: SearchRequest,
    query: Query,
    check: Callable[[], None],
) -> tuple[SearchBody, Callable[[str], Spans]]:
    """The part of a search answer that comes from the snapshot, and what marks the matched words in its snippets."""
    matcher = Matcher(query)
    finder = Finder(connection, views, searcher.scope, matcher, check)
    rows, beyond = ordered_rows(searcher, query, request.sort, finder.typed)
    hits, more = finder.take(
        rows,
        request.limit,
        diverse=request.sort == "relevance" and request.session_id is None,
        verify=query.literal,
        beyond=beyond,
        seconds=VERIFY_SECONDS if request.sort == "relevance" else math.inf,
    )
    results = []
    for hit in hits:
        check()
        results.append(render(hit, views, matcher, request.snippet_chars))
    answer: SearchBody = {
        "query": request.query,
        "results": results,
        "truncated": more or finder.gave_up,
        "rankedAll": beyond is None and not finder.gave_up,
        "unavailableSessionIds": finder.unavailable[:NAMED],
        "unavailableTruncated": len(finder.unavailable) > NAMED,
    }
    if not results or (len(results) < FEW and not answer["truncated"]):
        from .hints import hints

        answer["hints"] = hints(connection, searcher, views, request, query, hits, check, sure=not finder.gave_up)
    return answer, matcher.marker()
