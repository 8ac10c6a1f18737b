# The control plane: web, worker, beat and migrate are one image with different commands.
#
#   docker build -f compose/control-plane.Dockerfile -t modelforge-control-plane .
#
# A build behind a package mirror reads pip's configuration as a secret; nothing of it stays in the image:
#   --secret id=pip,src=$HOME/.config/pip/pip.conf   (docker compose: PIP_CONFIG_FILE)

ARG PYTHON_IMAGE=python:3.13-slim-trixie

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv --without-pip /opt/venv
COPY requirements.txt /build/requirements.txt
RUN --mount=type=secret,id=pip,target=/run/secrets/pip.conf \
    if [ -s /run/secrets/pip.conf ]; then export PIP_CONFIG_FILE=/run/secrets/pip.conf; fi; \
    pip --python /opt/venv/bin/python install --no-compile --require-hashes --no-deps --only-binary :all: \
        --progress-bar off -q -r /build/requirements.txt
COPY manage.py /opt/modelforge/manage.py
COPY artifacts /opt/modelforge/artifacts
COPY enrollment /opt/modelforge/enrollment
COPY modelforge /opt/modelforge/modelforge
COPY nodes /opt/modelforge/nodes
COPY templates /opt/modelforge/templates
# All that the control plane may know of the agent.
COPY agent/__init__.py agent/protocol.py /opt/modelforge/agent/
COPY agent/wire /opt/modelforge/agent/wire
COPY compose/control-plane /opt/modelforge/compose
# Compiled here, by hash and never by time; the static files are collected with a key that is thrown away.
RUN python -m compileall -q --invalidation-mode unchecked-hash /opt/venv/lib /opt/modelforge \
    && cd /opt/modelforge \
    && export MODELFORGE_VAR_DIR=/opt/modelforge/var MODELFORGE_DATABASE_URL=sqlite:////tmp/none.sqlite3 \
        MODELFORGE_QUEUE_DIR=/tmp/queue MODELFORGE_SECRET_KEY=only-for-the-build-only-for-the-build-only-for-the-build \
    && /opt/venv/bin/python manage.py collectstatic --noinput -v 0 \
    && /opt/venv/bin/python manage.py check

FROM ${PYTHON_IMAGE}
RUN groupadd --gid 10001 modelforge \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin modelforge \
    && install -d -m 0711 -o 10001 -g 10001 /run/modelforge/database \
    && install -d -m 0700 -o 10001 -g 10001 /run/modelforge/keys
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/modelforge /opt/modelforge
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/modelforge \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONFAULTHANDLER=1 \
    PYTHONNOUSERSITE=1 \
    HOME=/nonexistent \
    DJANGO_SETTINGS_MODULE=modelforge.settings \
    MODELFORGE_VAR_DIR=/opt/modelforge/var
WORKDIR /opt/modelforge
USER 10001:10001
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-ISB", "compose/healthy.py", "web"]
CMD ["python", "-m", "modelforge.web", "--host", "0.0.0.0", "--port", "8000"]

ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="ModelForge control plane" \
      org.opencontainers.image.description="A self-hosted control plane for GPU servers." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/python:3.13-slim-trixie"
