# Two images from one build: `--target sidecar` (the product) and `--target emulator` (for development and tests).
# Every program is one file: neither image has node_modules.

FROM node:24-bookworm-slim AS build
WORKDIR /build
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts
COPY tsconfig.json ./
COPY src ./src
RUN npm run build

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
