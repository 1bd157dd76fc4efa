"""A search table as the index has it, for tests of the analysis, the query language and the snippets."""

from __future__ import annotations

import apsw
from hypothesis import strategies as st

from harness_session_history.search.expression import Expression
from harness_session_history.search.query import parse
from harness_session_history.text.analysis import TOKENIZER, document

WORDS = (
    "deploy", "deployment", "Connection", "pools", "the", "A", "maxRetryCount", "HTTPServerError", "max_retry_count",
    "src/db/pool.ts", "tx.draft", "C++", "don't", "v2.1", "sha256Sum", "URLs", "GitHub", "iOS", "ÄrgerlichGross",
    "Straße", "naïve", "re\u0301sume\u0301", "Łódź", "ışık", "İstanbul", "ﬁle", "impor\u00adtant", "Καλημέρα", "σοφός",
    "ещё", "переезд", "за\u0301мок", "مُحَمَّد", "שָׁלוֹם", "किताब", "评审", "重跑gen-itgc后", "カタカナ", "ｶﾞｷﾞ", "データベース",
    "데이터베이스를", "\u1112\u1161\u11ab", "ภาษาไทย", "ພາສາ", "မြန်မာ", "ខ្មែរ", "𠀀𠀁", "①", "m²", "🙏🏽ok", "👩\u200d💻done", "foo\u200bbar",
    "=>", "—", "\ue0b0main", "＿ＦＵＬＬ", "a" * 140 + "BcDe",
)  # fmt: skip

words = st.sampled_from(WORDS) | st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8
)
texts = st.lists(words, min_size=1, max_size=12).map(" ".join)


def table(*texts: str) -> apsw.Connection:
    """A table with the ``texts`` as rows 1, 2, 3…"""
    connection = apsw.Connection(":memory:")
    connection.execute(
        f"CREATE VIRTUAL TABLE search USING fts5(body, whole, content='', contentless_delete=1, tokenize=\"{TOKENIZER}\")"
    )
    for row, text in enumerate(texts, 1):
        connection.execute("INSERT INTO search(rowid, body, whole) VALUES (?,?,?)", (row, *document(text)))
    return connection


def rows(connection: apsw.Connection, expression: Expression) -> list[int]:
    return [row[0] for row in connection.execute("SELECT rowid FROM search WHERE search MATCH ?", (str(expression),))]


def found(query: str, *texts: str) -> list[str]:
    """Those of ``texts`` that the index finds for ``query``."""
    return [texts[row - 1] for row in rows(table(*texts), parse(query).expression)]
