# The official image of PostgreSQL, with the extension installed:
#
#	docker build --build-arg PG_MAJOR=17 --tag postgres-bloomfilter .
#	docker run --env POSTGRES_PASSWORD=... postgres-bloomfilter
#
# then CREATE EXTENSION bloomfilter in a database.
ARG PG_MAJOR=17

FROM postgres:${PG_MAJOR}-bookworm AS build
ARG PG_MAJOR
RUN apt-get update \
	&& apt-get install -y --no-install-recommends gcc make libb2-dev libc6-dev libxxhash-dev \
		postgresql-server-dev-${PG_MAJOR}
COPY . /src
WORKDIR /src
RUN make PG_CONFIG=/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config clean \
	&& make PG_CONFIG=/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config \
	&& make PG_CONFIG=/usr/lib/postgresql/${PG_MAJOR}/bin/pg_config DESTDIR=/installed install

FROM postgres:${PG_MAJOR}-bookworm
RUN apt-get update \
	&& apt-get install -y --no-install-recommends libb2-1 \
	&& rm -rf /var/lib/apt/lists/*
COPY --from=build /installed /
