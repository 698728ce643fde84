#!/usr/bin/env bash
# Run once by the image's entrypoint when it creates the primary's data folder: allows a replica with the same user.
set -euo pipefail
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" \
    -c "ALTER ROLE \"$POSTGRES_USER\" WITH REPLICATION" \
    -c "SELECT pg_create_physical_replication_slot('replica')"
# WAL is kept for a replica that is disconnected, but no more than this
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -c "ALTER SYSTEM SET max_slot_wal_keep_size = '4GB'"
echo "host replication $POSTGRES_USER all scram-sha-256" >>"$PGDATA/pg_hba.conf"
