"""A credential that was read is found where it stands, and printed nowhere.

What follows the format of a provider is found in whatever it is quoted; what only looks like one
is not reported. No credential is in this file: tests make them when they run.
"""

from __future__ import annotations

import base64
import json
import os
import random
from pathlib import Path

import pytest
from tests.support.planted import password, planted, private_key, web_token
from tests.support.shell import Shell
from tests.support.writing import (
    OTHER,
    PROJECT,
    SESSION,
    TRANSCRIPT,
    assistant,
    call,
    dumps,
    result,
    user,
    write,
    write_bytes,
)

from assoc_ingest.secrets.find import find, find_in
from assoc_ingest.secrets.forget import fingerprint, masked
from assoc_ingest.secrets.mask import redact, redact_bytes
from assoc_ingest.secrets.rules import BY_PREFIX, REVISED, RULES, Secret
from assoc_ingest.sync.run import sync

CORPUS = Path(os.environ.get("ASSOC_REAL_CORPUS", "/nowhere"))
WORD = password()
AROUND = {
    "a header": "curl -H 'Authorization: Bearer {}'",
    "a header of a client": "authorization: Basic {}",
    "a database": "postgres://ada:{}@db.internal:5432/shop",
    "a shell": "export DB_PASSWORD={}",
    "settings": "aws_secret_access_key = {}",
    "JSON": '{{"clientSecret": "{}"}}',
    "JSON in JSON": '{{\\"password\\": \\"{}\\"}}',
    "JSON in JSON in JSON": '{{\\\\\\"api_key\\\\\\": \\\\\\"{}\\\\\\"}}',
    "source code": "accessKey: '{}',",
    "YAML": "  db_password: {}",
    "an option": "deploy --db-password {} --verbose",
    "an account": "AccountKey={};EndpointSuffix=core.example",
}


def found(text: str, *, is_log: bool = True) -> list[Secret]:
    return find(text.encode(), is_log=is_log)


def kinds() -> dict[str, str]:
    """Return everything that is to be found, by what it is called here."""
    around = {name: text.format(WORD) for name, text in AROUND.items()}
    return {**planted(), "a private key": private_key(), "a web token": web_token(), **around}


# -- what is found -------------------------------------------------------------------------------


def test_there_are_far_more_than_forty_kinds() -> None:
    assert len(kinds()) >= 80
    assert REVISED >= "2026-11-22"
    assert all(rule.source.startswith("https://") and len(p) >= 3
               for rule in RULES for p in rule.prefixes)  # fmt: skip


@pytest.mark.parametrize("name", kinds())
def test_each_kind_is_found_in_a_line_of_a_transcript(name: str) -> None:
    text = kinds()[name]
    line = dumps(user([result("t", f'first\n{text}\nand "more"')])) + b"\n"
    (secret,) = find(line, is_log=True)
    shown = line[secret.start : secret.end].decode()
    assert secret.text in text or secret.kind == "private key"
    assert WORD in text or shown in (text, json.dumps(text)[1:-1])
    if secret.rule in BY_PREFIX:
        assert secret.text == text


@pytest.mark.parametrize("seed", range(5))
def test_what_is_found_follows_from_no_lucky_draw(seed: int) -> None:
    for text in [*planted(seed).values(), web_token(seed), private_key(seed, "")]:
        assert len(found(json.dumps(f"{text}\n"))) == 1, text[:8]


@pytest.mark.parametrize(
    "around",
    ["{}", '"{}"', "\\n{}\\n", "x={}&y=1", "({}).", "key:{}", "[{}]", "`{}`", "a.{}", "/{}/",
     "\\\\n{}\\\\n", "\\t{}", "“{}”", "é{}…", "{}\\u00", "\\u003d{}\\u0026", "µ{}—"],
)  # fmt: skip
def test_a_token_is_found_whatever_stands_around_it(around: str) -> None:
    for name, text in planted().items():
        if around == "/{}/" and "/" in next(r.letters for r in RULES if r.name == name):
            continue  # it goes on behind a slash
        secrets = found(around.format(text))
        assert [secret.text for secret in secrets] == [text], around


def test_a_token_is_found_though_signs_follow_its_prefix() -> None:
    text = planted()["grafana"].replace("glsa_", "glsa_+/", 1)
    assert [secret.text for secret in found(f"token {text} ")] == [text]


def test_escapes_of_json_hide_nothing() -> None:
    text = planted()["gitlab"]
    for escaped in (text.replace("-", "\\u002d"), text.replace("-", "\\\\u002D")):
        (secret,) = found(f'{{"a": "x {escaped} y"}}')
        assert secret.text == text
        assert f'{{"a": "x {escaped} y"}}'[secret.start : secret.end] == escaped
    hook = planted()["slack-webhook"]
    (secret,) = found(json.dumps(f"https://{hook}").replace("/", "\\/"))
    assert secret.text == hook


