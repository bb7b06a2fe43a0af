package config

import (
	"time"

	"github.com/tripline/tripline/internal/secret"
)

// Consumer is a downstream: what it wants, how it is reached, and what
// protects it. Exactly one of Webhook, NATS, Request and JetStream is set.
type Consumer struct {
	// Name is [a-z0-9][a-z0-9_-]{0,31}; it is part of stream names.
	Name string `yaml:"name"`
	// Match holds at least one entry; the first that accepts a transition
	// gives its priority.
	Match []Match `yaml:"match,oneormany"`

	Webhook   *Webhook   `yaml:"webhook"`
	NATS      *Publish   `yaml:"nats"`
	Request   *Request   `yaml:"request"`
	JetStream *JetStream `yaml:"jetstream"`

	// Concurrency is how many calls are in flight at most.
	Concurrency int `yaml:"concurrency" default:"16" min:"1" max:"1024"`
	// MaxRate is deliveries per second at most; 0: no bound.
	MaxRate  float64  `yaml:"max_rate" default:"0" min:"0" max:"1000000"`
	Breaker  Breaker  `yaml:"breaker"`
	Fallback Fallback `yaml:"fallback"`

	// Timeout is that of the sink in use, its default filled in.
	Timeout time.Duration `yaml:"-"`

	Path Path `yaml:"-"`
}

// Match accepts some transitions. Empty lists accept everything.
type Match struct {
	Fences  []string `yaml:"fences"`  // ids, as globs
	Tags    []string `yaml:"tags"`    // globs; one is enough
	Devices []string `yaml:"devices"` // ids, as globs
	// Transitions are the kinds that are wanted.
	Transitions []string `yaml:"transitions" default:"enter, exit, dwell" oneof:"enter,exit,dwell,cross,inside,silent"`
	// Where is a boolean expression over device, fence, fix and props; the
	// router compiles it.
	Where    string `yaml:"where"`
	Priority string `yaml:"priority" default:"normal" oneof:"high,normal,low"`

	Path Path `yaml:"-"`
}

// Webhook delivers by HTTP POST.
type Webhook struct {
	URL URL `yaml:"url"`
	// Secrets sign each delivery (Standard Webhooks); several while rotating.
	Secrets []secret.Value `yaml:"secrets"`
	// Timeout is for the whole call; unset: 4 x breaker.p99.
	Timeout time.Duration `yaml:"timeout" min:"1ms" max:"5m"`
	// Health is polled while the breaker is open, to close it earlier.
	Health URL `yaml:"health"`
	// Egress is EgressAny or EgressPublic.
	Egress string `yaml:"egress" default:"any" oneof:"any,public"`
	CA     string `yaml:"ca" file:"yes"`
	Cert   string `yaml:"cert" file:"yes"`
	Key    string `yaml:"key" file:"yes"`
	// Headers are sent with each delivery.
	Headers map[string]secret.Value `yaml:"headers"`
}

// Where a webhook may go.
const (
	EgressAny    = "any"
	EgressPublic = "public" // not to private, link-local or metadata addresses
)

// Publish delivers by a NATS message; it is delivered when the server has it.
type Publish struct {
	Subject string        `yaml:"subject"`
	Timeout time.Duration `yaml:"timeout" min:"1ms" max:"5m"`
}

// Request delivers by a NATS request; the reply is the acknowledgement.
type Request struct {
	Subject string        `yaml:"subject"`
	Timeout time.Duration `yaml:"timeout" min:"1ms" max:"5m"`
	// Health is a subject asked while the breaker is open.
	Health string `yaml:"health"`
}

// JetStream delivers into a stream, with its acknowledgement.
type JetStream struct {
	Subject string        `yaml:"subject"`
	Timeout time.Duration `yaml:"timeout" min:"1ms" max:"5m"`
}

// Breaker is the discipline of a consumer's breaker.
type Breaker struct {
	// P99: slower is too slow. It should be at least twice the ordinary P99.
	P99 time.Duration `yaml:"p99" default:"50ms" min:"1ms" max:"1m"`
	// Probes are in flight at most while half-open.
	Probes int `yaml:"probes" default:"2" min:"1" max:"3" hint:"3 only where the consumer serves 3 cold calls at once within p99"`
	// Successes in a row close it.
	Successes int `yaml:"successes" default:"5" min:"1" max:"100"`
	// Base is the first open window, Max the longest, Factor between them.
	Base   time.Duration `yaml:"base" default:"1s" min:"10ms" max:"10m"`
	Max    time.Duration `yaml:"max" default:"30s" min:"10ms" max:"1h"`
	Factor float64       `yaml:"factor" default:"2" min:"1" max:"10"`
	// Jitter spreads a window by this share to either side.
	Jitter float64 `yaml:"jitter" default:"0.2" min:"0" max:"0.5"`
	// Settle: closed and without a trip for this long is a clean close.
	Settle time.Duration `yaml:"settle" default:"10s" min:"0s" max:"1h"`
	// MinSamples is how many calls the P99 is judged on at least.
	MinSamples int `yaml:"min_samples" default:"100" min:"10" max:"100000"`
}

// Fallback is what becomes of triggers that can't be delivered now.
type Fallback struct {
	// MaxBytes bounds the queue; 0: see [Config.Budget].
	MaxBytes Size `yaml:"max_bytes"`
	// MaxAge: an older trigger becomes a dead letter at its turn.
	MaxAge      time.Duration `yaml:"max_age" default:"24h" min:"1s" max:"8760h"`
	MaxAttempts int           `yaml:"max_attempts" default:"8" min:"1" max:"1000"`
	// OnFull is OnFullBlock, OnFullDead or OnFullDrop.
	OnFull string `yaml:"on_full" default:"block" oneof:"block,dead,drop"`
}

// What happens when a fallback queue is full.
const (
	OnFullBlock = "block" // ingest waits: nothing is lost
	OnFullDead  = "dead"  // the oldest become dead letters
	OnFullDrop  = "drop"  // the newest are dropped and counted
)
