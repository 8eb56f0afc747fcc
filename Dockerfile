# The memory server in a container; its data is under /data.
#
#   docker build -t daypack .
#   docker run --rm -v daypack:/data daypack token new ada      # a token per user, before the first start
#   docker run -d -p 127.0.0.1:8420:8420 -v daypack:/data daypack
#
# Other containers reach it by a name: append `serve --host 0.0.0.0 --allow-host daypack`.
FROM python:3.13-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --wheel-dir /wheels '.[serve,postgres]'

FROM python:3.13-slim
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index /wheels/*.whl \
    && useradd --uid 1000 --no-create-home --home-dir /data daypack \
    && install --directory --owner daypack --mode 700 /data
ENV DAYPACK_HOME=/data \
    PYTHONUNBUFFERED=1
USER 1000
WORKDIR /data
VOLUME /data
EXPOSE 8420
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=10s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8420/health/ready', timeout=4)"]
ENTRYPOINT ["daypack"]
CMD ["serve", "--host", "0.0.0.0"]