@pytest.mark.parametrize("quote", ["\\u0022", "\\/", "\\\\u0027"])
def test_a_credential_beside_an_escape_is_placed_behind_it(quote: str) -> None:
    text, token = f"a {quote}{planted()['github']}{quote} b", planted()["github"]
    (secret,) = found(text)
    assert text[secret.start : secret.end] == token


def test_two_credentials_inside_of_what_is_called_a_password_are_both_found() -> None:
    first, second = planted()["github"], planted()["gitlab"]
    text = f"export DB_PASSWORD=Zq93kd.{first}:{second}"
    assert [text[secret.start : secret.end] for secret in found(text)] == [first, second]


def test_a_private_key_begins_at_the_last_header_before_its_end() -> None:
    header, key = private_key().split("\n")[0], private_key()
    (secret,) = found(f"{header}\n\n{key}", is_log=False)
    assert secret.start == len(f"{header}\n\n")


def test_a_token_within_a_word_is_masked_and_not_reported() -> None:
    text = f"x{planted()['github']}"
    assert found(text) == []
    assert redact(text)[1] == {"GitHub token": 1}


def test_a_private_key_in_a_log_ends_with_its_line() -> None:
    whole = private_key().replace("\n", "\\n")
    assert len(found(whole)) == 1
    assert found(whole.removesuffix("-----") + "\n-----") == []


def test_a_private_key_is_one_however_its_lines_are_broken() -> None:
    key = private_key()
    once = json.dumps({"text": key})
    texts = [key, key.replace("\n", "\r\n"), once, json.dumps({"a": once}),
             "\n".join(f"{n:6}\t{line}" for n, line in enumerate(key.split("\n"), 1)),
             "\n".join(f"  {line}" for line in key.split("\n"))]  # fmt: skip
    secrets = [found(text, is_log=False) for text in texts]
    assert [len(each) for each in secrets] == [1] * len(texts)
    assert len({fingerprint(each[0].text) for each in secrets}) == 1


def test_what_is_found_in_a_line_depends_on_that_line_alone() -> None:
    head, tail = private_key()[:120], private_key()[-120:]
    assert not found(f'{{"a":"{head}"}}\n{{"b":"{tail}"}}\n')
    lines = [json.dumps(text) for text in kinds().values()]
    together = [s.text for s in found("\n".join(lines))]
    assert together == [s.text for line in lines for s in found(line)]


@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
def test_what_is_found_does_not_depend_on_the_pieces_of_a_file(size: int) -> None:
    rng = random.Random(3)
    data = b"".join(
        b" ".join([rng.randbytes(rng.randrange(900)).hex().encode(), text.encode(), b""])
        for text in kinds().values()
    )
    whole = find(data, is_log=False)
    pieces = [(at, data[at : at + size]) for at in range(0, len(data), size)]
    if size < 1000:  # each piece is looked at with what is held back of those before
        pieces = [(at, data[at : at + 30_000]) for at in range(0, len(data), 30_000 + size)]
        pieces = [(at, data[at : at + 30_000 + size]) for at, _ in pieces]
    assert list(find_in(pieces, is_log=False)) == whole
    assert len(whole) == len(kinds())


@pytest.mark.slow
def test_a_line_of_sixty_megabytes_is_searched_to_its_end() -> None:
    token = planted()["github"]
    image = base64.b64encode(random.Random(1).randbytes(1_500_000))
    data = b'{"a":"' + b"word " * 11_000_000 + image * 2 + b" " + token.encode() + b'"}\n'
    assert len(data) > 58_000_000
    pieces = ((at, data[at : at + 1_000_000]) for at in range(0, len(data), 1_000_000))
    (secret,) = find_in(pieces, is_log=True)
    assert data[secret.start : secret.end] == token.encode()


def test_a_short_password_may_have_letters_twice() -> None:
    assert [secret.text for secret in found("DB_PASSWORD=xK7$xK7$q")] == ["xK7$xK7$q"]
    assert found("DB_PASSWORD=xK7$xK7$x") == []


