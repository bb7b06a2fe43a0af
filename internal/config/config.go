// Package config reads tripline.yaml into typed, checked values. It is
// strict: an unknown key, a wrong type or a value out of range is an error
// with its place in the file and what to do about it, and all errors are
// reported together.
//
// What comes out is read-only plain values; the wiring builds its parts from
// them.
package config

import (
	"time"

	"github.com/tripline/tripline/internal/secret"
)

// Config is a checked configuration. Every default is filled in, except those
// that depend on the machine (see [Config.Budget]).
type Config struct {
	NATS      NATS          `yaml:"nats"`
	Ingest    Ingest        `yaml:"ingest"`
	Tracking  Tracking      `yaml:"tracking"`
	Fences    []FenceSource `yaml:"fences"`
	Consumers []Consumer    `yaml:"consumers"`
	Admin     Admin         `yaml:"admin"`
	Log       Log           `yaml:"log"`
	// ShutdownGrace is how long a stop waits for the lanes before it parks
	// what is left.
	ShutdownGrace time.Duration `yaml:"shutdown_grace" default:"5s" min:"0s" max:"10m"`

	// Warnings are what is allowed but rarely meant.
	Warnings Problems `yaml:"-"`

	src *source
}

// Path is a value's way from the top of the file, as in consumers[0].match.
// The reader fills it in; [Config.At] turns it, with any key below it, into a
// place.
type Path string

// NATS says which server is used. Without a URL a server runs in the process.
type NATS struct {
	// URL is one address or several with commas between; empty means the
	// embedded server. The environment's NATS_URL stands in for it.
	URL      URL          `yaml:"url"`
	Creds    string       `yaml:"creds" file:"yes"` // a credentials file
	User     string       `yaml:"user"`
	Password secret.Value `yaml:"password"`
	Token    secret.Value `yaml:"token"`
	NKey     string       `yaml:"nkey" file:"yes"` // a file with the seed
	TLS      TLS          `yaml:"tls"`
	// Namespace begins the names of all subjects and, in upper case, streams.
	Namespace string `yaml:"namespace" default:"tripline"`
	// MaxStore bounds all streams together; 0: 80 % of the disk that is free
	// at the first start, then kept; of an external server, what its account
	// allows.
	MaxStore Size `yaml:"max_store"`

	// Replicas of each stream, on a cluster of that many servers or more.
	Replicas int `yaml:"replicas" default:"1" min:"1" max:"5"`

	// The rest is for the embedded server only.

	// StoreDir is relative to the working directory.
	StoreDir string `yaml:"store_dir" default:"./tripline-data"`
	// Sync is SyncInterval or SyncAlways.
	Sync       string `yaml:"sync" default:"interval" oneof:"interval,always"`
	Listen     string `yaml:"listen" default:"127.0.0.1:4222"`
	MQTTListen string `yaml:"mqtt_listen"` // empty: no MQTT
}

// When the embedded server's disk writes are forced out.
const (
	SyncInterval = "interval" // every 100 ms: a power cut may cost that much
	SyncAlways   = "always"   // before each ack
)

// Embedded says that the NATS server runs in the process.
func (n NATS) Embedded() bool { return n.URL.IsZero() }

// TLS names the files of a TLS connection; all paths are resolved.
type TLS struct {
	CA   string `yaml:"ca" file:"yes"`
	Cert string `yaml:"cert" file:"yes"`
	Key  string `yaml:"key" file:"yes"`
}

// Ingest says how locations come in.
type Ingest struct {
	// Durable stores locations in a stream before they are judged. Without
	// it they are taken at most once, at the lowest latency.
	Durable bool `yaml:"durable" default:"true"`
	// Subjects are the patterns that devices publish to; the wildcard tokens
	// are the device id. Each has another number of wildcards.
	Subjects []string `yaml:"subjects" default:"location.*, owntracks.*.*"`
	// Partitions is fixed when the streams are made.
	Partitions int `yaml:"partitions" default:"16" min:"1" max:"1024"`
	// Retention is how long judged locations are kept at least.
	Retention time.Duration `yaml:"retention" default:"1h" min:"0s" max:"8760h"`
	// MaxBytes bounds the stream of locations; 0: a quarter of the store.
	MaxBytes Size `yaml:"max_bytes"`
}

