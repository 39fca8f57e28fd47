"""What credentials look like: the tokens of providers, and the names before other credentials.

There is one list for all purposes: `secrets` reports text that fits a whole rule, a mask covers
text that begins like one, and `forget --secret` finds a credential again. A credential without a
rule is recognised only by the text around it: a key block, a header, an address, a name.

Every expression is linear in the text: each repetition has a limit or is possessive. They are
applied to text and to bytes that were decoded as Latin-1, where no byte of a letter may count as
white space: hence ASCII.

To add a rule: its prefix has three letters or more, and `source` names the page that describes the
format. tests/test_secrets.py then plants a credential of this kind by itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

REVISED = "2026-11-24"
"""When the rules were last compared with what the providers publish."""

_ALNUM = "[A-Za-z0-9]"
_HEX = "[a-f0-9]"
_URL = "[A-Za-z0-9_-]"  # letters of base64 in addresses
_DOTS = "[A-Za-z0-9_.-]"
_SCANNERS = "https://github.com/gitleaks/gitleaks/blob/009e025/config/gitleaks.toml"
"""Of formats that their provider does not describe: the rules of another scanner."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of credential that a provider issues."""

    name: str
    kind: str
    """Its name in masks and reports."""
    prefixes: tuple[str, ...]
    letters: str
    """The letters that may follow the prefix, as an expression."""
    lengths: tuple[int, int]
    """The least and the largest number of letters after the prefix."""
    source: str
    """Where the format is described."""
    least: int = 16
    """The number of letters from which it is masked: the rest may have been cut off."""
    is_word: bool = False
    """The prefix may end an ordinary word (`disk-`, `half_`), or begin one."""
    is_cut: bool = True
    """At the end of a text, four letters after the prefix are enough to mask it."""


class Secret(NamedTuple):
    """A credential in bytes."""

    rule: str
    kind: str
    start: int
    end: int
    """Its position in the bytes, including escapes."""
    text: str
    """The credential without escapes. It never leaves this program."""
    prefix: str = ""
    """The part that may be shown: the prefix that all of its kind have."""


def _word(
    name: str, kind: str, prefix: str | tuple[str, ...], letters: str, count: tuple[int, int],
    source: str = _SCANNERS,
) -> Rule:  # fmt: skip
    """Return a rule whose prefix alone says nothing: the rest must be complete."""
    prefixes = (prefix,) if isinstance(prefix, str) else prefix
    return Rule(name, kind, prefixes, letters, count, source, count[0], is_word=True, is_cut=False)


