//go:build deps

package deps

import (
	_ "github.com/alecthomas/kong"
	_ "github.com/eclipse/paho.mqtt.golang"
	_ "github.com/expr-lang/expr"
	_ "github.com/failsafe-go/failsafe-go/circuitbreaker"
	_ "github.com/fsnotify/fsnotify"
	_ "github.com/goccy/go-yaml/parser"
	_ "github.com/golang/geo/s2"
	_ "github.com/nats-io/nats-server/v2/server"
	_ "github.com/nats-io/nats.go/jetstream"
	_ "github.com/nats-io/nats.go/micro"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/prometheus/client_golang/prometheus/testutil"
	_ "github.com/schollz/progressbar/v3"
	_ "github.com/sony/gobreaker/v2"
	_ "github.com/standard-webhooks/standard-webhooks/libraries/go"
	_ "github.com/synadia-io/orbit.go/jetstreamext"
	_ "github.com/tidwall/geojson"
	_ "github.com/tidwall/rtree"
	_ "go.uber.org/goleak"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "golang.org/x/time/rate"
	_ "pgregory.net/rapid"
)
