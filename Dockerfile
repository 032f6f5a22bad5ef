# One binary that contains the Swift runtime, and the few libraries that it links to.
# `make test-deploy` runs the final stage in a minimal Debian, without Docker.

FROM swift:6.3-bookworm AS build
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
    pkg-config librdkafka-dev libsqlite3-dev libssl-dev libuv1-dev libxxhash-dev zlib1g-dev \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN swift build -c release --static-swift-stdlib --product reel
# `--build-arg COMMIT=$(git rev-parse HEAD)`: the commit of these sources, as deploy/stamp writes it.
ARG COMMIT=
RUN [ -z "$COMMIT" ] || printf 'reel-commit:%-46s' "$COMMIT" >>.build/release/reel

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends \
    ca-certificates librdkafka1 libsqlite3-0 libssl3 libstdc++6 libuv1 zlib1g \
    && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 7350 --home-dir /var/lib/reel --create-home reel
COPY --from=build /src/.build/release/reel /usr/local/bin/reel
ENV REEL_DATA=/var/lib/reel REEL_LISTEN=0.0.0.0:7350
USER reel
WORKDIR /var/lib/reel
VOLUME /var/lib/reel
EXPOSE 7350
# The node listens on the network: give it `--jwks FILE`, or REEL_INSECURE=1 if every client on that network may do
# everything. After SIGTERM the node tells its clients to leave first; give it 15 s.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s --retries=3 CMD ["reel", "ready"]
ENTRYPOINT ["reel"]
CMD ["serve"]
