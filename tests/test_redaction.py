"""No credential that follows a known pattern is left in a text that was masked."""

from __future__ import annotations

import json

import pytest

from assoc_ingest.secrets.mask import redact

# Put together here, so that no scanner of repositories takes this file for a leak.
SECRETS = {
    "Anthropic API key": "sk-ant-" + "api03-Ab1Cd2Ef3Gh4Ij5Kl6",
    "OpenAI API key": "sk-" + "proj-Ab1Cd2Ef3Gh4Ij5Kl6",
    "OpenRouter API key": "sk-" + "or-v1-" + "0123456789abcdef" * 2,
    "API key": "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7",
    "Stripe key": "sk_" + "live_Ab1Cd2Ef3Gh4Ij5Kl6",
    "AWS access key": "AKIA" + "IOSFODNN7EXAMPLE",
    "GitHub token": "ghp_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8",
    "GitLab token": "glpat-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn",
    "Slack token": "xoxb-" + "123456789012-Ab1Cd2Ef3Gh4",
    "Slack webhook": "hooks.slack.com/services/" + "T00000000/B00000000/Ab1Cd2Ef3",
    "Google API key": "AIza" + "SyAb1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1",
    "Google token": "GOCSPX-" + "Ab1Cd2Ef3Gh4Ij5Kl6",
    "npm token": "npm_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2",
    "PyPI token": "pypi-" + "AgEIcHlwaS5vcmcCJGFi" + "Ab1Cd2Ef3",
    "Hugging Face token": "hf_" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8",
    "SendGrid API key": "SG." + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7." + "Op8Qr9St0Uv1Wx2Yz3Ab4Cd5Ef6",
    "DigitalOcean token": "dop_v1_" + "0123456789abcdef" * 4,
    "JWT": "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0" + ".Ab1Cd2Ef3Gh4",
}
KEY = "MIIEpAIBAAKCAQEA" + "Ab1Cd2Ef3Gh4Ij5K" * 3
BLOCK = "-----BEGIN RSA PRIVATE " + f"KEY-----\n{KEY}\n{KEY}\n-----END RSA PRIVATE KEY-----"
AROUND = {
    # What stands around a value that looks like nothing: the text, and what is left of it.
    "a header": ("Authorization: Bearer {}", "authorization"),
    "a header in JSON": ('{{"Authorization": "token {}"}}', "authorization"),
    "a header in quotes": ('-H \\"authorization: Basic {}\\"', "authorization"),
    "an address": ("postgres://ada:{}@db.example/shop", "password"),
    "an address that is cut": ("clone https://ada:{}", "password"),
    "a shell": ("export SHOP_API_KEY={}", "API key"),
    "a shell without a digit": ("PASSWORD=correcthorse{}", "password"),
    "a file of settings": ("aws_secret_access_key = {}", "access key"),
    "JSON": ('"clientSecret": "{}"', "secret"),
    "JSON in JSON": ('{{\\"password\\": \\"{}\\"}}', "password"),
    "JSON with spaces in the value": ('"password": "correct horse {}"', "password"),
    "an escaped quote": ('"password": "a\\"{}"', "password"),
    "source code": ("token := '{}'", "token"),
    "a name with a stage": ("API_KEY_PROD={}", "API key"),
    "YAML": ("  db_password: {}", "password"),
    "an option": ("deploy --db-password {} --verbose", "password"),
    "an option in quotes": ("deploy --api-key '{}'", "API key"),
    "a query": ("?access_token={}&page=2", "token"),
}
VALUE = "hunter2Ab1Cd"


@pytest.mark.parametrize("kind", SECRETS)
@pytest.mark.parametrize("around", ["{}", "a {} b", '"{}"', "\\n{}\\n", "x={}", "({}).", "{}\n{}"])
def test_a_token_is_masked_with_its_kind(kind: str, around: str) -> None:
    secret = SECRETS[kind]
    text = around.replace("{}", secret)
    masked, found = redact(text)
    assert masked == around.replace("{}", f"[redacted: {kind}]")
    assert found == {kind: text.count(secret)}


