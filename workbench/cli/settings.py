"""``workbench settings``: values with their origins, changes in .env, and tests of the models."""

from __future__ import annotations

import argparse
import sys
from getpass import getpass

from workbench.cli.options import Subcommands
from workbench.cli.output import Output
from workbench.errors import InvalidInput


def declare_settings(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommands."""
    from workbench.workbench import TRIED_MODELS

    verbs = Subcommands(parser)
    verbs.add_offline("list", "List settings with their origins; values of secrets are not shown.", _list_settings)
    changed = verbs.add_offline("set", "Write a setting or a provider's API key to .env.", _set_setting, "name")
    changed.add_argument("value", nargs="?", metavar="VALUE", help="its value; without one, it is read from stdin")
    verbs.add_offline("unset", "Remove a setting or an API key from .env.", _unset_setting, "name")
    tried = verbs.add_offline("test", "Use a model of the settings once.", _try_model)
    tried.add_argument("model", choices=TRIED_MODELS, help="the model")


def _list_settings(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.settings import list_settings

    settings = list_settings()
    rows = [(each.variable, each.value, each.origin) for each in settings]
    return out.table({"settings": settings}, ("Variable", "Value", "From"), rows)


def _set_setting(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.settings import is_secret

    value = arguments.value
    if value is not None and is_secret(arguments.name):
        raise InvalidInput(f"{arguments.name} is a secret: leave out its value, which is then read from stdin.")
    if value is None:
        value = getpass(f"{arguments.name}: ") if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not value:
        raise InvalidInput(f"No value for {arguments.name}; remove it with 'workbench settings unset'.")
    return _write(arguments.name, value, out)


def _unset_setting(arguments: argparse.Namespace, out: Output) -> int:
    return _write(arguments.name, "", out)


def _write(name: str, value: str, out: Output) -> int:
    from workbench.settings import write_settings

    file, variable = write_settings({name: value}), name.upper()
    sentence = f"{variable} {'written to' if value else 'removed from'} {file}. Restart running servers and workers."
    return out.sentence({"variable": variable, "file": str(file), "is_set": bool(value)}, sentence)


def _try_model(arguments: argparse.Namespace, out: Output) -> int:
    from workbench.settings import load_settings
    from workbench.workbench import try_model

    result = try_model(load_settings(), arguments.model)
    return out.sentence({"model": arguments.model, "result": result}, result)
