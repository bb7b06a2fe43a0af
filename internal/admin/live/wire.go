package live

import "time"

// Position is the newest fix of a device.
type Position struct {
	Device   string
	Lat, Lon float64 // WGS 84 degrees
	TS       int64   // device time, unix milliseconds
	Heading  float64 // degrees clockwise from north; NaN if it is not known
	// Age is how long ago it was heard, by our clock; 0: just now.
	Age time.Duration
}

// Trigger is a transition and whom it was addressed to.
type Trigger struct {
	ID         string    `json:"id"`
	At         time.Time `json:"at"` // device time
	Device     string    `json:"device"`
	Fence      string    `json:"fence"` // "" for a transition that has none
	Transition string    `json:"transition"`
	Consumers  []string  `json:"consumers"`
	Initial    bool      `json:"initial,omitempty"`
	Reason     string    `json:"reason,omitempty"`
}

// Breaker is a change of a breaker's state.
type Breaker struct {
	Consumer string    `json:"consumer"`
	At       time.Time `json:"at"`
	From     string    `json:"from"` // "closed", "open", "half_open"
	To       string    `json:"to"`
	Reason   string    `json:"reason"` // the metric's label
	Text     string    `json:"text"`   // the reason in words
	Rung     int       `json:"rung"`
	// Until is when the open window ends; nil unless To is "open".
	Until *time.Time `json:"until"`
}

// Probe is what became of a call that was admitted while half-open.
type Probe struct {
	Consumer  string    `json:"consumer"`
	At        time.Time `json:"at"`
	Verdict   string    `json:"verdict"` // "healthy", "slow", "failed", ...
	LatencyMS float64   `json:"latency_ms"`
}

// History is what a consumer went through in the last minutes, for a client
// that has just come.
type History struct {
	Consumer string `json:"consumer"`
	// From is when it begins.
	From    time.Time `json:"from"`
	Changes []Breaker `json:"changes"`
	Probes  []Probe   `json:"probes"`
	P99     []Sample  `json:"p99"`
}

// Sample is a P99 of the past, milliseconds; nil while nothing was called.
type Sample struct {
	At time.Time `json:"at"`
	MS *float64  `json:"ms"`
}

// Consumer is the state of one consumer, as the API and the live page show
// it. Rates are per second over the last few seconds; ratios are 0 to 1. Every
// number is finite: JSON has no other.
type Consumer struct {
	Name   string `json:"name"`
	Sink   string `json:"sink"`   // "webhook", "nats", "request", "jetstream"
	Target string `json:"target"` // URL or subject, without any secret

	State  string    `json:"state"`  // "closed", "open", "half_open"
	Reason string    `json:"reason"` // in words
	Since  time.Time `json:"since"`
	// AliveButSlow: its probes all answer, but never within the limit.
	AliveButSlow bool `json:"alive_but_slow"`

	P50MS      float64 `json:"p50_ms"`
	P99MS      float64 `json:"p99_ms"`
	P99LimitMS float64 `json:"p99_limit_ms"`
	Samples    int     `json:"samples"` // calls in the sliding window
	SlowRatio  float64 `json:"slow_ratio"`
	ErrorRatio float64 `json:"error_ratio"`

	Rung            int        `json:"rung"` // of the ladder of open windows; 0 is the base
	Generation      uint64     `json:"generation"`
	OpenUntil       *time.Time `json:"open_until"` // nil unless open
	ProbesInFlight  int        `json:"probes_in_flight"`
	Probes          int        `json:"probes"` // how many may be in flight
	Successes       int        `json:"successes"`
	SuccessesNeeded int        `json:"successes_needed"`

	RampWindow  int `json:"ramp_window"` // 0: the ramp isn't in force
	Concurrency int `json:"concurrency"`
	InFlight    int `json:"in_flight"`
	LaneDepth   int `json:"lane_depth"`
	LaneCap     int `json:"lane_cap"`

	Backlog Backlog `json:"backlog"`

	DeliveredTotal uint64  `json:"delivered_total"`
	DeliveredPerS  float64 `json:"delivered_per_s"`
	DivertedTotal  uint64  `json:"diverted_total"`
	DeadTotal      uint64  `json:"dead_total"`
	Disabled       bool    `json:"disabled"` // it answered 410: off until a reload
	Paused         bool    `json:"paused"`   // an operator holds the replay back
	Blocked        bool    `json:"blocked"`  // its full queue holds the partitions back
	LastErrors     []Error `json:"last_errors"`
}

// Backlog is what is parked for a consumer.
type Backlog struct {
	Items      int     `json:"items"`
	Bytes      uint64  `json:"bytes"`
	MaxBytes   uint64  `json:"max_bytes"` // 0: no bound
	OldestS    float64 `json:"oldest_s"`  // age of the oldest, seconds
	ReplayPerS float64 `json:"replay_per_s"`
	// ETAS is how many seconds the drain will take at this rate; nil while
	// nothing drains.
	ETAS *float64 `json:"eta_s"`
}

// Error is a failed call, secrets redacted.
type Error struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}

// The names of the events.
const (
	eventHello     = "hello"
	eventHistory   = "history"
	eventDevices   = "devices"
	eventForgotten = "forgotten"
	eventTrigger   = "trigger"
	eventConsumers = "consumers"
	eventBreaker   = "breaker"
	eventProbe     = "probe"
	eventFences    = "fences"
	eventDropped   = "dropped"
)

type hello struct {
	Version   string    `json:"version"`
	Namespace string    `json:"namespace"`
	Started   time.Time `json:"started"`
	// Now lets the client count down to a deadline of ours on its own clock.
	Now time.Time `json:"now"`
	// GoneAfterS: after so many seconds without word from it, a device is to
	// leave the map.
	GoneAfterS float64 `json:"gone_after_s"`
}

type forgotten struct {
	Device string `json:"device"`
}

// dropped tells a client what it has missed since the last one.
type dropped struct {
	Triggers int `json:"triggers"`
	Notices  int `json:"notices"` // breaker changes, probes and forgotten devices
}
