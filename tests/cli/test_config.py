"""`vestnik config show`: what a broker is set up with, and from where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from vestnik.cli import main
from vestnik.cli.settings import plain
from vestnik.client.connect import connect
from vestnik.journal.folders import put_name
from vestnik.recovery.limits import RecoveryLimits
from vestnik.server.limits import Limits
from vestnik.server.settings import Settings


def show(*options: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["config", "show", *options], env={"VESTNIK_NAME": None, **environment})


def found(*options: str, **environment: str) -> dict[str, tuple[object, str]]:
    result = show("--json", *options, **environment)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    return {line["setting"]: (line["value"], line["origin"]) for line in lines}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "b.toml"
    path.write_text(
        'name = "filed"\nlisten = "127.0.0.1:9001"\njoin = ["127.0.0.1:9002", "localhost:9003"]\n'
        'advertisements = true\nlease = 30\ndata = "store"\n'
    )
    return path


def test_what_is_not_said_is_as_it_always_is() -> None:
    settings = found()
    assert settings["listen"] == ("127.0.0.1:8020", "default")
    assert settings["join"] == ([], "default") and settings["data"] == (None, "default")
    assert str(settings["name"][0]).startswith("broker-")


def test_a_flag_before_the_environment_before_the_file(file: Path) -> None:
    variables = {"VESTNIK_LEASE": "40", "VESTNIK_LISTEN": "127.0.0.1:9009", "VESTNIK_CONFIG": str(file)}
    settings = found("--listen", "127.0.0.1:9010", **variables)
    assert settings["listen"] == ("127.0.0.1:9010", "flag")
    assert settings["lease"] == (40.0, "environment VESTNIK_LEASE")
    assert settings["name"] == ("filed", f"file {file}")
    assert settings["join"] == (["127.0.0.1:9002", "localhost:9003"], f"file {file}")
    assert settings["data"] == (str(file.parent / "store"), f"file {file}"), "beside the file"
    assert settings["advertisements"] == (True, f"file {file}")
    assert found("--config", str(file), "--no-advertisements")["advertisements"] == (False, "flag")


def test_whoever_goes_on_with_a_folder_has_the_name_of_its_broker(tmp_path: Path) -> None:
    put_name(tmp_path, "b7")
    assert found("--data", str(tmp_path))["name"] == ("b7", f"folder {tmp_path}")
    assert found("--data", str(tmp_path), "--name", "b8")["name"] == ("b8", "flag"), "which serve refuses"


def test_lists_and_switches_in_the_environment() -> None:
    settings = found(VESTNIK_JOIN="127.0.0.1:1, 127.0.0.1:2", VESTNIK_ADVERTISEMENTS="yes", VESTNIK_DATA="here")
    assert settings["join"][0] == ["127.0.0.1:1", "127.0.0.1:2"]
    assert settings["advertisements"][0] is True and settings["data"][0] == "here"


def test_people_read_a_table() -> None:
    lines = show("--name", "b1").stdout.splitlines()
    assert lines[0].split() == ["name", "b1", "flag"]
    assert lines[2].split() == ["join", "-", "default"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lissen = 1", "has lissen, which is no setting; did you mean listen?"),
        ("xyz = 1", "known are name, listen, join"),
        ("lease = 'x'", "lease: is a number, not 'x', in "),
        ("listen = 8021", "listen: is an address such as '127.0.0.1:8020', not 8021, in "),
        ("join = ['8021']", "join: '8021' is no address: it is a port without a host"),
        ("join = '127.0.0.1:1'", "join: is a list of addresses such as ['127.0.0.1:8020'], not '127.0.0.1:1', in "),
        ("listen = 'here:there'", "its port is no number up to 65535"),
        ("retain_size = 'big'", "retain_size: is a whole number, not 'big', in "),
        ("data = 5", "data: is the path of a file or folder, not 5, in "),
        ("advertisements = 'yes'", "advertisements: is true or false, not 'yes', in "),
        ("origin = 'x'", "origin: is a list of texts, not 'x', in "),
        ("name = 5", "name: is text, not 5, in "),
        ("limits = 5", "limits: is a table, such as [limits]"),
        ("[limits]\nconections = 5", "limits: there is none called conections; did you mean connections?"),
        ("[limits]\nconnections = 'x'", "limits.connections: is a number from 1 on, not 'x'"),
        ("listen = '127.0.0.1:80'\nhttp = '127.0.0.1:80'", "its gateway needs a port of its own"),
        ("x = = 1", "is no TOML"),
        ("sweep = 100", "is longer than sweep, which is 100 seconds, not 60; set sweep to less than 60"),
        ("lease = 1", "is at least 2 heartbeats, which are 30 seconds, and longer than sweep, which is 5"),
        ("lease = 1", "not 1; set heartbeat to 0.5 or less and sweep to less than 1, or a longer lease"),
        ("lease = 0.02", "lease: is at least 0.1 seconds, and has an end, not 0.02"),
        ("lease = -1", "lease: is at least 0.1 seconds, and has an end, not -1"),
        ("lease = inf", "lease: is at least 0.1 seconds, and has an end, not inf"),
        ("lease = nan", "lease: is at least 0.1 seconds, and has an end, not nan"),
        ("heartbeat = 1e-9", "is from 0.05 to 20 seconds, not 1e-09"),
        ("retain_size = 100000000", "is for a broker that stores: set data"),
        (
            "repeat_window = 0",
            "repeat_window: is from 1 to 1,000,000 events, not 0; a million of them take",
        ),
        ("repeat_window = 9999999", "repeat_window: is from 1 to 1,000,000 events, not 9,999,999"),
        ("repeat_window_age = 0", "repeat_window_age: is longer than 0 seconds, and has an end, not 0"),
        ("repeat_window_age = inf", "repeat_window_age: is longer than 0 seconds, and has an end, not inf"),
        ("[limits]\nin_flight = 5", "limits.in_flight: is at least 1,048,576 bytes, which one subscription may have"),
        ("[limits]\nstalled = 0", "limits.stalled: is a number from 1 on, not 0"),
        ("routing = 'magic'", "no routing strategy called 'magic'"),
    ],
)
def test_a_file_that_means_nothing(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "b.toml").write_text(text)
    result = show("--config", str(tmp_path / "b.toml"))
    assert (result.exit_code, result.stdout) == (2, "") and said in result.stderr


def test_the_windows_of_a_broker_are_settings() -> None:
    flags = ("--repeat-window", "500", "--repeat-window-age", "60", "--limits", "stalled=9")
    settings = found(*flags, VESTNIK_REPEAT_WINDOW="7")
    assert settings["repeat_window"] == (500, "flag") and settings["repeat_window_age"] == (60.0, "flag")
    assert dict(settings)["limits"][0] == plain(Limits(stalled=9))
    made = Settings(name="b", repeat_window=500, repeat_window_age=60.0, limits=Limits(stalled=9, in_flight=5 << 20))
    assert made.recovery_limits == RecoveryLimits(500, 60.0, 9, 5 << 20)


def test_other_values_that_mean_nothing(tmp_path: Path) -> None:
    assert "is true or false, not 'maybe', in VESTNIK_ADVERTISEMENTS" in show(VESTNIK_ADVERTISEMENTS="maybe").stderr
    assert "in VESTNIK_LEASE" in show(VESTNIK_LEASE="long").stderr
    assert "cannot be read" in show("--config", str(tmp_path / "none.toml")).stderr
    assert "port without a host" in show("--listen", "8021").stderr


def test_security_and_limits_are_settings(tmp_path: Path) -> None:
    path = tmp_path / "b.toml"
    path.write_text('tls_cert = "c.pem"\ntls_key = "k.pem"\naccess = "access.toml"\n[limits]\nconnections = 7\n')
    settings = found("--config", str(path), VESTNIK_ACCESS="/etc/access.toml")
    assert settings["tls_cert"] == (str(tmp_path / "c.pem"), f"file {path}")
    assert settings["access"] == ("/etc/access.toml", "environment VESTNIK_ACCESS")
    assert isinstance(limits := settings["limits"][0], dict) and limits["connections"] == 7
    assert isinstance(limits := found(VESTNIK_LIMITS="keep=3, replay=4")["limits"][0], dict)
    assert (limits["keep"], limits["replay"], limits["connections"]) == (3, 4, 10_000)
    assert isinstance(limits := found("--limits", "keep=5")["limits"][0], dict) and limits["keep"] == 5
    path.write_text("[limits]\nmany = 1\n")
    wrong = show("--config", str(path))
    assert wrong.exit_code == 2 and "many" in wrong.stderr


def test_variables_that_are_misspelt() -> None:
    said = show(VESTNIK_LISTN="127.0.0.1:1", VESTNIK_SERVICE_HOST="10.0.0.1", VESTNIK_TLS_CERT="").stderr
    assert said == "vestnik: the variable VESTNIK_LISTN means nothing; did you mean VESTNIK_LISTEN?\n"
    assert "did you mean VESTNIK_URL?" in show(VESTNIK_ULR="x").stderr


def test_variables_of_clients_that_are_misspelt(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("VESTNIK_TOKN", "x")
    monkeypatch.setenv("VESTNIK_TLS_CERT", "x")
    connect("127.0.0.1:1")
    assert caplog.messages == ["the variable VESTNIK_TOKN means nothing; did you mean VESTNIK_TOKEN?"]