# -- what is not ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "password=changeme", "PASSWORD=correcthorsebattery", "password: hunter2", "token: string",
        "API_KEY=your-api-key-here-1234567890", "secret = os.environ['SECRET_KEY_9f8A7b']",
        "token = get_token(user_id_2)", "max_tokens: 4096", "input_tokens\":12345678",
        "next_page_token=CAUQAA9f8e7d6c5b4a", "password={{ vault_db_password_1 }}",
        "postgres://postgres:postgres@localhost/db", "http://user:pass@host", "token: 20260120",
        "sk-learn-0.24.2-and-numpy-1.19-together", "half_a_loaf_is_better_than_no_bread_2024",
        "task-0123456789abcdefghijkl", "AKIA" + "IOSFODNN7EXAMPLE", "ghp_" + "x" * 36,
        "npm_config_registry_and_other_things_2", "git@github.com:shop/site.git",
        "Authorization: Bearer $TOKEN", "Authorization: Bearer <your token 12345>",
        "toolu_01ABCDEFGHJKLMNPQRSTUVWX", "req_011CabcdefGHIJKLmnop1234",
        "hf_model_name_or_path_of_checkpoint_12", "token 9f86d081884c7d659a2feaa0c55ad015",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "the words -----BEGIN " + "PRIVATE KEY----- and -----END " + "PRIVATE KEY----- alone",
        "session_token: 0b7c2f4e-1111-4222-8333-444455556666", "password: /run/secrets/db_pw_1a2B",
        "secretName: my-app-2-database-credentials-v3", "tokenUrl: https://a.example/oauth2/v1/tok",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_credential_is_not_reported(text: str) -> None:
    assert found(text) == []


def test_images_are_no_credentials() -> None:
    rng = random.Random(5)
    for _ in range(20):
        image = base64.b64encode(rng.randbytes(200_000)).decode()
        assert found(f'{{"type":"base64","data":"{image}"}}') == []
    # Even where one has what an access key looks like.
    inside = base64.b64encode(rng.randbytes(90)).decode() + "/" + planted()["aws"] + "/"
    assert found(f'{{"data":"{inside}{image}"}}') == []


def test_the_web_token_of_all_examples_is_not_reported() -> None:
    parts = [{"alg": "HS256"}, {"sub": "1234567890", "name": "John Doe"}]
    head, body = (base64.urlsafe_b64encode(dumps(p)).decode().rstrip("=") for p in parts)
    assert found(f"{head}.{body}.{password(count=43)}") == []


# -- the same list masks -------------------------------------------------------------------------


@pytest.mark.parametrize("name", kinds())
def test_whatever_is_reported_is_masked_in_an_export(name: str) -> None:
    for text in (kinds()[name], json.dumps(f"a\n{kinds()[name]}\n"), f"{kinds()[name]}…"):
        left = redact(text)[0]
        assert found(left) == [], left
        assert all(secret.text not in left for secret in found(text))


def test_masked_bytes_are_as_long_and_stay_json() -> None:
    lines = [dumps(user(f"a\n{text}\nb", f"u{n}")) for n, text in enumerate(kinds().values())]
    data = b"\n".join(lines) + b"\n"
    covered, count = redact_bytes(data, is_log=True)
    assert len(covered) == len(data)
    assert count.total() == len(kinds())
    assert find(covered, is_log=True) == []
    for before, after in zip(lines, covered.split(b"\n"), strict=False):
        assert len(before) == len(after)
        assert json.loads(after)["uuid"] == json.loads(before)["uuid"]


# -- the command ---------------------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    tokens = planted()
    write(
        home,
        TRANSCRIPT,
        user("Deploy it"),
        assistant([call("t1", command=f"export GH_TOKEN={tokens['github']}")]),
        user([result("t1", f"pushed with {tokens['github']}")], "u2", second=60),
    )
    write(home, f"{PROJECT}/{OTHER}.jsonl", user(f"Use {tokens['npm']}", "o1", sessionId=OTHER))
    write_bytes(home, "plans/deploy.md", f"# Deploy\n\n{private_key()}\n".encode())
    return home


def synced(shell: Shell, home: Path) -> Shell:
    sync(shell.database, [home])
    return shell


def test_a_report_says_what_where_and_how_to_forget_it_and_no_credential(
    shell: Shell, home: Path
) -> None:
    synced(shell, home)
    assert shell("secrets") == 1
    name = fingerprint(planted()["github"])
    assert f"GitHub token  ghp_… (40 letters)  {name}\n" in shell.out
    assert f"  {SESSION[:8]}:2  {TRANSCRIPT}, byte " in shell.out
    assert f"  To forget it: assoc-ingest forget --secret {name}\n" in shell.out
    assert "plans/deploy.md" in shell.out
    assert "3 credentials in 4 places." in shell.err
    for secret in (planted()["github"][4:], planted()["npm"][4:], private_key().split("\n")[1]):
        assert secret not in shell.out + shell.err


