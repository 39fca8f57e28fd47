"""Invented text that costs a full-text index what real transcripts cost.

A vocabulary of thirty thousand words follows Zipf's law: English function words, words of the
trade, then words made of syllables.  Sentences, lines of code and lines of output are built from
it once; a text of any length is a fresh draw of such lines with fresh numbers and hashes among
them, so no paragraph repeats and the number of distinct terms keeps growing with the home.

Words to search for are placed at known rates: ``error`` in a fifth of all rows, ``the`` in most,
``migrat*`` in a few percent, a sentence in Chinese, Japanese or Korean in two percent of prose.
"""

from __future__ import annotations

import base64
import random
from itertools import accumulate

from . import shapes

VOCABULARY = 30_000
NEEDLE = "zanzibar{:04d}"
PHRASE = "copper lantern protocol"


def _split(words: str) -> list[str]:
    return words.split()


_FUNCTION = _split("""the to and of a in is that it for this i be error not with on as are we can
if you have from but will at by or an all so which when there no now was let one use has only need
do they should then more also its would into up out how any what some here before after same each
other new first does been make see just where than could may like because must their these both
still """)
_TRADE = _split("""file test line code function value path run type name data output check user
change call list string return add message build read number time version fix set default case
config result command key index server request module field object session write class table
method query update branch commit page find create state project import argument empty load store
missing event schema parse option response process tool count directory failed local remote hook
parser cache thread token stream buffer offset batch record column record row frame header lock
retry timeout worker handler client socket render layout button view style theme label panel scroll
click hover focus route endpoint payload cookie header proxy deploy release package dependency
installed deprecated warning trace stack null undefined boolean integer float array tuple regex
pattern match replace insert delete select join group order limit merge rebase push pull fetch
clone diff patch review comment document readme example fixture golden snapshot assertion coverage
flaky benchmark profile memory allocation leak overflow rounding precision encoding unicode locale
permission denied token secret password login logout account role policy audit queue topic consumer
producer partition shard replica backup restore copper lantern protocol window terminal prompt
agent subagent transcript plan task step goal summary context compact resume exactly once""")
_PLANTED = {700: "migration", 850: "migrate", 1100: "migrations", 1500: "migrating"}
_FAR_EAST = (
    "迁移脚本在第三步停止了,请检查数据库的锁。",
    "全文搜索需要支持中文分词。",
    "这个函数返回空值。",
    "测试没有通过,因为时区不对。",
    "配置文件里的路径是错误的。",
    "設定ファイルの読み込みに失敗しました。",
    "検索結果が空になる原因を調べてください。",
    "このテストは夏時間のときだけ失敗します。",
    "ボタンの名前を変更してください。",
    "데이터베이스 연결이 끊어졌습니다.",
    "검색 결과가 비어 있는 이유를 찾아 주세요.",
)
_ACCENTED = _split("café naïve Übergröße déjà señal façade coöperate Łódź résumé smörgås")
_ONSETS = _split("b br c cl d dr f fl g gr h j k l m n p pl pr qu r s sh st t th tr v w z")
_VOWELS = _split("a e i o u a e i o u ai ea io ou")
_ENDINGS = ["", "", "", *_split("n r s t l m nd rk st ing ed er ly tion")]
_SUFFIXES = ("py", "py", "ts", "ts", "tsx", "go", "rs", "md", "json", "toml", "yaml", "sql", "css")
_PROSE = 24_000
_CODE = 18_000
_OUTPUT = 18_000


def _vocabulary(rng: random.Random) -> list[str]:
    """The distinct words, the most frequent first."""
    words = list(dict.fromkeys(_FUNCTION + _TRADE))
    seen = set(words) | set(_PLANTED.values())
    while len(words) < VOCABULARY:
        size = rng.choice((1, 2, 2, 2, 3, 3))
        word = "".join(rng.choice(_ONSETS) + rng.choice(_VOWELS) for _ in range(size))
        word += rng.choice(_ENDINGS)
        if len(word) > 2 and word not in seen:
            seen.add(word)
            words.append(word)
    for rank, word in _PLANTED.items():
        words[rank] = word
    return words


