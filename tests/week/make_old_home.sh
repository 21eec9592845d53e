#!/usr/bin/env bash
# Writes tests/fixtures/week/old-home.tar.xz: a backup of a small home by an older version of HADES.
#   git worktree add FOLDER COMMIT; tests/week/make_old_home.sh FOLDER
# Ten pages of Flask 2.0.3, two nights, one page changed between them, memory, a judged answer.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
old=$(cd "${1:?name a checkout of the older version}" && pwd)
place=$(mktemp -d); trap 'rm -r "$place"' EXIT
export HADES_HOME=$place/home HADES_EMBEDDER=hashing PYTHONPATH=$old HF_HUB_OFFLINE=1
export MLFLOW_DISABLE_TELEMETRY=true GX_ANALYTICS_ENABLED=false DO_NOT_TRACK=1
hades() { "$repository/.venv/bin/python" -c 'from hades.surfaces.cli.commands import main; main()' "$@"; }
tar -xJf "$repository/tests/fixtures/week/flask-docs.tar.xz" -C "$place" 2.0.3/patterns
mkdir "$place/docs"
cd "$place/2.0.3/patterns"
cp index.rst caching.rst subclassing.rst singlepageapplications.rst methodoverrides.rst \
  deferredcallbacks.rst requestchecksum.rst favicon.rst templateinheritance.rst streaming.rst "$place/docs"
cd "$place"
hades ingest documents docs
hades run nightly
printf '\nWerkzeug decodes a stream of any length.\n' >> docs/streaming.rst
hades run nightly
hades memory add 'deploy target' 'The service runs on Gunicorn.'
query=$(hades query 'How do I stream a large response?' --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["query_id"])')
hades feedback "$query" --good 1
hades backup old-home
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -c old-home docs | xz -9e > "$repository/tests/fixtures/week/old-home.tar.xz"