def test_json_has_each_place_with_its_bytes_and_goes_on_with_a_cursor(
    shell: Shell, home: Path
) -> None:
    synced(shell, home)
    assert shell("secrets", "--json") == 1
    answer = json.loads(shell.out)
    assert answer["total"] == 4
    assert answer["next"] is None
    item = next(item for item in answer["items"] if item["rule"] == "github")
    line = (home / TRANSCRIPT).read_bytes()
    start = item["byte_offset"]
    assert line[start : start + item["byte_length"]].decode() == planted()["github"]
    assert item["ref"] == f"{SESSION[:8]}:2"
    assert item["line"] == 2
    assert item["path"] == TRANSCRIPT
    assert item["session_key"] == SESSION
    assert item["forget"] == f"assoc-ingest forget --secret {item['fingerprint']}"
    assert not any(secret in shell.out for secret in planted().values())
    seen, cursor = [], []
    for _ in range(4):
        shell("secrets", "--json", "--limit", "1", *cursor)
        page = json.loads(shell.out)
        seen += page["items"]
        cursor = ["--cursor", page["next"]]
    assert seen == answer["items"]
    assert page["next"] is None


@pytest.mark.parametrize(
    ("options", "count"),
    [
        (("--session", OTHER[:8]), 1), (("--session", SESSION), 2),
        (("--since", "2026-01-20T10:00:30Z", "--session", SESSION), 1),
        (("--until", "2026-01-20T10:00:30Z", "--session", SESSION), 1), (("--project", "demo"), 3),
        (("--source", "claude"), 4), (("--source", "chorus"), 0),
    ],
)  # fmt: skip
def test_filters_leave_out_the_rest(
    shell: Shell, home: Path, options: tuple[str, ...], count: int
) -> None:
    synced(shell, home)
    assert shell("secrets", "--json", *options) == (1 if count else 0)
    assert json.loads(shell.out)["total"] == count


def test_a_baseline_accepts_what_is_known_and_holds_fingerprints_alone(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    synced(shell, home)
    known = tmp_path / "known.txt"
    assert shell("secrets", "--write-baseline", str(known)) == 1
    lines = known.read_text().split("\n")
    assert lines[0].startswith("# ")
    assert len(lines) == 5
    assert lines[-1] == ""
    assert all(len(line) == 16 and int(line, 16) for line in lines[1:-1])
    assert known.stat().st_mode & 0o077 == 0 or os.name == "nt"
    assert shell("secrets", "--baseline", str(known)) == 0
    assert shell.out == ""
    assert "No credentials found" in shell.err
    write(home, f"{PROJECT}/{OTHER}.jsonl", user(f"Use {planted(2)['npm']}", "o1", sessionId=OTHER))
    sync(shell.database, [home])
    assert shell("secrets", "--baseline", str(known), "--write-baseline", str(known)) == 1
    assert fingerprint(planted(2)["npm"]) in shell.out
    assert fingerprint(planted()["github"]) not in (shell.out)
    assert shell("secrets", "--baseline", str(known)) == 0


def test_a_file_that_is_no_baseline_is_neither_read_nor_overwritten(
    shell: Shell, home: Path, tmp_path: Path
) -> None:
    synced(shell, home)
    other = tmp_path / "notes.txt"
    other.write_text("milk and eggs\n")
    for option in ("--baseline", "--write-baseline"):
        assert shell("secrets", option, str(other)) == 2
        assert "Line 1 of" in shell.err
        assert other.read_text() == "milk and eggs\n"
    assert shell("secrets", "--baseline", str(tmp_path / "missing")) == 2
    assert shell("secrets", "--write-baseline", str(home / "known.txt")) == 2
    assert not (home / "known.txt").exists()


def test_the_rules_are_printed_with_their_date_and_sources(shell: Shell) -> None:
    assert shell("secrets", "--rules") == 0
    assert shell.out.startswith(f"Rules of {REVISED}\n")
    assert all(prefix in shell.out for prefix in BY_PREFIX)
    assert all(rule.source in shell.out for rule in RULES)


def test_a_fingerprint_is_the_same_everywhere_and_a_mask_says_nothing() -> None:
    assert fingerprint("correct horse") == "5fbd3ce75431b62d"
    (secret,) = found(planted()["github"])
    assert masked(secret) == "ghp_… (40 letters)"
    (secret,) = found(f"DB_PASSWORD={WORD}")
    assert masked(secret) == "… (24 letters)"


# -- real transcripts ----------------------------------------------------------------------------


@pytest.mark.skipif(not CORPUS.exists(), reason="ASSOC_REAL_CORPUS names no transcripts")
def test_published_transcripts_have_no_false_reports() -> None:
    """People looked through these before they published them: what is found there is no secret."""
    seen, reports = 0, []
    for path in sorted(CORPUS.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            seen += len(data)
            reports += [(path.name, secret.rule) for secret in find(data, is_log=False)]
    assert len(reports) <= seen / 100_000_000, reports
    assert seen > 1_000_000