class Words:
    """Draws texts; all dice come from one generator, so equal seeds give equal texts."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._vocabulary = _vocabulary(rng)
        # Zipf-Mandelbrot with the offset at which the first word is a sixteenth of running text.
        self._weights = list(accumulate(1 / (rank + 1.6) for rank in range(VOCABULARY)))
        self._names = [self._name([self.word() for _ in range(3)]) for _ in range(5_000)]
        self._paths = [self._path([self.word() for _ in range(3)]) for _ in range(3_000)]
        self._prose = [self._sentence() for _ in range(_PROSE)]
        self._code = [self._code_line() for _ in range(_CODE)]
        self._output = [self._output_line() for _ in range(_OUTPUT)]
        self._noise = base64.b64encode(rng.randbytes(3_000_000)).decode()

    def some(self, count: int) -> list[str]:
        """*count* words as running text has them."""
        return self.rng.choices(self._vocabulary, cum_weights=self._weights, k=count)

    def word(self) -> str:
        """One word that is not a function word."""
        return self._vocabulary[int(80 * (100 ** self.rng.random()))]

    def name(self) -> str:
        """An identifier."""
        return self.rng.choice(self._names)

    def path(self) -> str:
        """A file below a working directory, with forward slashes."""
        return self.rng.choice(self._paths)

    def title(self, words: int = 4) -> str:
        """A short title."""
        return " ".join(self.word() for _ in range(words)).capitalize()

    def hex(self, digits: int) -> str:
        """A fresh hash."""
        return f"{self.rng.getrandbits(4 * digits):0{digits}x}"

    def base64(self, characters: int) -> str:
        """Incompressible letters, as signatures and pictures are."""
        begin = self.rng.randrange(max(1, len(self._noise) - characters))
        return self._noise[begin : begin + characters]

    def prose(self, characters: int) -> str:
        """What people and agents say, markdown and all."""
        text = self._fill(self._prose, characters, 78)
        if self.rng.random() < shapes.CJK:
            return f"{text} {self.rng.choice(_FAR_EAST)}"
        return text

    def code(self, characters: int) -> str:
        """Lines of a source file."""
        return self._fill(self._code, characters, 34)

    def output(self, characters: int) -> str:
        """What a command prints."""
        if characters < 24:
            return f"{self.word()} {self.rng.randrange(10_000)}"[: max(characters, 2)]
        return self._fill(self._output, characters, 58)

    def _fill(self, pool: list[str], characters: int, usual: int) -> str:
        """Whole lines of *pool*, a fresh number or hash after each run, cut at a word."""
        rng = self.rng
        parts: list[str] = []
        have = 0
        while have < characters:
            run = "".join(rng.choices(pool, k=min(8, (characters - have) // usual + 1)))
            run += f"{rng.getrandbits(28):x} " if rng.random() < 0.5 else ""
            parts.append(run)
            have += len(run)
        text = "".join(parts).lstrip()
        end = text.rfind(" ", characters // 2, characters)
        return text[:end].rstrip() if end > 0 else text[:characters]

    def _name(self, words: list[str]) -> str:
        style = self.rng.random()
        if style < 0.5:
            return "_".join(words[: self.rng.choice((1, 2, 2, 3))])
        joined = "".join(word.capitalize() for word in words[:2])
        return joined if style < 0.7 else joined[0].lower() + joined[1:]

    def _path(self, words: list[str]) -> str:
        depth = self.rng.choice((1, 2, 2, 3, 3))
        top = self.rng.choice(("src", "src", "tests", "docs", "lib", "pkg"))
        return "/".join([top, *words[:depth]]) + "." + self.rng.choice(_SUFFIXES)

    def _sentence(self) -> str:
        """One sentence with its white space, now and then a bullet or a heading."""
        rng = self.rng
        words = self.some(rng.choice((5, 7, 9, 11, 12, 13, 14, 16, 19, 24)))
        if rng.random() < 0.25:
            words[rng.randrange(len(words))] = f"`{rng.choice((self.name, self.path))()}`"
        if rng.random() < 0.02:
            words[-1] = rng.choice(_ACCENTED)
        text = " ".join(words).capitalize()
        kind = rng.random()
        if kind < 0.08:
            return f"\n- **{self.word()}**: {text}"
        if kind < 0.10:
            return f"\n\n## {text[:40]}\n\n"
        if kind < 0.115:
            return f"\n{rng.randrange(1, 9)}. {text} — {self.word()}"
        return text + rng.choice((". ", ". ", ". ", ".\n\n", ": ", "? ", ".\n"))

    def _code_line(self) -> str:
        """One line of some language."""
        rng, name = self.rng, self.name
        indent = " " * rng.choice((0, 2, 4, 4, 8, 8, 12))
        line = rng.choice(
            (
                lambda: f"{name()} = {name()}({name()}, {rng.randrange(500)})",
                lambda: f"def {name()}(self, {name()}: str) -> {name()}:",
                lambda: f"if ({name()}.{name()} !== null && {name()} > {rng.randrange(90)}) {{",
                lambda: f"return {name()}",
                lambda: "}",
                lambda: "",
                lambda: f"// {' '.join(self.some(9))}",
                lambda: f"# {' '.join(self.some(11))}",
                lambda: f'"{self.word()}": "{self.word()} {self.word()}",',
                lambda: f"import {{ {name()}, {name()} }} from '@/{self.path()}'",
                lambda: f"const {name()} = await {name()}.{name()}({{ {name()} }})",
                lambda: f"raise {name()}Error(f'{' '.join(self.some(5))}: {{{name()}}}')",
                lambda: f"select {name()}, {name()} from {self.word()} where {name()} = ?;",
                lambda: f'<div className="{self.word()}-{self.word()} p-{rng.randrange(9)}">',
            )
        )()
        return f"{indent}{line}\n"

    def _output_line(self) -> str:
        """One line of a compiler, a test runner, git, a log, a listing or a search."""
        rng, some = self.rng, self.some
        number = rng.randrange(1, 2_000)
        line = rng.choice(
            (
                lambda: f"{self.path()}:{number}:{number % 80}: {' '.join(some(8))}",
                lambda: f"{self.path()}:{number}:    {self.name()}({self.name()})",
                lambda: f"PASS {self.path()} ({number} ms)",
                lambda: f"{self.hex(7)} {self.word()}: {' '.join(some(6))}",
                lambda: f"-rw-r--r-- 1 dev dev {number * 37} Mar {number % 28} {self.path()}",
                lambda: (
                    f"2026-03-{number % 28 + 1:02d}T{number % 24:02d}:12:{number % 60:02d}Z "
                    f"INFO {self.name()} {' '.join(some(7))} id={self.hex(12)}"
                ),
                lambda: f"ERROR {self.name()}: {' '.join(some(6))}",
                lambda: f"    at {self.name()} ({self.path()}:{number}:{number % 70})",
                lambda: f"warning: {' '.join(some(9))}",
                lambda: f"+{' ' * (number % 9)}{self.name()}: {self.word()}",
                lambda: f" {self.path()} | {number % 90} {'+' * (number % 30)}",
                lambda: f"✓ {' '.join(some(7))} ({number} ms)",
                lambda: f"  {' '.join(some(10))}",
                lambda: f"\x1b[32m{self.word()}\x1b[0m {self.hex(8)} {number / 7:.3f}",
            )
        )()
        return line + "\n"
