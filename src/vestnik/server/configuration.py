"""Where the settings of a broker come from: flags, before the environment, before a file, before what they are unless
said otherwise."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec

from vestnik.errors import InvalidAddress, InvalidSetting
from vestnik.journal.folders import name_in
from vestnik.model.nearest import meant
from vestnik.server.limits import Limits, limits_of, read_limits
from vestnik.server.settings import Settings
from vestnik.transport.addresses import Address, read_address

PREFIX: Final = "VESTNIK_"
YES, NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Found(NamedTuple):
    """The value of a setting, and where it was found."""

    value: Any
    origin: str


def known() -> dict[str, Any]:
    """The settings that there are, with their types."""
    return {name: kind for name, kind in get_type_hints(Settings).items() if name in Settings.__struct_fields__}


def gather(
    flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None, *, name: str = ""
) -> dict[str, Found]:
    """Every setting, from the first place that has it. `name` is the broker's where nobody gives it one.

    What a broker took is known by its name, and so is its data folder: whoever goes on with that has the name, too.

    InvalidSetting where a value means nothing, or the file has a setting that there is not.
    """
    filed = {} if file is None else read_file(file)
    found: dict[str, Found] = {}
    for field in msgspec.structs.fields(Settings):
        variable = PREFIX + field.name.upper()
        if flags.get(field.name) is not None:
            found[field.name] = Found(flags[field.name], "flag")
        elif environment.get(variable):
            value = _of_text(field.name, known()[field.name], environment[variable], variable)
            found[field.name] = Found(value, f"environment {variable}")
        elif field.name in filed:
            found[field.name] = Found(filed[field.name], f"file {file}")
        else:
            found[field.name] = Found(name if field.required else field.default, "default")
    folder = found["data"].value
    if found["name"].origin == "default" and folder is not None and (own := name_in(Path(folder))):
        found["name"] = Found(own, f"folder {folder}")
    return found


def settings_of(found: Mapping[str, Found]) -> Settings:
    """InvalidSetting where they do not go together."""
    return Settings(**{name: value for name, (value, _) in found.items()})


def read_file(file: Path) -> dict[str, Any]:
    """The settings in a TOML file. Folders and files in it are beside it unless they are absolute."""
    try:
        given = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidSetting("config", f"{file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidSetting("config", f"{file} is no TOML: {error}") from None
    kinds = known()
    unknown = [name for name in given if name not in kinds]
    if unknown:
        raise InvalidSetting("config", f"{file} has {unknown[0]}, which is no setting{meant(unknown[0], kinds)}")
    return {name: _of_file(name, kinds[name], value, file) for name, value in given.items()}


def _of_file(name: str, kind: Any, value: Any, file: Path) -> Any:
    if kind is Limits:
        return limits_of(value)
    found = _converted(name, kind, value, str(file), strict=True)
    return file.parent / found if isinstance(found, Path) else found


def _of_text(name: str, kind: Any, text: str, where: str) -> Any:
    """What a variable of the environment means."""
    value: Any = text
    if kind is Limits:
        return read_limits([part.strip() for part in text.split(",")])
    if kind is bool:
        if text.lower() not in (*YES, *NO):
            raise InvalidSetting(name, f"is true or false, not {text!r}, in {where}")
        value = text.lower() in YES
    elif getattr(kind, "__origin__", None) is tuple:
        value = [part.strip() for part in text.split(",") if part.strip()]
    return _converted(name, kind, value, where, strict=False)


def _converted(name: str, kind: Any, value: Any, where: str, *, strict: bool) -> Any:
    try:
        return msgspec.convert(_addresses(kind, value), kind, strict=strict, dec_hook=_read)
    except InvalidAddress as error:
        raise InvalidSetting(name, f"{error}, in {where}") from None
    except msgspec.ValidationError:
        raise InvalidSetting(name, f"is {_meaning(kind)}, not {value!r}, in {where}") from None


def _meaning(kind: Any) -> str:
    """What a value of a kind is, for people."""
    texts: dict[Any, str] = {
        str: "text",
        str | None: "text",
        int: "a whole number",
        int | None: "a whole number",
        float: "a number",
        float | None: "a number",
        bool: "true or false",
        Path | None: "the path of a file or folder",
        Address: "an address such as '127.0.0.1:8020'",
        Address | None: "an address such as '127.0.0.1:8020'",
        tuple[str, ...]: "a list of texts",
        tuple[Address, ...]: "a list of addresses such as ['127.0.0.1:8020']",
    }
    return texts[kind]


def _addresses(kind: Any, value: Any) -> Any:
    """Addresses are written as text."""
    if kind in (Address, Address | None):
        return _address(value)
    if kind == tuple[Address, ...] and isinstance(value, list):
        return list(dict.fromkeys(map(_address, value)))
    return value


def _address(value: Any) -> Address:
    if not isinstance(value, str):
        raise msgspec.ValidationError
    return read_address(value)


def _read(kind: type, value: Any) -> Any:
    if kind is Path and isinstance(value, str):
        return Path(value)
    raise msgspec.ValidationError