// Tracking holds the rules by which fixes become transitions. A fence's own
// properties override those of the same name.
type Tracking struct {
	// Initial says what a device's first fix inside a fence is: InitialEnter
	// or InitialSilent.
	Initial string `yaml:"initial" default:"enter" oneof:"enter,silent"`
	// ExitBufferM: leave only this many metres beyond the edge; 0: at it.
	ExitBufferM float64 `yaml:"exit_buffer_m" default:"0" min:"0" max:"100000"`
	// Confirm is how many fixes in a row must agree.
	Confirm int `yaml:"confirm" default:"1" min:"1" max:"100"`
	// Dwell lists the lengths of a stay after which a dwell is told.
	Dwell []time.Duration `yaml:"dwell"`
	// MaxAccuracyM: a less accurate fix changes nothing; 0: all count.
	MaxAccuracyM float64 `yaml:"max_accuracy_m" default:"0" min:"0" max:"1000000"`
	// MaxFuture: a fix further ahead of the clock is refused.
	MaxFuture time.Duration `yaml:"max_future" default:"5m" min:"1s" max:"8760h"`
	// CrossMaxGap: fixes further apart in time make no cross.
	CrossMaxGap time.Duration `yaml:"cross_max_gap" default:"2m" min:"1s" max:"24h"`
	// Reorder is how long a fix waits for an older one; 0: not at all.
	Reorder time.Duration `yaml:"reorder" default:"0s" min:"0s" max:"10m"`
	// MaxSpeed is metres per second above which a fix is a teleport; 0: off.
	MaxSpeed float64 `yaml:"max_speed" default:"0" min:"0" max:"100000"`
	// InsideEvery: at most one inside per device and fence in this time; 0:
	// one per fix.
	InsideEvery time.Duration `yaml:"inside_every" default:"0s" min:"0s" max:"8760h"`
	// SilentAfter: a device that sends nothing for this long is told as
	// silent; 0: never.
	SilentAfter time.Duration `yaml:"silent_after" default:"0s" min:"0s" max:"87600h"`
	// ForgetAfter: what is known of a device that sends nothing for this
	// long is dropped; 0: never.
	ForgetAfter time.Duration `yaml:"forget_after" default:"0s" min:"0s" max:"87600h"`
}

// What the first fix of a device inside a fence is.
const (
	InitialEnter  = "enter"
	InitialSilent = "silent"
)

// FenceSource is one place that fences come from: exactly one field is set.
type FenceSource struct {
	// File is a GeoJSON file, its path resolved.
	File string `yaml:"file" file:"yes"`
	// KV means the bucket <NAMESPACE>_FENCES, which can change at run time.
	KV bool `yaml:"kv"`

	Path Path `yaml:"-"`
}

// Admin is the HTTP server for health, metrics, API and live page.
type Admin struct {
	Listen string `yaml:"listen" default:"127.0.0.1:8080"`
	// Token is the bearer token; needed beyond loopback.
	Token secret.Value `yaml:"token"`
	Tiles Tiles        `yaml:"tiles"`
}

// Tiles is the background of the live page's map.
type Tiles struct {
	// URL is a template with {z}, {x} and {y}; "" for the built-in coastlines
	// alone.
	URL string `yaml:"url"`
	// Credit names whose tiles they are.
	Credit string `yaml:"credit"`
}

// Log says what is logged, to standard error.
type Log struct {
	Level  string `yaml:"level" default:"info" oneof:"debug,info,warn,error"`
	Format string `yaml:"format" default:"text" oneof:"text,json"`
}
