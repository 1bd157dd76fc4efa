"""Writes `examples/sessions/`: a small, made-up archive of Pi transcripts about a web shop.

    python examples/make_sessions.py [FOLDER]

The same script always writes the same bytes: ids, times and words are fixed. The folder is laid out as under
`~/.pi/agent/sessions` (one folder per working directory, `<time>_<session id>.jsonl`), and holds one of each thing a
reader must understand: an abandoned branch, a compaction, a fork, a child session, a version-1 file, a decision that
is reversed later, tool calls and results, thinking, an image, Chinese and German text.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

SEED = "web shop"
HOME = "/home/dev"
Entry = dict[str, Any]
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def digest(*parts: object) -> str:
    return hashlib.sha256("/".join(map(str, (SEED, *parts))).encode()).hexdigest()


def iso(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def millis(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


class Transcript:
    """One transcript being written: each entry is the child of the one before, 40 seconds later."""

    def __init__(self, topic: str, project: str, start: str, *, version: int | None = 3, **header: Any) -> None:
        self.topic, self.cwd, self.version = topic, f"{HOME}/{project}", version
        self.clock = self.start = datetime.fromisoformat(start).replace(tzinfo=UTC)
        stamp, salt = f"{millis(self.start):012x}", digest(topic)
        self.id = f"{stamp[:8]}-{stamp[8:]}-7{salt[:3]}-8{salt[3:6]}-{salt[6:18]}"
        self.head: Entry = {"type": "session"}
        if version is not None:
            self.head["version"] = version
        self.head |= {"id": self.id, "timestamp": iso(self.start), "cwd": self.cwd, **header}
        self.entries: list[Entry] = []
        self.leaf: str | None = None

    @property
    def stem(self) -> str:
        return f"{iso(self.start).replace(':', '-').replace('.', '-')}_{self.id}"

    @property
    def folder(self) -> str:
        return f"--{self.cwd.strip('/').replace('/', '-')}--"

    def add(self, type: str, **fields: Any) -> str:
        """One entry after the current leaf; returns its id."""
        self.clock += timedelta(seconds=40)
        entry: Entry = {"type": type}
        made = digest(self.topic, len(self.entries))[:8]
        if self.version is not None:
            entry |= {"id": made, "parentId": self.leaf}
        self.entries.append(entry | {"timestamp": iso(self.clock)} | fields)
        self.leaf = made
        return made

    def message(self, role: str, content: Any, **fields: Any) -> str:
        body = {"role": role, "content": content, **fields, "timestamp": millis(self.clock) + 40_000}
        return self.add("message", message=body)

    def user(self, text: str, *blocks: Entry) -> str:
        return self.message("user", [{"type": "text", "text": text}, *blocks])

    def bot(self, text: str, *, think: str = "", calls: tuple[Entry, ...] = ()) -> str:
        blocks: list[Entry] = []
        if think:
            blocks.append({"type": "thinking", "thinking": think})
        if text:
            blocks.append({"type": "text", "text": text})
        usage = {"input": 1200, "output": 180, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 1380}
        return self.message(
            "assistant", [*blocks, *calls], api="made-up", provider="made-up", model="example-1", usage=usage,
            stopReason="toolUse" if calls else "stop",
        )  # fmt: skip

    def tool(
        self, name: str, arguments: Entry, result: str, *, text: str = "", think: str = "", error: bool = False
    ) -> None:
        """The assistant calls one tool, and the tool answers."""
        call = f"call_{digest(self.topic, 'call', len(self.entries))[:12]}"
        self.bot(text, think=think, calls=({"type": "toolCall", "id": call, "name": name, "arguments": arguments},))
        content = [{"type": "text", "text": result}]
        self.message("toolResult", content, toolCallId=call, toolName=name, isError=error)

    def bash(self, command: str, result: str, **more: Any) -> None:
        self.tool("bash", {"command": command}, result, **more)

    def fork(self, topic: str, start: str, at: str) -> Transcript:
        """A new session that begins with a copy of the path to the entry `at`: same ids, times and words."""
        source = f"{HOME}/.pi/agent/sessions/{self.folder}/{self.stem}.jsonl"
        new = Transcript(topic, self.cwd.removeprefix(f"{HOME}/"), start, parentSession=source)
        known = {e["id"]: e for e in self.entries}
        step: str | None = at
        while step:
            new.entries.insert(0, known[step])
            step = known[step]["parentId"]
        new.leaf = at
        return new

    def write(self, root: Path, *below: str) -> None:
        path = root.joinpath(self.folder, *below, f"{self.stem}.jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(e, ensure_ascii=False, separators=(",", ":")) for e in (self.head, *self.entries)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def rollback(root: Path) -> None:
    """A deployment goes wrong; the decision is to roll it back. A child session reads the logs."""
    s = Transcript("rollback", "shop-api", "2026-04-14T14:31:02.118")
    s.add("model_change", provider="made-up", modelId="example-1")
    s.user("Checkout got slow after the 14:20 deploy of release 2.31. Do we roll back or fix forward?")
    s.bash(
        "kubectl -n shop rollout history deployment/shop-api | tail -3",
        "REVISION  CHANGE-CAUSE\n87        release 2.29\n88        release 2.30\n89        release 2.31\n",
        text="I look at the rollout and at the latency first.",
        think="The latency graph decides this, not the size of the diff.",
    )
    s.bash(
        "scripts/p99.sh checkout 30m",
        "13:50 p99=412ms\n14:10 p99=398ms\n14:25 p99=2210ms\n14:30 p99=2305ms errors=3.1%\n",
    )
    s.tool(
        "subagent",
        {"task": "Read the pod logs since 14:20 and say what every slow request shares."},
        "Report: 41 of 43 slow requests wait for a connection in src/db/pool.ts.",
    )
    s.bot(
        "Decision: rollback. The deployment of release 2.31 raised the p99 of checkout from 400 ms to 2.3 s, every slow request waits "
        "for a database connection, and a fix forward needs a review that takes longer than the error budget allows. "
        "We return to revision 88 (release 2.30) and ship the pool change again behind the flag `DB_POOL_V2`."
    )
    s.user("Agreed, go.")
    s.bash(
        "kubectl -n shop rollout undo deployment/shop-api --to-revision=88", "deployment.apps/shop-api rolled back\n"
    )
    s.bot(
        "Rolled back at 14:44. p99 is at 405 ms again and the error rate is below 0.1 %. The migration of 2.31 only adds a column, so the schema stays."
    )
    s.add("session_info", name="Release 2.31 rollback")
    s.write(root)

    child = Transcript("rollback logs", "shop-api", "2026-04-14T14:35:40.902")
    child.user("Read the pod logs since 14:20 and say what every slow request shares.")
    child.bash(
        "kubectl -n shop logs -l app=shop-api --since=20m | grep slow | head -4",
        "slow 2104ms waiting=pool acquire\nslow 2290ms waiting=pool acquire\nslow 2011ms waiting=pool acquire\nslow 1987ms waiting=none\n",
    )
    child.bot(
        "41 of 43 slow requests wait in acquire() of src/db/pool.ts: the new pool opens at most 5 connections per pod because maxConnections is read from the wrong key."
    )
    child.write(root, s.stem, "run-1")


def pool(root: Path) -> None:
    """Retries in the connection pool: one attempt is abandoned (a branch), a fork goes another way."""
    s = Transcript("pool", "shop-api", "2026-04-15T08:12:44.006")
    s.user(
        "acquire() in src/db/pool.ts gives up at the first ECONNRESET. Make it retry, and let maxRetryCount come from the settings."
    )
    s.tool(
        "read",
        {"path": "src/db/pool.ts"},
        "export async function acquire(pool: Pool): Promise<Client> {\n  return pool.connect();\n}\n",
    )
    plan = s.bot(
        "Plan: a retry loop around pool.connect() with maxRetryCount (default 3) and a growing pause; only connection errors are retried, never a failed query."
    )
    s.user("First try it with the generic-pool library.")
    s.bash(
        "npm test -- pool",
        "FAIL test/db/pool.test.ts\n  acquire() hangs when the factory throws twice\n",
        error=True,
        text="I wrap the client in generic-pool.",
    )
    abandoned = s.bot(
        "generic-pool swallows the factory error and leaves the waiter hanging. I would drop this attempt."
    )
    s.leaf = plan
    s.add(
        "branch_summary",
        fromId=abandoned,
        summary="An attempt with generic-pool was abandoned: a throwing factory leaves waiters hanging.",
    )
    s.user("Then the plain loop.")
    s.tool(
        "edit",
        {
            "path": "src/db/pool.ts",
            "oldText": "return pool.connect();",
            "newText": "return retry(() => pool.connect(), { maxRetryCount, baseDelayMs: 50 });",
        },
        "Edited src/db/pool.ts",
    )
    s.bash("npm test -- pool", "PASS test/db/pool.test.ts (14 tests)\n")
    done = s.bot(
        "Done: acquire() retries connection errors up to maxRetryCount times with 50, 100 and 200 ms between, and gives up with PoolExhaustedError."
    )
    s.user("Add a metric for the retries.")
    s.bot(
        "`db_pool_retries_total` counts each retry with the label `reason`; the dashboard of the pool shows it next to the wait time."
    )
    s.write(root)

    fork = s.fork("pool fork", "2026-04-16T09:02:10.450", done)
    fork.user("Other idea: no retry in the pool at all, the gateway retries idempotent requests.")
    fork.bot(
        "That moves the load of a database restart to the gateway: every GET would be sent again by up to 40 pods. I would keep the retry in the pool and switch the gateway's off."
    )
    fork.write(root)


def webhooks(root: Path) -> None:
    """A long session that was compacted."""
    s = Transcript("webhooks", "shop-api", "2026-05-04T10:00:00.000")
    s.user("Payment webhooks arrive twice and create two shipments. Find the place and make it idempotent.")
    s.bash(
        "rg -n 'createShipment' src",
        "src/payments/webhook.ts:58: await createShipment(order)\nsrc/orders/admin.ts:112: await createShipment(order)\n",
    )
    s.bot(
        "The handler in src/payments/webhook.ts creates the shipment before it stores the event, so a second delivery does the work again."
    )
    s.user("How do we recognise a second delivery?")
    s.bot(
        "By the provider's event id: a table webhook_events with a unique key on event_id, inserted in the same transaction as the shipment. A duplicate key means: answer 200 and do nothing."
    )
    kept = s.user("Good. What about deliveries that arrive out of order?")
    s.bot(
        "A refund can come before its payment. Each event carries a sequence; an event with a gap before it waits in webhook_events with the state `parked` and is replayed when the gap closes."
    )
    s.add(
        "compaction",
        summary="Duplicate payment webhooks: unique event_id in webhook_events, same transaction as the shipment. Events out of order are parked.",
        firstKeptEntryId=kept,
        tokensBefore=61240,
    )
    s.user("Write the migration.")
    s.tool(
        "write",
        {
            "path": "migrations/0042_webhook_events.sql",
            "content": "CREATE TABLE webhook_events (event_id text PRIMARY KEY, state text NOT NULL, seq bigint NOT NULL);\n",
        },
        "Wrote 98 bytes",
    )
    s.bot("Migration 0042 creates webhook_events. It is additive, so it can run before the deploy.")
    s.write(root)


def session_store(root: Path) -> None:
    """A decision, and three weeks later its reversal."""
    s = Transcript("carts in redis", "shop-api", "2026-03-09T13:20:00.500")
    s.user("Where do we keep the carts of guests: Redis or Postgres?")
    s.bot(
        "Decision: guest carts live in Redis with a time to live of 14 days. They are read on every page, nobody needs them after that, and losing one is annoying but not a fault.",
        think="Reads dominate; durability matters little.",
    )
    s.user("OK, note it in docs/adr/0011.")
    s.tool("write", {"path": "docs/adr/0011-guest-carts.md", "content": "# Guest carts in Redis\n"}, "Wrote 23 bytes")
    s.bot("ADR 0011 is written: guest carts in Redis.")
    s.write(root)

    later = Transcript("carts in postgres", "shop-api", "2026-03-30T09:45:30.000")
    later.user("After the Redis failover 1,900 guest carts were gone. Does ADR 0011 still hold?")
    later.bash("rg -c 'cart' docs/adr/*.md", "docs/adr/0011-guest-carts.md:7\n")
    later.bot(
        "No: we reverse it. Guest carts move to Postgres (table guest_carts, one jsonb row per cart) and Redis only caches them; a failover then costs a cache miss, not a basket. ADR 0017 supersedes ADR 0011."
    )
    later.write(root)


def other_languages(root: Path) -> None:
    zh = Transcript("zh", "shop-web", "2026-04-20T02:15:00.000")
    zh.user("结算页面在手机上很慢，先重跑perf-ci再看看哪里慢。")
    zh.bash("npm run perf-ci -- checkout", "LCP 4.8s\nJS 1.9MB (vendor 1.2MB)\n")
    zh.bot(
        "瓶颈是首屏脚本：vendor 包有 1.2 MB。决定按路由拆分代码，优惠券组件改为懒加载，明天下午三点开项目评审会议时确认。"
    )
    zh.user("评审通过了，合并吧。")
    zh.bot("已合并。LCP 从 4.8 秒降到 2.1 秒。")
    zh.write(root)

    de = Transcript("de", "shop-api", "2026-04-22T07:30:00.000")
    de.user("Die Rechnung zeigt bei gemischten Warenkörben einen falschen Steuerbetrag. Woran liegt das?")
    de.tool("read", {"path": "src/invoice/tax.ts"}, "export const tax = (net: number) => Math.round(net * 0.19);\n")
    de.bot(
        "tax.ts rundet je Position und nimmt immer 19 %. Bücher und Lebensmittel haben den ermäßigten Satz. Ich schlage vor: Steuersatz je Position speichern, erst auf der Summe jedes Satzes runden."
    )
    de.user("Einverstanden, und bitte einen Prüffall mit Größe XL und Übergröße.")
    de.bot(
        "Erledigt: `taxBySatz()` rundet je Satz, der Prüffall mit gemischtem Warenkorb steht in test/invoice/tax.test.ts."
    )
    de.write(root)


def old_and_odd(root: Path) -> None:
    v1 = Transcript(
        "v1",
        "shop-api",
        "2025-12-03T16:05:00.000",
        version=None,
        provider="made-up",
        modelId="example-0",
        thinkingLevel="off",
    )
    v1.user("Product search returns nothing for 'T-Shirt'. The column is tsvector.")
    v1.bash("psql -c \"select to_tsvector('simple', 'T-Shirt')\"", " 't':1 'shirt':2 't-shirt':0\n")
    v1.bot(
        "The query is built with plainto_tsquery('english'), the column with 'simple'. Both must use one configuration; I change the query to 'simple'."
    )
    v1.add(
        "compaction",
        summary="Product search: one text search configuration on both sides.",
        firstKeptEntryIndex=4,
        tokensBefore=20110,
    )
    v1.user("And the index on products?")
    v1.bot("Rebuilt concurrently: CREATE INDEX CONCURRENTLY products_search_idx ON products USING gin (search).")
    v1.write(root)

    web = Transcript("web", "shop-web", "2026-05-11T11:00:00.000")
    web.user(
        "The price flickers on load, see the screenshot.", {"type": "image", "data": PIXEL, "mimeType": "image/png"}
    )
    web.tool(
        "read",
        {"path": "app/price.tsx"},
        "export const Price = ({ cents }) => <b>{cents.toLocaleString(navigator.language)}</b>\n",
    )
    web.bot(
        "The server formats with en-US and the browser with the reader's language, so React hydrates to another text. Format on the server with the shop's locale and pass the string down: formatPrice(cents, shopLocale)."
    )
    web.write(root)

    infra = Transcript("infra", "infra", "2026-04-17T12:40:00.000")
    infra.user("How do we keep a bad release from reaching everybody again?")
    infra.bot(
        "Canary first: 5 % of the pods for 15 minutes, then all. The gate compares p99 and error rate of canary and stable; a breach undoes the rollout without asking. Terraform module `canary-gate`, threshold in `canary.maxP99Ratio = 1.3`."
    )
    infra.bash("terraform -chdir=envs/prod plan | tail -1", "Plan: 4 to add, 1 to change, 0 to destroy.\n")
    infra.user("Blue-green instead?")
    infra.bot(
        "Blue-green doubles the connections to the database while both colours run, and the connection limit is what hurt us last time. I stay with the canary."
    )
    infra.write(root)


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "sessions"
    shutil.rmtree(root, ignore_errors=True)
    for story in (rollback, pool, webhooks, session_store, other_languages, old_and_odd):
        story(root)


if __name__ == "__main__":
    main()
