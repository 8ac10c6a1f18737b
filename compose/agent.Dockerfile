# The agent, alone: agent/ and its hashed dependencies, as a user without rights on a root that may be read-only.
#
#   docker build -f compose/agent.Dockerfile -t modelforge-agent .
#
# A build behind a package mirror reads pip's configuration as a secret; nothing of it stays in the image:
#   --secret id=pip,src=$HOME/.config/pip/pip.conf   (docker compose: PIP_CONFIG_FILE)

ARG PYTHON_IMAGE=python:3.13-slim-trixie

FROM ${PYTHON_IMAGE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv --without-pip /opt/venv
COPY agent/requirements.txt /build/requirements.txt
RUN --mount=type=secret,id=pip,target=/run/secrets/pip.conf \
    if [ -s /run/secrets/pip.conf ]; then export PIP_CONFIG_FILE=/run/secrets/pip.conf; fi; \
    pip --python /opt/venv/bin/python install --no-compile --require-hashes --no-deps --only-binary :all: \
        --progress-bar off -q -r /build/requirements.txt
COPY agent /opt/modelforge/agent
# Compiled here, so that neither a health check nor a read-only root ever compiles. By hash, never by time: a rebuild
# gives the same bytes.
RUN printf '#!/bin/sh\nexec python -m agent "$@"\n' >/opt/venv/bin/modelforge-agent \
    && chmod 755 /opt/venv/bin/modelforge-agent \
    && python -m compileall -q --invalidation-mode unchecked-hash /opt/venv/lib /opt/modelforge

FROM ${PYTHON_IMAGE}
# Named volumes take over what stands below /data, so they belong to the agent from their first start. There is no
# VOLUME on purpose: an anonymous one would hide that nobody mounted anything, and die with the container. Into
# artifacts everybody may look: engines of other uids read the models there.
RUN groupadd --gid 10001 modelforge \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin modelforge \
    && install -d -m 0700 -o 10001 -g 10001 /data/state /data/hf-cache /data/quarantine \
    && install -d -m 0755 -o 10001 -g 10001 /data/artifacts
COPY --from=build /opt/venv /opt/venv
COPY --from=build /opt/modelforge /opt/modelforge
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/opt/modelforge \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONFAULTHANDLER=1 \
    PYTHONNOUSERSITE=1 \
    HOME=/nonexistent
WORKDIR /
USER 10001:10001
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 CMD ["python", "-m", "agent", "health"]
ENTRYPOINT ["python", "-m", "agent"]
CMD ["run"]

ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="ModelForge agent" \
      org.opencontainers.image.description="Runs on a GPU server: tells its control plane what is there, and fetches models." \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="docker.io/library/python:3.13-slim-trixie"
