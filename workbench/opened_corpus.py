"""The corpus that the settings describe: its database, the replica that is read, and the models, loaded when used."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from workbench.services.corpus import Corpus
from workbench.settings import Settings
from workbench.telemetry import export

if TYPE_CHECKING:
    from workbench.models.cross_encoder import CrossEncoder
    from workbench.models.encoder import Encoder
    from workbench.models.llm import Llm

BUILT_IN_RERANKER = "late-interaction"


def open_corpus(settings: Settings) -> Corpus:
    """Start or join the database and bring it up to date; begin telemetry where it is asked for.

    Raises:
        StorageError: the database cannot be reached. ConfigurationError: an extra is missing.
    """
    if settings.telemetry:
        export()
    from workbench.storage.database import Database
    from workbench.storage.migrate import migrate
    from workbench.storage.postgres import embedded_url, forget_variables
    from workbench.storage.replica import Replica

    configured_url = settings.database_url.get_secret_value() if settings.database_url else None
    forget_variables()
    url = configured_url or embedded_url(settings.postgres_dir)
    migrate(url)
    revive = None if configured_url else functools.partial(embedded_url, settings.postgres_dir)
    database = Database(url, pool_size=settings.pool_size, revive=revive)
    replica = settings.read_database_url
    reader = Replica(replica.get_secret_value(), database, settings.pool_size) if replica else database
    return Corpus(
        database,
        reader,
        functools.partial(_encoder, settings),
        settings.embedding_model,
        functools.partial(_llm, settings),
        functools.partial(_cross_encoder, settings),
    )


def _encoder(settings: Settings, name: str) -> Encoder:
    from workbench.models.registry import load_encoder

    return load_encoder(name, settings.models_dir, settings.embedding_threads)


def _llm(settings: Settings) -> Llm | None:
    from workbench.models.llm import Llm
    from workbench.models.local_llm import LocalLlm

    if not settings.has_llm:
        return None
    if not settings.llm_base_url:
        return LocalLlm(settings.llm_model, settings.llm_timeout)
    key = settings.llm_api_key.get_secret_value() if settings.llm_api_key else ""
    return Llm(settings.llm_base_url, settings.llm_model, key, settings.llm_timeout)


def _cross_encoder(settings: Settings) -> CrossEncoder | None:
    from workbench.models.cross_encoder import load_cross_encoder

    name = settings.reranker
    return None if name == BUILT_IN_RERANKER else load_cross_encoder(name, settings.embedding_threads)
