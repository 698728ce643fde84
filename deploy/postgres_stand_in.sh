#!/usr/bin/env bash
# Only for deploy/rehearse.py: starts the embedded Postgres as the entrypoint of the image pgvector/pgvector
# starts its own.
set -euo pipefail
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    mkdir -p "$PGDATA"
    initdb -D "$PGDATA" --encoding=UTF8 -U "$POSTGRES_USER" --auth-local=trust --auth-host=scram-sha-256 \
        --pwfile=<(printf '%s\n' "$POSTGRES_PASSWORD") >/dev/null
    printf "listen_addresses = '*'\nunix_socket_directories = '/tmp'\n" >>"$PGDATA/postgresql.conf"
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
    pg_ctl -D "$PGDATA" -w -o "-c listen_addresses=''" start >/dev/null
    export PGHOST=/tmp
    createdb -U "$POSTGRES_USER" "$POSTGRES_DB"
    for script in /docker-entrypoint-initdb.d/*.sh; do "$script"; done
    pg_ctl -D "$PGDATA" -w stop >/dev/null
fi
exec "$@"
