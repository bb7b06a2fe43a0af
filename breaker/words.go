package breaker

// State is what a breaker is in.
type State uint8

// The states.
const (
	Closed   State = iota // calls are admitted and judged
	Open                  // nothing is admitted until the open window ends
	HalfOpen              // a few probes are admitted
)

// String returns "closed", "open" or "half_open".
func (s State) String() string {
	return inWords(s, "closed", "open", "half_open")
}

// Kind says how a call ended.
type Kind uint8

// The kinds of outcome.
const (
	// OK: the consumer answered well. Whether it was healthy or slow is the
	// breaker's to say, from the time between Admit and Report.
	OK Kind = iota
	// Failed: the consumer failed, or did not answer in time.
	Failed
	// Ignored: nothing was sent, or the fault was the caller's own. It says
	// nothing about the consumer and is not judged.
	Ignored
	// Cancelled: the caller gave up. Not judged while closed, a failure as a
	// probe, because the consumer has not proved anything.
	Cancelled
)

// String returns "ok", "failed", "ignored" or "cancelled".
func (k Kind) String() string {
	return inWords(k, "ok", "failed", "ignored", "cancelled")
}

// Verdict is what the breaker made of a call.
type Verdict uint8

// The verdicts.
const (
	VerdictHealthy   Verdict = iota // OK within P99
	VerdictSlow                     // over P99, perhaps still in flight
	VerdictFailed                   // failed, or a cancelled probe
	VerdictIgnored                  // not judged: the caller's own fault
	VerdictCancelled                // not judged: cancelled while closed
	VerdictStale                    // admitted in another generation, or reported after its lease: decides nothing
	VerdictRepeated                 // had been reported before: decides nothing
)

// String returns the verdict's metric label: "healthy", "slow", "failed",
// "ignored", "cancelled", "stale" or "repeated".
func (v Verdict) String() string {
	return inWords(v, "healthy", "slow", "failed", "ignored", "cancelled", "stale", "repeated")
}

// Reason says why the breaker changed its state.
type Reason uint8

// The reasons.
const (
	ReasonNone          Reason = iota // it never has
	ReasonP99                         // closed to open: P99 over its limit
	ReasonSlowRatio                   // closed to open: too many slow calls
	ReasonErrorRatio                  // closed to open: too many failed calls
	ReasonConsecutive                 // closed to open: bad calls in a row
	ReasonProbeFailed                 // half-open to open
	ReasonProbeSlow                   // half-open to open
	ReasonForced                      // to open: ForceOpen
	ReasonWindowEnded                 // open to half-open
	ReasonHint                        // open to half-open: Hint
	ReasonProbeNow                    // open to half-open: ProbeNow
	ReasonProbesHealthy               // half-open to closed
)

// String returns the reason's metric label, such as "p99", "probe_slow" or
// "window_ended"; "" for ReasonNone.
func (r Reason) String() string {
	return inWords(r, "", "p99", "slow_ratio", "error_ratio", "consecutive",
		"probe_failed", "probe_slow", "forced",
		"window_ended", "hint", "probe_now", "probes_healthy")
}

func inWords[T ~uint8](v T, words ...string) string {
	if int(v) < len(words) {
		return words[v]
	}
	return "unknown"
}
