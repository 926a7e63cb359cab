# Four images: `--target sidecar` (the product), for development and tests `--target emulator` and `--target packager` (the
# reference packager, with ffmpeg and shaka-packager), and `--target etcd` (the engine of a fleet, Debian's own package).
# Every program of ours is one file: no image has node_modules. `npm run release` makes of each stage a build context of its
# own, with what the stage `build` makes.

# What the images say of themselves.
ARG VERSION=0.0.0-unreleased REVISION=unknown CREATED=1970-01-01T00:00:00Z

FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json build.mjs ./
COPY src ./src
# The maps lead to the source, which is not in the images. A clone's umask of 027 or 077 would keep files from the images' users.
RUN npm run build && find dist -name '*.map' -delete && chmod -R a+rX dist package.json
# By Docker's names of processors.
RUN mkdir shaka-packager && cd node_modules/shaka-packager/bin \
  && cp packager-linux-x64 /build/shaka-packager/amd64 && cp packager-linux-arm64 /build/shaka-packager/arm64

FROM node:24-bookworm-slim AS emulator
ENV NODE_ENV=production EMULATOR_HOST=0.0.0.0 EMULATOR_UPLOADSFOLDER=/uploads
WORKDIR /app
COPY --from=build /build/dist/emulator ./dist/emulator
# The root may be read-only; what is uploaded needs a place.
RUN mkdir /uploads && chown node:node /uploads && chmod 0750 /uploads
# By number: Kubernetes' runAsNonRoot takes no name.
USER 1000:1000
VOLUME /uploads
EXPOSE 8080 1935
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --start-interval=1s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.EMULATOR_CONTROL_PORT || 8081) + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/emulator/main.js"]
ARG VERSION REVISION CREATED
LABEL org.opencontainers.image.title="packager-drm-emulator" \
  org.opencontainers.image.description="Emulator of the platform, for development and tests" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.base.name="docker.io/library/node:24-bookworm-slim" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.created="$CREATED"

FROM node:24-bookworm-slim AS packager
# It pulls what encoders stream, and makes the test picture of compose's encoder. Before everything that changes.
RUN apt-get update && apt-get install -y --no-install-recommends ffmpeg \
  && apt-get clean && rm -rf /var/lib/apt/lists/*
ENV NODE_ENV=production PACKAGER_HOST=0.0.0.0 PACKAGER_KEYFILESPATH=/keys PACKAGER_FOLDER=/media \
  PACKAGER_SHAKAPACKAGER=/opt/shaka-packager/packager
WORKDIR /app
# Whichever container is the first to mount a new volume of key files gives it owner and mode: the sidecar's, always.
RUN useradd --uid 1001 --gid 1000 --no-create-home --shell /usr/sbin/nologin packager \
  && mkdir /keys && chown node:node /keys && chmod 0750 /keys \
  && mkdir -p /media && chown 1001:1000 /media && chmod 0700 /media
ARG TARGETARCH
COPY --from=build /build/node_modules/shaka-packager/LICENSE /opt/shaka-packager/
COPY --from=build /build/shaka-packager/$TARGETARCH /opt/shaka-packager/packager
COPY --from=build /build/dist/packager ./dist/packager
# Another user than the sidecar's, in its group: it reads key files, and can't write any.
USER 1001:1000
VOLUME /media
EXPOSE 8082
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --start-interval=1s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.PACKAGER_PORT || 8082) + '/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "dist/packager/main.js"]
ARG VERSION REVISION CREATED
LABEL org.opencontainers.image.title="packager-drm-packager" \
  org.opencontainers.image.description="Reference packager, for development and tests" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.base.name="docker.io/library/node:24-bookworm-slim" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.created="$CREATED"

# On the same base as the others, so that nothing else has to be pulled. etcd's own image, quay.io/coreos/etcd, does as well.
FROM node:24-bookworm-slim AS etcd
RUN apt-get update && apt-get install -y --no-install-recommends etcd-server etcd-client \
  && apt-get clean && rm -rf /var/lib/apt/lists/*
# etcd warns of a data folder that others may read.
RUN mkdir /data && chown node:node /data && chmod 0700 /data
ENV ETCD_DATA_DIR=/data ETCD_LISTEN_CLIENT_URLS=http://0.0.0.0:2379 ETCD_ADVERTISE_CLIENT_URLS=http://127.0.0.1:2379
USER 1000:1000
VOLUME /data
EXPOSE 2379 2380
# Asks for a read that a majority confirms.
HEALTHCHECK --interval=10s --timeout=8s --start-period=30s --start-interval=1s \
  CMD ["etcdctl", "--command-timeout=5s", "endpoint", "health"]
CMD ["etcd"]
LABEL org.opencontainers.image.title="packager-drm-etcd" \
  org.opencontainers.image.description="Debian's etcd, for a fleet" \
  org.opencontainers.image.licenses="Apache-2.0" \
  org.opencontainers.image.base.name="docker.io/library/node:24-bookworm-slim"

FROM node:24-bookworm-slim AS sidecar
ENV NODE_ENV=production PACKAGERDRMAPI_KEYFILESPATH=/keys
WORKDIR /app
COPY --from=build /build/package.json ./
COPY --from=build /build/dist/sidecar ./dist/sidecar
COPY --from=build /build/dist/cli ./dist/cli
# `docker exec … packager-drm list`: inside the container the command line knows address and key.
RUN ln -s /app/dist/cli/main.js /usr/local/bin/packager-drm \
    # A new volume takes over owner and mode of the folder it is mounted on.
    && mkdir /keys && chown node:node /keys && chmod 0750 /keys
USER 1000:1000
VOLUME /keys
EXPOSE 80
HEALTHCHECK --interval=10s --timeout=5s --start-period=20s --start-interval=1s \
  CMD ["node", "dist/sidecar/health-check.js"]
CMD ["node", "dist/sidecar/main.js"]
ARG VERSION REVISION CREATED
LABEL org.opencontainers.image.title="packager-drm-sidecar" \
  org.opencontainers.image.description="Key-file service next to a streaming packager" \
  org.opencontainers.image.licenses="MIT" \
  org.opencontainers.image.base.name="docker.io/library/node:24-bookworm-slim" \
  org.opencontainers.image.version="$VERSION" \
  org.opencontainers.image.revision="$REVISION" \
  org.opencontainers.image.created="$CREATED"
