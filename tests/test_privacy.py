"""Secrets are taken out, whatever stands around them; what is no secret stays."""

import random
import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memex.privacy import redact

LETTERS = string.ascii_letters + string.digits
HEX = "0123456789abcdef"


def some(count, letters=LETTERS, seed=7):
    """Letters that look as if chosen by chance."""
    chooser = random.Random(seed)
    return "".join(chooser.choice(letters) for _ in range(count))


PEM = "\n".join(some(64, seed=line) for line in range(12))
SECRETS = {
    "AWS key id": ("AKIA" + some(16, string.ascii_uppercase), "AWS_ACCESS_KEY_ID={}"),
    "AWS secret": (some(39) + "9", "aws_secret_access_key = '{}'"),
    "GitHub token": ("ghp_" + some(36), "remote: https://{}@github.com/a/b"),
    "GitHub fine-grained token": ("github_pat_" + some(60), "export T={}"),
    "GitLab token": ("glpat-" + some(20), "PRIVATE-TOKEN: {}"),
    "Slack token": ("xoxb-123456789012-" + some(24), "slack {}"),
    "Slack webhook": ("https://hooks.slack.com/services/T00000000/B00000000/" + some(24), "curl {}"),
    "Stripe key": ("sk_live_" + some(24), "stripe.api_key={}"),
    "OpenAI key": ("sk-proj-" + some(48), "key {} here"),
    "Anthropic key": ("sk-ant-api03-" + some(60), '"x-api-key": "{}"'),
    "OpenRouter key": ("sk-or-v1-" + some(64, HEX), "{}"),
    "Google key": ("AIza" + some(35), "?key={}&v=1"),
    "npm token": ("npm_" + some(36), "//registry/:_authToken={}"),
    "PyPI token": ("pypi-AgEIcHlwaS5vcmc" + some(80), "password: {}"),
    "SendGrid key": ("SG." + some(22) + "." + some(43), "{}"),
    "Twilio key": ("SK" + some(32, HEX), "{}"),
    "Hugging Face token": ("hf_" + some(34), "login --token {}"),
    "JSON web token": ("eyJhbGciOiJIUzI1NiJ9." + some(40) + "." + some(43), "jwt={}"),
    "bearer token": (some(40), "Authorization: Bearer {}"),
    "password in a URL": ("p4ss" + some(12), "postgres://admin:{}@db.internal:5432/app"),
    "password in an assignment": ("hunter2" + some(6), 'DB_PASSWORD="{}"'),
    "password in JSON": ("Tr0ub4dor" + some(6), '{{\\"password\\": \\"{}\\"}}'),
    "Azure key": (some(86) + "==", "DefaultEndpointsProtocol=https;AccountKey={};Suffix=x"),
    "private key": (PEM, "-----BEGIN RSA PRIVATE KEY-----\n{}\n-----END RSA PRIVATE KEY-----"),
    "private key without its end": (PEM, "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n"),
    "private key without its beginning": (PEM, "{}\n-----END PRIVATE KEY-----"),
    "private key in JSON": (PEM, '{{"output": "took 3 s\\n{}\\n-----END PRIVATE KEY-----"}}'),
    "Discord token": ("M" + some(23) + "." + some(6) + "." + some(27), "{}"),
    "Telegram token": ("123456789:" + some(35), "{}"),
    "Mailchimp key": (some(32, HEX) + "-us12", "{}"),
    "private part": ("my salary is a secret", "before <private>{}</private> after"),
    "private part without its end": ("my salary is a secret", "before <private>{} after"),
    "private part without its beginning": ("my salary is a secret", "{}</private> after"),
    "private part, written oddly": ("my salary\nis a secret", "before < Private reason='x' >{}</ PRIVATE > after"),
}


@pytest.mark.parametrize("kind", SECRETS)
def test_each_kind_of_secret_goes(kind):
    secret, around = SECRETS[kind]
    redacted = redact(around.format(secret))
    assert redacted.found >= 1
    assert all(part not in redacted.text for part in secret.splitlines())


KINDS = sorted(SECRETS)
AROUND = st.text(st.sampled_from("ab c\n\t\"'`=:/{}[]()<>.,;0x中文—é"), max_size=40)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(KINDS), AROUND), min_size=1, max_size=5))
def test_no_secret_survives_in_any_surroundings(planted):
    text = "".join(f"{around} {SECRETS[kind][1].format(SECRETS[kind][0])} {around}\n" for kind, around in planted)
    left = redact(text).text
    for kind, _around in planted:
        assert SECRETS[kind][0] not in left, kind


@pytest.mark.parametrize(
    "text",
    [
        "password: str = Field(default=None)",
        "token = get_token()",
        "max_tokens=4096, tokens_input: 1234567890",
        "commit 4f3c2b1a9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a",
        'api_key = "${OPENAI_API_KEY}"',
        "if token == expected_token:",
        "const token = req.headers['x-token']",
        "git clone git@github.com:org/repo.git",
        "see http://localhost:8080/a@b",
        "我们决定采用新的缓存方案",
        "uuid 123e4567-e89b-12d3-a456-426614174000 sha256:" + some(64, HEX),
        "class TokenBucket: secrets manager, the password page",
        "mail me at somebody@example.com",
    ],
)
def test_what_is_no_secret_stays(text):
    assert redact(text) == (text, 0)


def test_addresses_go_on_request():
    assert redact("write to a.b+c@mail.example.com!", emails=True).text == "write to [redacted e-mail]!"


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_read_and_what_is_redacted_stays_so(text):
    once = redact(text).text
    assert redact(once).text == once
