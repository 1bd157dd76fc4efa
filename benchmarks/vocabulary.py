"""The words and lines made-up archives are written with: a Zipf vocabulary, program output, code, Chinese, images.

Everything is prepared once as long byte strings that are already valid inside a JSON string, with the places where a
word or a line begins; an archive is then written by slicing, which is what makes the generator fast.
"""

from __future__ import annotations

import base64
import itertools
import random
from collections.abc import Sequence


def words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


STOP_WORDS = words(
    "the to of and a in is it that we this for on with as be not are so but from by or an have if was can when then now "
    "which there all one do has only after before will no at what its more would should let me us our into than already "
    "still just also because where how each both they them their any out up over same first next here use used uses"
)
TECHNICAL = words(
    "test file deploy error config server client request response database index query search token session user cache "
    "retry timeout queue worker build release branch merge commit review rollback migration schema table column row "
    "connection pool thread process memory latency throughput metric alert dashboard log trace span service endpoint "
    "route handler middleware parser lexer compiler module package dependency deployment deprecated depth version upgrade "
    "install script pipeline container image cluster node pod volume network proxy gateway certificate key secret policy "
    "permission role account invoice payment checkout cart order product price discount refund shipment stock warehouse "
    "customer address email template notification webhook event message topic consumer producer offset partition replica "
    "backup restore snapshot archive storage bucket upload download stream buffer chunk encode decode compress hash digest "
    "signature encrypt verify validate sanitize escape format render layout component button dialog form field label theme "
    "style font color icon animation scroll focus keyboard accessibility locale translation currency timezone date calendar "
    "schedule cron job task step plan decision proposal tradeoff benchmark profile flamegraph allocation garbage leak crash "
    "panic exception stack frame debug breakpoint lint type annotation generic interface class function method argument "
    "return value variable constant enum struct field pointer reference lifetime ownership borrow lock mutex race deadlock "
    "atomic transaction isolation commit abort conflict resolve rebase fixture mock stub snapshot coverage regression flaky"
)
SYLLABLES = words(
    "ba be bi bo ca ce co cu da de di do fa fe fi ga ge go ha he hi la le li lo lu ma me mi mo na ne ni no pa pe pi po "
    "ra re ri ro sa se si so ta te ti to va ve vi za con per tran stel mor quin ver dal fen gor hel"
)
HAN = "评审会议明天下午三点开项目重跑测试部署回滚决定数据库连接池超时错误日志索引搜索缓存订单支付退款库存接口修复合并分支提交性能内存队列"
FOLDERS = words("src lib app test scripts docs packages/core packages/web services/api services/jobs infra tools")
SUFFIXES = words("ts tsx py go rs sql md json yaml sh css")


def identifier(rng: random.Random, roots: Sequence[str]) -> str:
    """A name as code has it: camelCase, snake_case, a path, a dotted name, kebab-case."""
    parts = rng.sample(roots, rng.choice((2, 2, 3)))
    match rng.randrange(6):
        case 0 | 1:
            return parts[0] + "".join(p.capitalize() for p in parts[1:])
        case 2:
            return "_".join(parts)
        case 3:
            return f"{rng.choice(FOLDERS)}/{parts[0]}/{parts[1]}.{rng.choice(SUFFIXES)}"
        case 4:
            return ".".join(parts)
        case _:
            return "-".join(parts)


