# sealab on stdio, for clients that start their servers in containers:
#
#   docker build -t sealab .
#   docker run -i --rm -v sealab:/home/sealab sealab
#
# Docker's default profile leaves the level `landlock`: `docker run --rm sealab doctor` says so.
#
# For servers that share a database, with the extras `policy`, `postgres` and `store`:
#
#   docker build -t sealab --build-arg REQUIREMENTS=requirements/team.txt .
ARG BASE=python:3.13-slim

FROM ${BASE} AS built
WORKDIR /build
RUN python3 -m venv /opt/sealab
ARG REQUIREMENTS=requirements/base.txt
COPY requirements/base.txt requirements/team.txt requirements/
RUN /opt/sealab/bin/python -m pip install --no-cache-dir --require-hashes -r ${REQUIREMENTS}
COPY pyproject.toml README.md LICENSE ./
COPY .import .import
COPY server server
COPY sandbox sandbox
COPY tools_registry tools_registry
COPY skills_db skills_db
COPY workspace workspace
RUN /opt/sealab/bin/python -m pip install --no-cache-dir --no-deps --no-build-isolation .

FROM ${BASE}
COPY --from=built /opt/sealab /opt/sealab
RUN useradd --uid 1000 --create-home sealab
# By its number: Kubernetes cannot tell whether a name is root's.
USER 1000
ENV PATH=/opt/sealab/bin:$PATH SEALAB_HOME=/home/sealab/home
VOLUME /home/sealab
ENTRYPOINT ["sealab"]