RULES: tuple[Rule, ...] = (
    # -- models --------------------------------------------------------------------------------
    Rule("anthropic", "Anthropic API key", ("sk-ant-",), _URL, (80, 200),
         "https://docs.anthropic.com/en/api/overview"),
    Rule("openai", "OpenAI API key", ("sk-proj-", "sk-svcacct-", "sk-admin-"), _URL, (40, 250),
         "https://platform.openai.com/docs/api-reference/authentication"),
    Rule("openrouter", "OpenRouter API key", ("sk-or-v1-",), _ALNUM, (64, 64),
         "https://openrouter.ai/docs/api-reference/authentication"),
    Rule("sk", "API key", ("sk-",), _ALNUM, (32, 64),
         "https://platform.openai.com/docs/api-reference/authentication", 20, is_word=True),
    Rule("groq", "Groq API key", ("gsk_",), _ALNUM, (40, 64), "https://console.groq.com/docs"),
    Rule("xai", "xAI API key", ("xai-",), "[A-Za-z0-9_]", (70, 90), "https://docs.x.ai", 40),
    Rule("perplexity", "Perplexity API key", ("pplx-",), _ALNUM, (40, 64), _SCANNERS, 20),
    Rule("hugging-face", "Hugging Face token", ("hf_",), _ALNUM, (30, 40),
         "https://huggingface.co/docs/hub/security-tokens", 20, is_word=True),
    _word("replicate", "Replicate token", "r8_", _ALNUM, (36, 40),
          "https://replicate.com/docs/topics/security/api-tokens"),
    Rule("cerebras", "Cerebras API key", ("csk-",), "[a-z0-9]", (40, 56), _SCANNERS, 40,
         is_word=True, is_cut=False),
    Rule("langsmith", "LangSmith key", ("lsv2_pt_", "lsv2_sk_"), "[a-f0-9_]", (40, 50),
         "https://docs.langchain.com/langsmith/create-account-api-key"),
    Rule("tavily", "Tavily API key", ("tvly-",), _URL, (28, 60), "https://docs.tavily.com", 24),
    _word("elevenlabs", "ElevenLabs API key", "sk_", _HEX, (48, 48)),
    # -- clouds and hosts ----------------------------------------------------------------------
    Rule("aws", "AWS access key", ("AKIA", "ASIA", "ABIA", "ACCA"), "[A-Z0-9]", (16, 16),
         "https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html",
         is_word=True),
    Rule("google-api", "Google API key", ("AIza",), _URL, (35, 35),
         "https://docs.cloud.google.com/docs/authentication/api-keys", 30),
    Rule("google-oauth", "Google token", ("ya29.",), _DOTS, (60, 1200),
         "https://developers.google.com/identity/protocols/oauth2"),
    Rule("google-client", "Google token", ("GOCSPX-",), _URL, (24, 32),
         "https://developers.google.com/identity/protocols/oauth2"),
    Rule("digitalocean", "DigitalOcean token", ("dop_v1_", "doo_v1_", "dor_v1_"), _HEX, (64, 64),
         "https://docs.digitalocean.com/reference/api/create-personal-access-token/", 32),
    _word("alibaba", "Alibaba access key", "LTAI", _ALNUM, (16, 20)),
    _word("heroku", "Heroku token", "HRKU-AA", _URL, (56, 62),
          "https://devcenter.heroku.com/articles/authentication"),
    Rule("fly", "Fly.io token", ("fo1_",), _URL, (40, 46), "https://fly.io/docs/security/tokens/",
         36, is_word=True),
    Rule("netlify", "Netlify token", ("nfp_",), _ALNUM, (36, 40),
         "https://docs.netlify.com/api-and-cli-guides/api-guides/get-started-with-api/", 24),
    Rule("supabase", "Supabase token", ("sbp_", "sb_secret_"), "[A-Za-z0-9_]", (28, 60),
         "https://supabase.com/docs/guides/api/api-keys", 24),
    Rule("planetscale", "PlanetScale token", ("pscale_tkn_", "pscale_pw_", "pscale_oauth_"),
         _DOTS, (32, 64), "https://planetscale.com/docs/concepts/service-tokens"),
    Rule("databricks", "Databricks token", ("dapi",), "[a-f0-9-]", (32, 34),
         "https://docs.databricks.com/aws/en/dev-tools/auth/pat", 32, is_word=True, is_cut=False),
    Rule("cloudflare-origin", "Cloudflare key", ("v1.0-",), "[a-f0-9-]", (171, 171),
         "https://developers.cloudflare.com/fundamentals/api/get-started/ca-keys/", 100),
    Rule("tailscale", "Tailscale key", ("tskey-",), _URL, (20, 100),
         "https://tailscale.com/kb/1085/auth-keys"),
    Rule("pulumi", "Pulumi token", ("pul-",), _HEX, (40, 40), _SCANNERS, 32,
         is_word=True, is_cut=False),
    Rule("openshift", "OpenShift token", ("sha256~",), _URL, (43, 43), _SCANNERS, 40),
    Rule("terraform-vault", "Vault token", ("hvs.", "hvb."), _URL, (24, 300),
         "https://developer.hashicorp.com/vault/docs/concepts/tokens", 20, is_word=True),
    Rule("doppler", "Doppler token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa."), _DOTS, (40, 60),
         "https://docs.doppler.com/docs/service-tokens", 32, is_word=True),
    Rule("1password", "1Password token", ("ops_eyJ",), "[A-Za-z0-9+/=_-]", (250, 2000),
         "https://developer.1password.com/docs/service-accounts/", 40),
    Rule("age", "age secret key", ("AGE-SECRET-KEY-1",), "[A-Z0-9]", (58, 58),
         "https://github.com/C2SP/C2SP/blob/main/age.md", 20),
    # -- code and packages ---------------------------------------------------------------------
    Rule("github", "GitHub token", ("ghp_", "gho_", "ghs_", "ghu_", "ghr_", "github_pat_"),
         "[A-Za-z0-9_]", (36, 255),
         "https://github.blog/changelog/2021-03-31-authentication-token-format-updates-are-"
         "generally-available"),
    Rule("gitlab", "GitLab token",
         ("glpat-", "glptt-", "glrt-", "gldt-", "glcbt-", "glft-", "glsoat-", "glagent-", "glimt-",
          "gloas-", "glffct-"),
         _DOTS, (20, 300), "https://docs.gitlab.com/security/tokens/#token-prefixes"),
    _word("bitbucket", "Bitbucket token", "ATBB", _ALNUM, (32, 32)),
    Rule("atlassian", "Atlassian token", ("ATATT3",), "[A-Za-z0-9_=-]", (150, 230), _SCANNERS, 40),
    Rule("npm", "npm token", ("npm_",), _ALNUM, (36, 36),
         "https://github.blog/changelog/2021-09-23-npm-has-a-new-access-token-format/", 30),
    Rule("pypi", "PyPI token", ("pypi-AgE",), _URL, (80, 500),
         "https://docs.pypi.org/api/secrets/"),
    Rule("rubygems", "RubyGems token", ("rubygems_",), _HEX, (48, 48),
         "https://guides.rubygems.org/api-key-scopes/", 24),
    _word("crates", "crates.io token", "cio", _ALNUM, (32, 32),
          "https://crates.io/data-access"),
    _word("nuget", "NuGet key", "oy2", "[a-z0-9]", (43, 43),
          "https://learn.microsoft.com/nuget/nuget-org/scoped-api-keys"),
    Rule("clojars", "Clojars token", ("CLOJARS_",), "[a-z0-9]", (60, 60),
         "https://github.com/clojars/clojars-web/wiki/Deploy-Tokens", 32),
    Rule("docker", "Docker token", ("dckr_pat_", "dckr_oat_"), _URL, (24, 40),
         "https://docs.docker.com/security/access-tokens/"),
    _word("artifactory", "Artifactory key", "AKCp", _ALNUM, (65, 73)),
    Rule("sourcegraph", "Sourcegraph token", ("sgp_",), "[A-Za-z0-9_]", (40, 64),
         "https://sourcegraph.com/docs/cli/how-tos/creating_an_access_token", 40),
    Rule("buildkite", "Buildkite token", ("bkua_",), _HEX, (40, 40),
         "https://buildkite.com/docs/apis/managing-api-tokens", 24),
    Rule("circleci", "CircleCI token", ("CCIPAT_",), "[A-Za-z0-9_]", (40, 90),
         "https://circleci.com/docs/managing-api-tokens/", 24),
    Rule("postman", "Postman key", ("PMAK-",), "[A-Za-z0-9-]", (50, 64),
         "https://learning.postman.com/docs/developer/postman-api/authentication/", 24),
    # -- payment -------------------------------------------------------------------------------
    Rule("stripe", "Stripe key", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
         _ALNUM, (24, 130), "https://docs.stripe.com/keys", 12),
    Rule("square", "Square token", ("sq0atp-", "sq0csp-"), _URL, (22, 43),
         "https://developer.squareup.com/docs/build-basics/access-tokens"),
    Rule("shopify", "Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), "[A-Fa-f0-9]",
         (32, 40), "https://shopify.dev/docs/apps/build/authentication-authorization", 20),
    _word("easypost", "EasyPost key", "EZAK", _ALNUM, (54, 54)),
    Rule("shippo", "Shippo token", ("shippo_live_", "shippo_test_"), _HEX, (40, 40),
         "https://docs.goshippo.com/docs/guides_general/authentication/", 20),
    # -- messages ------------------------------------------------------------------------------
    Rule("slack", "Slack token",
         ("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
         "[A-Za-z0-9-]", (24, 260), "https://docs.slack.dev/authentication/tokens", 12),
    Rule("slack-webhook", "Slack webhook", ("hooks.slack.com/services/",), "[A-Za-z0-9/]",
         (40, 60), "https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks", 12),
    Rule("discord-webhook", "Discord webhook",
         ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"), "[A-Za-z0-9/_-]",
         (80, 100), "https://docs.discord.com/developers/resources/webhook", 40),
    Rule("sendgrid", "SendGrid API key", ("SG.",), _DOTS, (60, 70),
         "https://www.twilio.com/docs/sendgrid/ui/account-and-settings/api-keys", 40,
         is_word=True),
    Rule("brevo", "Brevo key", ("xkeysib-", "xsmtpsib-"), "[A-Za-z0-9-]", (81, 81),
         "https://developers.brevo.com/docs/getting-started", 40),
    _word("mailgun", "Mailgun key", "key-", _HEX, (32, 32)),
    _word("resend", "Resend key", "re_", "[A-Za-z0-9_]", (32, 36)),
    # -- other services ------------------------------------------------------------------------
    Rule("linear", "Linear key", ("lin_api_", "lin_oauth_"), _ALNUM, (40, 64),
         "https://linear.app/developers", 24),
    Rule("notion", "Notion token", ("ntn_",), _ALNUM, (40, 50),
         "https://developers.notion.com/docs/authorization", 40, is_word=True, is_cut=False),
    Rule("figma", "Figma token", ("figd_", "figu_"), _URL, (38, 48),
         "https://developers.figma.com/docs/rest-api/authentication/", 24),
    _word("airtable", "Airtable token", "pat", "[A-Za-z0-9.]", (79, 79),
          "https://airtable.com/developers/web/guides/personal-access-tokens"),
    _word("hubspot", "HubSpot token", ("pat-na1-", "pat-na2-", "pat-eu1-"), "[a-f0-9-]", (36, 36),
          "https://developers.hubspot.com/docs/guides/apps/private-apps/overview"),
    _word("dropbox", "Dropbox token", "sl.", _DOTS, (130, 1500)),
    Rule("new-relic", "New Relic key", ("NRAK-",), "[A-Z0-9]", (27, 27),
         "https://docs.newrelic.com/docs/apis/intro-apis/new-relic-api-keys/", 20),
    Rule("grafana", "Grafana token", ("glsa_", "glc_eyJ"), "[A-Za-z0-9+/=_]", (40, 500),
         "https://grafana.com/docs/grafana/latest/administration/service-accounts/", 32),
    Rule("sentry", "Sentry token", ("sntrys_eyJ", "sntryu_"), "[A-Za-z0-9+/=_]", (60, 500),
         "https://docs.sentry.io/account/auth-tokens/", 32),
    Rule("dynatrace", "Dynatrace token", ("dt0c01.", "dt0s01."), "[A-Z0-9.]", (85, 93),
         "https://docs.dynatrace.com/docs/manage/identity-access-management", 24),
    Rule("posthog", "PostHog key", ("phx_",), _ALNUM, (40, 50), "https://posthog.com/docs/api", 32),
    Rule("contentful", "Contentful token", ("CFPAT-",), _URL, (43, 43),
         "https://www.contentful.com/developers/docs/references/authentication/", 24),
    Rule("typeform", "Typeform token", ("tfp_",), _DOTS, (40, 64),
         "https://www.typeform.com/developers/get-started/personal-access-token/", 40),
    _word("adobe", "Adobe client secret", "p8e-", _URL, (32, 32)),
)  # fmt: skip