def vocabulary(rng: random.Random, size: int) -> list[str]:
    """`size` words from the most to the least frequent: stop words, technical words, coined words, identifiers."""
    words = list(dict.fromkeys(STOP_WORDS + TECHNICAL))
    seen = set(words)
    coined = ["".join(rng.choices(SYLLABLES, k=rng.choice((2, 3, 3, 4)))) for _ in range(size // 8)]
    while len(words) < size:
        kind = rng.random()
        word = (
            identifier(rng, TECHNICAL)
            if kind < 0.3
            else rng.choice(coined) + rng.choice(("", "", "s", "ed", "ing", "ment", "er"))
        )
        if word not in seen:
            seen.add(word)
            words.append(word)
    return words


class Blob:
    """A byte string of pieces, from which runs of pieces are cut."""

    def __init__(self, pieces: Sequence[bytes], joint: bytes) -> None:
        self.bytes = joint.join(pieces) + joint
        self.joint = len(joint)
        self.at = list(itertools.accumulate((len(p) + self.joint for p in pieces), initial=0))
        self.mean = len(self.bytes) / len(pieces)
        self.last = len(pieces)

    def cut(self, where: float, pieces: int) -> bytes:
        """`pieces` pieces beginning at the share `where` (0 to 1) of the blob."""
        pieces = max(1, min(pieces, self.last))
        start = int(where * (self.last - pieces))
        return self.bytes[self.at[start] : self.at[start + pieces] - self.joint]


def sizes(rng: random.Random, median: float, sigma: float, least: int, most: int, unit: float) -> list[int]:
    """4,096 log-normal sizes in pieces of `unit` bytes."""
    return [max(1, round(min(most, max(least, rng.lognormvariate(0, sigma) * median)) / unit)) for _ in range(4096)]


def output_line(rng: random.Random, words: Sequence[str]) -> str:
    w = rng.choices(words, k=8)
    path = f"{rng.choice(FOLDERS)}/{w[0]}/{w[1]}.{rng.choice(SUFFIXES)}"
    match rng.randrange(7):
        case 0:
            return f"{path}:{rng.randrange(900)}:{rng.randrange(80)}  error  '{w[2]}' is not assignable to {w[3]}  {w[4]}-{w[5]}"
        case 1:
            return f"2026-0{rng.randrange(1, 9)}-{rng.randrange(10, 28)}T{rng.randrange(10, 24)}:12:{rng.randrange(10, 60)}Z INFO {w[0]}.{w[1]} {w[2]}={rng.randrange(99999)} {w[3]}={rng.random():.4f}"
        case 2:
            return f"-rw-r--r-- 1 dev dev {rng.randrange(200000):7} Mar {rng.randrange(1, 29):2} 10:{rng.randrange(10, 60)} {path}"
        case 3:
            return f"  {rng.choice(('PASS', 'PASS', 'PASS', 'FAIL'))} {path} > {' '.join(w[2:6])} ({rng.randrange(900)} ms)"
        case 4:
            return f"    const {w[0]} = await {w[1]}.{w[2]}({w[3]}, {{ {w[4]}: {rng.randrange(100)} }});"
        case 5:
            return f"{path}:{rng.randrange(2000)}:  if ({w[2]} !== {w[3]}) return {w[4]};"
        case _:
            return f"{rng.getrandbits(28):07x} {' '.join(w)}"


class Pools:
    """What archives are cut from. `size` (bytes) says how large the archive will be: larger ones get longer pools."""

    def __init__(self, seed: int, size: int) -> None:
        rng = random.Random(f"pools {seed}")
        share = min(1.0, max(0.03, size / 2e9))
        self.words = vocabulary(rng, int(60_000 * max(0.2, share)))
        weights = list(itertools.accumulate(1 / (rank + 0.9) for rank in range(len(self.words))))
        stream = rng.choices(self.words, cum_weights=weights, k=int(2_000_000 * share))
        ends = rng.choices(("", ",", ".", ".\\n\\n", ":", ")"), weights=(80, 8, 7, 3, 1, 1), k=4096)
        self.prose = Blob([(w + ends[n & 4095]).encode() for n, w in enumerate(stream)], b" ")
        self.han = Blob([c.encode() for c in rng.choices(HAN + "，。、", k=20_000)], b"")
        # Program output and code share words with the conversation, as they do in practice.
        known = self.words[len(STOP_WORDS) : 12_000]
        lines = [
            output_line(rng, known).replace("\\", "/").replace('"', "'").encode()
            for _ in range(int(20_000 * max(0.1, share)))
        ]
        self.output = Blob(rng.choices(lines, k=int(400_000 * max(0.05, share))), b"\\n")
        self.pixels = base64.b64encode(rng.randbytes(3 << 20))
        self.topics = self.words[200:4000]
        self.prose_sizes = sizes(rng, 101, 1.38, 4, 20_000, self.prose.mean)
        self.output_sizes = sizes(rng, 660, 1.65, 20, 51_200, self.output.mean)
        self.argument_sizes = sizes(rng, 255, 1.65, 20, 65_536, self.output.mean)
