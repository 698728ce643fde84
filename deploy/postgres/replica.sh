#!/usr/bin/env bash
# The replica's entrypoint: copy the primary once, then follow it.
set -euo pipefail
export PGPASSWORD="$POSTGRES_PASSWORD"
if [ ! -s "$PGDATA/PG_VERSION" ]; then
    rm -rf "$PGDATA"
    until pg_basebackup -h "$PRIMARY_HOST" -p "$PRIMARY_PORT" -U "$POSTGRES_USER" -D "$PGDATA" \
        --write-recovery-conf --wal-method=stream --slot=replica; do
        echo "The primary is not ready; trying again in 3 s." >&2
        rm -rf "$PGDATA"
        sleep 3
    done
    chmod 700 "$PGDATA"
fi
exec "$@"
