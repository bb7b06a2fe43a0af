# A static binary on an empty base. Build:
#   docker build --build-arg VERSION=v1.2.3 -t tripline .
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=
RUN CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.version=$VERSION" -o /out/ ./cmd/tripline ./examples/consumer
# The store's directory belongs to the user that the service runs as. The demo
# keeps its store in /tmp.
RUN mkdir -p /out/data /out/tmp

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/tripline /out/consumer /usr/local/bin/
COPY --from=build --chown=65532:65532 /out/data /data
COPY --from=build --chown=65532:65532 /out/tmp /tmp
USER 65532:65532
WORKDIR /data
ENTRYPOINT ["/usr/local/bin/tripline"]
CMD ["run", "-c", "/etc/tripline/tripline.yaml"]