@pytest.mark.parametrize("kind", sorted(SECRETS.keys() - {"JWT"}))
def test_what_is_left_of_a_token_at_the_end_of_a_title_is_masked(kind: str) -> None:
    secret = SECRETS[kind]
    for end in ("", "…"):
        masked, found = redact(f"Use {secret[:-4]}{end}")
        assert masked == f"Use [redacted: {kind}]{end}"
        assert found.total() == 1


@pytest.mark.parametrize("name", AROUND)
def test_a_value_is_masked_by_what_surrounds_it(name: str) -> None:
    around, kind = AROUND[name]
    text = around.format(VALUE)
    masked, found = redact(text)
    assert VALUE not in masked
    assert found == {kind: 1}, masked
    assert masked.startswith(text[:4]), "what surrounds it stays"


def test_a_private_key_is_masked_whole_or_cut_off() -> None:
    assert redact(f"a\n{BLOCK}\nb") == ("a\n[redacted: private key]\nb", {"private key": 1})
    in_json = BLOCK.replace("\n", "\\n")
    assert redact(f'"{in_json}"')[0] == '"[redacted: private key]"'
    assert KEY[-6:] not in redact(BLOCK[:-40])[0]
    assert "and so on" in redact(f"{BLOCK[:120]}\n\nand so on. " * 2)[0]


@pytest.mark.parametrize(
    "text",
    [
        "The password has to be changed.", "password: string", "token = get_token()",
        "max_tokens: 4096", "tokens: 12345678", "secret = os.environ['SECRET']", "PASSWORD=$PASS",
        "Authorization: Bearer $TOKEN", "Authorization: Bearer <token>", "http://localhost:8080",
        "http://localhost:8080/@scope", "disk-encryption-at-rest-with-a-key", "half_a_loaf",
        "const token: string = value", "password=password_from_user", "task-0123456789abcdefghijkl",
        "the words -----BEGIN PRIVATE KEY----- alone", "git@github.com:shop/site.git",
        "deploy --password --verbose", "password=info[0]",
        "token_type = 'bearer'", "login --password-stdin", "--token-file a.txt",
        "--token $TOKEN", "sk-learn and sk-some-css-class", "token: 12345678",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_credential_stays(text: str) -> None:
    assert redact(text) == (text, {})


@pytest.mark.parametrize(
    "text", [*SECRETS.values(), BLOCK, *(a.format(VALUE) for a, _ in AROUND.values())]
)
def test_what_is_masked_is_not_masked_again(text: str) -> None:
    once, _ = redact(text)
    assert redact(once) == (once, {})


def test_input_of_a_tool_stays_json() -> None:
    arguments = {
        "command": f'curl -H "Authorization: Bearer {VALUE}"',
        "password": "plain words",
        "nested": [{"apiKey": "abcd", "n": 1, "key": BLOCK}],
        "file": f"/srv/{SECRETS['GitHub token']}/a",
    }
    masked, found = redact(json.dumps(arguments))
    assert json.loads(masked) == {
        "command": 'curl -H "Authorization: Bearer [redacted: authorization]"',
        "password": "[redacted: password]",
        "nested": [{"apiKey": "[redacted: API key]", "n": 1, "key": "[redacted: private key]"}],
        "file": "/srv/[redacted: GitHub token]/a",
    }
    assert found.total() == 5


def test_a_key_of_more_than_its_kind_is_masked_in_input() -> None:
    masked, found = redact(json.dumps({"db_password_prod": VALUE, "a": "b"}))
    assert json.loads(masked) == {"db_password_prod": "[redacted: password]", "a": "b"}
    assert found == {"password": 1}


def test_input_without_credentials_and_input_that_is_cut_stay_as_they_are() -> None:
    assert redact('{"a" : 1}') == ('{"a" : 1}', {})
    masked, found = redact('{"password":"abcd1234","text":"cut of')
    assert masked == '{"password":"[redacted: password]","text":"cut of'
    assert found == {"password": 1}


def test_input_nested_deeper_than_any_decoder_follows_is_masked_as_text() -> None:
    deep = "[" * 500 + f'{{"password":"{VALUE}"}}' + "]" * 500
    assert VALUE not in redact(deep)[0]
    assert VALUE not in redact("[" * 100_000 + f'"password={VALUE}"')[0]
