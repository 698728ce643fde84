# The app, the MCP server and the command line in one image; settings are the same WORKBENCH_* variables as everywhere.
FROM python:3.11-slim AS build
RUN python -m venv /opt/workbench && /opt/workbench/bin/pip install --no-cache-dir uv
WORKDIR /build
COPY requirements.lock .
RUN /opt/workbench/bin/uv pip install --no-cache --python /opt/workbench/bin/python --compile-bytecode \
    --no-deps --require-hashes -r requirements.lock
COPY . .
RUN /opt/workbench/bin/uv pip install --no-cache --python /opt/workbench/bin/python --no-deps .

FROM python:3.11-slim
RUN useradd --create-home --uid 1000 workbench && install -d -o workbench /data
COPY --from=build /opt/workbench /opt/workbench
ENV PATH=/opt/workbench/bin:$PATH WORKBENCH_HOME=/data PYTHONUNBUFFERED=1
USER workbench
WORKDIR /data
VOLUME /data
EXPOSE 8501 8765
HEALTHCHECK --interval=10s --timeout=5s --start-period=120s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["workbench", "app", "--host", "0.0.0.0", "--port", "8501"]
