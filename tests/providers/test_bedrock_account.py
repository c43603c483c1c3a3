"""Whose account `bedrock:` asks with, at what address, and over what client."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from op_jupyter.events import StreamEnd
from op_jupyter.providers import Connection
from op_jupyter.providers._bedrock_connection import client_of
from tests.providers.adapter import KEY
from tests.providers.bedrock_wire import SECRET, Bedrock, account
from tests.providers.wire_server import Answer, WireServer

boto3 = pytest.importorskip("boto3", reason="needs op_jupyter[bedrock]")
pytestmark = pytest.mark.usefixtures("no_account")

bedrock = Bedrock()


def one_end(connection: Connection) -> StreamEnd:
    return bedrock.ask(connection).end


def with_a_header(request: Any, **_: Any) -> None:
    request.headers["x-mine"] = "y"


# -------------------------------------------------------------------- accounts, addresses, clients


def test_missing_credentials_are_said_without_asking_anyone(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        end = one_end(Connection())
        assert (end.error_kind, "AWS_PROFILE" in (end.error_message or "")) == ("auth", True)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert "nobody" in (one_end(Connection()).error_message or "")


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        (f"credential_process = {shutil.which('false')}", "custom-process"),
        ("aws_access_key_id = AKIAHALF", "aws_secret_access_key"),
    ],
    ids=["a program that fails", "half a key"],
)
def test_an_account_that_gives_no_keys_says_why(tmp_path: Path, profile: str, said: str) -> None:
    (tmp_path / "AWS_CONFIG_FILE").write_text(f"[default]\n{profile}\n")
    end = one_end(Connection())
    assert (end.error_kind, said in (end.error_message or "")) == ("auth", True)


def test_a_role_that_is_refused_is_not_taken_for_the_model(server: WireServer) -> None:
    from botocore.exceptions import ClientError

    def refuse(*_: Any, **__: Any) -> Any:
        said = {"Error": {"Code": "AccessDenied", "Message": "Not that role"}}
        raise ClientError(said | {"ResponseMetadata": {"HTTPStatusCode": 403}}, "AssumeRole")

    client = account().client("bedrock-runtime", endpoint_url=server.url)
    client.meta.events.register("before-sign.bedrock-runtime.*", refuse)
    end = one_end(Connection(client=client))
    assert end.error_message == "AWS, asked for AssumeRole, answered 403 AccessDenied: Not that role"
    assert (end.error_kind, server.asked) == ("auth", [])


def test_a_key_of_the_environment_is_not_sent_in_the_clear(server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    end = one_end(Connection(base_url=server.url))
    assert (end.error_kind, "HTTPS" in (end.error_message or "")) == ("setup", True)


def test_a_missing_region_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_REGION")
    end = one_end(Connection(api_key=KEY))
    assert (end.error_kind, "AWS_REGION" in (end.error_message or "")) == ("setup", True)


def test_a_region_that_there_is_not_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_name(*_: Any, **__: Any) -> Any:
        raise OSError(-2, "Name or service not known")

    monkeypatch.setattr("socket.getaddrinfo", no_such_name)
    end = one_end(Connection(client=account(region_name="mars-1"), max_retries=0))
    assert end.error_kind == "connection"
    assert "is there Bedrock in the region mars-1" in (end.error_message or "")
    end = one_end(Connection(client=account(region_name="mars one"), max_retries=0))
    assert (end.error_kind, "mars one" in (end.error_message or "")) == ("setup", True)


def test_the_account_of_this_machine_is_used_and_may_change_at_any_time(
    server: WireServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.script = [bedrock.answer("Hello") for _ in range(3)]
    (tmp_path / "AWS_SHARED_CREDENTIALS_FILE").write_text(
        f"[work]\naws_access_key_id = AKIAWORK\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / "AWS_CONFIG_FILE").write_text("[profile work]\nregion = us-west-2\n")
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.url)
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert one_end(Connection()).stop_reason == "stop"
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAHOME")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert one_end(Connection()).stop_reason == "stop"
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", account())
    assert one_end(Connection()).stop_reason == "stop"
    signed = [asked.headers["Authorization"].partition("Credential=")[2].split("/") for asked in server.asked]
    assert [(parts[0], parts[2]) for parts in signed] == [
        ("AKIAWORK", "us-west-2"),
        ("AKIAHOME", "eu-north-1"),
        ("AKIAIOSFODNN7EXAMPLE", "eu-north-1"),
    ]
    assert {asked.path for asked in server.asked} == {"/model/us.anthropic.claude-test-v1%3A0/converse-stream"}


def test_new_keys_in_a_file_are_seen_after_the_old_ones_were_refused(server: WireServer, tmp_path: Path) -> None:
    server.script = [bedrock.failed(403, "The security token is expired"), bedrock.answer("Hello")]
    for name in ("AKIAOLD", "AKIANEW"):
        keys = f"[default]\naws_access_key_id = {name}\naws_secret_access_key = {SECRET}\n"
        (tmp_path / "AWS_SHARED_CREDENTIALS_FILE").write_text(keys)
        one_end(Connection(base_url=server.url))
    assert ["AKIANEW" in asked.headers["Authorization"] for asked in server.asked] == [False, True]


def test_a_key_is_sent_as_it_is_and_nothing_is_set_for_it(server: WireServer, monkeypatch: pytest.MonkeyPatch) -> None:
    server.script = [bedrock.answer("Hello")]
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "another-key-of-the-environment")
    before = dict(os.environ)
    assert one_end(Connection(api_key=KEY, base_url=server.url)).stop_reason == "stop"
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
    assert dict(os.environ) == before


def test_a_session_and_a_client_are_used_as_they_are(server: WireServer) -> None:
    server.script = [bedrock.answer("Hello") for _ in range(2)]
    client = account(region_name="us-west-2").client("bedrock-runtime", endpoint_url=f"{server.url}/mine")
    client.meta.events.register("before-sign.bedrock-runtime.*", with_a_header)
    assert one_end(Connection(client=client, api_key=KEY)).stop_reason == "stop"
    assert server.asked[0].path.startswith("/mine/model/")
    assert server.asked[0].headers["x-mine"] == "y"
    assert "/us-west-2/bedrock/aws4_request" in server.asked[0].headers["Authorization"]
    session = account()
    made = [client_of(Connection(client=session)) for _ in range(2)]
    assert (made[0] is made[1], made[0].meta.region_name) == (True, "eu-north-1")


def test_a_client_of_one_s_own_neither_retries_nor_waits_by_itself(server: WireServer) -> None:
    client = account().client("bedrock-runtime", endpoint_url=server.url)
    server.script = [bedrock.failed(503, "Not now") for _ in range(3)]
    assert one_end(Connection(client=client, max_retries=0)).stop_reason == "error"
    assert len(server.asked) == 1
    server.script = [Answer(then="silent")]
    assert one_end(Connection(client=client, timeout=0.1)).error_kind == "timeout"
    server.script = [bedrock.failed(503, "Not now"), bedrock.answer("Hello")]
    stream = client.converse_stream(modelId="m", messages=[{"role": "user", "content": [{"text": "Hi"}]}])["stream"]
    assert len(list(stream)) > 3, "used by its owner it is as it was"
    assert server.asked[-1].body == {"messages": [{"role": "user", "content": [{"text": "Hi"}]}]}


def test_a_key_may_come_from_the_environment(tls: tuple[WireServer, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    server, certificate = tls
    server.script = [bedrock.answer("Hello")]
    monkeypatch.setenv("AWS_CA_BUNDLE", str(certificate))
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", KEY)
    assert one_end(Connection(base_url=server.url)).stop_reason == "stop"
    assert server.asked[0].headers["Authorization"] == f"Bearer {KEY}"