BY_PREFIX: dict[str, Rule] = {prefix: rule for rule in RULES for prefix in rule.prefixes}
"""The rule of each prefix."""

NAMES = {
    "password": "password", "passwd": "password", "passphrase": "password", "pwd": "password",
    "secret": "secret", "token": "token", "apikey": "API key", "api_key": "API key",
    "api-key": "API key", "accesskey": "access key", "access_key": "access key",
    "access-key": "access key", "accountkey": "access key", "privatekey": "private key",
    "private_key": "private key", "private-key": "private key", "encryption_key": "secret",
    "signing_key": "secret", "credentials": "secret",
}  # fmt: skip
"""Ends of names whose value is a credential, and the kind of it."""

# -- by the text around it ---------------------------------------------------------------------

# After an escaped line break, too: tool output is often JSON text.
jwt = re.compile(
    r"(?:(?<![\w-])|(?<=\\[nrt]))eyJ[\w-]{8,}+\.(?:[\w-]{8,}+(?:\.[\w-]*+){0,3}|[\w-]*+(?=…?\Z))",
    re.ASCII,
)
key_header = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
key_lines = re.compile(r"(?:(?:\\[nrt]|[\s\"'>|+,]){0,40}+[A-Za-z0-9+/=]{24,}+)*+", re.ASCII)
KEY_END = "-----END"
LONGEST_KEY = 20_000
authorization = re.compile(
    r"((?:authorization[\"'\\]{0,9}\s{0,8}[:=]\s{0,8}(?:\\{0,7}[\"'])?(?:[a-z]{2,12}[ \t]{1,8})?"
    r"|\bbearer[ \t]{1,8}(?=[^\s\"'\\]{20})))"
    r"([^\s\"'\\,;`]{6,}+)",
    re.IGNORECASE | re.ASCII,
)
userinfo = re.compile(
    r"(://[^\s/?#:@\"'<>\\]{0,100}:)([^\s/?#@\"'<>\\]{1,200})(@|(?=…?\Z))", re.ASCII
)
assignment = re.compile(
    rf"({'|'.join(NAMES)})"
    r"((?:_(?:prod|production|dev|test|staging|live|old|new|\d{1,3}))?"
    r"[\"'\\]{0,9}[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8})"
    # In quotes that are themselves in a quoted text, a backslash ends the value.
    r"(?:(\")((?:[^\"\\\n]|\\[^\n]){4,}+)|(['`]|\\(?:\\\\){0,3}\"|\\{1,7}')([^\"'`\\\n]{4,}+)"
    r"|([^\s\"'`\\,;&]{4,}+))",
    re.IGNORECASE | re.ASCII,
)
option = re.compile(
    rf"(--[a-z0-9-]{{0,40}}?({'|'.join(NAMES)})[ \t]{{1,4}}[\"']?)([^\s\"'`\\]{{4,}}+)",
    re.IGNORECASE | re.ASCII,
)
password_port = re.compile(
    rb":(?:[0-9]{2,5}|\*):[^\s:\"'`\\]{1,63}:[^\s:\"'`\\]{1,63}:(?=[^\s\"'`])", re.ASCII
)
password_line = re.compile(
    r"(\*|\[[0-9a-f:]{2,45}+\]|/?[\w.-]{1,100}+(?:/[\w.-]{1,100}+){0,8}+)"
    r":(?:\d{2,5}+|\*):([^\s:\"'`\\]{1,63}+):[^\s:\"'`\\]{1,63}+:"
    r"((?:[^\s\"'`\\]|\\{1,8}:){4,}+)",
    re.IGNORECASE | re.ASCII,
)
"""A line of a password file of PostgreSQL: host, port, database, user, password."""
placeholder = re.compile(
    r"[$<{%*\[(].*|[*x.•…]+|(?:true|false|null|none|undefined|nil)|(?:process|os|env|config)\..*",
    re.IGNORECASE | re.DOTALL,
)


def is_placeholder(value: str) -> bool:
    """Is a value only a placeholder: a variable, stars, `null`?"""
    return placeholder.fullmatch(value) is not None
